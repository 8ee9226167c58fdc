//! Prints mappings as the text language writes them: reading the text again gives the same value.

use std::fmt::{self, Display, Formatter};

use crate::mapping::{
    Check, Direction, Directive, DirectiveKind, Engine, Layout, Mapping, Name, NameCond, NameExpr,
    NameExprKind, NameOp, Order, Residence, Rows, Store, StorePlace, SumStage, Transfer,
};

impl Display for Mapping {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "mapping {} of {} {{", self.name, self.system)?;
        write_directives(f, &self.directives, 1)?;
        writeln!(f, "}}")
    }
}

fn write_directives(f: &mut Formatter<'_>, list: &[Directive], depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    for directive in list {
        match &directive.kind {
            DirectiveKind::When { cond, directives } => {
                writeln!(f, "{indent}when {cond} {{")?;
                write_directives(f, directives, depth + 1)?;
                writeln!(f, "{indent}}}")?;
            }
            kind => writeln!(f, "{indent}{kind};")?,
        }
    }
    Ok(())
}

impl Display for Directive {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_directives(f, std::slice::from_ref(self), 0)
    }
}

impl Display for DirectiveKind {
    /// Without the `;`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DirectiveKind::Tile {
                dim,
                size,
                outer,
                inner,
                overlap,
                periodic,
            } => {
                write!(f, "tile {dim} by {size} as ({outer}, {inner})")?;
                if let Some((lo, hi)) = overlap {
                    write!(f, " overlap ({lo}, {hi})")?;
                }
                if *periodic {
                    write!(f, " periodic")?;
                }
                Ok(())
            }
            DirectiveKind::Place { level, forms } => {
                write!(f, "{} = {}", level.name(), one_or_tuple(forms))
            }
            DirectiveKind::Time { level, forms } => {
                write!(f, "{} = {}", level.name(), one_or_tuple(forms))
            }
            DirectiveKind::When { cond, directives } => {
                writeln!(f, "when {cond} {{")?;
                write_directives(f, directives, 1)?;
                write!(f, "}}")
            }
            DirectiveKind::Space { dims } => write!(f, "space ({})", join(dims)),
            DirectiveKind::Align { var, dims, forms } => {
                write!(f, "align {var} ({}) -> ({})", join(dims), join(forms))
            }
            DirectiveKind::Forward { input, along } => {
                write!(f, "forward {input} along {}", one_or_tuple(along))
            }
            DirectiveKind::Read { input } => write!(f, "read {input}"),
            DirectiveKind::Sum { var, stages } => {
                let stages: Vec<String> = stages.iter().map(SumStage::to_string).collect();
                write!(f, "sum {var} {}", stages.join(" then "))
            }
            DirectiveKind::Store { var, place } => match place {
                StorePlace::Chosen => write!(f, "store {var}"),
                StorePlace::In { array, index } => {
                    write!(f, "store {var} in {array}[{}]", join(index))
                }
                StorePlace::Modulo(moduli) => {
                    write!(f, "store {var} modulo ({})", join(moduli))
                }
            },
            DirectiveKind::Broadcast { var } => write!(f, "broadcast {var}"),
            DirectiveKind::Transfer(transfer) => transfer.fmt(f),
            DirectiveKind::Unroll { name, factor } => match factor {
                Some(factor) => write!(f, "unroll {name} by {factor}"),
                None => write!(f, "unroll {name}"),
            },
            DirectiveKind::Check(check) => check.fmt(f),
            DirectiveKind::Reverse { bindings } => {
                let list: Vec<String> = bindings
                    .iter()
                    .map(|(name, value)| format!("{name} = {value}"))
                    .collect();
                write!(f, "reverse ({})", list.join(", "))
            }
            DirectiveKind::Flags => write!(f, "flags"),
            DirectiveKind::LookBack => write!(f, "look_back"),
            DirectiveKind::Func {
                name,
                ty,
                args,
                residence,
            } => {
                let mut list = Vec::new();
                list.extend(ty.as_ref().map(ToString::to_string));
                if !args.is_empty() {
                    list.push(format!("({})", join(args)));
                }
                match residence {
                    Residence::Host => {}
                    Residence::Device => list.push("device".to_string()),
                }
                write!(f, "func {name}({})", list.join(", "))
            }
            DirectiveKind::MergeUres { func, others } => {
                write!(f, "{func}.merge_ures({})", join(others))
            }
            DirectiveKind::TileLoop {
                func,
                loop_name,
                outer,
                inner,
                factor,
            } => write!(f, "{func}.tile({loop_name}, {outer}, {inner}, {factor})"),
            DirectiveKind::Reorder { func, loops } => {
                write!(f, "{func}.reorder({})", join(loops))
            }
            DirectiveKind::GpuBlocks { func, loops } => {
                write!(f, "{func}.gpu_blocks({})", join(loops))
            }
            DirectiveKind::GpuThreads { func, loops } => {
                write!(f, "{func}.gpu_threads({})", join(loops))
            }
            DirectiveKind::In {
                producer,
                consumer,
                compute_at,
                store_in,
            } => {
                write!(f, "{producer}.in({consumer})")?;
                if let Some((func, at)) = compute_at {
                    write!(f, ".compute_at({func}, {at})")?;
                }
                if let Some(store) = store_in {
                    write!(f, ".store_in({store})")?;
                }
                Ok(())
            }
            DirectiveKind::SpaceTimeTransform {
                func,
                src,
                dst,
                matrix,
                reverse,
                check,
            } => {
                let rows: Vec<String> = matrix
                    .iter()
                    .map(|row| format!("({})", join(row)))
                    .collect();
                write!(
                    f,
                    "{func}.space_time_transform(({}), ({}), ({})",
                    join(src),
                    join(dst),
                    rows.join(", ")
                )?;
                if let Some(reverse) = reverse {
                    write!(f, ", reverse ({})", join(reverse))?;
                }
                if let Some(check) = check {
                    write!(f, ", {check}")?;
                }
                write!(f, ")")
            }
        }
    }
}

