//! `systola explain`: explains a code.

use systola_ir::codes;
use systola_ir::diag::Kind;

use crate::source::{Failure, Outcome, Status};
use crate::table::Table;
use crate::term::{self, Paint};

/// Explain the code of a diagnostic, with an example and the way out
///
/// Without a code: a list of all of them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// For instance E0501
    code: Option<String>,
    /// All codes as one page in Markdown
    #[arg(long, conflicts_with = "code")]
    markdown: bool,
}

pub fn run(args: &Args) -> Outcome {
    if args.markdown {
        term::print(codes::page::page());
        return Ok(Status::Done);
    }
    let Some(id) = &args.code else {
        let mut table = Table::left(0);
        for code in codes::all() {
            table.row([code.id, code.title]);
        }
        term::print(table.render());
        return Ok(Status::Done);
    };
    let code = codes::find(id).ok_or_else(|| {
        Failure::new(format!("there is no code `{id}`")).help("`systola explain` lists all codes")
    })?;
    let kind = match code.kind {
        Kind::Mistake => "a mistake in the program or in how it is run",
        Kind::Limitation => "a known limitation of this version",
        Kind::Hint => "a hint: nothing is wrong",
    };
    term::print(format!(
        "{}\n{}\n\n{}\n",
        Paint::Bold.out(format!("{}: {}", code.id, code.title)),
        Paint::Dim.out(kind),
        code.explain.trim()
    ));
    Ok(Status::Done)
}
