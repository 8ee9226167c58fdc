//! Wrong kernels are detected, in whatever order they run.

use systola_interp::kernel::{
    FaultKind, Options, Order, Outcome, RunError, Why, run_kernel_program,
};
use systola_ir::kernel::visit::{Rewrite, rewrite, walk_mut};
use systola_ir::kernel::{Access, BufferKind, Memory, Op, Program, Stmt, VarKind};
use systola_ir::{BinOp, BufferId, Cond, DimId, Form, Rel, Scalar, SharedId, ValueId};

use crate::builder::*;

const ORDERS: [Order; 6] = [
    Order::InOrder,
    Order::Reversed,
    Order::Shuffled(1),
    Order::Shuffled(2),
    Order::Shuffled(3),
    Order::Shuffled(4),
];

fn run(case: &Case, options: &Options) -> Result<Outcome, RunError> {
    run_kernel_program(&case.program, &case.sizes, &case.inputs, options)
}

/// The mutated program is refused in every order, with one block at a time and with all, for this
/// reason.
fn check(mut case: Case, mutate: impl Fn(&mut Program), reason: impl Fn(&RunError) -> bool) {
    run(&case, &Options::default()).unwrap();
    mutate(&mut case.program);
    for order in ORDERS {
        for resident in [1, usize::MAX] {
            let options = Options {
                order,
                resident,
                ..Options::default()
            };
            match run(&case, &options) {
                Ok(_) => panic!("nothing was found with {options:?} in\n{}", case.program),
                Err(error) => assert!(reason(&error), "{options:?}: {error}\n{}", case.program),
            }
        }
    }
}

fn fault(is: impl Fn(&FaultKind) -> bool) -> impl Fn(&RunError) -> bool {
    move |error| error.fault().is_some_and(&is)
}

fn race(error: &RunError) -> bool {
    matches!(error.fault(), Some(FaultKind::Race { .. }))
}

/// Nothing orders a read after the write it needs: either it is a race, or the read came first and
/// found an undefined value.
fn too_early(error: &RunError) -> bool {
    race(error)
        || matches!(error, RunError::Fault(fault) if undefined(error)
            && fault.origin.as_ref().is_some_and(|o| o.why == Why::Unwritten))
}

fn out_of_bounds(error: &RunError) -> bool {
    matches!(error.fault(), Some(FaultKind::OutOfBounds { .. }))
}

fn undefined(error: &RunError) -> bool {
    matches!(error.fault(), Some(FaultKind::UndefinedStored { .. }))
}

fn invalid(text: &str) -> impl Fn(&RunError) -> bool {
    move |error| matches!(error, RunError::Invalid(list) if list.iter().any(|s| s.contains(text)))
}

/// Removes the n-th statement that fits, counting in the order they are written.
fn drop_nth(program: &mut Program, n: usize, is: impl Fn(&Stmt) -> bool) -> bool {
    fn visit(body: &mut Vec<Stmt>, left: &mut usize, is: &impl Fn(&Stmt) -> bool) -> bool {
        for k in 0..body.len() {
            if is(&body[k]) {
                if *left == 0 {
                    body.remove(k);
                    return true;
                }
                *left -= 1;
            }
            for inner in body[k].bodies_mut() {
                if visit(inner, left, is) {
                    return true;
                }
            }
        }
        false
    }
    let mut left = n;
    let mut kernels = program.kernels.iter_mut();
    kernels.any(|kernel| visit(&mut kernel.body, &mut left, &is))
}

/// Changes every access to a memory.
fn change(program: &mut Program, memory: Memory, f: impl Fn(&mut Access)) {
    for kernel in &mut program.kernels {
        walk_mut(&mut kernel.body, &mut |stmt| {
            let access = match stmt {
                Stmt::Let(_, Op::Load { from, .. }) | Stmt::LoadWide { from, .. } => from,
                Stmt::Store { to, .. } | Stmt::StoreWide { to, .. } => to,
                _ => return,
            };
            if access.memory == memory {
                f(access);
            }
        });
    }
}

fn buffer(program: &Program, name: &str) -> Memory {
    let at = program.buffers.iter().position(|b| b.name == name);
    Memory::Global(BufferId::from(at.unwrap()))
}

const TILE: Memory = Memory::Shared(SharedId(0));

fn is_barrier(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Barrier)
}

#[test]
fn a_missing_barrier_is_a_race() {
    let without = |n| move |p: &mut Program| assert!(drop_nth(p, n, is_barrier));
    check(transpose(1, 1), without(0), too_early);
    // A faster warp has already issued the next copy.
    let reason =
        |e: &RunError| too_early(e) || matches!(e.fault(), Some(FaultKind::CopyInFlight { .. }));
    check(staged(5), without(0), reason);
    check(staged(5), without(1), reason);
}

