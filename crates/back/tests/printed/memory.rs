//! Accesses to memory of every pattern and under every predicate, at the ends of arrays.

use systola_interp::value::{self, Value};
use systola_ir::form::{Cond, Form, Poly, Rel};
use systola_ir::kernel::{Access, BufferKind, Memory, Op, Shape, Stmt, VarKind};
use systola_ir::mapping::Engine;
use systola_ir::{BinOp, Literal, ParamId, Scalar};

use crate::common::build::{Build, buffer, input, launch, num, output, param, program, times};
use crate::common::run::{Call, bytes_f32, bytes_i32, f32s, from_bytes, i32s, run, to_bytes};

/// 0 ≤ form < n
fn within(form: &Form, n: &Form) -> Cond {
    let low = Cond::cmp(Rel::Ge, form.clone(), num(0));
    low.and(Cond::cmp(Rel::Lt, form.clone(), n.clone()))
}

/// Copies of an array of N elements, shifted by some elements and masked at both ends, for every
/// type and size of a vector.
#[test]
fn masked_rows_do_not_leave_the_array() {
    let types = [
        Scalar::Bool,
        Scalar::U8,
        Scalar::I16,
        Scalar::F32,
        Scalar::F64,
    ];
    for lanes in [1u32, 2, 4, 16, 64] {
        let n = 77i64;
        let mut p = program("rows", &["N"]);
        let size = param(0);
        let mut data = Vec::new();
        let mut kernels = Vec::new();
        for ty in types {
            let x = input(&mut p, &format!("x_{ty}"), ty, std::slice::from_ref(&size));
            let y = output(&mut p, &format!("y_{ty}"), ty, std::slice::from_ref(&size));
            let values: Vec<Value> = (0..n)
                .map(|v| value::literal(ty, Literal::Int((v * 5 % 7).into())))
                .collect();
            data.push(to_bytes(&values));
            data.push(to_bytes(&vec![
                value::literal(ty, Literal::Int(1));
                n as usize
            ]));
            let mut k = Build::new(&format!("rows_{ty}"), lanes, 1);
            let lane = k.lane();
            let b = k.block("b", size.plus(i128::from(lanes)).floor_div(lanes.into()));
            // The first block begins before the array, and the last one ends after it.
            let at = times(lanes.into(), &b).add(&lane).plus(-1);
            let from = at.plus(3);
            let loaded = k.load_when(
                "x",
                ty,
                Memory::Global(x),
                std::slice::from_ref(&from),
                within(&from, &size),
                Some(Literal::Int(1)),
            );
            k.store_when(
                Memory::Global(y),
                std::slice::from_ref(&at),
                within(&at, &size),
                loaded,
            );
            kernels.push(k.finish());
        }
        for kernel in kernels {
            launch(&mut p, kernel);
        }
        let blocks = (n + i64::from(lanes)) / i64::from(lanes);
        let calls: Vec<Call> = (0..types.len()).map(|t| Call::of(t, blocks)).collect();
        let after = run(&p, &[n], &data, &calls);
        for (t, ty) in types.into_iter().enumerate() {
            let (x, y) = (
                from_bytes(ty, &after[2 * t]),
                from_bytes(ty, &after[2 * t + 1]),
            );
            let one = value::literal(ty, Literal::Int(1));
            // Elements that no block reaches keep their values.
            let reached = (blocks * i64::from(lanes) - 1).min(n) as usize;
            for (i, got) in y.iter().enumerate() {
                let expect = x.get(i + 3).filter(|_| i < reached).unwrap_or(&one);
                assert_eq!(got, expect, "{ty}, element {i}, {lanes} lanes");
            }
        }
    }
}

