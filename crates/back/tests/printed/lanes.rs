//! Positions, masks, lane shifts and shuffles, compared with the values of their forms.

use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::{Memory, Op, Shape};
use systola_ir::{ParamId, Scalar};

use crate::common::build::{Build, input, launch, num, output, param, program, times};
use crate::common::folded;
use crate::common::run::{
    Call, Effort, bytes_f32, bytes_i32, compilers, f32s, i32s, run, run_with, run_with_effort,
};

const RELS: [Rel; 6] = [Rel::Eq, Rel::Ne, Rel::Lt, Rel::Le, Rel::Gt, Rel::Ge];

/// Conditions of every kind on the lane, a uniform variable and a parameter.
fn conditions(lane: &Form, b: &Form, n: &Form) -> Vec<Cond> {
    let two = times(2, lane).add(b);
    let floor = lane.add(&times(3, b)).floor_div(4);
    let rest = times(-5, lane).add(b).add(n).modulo(6);
    let nested = times(3, lane).add(b).modulo(8).floor_div(3);
    let symbolic = lane.scale(&Poly::param(ParamId(0))).unwrap();
    let deep = symbolic.add(b).floor_div(5);
    let forms = [
        lane.sub(b),
        b.sub(lane).plus(3),
        two.sub(n),
        floor.sub(b),
        rest.plus(-2),
        nested.add(&floor).sub(n),
        symbolic.sub(&times(20, b)),
        deep.sub(&times(4, b)),
        lane.plus(-2),
    ];
    let mut conds = Vec::new();
    for form in &forms {
        for rel in RELS {
            conds.push(Cond::cmp(rel, form.clone(), num(0)));
        }
    }
    let below = Cond::cmp(Rel::Lt, lane.clone(), b.clone());
    let odd = Cond::cmp(Rel::Eq, lane.modulo(2), num(1));
    let late = Cond::cmp(Rel::Gt, b.clone(), num(2));
    conds.push(Cond::And(vec![below.clone(), odd.clone(), late.clone()]));
    conds.push(Cond::Or(vec![below.clone(), odd.clone()]));
    conds.push(Cond::Or(vec![
        Cond::And(vec![odd, late.clone()]),
        below.clone(),
    ]));
    conds.push(Cond::Not(Box::new(Cond::And(vec![below, late]))));
    conds
}

/// Checks every condition as a mask of every width, and as the predicate of a store.
fn check_conditions(lanes: u32) {
    let blocks = 6i64;
    let size = 7i64;
    let mut p = program("conditions", &["N"]);
    let row = num((blocks * i64::from(lanes)).into());
    let mut k = Build::new("conditions", lanes, 1);
    let lane = k.lane();
    let b = k.block("b", num(blocks.into()));
    let at = times(lanes.into(), &b).add(&lane);
    let shifted = b.plus(-1);
    let conds = conditions(&lane, &shifted, &param(0));
    let widths = [
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::F64,
    ];
    let mut data = Vec::new();
    for (n, cond) in conds.iter().enumerate() {
        let ty = widths[n % widths.len()];
        let out = output(
            &mut p,
            &format!("mask_{n}"),
            Scalar::I32,
            std::slice::from_ref(&row),
        );
        let (one, zero) = (k.int(ty, 1), k.int(ty, 0));
        let chosen = k.choose(cond.clone(), one, zero);
        let chosen = k.cast(Scalar::I32, chosen);
        k.store(Memory::Global(out), std::slice::from_ref(&at), chosen);
        data.push(bytes_i32(&vec![0; row.as_constant().unwrap() as usize]));
        let out = output(
            &mut p,
            &format!("bits_{n}"),
            Scalar::I32,
            std::slice::from_ref(&row),
        );
        let one = k.int(Scalar::I32, 1);
        k.store_when(
            Memory::Global(out),
            std::slice::from_ref(&at),
            cond.clone(),
            one,
        );
        data.push(bytes_i32(&vec![0; row.as_constant().unwrap() as usize]));
    }
    launch(&mut p, k.finish());
    // gcc optimises each of these sources for nine seconds; the widest vectors of floats have to do.
    let effort = match lanes {
        16 => Effort::Full,
        _ => Effort::Little,
    };
    let calls = [Call::of(0, blocks)];
    let after = run_with_effort(&p, &[size], &data, &calls, effort);
    for (n, cond) in conds.iter().enumerate() {
        for block in 0..blocks {
            for l in 0..i64::from(lanes) {
                let holds = cond
                    .eval(&[size.into()], &[l.into(), block.into()])
                    .unwrap();
                let at = (block * i64::from(lanes) + l) as usize;
                for (kind, out) in [("mask", 2 * n), ("bits", 2 * n + 1)] {
                    let got = i32s(&after[out])[at];
                    assert_eq!(
                        got,
                        i32::from(holds),
                        "{kind} of {cond:?} in lane {l} of block {block}, {lanes} lanes"
                    );
                }
            }
        }
    }
}

#[test]
fn conditions_of_one_lane() {
    check_conditions(1);
}

#[test]
fn conditions_of_four_lanes() {
    check_conditions(4);
}

#[test]
fn conditions_of_sixteen_lanes() {
    check_conditions(16);
}

#[test]
fn conditions_of_sixty_four_lanes() {
    check_conditions(64);
}

