//! What a program computes: launches, grids, host loops, threads and memory.

mod common;

use common::*;
use systola_ir::kernel::{BufferKind, Host, Program, VarKind};
use systola_ir::{Cond, DimId, Literal, Poly, Rel, Scalar};
use systola_rt::{CpuProgram, RunOptions, ScratchPart, Source, View, ViewMut};

const THREADS: [usize; 4] = [0, 1, 2, 7];

#[test]
fn saxpy_on_any_number_of_threads() {
    let program = compile(saxpy());
    for threads in THREADS {
        for n in [0, 1, 2, 1000, 4099] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let y: Vec<f32> = (0..n).map(|i| (i % 5) as f32).collect();
            let mut z = vec![-1.0f32; n];
            let stats = program
                .run(
                    &[n as i64],
                    &[("y", View::from(&y[..])), ("x", View::from(&x[..]))],
                    &mut [("z", ViewMut::from(&mut z[..]))],
                    &RunOptions { threads },
                )
                .unwrap();
            let expect: Vec<f32> = (0..n).map(|i| (7 * i + i % 5) as f32).collect();
            assert_eq!(z, expect);
            assert_eq!((stats.launches, stats.blocks), (1, n as u64));
            assert_eq!(stats.packed_bytes, 0);
            assert!(stats.kernel_seconds <= stats.total_seconds);
        }
    }
}

#[test]
fn the_last_block_variable_runs_fastest() {
    let program = compile(transposing());
    let (n, m) = (37usize, 23usize);
    let x: Vec<i32> = (0..n * m).map(|k| k as i32).collect();
    let y: Vec<i32> = (0..n * m).map(|k| 3 * k as i32).collect();
    for threads in THREADS {
        let mut z = vec![0i32; n * m];
        program
            .run(
                &[n as i64, m as i64],
                &[
                    ("x", View::new(&x, &[n, m]).unwrap()),
                    ("y", View::new(&y, &[m, n]).unwrap()),
                ],
                &mut [("z", ViewMut::new(&mut z, &[n, m]).unwrap())],
                &RunOptions { threads },
            )
            .unwrap();
        for i in 0..n {
            for j in 0..m {
                assert_eq!(z[i * m + j], 10 * x[i * m + j] + y[j * n + i]);
            }
        }
    }
}

/// A periodic stencil, T times, between two temporaries; three kernels.
fn ping_pong() -> (Program, Source) {
    let n = || vec![param(0)];
    let all = || block("i", number(0), param(0));
    let program = program(
        &["N", "T"],
        vec![at_least(0, 1), at_least(1, 0)],
        vec![
            input("x", Scalar::I64, n()),
            output("z", Scalar::I64, n()),
            buffer("a", Scalar::I64, BufferKind::Temporary, n()),
            buffer("b", Scalar::I64, BufferKind::Temporary, n()),
        ],
        vec![
            kernel("load", vec![all()]),
            kernel("step", vec![host("t"), all()]),
            kernel("store", vec![host("last"), all()]),
        ],
        vec![
            launch(0, vec![]),
            Host::For {
                var: DimId(0),
                lo: vec![number(0), number(-3)],
                hi: vec![param(1), number(1000)],
                body: vec![launch(1, vec![dim(0)])],
            },
            launch(2, vec![param(1)]),
        ],
    );
    let code = format!(
        "static int64_t *half(void *const *buffers, int64_t t) {{ return buffers[2 + t % 2]; }}
        void load{HEAD} {{
            const int64_t *x = buffers[0];
            int64_t *a = half(buffers, 0);
            for (int64_t i = first; i < last; i++) a[i] = x[i];
        }}
        void step{HEAD} {{
            int64_t n = sizes[0], t = args[0];
            const int64_t *from = half(buffers, t);
            int64_t *to = half(buffers, t + 1);
            for (int64_t i = first; i < last; i++) to[i] = from[(i + n - 1) % n] + t * from[(i + 1) % n];
        }}
        void store{HEAD} {{
            const int64_t *from = half(buffers, args[0]);
            int64_t *z = buffers[1];
            for (int64_t i = first; i < last; i++) z[i] = from[i];
        }}"
    );
    (program, source(&code, &["load", "step", "store"]))
}

