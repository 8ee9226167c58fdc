//! The same program in text and in Rust gives the same module.

use systola_dsl::prelude::*;
use systola_front::text::parse_module;

fn check(built: &ModuleBuilder, text: &str) {
    let parsed = match parse_module(text) {
        Ok(module) => module,
        Err(errors) => panic!("{errors:#?}"),
    };
    let built = match built.build() {
        Ok(module) => module,
        Err(errors) => panic!("{errors:#?}"),
    };
    assert_eq!(built, parsed);
}

fn of_system(system: SystemBuilder) -> ModuleBuilder {
    let mut module = ModuleBuilder::new();
    module.system(system);
    module
}

const F32: Scalar = Scalar::F32;
const F64: Scalar = Scalar::F64;
const I32: Scalar = Scalar::I32;

fn conv1d_head(s: &mut SystemBuilder) -> [Expr; 4] {
    let (cap_c, cap_q) = (s.param("C"), s.param("Q"));
    s.context(cap_c.ge(1)).context(cap_q.ge(1));
    let x = s.input("x", F32, [&cap_c + &cap_q - 1]);
    let w = s.input("w", F32, [&cap_q]);
    [cap_c, cap_q, x, w]
}

#[test]
fn conv1d_written_out_with_table_1() {
    let mut s = SystemBuilder::new("conv1d");
    let [cap_c, cap_q, x, w] = conv1d_head(&mut s);
    let [c, q, cap_x, cap_z] = names(["c", "q", "X", "Z"]);
    s.index([c.range(0, &cap_c), q.range(0, &cap_q)]);
    let boundary = q.equals(0).or(c.equals(&cap_c - 1));
    let moved = cap_x.at((&c + 1, &q - 1));
    s.var(&cap_x, F32, select(boundary, x.at([&c + &q]), moved));
    let sum = select(q.equals(0), 0, cap_z.at((&c, &q - 1)));
    s.var(&cap_z, F32, sum + &cap_x * w.at([&q])).reorderable();
    s.output("z", F32, [&cap_c])
        .write_when(&cap_z, [&c], q.equals(&cap_q - 1));

    let mut sbm = MappingBuilder::new("sbm", "conv1d");
    sbm.lane([&c + &q]).time([&q]).check();
    let mut paper = MappingBuilder::new("paper", "conv1d");
    paper.func_of("X", F32, [&c, &q], Residence::Device);
    paper.func("Z", Residence::Device);
    paper
        .on("X")
        .merge_ures(["Z"])
        .tile("c", "oc", "ci", 64)
        .tile("ci", "cc", "ccc", 16)
        .reorder(["ccc", "q", "cc", "oc"])
        .gpu_blocks(["oc"])
        .gpu_threads(["cc"]);
    paper
        .on("w")
        .in_("X")
        .compute_at("X", "oc")
        .store_in(Store::Shared);
    let (space, time) = (name("s"), name("t"));
    paper
        .on("X")
        .space_time_transform(["ccc", "q"], ["s", "t"], [(1, 1), (0, 1)])
        .reverse((&space - &time, &time))
        .checked(Check::Check);
    let mut all = MappingBuilder::new("all", "conv1d");
    all.tile("c", 128, "bx", "xx").overlap(4, 4).periodic();
    all.when(c.lt(4).and(!q.ge(2)), |m| {
        m.lane([&c]).time([&q]);
    });
    all.node([0])
        .block([&name("bx")])
        .warp([&c / 32])
        .reg([&c % 4]);
    all.launch([0]).block_step([&q]).time((-&c + &q, 2 * &q));
    all.forward("x", (-1, 1))
        .read("w")
        .sum_along("Z", [up(&q), down("p")]);
    all.sum_tree("Z").broadcast("X");
    all.space(["q", "c"]).align("X", ["c", "q"], (&q, 2 * &c));
    all.store("X")
        .store_in("Z", "z", [&c])
        .store_modulo("Z", (0, 2));
    let stages = [SumStage::along([up("bx")]), SumStage::tree(["r", "xx"])];
    all.sum("Z", stages);
    all.transfer("w", Store::Shared)
        .at("bx")
        .stages(2)
        .layout(Rows::Pad(1))
        .by(Engine::CpAsync);
    all.unroll("q").unroll_by("q", 4).trust().auto();
    all.reverse([("c", name("lane") - name("time")), ("q", name("time"))])
        .flags()
        .look_back();

    let mut module = ModuleBuilder::new();
    module.system(s).mapping(sbm).mapping(paper).mapping(all);
    check(
        &module,
        "system conv1d(C, Q) where C >= 1, Q >= 1 {
           input x[C + Q - 1]: f32;
           input w[Q]: f32;
           index c in 0..C, q in 0..Q;
           var X: f32 = select(q == 0 || c == C - 1, x[c + q], X(c + 1, q - 1));
           var Z: f32 reorderable = select(q == 0, 0, Z(c, q - 1)) + X * w[q];
           output z[C]: f32 = Z at [c] when q == Q - 1;
         }
         mapping sbm of conv1d { lane = c + q; time = q; check; }
         mapping paper of conv1d {
           func X(f32, (c, q), device);
           func Z(device);
           X.merge_ures(Z).tile(c, oc, ci, 64).tile(ci, cc, ccc, 16);
           X.reorder(ccc, q, cc, oc).gpu_blocks(oc).gpu_threads(cc);
           w.in(X).compute_at(X, oc).store_in(shared);
           X.space_time_transform((ccc, q), (s, t), ((1, 1), (0, 1)), reverse (s - t, t), check);
         }
         mapping all of conv1d {
           tile c by 128 as (bx, xx) overlap (4, 4) periodic;
           when c < 4 && !(q >= 2) { lane = c; time = q; }
           node = 0; block = bx; warp = c/32; reg = c % 4;
           launch = 0; block_step = q; time = (-c + q, 2*q);
           forward x along (-1, 1); read w; sum Z along (q, -p);
           sum Z tree; broadcast X;
           space (q, c); align X (c, q) -> (q, 2*c);
           store X; store Z in z[c]; store Z modulo (0, 2);
           sum Z along bx then tree (r, xx);
           transfer w to shared at bx stages 2 layout pad 1 by cp_async;
           unroll q; unroll q by 4; trust; auto;
           reverse (c = lane - time, q = time);
           flags; look_back;
         }",
    );
}

