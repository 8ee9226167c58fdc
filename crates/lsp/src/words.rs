//! The words of the language, each with one line of help and an example.

use systola_ir::Scalar;

/// Where a word has its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the beginning of an item.
    File,
    /// At the beginning of a statement of such an item.
    System,
    Stencil,
    Conv,
    Program,
    Mapping,
    /// Within a declaration, behind its name.
    Clause,
    /// Within a directive of a mapping.
    DirectiveClause,
    /// Behind the `.` of a primitive of Table 1.
    Primitive,
    /// Behind the type of an array.
    Boundary,
    Expression,
    /// In an expression of a stencil.
    Neighbourhood,
    /// A name that mappings have without a declaration.
    Given,
}

#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub word: &'static str,
    pub places: &'static [Place],
    /// One sentence.
    pub help: &'static str,
    pub example: &'static str,
}

const fn word(
    word: &'static str,
    places: &'static [Place],
    help: &'static str,
    example: &'static str,
) -> Word {
    Word {
        word,
        places,
        help,
        example,
    }
}

use Place::{
    Boundary, Clause, Conv, DirectiveClause, Expression, File, Given, Mapping, Neighbourhood,
    Primitive, Program, Stencil, System,
};

/// All of them but the types.
pub const WORDS: &[Word] = &[
    word(
        "system",
        &[File],
        "What is computed: recurrence equations over an index space.",
        "system axpy(N) where N >= 1 { … }",
    ),
    word(
        "stencil",
        &[File],
        "How a cell of a grid is updated from the cells around it.",
        "stencil heat(N, M, T) { field u[N, M]: f32 fixed; steps T; u = …; }",
    ),
    word(
        "conv",
        &[File],
        "A filter over an array of one to three axes.",
        "conv blur(R, C, H, Q) { input x[R, C]: f32 constant 0; filter w[H, Q]: f32; }",
    ),
    word(
        "mapping",
        &[File],
        "Where and when the points of a system run.",
        "mapping sbm of conv1d { lane = c + q; time = q; }",
    ),
    word(
        "program",
        &[File],
        "Systems one after another, with arrays between them.",
        "program twice(N) { input x[N]: f32; first = smooth(C = N)(x = x); output y = first.z; }",
    ),
    word(
        "const",
        &[System, Stencil],
        "A name for a literal. Integer constants may stand in indices.",
        "const width: i32 = 3;",
    ),
    word(
        "input",
        &[System, Stencil, Conv, Program],
        "An array that is read, at quasi-affine indices.",
        "input x[C + Q - 1]: f32;",
    ),
    word(
        "table",
        &[System, Stencil, Program],
        "A small array that may also be indexed by values.",
        "table t[4]: i32 = [0, 1, 1, 0];",
    ),
    word(
        "fn",
        &[System, Stencil],
        "A pure function of values; it sees its arguments, constants, parameters and tables.",
        "fn square(a: f32) -> f32 = a * a;",
    ),
    word(
        "batch",
        &[System, Stencil, Conv],
        "Repeats a whole system; every array that is not shared gets one more axis.",
        "batch n in 0..B shared(w);",
    ),
    word(
        "index",
        &[System],
        "The iterators of the index space, outermost first, each with a half-open range.",
        "index c in 0..C, q in 0..Q where c <= q;",
    ),
    word(
        "index",
        &[Stencil],
        "Names for the axes of the grid.",
        "index i, j;",
    ),
    word(
        "var",
        &[System],
        "A variable with its type and its equation: a value at every point of its domain.",
        "var Z: f32 reorderable = select(q == 0, 0, Z(c, q - 1)) + x[c + q] * w[q];",
    ),
    word(
        "var",
        &[Stencil],
        "A value between, which can be read at neighbours.",
        "var rows: f32 clamp = 0.5*u[-1, 0] + 0.5*u[1, 0];",
    ),
    word(
        "output",
        &[System],
        "Which values leave the system, and where they are written.",
        "output z[C]: f32 = Z at [c] when q == Q - 1 else 0;",
    ),
    word(
        "output",
        &[Stencil, Program],
        "A result, by name.",
        "output h = u;",
    ),
    word(
        "field",
        &[Stencil],
        "An array on the grid, with its boundary condition.",
        "field u[N, M]: f32 clamp;",
    ),
    word(
        "steps",
        &[Stencil],
        "The number of steps; without it there is one sweep.",
        "steps T;",
    ),
    word(
        "filter",
        &[Conv],
        "The weights that are centred on each element.",
        "filter w[H, Q]: f32;",
    ),
    word(
        "stride",
        &[Conv],
        "The distance between results, one for all axes or one for each.",
        "stride 2;",
    ),
    word(
        "dilation",
        &[Conv],
        "The distance between taps of the filter.",
        "dilation 1, 2;",
    ),
    word(
        "where",
        &[Clause, File],
        "Conditions: on the parameters in a head, on the points in `index`.",
        "system pairs(N) where N >= 2 { … }",
    ),
    word(
        "of",
        &[File],
        "The system that a mapping maps.",
        "mapping m of conv1d { … }",
    ),
    word(
        "in",
        &[Clause],
        "The half-open range of an iterator.",
        "index i in 0..N;",
    ),
    word(
        "on",
        &[Clause],
        "The part of the index space on which a variable is defined.",
        "var Mean: f32 on k == K - 1 = A / f32(K);",
    ),
    word(
        "at",
        &[Clause],
        "The element of the output that is written.",
        "output z[N]: f32 = Z at [i];",
    ),
    word(
        "when",
        &[Clause],
        "The points at which an output is written.",
        "output z[N]: f32 = Z at [i] when k == K - 1;",
    ),
    word(
        "else",
        &[Clause],
        "The value of elements outside of an array, or of those that no write reaches.",
        "input x[N]: f32 else 0;",
    ),
    word(
        "shared",
        &[Clause],
        "The inputs that all of a batch read.",
        "batch n in 0..B shared(w);",
    ),
    word(
        "reorderable",
        &[Clause],
        "Promises that the order of the accumulation does not matter.",
        "var Z: f32 reorderable = reduce(+, q in 0..Q, x[c + q]);",
    ),
    word(
        "associative",
        &[Clause],
        "Promises that an accumulation may be regrouped, but not reordered.",
        "fn f(a: f32, b: f32) -> f32 associative = a + b;",
    ),
    word(
        "interior",
        &[Boundary],
        "Results exist only where the whole neighbourhood is inside.",
        "field u[N]: f32 interior;",
    ),
    word(
        "fixed",
        &[Boundary],
        "A cell whose neighbourhood is not inside keeps its value (Dirichlet).",
        "field u[N, M]: f32 fixed;",
    ),
    word(
        "constant",
        &[Boundary],
        "The same number everywhere beyond the boundary.",
        "input x[R, C]: f32 constant 0;",
    ),
    word(
        "clamp",
        &[Boundary],
        "Beyond the boundary is the last cell: a a | a b c | c c.",
        "field u[N]: f32 clamp;",
    ),
    word(
        "mirror",
        &[Boundary],
        "Folds back without the last cell: c b | a b c | b a.",
        "field u[N]: f32 mirror;",
    ),
    word(
        "reflect",
        &[Boundary],
        "Folds back with the last cell: b a | a b c | c b.",
        "field u[N]: f32 reflect;",
    ),
    word(
        "wrap",
        &[Boundary],
        "The grid is a ring: b c | a b c | a b.",
        "field u[N]: f32 wrap;",
    ),
    word(
        "let",
        &[Expression],
        "Names a part of a body, at its beginning.",
        "let e = exp(-abs(x[i])); e / (1 + e)",
    ),
    word(
        "select",
        &[Expression],
        "A guard where the condition is on the position, else a choice by value, which reads both branches.",
        "select(q == 0, 0, Z(c, q - 1))",
    ),
    word(
        "reduce",
        &[Expression],
        "Combines the body over all points of its own iterators, in an order that a mapping chooses.",
        "reduce(+, q in 0..Q, x[c + q] * w[q])",
    ),
    word(
        "scan",
        &[Expression],
        "The inclusive prefix along an iterator of the index space.",
        "scan(+, i, x[b, i])",
    ),
    word(
        "min",
        &[Expression],
        "The least of two or more numbers; in a stencil also of a neighbourhood.",
        "min(a, b)",
    ),
    word(
        "max",
        &[Expression],
        "The greatest of two or more numbers; in a stencil also of a neighbourhood.",
        "max(a, b)",
    ),
    word("abs", &[Expression], "The absolute value.", "abs(a - b)"),
    word(
        "sqrt",
        &[Expression],
        "The square root of a float.",
        "sqrt(a)",
    ),
    word("rsqrt", &[Expression], "1/√a of a float.", "rsqrt(a)"),
    word(
        "exp",
        &[Expression],
        "e to the power of a float.",
        "exp(-a)",
    ),
    word(
        "log",
        &[Expression],
        "The natural logarithm of a float.",
        "log(a)",
    ),
    word(
        "pow",
        &[Expression],
        "A float to the power of another.",
        "pow(a, 2)",
    ),
    word(
        "floor",
        &[Expression],
        "The greatest whole number that is not above.",
        "floor(a)",
    ),
    word(
        "ceil",
        &[Expression],
        "The least whole number that is not below.",
        "ceil(a)",
    ),
    word(
        "sin",
        &[Expression],
        "The sine of a float in radians.",
        "sin(a)",
    ),
    word(
        "cos",
        &[Expression],
        "The cosine of a float in radians.",
        "cos(a)",
    ),
    word(
        "tanh",
        &[Expression],
        "The hyperbolic tangent of a float.",
        "tanh(a)",
    ),
    word(
        "true",
        &[Expression],
        "The truth value that holds.",
        "select(true, a, b)",
    ),
    word(
        "false",
        &[Expression],
        "The truth value that does not hold.",
        "select(false, a, b)",
    ),
    word(
        "inf",
        &[Expression],
        "Infinity, of a float.",
        "max(a, -inf)",
    ),
    word(
        "nan",
        &[Expression],
        "Not a number, of a float.",
        "select(a == a, a, nan)",
    ),
    word(
        "sum",
        &[Neighbourhood],
        "Adds all cells of a neighbourhood, with weights where they are given.",
        "sum(w * u over box 1)",
    ),
    word(
        "over",
        &[Neighbourhood],
        "The neighbourhood that is combined.",
        "sum(u over star 1)",
    ),
    word(
        "box",
        &[Neighbourhood],
        "All cells within a distance along each axis.",
        "sum(u over box (1, 2))",
    ),
    word(
        "star",
        &[Neighbourhood],
        "A cell and its neighbours along the axes.",
        "sum(u over star 1)",
    ),
    word(
        "except",
        &[Neighbourhood],
        "Removes cells from a neighbourhood.",
        "sum(u over box 1 except box 0)",
    ),
    word(
        "and",
        &[Neighbourhood],
        "Adds cells to a neighbourhood.",
        "sum(u over star 2 and box 1)",
    ),
    word(
        "node",
        &[Mapping],
        "The node of a cluster on which a point runs; the outermost level of the place.",
        "node = bn;",
    ),
    word(
        "block",
        &[Mapping],
        "The thread block on which a point runs.",
        "block = (by, bx);",
    ),
    word(
        "warp",
        &[Mapping],
        "The warp of a block on which a point runs.",
        "warp = cc / 32;",
    ),
    word(
        "lane",
        &[Mapping],
        "The vector lane, or thread of a warp, on which a point runs.",
        "lane = c + q;",
    ),
    word(
        "reg",
        &[Mapping],
        "The register of a lane in which a point is computed: several points for each lane.",
        "reg = (xx + 8) % 8;",
    ),
    word(
        "launch",
        &[Mapping],
        "One kernel launch after another: everything before is in memory.",
        "launch = bt;",
    ),
    word(
        "block_step",
        &[Mapping],
        "Steps of a whole block, with a barrier between them.",
        "block_step = kk;",
    ),
    word(
        "time",
        &[Mapping],
        "The step of a processing element; lexicographic where there are several.",
        "time = (yy + s, s);",
    ),
    word(
        "tile",
        &[Mapping],
        "Splits an iterator: x = B·bx + xx. With `overlap`, neighbouring tiles compute a halo twice.",
        "tile x by 128 as (bx, xx) overlap (4, 4);",
    ),
    word(
        "when",
        &[Mapping],
        "Places and times of the points where the condition holds; the first match decides.",
        "when c >= 4 && q != 0 { lane = c + q - 4; time = q; }",
    ),
    word(
        "forward",
        &[Mapping],
        "An input is read once, or a variable computed, and handed on from PE to PE along a direction.",
        "forward x along (-1, 1);",
    ),
    word(
        "read",
        &[Mapping],
        "Every point reads the input itself; the default.",
        "read x;",
    ),
    word(
        "sum",
        &[Mapping],
        "The order of a sum, innermost first, a minus for descending; or a tree.",
        "sum Z along (q, -p);",
    ),
    word(
        "space",
        &[Mapping],
        "The iterators of the common index space, to which variables are aligned.",
        "space (k, i, j);",
    ),
    word(
        "align",
        &[Mapping],
        "The point of the common space at which each value of a variable is computed.",
        "align F (i, j) -> (2*i, j);",
    ),
    word(
        "store",
        &[Mapping],
        "Keeps the values of a variable in memory: in an array, in few places used in turn, or where the compiler finds room.",
        "store S in lu[i, j]; store U modulo (2, 0);",
    ),
    word(
        "in",
        &[DirectiveClause],
        "The array, and the element of it, in which a variable is stored.",
        "store S in lu[i, j];",
    ),
    word(
        "modulo",
        &[DirectiveClause],
        "One number for each iterator: values that far apart share a place, 0 keeps all apart.",
        "store U modulo (2, 0, 0);",
    ),
    word(
        "broadcast",
        &[Mapping],
        "A variable may be used in the step in which it is computed.",
        "broadcast X;",
    ),
    word(
        "transfer",
        &[Mapping],
        "Staging: a window of an array is copied closer before it is used.",
        "transfer w to shared at bx stages 2;",
    ),
    word(
        "unroll",
        &[Mapping],
        "Unrolls a loop, or a time coordinate by its name, partially or fully.",
        "unroll q by 4;",
    ),
    word(
        "check",
        &[Mapping],
        "Every PE tests whether its point is in the domain.",
        "check;",
    ),
    word(
        "trust",
        &[Mapping],
        "No PE tests its point; refused where a test is needed.",
        "trust;",
    ),
    word(
        "auto",
        &[Mapping],
        "A PE tests its point only where that is needed; the default.",
        "auto;",
    ),
    word(
        "reverse",
        &[Mapping],
        "The inverse of the mapping, written by the user and verified.",
        "reverse (c = lane - time, q = time);",
    ),
    word(
        "flags",
        &[Mapping],
        "Values may cross blocks within a launch, through memory behind flags.",
        "flags;",
    ),
    word(
        "look_back",
        &[Mapping],
        "Sums that may be regrouped cross blocks within a launch: each block looks back over what earlier blocks have published.",
        "look_back;",
    ),
    word(
        "func",
        &[Mapping],
        "Table 1: a function of the paper, with its type, iterators and residence.",
        "func X(f32, (c, q), device);",
    ),
    word(
        "merge_ures",
        &[Primitive],
        "Table 1: several equations become the body of one loop nest.",
        "X.merge_ures(W, Z);",
    ),
    word(
        "tile",
        &[Primitive],
        "Table 1: splits a loop, v = f·vo + vi.",
        "X.tile(c, oc, cc, 64);",
    ),
    word(
        "reorder",
        &[Primitive],
        "Table 1: the order of the loops, innermost first.",
        "X.reorder(ccc, q, cc, oc);",
    ),
    word(
        "gpu_blocks",
        &[Primitive],
        "Table 1: loops over thread blocks.",
        "X.gpu_blocks(oc);",
    ),
    word(
        "gpu_threads",
        &[Primitive],
        "Table 1: loops over warps, each of which holds a linear array.",
        "X.gpu_threads(cc);",
    ),
    word(
        "in",
        &[Primitive],
        "Table 1: a window of an array is staged for a function.",
        "w.in(X).compute_at(X, oc).store_in(shared);",
    ),
    word(
        "compute_at",
        &[Primitive],
        "Table 1: the loop whose each value has one window.",
        "w.in(X).compute_at(X, oc);",
    ),
    word(
        "store_in",
        &[Primitive],
        "Table 1: the memory that a window is kept in.",
        "w.in(X).store_in(shared);",
    ),
    word(
        "space_time_transform",
        &[Primitive],
        "Table 1: the space-time transform; the last row of the matrix is the schedule.",
        "X.space_time_transform((c, q), (s, t), ((1, 1), (0, 1)), check);",
    ),
    word(
        "by",
        &[DirectiveClause],
        "The size of a tile, the factor of an unrolled loop, or the engine of a transfer.",
        "tile x by 128 as (bx, xx);",
    ),
    word(
        "as",
        &[DirectiveClause],
        "The names of the index of a tile and of the offset in it.",
        "tile x by 128 as (bx, xx);",
    ),
    word(
        "overlap",
        &[DirectiveClause],
        "The halo of a tile below and above: −lo ≤ xx < B + hi.",
        "tile x by 64 as (bx, xx) overlap (8, 8);",
    ),
    word(
        "periodic",
        &[DirectiveClause],
        "A tile overlaps around a ring.",
        "tile y by 64 as (by, yy) overlap (3, 3) periodic;",
    ),
    word(
        "along",
        &[DirectiveClause],
        "The direction of a forwarded input, or the order of a sum.",
        "forward x along (-1, 1);",
    ),
    word(
        "tree",
        &[DirectiveClause],
        "A sum in one step, as a tree.",
        "sum Z tree;",
    ),
    word(
        "to",
        &[DirectiveClause],
        "The memory that a window is copied to.",
        "transfer w to shared;",
    ),
    word(
        "registers",
        &[DirectiveClause],
        "A window is kept in registers.",
        "transfer w to registers;",
    ),
    word(
        "shared",
        &[DirectiveClause],
        "A window is kept in shared memory (OpenCL: local memory).",
        "transfer x to shared at bx;",
    ),
    word(
        "constant",
        &[DirectiveClause],
        "A window is kept in constant memory.",
        "transfer w to constant;",
    ),
    word(
        "stages",
        &[DirectiveClause],
        "The number of windows in flight: a load is issued that number of windows before its use.",
        "transfer x to shared at t stages 2;",
    ),
    word(
        "layout",
        &[DirectiveClause],
        "How a window lies in shared memory, against bank conflicts.",
        "transfer x to shared at t layout pad 1;",
    ),
    word(
        "columns",
        &[DirectiveClause],
        "The elements along the last axis but one are adjacent.",
        "transfer x to shared at t layout columns;",
    ),
    word(
        "pad",
        &[DirectiveClause],
        "Makes the rows of a window longer by some elements.",
        "transfer x to shared at t layout pad 1;",
    ),
    word(
        "rotate",
        &[DirectiveClause],
        "Swizzles the rows of a window: each is rotated a little further.",
        "transfer x to shared at t layout rotate;",
    ),
    word(
        "plain",
        &[DirectiveClause],
        "Rows one behind the other, or copies by loads and stores.",
        "transfer x to shared at t layout plain;",
    ),
    word(
        "cp_async",
        &[DirectiveClause],
        "Copies by `cp.async` where the target has it.",
        "transfer x to shared at t by cp_async;",
    ),
    word(
        "bulk",
        &[DirectiveClause],
        "Copies in bulk where the target can.",
        "transfer x to shared at t by bulk;",
    ),
    word(
        "device",
        &[DirectiveClause],
        "Table 1: a function that lives on the device.",
        "func X(f32, (c, q), device);",
    ),
    word(
        "host",
        &[DirectiveClause],
        "Table 1: a function that lives on the host.",
        "func x(host);",
    ),
    word(
        "L",
        &[Given],
        "The lanes of the target: how many values of the widest type fit into a vector.",
        "tile i by 4*L as (bi, ii);",
    ),
    word(
        "lanes",
        &[Given],
        "The lanes of the target: how many values of the widest type fit into a vector.",
        "tile i by lanes as (bi, ii);",
    ),
];