#[test]
fn launches_of_a_host_loop_see_what_the_last_one_wrote() {
    let program = compile(ping_pong());
    for threads in THREADS {
        for (n, t) in [(1usize, 0usize), (5, 1), (64, 40), (1001, 33)] {
            let x: Vec<i64> = (0..n as i64).map(|i| i * i % 17).collect();
            let mut expect = x.clone();
            for t in 0..t {
                let step = |i| {
                    let left: i64 = expect[(i + n - 1) % n];
                    left.wrapping_add((t as i64).wrapping_mul(expect[(i + 1) % n]))
                };
                expect = (0..n).map(step).collect();
            }
            let mut z = vec![0; n];
            let stats = program
                .run(
                    &[n as i64, t as i64],
                    &[("x", View::from(&x[..]))],
                    &mut [("z", ViewMut::from(&mut z[..]))],
                    &RunOptions { threads },
                )
                .unwrap();
            assert_eq!(z, expect, "{n} {t} {threads}");
            assert_eq!(stats.launches, t as u64 + 2);
        }
    }
}

/// A triangle: launch t has the blocks lo(t) … hi(t) − 1 of a grid that depends on it.
#[test]
fn grids_depend_on_the_launch() {
    let mut vars = vec![host("t"), block("i", dim(0), param(0))];
    if let VarKind::Block { lo, hi } = &mut vars[1].kind {
        lo.push(number(2));
        hi.push(number(7));
    }
    let program = program(
        &["N"],
        vec![],
        vec![filled("z", Scalar::I32, Literal::Int(-1), vec![number(16)])],
        vec![kernel("k", vars)],
        vec![Host::For {
            var: DimId(0),
            lo: vec![number(0)],
            hi: vec![param(0)],
            body: vec![launch(0, vec![dim(0)])],
        }],
    );
    let code = format!(
        "void k{HEAD} {{ int32_t *z = buffers[0]; for (int64_t b = first; b < last; b++) z[args[0]] = b + 1; }}"
    );
    let compiled = compile((program, source(&code, &["k"])));
    let mut z = [0i32; 16];
    // With one thread, each element shows the last block of a launch: min(N, 7) − max(t, 2).
    let one = RunOptions { threads: 1 };
    let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
    let stats = compiled.run(&[9], &[], outputs, &one).unwrap();
    assert_eq!(z[..10], [5, 5, 5, 4, 3, 2, 1, -1, -1, -1]);
    assert_eq!(
        (stats.launches, stats.blocks),
        (9, 5 + 5 + 5 + 4 + 3 + 2 + 1)
    );
}

#[test]
fn tables_are_stated_and_outputs_filled() {
    let data = vec![Literal::Float(0.5), Literal::Int(2), Literal::Float(-1.25)];
    let table = BufferKind::Input { data: Some(data) };
    let program = program(
        &["N"],
        vec![],
        vec![
            buffer("c", Scalar::F64, table, vec![number(3)]),
            filled("z", Scalar::F64, Literal::Float(9.5), vec![param(0)]),
        ],
        vec![kernel("k", vec![block("i", number(0), number(3))])],
        vec![launch(0, vec![])],
    );
    let code = format!(
        "void k{HEAD} {{ const double *c = buffers[0]; double *z = buffers[1];
            for (int64_t i = first; i < last; i++) z[i] = 2 * c[i]; }}"
    );
    let compiled = compile((program, source(&code, &["k"])));
    let mut z = [0f64; 6];
    let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
    compiled
        .run(&[6], &[], outputs, &RunOptions::default())
        .unwrap();
    assert_eq!(z, [1.0, 4.0, -2.5, 9.5, 9.5, 9.5]);
}

