//! Running sums along the lanes, from step to step, from register to register and from warp to warp:
//! every vector continues what the one before has summed up.

use std::collections::{BTreeMap, HashMap};

use systola_driver::{Fix, Machine, Simd, load, lower};
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::run_system;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Op, Program, Stmt};
use systola_ir::system::Module;
use systola_ir::{Diagnostic, RegId, ValueId};

use crate::values::inputs;

const SYSTEMS: [(&str, &str); 9] = [
    ("up", "var S: i32 = scan(+, i, x[i]);"),
    (
        "down",
        "var S: i32 = select(i == N - 1, x[i], S(i + 1) + x[i]);",
    ),
    (
        "pieces",
        "var S: i32 = select(i % 24 == 0, x[i], S(i - 1) + x[i]);",
    ),
    (
        "from the third",
        "var S: i32 = select(i < 3, 0, S(i - 1) + x[i]);",
    ),
    (
        "two in turn",
        "var S: i32 = select(i < 2, x[i], S(i - 2) + x[i]);",
    ),
    (
        "two terms",
        "var S: i32 reorderable = select(i == 0, x[i], S(i - 1) + x[i] + 3 * x[i]);",
    ),
    (
        "one term or two",
        "var S: i32 reorderable = select(i == 0, x[i],
             select(i % 3 == 0, max(x[i] - 7, max(S(i - 1), 2 * x[i])), max(S(i - 1), -x[i])));",
    ),
    ("the first", "var S: i32 = select(i == 0, x[0], S(i - 1));"),
    (
        "pairs",
        "fn then(p: (i32, i32), q: (i32, i32)) -> (i32, i32) reorderable =
             (p.0 * q.0, p.1 * q.0 + q.1);
         var T: (i32, i32) = scan(then, i, (x[i], 3 - x[i]));
         var S: i32 = T.1;",
    ),
];

const MAPPINGS: [(&str, &str); 6] = [
    ("steps", "tile i by L as (t, l); lane = l; time = t;"),
    (
        "registers",
        "tile i by 4*L as (t, w); tile w by L as (q, l); lane = l; reg = q; time = t;",
    ),
    (
        "adjacent",
        "tile i by 4*L as (t, w); tile w by 4 as (l, r); lane = l; reg = r; time = t;",
    ),
    (
        "both",
        "tile i by 8*L as (t, w); tile w by 4*L as (q, v); tile v by 4 as (l, r);
         lane = l; reg = (q, r); time = t;",
    ),
    (
        "blocks",
        "flags; tile i by 4*L as (b, w); block = b; lane = w % L; time = 4*b + w/L;",
    ),
    (
        "launches",
        "tile i by 4*L as (k, w); launch = k; lane = w % L; time = w/L;",
    ),
];

/// For sums downwards, which run from the last step to the first.
fn reversed(mapping: &str) -> String {
    let time = mapping.replace("time = t", "time = -t");
    let blocks = time.replace("time = 4*b + w/L", "time = -4*b - w/L");
    blocks.replace(
        "launch = k; lane = w % L; time = w/L",
        "launch = -k; lane = w % L; time = -(w/L)",
    )
}

fn text(declarations: &str, mapping: &str) -> String {
    let (functions, vars): (Vec<_>, Vec<_>) = match declarations.rsplit_once("var T") {
        Some((functions, vars)) => (vec![functions], vec![format!("var T{vars}")]),
        None => (Vec::new(), vec![declarations.to_string()]),
    };
    format!(
        "system s(N) where N >= 1 {{\n  input x[N]: i32;\n  {}\n  index i in 0..N;\n  {}\n  \
         output z[N]: i32 = S at [i];\n}}\nmapping m of s {{ {mapping} }}",
        functions.concat(),
        vars.concat()
    )
}

/// The program of the only mapping, for all sizes.
fn lowered(text: &str, machine: &Machine) -> (Module, Result<Program, Vec<Diagnostic>>) {
    let module = load(text).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
    let mapping = &module.mappings[0];
    let lowered = lower(&module, mapping, &BTreeMap::new(), &Fix::Nothing, machine);
    let program = lowered.map(|lowered| lowered.program);
    (module, program)
}

/// The kernels compute what the system says, at each of the sizes.
fn agrees(what: &str, module: &Module, program: &Program, sizes: &[i128]) {
    let system = &module.systems[0];
    for &n in sizes {
        let arrays = inputs(system, &[n]).expect("small arrays");
        let want = run_system(system, &[n], &arrays).expect("a legal system");
        let got = run_kernel_program(program, &[n], &arrays, &Options::default());
        let got = got.unwrap_or_else(|e| panic!("{what}: {e}\n{program}"));
        assert_eq!(got.outputs, want, "{what}, N = {n}\n{program}");
    }
}

#[test]
fn vectors_continue_one_another() {
    let mut runs = 0;
    for (name, declarations) in SYSTEMS {
        for (way, mapping) in MAPPINGS {
            let mapping = match name {
                "down" => reversed(mapping),
                "the first" => format!("{mapping} broadcast S;"),
                _ => mapping.to_string(),
            };
            let text = text(declarations, &mapping);
            for machine in [Machine::cpu(Simd::Avx512), Machine::cuda()] {
                let (module, lowered) = lowered(&text, &machine);
                let program = match lowered {
                    Ok(program) => program,
                    // Of every second element, neither lanes nor registers are neighbours.
                    Err(found) if (name, way) == ("two in turn", "both") => {
                        assert_eq!(found[0].code.id, "L0722");
                        continue;
                    }
                    Err(found) => panic!("{name}, {way}: {found:?}"),
                };
                let sizes = [1, 2, 3, 17, 64, 300, 1027];
                agrees(&format!("{name}, {way}"), &module, &program, &sizes);
                runs += 1;
            }
        }
    }
    assert!(runs > 90, "{runs}");
}