#[test]
fn conv1d_core_and_a_program_of_it() {
    let mut s = SystemBuilder::new("conv1d");
    let [cap_c, cap_q, x, w] = conv1d_head(&mut s);
    let [c, q, cap_z] = names(["c", "q", "Z"]);
    s.index([c.range(0, &cap_c)]);
    let term = x.at([&c + &q]) * w.at([&q]);
    s.var(&cap_z, F32, reduce(BinOp::Add, [q.range(0, &cap_q)], term))
        .reorderable();
    s.output("z", F32, [&cap_c]).write(&cap_z, [&c]);

    let mut p = ProgramBuilder::new("blur_twice");
    let n = p.param("N");
    p.context(n.ge(8));
    let px = p.input("x", F32, [&n]);
    let pw = p.input("w", F32, [3]);
    let first = p.stage(
        "first",
        "conv1d",
        [("C", &n - 2), ("Q", Expr::from(3))],
        [("x", &px), ("w", &pw)],
    );
    let second = p.stage(
        "second",
        "conv1d",
        [("C", &n - 4), ("Q", Expr::from(3))],
        [("x", first.output("z")), ("w", (&pw).into())],
    );
    p.output("y", second.output("z"));

    let mut module = ModuleBuilder::new();
    module.system(s).program(p);
    check(
        &module,
        "system conv1d(C, Q) where C >= 1, Q >= 1 {
           input x[C + Q - 1]: f32;
           input w[Q]: f32;
           index c in 0..C;
           var Z: f32 reorderable = reduce(+, q in 0..Q, x[c + q] * w[q]);
           output z[C]: f32 = Z at [c];
         }
         program blur_twice(N) where N >= 8 {
           input x[N]: f32;
           input w[3]: f32;
           first = conv1d(C = N - 2, Q = 3)(x = x, w = w);
           second = conv1d(C = N - 4, Q = 3)(x = first.z, w = w);
           output y = second.z;
         }",
    );
}