fn join<T: Display>(list: &[T]) -> String {
    list.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn one_or_tuple(forms: &[NameExpr]) -> String {
    match forms {
        [one] => one.to_string(),
        many => format!("({})", join(many)),
    }
}

impl fmt::Display for SumStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, names) = match self {
            SumStage::Along(dims) => ("along", dims.iter().map(directed).collect()),
            SumStage::Tree(dims) => ("tree", dims.iter().map(Name::to_string).collect::<Vec<_>>()),
        };
        match names.as_slice() {
            // `tree` alone takes all iterators.
            [] if matches!(self, SumStage::Tree(_)) => f.write_str(word),
            // After `tree` the bare word would begin the next stage.
            [one] if one == "then" => write!(f, "{word} ({one})"),
            [one] => write!(f, "{word} {one}"),
            many => write!(f, "{word} ({})", many.join(", ")),
        }
    }
}

fn directed((name, direction): &(Name, Direction)) -> String {
    match direction {
        Direction::Up => name.to_string(),
        Direction::Down => format!("-{name}"),
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Display for Transfer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "transfer {} to {}", self.source, self.store)?;
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        if self.stages != 1 {
            write!(f, " stages {}", self.stages)?;
        }
        if self.layout != Layout::default() {
            write!(f, " layout")?;
        }
        match self.layout.order {
            Order::Rows => {}
            Order::Columns => write!(f, " columns")?,
        }
        match self.layout.rows {
            Rows::Chosen => {}
            Rows::Plain => write!(f, " plain")?,
            Rows::Pad(n) => write!(f, " pad {n}")?,
            Rows::Rotate => write!(f, " rotate")?,
        }
        match self.engine {
            Engine::Plain => Ok(()),
            Engine::CpAsync => write!(f, " by cp_async"),
            Engine::Bulk => write!(f, " by bulk"),
        }
    }
}

impl Display for Store {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Store::Registers => "registers",
            Store::Shared => "shared",
            Store::Constant => "constant",
        })
    }
}

impl Display for Check {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Check::Auto => "auto",
            Check::Check => "check",
            Check::Trust => "trust",
        })
    }
}

/// How tightly index expressions bind.
mod level {
    pub const SUM: u8 = 1;
    pub const PRODUCT: u8 = 2;
    pub const UNARY: u8 = 3;
    pub const PRIMARY: u8 = 4;
}

impl Display for NameExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self, level::SUM)
    }
}

fn write_expr(f: &mut Formatter<'_>, expr: &NameExpr, least: u8) -> fmt::Result {
    let (symbol, binds) = match &expr.kind {
        NameExprKind::Int(value) if *value < 0 => ("", level::UNARY),
        NameExprKind::Int(_) | NameExprKind::Name(_) => ("", level::PRIMARY),
        NameExprKind::Neg(_) => ("-", level::UNARY),
        NameExprKind::Binary(NameOp::Add, ..) => (" + ", level::SUM),
        NameExprKind::Binary(NameOp::Sub, ..) => (" - ", level::SUM),
        NameExprKind::Binary(NameOp::Mul, ..) => ("*", level::PRODUCT),
        NameExprKind::Binary(NameOp::Div, ..) => ("/", level::PRODUCT),
        NameExprKind::Binary(NameOp::Mod, ..) => (" % ", level::PRODUCT),
    };
    if binds < least {
        f.write_str("(")?;
    }
    match &expr.kind {
        NameExprKind::Int(value) => write!(f, "{value}")?,
        NameExprKind::Name(name) => f.write_str(name)?,
        NameExprKind::Neg(inner) => {
            f.write_str(symbol)?;
            // A minus before a bare number would become part of it.
            let least = match inner.kind {
                NameExprKind::Int(_) => level::PRIMARY + 1,
                NameExprKind::Name(_) | NameExprKind::Neg(_) | NameExprKind::Binary(..) => {
                    level::UNARY
                }
            };
            write_expr(f, inner, least)?;
        }
        NameExprKind::Binary(_, left, right) => {
            write_expr(f, left, binds)?;
            f.write_str(symbol)?;
            write_expr(f, right, binds + 1)?;
        }
    }
    if binds < least {
        f.write_str(")")?;
    }
    Ok(())
}

impl Display for NameCond {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            NameCond::Cmp(rel, left, right) => write!(f, "{left} {} {right}", rel.name()),
            NameCond::And(parts) => write_parts(f, self, parts, " && "),
            NameCond::Or(parts) => write_parts(f, self, parts, " || "),
            NameCond::Not(inner) => write!(f, "!({inner})"),
        }
    }
}

fn write_parts(
    f: &mut Formatter<'_>,
    cond: &NameCond,
    parts: &[NameCond],
    op: &str,
) -> fmt::Result {
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            f.write_str(op)?;
        }
        let grouped = match (cond, part) {
            (NameCond::Or(_), NameCond::And(inner)) => inner.len() < 2,
            (_, NameCond::And(_) | NameCond::Or(_)) => true,
            (_, NameCond::Cmp(..) | NameCond::Not(_)) => false,
        };
        if grouped && parts.len() > 1 {
            write!(f, "({part})")?;
        } else {
            part.fmt(f)?;
        }
    }
    Ok(())
}
