//! Blocks that wait for each other: the kernel interpreter finds a missing or misplaced wait,
//! signal or dynamic block id, so the kernels that it accepts wait where they must.

use std::collections::BTreeMap;

use systola_driver::{Fix, Machine, Simd, lower};
use systola_filetests::gallery;
use systola_filetests::reference;
use systola_filetests::tensor::Params;
use systola_interp::kernel::{FaultKind, Options, Order, run_kernel_program};
use systola_interp::{Arrays, Tensor, Value, run_system};
use systola_ir::form::{Form, Overflow};
use systola_ir::kernel::visit::{Rewrite, rewrite, walk, walk_mut};
use systola_ir::kernel::{Memory, Program, Stmt, VarKind};
use systola_ir::system::Axis;
use systola_ir::{BufferId, Scalar};

use crate::support::{mapping, ordered, parse, seeded, system, to_interp};

type Sizes = &'static [(&'static str, i64)];

/// File, mapping, sizes with several blocks.
const CASES: &[(&str, &str, Sizes)] = &[
    (
        "string/edit_distance_strips.ure",
        "strips",
        &[("N", 50), ("M", 70)],
    ),
    (
        "string/edit_distance_strips.ure",
        "pieces",
        &[("N", 11), ("M", 40)],
    ),
    ("scan/across_blocks.ure", "chained", &[("B", 5), ("N", 30)]),
    (
        "scan/across_blocks.ure",
        "downwards",
        &[("B", 2), ("N", 13)],
    ),
    (
        "scan/across_blocks.ure",
        "wavefront",
        &[("N", 17), ("M", 19)],
    ),
    (
        "stencil/gauss_seidel_blocks.ure",
        "slanted",
        &[("T", 3), ("N", 20), ("M", 4)],
    ),
];

const MACHINE: Machine = Machine {
    registers: 32,
    code_budget: 300,
    ..Machine::cpu(Simd::Sse)
};

const ORDERS: [Order; 4] = [
    Order::InOrder,
    Order::Reversed,
    Order::Shuffled(1),
    Order::Shuffled(2),
];

struct Case {
    name: String,
    program: Program,
    params: Vec<i128>,
    inputs: Arrays,
    want: Arrays,
}

fn cases() -> Vec<Case> {
    let files = gallery::files();
    let case = |(path, name, sizes): &(&str, &str, Sizes)| {
        let file = files.iter().find(|f| f.path == *path).expect("a file");
        let module = parse(file);
        let mapping = mapping(&module, name);
        let system = system(&module, &mapping.system);
        let params = Params(sizes.iter().map(|(k, v)| (k.to_string(), *v)).collect());
        let reference = reference::find(path, &system.name).expect("a reference");
        let values = ordered(system, &params);
        let inputs = to_interp(system, &seeded(&reference, &params));
        let named = params.0.iter().map(|(k, v)| (k.clone(), i128::from(*v)));
        let named: BTreeMap<String, i128> = named.collect();
        let lowered = lower(&module, mapping, &named, &Fix::Nothing, &MACHINE);
        Case {
            name: format!("{path}: {name}"),
            program: lowered.expect("it lowers").program,
            want: run_system(system, &values, &inputs).expect("a legal system"),
            params: values,
            inputs,
        }
    };
    CASES.iter().map(case).collect()
}

impl Case {
    /// The fault of a run; none where the outputs are right.
    fn fault(&self, program: &Program, order: Order, resident: usize) -> Option<FaultKind> {
        let options = Options {
            order,
            resident,
            ..Options::default()
        };
        match run_kernel_program(program, &self.params, &self.inputs, &options) {
            Err(error) => Some(error.fault().expect("a fault of the kernel").clone()),
            Ok(got) => {
                assert_eq!(got.outputs, self.want, "{}", self.name);
                None
            }
        }
    }

    /// Checks that a mutation is detected in some order.
    fn seen(&self, what: &str, program: &Program, is: fn(&FaultKind) -> bool) {
        let faults = ORDERS.map(|order| self.fault(program, order, 3));
        let found = faults.iter().flatten().any(is);
        let name = &self.name;
        assert!(found, "{name}: {what} was not seen: {faults:?}\n{program}");
    }
}

fn too_early(kind: &FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Race { .. } | FaultKind::UndefinedStored { .. }
    )
}

fn stuck(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Deadlock { .. })
}

