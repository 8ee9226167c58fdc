//! Running sums along the lanes, from step to step and from register to register: every vector
//! continues what the one before has summed up.

use std::collections::{BTreeMap, HashMap};

use systola_driver::{Fix, Machine, Simd, load, lower};
use systola_interp::kernel::{Options, run_kernel_program};
use systola_interp::run_system;
use systola_ir::kernel::visit::walk;
use systola_ir::kernel::{Kernel, Op, Program, Stmt};
use systola_ir::system::Module;
use systola_ir::{Diagnostic, RegId, ValueId};

use crate::values::inputs;

const SYSTEMS: [(&str, &str); 7] = [
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
                let system = &module.systems[0];
                let program = match lowered {
                    Ok(program) => program,
                    // Of every second element, neither lanes nor registers are neighbours.
                    Err(found) if (name, way) == ("two in turn", "both") => {
                        assert_eq!(found[0].code.id, "L0722");
                        continue;
                    }
                    Err(found) => panic!("{name}, {way}: {found:?}"),
                };
                for n in [1, 2, 3, 17, 64, 300, 1027] {
                    let arrays = inputs(system, &[n]).expect("small arrays");
                    let want = run_system(system, &[n], &arrays).expect("a legal system");
                    let got = run_kernel_program(&program, &[n], &arrays, &Options::default());
                    let got = got.unwrap_or_else(|e| panic!("{name}, {way}: {e}\n{program}"));
                    assert_eq!(got.outputs, want, "{name}, {way}, N = {n}\n{program}");
                    runs += 1;
                }
            }
        }
    }
    assert!(runs > 300, "{runs}");
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
