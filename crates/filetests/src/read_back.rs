//! Printed kernels, read and printed again.

use systola_ir::kernel::Program;
use systola_ir::kernel::parse::parse;

/// The canonical form of a program: the result of parsing its print. An error says which property
/// fails: it is well-formed, prints as the same text, and equals the parsed program.
pub fn read_back(program: &Program) -> Result<Program, String> {
    let text = program.to_string();
    let read = parse(&text).map_err(|error| format!("{error}\n{text}"))?;
    let wrong = read.verify();
    if !wrong.is_empty() {
        return Err(format!("{}\n{text}", wrong.join("\n")));
    }
    let again = read.to_string();
    if let Some((old, new)) = first_difference(&text, &again) {
        return Err(format!("`{old}` became `{new}`\n{text}"));
    }
    match parse(&again) {
        Ok(second) if second == read => Ok(read),
        Ok(_) => Err(format!("read twice, two programs\n{text}")),
        Err(error) => Err(format!("{error}\n{text}")),
    }
}

fn first_difference<'t>(a: &'t str, b: &'t str) -> Option<(&'t str, &'t str)> {
    let both = a.lines().zip(b.lines());
    let differing = both.into_iter().find(|(a, b)| a != b);
    differing.or((a != b).then_some(("more lines", "less")))
}
