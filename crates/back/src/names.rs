//! Legal, stable identifiers: the names people chose, changed only where C or another name forbids
//! them.

use std::collections::BTreeMap;

use systola_ir::Scalar;

/// Words that already have a meaning: keywords of C, its dialects and C++, macros of the included
/// headers or of the compiler, and names that every printed function uses.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "half",
    "i386",
    "if",
    "inline",
    "int",
    "kernel",
    "global",
    "local",
    "constant",
    "linux",
    "long",
    "mod",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "xor_eq",
    "NULL",
    "INFINITY",
    "NAN",
    "I",
    "DOMAIN",
    "SING",
    "OVERFLOW",
    "UNDERFLOW",
    "TLOSS",
    "PLOSS",
    "EOF",
    "errno",
    "memcpy",
    "sizes",
    "args",
    "buffers",
    "scratch",
    "first",
    "last",
    "block",
    "floordiv",
    "floordiv_host",
    "mod_host",
    "signal_flag",
    "await_flag",
    "take_block_id",
    "claim_fault",
    "put_coordinate",
    "shared_bytes",
    "clamp_index",
    "minus_index",
    "byte_of",
    "word_of",
    "opaque",
    "prefetch",
    "prefetch_l1",
    "prefetch_l2",
    "end_of_streams",
    "commit_copies",
    "INLINE",
    "ONE_BY_ONE",
    "INDEPENDENT",
    "INDEX",
    "NARROW",
    "BRANCHES",
    "Pack",
    "blockDim",
    "blockIdx",
    "gridDim",
    "index_t",
    "shared_memory",
    "taken_block_id",
    "uchar",
    "ushort",
    "uint",
    "ulong",
    "pipe",
    "read_only",
    "write_only",
    "read_write",
    "uniform",
    "threadIdx",
    "warpSize",
];

/// Prefixes of macros and types of the standard headers, and of macros of printed code.
const RESERVED_PREFIXES: &[&str] = &[
    "INT8_",
    "INT16_",
    "INT32_",
    "INT64_",
    "INTMAX_",
    "INTPTR_",
    "UINT8_",
    "UINT16_",
    "UINT32_",
    "UINT64_",
    "FEWER_",
    "HOLDS_",
    "M_",
    "FP_",
    "HUGE_VAL",
    "SCHED_",
    "CPU_",
    "CLONE_",
    "MATH_ERR",
    "copy_async_",
    "wait_copies_",
];

/// The suffix of arrays in constant memory, which are visible in all kernels of a file.
pub const CONSTANT: &str = "_constant";

/// The names of one scope.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The names in use; for each, the largest number that was tried as its suffix.
    taken: BTreeMap<String, u32>,
}

impl Names {
    /// A legal name like `wanted` that nothing else in this scope has: `h`, then `h_2`, `h_3`, …
    pub fn claim(&mut self, wanted: &str) -> String {
        let base = legal(wanted);
        let Some(mut n) = self.taken.get(&base).copied() else {
            self.taken.insert(base.clone(), 1);
            return base;
        };
        let name = loop {
            n += 1;
            let name = format!("{base}_{n}");
            if !self.taken.contains_key(&name) {
                break name;
            }
        };
        self.taken.insert(base, n);
        self.taken.insert(name.clone(), 1);
        name
    }
}

/// A C identifier like `wanted` that has no other meaning.
pub fn legal(wanted: &str) -> String {
    let mut name = String::with_capacity(wanted.len());
    for c in wanted.chars() {
        match c {
            '\'' | '′' => name.push_str("_prime"),
            c if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
            // Other letters are replaced by their code points, which keeps different names
            // different.
            c if c.is_alphanumeric() => name.push_str(&format!("u{:x}", u32::from(c))),
            _ => name.push('_'),
        }
    }
    // Leading underscores are reserved for the implementation.
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'v');
    }
    if is_reserved(&name) {
        name.push('_');
    }
    name
}

/// The symbol of a kernel. No function of the C library has this ending.
pub fn symbol(kernel: &str) -> String {
    format!("{}_kernel", legal(kernel).trim_end_matches('_'))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || RESERVED_PREFIXES.iter().any(|p| name.starts_with(p))
        || (name.ends_with("_t") && name.contains("int"))
        || name.ends_with(CONSTANT)
        || is_helper(name)
}

/// Is it the name of a type or helper function, such as `f32x16`, `load_f32x16`, `min_i64`,
/// `lanes16_below`?
fn is_helper(name: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let last = name.rsplit('_').next().unwrap_or(name);
    let (scalar, lanes) = last.split_once('x').unwrap_or((last, "1"));
    let typed = Scalar::from_name(scalar).is_some() && digits(lanes);
    let of_lanes = name
        .strip_prefix("lanes")
        .and_then(|rest| rest.split('_').next())
        .is_some_and(digits);
    typed || of_lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, expect: &str) {
        assert_eq!(legal(wanted), expect, "{wanted}");
    }

    #[test]
    fn names_stay_where_they_can() {
        check("acc", "acc");
        check("H", "H");
        check("x_tile", "x_tile");
        check("while", "while_");
        check("linux", "linux_");
        check("h'", "h_prime");
        check("h.left", "h_left");
        check("σ", "u3c3");
        check("2x", "v2x");
        check("_t", "v_t");
        check("", "v");
        check("f32x16", "f32x16_");
        check("load_i8x4", "load_i8x4_");
        check("min_i64", "min_i64_");
        check("lanes16_below", "lanes16_below_");
        check("lanes", "lanes");
        check("wait_copies_0", "wait_copies_0_");
        check("uint8_t", "uint8_t_");
        check("M_PI", "M_PI_");
        check("FEWER_k_kernel", "FEWER_k_kernel_");
        check("HOLDS_k_kernel_1", "HOLDS_k_kernel_1_");
    }

    #[test]
    fn names_differ() {
        let mut names = Names::default();
        assert_eq!(names.claim("h"), "h");
        assert_eq!(names.claim("h"), "h_2");
        assert_eq!(names.claim("h_2"), "h_2_2");
        assert_eq!(names.claim("h"), "h_3");
        assert_eq!(names.claim("g_3"), "g_3");
        let gs: Vec<String> = (0..4).map(|_| names.claim("g")).collect();
        assert_eq!(gs, ["g", "g_2", "g_4", "g_5"]);
        assert_eq!(names.claim("for"), "for_");
    }

    #[test]
    fn symbols_end_in_kernel() {
        assert_eq!(symbol("saxpy"), "saxpy_kernel");
        assert_eq!(symbol("exp"), "exp_kernel");
        assert_eq!(symbol("for"), "for_kernel");
        assert_eq!(symbol("a-b"), "a_b_kernel");
    }
}