/// The longest way from what an iteration reads in a register to what it sets there, in operations.
fn carried(kernel: &Kernel) -> usize {
    let registers = (0..kernel.regs.len()).map(RegId::from);
    registers
        .map(|reg| carried_in(kernel, reg))
        .max()
        .unwrap_or(0)
}

fn carried_in(kernel: &Kernel, reg: RegId) -> usize {
    let mut depth: HashMap<ValueId, usize> = HashMap::new();
    let mut longest = 0;
    walk(&kernel.body, &mut |stmt| match stmt {
        Stmt::Let(value, Op::Get(from)) if *from == reg => drop(depth.insert(*value, 0)),
        Stmt::Set(to, value) if *to == reg => {
            longest = longest.max(depth.get(value).copied().unwrap_or(0));
        }
        other => {
            let uses = other.uses();
            if let Some(most) = uses.iter().filter_map(|value| depth.get(value)).max() {
                let most = most + 1;
                depth.extend(other.defs().into_iter().map(|value| (value, most)));
            }
        }
    });
    longest
}

/// A vector of lanes is scanned in four or five steps, of which none waits for the vector before:
/// that takes part in one sum, after it came from the last lane, and under a condition.
#[test]
fn vectors_wait_for_one_sum_only() {
    for (way, mapping) in MAPPINGS {
        let text = text(SYSTEMS[0].1, mapping);
        for machine in [Machine::cpu(Simd::Avx512), Machine::cuda()] {
            let (_, lowered) = lowered(&text, &machine);
            let program = lowered.unwrap_or_else(|e| panic!("{text}\n{e:?}"));
            let vectors = match way {
                "steps" | "adjacent" | "blocks" | "launches" => 1,
                "both" => 2,
                _ => 4,
            };
            let longest = program.kernels.iter().map(carried).max();
            assert!(
                longest <= Some(3 * vectors),
                "{way}: {longest:?}\n{program}"
            );
        }
    }
}

const WARPS: [(&str, &str); 4] = [
    (
        "lanes",
        "tile i by 3*L as (b, u); tile u by L as (w, l); block = b; warp = w; lane = l; time = 0;",
    ),
    (
        "adjacent",
        "tile i by 16*L as (b, u); tile u by 4*L as (w, v); tile v by 4 as (l, r);
         block = b; warp = w; lane = l; reg = r; time = 0;",
    ),
    (
        "both",
        "tile i by 16*L as (b, u); tile u by 8*L as (w, z); tile z by 4*L as (q, v);
         tile v by 4 as (l, r); block = b; warp = w; lane = l; reg = (q, r); time = 0;",
    ),
    (
        "one lane each",
        "tile i by 4 as (b, w); block = b; warp = w; lane = 0; time = 0;",
    ),
];

/// The warps of a block share a sum: each combines the parts of those before it. A sum that begins
/// anew within a warp has one warp for all, and so has one whose warps are no chain.
#[test]
fn warps_share_a_sum() {
    let (mut shared, mut others) = (0, 0);
    for (name, declarations) in SYSTEMS {
        for (way, mapping) in WARPS {
            for across in ["", "look_back; "] {
                let broadcast = if name == "the first" {
                    " broadcast S;"
                } else {
                    ""
                };
                let text = text(declarations, &format!("{across}{mapping}{broadcast}"));
                let (module, lowered) = lowered(&text, &Machine::cuda());
                let begins_once =
                    ["up", "down", "pairs", "two terms", "one term or two"].contains(&name);
                let Ok(program) = lowered else {
                    assert!(!begins_once, "{name}, {way}, {across}");
                    continue;
                };
                let warps = program.kernels.iter().map(|kernel| kernel.warps).max();
                if begins_once && way != "one lane each" {
                    assert!(warps > Some(1), "{name}, {way}, {across}\n{program}");
                    shared += 1;
                } else {
                    others += 1;
                }
                let what = format!("{name}, {way}, {across}");
                agrees(&what, &module, &program, &[1, 2, 31, 97, 512, 1027]);
            }
        }
    }
    assert_eq!(shared, 30);
    assert!(others > 16, "{others}");
}

/// A tree through registers, lanes and warps, in the last of several steps and in one.
#[test]
fn warps_share_a_tree() {
    let mappings = [
        "tile i by 12*L as (t, v); tile v by 4*L as (w, u); tile u by 4 as (l, r);
         sum Z along t then tree (r, l, w); warp = w; lane = l; reg = r; time = t;",
        "tile i by 32*L as (b, x); tile x by 8*L as (t, v); tile v by 2*L as (w, u); tile u by 2 as (l, r);
         sum Z along t then tree (r, l, w) then tree b;
         block = b; warp = w; lane = l; reg = r; time = t;",
        "tile i by 32*L as (b, x); tile x by 8*L as (t, v); tile v by 2*L as (w, u); tile u by 2 as (l, r);
         sum Z along t then tree (r, l, w, b); block = b; warp = w; lane = l; reg = r; time = t;",
    ];
    for mapping in mappings {
        let text = format!(
            "system s(N) where N >= 1 {{ input x[N]: i32; var Z: i32 = reduce(+, i in 0..N, x[i]);
             output z[]: i32 = Z at []; }}\nmapping m of s {{ {mapping} }}"
        );
        let (module, lowered) = lowered(&text, &Machine::cuda());
        let program = lowered.unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        let warps = program.kernels.iter().map(|kernel| kernel.warps).max();
        assert!(warps > Some(1), "{program}");
        agrees(mapping, &module, &program, &[1, 5, 383, 384, 385, 5001]);
    }
}
