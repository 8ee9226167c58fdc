//! Shared helpers: parsed files, points of domains, arrays in and out of the interpreters.

use std::collections::{BTreeMap, BTreeSet};

use systola_filetests::gallery::{self, Algorithm, Coefficient, Design, File};
use systola_filetests::reference::Reference;
use systola_filetests::tensor::{Array, Arrays, Params, Rng, Tensor};
use systola_front::text::parse_module;
use systola_interp as interp;
use systola_ir::Scalar;
use systola_ir::mapping::{Mapping, NameExpr, NameExprKind, NameOp};
use systola_ir::system::{Expr, Module, System, visit};

pub fn parse(file: &File) -> Module {
    parse_module(&file.text).unwrap_or_else(|errors| {
        let list: Vec<String> = errors
            .iter()
            .map(|e| {
                let line = file.text[..e.span().range().start].lines().count();
                format!("{}:{line}: {e}", file.path)
            })
            .collect();
        panic!("{}", list.join("\n"))
    })
}

pub fn system<'m>(module: &'m Module, name: &str) -> &'m System {
    let found = module.systems.iter().find(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no system `{name}`"))
}

pub fn mapping<'m>(module: &'m Module, name: &str) -> &'m Mapping {
    let found = module.mappings.iter().find(|m| m.name == name);
    found.unwrap_or_else(|| panic!("no mapping `{name}`"))
}

/// The fifty algorithms with their parsed files.
pub fn algorithms() -> Vec<(Algorithm, File, Module)> {
    let mut files: BTreeMap<String, File> = gallery::files()
        .into_iter()
        .map(|f| (f.path.clone(), f))
        .collect();
    gallery::algorithms()
        .into_iter()
        .map(|algorithm| {
            let file = files.remove(&algorithm.file);
            let file = file.unwrap_or_else(|| panic!("{} is missing", algorithm.file));
            let module = parse(&file);
            (algorithm, file, module)
        })
        .collect()
}

/// The parameters in the order of the system.
pub fn ordered(system: &System, params: &Params) -> Vec<i128> {
    let value = |name: &String| i128::from(params.0[name]);
    system.param_names().iter().map(value).collect()
}

/// Every point of the domain, by trying a box that is large enough for all of the gallery.
pub fn points(system: &System, params: &Params) -> Vec<Vec<i128>> {
    let largest = params.0.values().copied().max().unwrap_or(1);
    let (cond, values) = (system.domain_cond(), ordered(system, params));
    let mut points = vec![Vec::new()];
    for _ in &system.dims {
        points = points
            .into_iter()
            .flat_map(|p| {
                (0..=2 * i128::from(largest)).map(move |x| {
                    let mut p = p.clone();
                    p.push(x);
                    p
                })
            })
            .collect();
    }
    points.retain(|p| cond.eval(&values, p).expect("small numbers"));
    points
}

pub fn dot(row: &[Coefficient], params: &Params, z: &[i128]) -> i128 {
    let terms = row.iter().zip(z);
    terms.map(|(c, x)| i128::from(c.eval(params)) * x).sum()
}

pub fn place(design: &Design, params: &Params, z: &[i128]) -> Vec<i128> {
    design.p.iter().map(|row| dot(row, params, z)).collect()
}

/// For each variable, the distances other than 0 at which it is read.
pub fn distances(system: &System, params: &Params) -> BTreeMap<String, BTreeSet<Vec<i128>>> {
    let values = ordered(system, params);
    let mut found: BTreeMap<String, BTreeSet<Vec<i128>>> = BTreeMap::new();
    for var in &system.vars {
        visit::walk(&var.body, &mut |expr| {
            let Expr::Var { var, index, .. } = expr else {
                return;
            };
            let e = system.distance(index).expect("uniform");
            if e.iter().all(|c| c.is_zero()) {
                return;
            }
            let e = e
                .iter()
                .map(|c| c.eval(&values).expect("small numbers"))
                .collect();
            let name = system.vars[var.index()].name.clone();
            found.entry(name).or_default().insert(e);
        });
    }
    found
}

/// A form of a mapping at a point.
pub fn eval(expr: &NameExpr, names: &BTreeMap<String, i128>) -> i128 {
    match &expr.kind {
        NameExprKind::Int(value) => *value,
        NameExprKind::Name(name) => names[name],
        NameExprKind::Neg(a) => -eval(a, names),
        NameExprKind::Binary(op, a, b) => {
            let (a, b) = (eval(a, names), eval(b, names));
            match op {
                NameOp::Add => a + b,
                NameOp::Sub => a - b,
                NameOp::Mul => a * b,
                NameOp::Div => a.div_euclid(b),
                NameOp::Mod => a.rem_euclid(b),
            }
        }
    }
}