#[test]
fn a_barrier_of_some_warps_is_refused() {
    let mutate = |p: &mut Program| {
        let warp = p.kernels[0].vars_where(|k| matches!(k, VarKind::Warp));
        let warp = warp.last().unwrap();
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if is_barrier(stmt) {
                *stmt = Stmt::If {
                    cond: less(warp, 2),
                    then: vec![Stmt::Barrier],
                    otherwise: vec![],
                };
            }
        });
    };
    check(
        transpose(1, 1),
        mutate,
        invalid("not every warp reaches this barrier"),
    );
}

#[test]
fn an_index_off_by_one_is_out_of_bounds() {
    let shift = |name: &'static str, by: i128| {
        move |p: &mut Program| {
            let memory = match name {
                "tile" => TILE,
                name => buffer(p, name),
            };
            change(p, memory, |access| {
                let last = access.index.last_mut().unwrap();
                *last = last.plus(by);
            });
        }
    };
    check(saxpy(150), shift("x", 1), out_of_bounds);
    check(saxpy(150), shift("z", -1), out_of_bounds);
    check(transpose(2, 0), shift("tile", 1), out_of_bounds);
    check(stencil(21), shift("y", -1), out_of_bounds);
    check(ping_pong(13, 5), shift("v", 1), out_of_bounds);
}

#[test]
fn a_missing_predicate_is_out_of_bounds() {
    for name in ["x", "y", "z"] {
        let mutate = |p: &mut Program| {
            let memory = buffer(p, name);
            change(p, memory, |access| access.when = Cond::TRUE);
        };
        check(saxpy(150), mutate, out_of_bounds);
    }
    // The first lanes of the stencil hold nothing yet, and what they would store is before y.
    let mutate = |p: &mut Program| {
        let memory = buffer(p, "y");
        change(p, memory, |access| {
            if let Cond::And(parts) = &mut access.when {
                parts.pop();
            }
        });
    };
    check(stencil(21), mutate, out_of_bounds);
}

#[test]
fn a_missing_initialisation_is_seen_where_it_is_stored() {
    let is_set = |stmt: &Stmt| matches!(stmt, Stmt::Set(..));
    let drop_first = |p: &mut Program| assert!(drop_nth(p, 0, is_set));
    check(stencil(21), drop_first, undefined);
    check(pipeline(4), drop_first, undefined);
    // Without the launch that fills it, the temporary is undefined; it flows through all steps.
    let mutate = |p: &mut Program| {
        p.body.remove(0);
    };
    check(ping_pong(13, 5), mutate, undefined);
    // A load that lost its `otherwise`.
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[1].body, &mut |stmt| {
            if let Stmt::Let(_, Op::Load { otherwise, .. }) = stmt {
                *otherwise = None;
            }
        });
    };
    check(ping_pong(13, 5), mutate, undefined);
}

#[test]
fn a_lane_without_a_source_is_undefined() {
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if let Stmt::Let(_, Op::Shuffle { from, .. }) = stmt {
                *from = from.plus(1);
            }
        });
    };
    check(lookup(), mutate, undefined);
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if let Stmt::Let(_, Op::LaneShift { low, .. }) = stmt {
                *low = None;
            }
        });
    };
    check(stencil(21), mutate, undefined);
}

#[test]
fn a_lookup_out_of_range_is_undefined() {
    // The clamp takes its own operand: the index is as given.
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if let Stmt::Let(_, Op::Binary(BinOp::Min, a, b)) = stmt {
                *b = *a;
            }
        });
    };
    check(lookup(), mutate, undefined);
}

#[test]
fn a_missing_signal_is_a_deadlock() {
    let mutate =
        |p: &mut Program| assert!(drop_nth(p, 0, |stmt| matches!(stmt, Stmt::Signal { .. })));
    let deadlock = |kind: &FaultKind| {
        matches!(
            kind,
            FaultKind::Deadlock { array, value: 0, at_least: 1, .. } if array == "ready"
        )
    };
    check(pipeline(4), mutate, fault(deadlock));
}

#[test]
fn a_missing_or_weaker_wait_is_a_race() {
    let mutate =
        |p: &mut Program| assert!(drop_nth(p, 0, |stmt| matches!(stmt, Stmt::Await { .. })));
    check(pipeline(4), mutate, too_early);
    // The value may happen to be there; nothing ensures it.
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if let Stmt::Await { at_least, .. } = stmt {
                *at_least = Form::zero();
            }
        });
    };
    check(pipeline(4), mutate, too_early);
    // A signal before the store does not order it.
    let mutate = |p: &mut Program| {
        let body = &mut p.kernels[0].body;
        let signal = body.pop().unwrap();
        body.insert(body.len() - 1, signal);
    };
    check(pipeline(4), mutate, too_early);
    // Nor another store of the same value after it.
    let mutate = |p: &mut Program| {
        let body = &mut p.kernels[0].body;
        let store = body[body.len() - 2].clone();
        body.push(store);
    };
    check(pipeline(4), mutate, race);
}