/// The line about a type.
pub fn type_help(name: &str) -> Option<String> {
    let scalar = Scalar::from_name(name)?;
    let what = match name {
        "bool" => "`true` or `false`".to_string(),
        _ if scalar.is_int() => {
            format!(
                "an integer of {} bits, which wraps in two's complement",
                &name[1..]
            )
        }
        "bf16" => "a float of 16 bits with the exponent of `f32`".to_string(),
        _ => format!("a float of {} bits", &name[1..]),
    };
    Some(format!(
        "{what}; used as a function, `{name}(a)`, it converts"
    ))
}

/// The word with its meaning at one of these places, else with any.
pub fn find(text: &str, places: &[Place]) -> Option<&'static Word> {
    let meanings = || WORDS.iter().filter(|w| w.word == text);
    let here = |w: &&Word| w.places.iter().any(|place| places.contains(place));
    meanings().find(here).or_else(|| meanings().next())
}

/// The words that have a meaning at such a place.
pub fn at(place: Place) -> impl Iterator<Item = &'static Word> {
    WORDS.iter().filter(move |w| w.places.contains(&place))
}

#[cfg(test)]
mod tests {
    use systola_ir::mapping::{PlaceLevel, TimeLevel};
    use systola_surface::tree::Boundary;
    use systola_surface::words::is_reserved;

