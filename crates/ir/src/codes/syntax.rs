use crate::codes::codes;

codes! { Mistake:
    UNEXPECTED_CHARACTER = "E0101", "a character that has no meaning here",
r#"The text contains a character that is no part of the language: a quote, a `#`, a typographic minus,
a mathematical sign.

```ure
system s(N) where N ≥ 1 { }
```

Write the plain form: `>=` for ≥, `-` for −, `*` for ·, `//` before a comment."#;

    UNEXPECTED_TOKEN = "E0102", "something else was expected",
r#"The text consists of known parts, but not in an order that the grammar allows; the message says what
could stand here.

```ure
system s(N) { index i in 0..N var A: f32 = 1; }
```

Often a `;`, a `,` or a bracket is missing just before the marked place."#;

    UNCLOSED = "E0103", "a bracket that is never closed",
r#"A `(`, `[` or `{` has no partner before the text ends or the next item begins.

```ure
system s(N) { index i in 0..N;
```

Add the closing bracket. The message points at the opening one."#;

    MALFORMED_NUMBER = "E0104", "a number that cannot be read",
r#"Numbers are decimal: `12`, `1.5`, `1e-3`, with the name of a type as suffix where one is wanted, as
in `0i32` or `1.5f32`. An integer has at most 38 digits.

```ure
system s(N) { const k: i32 = 0x10; }
```

Write it in decimal, or correct the suffix."#;

    RESERVED_WORD = "E0105", "a reserved word as a name",
r#"Words that structure the language (`in`, `at`, `when`, `min`, `f32`, …) cannot name anything.

```ure
system s(N) { index at in 0..N; }
```

Choose another name, such as `at_`."#;

    TOO_LARGE = "E0106", "an expression that is too large or nested too deeply",
r#"Expressions are limited: 520 operations in one chain, 96 levels of nesting, 128 terms in an index,
64 scalars in a tuple, 64 functions that call one another, 262144 operations of one equation after
inlining (a function that calls another twice is twice as large, so a chain of twenty has a
million). The limits keep every pass of the compiler within its stack and memory; hand-written text
does not come near them.

```ure
system s(N) { fn f() -> f32 = abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(abs(1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))); }
```

Use `reduce` for long sums, `let` or a further variable for inner parts."#;

    ASSIGN_IN_CONDITION = "E0107", "`=` in a condition",
r#"`=` gives a declaration its value; `==` compares.

```ure
system s(N) where N = 4 { }
```

Write `==`."#;

    UNKNOWN_DIRECTIVE = "E0108", "a line of a mapping that is no directive",
r#"A mapping consists of placements (`lane = …`, `time = …`), directives (`tile`, `forward`, `sum`, …)
and the paper's calls (`X.tile(…)`, `X.reorder(…)`, …).

```ure
system s(N) { }
mapping m of s { lanes = i; }
```

The message names the closest directive."#;

    SOURCE_TOO_LONG = "E0109", "a file that is too long",
r#"At most 16 MiB are read. Data of that size belongs in an input, not in the text.

Declare the table without contents, and give the contents at run time."#;

    UNKNOWN_DECLARATION = "E0110", "a line that is no declaration",
r#"A file has `system`, `mapping` and `program`; a system has `const`, `input`, `table`, `fn`, `batch`,
`index`, `var` and `output`; a program has inputs, stages and outputs.

```ure
system s(N) { varr A: f32 = 1; }
```

The message names the closest word."#;

    NO_MAPPING_FORM = "E0111", "no index expression of a mapping",
r#"Places, times and tile sizes are built from names and integers with `+ - * / %`; conditions of
`when` compare such expressions and join them by `&& || !`.

```ure
system s(N) { }
mapping m of s { lane = 1.5; }
```

Write a quasi-affine expression of iterators and tile indices."#;

    REPEATED = "E0112", "something is said twice",
r#"A system has one `index` and one `batch`; a transfer has each clause once.

```ure
system s(N) { index i in 0..N; index j in 0..N; }
```

Join them: `index i in 0..N, j in 0..N;`."#;

    NO_RANGE = "E0113", "an iterator without a range",
r#"`in` is followed by a half-open range `lo..hi`.

```ure
system s(N) { index i in N; }
```

Write `i in 0..N`."#;

    UNKNOWN_TYPE = "E0114", "an unknown type",
r#"The types are `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`, and tuples such as
`(f32, i64)`.

```ure
system s(N) { index i in 0..N; var A: float = 1; }
```

Use one of them; `float` is `f32`, `double` is `f64`."#;

    NO_REDUCTION = "E0115", "an operator that cannot reduce",
r#"`reduce` and `scan` combine with `+ * min max && || & | ^` or a function of two arguments. With `-`
or `/` the result would depend on the order.

```ure
system s(N) { index i in 0..N; var A: i32 = reduce(-, k in 0..N, 1); }
```

Sum first and subtract once, or declare a `fn`."#;
}