/// Loads and stores through every pattern, with and without a predicate, into a matrix with offsets
/// in its axes.
#[test]
fn patterns_reach_their_elements() {
    for lanes in [1u32, 4, 8] {
        let l = i128::from(lanes);
        let (rows, columns) = (2 * l + 3, 3 * l + 5);
        for symbolic in [false, true] {
            let mut p = program("patterns", &["R", "C"]);
            let (r, c) = if symbolic {
                (param(0), param(1))
            } else {
                (num(rows), num(columns))
            };
            let axes = [(num(-1), r.plus(-1)), (num(2), c.plus(2))];
            let kind = BufferKind::Input { data: None };
            let x = buffer(&mut p, "x", Scalar::F32, kind, &axes);
            let lane = Form::from(systola_ir::DimId(0));
            let b = Form::from(systola_ir::DimId(1));
            // The row and column of each lane.
            let places: Vec<(Form, Form)> = vec![
                (b.clone(), num(4)),
                (b.clone(), lane.add(&b).plus(3)),
                (b.plus(-1), lane.neg().plus(l + 3)),
                (b.clone(), times(2, &lane).add(&b).plus(2)),
                (lane.plus(-1), b.plus(2)),
                (lane.clone(), lane.plus(3)),
                (times(-1, &lane).plus(l), lane.add(&b).plus(2)),
                (lane.floor_div(2).add(&b).plus(-1), lane.modulo(2).plus(3)),
                (b.clone(), times(3, &lane).add(&b).modulo(5).plus(3)),
            ];
            let predicates = [
                Cond::TRUE,
                Cond::cmp(Rel::Gt, b.clone(), num(0)),
                Cond::cmp(Rel::Ge, lane.clone(), b.plus(1)),
                Cond::cmp(Rel::Eq, lane.clone(), b.plus(1)),
                Cond::cmp(Rel::Ne, lane.add(&b).modulo(3), num(1)).and(Cond::cmp(
                    Rel::Lt,
                    b.clone(),
                    num(1),
                )),
            ];
            let mut data = vec![bytes_f32(
                &(0..rows * columns)
                    .map(|n| n as f32 + 1.0)
                    .collect::<Vec<_>>(),
            )];
            let blocks = 2i128;
            let mut kernels = Vec::new();
            for (n, (row, column)) in places.iter().enumerate() {
                let mut k = Build::new(&format!("pattern_{n}"), lanes, 1);
                k.lane();
                k.block("b", num(blocks));
                for (q, when) in predicates.iter().enumerate() {
                    let index = [row.clone(), column.clone()];
                    let seen = output(
                        &mut p,
                        &format!("seen_{n}_{q}"),
                        Scalar::F32,
                        &[num(blocks * l)],
                    );
                    data.push(bytes_f32(&vec![0.0; (blocks * l) as usize]));
                    let kind = BufferKind::Output { fill: None };
                    let put = buffer(&mut p, &format!("put_{n}_{q}"), Scalar::F32, kind, &axes);
                    data.push(bytes_f32(&vec![0.0; (rows * columns) as usize]));
                    let other = Some(Literal::Float(-3.0));
                    let value = k.load_when(
                        "x",
                        Scalar::F32,
                        Memory::Global(x),
                        &index,
                        when.clone(),
                        other,
                    );
                    k.store(Memory::Global(seen), &[times(l, &b).add(&lane)], value);
                    // Lanes that store to the same element store the same value: the element that
                    // was read.
                    k.store_when(Memory::Global(put), &index, when.clone(), value);
                }
                kernels.push(k.finish());
            }
            let count = kernels.len();
            for kernel in kernels {
                launch(&mut p, kernel);
            }
            let calls: Vec<Call> = (0..count).map(|n| Call::of(n, blocks as i64)).collect();
            let after = run(&p, &[rows as i64, columns as i64], &data, &calls);
            for (n, (row, column)) in places.iter().enumerate() {
                for (q, when) in predicates.iter().enumerate() {
                    let out = 1 + 2 * (n * predicates.len() + q);
                    let seen = f32s(&after[out]);
                    let mut put = vec![0.0f32; (rows * columns) as usize];
                    for block in 0..blocks {
                        for at in 0..l {
                            let dims = [at, block];
                            let i = row.eval(&[], &dims).unwrap() + 1;
                            let j = column.eval(&[], &dims).unwrap() - 2;
                            let place = (i * columns + j) as usize;
                            let holds = when.eval(&[], &dims).unwrap();
                            let expect = if holds { place as f32 + 1.0 } else { -3.0 };
                            let got = seen[(block * l + at) as usize];
                            assert_eq!(
                                got, expect,
                                "pattern {n}, predicate {q}, lane {at}, {lanes} lanes"
                            );
                            if holds {
                                put[place] = expect;
                            }
                        }
                    }
                    assert_eq!(
                        f32s(&after[out + 1]),
                        put,
                        "store {n}, predicate {q}, {lanes} lanes"
                    );
                }
            }
        }
    }
}

