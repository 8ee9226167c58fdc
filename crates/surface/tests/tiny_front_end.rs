//! The front end of `docs/add-a-front-end.md`: filters as difference equations, one per line.
//!
//! `y[i] = 0.5*y[i-1] + x[i]` reads the array `x` and has the result `y`. Elements before the
//! beginning are zero.

use systola_interp::{Arrays, Data, Tensor, run_system};
use systola_ir::codes::syntax;
use systola_ir::mapping::Name;
use systola_ir::system::Module;
use systola_ir::{BinOp, Diagnostic, Scalar, Span};
use systola_lower::check_system::check_system;
use systola_surface::elaborate_module;
use systola_surface::tree::{self, Dim, Expr, ExprKind, Index, Input, Output, System, Var, Write};

/// The complete front end: parses a text, and elaborates the tree.
fn read(text: &str) -> Result<Module, Vec<Diagnostic>> {
    let (mut module, mut errors) = (tree::Module::default(), Vec::new());
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end().len();
        if end > at {
            match (Line { text, at, end }).system() {
                Ok(system) => module.systems.push(system),
                Err(error) => errors.push(error),
            }
        }
        at += line.len();
    }
    if errors.is_empty() {
        elaborate_module(module)
    } else {
        Err(errors)
    }
}

/// The rest of a line.
struct Line<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

/// `x[i-2]`.
struct Element {
    array: Name,
    shift: i128,
    span: Span,
}

impl Line<'_> {
    /// `y[i] = term + term - …`
    fn system(mut self) -> Result<System, Diagnostic> {
        let result = self.element()?;
        self.symbol("=")?;
        let mut inputs = Vec::new();
        let mut body = self.term(&result, &mut inputs)?;
        while self.at < self.end {
            let op = match self.symbol("+") {
                Ok(_) => BinOp::Add,
                Err(_) => self.symbol("-").map(|_| BinOp::Sub)?,
            };
            body = Expr::binary(op, body, self.term(&result, &mut inputs)?);
        }
        Ok(filter(&result, inputs, body))
    }

    /// `0.5 * x[i]` or `x[i]`.
    fn term(&mut self, result: &Element, inputs: &mut Vec<Name>) -> Result<Expr, Diagnostic> {
        let (number, span) = self.run(|c| c.is_ascii_digit() || c == '.');
        let factor = number.parse().ok();
        if factor.is_some() {
            self.symbol("*")?;
        }
        let element = self.element()?;
        if element.array != result.array && !inputs.contains(&element.array) {
            inputs.push(element.array.clone());
        }
        let value = element.value(result);
        Ok(match factor {
            Some(factor) => {
                let factor = Expr::new(ExprKind::Float(factor, None), span);
                Expr::binary(BinOp::Mul, factor, value)
            }
            None => value,
        })
    }

    fn element(&mut self) -> Result<Element, Diagnostic> {
        let (array, span) = self.run(char::is_alphanumeric);
        if array.is_empty() {
            return Err(expected("an array", span));
        }
        self.symbol("[")?;
        self.symbol("i")?;
        let (shift, at) = self.run(|c| c.is_ascii_digit() || "+-".contains(c));
        let shift = match shift.as_str() {
            "" => 0,
            text => text.parse().map_err(|_| expected("a distance", at))?,
        };
        let close = self.symbol("]")?;
        Ok(Element {
            array: Name { text: array, span },
            shift,
            span: span.to(close),
        })
    }

    fn symbol(&mut self, symbol: &str) -> Result<Span, Diagnostic> {
        let (_, here) = self.run(|_| false);
        if !self.text[self.at..self.end].starts_with(symbol) {
            return Err(expected(&format!("`{symbol}`"), here));
        }
        self.at += symbol.len();
        Ok(Span::new(self.at - symbol.len(), self.at))
    }

    /// Skips blanks, then reads the characters of a class.
    fn run(&mut self, is_part: impl Fn(char) -> bool) -> (String, Span) {
        let rest = &self.text[self.at..self.end];
        let start = self.at + rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at = start + length;
        (rest[..length].to_string(), Span::new(start, self.at))
    }
}

impl Element {
    /// An input is zero beyond its ends. The result has no value there, so a guard selects zero.
    fn value(self, result: &Element) -> Expr {
        let span = self.span;
        let shift = Expr::int(self.shift, span);
        let index = Expr::binary(BinOp::Add, Expr::name("i", span), shift);
        if self.array != result.array {
            return Expr::new(ExprKind::Element(self.array, vec![index]), span);
        }
        let zero = Expr::int(0, span);
        let inside = Expr::binary(BinOp::Ge, index.clone(), zero.clone());
        let before = Expr::new(ExprKind::Apply(variable(result), vec![index]), span);
        let select = ExprKind::Apply(Name::from("select"), vec![inside, before, zero]);
        Expr::new(select, span)
    }
}

