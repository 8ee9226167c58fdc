use crate::codes::codes;

codes! { Mistake:
    CONTEXT_EMPTY = "E0301", "no sizes satisfy the context",
r#"The conditions after `where` contradict each other, so the system has no size at all.

```text
system f(N) where N >= 4, N <= 3 { ... }
```

Drop or weaken one of the conditions."#;

    DOMAIN_UNBOUNDED = "E0302", "the domain has infinitely many points",
r#"Every iterator must be bounded from both sides at every size, by its range or by the conditions of
the index space.

```text
index i, j where 0 <= i, i < N, 0 <= j;        // j has no upper bound
```

Add a bound: `j < N`."#;

    READ_OUTSIDE = "E0304", "a variable is read outside its domain",
r#"At some point of the domain, an equation reads a variable where it has no value.

```text
index c in 0..C, q in 0..Q;
var X: f32 = select(q == 0, x[c], X(c + 1, q - 1));     // at c = C - 1, X(C, q - 1) does not exist
```

Guard the reference, so that another branch is taken at the boundary:
`select(q == 0 || c == C - 1, ...)`."#;

    READ_UNDEFINED = "E0305", "a variable is read where its equation gives no value",
r#"A `select` without a last argument leaves the value undefined where its condition does not hold.
Such a value must not be read.

```text
var X: f32 = select(q == 0, x[c]);
var Y: f32 = X + 1;                                     // undefined for q > 0
```

Give the `select` a third argument, or guard the reference with the same condition."#;

    INPUT_OUTSIDE = "E0306", "an input is read outside its axes",
r#"At some point of the domain the index of an input lies outside its declared axes.

```text
input x[N]: f32;
index i in 0..N;
var Y: f32 = x[i] + x[i + 1];                           // x[N] does not exist
```

Make the axis longer (`x[N + 1]`), guard the read, or declare what lies outside: a value,
`input x[N]: f32 else 0;`, or a boundary condition, `input x[N]: f32 clamp;`. `mirror`, `reflect`
and `wrap` fold back once; say in `where` that the array is as long as the reads reach."#;

    OUTPUT_OUTSIDE = "E0307", "an output is written outside its axes",
r#"At some point where the write takes place, its index lies outside the declared axes.

```text
output z[C]: f32 = Z at [c + 1] when q == Q - 1;        // z[C] does not exist
```

Correct the index, the axis or the `when`."#;

    WRITTEN_TWICE = "E0308", "an element of an output is written twice",
r#"Each element is written at one point by one write: there is no order between points, so
which write came last would be a matter of luck.

```text
index c in 0..C, q in 0..Q;
output z[C]: f32 = Z at [c];                            // once for every q
```

Say which point writes: `when q == Q - 1`."#;

    NEVER_WRITTEN = "E0309", "an element of an output is never written",
r#"Every element inside the axes needs a write that reaches it, at every size.

```text
output z[C]: f32 = Z at [c] when q == Q - 1 && c > 0;   // z[0] is left out
```

Extend the `when`, shorten the axis, or declare a value for the rest: `... else 0`."#;

    SAME_POINT_CYCLE = "E0310", "equations of one point need each other",
r#"At one point every equation may read what others compute there, as long as some order of the
equations works.

```text
var X: f32 = Y + 1;
var Y: f32 = X * 2;
```

Let one of them read the value of an earlier point: `Y(i - 1, j)`."#;

    NOT_COMPUTABLE = "E0311", "values depend on themselves",
r#"Following the references from some point leads back to it, so no order of the points can compute
the system. The distances along such a cycle add up to zero (Karp, Miller and Winograd, 1967).

```text
index i in 0..N;
var X: f32 = select(i == 0, x[0], Y(i - 1));
var Y: f32 = select(i == N - 1, 0, X(i + 1));           // (1) + (-1) = 0
```

Change one of the distances, or guard a reference so that the cycle is broken."#;

    OUTPUT_ELSEWHERE = "E0312", "an output reads a variable at another point",
r#"A write happens at a point and may use only values of that same point.

```text
output z[C]: f32 = Z(c, Q - 1) at [c] when q == 0;
```

Write from the point where the value is: `Z at [c] when q == Q - 1`."#;

    REDUCE_UNBOUNDED = "E0313", "a reduction has infinitely many terms",
r#"Every iterator of a `reduce` needs a range; otherwise the sum has no end.

```text
var Z: f32 = reduce(+, k, x[k]);
```

Give the range: `k in 0..K`."#;

    REDUCE_EMPTY = "E0314", "a reduction over nothing has no value",
r#"A user's function has no neutral element, so a `reduce` with it needs at least one term at
every point.

```text
var B: (f32, i64) = reduce(argmin, k in 0..i, (d[i, k], k));     // at i = 0 there is no k
```

Guard it (`select(i > 0, reduce(...), ...)`), or make the range non-empty."#;

    WRITE_UNDEFINED = "E0315", "an output is written with an undefined value",
r#"The value of a write contains a `select` without a last argument, whose condition does not hold at
some point where the write takes place.

```text
output z[C]: f32 = select(q == 0, Z) at [c] when q <= 1;
```

Move the condition to the `when` of the write, or give the `select` a
third argument."#;

    NO_OUTPUT = "E0316", "a system without an output",
r#"The values of a system leave it through its outputs. Without one nothing that it computes can be
seen.

```text
system double(N) {
  input x[N]: f32;
  index i in 0..N;
  var Y: f32 = 2 * x[i];
}
```

Say which value is written where: `output y[N]: f32 = Y at [i];`."#;
}