/// Changes every list of statements.
fn each_list(body: &mut Vec<Stmt>, f: &mut dyn FnMut(&mut Vec<Stmt>)) {
    f(body);
    for stmt in body {
        for inner in stmt.bodies_mut() {
            each_list(inner, f);
        }
    }
}

#[test]
fn blocks_wait_in_any_order_and_with_few_of_them_at_once() {
    for case in cases() {
        let mut statements = [0; 3];
        walk(&case.program.kernels[0].body, &mut |stmt| {
            let kinds = [
                matches!(stmt, Stmt::DynamicBlock { .. }),
                matches!(stmt, Stmt::Await { .. }),
                matches!(stmt, Stmt::Signal { .. }),
            ];
            for (n, is) in kinds.into_iter().enumerate() {
                statements[n] += usize::from(is);
            }
        });
        assert!(statements.iter().all(|n| *n > 0), "{}", case.name);
        for order in ORDERS {
            for resident in [1, 2, usize::MAX] {
                let fault = case.fault(&case.program, order, resident);
                assert_eq!(fault, None, "{}\n{}", case.name, case.program);
            }
        }
    }
}

#[test]
fn a_missing_wait_is_seen() {
    for case in cases() {
        let mut program = case.program.clone();
        each_list(&mut program.kernels[0].body, &mut |list| {
            list.retain(|stmt| !matches!(stmt, Stmt::Await { .. }));
        });
        case.seen("a missing wait", &program, too_early);
        let mut program = case.program.clone();
        walk_mut(&mut program.kernels[0].body, &mut |stmt| {
            if let Stmt::Await { at_least, .. } = stmt {
                *at_least = at_least.plus(-1);
            }
        });
        case.seen("a wait for one signal less", &program, too_early);
    }
}

#[test]
fn a_signal_at_the_beginning_of_its_turn_is_seen() {
    for case in cases() {
        let mut program = case.program.clone();
        each_list(&mut program.kernels[0].body, &mut |list| {
            let at = list.iter().position(|s| matches!(s, Stmt::Signal { .. }));
            if let Some(at) = at {
                let signal = list.remove(at);
                let after = list.iter().position(|s| !matches!(s, Stmt::Await { .. }));
                list.insert(after.unwrap_or(0), signal);
            }
        });
        case.seen("an early signal", &program, too_early);
    }
}

#[test]
fn a_missing_signal_is_seen() {
    for case in cases() {
        let mut program = case.program.clone();
        each_list(&mut program.kernels[0].body, &mut |list| {
            list.retain(|stmt| !matches!(stmt, Stmt::Signal { .. }));
        });
        case.seen("a missing signal", &program, stuck);
    }
}

/// Blocks that rely on being started in the order of their indices.
#[test]
fn numbers_by_the_grid_are_seen() {
    struct ByGrid(systola_ir::DimId, Form);
    impl Rewrite for ByGrid {
        fn form(&self, form: &Form) -> Result<Form, Overflow> {
            form.substitute(&|d| (d == self.0).then(|| self.1.clone()))
        }
    }
    let first = &cases()[0];
    let mut program = first.program.clone();
    let kernel = &mut program.kernels[0];
    let block_id = kernel
        .vars_where(|k| matches!(k, VarKind::DynamicBlock))
        .last();
    let block = kernel
        .vars_where(|k| matches!(k, VarKind::Block { .. }))
        .last();
    let by = ByGrid(
        block_id.expect("a dynamic block id"),
        Form::from(block.expect("a block")),
    );
    each_list(&mut kernel.body, &mut |list| {
        list.retain(|stmt| !matches!(stmt, Stmt::DynamicBlock { .. }));
    });
    kernel.body = rewrite(&kernel.body, &by).expect("small numbers");
    assert_eq!(first.fault(&program, Order::InOrder, 3), None);
    let fault = first.fault(&program, Order::Reversed, 3);
    assert!(fault.as_ref().is_some_and(stuck), "{fault:?}");
}