/// Blocks that rely on the order of their indices need all of them to be resident.
#[test]
fn a_missing_block_id_is_a_deadlock_where_few_blocks_run() {
    struct ByBlock(DimId, DimId);
    impl Rewrite for ByBlock {
        fn form(&self, form: &Form) -> Result<Form, systola_ir::form::Overflow> {
            form.substitute(&|d| (d == self.0).then(|| Form::from(self.1)))
        }
    }
    let mut case = pipeline(6);
    let kernel = &mut case.program.kernels[0];
    let block_id = kernel
        .vars_where(|k| matches!(k, VarKind::DynamicBlock))
        .last();
    let by = ByBlock(block_id.unwrap(), DimId(0));
    kernel.body = rewrite(&kernel.body, &by).unwrap();
    assert!(drop_nth(&mut case.program, 0, |s| matches!(
        s,
        Stmt::DynamicBlock { .. }
    )));
    let options = |order, resident| Options {
        order,
        resident,
        ..Options::default()
    };
    for order in ORDERS {
        let outcome = run(&case, &options(order, usize::MAX)).unwrap();
        assert_eq!(outcome.outputs, case.outputs);
    }
    let stuck = run(&case, &options(Order::Reversed, 3));
    let stuck = stuck.unwrap_err();
    assert!(
        matches!(stuck.fault(), Some(FaultKind::Deadlock { .. })),
        "{stuck}"
    );
}

#[test]
fn a_missing_wait_for_copies_is_seen() {
    let is_wait = |stmt: &Stmt| matches!(stmt, Stmt::WaitCopies { .. });
    let mutate = |p: &mut Program| assert!(drop_nth(p, 0, is_wait));
    check(staged(5), mutate, invalid("never waited for"));
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if let Stmt::WaitCopies { pending } = stmt {
                *pending = 2;
            }
        });
    };
    let in_flight = |kind: &FaultKind| matches!(kind, FaultKind::CopyInFlight { .. });
    check(staged(5), mutate, fault(in_flight));
    // The commit after the loop's copies separates the groups of two iterations.
    let is_commit = |stmt: &Stmt| matches!(stmt, Stmt::CommitCopies);
    let mutate = |p: &mut Program| assert!(drop_nth(p, 1, is_commit));
    check(staged(5), mutate, fault(in_flight));
    // The last group is not empty and is not waited for.
    let mutate = |p: &mut Program| {
        walk_mut(&mut p.kernels[0].body, &mut |stmt| {
            if let Stmt::If { cond, .. } = stmt {
                *cond = Cond::TRUE;
            }
            if let Stmt::Copy { from, .. } = stmt {
                from.index[0] = Form::zero();
            }
        });
    };
    let left = |e: &RunError| matches!(e.fault(), Some(FaultKind::CopiesLeft { groups: 1 }));
    check(staged(5), mutate, left);
}

#[test]
fn lanes_warps_and_blocks_do_not_share_elements() {
    let halved = |which: usize| {
        move |p: &mut Program| {
            let memory = buffer(p, "z");
            // x[i] is now stored to z[i/2], or warp and block numbers stop to matter.
            change(p, memory, |access| {
                let form = &access.index[0];
                access.index[0] = match which {
                    0 => form.floor_div(2),
                    n => {
                        let drop = DimId::from(2 - n);
                        let forget = |d: DimId| (d == drop).then(Form::zero);
                        form.substitute(&forget).unwrap()
                    }
                };
            });
        }
    };
    let disagree = |kind: &FaultKind| {
        matches!(
            kind,
            FaultKind::LanesDisagree { index, other_lane, .. }
                if index[0] % 32 == (*other_lane / 2) as i64 || index[0] % 16 == (*other_lane / 2) as i64
        )
    };
    check(saxpy(150), halved(0), fault(disagree));
    check(saxpy(150), halved(1), race);
    check(saxpy(150), halved(2), race);
}

#[test]
fn an_input_is_not_written() {
    let mutate = |p: &mut Program| {
        let (x, z) = (buffer(p, "x"), buffer(p, "z"));
        change(p, z, |access| access.memory = x);
    };
    check(saxpy(150), mutate, invalid("an input is written"));
}