    use super::*;

    #[test]
    fn levels_directives_boundaries_and_types_have_help() {
        let levels = PlaceLevel::ALL.iter().map(|l| l.name());
        let levels = levels.chain(TimeLevel::ALL.iter().map(|l| l.name()));
        for level in levels {
            let word = find(level, &[Mapping]).unwrap_or_else(|| panic!("{level}"));
            assert!(word.example.starts_with(&format!("{level} = ")), "{level}");
        }
        for directive in ["space", "align", "store", "forward", "sum", "look_back"] {
            let word = find(directive, &[Mapping]).unwrap_or_else(|| panic!("{directive}"));
            assert!(word.example.starts_with(directive), "{directive}");
        }
        for boundary in Boundary::WORDS {
            assert!(at(Boundary).any(|w| w.word == *boundary), "{boundary}");
        }
        for scalar in Scalar::ALL {
            assert!(type_help(scalar.name()).is_some());
            assert!(is_reserved(scalar.name()));
        }
    }

    #[test]
    fn words_have_one_meaning_at_a_place() {
        for (n, word) in WORDS.iter().enumerate() {
            for other in &WORDS[n + 1..] {
                let shares = word.places.iter().any(|p| other.places.contains(p));
                assert!(word.word != other.word || !shares, "{}", word.word);
            }
            assert!(
                word.help.ends_with('.') && !word.example.is_empty(),
                "{}",
                word.word
            );
        }
        assert_eq!(
            find("sum", &[Mapping]).unwrap().example,
            "sum Z along (q, -p);"
        );
        assert!(
            find("sum", &[Neighbourhood])
                .unwrap()
                .example
                .contains("over")
        );
    }
}