/// The tree of one filter.
fn filter(result: &Element, inputs: Vec<Name>, body: Expr) -> System {
    let span = result.span;
    let int = |value| Expr::int(value, span);
    let size = || Expr::name("N", span);
    let input = |name: Name| {
        let at = name.span;
        let mut input = Input::new(name, Scalar::F64, vec![size().into()], at);
        input.outside = Some(int(0));
        input
    };
    let dim = Dim {
        name: Name::from("i"),
        range: Some((int(0), size())),
        span,
    };
    let write = Write {
        value: Expr::name(variable(result).text, span),
        index: vec![Expr::name("i", span)],
        index_span: span,
        when: None,
        span,
    };
    System {
        params: vec![Name::from("N")],
        context: vec![Expr::binary(BinOp::Ge, size(), int(1))],
        inputs: inputs.into_iter().map(input).collect(),
        index: Some(Index {
            dims: vec![dim],
            domain: Vec::new(),
            origin: span.into(),
        }),
        vars: vec![Var::new(variable(result), Scalar::F64, body, span)],
        outputs: vec![Output {
            name: result.array.clone(),
            ty: Scalar::F64.into(),
            axes: vec![size().into()],
            writes: vec![write],
            fill: None,
            origin: span.into(),
        }],
        ..System::new(result.array.clone(), span)
    }
}

/// The variable of the result. It has its own name, since all names of a system are distinct.
fn variable(result: &Element) -> Name {
    Name {
        text: format!("{}'", result.array.text),
        span: result.array.span,
    }
}

fn expected(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(&syntax::UNEXPECTED_TOKEN, span, format!("expected {what}"))
        .help("write a line as `y[i] = 0.5*y[i-1] + x[i]`")
}

/// The code block of the guide that begins with this text.
fn guide(opening: &str) -> &'static str {
    let guide = include_str!("../../../docs/add-a-front-end.md");
    let (_, rest) = guide.split_once(opening).expect("such a block");
    rest.split_once("```").expect("its end").0
}

fn filter_of_the_guide() -> Module {
    read(guide("its notation is a filter:\n\n```\n")).expect("a filter")
}

#[test]
fn a_line_is_the_system_that_the_guide_shows() {
    let printed = filter_of_the_guide().to_string();
    assert_eq!(printed, guide("```ure\n"));
}

#[test]
fn a_filter_is_legal_and_has_the_values_of_a_loop() {
    let module = filter_of_the_guide();
    let system = &module.systems[0];
    assert_eq!(check_system(system, None), []);
    let x: Vec<f64> = (0..40).map(|n| f64::from(n * n % 17)).collect();
    let mut y = vec![0.0; x.len()];
    for i in 0..x.len() {
        let back = |list: &[f64], distance| i.checked_sub(distance).map_or(0.0, |i| list[i]);
        y[i] = 0.5 * back(&y, 1) + back(&x, 0) - 0.25 * back(&x, 2);
    }
    let inputs = Arrays::from([("x".to_string(), Tensor::vector(x))]);
    let outputs = run_system(system, &[40], &inputs).expect("a run");
    assert_eq!(outputs["y"].data, Data::F64(y));
}

#[test]
fn a_filter_that_reads_its_own_future_is_refused() {
    let module = read("y[i] = y[i+1] + x[i]").expect("names and types are right");
    assert!(!check_system(&module.systems[0], None).is_empty());
}

#[test]
fn mistakes_are_told_where_they_are() {
    let check = |text: &str, expect: &[(&str, &str)]| {
        let errors = read(text).expect_err(text);
        let found: Vec<(&str, &str)> = (errors.iter())
            .map(|e| (e.code.id, &text[e.span().start as usize..][..1]))
            .collect();
        assert_eq!(found, expect, "{errors:#?}");
    };
    // These errors are found by this front end, in every line.
    let wrong = "y[i] = 2*\nz[i] = a[i] b[i]\n";
    check(wrong, &[("E0102", "\n"), ("E0102", "b")]);
    // These are found by the elaborator.
    let wrong = "y[i] = in[i]\nN[i] = x[i]\n";
    check(wrong, &[("E0105", "i"), ("E0202", "N")]);
    check("y[i] = x[i]\ny[i] = z[i]\n", &[("E0202", "y")]);
}