#[test]
fn positions_are_numbers() {
    for lanes in [1, 2, 16] {
        let blocks = 5;
        let mut p = program("positions", &["N"]);
        let mut k = Build::new("positions", lanes, 1);
        let lane = k.lane();
        let b = k.block("b", num(blocks));
        let at = times(lanes.into(), &b).add(&lane);
        let forms = [
            at.clone(),
            lane.neg().plus(5),
            at.plus(-20).floor_div(3),
            at.plus(-20).modulo(7).add(&b),
            lane.scale(&Poly::param(ParamId(0)))
                .unwrap()
                .add(&b)
                .modulo(5),
            num(1 << 40),
            b.add(&param(0)),
        ];
        let row = num(i128::from(lanes) * blocks);
        let mut data = Vec::new();
        for (n, form) in forms.iter().enumerate() {
            let out = output(
                &mut p,
                &format!("at_{n}"),
                Scalar::I64,
                std::slice::from_ref(&row),
            );
            let value = k.index(form);
            k.store(Memory::Global(out), std::slice::from_ref(&at), value);
            data.push(vec![0; row.as_constant().unwrap() as usize * 8]);
        }
        launch(&mut p, k.finish());
        let after = run(&p, &[11], &data, &[Call::of(0, blocks as i64)]);
        for (n, form) in forms.iter().enumerate() {
            for (at, got) in after[n].chunks(8).enumerate() {
                let (block, l) = (
                    at as i128 / i128::from(lanes),
                    at as i128 % i128::from(lanes),
                );
                let expect = form.eval(&[11], &[l, block]).unwrap();
                let got = i64::from_le_bytes(got.try_into().unwrap());
                assert_eq!(
                    i128::from(got),
                    expect,
                    "{form:?} in lane {l} of block {block}"
                );
            }
        }
    }
}

#[test]
fn lane_shifts_and_shuffles_move_values() {
    for lanes in [1u32, 2, 8, 64] {
        let l = i128::from(lanes);
        let mut p = program("moves", &["N"]);
        let x = input(&mut p, "x", Scalar::F32, &[num(2 * l)]);
        let mut k = Build::new("moves", lanes, 1);
        let lane = k.lane();
        let b = k.block("b", num(1));
        let low = k.load(
            "low",
            Scalar::F32,
            Memory::Global(x),
            std::slice::from_ref(&lane),
        );
        let high = k.load("high", Scalar::F32, Memory::Global(x), &[lane.plus(l)]);
        let values: Vec<f32> = (0..2 * lanes).map(|n| n as f32 + 0.5).collect();
        let mut data = vec![bytes_f32(&values)];
        // The source of each lane of each output; `None` for an undefined lane.
        let mut expect: Vec<Vec<Option<usize>>> = Vec::new();
        let mut put = |k: &mut Build, value, from: Vec<Option<usize>>| {
            let name = format!("out_{}", expect.len());
            let out = output(&mut p, &name, Scalar::F32, &[num(l)]);
            k.store(Memory::Global(out), std::slice::from_ref(&lane), value);
            data.push(bytes_f32(&vec![-1.0; lanes as usize]));
            expect.push(from);
        };
        let n = lanes as usize;
        for by in [0, 1, lanes / 2, lanes - 1, lanes] {
            for (has_low, has_high) in [(true, true), (true, false), (false, true)] {
                let op = Op::LaneShift {
                    low: has_low.then_some(low),
                    high: has_high.then_some(high),
                    by,
                };
                let value = k.op("shifted", Scalar::F32, Shape::Varying, op);
                let from = (0..n)
                    .map(|l| l + n - by as usize)
                    .map(|e| ((e < n && has_low) || (e >= n && has_high)).then_some(e))
                    .collect();
                put(&mut k, value, from);
            }
        }
        let forms = [
            lane.plus(1),
            lane.plus(-3),
            lane.neg().plus(l - 1),
            lane.add(&b).plus(2),
            lane.add(&param(0)).modulo(l),
            times(3, &lane).add(&param(0)).floor_div(4),
            param(0).plus(-2),
            lane.scale(&Poly::param(ParamId(0))).unwrap(),
        ];
        for form in forms {
            let op = Op::Shuffle {
                value: high,
                from: form.clone(),
            };
            let value = k.op("moved", Scalar::F32, Shape::Varying, op);
            let from = (0..l)
                .map(|at| form.eval(&[3], &[at, 0]).unwrap())
                .map(|e| (0..l).contains(&e).then(|| n + e as usize))
                .collect();
            put(&mut k, value, from);
        }
        launch(&mut p, k.finish());
        let artifact =
            systola_back::cpu::emit(&folded(&p), systola_ir::target::Simd::Avx512).unwrap();
        for cc in compilers() {
            let simd = systola_ir::target::Simd::Avx512;
            let effort = Effort::Full;
            let calls = [Call::of(0, 1)];
            let after = run_with(cc, simd, effort, &artifact, &[3], &data, &calls);
            for (n, from) in expect.iter().enumerate() {
                let got = f32s(&after[n + 1]);
                for (l, from) in from.iter().enumerate() {
                    if let Some(from) = from {
                        assert_eq!(got[l], values[*from], "output {n}, lane {l} of {lanes}");
                    }
                }
            }
        }
    }
}