#[test]
fn edit_distance_with_a_table() {
    let mut s = SystemBuilder::new("edit");
    let (cap_n, cap_m) = (s.param("N"), s.param("M"));
    s.context(cap_n.ge(1)).context(cap_m.ge(1));
    let gap = s.constant("gap", I32, 1);
    let a = s.input("a", Scalar::U8, [&cap_n]);
    let b = s.input("b", Scalar::U8, [&cap_m]);
    let bits = [0, 1, 1, 0].map(Literal::Int);
    let sub = s.table_of("sub", I32, [2, 2], bits);
    let bias = s.table("bias", I32, [&cap_n]);
    let [i, j, d, e] = names(["i", "j", "D", "e"]);
    s.index([i.range(0, &cap_n), j.range(0, &cap_m)]);
    let up = select(i.equals(0), (&j + 1).cast(I32), d.at((&i - 1, &j)));
    let left = select(j.equals(0), (&i + 1).cast(I32), d.at((&i, &j - 1)));
    let corner = select(
        i.equals(0),
        j.cast(I32),
        select(j.equals(0), i.cast(I32), d.at((&i - 1, &j - 1))),
    );
    let cost = sub.at((a.at([&i]) & 1, b.at([&j]) & 1)) + bias.at([&i]);
    s.var(
        &d,
        I32,
        bind("e", corner + cost, |e| min(min(up + &gap, left + &gap), e)),
    );
    drop(e);
    s.output("score", I32, Vec::<Expr>::new()).write_when(
        &d,
        (),
        i.equals(&cap_n - 1).and(j.equals(&cap_m - 1)),
    );
    check(
        &of_system(s),
        "system edit(N, M) where N >= 1, M >= 1 {
           const gap: i32 = 1;
           input a[N]: u8;
           input b[M]: u8;
           table sub[2, 2]: i32 = [[0, 1], [1, 0]];
           table bias[N]: i32;
           index i in 0..N, j in 0..M;
           var D: i32 =
             let e = select(i == 0, i32(j), select(j == 0, i32(i), D(i - 1, j - 1)))
                     + (sub[a[i] & 1, b[j] & 1] + bias[i]);
             min(select(i == 0, i32(j + 1), D(i - 1, j)) + gap,
                 select(j == 0, i32(i + 1), D(i, j - 1)) + gap,
                 e);
           output score[]: i32 = D at [] when i == N - 1 && j == M - 1;
         }",
    );
}

#[test]
fn givens_with_functions_and_tuples() {
    let mut s = SystemBuilder::new("givens");
    let (cap_m, cap_n) = (s.param("M"), s.param("N"));
    s.context(cap_m.ge(1)).context(cap_n.ge(1));
    let a = s.input("a", F64, [&cap_m, &cap_n]);
    let pair = || Type::Tuple(vec![F64.into(), F64.into()]);
    let turn = s.function(
        "turn",
        [("p", F64.into()), ("v", F64.into())],
        pair(),
        Law::Fixed,
        |[p, v]| {
            let norm = (&p * &p + &v * &v).sqrt();
            bind("h", norm, |h| {
                select(h.equals(0), tuple((1, 0)), tuple((&p / &h, &v / &h)))
            })
        },
    );
    let [i, k, j, xin, rin, rot, cap_r, cap_x] = names(["i", "k", "j", "x'", "r'", "T", "R", "X"]);
    s.index([i.range(0, &cap_m), k.range(0, &cap_n), j.range(&k, &cap_n)]);
    s.var(
        &xin,
        F64,
        select(k.equals(0), a.at((&i, &j)), cap_x.at((&i, &k - 1, &j))),
    );
    s.var(
        &rin,
        F64,
        select(i.equals(0), 0, cap_r.at((&i - 1, &k, &j))),
    );
    s.var(
        &rot,
        pair(),
        select(
            j.equals(&k),
            turn.call((&rin, &xin)),
            rot.at((&i, &k, &j - 1)),
        ),
    );
    s.var(&cap_r, F64, rot.field(0) * &rin + rot.field(1) * &xin);
    s.var(&cap_x, F64, rot.field(0) * &xin - rot.field(1) * &rin)
        .on(j.gt(&k));
    s.output("r", F64, [&cap_n, &cap_n])
        .write_when(&cap_r, (&k, &j), i.equals(&cap_m - 1))
        .fill(0);
    check(
        &of_system(s),
        "system givens(M, N) where M >= 1, N >= 1 {
           input a[M, N]: f64;
           fn turn(p: f64, v: f64) -> (f64, f64) =
             let h = sqrt(p * p + v * v); select(h == 0, (1, 0), (p / h, v / h));
           index i in 0..M, k in 0..N, j in k..N;
           var x': f64 = select(k == 0, a[i, j], X(i, k - 1, j));
           var r': f64 = select(i == 0, 0, R(i - 1, k, j));
           var T: (f64, f64) = select(j == k, turn(r', x'), T(i, k, j - 1));
           var R: f64 = T.0 * r' + T.1 * x';
           var X: f64 on j > k = T.0 * x' - T.1 * r';
           output r[N, N]: f64 = R at [k, j] when i == M - 1 else 0;
         }",
    );
}

