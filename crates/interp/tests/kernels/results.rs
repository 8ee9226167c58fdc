//! Kernels give the right results in every order, and their counts match the hardware's.

use systola_interp::kernel::{Options, Order, run_kernel_program};
use systola_interp::value::{binary, cast};
use systola_interp::{Arrays, Data, Tensor};
use systola_ir::kernel::census::{Counts, Event};
use systola_ir::kernel::visit::{map_forms, walk_mut};
use systola_ir::kernel::{BufferKind, Host, Op, Stmt, Var, VarKind};
use systola_ir::{BinOp, DimId, Form, KernelId, Literal, Poly, Scalar};

use crate::builder::*;

const ORDERS: [Order; 6] = [
    Order::InOrder,
    Order::Reversed,
    Order::Shuffled(1),
    Order::Shuffled(2),
    Order::Shuffled(3),
    Order::Shuffled(4),
];

/// Runs in every order, and with few and many resident blocks; the results are the expected ones.
fn check(case: &Case) -> Counts {
    let mut all: Vec<Counts> = Vec::new();
    for order in ORDERS {
        for resident in [1, 2, usize::MAX] {
            let options = Options {
                order,
                resident,
                ..Options::default()
            };
            let outcome = run_kernel_program(&case.program, &case.sizes, &case.inputs, &options);
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(error) => panic!("{error}\n\n{}", case.program),
            };
            assert_eq!(outcome.outputs, case.outputs, "{order:?}\n{}", case.program);
            all.push(outcome.counts);
        }
    }
    assert!(all.iter().all(|counts| *counts == all[0]), "{all:?}");
    all.swap_remove(0)
}

#[test]
fn a_tail_is_predicated() {
    for n in [0, 1, 31, 64, 65, 150] {
        check(&saxpy(n));
    }
    let counts = check(&saxpy(150));
    assert_eq!(counts[Event::Launches], 1);
    assert_eq!(counts[Event::Blocks], 3);
    // Six warps, each one load of `a` and two of vectors, one store, one product and one sum.
    assert_eq!(counts[Event::Loads], 18);
    assert_eq!(counts[Event::Stores], 6);
    assert_eq!(counts[Event::Arithmetic], 12);
    assert_eq!(counts[Event::Fusible], 6);
    // `a` is one sector for each warp; the last vector has 22 of 32 elements, in three sectors.
    assert_eq!(counts[Event::GlobalSectors], 6 + 3 * (4 * 4 + 3));
    assert_eq!(counts[Event::GlobalBytes], 4 * (6 + 3 * 150));
}

#[test]
fn lanes_shift() {
    for n in [3, 8, 9, 21, 64] {
        check(&stencil(n));
    }
    assert_eq!(check(&stencil(21))[Event::LaneShifts], 6);
}

#[test]
fn padding_avoids_bank_conflicts() {
    let (plain, padded) = (check(&transpose(2, 0)), check(&transpose(2, 1)));
    assert_eq!(plain[Event::Barriers], 4 * 4);
    // 4 blocks read 32 columns each, all lanes in one bank.
    assert_eq!(plain[Event::BankConflicts], 4 * 32 * 31);
    assert_eq!(padded[Event::BankConflicts], 0);
    assert_eq!(padded[Event::SharedWavefronts], 4 * 64);
    assert_eq!(plain[Event::GlobalSectors], 2 * 64 * 64 * 4 / 32);
}

#[test]
fn launches_follow_each_other() {
    for (n, steps) in [(1, 0), (4, 1), (13, 5), (13, 6)] {
        let counts = check(&ping_pong(n, steps));
        assert_eq!(counts[Event::Launches], steps as u64 + 2);
    }
}

#[test]
fn counts_are_told_by_kernel() {
    let case = ping_pong(13, 5);
    let options = Options::default();
    let outcome = run_kernel_program(&case.program, &case.sizes, &case.inputs, &options).unwrap();
    let launches: Vec<u64> = outcome.kernels.iter().map(|c| c[Event::Launches]).collect();
    assert_eq!(launches, [1, 5, 1]);
    assert_eq!(outcome.kernels[1][Event::Blocks], 20);
}

#[test]
fn copies_are_staged() {
    for tiles in [1, 2, 5] {
        check(&staged(tiles));
    }
    assert_eq!(check(&staged(5))[Event::Copies], 10);
}

#[test]
fn flags_order_blocks() {
    for rows in [1, 2, 6, 17] {
        check(&pipeline(rows));
    }
}

#[test]
fn lanes_look_up_and_shuffle() {
    let counts = check(&lookup());
    assert_eq!((counts[Event::Lookups], counts[Event::Shuffles]), (1, 1));
}

#[test]
fn wide_accesses_move_consecutive_elements() {
    let mut b = Builder::new("wide", &[]);
    let x = b.input("x", Scalar::F32, &[2.into(), 16.into()]);
    let y = b.output("y", Scalar::F32, &[2.into(), 16.into()]);
    b.begin("wide", 1, 8);
    let l = b.lane();
    let l = Form::from(l);
    let (row, column) = (l.floor_div(4), l.modulo(4));
    let column = column.scale(&Poly::constant(4)).unwrap();
    let to: Vec<_> = (0..4).map(|_| b.value("v", Scalar::F32)).collect();
    let at = |buffer| global(buffer, &[row.clone(), column.clone()]);
    b.stmt(Stmt::LoadWide {
        to: to.clone(),
        from: at(x),
        otherwise: None,
    });
    let values = to.into_iter().rev().collect();
    b.stmt(Stmt::StoreWide { to: at(y), values });
    b.end_and_launch();
    let dx: Vec<f32> = (0..32).map(|k| k as f32).collect();
    let dy: Vec<f32> = dx.chunks(4).flat_map(|c| c.iter().rev().copied()).collect();
    let tensor = |data: Vec<f32>| Tensor::new(vec![2, 16], data).unwrap();
    let counts = check(&Case {
        program: b.program,
        sizes: vec![],
        inputs: Arrays::from([("x".into(), tensor(dx))]),
        outputs: Arrays::from([("y".into(), tensor(dy))]),
    });
    assert_eq!((counts[Event::Loads], counts[Event::Stores]), (1, 1));
    assert_eq!(counts[Event::GlobalSectors], 8);
}