#[test]
fn lookups_stay_inside() {
    for lanes in [1u32, 16] {
        let l = i128::from(lanes);
        let mut p = program("lookup", &["N", "E"]);
        let table = input(&mut p, "table", Scalar::I32, &[num(3), param(0)]);
        let empty = input(&mut p, "empty", Scalar::I32, &[param(1)]);
        let i = input(&mut p, "i", Scalar::I8, &[num(l)]);
        let j = input(&mut p, "j", Scalar::U64, &[num(l)]);
        let out = output(&mut p, "out", Scalar::I32, &[num(l)]);
        let nothing = output(&mut p, "nothing", Scalar::I32, &[num(l)]);
        let mut k = Build::new("lookup", lanes, 1);
        let lane = k.lane();
        let a = k.load(
            "a",
            Scalar::I8,
            Memory::Global(i),
            std::slice::from_ref(&lane),
        );
        let b = k.load(
            "b",
            Scalar::U64,
            Memory::Global(j),
            std::slice::from_ref(&lane),
        );
        let op = Op::Lookup {
            memory: Memory::Global(table),
            index: vec![a, b],
        };
        let found = k.op("found", Scalar::I32, Shape::Varying, op);
        k.store(Memory::Global(out), std::slice::from_ref(&lane), found);
        let op = Op::Lookup {
            memory: Memory::Global(empty),
            index: vec![a],
        };
        let found = k.op("found", Scalar::I32, Shape::Varying, op);
        let zero = k.int(Scalar::I32, 0);
        let none = k.binary("none", BinOp::Mul, found, zero);
        k.store(Memory::Global(nothing), std::slice::from_ref(&lane), none);
        launch(&mut p, k.finish());
        let n = 5i32;
        let cells: Vec<i32> = (0..3 * n).map(|c| 100 + c).collect();
        let is: Vec<i8> = (0..lanes as i8).map(|v| v % 5 - 1).collect();
        let js: Vec<u64> = (0..u64::from(lanes))
            .map(|v| if v == 7 { u64::MAX } else { v % 6 })
            .collect();
        let data = vec![
            bytes_i32(&cells),
            Vec::new(),
            is.iter().map(|v| *v as u8).collect(),
            js.iter().flat_map(|v| v.to_le_bytes()).collect(),
            bytes_i32(&vec![0; lanes as usize]),
            bytes_i32(&vec![9; lanes as usize]),
        ];
        let after = run(&p, &[n.into(), 0], &data, &[Call::of(0, 1)]);
        let got = i32s(&after[4]);
        for at in 0..lanes as usize {
            if (0..3).contains(&is[at]) && js[at] < n as u64 {
                let cell = i32::from(is[at]) * n + js[at] as i32;
                assert_eq!(got[at], cells[cell as usize], "lane {at}");
            }
        }
        assert_eq!(i32s(&after[5]), vec![0; lanes as usize]);
    }
}