/// A mapping of a text, lowered for sizes, and the extents of its inter-block buffers.
fn inter_block_buffers(
    text: &str,
    name: &str,
    sizes: &[(&str, i128)],
) -> (Program, Vec<Vec<i128>>) {
    let module = systola_driver::load(text).expect("a legal program");
    let sizes: BTreeMap<String, i128> = sizes.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    let lowered = lower(
        &module,
        mapping(&module, name),
        &sizes,
        &Fix::Nothing,
        &MACHINE,
    );
    let program = lowered.expect("it lowers").program;
    let params: Vec<i128> = program.params.iter().map(|p| sizes[&p.name]).collect();
    let buffers = program
        .buffers
        .iter()
        .filter(|b| b.name.ends_with("_inter_block"));
    let extents = buffers.map(|b| {
        let extent = |a: &Axis| a.hi.sub(&a.lo).eval(&params, &[]).expect("small numbers");
        b.axes.iter().map(extent).collect()
    });
    let extents = extents.collect();
    (program, extents)
}

/// Two rows and two columns of a table are buffered, whatever the steps at which its tiles run, and
/// two strips of rows.
#[test]
fn two_blocks_of_a_chain_are_kept() {
    let files = gallery::files();
    let text = |path: &str| &files.iter().find(|f| f.path == path).expect("a file").text;
    let (n, m) = (8192, 4096);
    let scan = text("scan/across_blocks.ure");
    for time in ["i + j", "(bi + bj, ii + jj)"] {
        let scan = scan.replace("time = i + j;", &format!("time = {time};"));
        let (program, kept) = inter_block_buffers(&scan, "wavefront", &[("N", n), ("M", m)]);
        let elements: i128 = kept.iter().map(|e| e.iter().product::<i128>()).sum();
        assert_eq!(kept.len(), 2, "of R and S");
        assert!(elements <= 2 * (n + m), "{kept:?}\n{program}");
    }
    let strips = text("string/edit_distance_strips.ure");
    let sizes = [("N", 1_000_000), ("M", 1_000_000)];
    let (program, kept) = inter_block_buffers(strips, "strips", &sizes);
    assert_eq!(kept, [[2, 1_000_000, 1, 1]], "{program}");
}

/// Strips that all begin at once: a block computes a value in the iteration in which the previous
/// block may still read the old one.
const SIMULTANEOUS: &str = "
    system s(N, M) where N >= 1, M >= 1 {
      input x[N, M]: i32;
      index i in 0..N, j in 0..M;
      var S: i32 = select(i > 0 && j > 1, S(i - 1, j - 2), 0) + x[i, j];
      output s[N, M]: i32 = S at [i, j];
    }
    mapping m of s {
      flags;
      tile i by 4 as (bi, ii);
      block = bi;
      reg = ii;
      time = j;
    }";

#[test]
fn what_may_still_be_read_is_kept() {
    let sizes = [("N", 30), ("M", 9)];
    let (program, kept) = inter_block_buffers(SIMULTANEOUS, "m", &sizes);
    let strips = 30 / 4;
    assert_eq!(kept.len(), 1, "{program}");
    assert_eq!(kept[0][0], strips, "{program}");
    let module = systola_driver::load(SIMULTANEOUS).expect("a legal program");
    let tensor = |name: &str| {
        let input = module.systems[0].inputs.iter().find(|i| i.name == name);
        let mut tensor =
            Tensor::zeros(Scalar::I32, &input.expect("an input").axes, &[30, 9]).unwrap();
        for at in 0..tensor.data.len() {
            tensor.data.set(at, &Value::I32(at as i32));
        }
        tensor
    };
    let inputs = Arrays::from([("x".to_string(), tensor("x"))]);
    let mut case = Case {
        name: "together".into(),
        want: run_system(&module.systems[0], &[30, 9], &inputs).expect("a legal system"),
        program,
        params: vec![30, 9],
        inputs,
    };
    for order in ORDERS {
        assert_eq!(
            case.fault(&case.program, order, 3),
            None,
            "{}",
            case.program
        );
    }
    // Folds the buffer as if two strips sufficed.
    struct Folded(BufferId);
    impl Rewrite for Folded {
        fn index(&self, memory: Memory, mut index: Vec<Form>) -> Result<Vec<Form>, Overflow> {
            if memory == Memory::Global(self.0) {
                index[0] = index[0].modulo(2);
            }
            Ok(index)
        }
    }
    let buffer = case
        .program
        .buffers
        .iter()
        .position(|b| b.name == "S_inter_block");
    let by = Folded(BufferId::from(buffer.expect("an inter-block buffer")));
    let kernel = &mut case.program.kernels[0];
    kernel.body = rewrite(&kernel.body, &by).expect("small numbers");
    case.seen("a fold", &case.program, too_early);
}