#[test]
fn every_output_is_written() {
    let mutate = |p: &mut Program| {
        let z = buffer(p, "z");
        let skip = |access: &mut Access| {
            let other = Cond::cmp(Rel::Ne, access.index[0].clone(), 40);
            access.when = access.when.clone().and(other);
        };
        change(p, z, skip);
    };
    let unwritten = |e: &RunError| matches!(e, RunError::Unwritten { output, index } if output == "z" && index == &[40]);
    check(saxpy(150), mutate, unwritten);
}

/// Every statement that moves data or orders its moves is needed. A missing computation shows only
/// in the results, but a missing order is an error of every run.
#[test]
fn no_statement_is_dropped_unseen() {
    let moves = |stmt: &Stmt| matches!(stmt, Stmt::Set(..) | Stmt::Store { .. });
    let orders = |stmt: &Stmt| {
        matches!(
            stmt,
            Stmt::Copy { .. }
                | Stmt::CommitCopies
                | Stmt::WaitCopies { .. }
                | Stmt::Barrier
                | Stmt::Signal { .. }
                | Stmt::Await { .. }
                | Stmt::DynamicBlock { .. }
        )
    };
    let drop_all = |is: &dyn Fn(&Stmt) -> bool, may_differ: bool| {
        let mut dropped = 0;
        for number in 0..all().len() {
            for n in 0.. {
                let mut case = all().swap_remove(number);
                if !drop_nth(&mut case.program, n, is) {
                    break;
                }
                for order in ORDERS {
                    let options = Options {
                        order,
                        ..Options::default()
                    };
                    let seen = match run(&case, &options) {
                        Err(_) => true,
                        Ok(outcome) => may_differ && outcome.outputs != case.outputs,
                    };
                    assert!(seen, "{order:?}: {n} is not needed in\n{}", case.program);
                }
                dropped += 1;
            }
        }
        dropped
    };
    assert_eq!(drop_all(&moves, true), 15);
    assert_eq!(drop_all(&orders, false), 12);
}

#[test]
fn a_flag_is_nothing_else() {
    let mutate = |p: &mut Program| {
        let kernel = &mut p.kernels[0];
        let value = ValueId::from(kernel.values.len());
        let mut declared = kernel.values[0].clone();
        declared.ty = Scalar::I32;
        kernel.values.push(declared);
        let flags = p.buffers.iter().position(|b| b.kind == BufferKind::Flags);
        let memory = Memory::Global(BufferId::from(flags.unwrap()));
        let from = Access::new(memory, vec![Form::zero()]);
        let otherwise = None;
        kernel
            .body
            .push(Stmt::Let(value, Op::Load { from, otherwise }));
    };
    check(
        pipeline(3),
        mutate,
        fault(|kind| matches!(kind, FaultKind::FlagTouched { .. })),
    );
}

/// A fault names the place, the statement and the values.
#[test]
fn faults_are_reported_in_full() {
    let mut case = saxpy(150);
    let x = buffer(&case.program, "x");
    change(&mut case.program, x, |access| {
        access.index[0] = access.index[0].plus(1);
    });
    let error = run(&case, &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x[150] does not exist: its axes are [0..150]\n  \
         in `vx: f32 = x[64*b + 32*w + l + 1] when 64*b + 32*w + l < N`\n  \
         kernel saxpy (launch 0), block [2], warp 0, lane 21\n  \
         with b = 2, w = 0"
    );
    let mut case = transpose(1, 1);
    assert!(drop_nth(&mut case.program, 0, is_barrier));
    let error = run(&case, &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an undefined value is stored to y[0, 1]\n  \
         in `y[32*bj + w + 4*s, 32*bi + l] = u`\n  \
         kernel transpose (launch 0), block [0, 0], warp 0, lane 1\n  \
         with bi = 0, bj = 0, w = 0, s = 0\n  \
         undefined since `u: f32 = tile[l, w + 4*s]` in transpose, \
         which reads an element that was never written"
    );
    let mut case = staged(5);
    assert!(drop_nth(&mut case.program, 1, is_barrier));
    let error = run(&case, &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "block [], warp 0 copies into stage[0, 7], and that was not waited for\n  \
         in `v: f64 = stage[t % 2, -8*w - l + 15]`\n  \
         kernel staged (launch 0), block [], warp 1, lane 0\n  \
         with w = 1, t = 0"
    );
    let mut case = saxpy(150);
    let z = buffer(&case.program, "z");
    change(&mut case.program, z, |access| {
        access.index[0] = Form::from(DimId(2));
    });
    let error = run(&case, &Options::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a race on z[0]: this writes it, block [0], warp 0 writes it, and nothing orders the two\n  \
         in `z[l] = va * vx + vy when 64*b + 32*w + l < N`\n  \
         kernel saxpy (launch 0), block [0], warp 1, lane 0\n  \
         with b = 0, w = 1"
    );
}