/// z = select(x < y, min(x, y), max(x, y)), through shared memory, and y cast to f64.
#[test]
fn every_scalar_runs() {
    for ty in Scalar::ALL {
        let mut b = Builder::new("scalars", &[]);
        let x = b.input("x", ty, &[8.into()]);
        let y = b.input("y", ty, &[8.into()]);
        let z = b.output("z", ty, &[8.into()]);
        let wide = b.output("wide", Scalar::F64, &[8.into()]);
        b.begin("scalars", 2, 4);
        let (w, l) = (b.warp(), b.lane());
        let here = lin(&[(4, w), (1, l)], 0);
        let across = lin(&[(-4, w), (-1, l)], 7);
        let stage = b.shared("stage", ty, &[8]);
        let given = b.load("given", ty, global(y, std::slice::from_ref(&here)));
        b.store(shared(stage, std::slice::from_ref(&across)), given);
        b.stmt(Stmt::Barrier);
        let vx = b.load("vx", ty, global(x, std::slice::from_ref(&across)));
        let vy = b.load("vy", ty, shared(stage, std::slice::from_ref(&here)));
        let cond = b.binary(BinOp::Lt, vx, vy);
        let then = b.binary(BinOp::Min, vx, vy);
        let otherwise = b.binary(BinOp::Max, vx, vy);
        let select = Op::Select {
            cond,
            then,
            otherwise,
        };
        let chosen = b.op("chosen", ty, select);
        b.store(global(z, std::slice::from_ref(&across)), chosen);
        let cast_up = b.op("cast", Scalar::F64, Op::Cast(vy));
        b.store(global(wide, std::slice::from_ref(&across)), cast_up);
        b.end_and_launch();
        let axes = &b.program.buffers[0].axes.clone();
        let (dx, dy) = (
            Tensor::random(ty, axes, &[], 1).unwrap(),
            Tensor::random(ty, axes, &[], 2).unwrap(),
        );
        let mut dz = Tensor::zeros(ty, axes, &[]).unwrap();
        let mut dw = Vec::new();
        for k in 0..8 {
            let (x, y) = (dx.data.get(k).unwrap(), dy.data.get(k).unwrap());
            let less = binary(BinOp::Lt, &x, &y).unwrap().as_int() == Some(1);
            let op = if less { BinOp::Min } else { BinOp::Max };
            assert!(dz.data.set(k, &binary(op, &x, &y).unwrap()));
            dw.push(cast(Scalar::F64, &y).unwrap().as_float().unwrap());
        }
        check(&Case {
            program: b.program,
            sizes: vec![],
            inputs: Arrays::from([("x".into(), dx), ("y".into(), dy)]),
            outputs: Arrays::from([
                ("z".into(), dz),
                ("wide".into(), Tensor::vector(Data::from(dw))),
            ]),
        });
    }
}

/// Elements that no lane writes have the fill value.
#[test]
fn outputs_are_filled() {
    let mut case = saxpy(10);
    let z = case.program.buffers.len() - 1;
    case.program.buffers[z].kind = BufferKind::Output {
        fill: Some(Literal::Int(7)),
    };
    case.program.buffers[z].axes[0].hi = Form::from(12);
    let mut expect: Vec<f32> = match &case.outputs["z"].data {
        Data::F32(list) => list.clone(),
        other => panic!("{other:?}"),
    };
    expect.extend([7.0, 7.0]);
    case.outputs.insert("z".into(), Tensor::vector(expect));
    check(&case);
}

/// A flag keeps its count from launch to launch: the second launch waits for a larger value.
#[test]
fn flags_outlive_a_launch() {
    let mut case = pipeline(4);
    let kernel = &mut case.program.kernels[0];
    let h = DimId::from(kernel.vars.len());
    kernel.vars.push(Var {
        name: "h".into(),
        kind: VarKind::Host,
    });
    let block_id = kernel
        .vars_where(|k| matches!(k, VarKind::DynamicBlock))
        .last();
    let block_id = block_id.unwrap();
    // The second launch takes 4 … 7.
    let number = Form::from(block_id).sub(&lin(&[(4, h)], 0));
    let renumber = |form: &Form| form.substitute(&|d| (d == block_id).then(|| number.clone()));
    kernel.body = map_forms(&kernel.body, &renumber).unwrap();
    walk_mut(&mut kernel.body, &mut |stmt| {
        if let Stmt::Await { at_least, .. } = stmt {
            *at_least = Form::from(h).plus(1);
        }
    });
    let launch = |iteration: i128| Host::Launch {
        kernel: KernelId(0),
        args: vec![iteration.into()],
    };
    case.program.body = vec![launch(0), launch(1)];
    check(&case);
}