/// Each block waits for the one before it and passes on a number. Every run gives the same result,
/// since flags start at zero.
fn chain() -> (Program, Source) {
    let program = program(
        &["N"],
        vec![Cond::cmp(Rel::Ge, param(0), number(1))],
        vec![
            output("z", Scalar::I64, vec![param(0)]),
            buffer("ready", Scalar::I32, BufferKind::Flags, vec![param(0)]),
        ],
        vec![kernel("k", vec![block("i", number(0), param(0))])],
        vec![launch(0, vec![])],
    );
    let code = format!(
        "#include <sched.h>
        void k{HEAD} {{
            int64_t *z = buffers[0];
            int32_t *ready = buffers[1];
            for (int64_t i = first; i < last; i++) {{
                while (i > 0 && !__atomic_load_n(&ready[i - 1], __ATOMIC_ACQUIRE)) sched_yield();
                z[i] = i == 0 ? 1 : (3 * z[i - 1] + i) % 1000003;
                if (__atomic_fetch_add(&ready[i], 1, __ATOMIC_RELEASE)) z[i] = -1;
            }}
        }}"
    );
    (program, source(&code, &["k"]))
}

#[test]
fn blocks_that_wait_for_smaller_ones_finish() {
    let program = compile(chain());
    let n = 3000usize;
    let mut expect = vec![1i64];
    for i in 1..n {
        expect.push((3 * expect[i - 1] + i as i64) % 1_000_003);
    }
    for threads in THREADS {
        for _ in 0..3 {
            let mut z = vec![0i64; n];
            let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
            program
                .run(&[n as i64], &[], outputs, &RunOptions { threads })
                .unwrap();
            assert_eq!(z, expect);
        }
    }
}

/// Every block fills its scratch memory, waits, and checks that no other block wrote to it.
fn scratching() -> (Program, Source) {
    let program = program(
        &["N", "B"],
        vec![],
        vec![output("z", Scalar::I32, vec![param(0)])],
        vec![kernel("k", vec![block("i", number(0), param(0))])],
        vec![launch(0, vec![])],
    );
    let code = format!(
        "#include <sched.h>
        void k{HEAD} {{
            int32_t *z = buffers[0];
            volatile int32_t *s = scratch;
            for (int64_t i = first; i < last; i++) {{
                for (int64_t j = 0; j < sizes[1]; j++) s[j] = i;
                sched_yield();
                int32_t same = 0;
                for (int64_t j = 0; j < sizes[1]; j++) same += s[j] == i;
                z[i] = (uintptr_t)scratch % 64 == 0 ? same : -1;
            }}
        }}"
    );
    let mut source = source(&code, &["k"]);
    source.scratch[0].push(ScratchPart {
        extents: vec![Poly::param(systola_ir::ParamId(1))],
        bytes: 4,
    });
    (program, source)
}

#[test]
fn scratch_memory_is_aligned_and_a_threads_own() {
    let program = compile(scratching());
    for threads in THREADS {
        for room in [0usize, 1, 17, 5000] {
            let mut z = [0i32; 100];
            let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
            program
                .run(&[100, room as i64], &[], outputs, &RunOptions { threads })
                .unwrap();
            assert_eq!(z, [room as i32; 100]);
        }
    }
}

#[test]
fn one_program_runs_on_several_threads_at_once() {
    fn shared<T: Send + Sync>(program: T) -> T {
        program
    }
    let program: CpuProgram = shared(compile(ping_pong()));
    let run = |seed: i64| {
        let x: Vec<i64> = (0..500).map(|i| (i * seed) % 101).collect();
        let mut z = vec![0; 500];
        program
            .run(
                &[500, 60],
                &[("x", View::from(&x[..]))],
                &mut [("z", ViewMut::from(&mut z[..]))],
                &RunOptions { threads: 2 },
            )
            .unwrap();
        z
    };
    let expect: Vec<Vec<i64>> = (0..4).map(run).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for seed in 0..20 {
                    assert_eq!(run(seed % 4), expect[(seed % 4) as usize]);
                }
            });
        }
    });
    program.release_memory();
    assert_eq!(run(1), expect[1]);
}
