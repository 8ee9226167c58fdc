//! Prints modules, systems and programs as the text language writes them.
//!
//! Reading the text again gives the same value, for every module that a text can describe: forms
//! are canonical, a `select` whose condition depends only on the position is a guard, and locals
//! and bound iterators are numbered in the order in which they are written.

use std::fmt::{self, Display, Formatter};

use crate::form::{Cond, Form};
use crate::id::VarId;
use crate::scalar::{Literal, Scalar};
use crate::system::{
    Axis, Dim, Expr, Function, Input, InputKind, Law, Module, Output, Param, Program, Source,
    System, Var, Write,
};

pub(crate) mod expr;

pub use expr::display_expr;

/// The names of a system, collected once.
struct Names {
    params: Vec<String>,
    /// Those bound by `reduce` come after those of the index space.
    dims: Vec<String>,
}

/// Lines longer than this are broken where there is a natural place.
const WIDTH: usize = 100;

impl Display for Module {
    /// Systems, then mappings, then programs.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut items: Vec<String> = self.systems.iter().map(System::to_string).collect();
        items.extend(self.mappings.iter().map(ToString::to_string));
        items.extend(
            self.programs
                .iter()
                .map(|p| p.display(&self.systems).to_string()),
        );
        f.write_str(&items.join("\n"))
    }
}

impl Display for System {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = self.names();
        let Names { params, dims } = &names;
        write_head(f, "system", &self.name, &self.params, &self.context)?;
        for constant in &self.consts {
            let value = display_literal(constant.value);
            writeln!(f, "  const {}: {} = {value};", constant.name, constant.ty)?;
        }
        for input in &self.inputs {
            write_input(f, input, params)?;
        }
        for function in &self.functions {
            self.write_function(f, function, &names)?;
        }
        if let Some(batch) = &self.batch {
            let (lo, hi) = &batch.range;
            write!(
                f,
                "  batch {} in {}..{}",
                batch.name,
                lo.display(params, &[]),
                hi.display(params, &[])
            )?;
            if !batch.shared.is_empty() {
                let shared = batch
                    .shared
                    .iter()
                    .map(|id| match self.inputs.get(id.index()) {
                        Some(input) => input.name.clone(),
                        None => format!("input{}", id.index()),
                    });
                write!(f, " shared({})", shared.collect::<Vec<_>>().join(", "))?;
            }
            writeln!(f, ";")?;
        }
        if !self.dims.is_empty() {
            let list: Vec<String> = self
                .dims
                .iter()
                .map(|dim| display_dim(dim, params, dims))
                .collect();
            write!(f, "  index {}", list.join(", "))?;
            if !self.domain.is_empty() {
                write!(f, " where {}", join_conds(&self.domain, params, dims))?;
            }
            writeln!(f, ";")?;
        }
        for (n, var) in self.vars.iter().enumerate() {
            let seen = self.around(VarId::from(n));
            let names = seen.names();
            seen.write_var(f, var, &names)?;
        }
        for output in &self.outputs {
            self.write_output(f, output)?;
        }
        writeln!(f, "}}")
    }
}

impl System {
    fn names(&self) -> Names {
        Names {
            params: self.param_names(),
            dims: self.dim_names(),
        }
    }

    fn write_function(
        &self,
        f: &mut Formatter<'_>,
        function: &Function,
        names: &Names,
    ) -> fmt::Result {
        let params: Vec<String> = function
            .params
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        let head = format!(
            "fn {}({}) -> {}{} =",
            function.name,
            params.join(", "),
            function.result,
            display_law(function.law)
        );
        let locals = function
            .params
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        self.write_equation(f, &head, &function.body, locals, names)
    }

    fn write_var(&self, f: &mut Formatter<'_>, var: &Var, names: &Names) -> fmt::Result {
        let mut head = format!("var {}", var.name);
        if let Some(dims) = &var.own {
            let Names { params, dims: all } = names;
            let list: Vec<String> = dims.iter().map(|d| display_dim(d, params, all)).collect();
            head.push_str(&format!("({})", list.join(", ")));
        }
        head.push_str(&format!(": {}{}", var.ty, display_law(var.law)));
        if !var.on.is_empty() {
            head.push_str(" on ");
            head.push_str(&join_conds(&var.on, &names.params, &names.dims));
        }
        head.push_str(" =");
        self.write_equation(f, &head, &var.body, Vec::new(), names)
    }

