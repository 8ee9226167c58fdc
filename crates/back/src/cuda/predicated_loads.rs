//! Loads under a condition without a branch, where a kernel's hints request them: an instruction
//! with a predicate, together with its tests in one piece of inline assembly, which the compiler
//! cannot split. Whoever compiles the source gets branches instead by defining `BRANCHES`.

use systola_ir::Scalar;
use systola_ir::form::{Cond, Rel};
use systola_ir::kernel::Access;

use crate::context::Context;
use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::File;
use crate::scalar::c_type;
use crate::simt::Guarded;

/// How `n` elements are loaded by one instruction; they are a `pack` unless there is only one.
/// `None` where there is no such instruction, or where the data may change while the kernel runs.
pub fn load_where(
    cx: &mut Context<'_>,
    from: &Access,
    element: Scalar,
    n: u32,
    pack: Option<&str>,
) -> Result<Option<Guarded>, Fault> {
    let changes = cx.usage.has_flags || cx.usage.written.contains(&from.memory);
    let Some(tests) = comparisons(&from.when).filter(|_| !changes) else {
        return Ok(None);
    };
    let Some(letter) = register_letter(element) else {
        return Ok(None);
    };
    let mut arguments = Vec::new();
    for test in &tests {
        let Cond::Cmp(_, left, right) = test else {
            unreachable!("these are comparisons")
        };
        arguments.extend([cx.form(left)?, cx.form(right)?]);
    }
    let relations: Vec<&str> = tests.iter().filter_map(relation).collect();
    let shape = Shape {
        relations: &relations,
        element,
        letter,
        n,
        pack,
    };
    let function = shape.name();
    let letters = shape.letters(&function)?;
    let letters: Vec<(char, &str)> = letters.iter().map(|(c, s)| (*c, s.as_str())).collect();
    cx.prelude
        .add(&function, File::Cuda, "load_where", &letters);
    Ok(Some(Guarded {
        function,
        arguments,
        joined: None,
    }))
}

/// The comparisons that must all hold.
fn comparisons(cond: &Cond) -> Option<Vec<Cond>> {
    let parts = match cond.balanced() {
        Cond::And(parts) => parts,
        other => vec![other],
    };
    let simple = parts.iter().all(|part| relation(part).is_some());
    simple.then_some(parts)
}

/// The relation in the assembler's spelling.
fn relation(cond: &Cond) -> Option<&'static str> {
    let Cond::Cmp(rel, ..) = cond else {
        return None;
    };
    Some(match rel {
        Rel::Ge => "ge",
        Rel::Gt => "gt",
        Rel::Le => "le",
        Rel::Lt => "lt",
        Rel::Eq => "eq",
        Rel::Ne => "ne",
    })
}

/// The constraint letter of inline assembly for registers of a type.
fn register_letter(element: Scalar) -> Option<char> {
    match element {
        Scalar::F32 => Some('f'),
        Scalar::F64 => Some('d'),
        Scalar::I32 | Scalar::U32 => Some('r'),
        Scalar::I64 | Scalar::U64 => Some('l'),
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::F16
        | Scalar::BF16 => None,
    }
}

/// The properties in which such functions differ.
struct Shape<'a> {
    relations: &'a [&'a str],
    element: Scalar,
    letter: char,
    n: u32,
    pack: Option<&'a str>,
}

impl Shape<'_> {
    fn name(&self) -> String {
        let width = match self.pack {
            None => String::new(),
            Some(_) => format!("x{}", self.n),
        };
        let relations = self.relations.join("_");
        format!("load_where_{relations}_{}{width}", self.element)
    }

    /// The letters of the function's template. Operands are numbered: the loaded values, the sides
    /// of the comparisons, the address, and the values to use where nothing is loaded.
    fn letters(&self, name: &str) -> Result<Vec<(char, String)>, Fault> {
        let Shape {
            relations,
            element,
            letter,
            n,
            pack,
        } = self;
        let (n, tests, bits) = (*n as usize, relations.len(), element.bits());
        let joined = |count: usize, text: &dyn Fn(usize) -> String, between: &str| {
            (0..count).map(text).collect::<Vec<_>>().join(between)
        };
        let part = |at: usize| match pack {
            None => "loaded".to_string(),
            Some(_) => format!("loaded.at[{at}]"),
        };
        let sides = |at: usize| format!("%{}, %{}", n + 2 * at, n + 2 * at + 1);
        let test = |at: usize| match at {
            0 => format!("setp.{}.s32 there, {};", relations[0], sides(0)),
            at => format!(
                "setp.{}.and.s32 there, {}, there;",
                relations[at],
                sides(at)
            ),
        };
        let (address, otherwise) = (n + 2 * tests, n + 2 * tests + 1);
        let registers = joined(n, &|at| format!("%{at}"), ", ");
        let (width, registers) = match n {
            1 => (format!("b{bits}"), registers),
            n => (format!("v{n}.b{bits}"), format!("{{{registers}}}")),
        };
        let holds = |at: usize| {
            let (a, b) = (Expr::atom(format!("a{at}")), Expr::atom(format!("b{at}")));
            Expr::binary(comparison(relations[at]), &a, &b)
        };
        let all = (1..tests).fold(holds(0), |all, at| Expr::binary("&&", &all, &holds(at)));
        Ok(vec![
            ('N', name.to_string()),
            ('P', pack.unwrap_or(c_type(*element)?).to_string()),
            ('T', c_type(*element)?.to_string()),
            (
                'S',
                joined(tests, &|at| format!("index_t a{at}, index_t b{at}"), ", "),
            ),
            ('C', joined(tests, &test, " ")),
            (
                'M',
                joined(n, &|at| format!("mov.b{bits} %{at}, %{otherwise};"), " "),
            ),
            (
                'L',
                format!("ld.global.nc.{width} {registers}, [%{address}];"),
            ),
            (
                'O',
                joined(n, &|at| format!("\"={letter}\"({})", part(at)), ", "),
            ),
            (
                'I',
                joined(tests, &|at| format!("\"r\"(a{at}), \"r\"(b{at})"), ", "),
            ),
            ('R', letter.to_string()),
            ('H', all.text),
            (
                'F',
                joined(n, &|at| format!("{} = otherwise;", part(at)), " "),
            ),
        ])
    }
}

/// A relation in C's spelling.
fn comparison(relation: &str) -> &'static str {
    match relation {
        "ge" => ">=",
        "gt" => ">",
        "le" => "<=",
        "lt" => "<",
        "eq" => "==",
        _ => "!=",
    }
}
