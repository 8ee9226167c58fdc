//! The table of front ends, and which of them reads a file.

use std::path::Path;

use systola_ir::Diagnostic;
use systola_ir::system::Module;

/// A notation that source files are written in.
#[derive(Clone, Copy, Debug)]
pub struct FrontEnd {
    pub name: &'static str,
    /// The file extensions of the notation, in lower case.
    pub extensions: &'static [&'static str],
    pub read: fn(&str) -> Result<Module, Vec<Diagnostic>>,
    /// The same text, well laid out, or the mistakes of its syntax.
    pub format: fn(&str) -> Result<String, Vec<Diagnostic>>,
}

/// Reads every file that no other front end claims, including files without an extension and the
/// standard input.
const TEXT: FrontEnd = FrontEnd {
    name: "text",
    extensions: &["ure"],
    read: systola_front::parse_module,
    format: systola_front::format,
};

/// All registered front ends.
pub const FRONT_ENDS: &[FrontEnd] = &[TEXT];

/// The front end for the file at this path.
pub fn front_end_of(path: &Path) -> FrontEnd {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let claims = |front: &&FrontEnd| front.extensions.iter().any(|e| extension == *e);
    FRONT_ENDS.iter().find(claims).copied().unwrap_or(TEXT)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::{FRONT_ENDS, front_end_of};

    #[test]
    fn files_find_their_front_end() {
        let check = |path: &str, name: &str| {
            assert_eq!(front_end_of(Path::new(path)).name, name, "{path}");
        };
        check("gallery/conv1d.ure", "text");
        check("CONV1D.URE", "text");
        check("conv1d", "text");
        check("notes.txt", "text");
        check("/dev/stdin", "text");
        check("", "text");
    }

    #[test]
    fn no_extension_is_claimed_twice() {
        let all = FRONT_ENDS.iter().flat_map(|front| front.extensions);
        let distinct: HashSet<_> = all.clone().collect();
        assert_eq!(distinct.len(), all.count());
    }
}