    /// Prints the body beside the head where it fits, and below it otherwise; every `let` has its
    /// own line.
    fn write_equation(
        &self,
        f: &mut Formatter<'_>,
        head: &str,
        body: &Expr,
        locals: Vec<String>,
        names: &Names,
    ) -> fmt::Result {
        let lines = expr::body_lines(self, names, body, locals);
        if let [line] = lines.as_slice()
            && head.len() + line.len() + 4 <= WIDTH
        {
            return writeln!(f, "  {head} {line};");
        }
        writeln!(f, "  {head}")?;
        writeln!(f, "      {};", lines.join("\n      "))
    }

    fn write_output(&self, f: &mut Formatter<'_>, output: &Output) -> fmt::Result {
        let axes = join_axes(&output.axes, &self.param_names());
        let head = format!("  output {}[{axes}]: {} =", output.name, output.ty);
        let writes: Vec<String> = output
            .writes
            .iter()
            .map(|w| {
                let seen = self.around_write(w);
                seen.display_write(w, &seen.names())
            })
            .collect();
        let fill = match output.fill {
            Some(value) => format!(" else {}", display_literal(value)),
            None => String::new(),
        };
        let flat = format!("{head} {}{fill};", writes.join(", "));
        if flat.len() <= WIDTH && !flat.contains('\n') {
            return writeln!(f, "{flat}");
        }
        writeln!(f, "{head}\n      {}{fill};", writes.join(",\n      "))
    }

    fn display_write(&self, write: &Write, names: &Names) -> String {
        let Names { params, dims } = names;
        let value = expr::body_lines(self, names, &write.value, Vec::new()).join("\n      ");
        let index = join_forms(&write.index, params, dims);
        match &write.when {
            Cond::Const(true) => format!("{value} at [{index}]"),
            when @ (Cond::Const(false)
            | Cond::Cmp(..)
            | Cond::And(_)
            | Cond::Or(_)
            | Cond::Not(_)) => {
                format!("{value} at [{index}] when {}", when.display(params, dims))
            }
        }
    }
}

impl Program {
    /// Prints with the names that the systems of its module give to parameters, inputs and outputs.
    pub fn display<'a>(&'a self, systems: &'a [System]) -> impl Display + 'a {
        fmt::from_fn(move |f| self.write(systems, f))
    }

    fn write(&self, systems: &[System], f: &mut Formatter<'_>) -> fmt::Result {
        let params: Vec<String> = self.params.iter().map(|p| p.name.clone()).collect();
        write_head(f, "program", &self.name, &self.params, &self.context)?;
        for input in &self.inputs {
            write_input(f, input, &params)?;
        }
        for stage in &self.stages {
            let system = systems.get(stage.system);
            let args: Vec<String> = stage
                .args
                .iter()
                .enumerate()
                .map(|(n, arg)| {
                    let name = system
                        .and_then(|s| s.params.get(n))
                        .map_or_else(|| format!("p{n}"), |p| p.name.clone());
                    format!("{name} = {}", arg.display(&params, &[]))
                })
                .collect();
            let inputs: Vec<String> = stage
                .inputs
                .iter()
                .map(|(id, source)| {
                    let name = system
                        .and_then(|s| s.inputs.get(id.index()))
                        .map_or_else(|| format!("input{}", id.index()), |i| i.name.clone());
                    format!("{name} = {}", self.source_name(*source, systems))
                })
                .collect();
            let name = system.map_or_else(|| format!("system{}", stage.system), |s| s.name.clone());
            writeln!(
                f,
                "  {} = {name}({})({});",
                stage.name,
                args.join(", "),
                inputs.join(", ")
            )?;
        }
        for (name, source) in &self.outputs {
            writeln!(
                f,
                "  output {name} = {};",
                self.source_name(*source, systems)
            )?;
        }
        writeln!(f, "}}")
    }

    fn source_name(&self, source: Source, systems: &[System]) -> String {
        match source {
            Source::Input(n) => self
                .inputs
                .get(n)
                .map_or_else(|| format!("input{n}"), |i| i.name.clone()),
            Source::Output { stage, output } => {
                let from = self.stages.get(stage);
                let name = from
                    .and_then(|s| systems.get(s.system))
                    .and_then(|s| s.outputs.get(output))
                    .map_or_else(|| format!("output{output}"), |o| o.name.clone());
                let stage = from.map_or_else(|| format!("stage{stage}"), |s| s.name.clone());
                format!("{stage}.{name}")
            }
        }
    }
}

impl Display for Program {
    /// Without its systems, parameters, inputs and outputs are known only by position; see
    /// [`Program::display`].
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(&[], f)
    }
}

