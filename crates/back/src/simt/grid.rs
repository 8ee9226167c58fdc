//! The coordinates of a block from its position in the grid.
//!
//! The last coordinate is the position along x. All others are linearised along y and continue in
//! the next layer along z; the last layer may have more blocks than needed, which end at once. The
//! last row of blocks runs first, and the first row second: blocks at the edges have more work, and
//! blocks that start late finish late.

use systola_ir::DimId;
use systola_ir::form::Form;
use systola_ir::kernel::VarKind;

use crate::context::{Context, Named};
use crate::error::Fault;
use crate::expr::Expr;
use crate::index::number;

/// How a language names the position of a block.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The position along x.
    pub column: &'static str,
    /// The number of its row, counted through all layers.
    pub row: &'static str,
}

/// Declares the coordinates of the block.
pub fn block_coordinates(cx: &mut Context<'_>, grid: Grid) -> Result<Vec<String>, Fault> {
    let vars: Vec<DimId> = cx
        .kernel
        .vars_where(|k| matches!(k, VarKind::Block { .. }))
        .collect();
    let mut lines = Vec::new();
    let Some((last, others)) = vars.split_last() else {
        return Ok(lines);
    };
    let lo = block_start(cx, &mut lines, *last)?;
    block_coordinate(cx, &mut lines, *last, &lo, &Expr::atom(grid.column));
    if others.is_empty() {
        return Ok(lines);
    }
    let mut starts = Vec::new();
    let mut extents = Vec::new();
    for var in others {
        let lo = block_start(cx, &mut lines, *var)?;
        extents.push(block_extent(cx, &mut lines, *var, &lo)?);
        starts.push(lo);
    }
    // The row number without the coordinates that have been split off. The grid has layers of whole
    // rows.
    let mut rest = Expr::atom(cx.names.claim("rest"));
    lines.push(format!("const unsigned {} = {};", rest.text, grid.row));
    let unsigned = |e: &Expr| Expr::cast("unsigned", e);
    let count = (extents.iter().skip(1)).fold(unsigned(&extents[0]), |product, extent| {
        Expr::binary("*", &product, &unsigned(extent))
    });
    let beyond = Expr::binary(">=", &rest, &count);
    lines.push(format!("if ({})", beyond.text));
    lines.push("    return;".to_string());
    if !cx.usage.has_flags {
        let row = cx.names.claim("row");
        let one = number(1)?;
        let before = Expr::binary("-", &rest, &one);
        let first = Expr::binary("==", &rest, &number(0)?);
        let own = Expr::ternary(&first, &Expr::binary("-", &count, &one), &before);
        lines.push(format!("const unsigned {row} = {};", own.text));
        rest = Expr::atom(row);
    }
    for (n, var) in others.iter().enumerate().rev() {
        let mut own = rest.clone();
        if n > 0 {
            // Both are unsigned, since unsigned division is faster.
            let divisor = unsigned(&extents[n]);
            own = Expr::binary("%", &rest, &divisor);
            let next = cx.names.claim("rest");
            let quotient = Expr::binary("/", &rest, &divisor);
            lines.push(format!("const unsigned {next} = {};", quotient.text));
            rest = Expr::atom(next);
        }
        block_coordinate(cx, &mut lines, *var, &starts[n], &own);
    }
    Ok(lines)
}

fn block_range<'k>(cx: &Context<'k>, var: DimId) -> (&'k [Form], &'k [Form]) {
    match &cx.kernel.vars[var.index()].kind {
        VarKind::Block { lo, hi } => (lo, hi),
        VarKind::Host | VarKind::Warp | VarKind::Lane | VarKind::Loop | VarKind::DynamicBlock => {
            unreachable!("it was chosen as a block's coordinate")
        }
    }
}

fn block_start(cx: &mut Context<'_>, lines: &mut Vec<String>, var: DimId) -> Result<Expr, Fault> {
    let (lo, _) = block_range(cx, var);
    let name = format!("{}_lo", cx.dims[var.index()].name);
    named(cx, lines, &name, |cx| cx.extremum(lo, true))
}

fn block_extent(
    cx: &mut Context<'_>,
    lines: &mut Vec<String>,
    var: DimId,
    lo: &Expr,
) -> Result<Expr, Fault> {
    let (_, hi) = block_range(cx, var);
    if let Some(extent) = extent_of(lo.text.as_str(), hi) {
        return Ok(Expr::number(extent.to_string()));
    }
    let name = format!("{}_extent", cx.dims[var.index()].name);
    named(cx, lines, &name, |cx| {
        let hi = cx.extremum(hi, false)?;
        Ok(match lo.text.as_str() {
            "0" => hi,
            _ => Expr::binary("-", &hi, lo),
        })
    })
}

/// Declares a coordinate as the sum of its start and its number, if it is mentioned.
fn block_coordinate(
    cx: &Context<'_>,
    lines: &mut Vec<String>,
    var: DimId,
    lo: &Expr,
    number: &Expr,
) {
    let Named { name, used } = &cx.dims[var.index()];
    if *used {
        let number = Expr::cast("index_t", number);
        let value = match lo.text.as_str() {
            "0" => number,
            _ => Expr::binary("+", lo, &number),
        };
        lines.push(format!("const index_t {name} = {};", value.text));
    }
}

/// The extent of a coordinate that starts at 0, if it is a number.
fn extent_of(lo: &str, hi: &[Form]) -> Option<i128> {
    match hi {
        [hi] if lo == "0" => hi.as_constant(),
        _ => None,
    }
}

/// An expression under a name, unless it is as short as a name.
fn named<'a>(
    cx: &mut Context<'a>,
    lines: &mut Vec<String>,
    wanted: &str,
    print: impl FnOnce(&mut Context<'a>) -> Result<Expr, Fault>,
) -> Result<Expr, Fault> {
    let e = print(cx)?;
    if e.is_word() {
        return Ok(e);
    }
    let name = cx.names.claim(wanted);
    lines.push(format!("const index_t {name} = {};", e.text));
    Ok(Expr::atom(name))
}