#[test]
fn matmul_and_scan() {
    let mut s = SystemBuilder::new("matmul");
    let [n, m, k] = ["N", "M", "K"].map(|p| s.param(p));
    let a = s.input("a", F32, [&n, &k]);
    let b = s.input_else("b", F32, [axis(-1, &k), axis(0, &m)], 0);
    let [i, j, kk, c, p] = names(["i", "j", "k", "C", "P"]);
    s.index([&i, &j, &kk]);
    for (iterator, size) in [(&i, &n), (&j, &m), (&kk, &k)] {
        s.domain(iterator.ge(0)).domain(iterator.lt(size));
    }
    let before = select(kk.equals(0), 0.5, c.at((&i, &j, &kk - 1)));
    s.var(&c, F32, before + a.at((&i, &kk)) * b.at((&kk - 1, &j)));
    s.var(&p, F32, scan(BinOp::Max, &j, only(kk.equals(&k - 1), &c)));
    s.output("c", F32, [&n, &m])
        .write_when(&c, (&i, &j), kk.equals(&k - 1));
    check(
        &of_system(s),
        "system matmul(N, M, K) {
           input a[N, K]: f32;
           input b[-1..K, M]: f32 else 0;
           index i, j, k where i >= 0, i < N, j >= 0, j < M, k >= 0, k < K;
           var C: f32 = select(k == 0, 0.5, C(i, j, k - 1)) + a[i, k] * b[k - 1, j];
           var P: f32 = scan(max, j, select(k == K - 1, C));
           output c[N, M]: f32 = C at [i, j] when k == K - 1;
         }",
    );
}

#[test]
fn inputs_with_boundary_conditions() {
    for (boundary, word) in [
        (Boundary::Clamp, "clamp"),
        (Boundary::Mirror, "mirror"),
        (Boundary::Reflect, "reflect"),
        (Boundary::Wrap, "wrap"),
        (Boundary::Constant(Literal::Int(2)), "constant 2"),
    ] {
        let mut s = SystemBuilder::new("around");
        let [n, m] = ["N", "M"].map(|p| s.param(p));
        let x = s.input_boundary("x", F32, [axis(0, &n), axis(-1, &m)], boundary);
        let [i, j, z] = names(["i", "j", "Z"]);
        s.index([i.range(0, &n), j.range(0, &m)]);
        s.var(&z, F32, x.at((&i - 1, &j)) + x.at((&i, &j + 2)));
        s.output("z", F32, [&n, &m]).write(&z, (&i, &j));
        check(
            &of_system(s),
            &format!(
                "system around(N, M) {{
                   input x[N, -1..M]: f32 {word};
                   index i in 0..N, j in 0..M;
                   var Z: f32 = x[i - 1, j] + x[i, j + 2];
                   output z[N, M]: f32 = Z at [i, j];
                 }}"
            ),
        );
    }
    let mut s = SystemBuilder::new("fixed");
    let n = s.param("N");
    s.input_boundary("x", F32, [&n], Boundary::Fixed);
    let errors = of_system(s).build().unwrap_err();
    assert_eq!(errors[0].code.id, "E0237", "{errors:?}");
}

