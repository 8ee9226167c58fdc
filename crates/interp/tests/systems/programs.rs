//! Outputs of one system feed inputs of another.

use systola_interp::{Tensor, run_program};
use systola_ir::system::{Axis, Input, InputKind, Module, Param, Program, Source, Stage};
use systola_ir::{Form, InputId, Scalar, Span};

use crate::builder::*;

fn blur_twice() -> Module {
    let input = |name: &str, hi: Form| Input {
        name: name.into(),
        ty: Scalar::F32,
        kind: InputKind::Array,
        axes: vec![Axis {
            lo: Form::from(0),
            hi,
        }],
        outside: None,
        span: Span::NONE,
    };
    let stage = |name: &str, shrink: i128, x: Source| Stage {
        name: name.into(),
        system: 0,
        args: vec![param(0).plus(-shrink), Form::from(3)],
        inputs: vec![(InputId(0), x), (InputId(1), Source::Input(1))],
        span: Span::NONE,
    };
    let first = Source::Output {
        stage: 0,
        output: 0,
    };
    let program = Program {
        name: "blur_twice".into(),
        params: vec![Param {
            name: "N".into(),
            span: Span::NONE,
        }],
        context: vec![le(8, param(0))],
        inputs: vec![input("x", param(0)), input("w", Form::from(3))],
        stages: vec![
            stage("first", 2, Source::Input(0)),
            stage("second", 4, first),
        ],
        outputs: vec![(
            "y".into(),
            Source::Output {
                stage: 1,
                output: 0,
            },
        )],
        span: Span::NONE,
    };
    Module {
        systems: vec![conv1d(Scalar::F32).system],
        programs: vec![program],
        ..Module::default()
    }
}

#[test]
fn stages_hand_on_their_outputs() {
    let module = blur_twice();
    let program = &module.programs[0];
    let x: Vec<f32> = (0..12).map(|n| (n * n % 5) as f32).collect();
    let w = [1.0, 2.0, 0.5];
    let conv = |x: &[f32]| -> Vec<f32> {
        x.windows(3)
            .map(|v| v[0] * w[0] + v[1] * w[1] + v[2] * w[2])
            .collect()
    };
    let expect = Tensor::vector(conv(&conv(&x)));
    let (x, w) = (Tensor::vector(x), Tensor::vector(w.to_vec()));
    let out = run_program(&module, program, &[12], &arrays(&[("x", &x), ("w", &w)])).unwrap();
    assert_eq!(out["y"], expect);

    let run = |params: &[i128], inputs: &[(&str, &Tensor)]| {
        run_program(&module, program, params, &arrays(inputs))
            .unwrap_err()
            .code
            .id
    };
    assert_eq!(run(&[7], &[]), "E0603");
    assert_eq!(run(&[12], &[("x", &x)]), "E0604");
    assert_eq!(run(&[13], &[("x", &x), ("w", &w)]), "E0606");
    assert_eq!(run(&[12], &[("z", &x)]), "E0605");
}
