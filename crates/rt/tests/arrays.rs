//! Which arrays are accepted, which are refused and why, and how layouts that are not dense are
//! handled.

mod common;

use common::*;
use ndarray::{Array1, Array2, ShapeBuilder, s};
use systola_ir::kernel::BufferKind;
use systola_ir::{Literal, Scalar};
use systola_rt::{CpuProgram, Error, HostArray, RunOptions, Stats, View, ViewMut};

fn run_saxpy(
    program: &CpuProgram,
    sizes: &[i64],
    inputs: &[(&str, View<'_>)],
    outputs: &mut [(&str, ViewMut<'_>)],
) -> Result<Stats, Error> {
    program.run(sizes, inputs, outputs, &RunOptions::default())
}

#[test]
fn wrong_names_types_shapes_and_sizes_are_named() {
    let program = compile(saxpy());
    let (good, short) = ([1f32; 4], [1f32; 3]);
    let doubles = [1f64; 4];
    let x = || ("x", View::from(&good[..]));
    let y = || ("y", View::from(&good[..]));
    let check = |sizes: &[i64], inputs: &[(&str, View<'_>)], expect: &str| {
        let mut z = [0f32; 4];
        let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
        let error = run_saxpy(&program, sizes, inputs, outputs).unwrap_err();
        assert_eq!(error.to_string(), expect);
        assert_eq!(z, [0.0; 4]);
    };
    check(&[4], &[x()], "input `y` is missing");
    check(
        &[4],
        &[x(), y(), ("w", View::from(&good[..]))],
        "the program has no input `w`; it has `x`, `y`",
    );
    check(&[4], &[x(), y(), x()], "`x` is given twice");
    check(
        &[4],
        &[x(), ("y", View::from(&short[..]))],
        "`y` must have shape [4], got [3]",
    );
    check(
        &[4],
        &[("x", View::new(&good, &[2, 2]).unwrap()), y()],
        "`x` must have shape [4], got [2, 2]",
    );
    check(
        &[4],
        &[x(), ("y", View::from(&doubles[..]))],
        "`y` must hold f32, got f64",
    );
    check(
        &[4, 4],
        &[x(), y()],
        "the program has 1 sizes, 2 were given",
    );
    check(&[-1], &[x(), y()], "the sizes N = -1 do not satisfy N >= 0");

    let missing = run_saxpy(&program, &[4], &[x(), y()], &mut []).unwrap_err();
    assert_eq!(missing.to_string(), "output `z` is missing");
    let mut z = [0f32; 4];
    let outputs = &mut [("x", ViewMut::from(&mut z[..]))];
    let unknown = run_saxpy(&program, &[4], &[x(), y()], outputs).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "the program has no output `x`; it has `z`"
    );
}

#[test]
fn fixed_sizes_stay_fixed() {
    let (mut program, source) = saxpy();
    program.params[0].fixed = Some(4);
    let program = compile((program, source));
    let x = [1f32; 5];
    let mut z = [0f32; 5];
    let error = run_saxpy(
        &program,
        &[5],
        &[("x", View::from(&x[..])), ("y", View::from(&x[..]))],
        &mut [("z", ViewMut::from(&mut z[..]))],
    )
    .unwrap_err();
    assert!(matches!(
        error,
        Error::SizeMismatchFixed {
            fixed: 4,
            got: 5,
            ..
        }
    ));
}

#[test]
fn a_stated_input_cannot_be_given_and_must_fit_its_axes() {
    let (mut program, source) = saxpy();
    program.buffers[0].kind = BufferKind::Input {
        data: Some(vec![Literal::Int(1); 3]),
    };
    let program = compile((program, source));
    let y = [1f32; 4];
    let mut z = [0f32; 4];
    let y = ("y", View::from(&y[..]));
    let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
    let given = [y.clone(), ("x", y.1.clone())];
    let error = run_saxpy(&program, &[4], &given, outputs).unwrap_err();
    assert!(matches!(error, Error::StatedByProgram { .. }));
    let error = run_saxpy(&program, &[4], &[y], outputs).unwrap_err();
    assert!(matches!(
        error,
        Error::WrongLength {
            expected: 4,
            got: 3,
            ..
        }
    ));
}

#[test]
fn empty_arrays_are_legal_where_the_context_allows() {
    let program = compile(transposing());
    for (n, m) in [(0usize, 0usize), (0, 5), (5, 0)] {
        let x = Array2::<i32>::zeros((n, m));
        let y = Array2::<i32>::zeros((m, n).f());
        let mut z = Array2::<i32>::zeros((n, m).f());
        let stats = program
            .run(
                &[n as i64, m as i64],
                &[("x", View::from(&x)), ("y", View::from(&y))],
                &mut [("z", ViewMut::from(&mut z))],
                &RunOptions::default(),
            )
            .unwrap();
        assert_eq!((stats.launches, stats.blocks), (1, 0));
    }
}

#[test]
fn what_cannot_be_counted_or_allocated_is_an_error() {
    let temporary = |extents| {
        let program = program(
            &["N"],
            vec![],
            vec![buffer("t", Scalar::F64, BufferKind::Temporary, extents)],
            vec![kernel("k", vec![block("i", number(0), number(1))])],
            vec![launch(0, vec![])],
        );
        compile((program, source(&format!("void k{HEAD} {{}}"), &["k"])))
    };
    let cube = temporary(vec![param(0), param(0), param(0)]);
    let run =
        |program: &CpuProgram, n: i64| program.run(&[n], &[], &mut [], &RunOptions::default());
    assert!(run(&cube, 10).is_ok());
    assert!(matches!(
        run(&cube, 1 << 40),
        Err(Error::Overflow { what }) if what == "`t`"
    ));
    assert!(matches!(
        run(&cube, i64::MAX),
        Err(Error::IndexTooLarge { .. })
    ));
    let flat = temporary(vec![param(0), param(0), number(0)]);
    let empty = run(&flat, 1 << 62);
    assert!(empty.is_ok(), "{empty:?}");
    let line = temporary(vec![param(0)]);
    assert!(matches!(
        run(&line, 1 << 55),
        Err(Error::OutOfMemory { bytes, .. }) if bytes == 1 << 58
    ));
    assert!(run(&line, 10).is_ok());

    let grid = |vars, args| {
        let program = program(
            &["N"],
            vec![],
            vec![],
            vec![kernel("k", vars)],
            vec![launch(0, args)],
        );
        compile((program, source(&format!("void k{HEAD} {{}}"), &["k"])))
    };
    let square = grid(
        vec![
            block("i", number(0), param(0)),
            block("j", number(0), param(0)),
        ],
        vec![],
    );
    assert!(run(&square, 1000).is_ok());
    assert!(matches!(
        run(&square, 1 << 32),
        Err(Error::Overflow { what }) if what == "the grid of `k`"
    ));
    let argument = grid(vec![host("t")], vec![param(0).add(&param(0))]);
    assert!(run(&argument, 1 << 61).is_ok());
    assert!(matches!(
        run(&argument, 1 << 62),
        Err(Error::IndexTooLarge { .. })
    ));
}

fn check_transposing(x: View<'_>, y: View<'_>, z: ViewMut<'_>) -> Stats {
    let program = compile(transposing());
    let (n, m) = (x.shape()[0] as i64, x.shape()[1] as i64);
    program
        .run(
            &[n, m],
            &[("x", x), ("y", y)],
            &mut [("z", z)],
            &RunOptions::default(),
        )
        .unwrap()
}

#[test]
fn column_order_goes_in_and_out() {
    let (n, m) = (45, 70);
    let x = Array2::from_shape_fn((n, m).f(), |(i, j)| (100 * i + j) as i32);
    let y = Array2::from_shape_fn((m, n), |(i, j)| (i * j) as i32);
    let mut z = Array2::<i32>::zeros((n, m).f());
    let stats = check_transposing(View::from(&x), View::from(&y), ViewMut::from(&mut z));
    assert_eq!(z, &x * 10 + y.t());
    assert_eq!(stats.packed_bytes, 2 * 4 * (n * m) as u64);
}

#[test]
fn transposed_reversed_and_strided_views_go_in_and_out() {
    let (n, m) = (12, 9);
    let store = Array2::from_shape_fn((40, 40), |(i, j)| (41 * i + j) as i32);
    let x = store.slice(s![..2 * n;2, 30 - m..30;-1]);
    let y = store.slice(s![5..5 + n, 7..7 + m]).reversed_axes();
    let mut target = Array2::from_elem((3 * n, m + 4), -7);
    let z = target.slice_mut(s![..;-3, 2..m + 2]);
    check_transposing(View::from(x), View::from(y), z.into());
    let expect = &x * 10 + y.t();
    assert_eq!(target.slice(s![..;-3, 2..m + 2]), expect);
    // The memory between the elements of a view is not touched.
    assert!(target.slice(s![.., ..2]).iter().all(|v| *v == -7));
    assert!(target.slice(s![..;-3, ..]).len() < target.len());
    assert!(target.slice(s![0..;3, ..]).iter().all(|v| *v == -7));
}

/// The program writes only every other element.
#[test]
fn elements_that_are_not_written_keep_their_value_in_any_layout() {
    let program = program(
        &["N"],
        vec![],
        vec![output("z", Scalar::U16, vec![param(0)])],
        vec![kernel("k", vec![block("i", number(0), param(0))])],
        vec![launch(0, vec![])],
    );
    let code = format!(
        "void k{HEAD} {{ uint16_t *z = buffers[0]; for (int64_t i = first; i < last; i++) if (i % 2) z[i] = i; }}"
    );
    let program = compile((program, source(&code, &["k"])));
    let mut array = Array1::from_elem(10, 99u16);
    let outputs = &mut [("z", array.slice_mut(s![..;-2]).into())];
    program
        .run(&[5], &[], outputs, &RunOptions::default())
        .unwrap();
    assert_eq!(array.to_vec(), [99, 99, 99, 3, 99, 99, 99, 1, 99, 99]);
}

#[test]
fn two_halves_of_one_array_may_be_written() {
    let (program, mut source) = saxpy();
    let mut program = program;
    let mut second = program.buffers[2].clone();
    second.name = "w".to_string();
    program.buffers.push(second);
    source.code = source.code.replace(
        "z[i] = 7 * x[i] + y[i];",
        "{ z[i] = 7 * x[i] + y[i]; ((float *)buffers[3])[i] = x[i]; }",
    );
    let program = compile((program, source));
    let x = Array1::from_iter((0..8).map(|i| i as f32));
    let mut both = Array2::<f32>::zeros((8, 2));
    let (z, w) = both.multi_slice_mut((s![.., 0], s![.., 1]));
    run_saxpy(
        &program,
        &[8],
        &[("x", View::from(&x)), ("y", View::from(&x))],
        &mut [("z", z.into()), ("w", w.into())],
    )
    .unwrap();
    assert_eq!(both.column(0), &x * 8.0);
    assert_eq!(both.column(1), x);
}

#[test]
fn arrays_of_any_type_come_from_bytes() {
    let program = compile(saxpy());
    let bytes: Vec<u8> = [1f32, 2.0, 3.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let x = HostArray::from_le_bytes(Scalar::F32, &[3], &bytes).unwrap();
    let mut z = HostArray::zeros(Scalar::F32, &[3]).unwrap();
    let inputs = [("x", x.view()), ("y", x.view())];
    run_saxpy(&program, &[3], &inputs, &mut [("z", z.view_mut())]).unwrap();
    assert_eq!(z.as_slice::<f32>().unwrap(), [8.0, 16.0, 24.0]);
    let back = HostArray::from_le_bytes(Scalar::F32, &[3], &z.to_le_bytes()).unwrap();
    assert_eq!(back.as_slice::<f32>(), z.as_slice::<f32>());
}