#[test]
fn lu_on_a_triangle() {
    let mut s = SystemBuilder::new("lu");
    let n = s.param("N");
    s.context(n.ge(1));
    let a = s.input("a", F64, [&n, &n]);
    let [k, i, j, ain, u, l, cap_a] = names(["k", "i", "j", "a'", "U", "L", "A"]);
    s.index([k.range(0, &n), i.range(&k, &n), j.range(&k, &n)]);
    s.var(
        &ain,
        F64,
        select(k.equals(0), a.at((&i, &j)), cap_a.at((&k - 1, &i, &j))),
    );
    s.var(&u, F64, select(i.equals(&k), &ain, u.at((&k, &i - 1, &j))));
    let pivot = select(i.equals(&k), 1, &ain / &u);
    s.var(&l, F64, select(j.equals(&k), pivot, l.at((&k, &i, &j - 1))));
    s.var(&cap_a, F64, &ain - &l * &u).on(i.gt(&k)).on(j.gt(&k));
    s.output("u", F64, [&n, &n])
        .write_when(&u, (&k, &j), i.equals(&k))
        .fill(0);
    s.output("l", F64, [&n, &n])
        .write_when(&l, (&i, &k), j.equals(&k))
        .fill(0);
    check(
        &of_system(s),
        "system lu(N) where N >= 1 {
           input a[N, N]: f64;
           index k in 0..N, i in k..N, j in k..N;
           var a': f64 = select(k == 0, a[i, j], A(k - 1, i, j));
           var U: f64 = select(i == k, a', U(k, i - 1, j));
           var L: f64 = select(j == k, select(i == k, 1, a' / U), L(k, i, j - 1));
           var A: f64 on i > k, j > k = a' - L * U;
           output u[N, N]: f64 = U at [k, j] when i == k else 0;
           output l[N, N]: f64 = L at [i, k] when j == k else 0;
         }",
    );
}

#[test]
fn conv2d_in_a_batch() {
    let mut s = SystemBuilder::new("conv2d");
    let [r, c, h, q, cap_b] = ["R", "C", "H", "Q", "B"].map(|p| s.param(p));
    let x = s.input("x", F32, [&r + &h - 1, &c + &q - 1]);
    let w = s.input("w", F32, [&h, &q]);
    let [n, y, z, u, v, cap_z] = names(["n", "y", "z", "u", "v", "Z"]);
    s.batch(n.range(0, &cap_b), [&w]);
    s.index([y.range(0, &r), z.range(0, &c)]);
    let term = x.at((&y + &u, &z + &v)) * w.at((&u, &v));
    let sum = reduce(BinOp::Add, [u.range(0, &h), v.range(0, &q)], term);
    s.var(&cap_z, F32, sum).associative();
    s.output("out", F32, [&r, &c]).write(&cap_z, (&y, &z));
    check(
        &of_system(s),
        "system conv2d(R, C, H, Q, B) {
           input x[R + H - 1, C + Q - 1]: f32;
           input w[H, Q]: f32;
           batch n in 0..B shared(w);
           index y in 0..R, z in 0..C;
           var Z: f32 associative = reduce(+, u in 0..H, v in 0..Q, x[y + u, z + v] * w[u, v]);
           output out[R, C]: f32 = Z at [y, z];
         }",
    );
}

#[test]
fn stencils_and_convolutions_stand_in_modules() {
    let mut s = StencilBuilder::new("blur");
    let n = s.param("N");
    let u = s.field("u", F32, [&n], Boundary::Clamp);
    s.update(&u, s.sum(&u, &Shape::star(1, 1)));
    let mut c = ConvBuilder::new("filter");
    let n = c.param("N");
    c.input("x", F32, [&n], Boundary::Mirror)
        .filter("w", F32, [3]);
    let mut m = MappingBuilder::new("m", "blur");
    m.lane([&name("x")]).time([0]);
    let mut module = ModuleBuilder::new();
    module.stencil(s).conv(c).mapping(m);
    check(
        &module,
        "stencil blur(N) { field u[N]: f32 clamp; u = sum(u over star 1); }
         conv filter(N) { input x[N]: f32 mirror; filter w[3]: f32; }
         mapping m of blur { lane = x; time = 0; }",
    );
}

fn codes(s: &SystemBuilder) -> Vec<&'static str> {
    match s.build() {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|e| e.code.id).collect(),
    }
}