/// The sizes at which a system is tried: those given, then those of `designs.json`.
pub fn sizes(
    reference: &Reference,
    system: &System,
    algorithm: Option<&Algorithm>,
) -> BTreeSet<Params> {
    let names = system.param_names();
    let given = reference.sizes.iter().map(|values| {
        assert_eq!(values.len(), names.len(), "{}", reference.file);
        Params(names.iter().cloned().zip(values.iter().copied()).collect())
    });
    let designs = algorithm.iter().flat_map(|a| &a.designs);
    let stated = designs.flat_map(|d| &d.checked).map(|c| c.params.clone());
    given.chain(stated).collect()
}

pub fn to_interp(system: &System, arrays: &Arrays) -> interp::Arrays {
    let convert = |(name, array): (&String, &Array)| {
        let input = system
            .find_input(name)
            .unwrap_or_else(|| panic!("no input `{name}`"));
        let data: interp::Data = match (system.inputs[input.index()].ty, array) {
            (Scalar::F32, Array::Float(t)) => {
                t.data.iter().map(|x| *x as f32).collect::<Vec<_>>().into()
            }
            (Scalar::F64, Array::Float(t)) => t.data.clone().into(),
            (Scalar::U8, Array::Int(t)) => {
                t.data.iter().map(|x| *x as u8).collect::<Vec<_>>().into()
            }
            (Scalar::I16, Array::Int(t)) => {
                t.data.iter().map(|x| *x as i16).collect::<Vec<_>>().into()
            }
            (Scalar::I32, Array::Int(t)) => {
                t.data.iter().map(|x| *x as i32).collect::<Vec<_>>().into()
            }
            (Scalar::I64, Array::Int(t)) => t.data.clone().into(),
            (ty, _) => panic!("the reference of `{name}` is no {ty}"),
        };
        let tensor = interp::Tensor::new(array.shape().to_vec(), data).expect("its own shape");
        (name.clone(), tensor)
    };
    arrays.0.iter().map(convert).collect()
}

pub fn from_interp(arrays: &interp::Arrays) -> Arrays {
    let convert = |(name, tensor): (&String, &interp::Tensor)| {
        let shape = tensor.shape.clone();
        let values = (0..tensor.data.len()).map(|at| tensor.data.get(at).expect("in range"));
        let array = if tensor.ty().is_float() {
            let data = values.map(|v| v.as_float().expect("a float")).collect();
            Array::Float(Tensor { shape, data })
        } else {
            let data = values
                .map(|v| match v {
                    interp::Value::Bool(b) => i64::from(b),
                    other => other.as_int().expect("an integer") as i64,
                })
                .collect();
            Array::Int(Tensor { shape, data })
        };
        (name.clone(), array)
    };
    Arrays(arrays.iter().map(convert).collect())
}

/// Integers equal, floats within the tolerance times the largest magnitude in the array.
pub fn assert_close(got: &Arrays, want: &Arrays, tolerance: f64, context: &str) {
    let names = |a: &Arrays| a.0.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(got), names(want), "{context}: the outputs");
    for (name, want) in &want.0 {
        let got = &got.0[name];
        assert_eq!(
            got.shape(),
            want.shape(),
            "{context}: the shape of `{name}`"
        );
        let (Array::Float(g), Array::Float(w)) = (got, want) else {
            assert_eq!(got, want, "{context}: `{name}`");
            continue;
        };
        let finite = w.data.iter().filter(|x| x.is_finite());
        let scale = finite.fold(1f64, |scale, x| scale.max(x.abs()));
        for (at, (x, y)) in g.data.iter().zip(&w.data).enumerate() {
            let close = x == y || (x - y).abs() <= tolerance * scale;
            assert!(close, "{context}: `{name}` at {at} is {x}, should be {y}");
        }
    }
}

/// Inputs that depend on the file and the sizes alone.
pub fn seeded(reference: &Reference, params: &Params) -> Arrays {
    let mut seed = 0xcbf2_9ce4_8422_2325u64;
    for byte in format!("{} {:?}", reference.file, params).bytes() {
        seed = (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    (reference.inputs)(params, &mut Rng::new(seed))
}