/// Tables of every element width: too small for reads of four bytes, small, and too large for short
/// indices.
#[test]
fn lookups_of_every_width() {
    let types = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::U16,
        Scalar::I16,
        Scalar::F32,
        Scalar::I64,
    ];
    let sizes = [1i64, 2, 3, 4, 5, 301, 65536, 65537];
    for lanes in [4u32, 8, 16, 32, 64] {
        let l = i128::from(lanes);
        let names: Vec<String> = (0..sizes.len()).map(|n| format!("N{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut p = program("tables", &names);
        let mut data = Vec::new();
        let mut kernels = Vec::new();
        let mut expected = Vec::new();
        for ty in types {
            for (n, size) in sizes.into_iter().enumerate() {
                let table = input(&mut p, &format!("t{n}_{ty}"), ty, &[num(1), param(n)]);
                let at = input(&mut p, &format!("i{n}_{ty}"), Scalar::U32, &[num(l)]);
                let out = output(&mut p, &format!("o{n}_{ty}"), ty, &[num(l)]);
                let cells: Vec<Value> = (0..size)
                    .map(|v| value::literal(ty, Literal::Int((v * 37 % 101 % 2).into())))
                    .collect();
                let places: Vec<u32> = (0..i64::from(lanes))
                    .map(|lane| ((size - 1 + lane * (lane % 3) * 997) % size) as u32)
                    .collect();
                let found: Vec<Value> = places
                    .iter()
                    .map(|place| cells[*place as usize].clone())
                    .collect();
                data.push(to_bytes(&cells));
                data.push(places.iter().flat_map(|v| v.to_le_bytes()).collect());
                data.push(vec![0; lanes as usize * ty.bits().max(8) as usize / 8]);
                expected.push((data.len() - 1, ty, size, found));
                let mut k = Build::new(&format!("lookup{n}_{ty}"), lanes, 1);
                let lane = k.lane();
                let index = k.load(
                    "at",
                    Scalar::U32,
                    Memory::Global(at),
                    std::slice::from_ref(&lane),
                );
                let row = k.int(Scalar::I32, 0);
                let op = Op::Lookup {
                    memory: Memory::Global(table),
                    index: vec![row, index],
                };
                let found = k.op("found", ty, Shape::Varying, op);
                k.store(Memory::Global(out), std::slice::from_ref(&lane), found);
                kernels.push(k.finish());
            }
        }
        let calls: Vec<Call> = (0..kernels.len()).map(|k| Call::of(k, 1)).collect();
        for kernel in kernels {
            launch(&mut p, kernel);
        }
        let after = run(&p, &sizes, &data, &calls);
        for (buffer, ty, size, found) in expected {
            let got = from_bytes(ty, &after[buffer]);
            assert_eq!(got, found, "{lanes} lanes, {size} elements of {ty}");
        }
    }
}

/// Vector accesses and copies through shared arrays, two of them with symbolic extents.
#[test]
fn wide_accesses_and_copies() {
    for lanes in [1u32, 4, 16] {
        let l = i128::from(lanes);
        let mut p = program("wide", &["N"]);
        let n = param(0);
        let x = input(&mut p, "x", Scalar::I32, &[n.clone(), num(4 * l)]);
        let y = output(&mut p, "y", Scalar::I32, &[n.clone(), num(4 * l)]);
        let mut k = Build::new("wide", lanes, 1);
        let lane = k.lane();
        let i = k.block("i", n.clone());
        let first = k.shared("first", Scalar::I32, &[Poly::param(ParamId(0))]);
        let tile = k.shared(
            "tile",
            Scalar::I32,
            &[Poly::param(ParamId(0)), Poly::constant(4 * l)],
        );
        let four = times(4, &lane);
        let copy = |to, to_index: Vec<Form>, from_index: Vec<Form>, width, when| Stmt::Copy {
            to: Access::new(Memory::Shared(to), to_index),
            from: Access {
                memory: Memory::Global(x),
                index: from_index,
                when,
            },
            width,
            engine: Engine::CpAsync,
        };
        let row = num(0);
        k.push(copy(
            tile,
            vec![row.clone(), four.clone()],
            vec![i.clone(), four.clone()],
            4,
            Cond::TRUE,
        ));
        k.push(copy(
            first,
            vec![row.clone()],
            vec![i.clone(), row.clone()],
            1,
            Cond::TRUE,
        ));
        // Lane 0 copies the first two elements again, from the other end.
        k.push(copy(
            tile,
            vec![row.clone(), times(2, &lane)],
            vec![i.clone(), num(4 * l - 2)],
            2,
            Cond::cmp(Rel::Lt, lane.clone(), num(1)),
        ));
        k.push(Stmt::CommitCopies);
        k.push(Stmt::WaitCopies { pending: 0 });
        k.push(Stmt::Barrier);
        let values = k.load_wide(
            &["p", "q"],
            Scalar::I32,
            Memory::Shared(tile),
            &[row.clone(), four.clone()],
        );
        let more = k.load_wide(
            &["r", "s"],
            Scalar::I32,
            Memory::Shared(tile),
            &[row, four.plus(2)],
        );
        let all = k.load("f", Scalar::I32, Memory::Shared(first), &[num(0)]);
        let r = k.binary("r", BinOp::Add, more[0], all);
        k.push(Stmt::StoreWide {
            to: Access::new(Memory::Global(y), vec![i, four]),
            values: vec![values[1], values[0], more[1], r],
        });
        launch(&mut p, k.finish());
        let rows = 3usize;
        let width = 4 * lanes as usize;
        let data: Vec<i32> = (0..(rows * width) as i32).map(|v| v * v % 101).collect();
        let buffers = vec![bytes_i32(&data), bytes_i32(&vec![0; data.len()])];
        let after = run(&p, &[rows as i64], &buffers, &[Call::of(0, rows as i64)]);
        let got = i32s(&after[1]);
        for row in 0..rows {
            let mut tile = data[row * width..][..width].to_vec();
            let head = tile[0];
            tile.copy_within(width - 2.., 0);
            for (l, part) in tile.chunks(4).enumerate() {
                let expect = [part[1], part[0], part[3], part[2] + head];
                assert_eq!(
                    &got[row * width + 4 * l..][..4],
                    &expect,
                    "row {row}, lane {l} of {lanes}"
                );
            }
        }
    }
}

/// A prefix sum over blocks: each waits for the one before it, in the order of the dynamic block
/// ids.
#[test]
fn flags_order_blocks() {
    let mut p = program("chain", &["B"]);
    let blocks = param(0);
    let kind = || BufferKind::Flags;
    let x = input(&mut p, "x", Scalar::I32, std::slice::from_ref(&blocks));
    let y = output(&mut p, "y", Scalar::I32, std::slice::from_ref(&blocks));
    let axis = (num(0), blocks.plus(1));
    let flags = buffer(&mut p, "flags", Scalar::I32, kind(), &[axis]);
    let counter = buffer(&mut p, "counter", Scalar::I32, kind(), &[]);
    let mut k = Build::new("chain", 1, 1);
    k.block("b", blocks);
    let t = k.var("t", VarKind::DynamicBlock);
    let at = Form::from(t);
    k.push(Stmt::DynamicBlock {
        var: t,
        counter: Access::new(Memory::Global(counter), vec![]),
    });
    let not_first = Cond::cmp(Rel::Gt, at.clone(), num(0));
    k.push(Stmt::Await {
        flag: Access {
            memory: Memory::Global(flags),
            index: vec![at.clone()],
            when: not_first.clone(),
        },
        at_least: num(1),
    });
    let before = k.load_when(
        "before",
        Scalar::I32,
        Memory::Global(y),
        &[at.plus(-1)],
        not_first,
        None,
    );
    let own = k.load(
        "own",
        Scalar::I32,
        Memory::Global(x),
        std::slice::from_ref(&at),
    );
    let sum = k.binary("sum", BinOp::Add, before, own);
    k.store(Memory::Global(y), std::slice::from_ref(&at), sum);
    k.push(Stmt::Signal {
        flag: Access::new(Memory::Global(flags), vec![at.plus(1)]),
    });
    launch(&mut p, k.finish());
    let n = 40;
    let xs: Vec<i32> = (1..=n).collect();
    let zeros = |n: i32| bytes_i32(&vec![0; n as usize]);
    let data = vec![bytes_i32(&xs), zeros(n), zeros(n + 1), zeros(1)];
    let call = Call {
        at_once: true,
        ..Call::of(0, n.into())
    };
    let after = run(&p, &[n.into()], &data, &[call]);
    let sums: Vec<i32> = (1..=n).map(|v| v * (v + 1) / 2).collect();
    assert_eq!(i32s(&after[1]), sums);
    assert_eq!(i32s(&after[3]), [n]);
}
