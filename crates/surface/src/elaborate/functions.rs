//! Rejects recursive functions: calls are inlined.

use systola_ir::codes::{syntax, types};
use systola_ir::system::Function;
use systola_ir::{Diagnostic, FnId, Span};

use super::Errors;

/// The maximum length of a chain of calls.
const MAX_CALLS: usize = 64;

#[derive(Clone, Copy)]
enum Mark {
    New,
    Open,
    /// Visited, with the length of the longest chain of calls below it.
    Done(usize),
}

/// `calls[f]`: the functions that f calls, and the location of each call.
pub fn check_calls(functions: &[Function], calls: &[Vec<(FnId, Span)>], errors: &mut Errors) {
    let mut marks = vec![Mark::New; functions.len()];
    for root in 0..functions.len() {
        if !matches!(marks[root], Mark::New) {
            continue;
        }
        marks[root] = Mark::Open;
        // For each function on the path: its index, the next call to visit, and the longest chain
        // so far.
        let mut path = vec![(root, 0usize, 0usize)];
        while let Some((function, next, longest)) = path.last_mut() {
            let Some((callee, span)) = calls.get(*function).and_then(|c| c.get(*next)).copied()
            else {
                let (function, longest) = (*function, *longest);
                marks[function] = Mark::Done(longest);
                path.pop();
                if let Some((_, _, above)) = path.last_mut() {
                    *above = (*above).max(longest + 1);
                }
                continue;
            };
            *next += 1;
            let callee = callee.index();
            match marks.get(callee).copied() {
                Some(Mark::New) => {
                    marks[callee] = Mark::Open;
                    path.push((callee, 0, 0));
                }
                Some(Mark::Open) => {
                    let cycle: Vec<&str> = path
                        .iter()
                        .map(|(f, ..)| *f)
                        .skip_while(|f| *f != callee)
                        .chain([callee])
                        .map(|f| functions[f].name.as_str())
                        .collect();
                    errors.report(recursive(&cycle, span));
                }
                Some(Mark::Done(below)) => {
                    *longest = (*longest).max(below + 1);
                    if *longest > MAX_CALLS {
                        *longest = 0;
                        errors.report(
                            Diagnostic::new(
                                &syntax::TOO_LARGE,
                                span,
                                format!(
                                    "more than {MAX_CALLS} functions call one another in a row"
                                ),
                            )
                            .help("join some of them"),
                        );
                    }
                }
                None => {}
            }
        }
    }
    // The loop above checks chains that end in a visited function; the others are checked here.
    let deep = marks
        .iter()
        .zip(functions)
        .find(|(mark, _)| matches!(mark, Mark::Done(longest) if *longest > MAX_CALLS));
    if let Some((_, function)) = deep {
        errors.report(
            Diagnostic::new(
                &syntax::TOO_LARGE,
                function.span,
                format!(
                    "more than {MAX_CALLS} functions call one another in a row below `{}`",
                    function.name
                ),
            )
            .help("join some of them"),
        );
    }
}

fn recursive(cycle: &[&str], span: Span) -> Diagnostic {
    let shown = if cycle.len() <= 8 {
        cycle.join(" → ")
    } else {
        format!(
            "{} → … → {}",
            cycle[..4].join(" → "),
            cycle[cycle.len() - 1]
        )
    };
    Diagnostic::new(
        &types::RECURSIVE_FUNCTION,
        span,
        format!("functions are not recursive: {shown}"),
    )
    .help("recurrences are equations: make it a `var` that reads itself at an earlier point")
}