#[test]
fn mistakes_are_diagnostics() {
    let with = |body: &dyn Fn(&Expr, &Expr) -> Expr| {
        let mut s = SystemBuilder::new("s");
        let n = s.param("N");
        let x = s.input("x", F32, [&n]);
        let i = name("i");
        s.index([i.range(0, &n)]);
        s.var(name("Y"), F32, body(&x, &i));
        codes(&s)
    };
    assert_eq!(with(&|x, i| x.at([i])), [""; 0]);
    assert_eq!(with(&|_, _| name("nothing")), ["E0201"]);
    assert_eq!(with(&|x, i| x.at([i * i])), ["E0207"]);
    assert_eq!(with(&|x, i| x.at([i / 0])), ["E0209"]);
    assert_eq!(with(&|x, i| x.at((i, i))), ["E0206"]);
    assert_eq!(with(&|_, i| i + 1), ["E0203"]);
    assert_eq!(with(&|x, i| x.at([i]) & 1), ["E0204"]);
    assert_eq!(with(&|x, i| (x.at([i]) + 1).at([i])), ["E0210"]);
    assert_eq!(with(&|x, i| only(x.at([i]).gt(0), 1)), ["E0216"]);
    assert_eq!(
        with(&|x, i| (0..100_000).fold(x.at([i]), |sum, _| sum + 1)),
        ["E0106"]
    );
    // A subexpression that is used twice counts twice: doubling an expression forty times gives a
    // trillion operations.
    assert_eq!(
        with(&|x, i| (0..40).fold(x.at([i]), |sum, _| &sum + &sum)),
        ["E0106"]
    );
    let mut module = ModuleBuilder::new();
    module
        .system(SystemBuilder::new("s"))
        .system(SystemBuilder::new("s"));
    module.mapping(MappingBuilder::new("m", "t"));
    let found: Vec<&str> = module
        .build()
        .unwrap_err()
        .iter()
        .map(|e| e.code.id)
        .collect();
    assert_eq!(found, ["E0202", "E0219"]);
    let mut twice = SystemBuilder::new("s");
    twice.param("N");
    twice.param("N");
    assert_eq!(codes(&twice), ["E0202"]);
    let mut reserved = SystemBuilder::new("s");
    reserved.param("in");
    assert_eq!(codes(&reserved), ["E0105"]);
    assert_eq!(codes(&SystemBuilder::new("two words")), ["E0201"]);
    let mut short = SystemBuilder::new("s");
    short.table_of("t", I32, [2, 2], [Literal::Int(1)]);
    assert_eq!(codes(&short), ["E0215"]);
    let mut m = MappingBuilder::new("m", "s");
    m.lane([1.5]).on("X").store_in(Store::Shared);
    let errors: Vec<&str> = m.build().unwrap_err().iter().map(|e| e.code.id).collect();
    assert_eq!(errors, ["E0111", "E0111"]);
}

#[test]
fn a_mistake_names_its_declaration_and_its_place_in_rust() {
    let mut s = SystemBuilder::new("s");
    let n = s.param("N");
    let i = name("i");
    s.index([i.range(0, &n)]);
    let line = line!() + 1;
    s.var(name("Y"), F32, name("nothing")).on(i.lt(name("M")));
    s.output("y", F32, [&n]).write(name("Y"), [&i + name("K")]);
    let errors = s.build().unwrap_err();
    let notes: Vec<&str> = errors.iter().map(|e| e.notes[0].as_str()).collect();
    let place = |line: u32| format!("at {}:{line}:7", file!());
    assert_eq!(
        notes,
        [
            format!("in the equation of `Y`, {}", place(line)),
            format!("in the equation of `Y`, {}", place(line)),
            format!("in the output `y`, {}", place(line + 1)),
        ]
    );
    assert!(errors.iter().all(|e| e.code.id == "E0201"), "{errors:#?}");
}