fn write_head(
    f: &mut Formatter<'_>,
    keyword: &str,
    name: &str,
    params: &[Param],
    context: &[Cond],
) -> fmt::Result {
    let names: Vec<String> = params.iter().map(|p| p.name.clone()).collect();
    write!(f, "{keyword} {name}({})", names.join(", "))?;
    if !context.is_empty() {
        write!(f, " where {}", join_conds(context, &names, &[]))?;
    }
    writeln!(f, " {{")
}

fn write_input(f: &mut Formatter<'_>, input: &Input, params: &[String]) -> fmt::Result {
    let (keyword, data) = match &input.kind {
        InputKind::Array => ("input", None),
        InputKind::Table { data } => ("table", data.as_ref()),
    };
    let axes = join_axes(&input.axes, params);
    write!(f, "  {keyword} {}[{axes}]: {}", input.name, input.ty)?;
    if let Some(value) = input.outside {
        write!(f, " else {}", display_literal(value))?;
    }
    if let Some(data) = data {
        let extents: Vec<i128> = input
            .axes
            .iter()
            .map(|axis| axis.hi.sub(&axis.lo).as_constant().unwrap_or(0).max(0))
            .collect();
        write!(f, " = ")?;
        write_data(f, &extents, &mut data.iter())?;
    }
    writeln!(f, ";")
}

/// Prints row-major contents as nested rows.
fn write_data(
    f: &mut Formatter<'_>,
    extents: &[i128],
    data: &mut std::slice::Iter<'_, Literal>,
) -> fmt::Result {
    let Some((extent, inner)) = extents.split_first() else {
        return match data.next() {
            Some(value) => f.write_str(&display_literal(*value)),
            None => Ok(()),
        };
    };
    f.write_str("[")?;
    let mut n = 0;
    // Printing ends even where the contents of a table do not match its axes.
    while n < *extent && (data.len() > 0 || inner.contains(&0)) && n < 1 << 24 {
        if n > 0 {
            f.write_str(", ")?;
        }
        write_data(f, inner, data)?;
        n += 1;
    }
    f.write_str("]")
}

fn display_law(law: Law) -> &'static str {
    match law {
        Law::Fixed => "",
        Law::Associative => " associative",
        Law::Reorderable => " reorderable",
    }
}

fn display_dim(dim: &Dim, params: &[String], dims: &[String]) -> String {
    match &dim.range {
        Some((lo, hi)) => format!(
            "{} in {}..{}",
            dim.name,
            lo.display(params, dims),
            hi.display(params, dims)
        ),
        None => dim.name.clone(),
    }
}

fn join_axes(axes: &[Axis], params: &[String]) -> String {
    let list: Vec<String> = axes
        .iter()
        .map(|axis| {
            let hi = axis.hi.display(params, &[]);
            if axis.lo.as_constant() == Some(0) {
                hi.to_string()
            } else {
                format!("{}..{hi}", axis.lo.display(params, &[]))
            }
        })
        .collect();
    list.join(", ")
}

fn join_forms(forms: &[Form], params: &[String], dims: &[String]) -> String {
    let list: Vec<String> = forms
        .iter()
        .map(|form| form.display(params, dims).to_string())
        .collect();
    list.join(", ")
}

fn join_conds(conds: &[Cond], params: &[String], dims: &[String]) -> String {
    let list: Vec<String> = conds
        .iter()
        .map(|cond| cond.display(params, dims).to_string())
        .collect();
    list.join(", ")
}

/// Prints a literal without a type; a NaN keeps its sign.
pub(crate) fn display_literal(literal: Literal) -> String {
    match literal {
        Literal::Float(x) if x.is_nan() => {
            if x.is_sign_negative() { "-nan" } else { "nan" }.to_string()
        }
        Literal::Bool(_) | Literal::Int(_) | Literal::Float(_) => literal.to_string(),
    }
}

/// Prints a literal with its type as a suffix.
fn display_typed(ty: Scalar, literal: Literal) -> String {
    let text = display_literal(literal);
    match literal {
        Literal::Bool(_) => text,
        Literal::Int(_) => format!("{text}{ty}"),
        Literal::Float(x) if x.is_finite() => format!("{text}{ty}"),
        Literal::Float(_) => format!("{text}_{ty}"),
    }
}

/// Is it the type of a literal that its context does not determine?
fn is_default(ty: Scalar, literal: Literal) -> bool {
    match literal {
        Literal::Bool(_) => true,
        Literal::Int(_) => ty == Scalar::I64,
        Literal::Float(_) => ty == Scalar::F64,
    }
}
