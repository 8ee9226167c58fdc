use crate::codes::codes;

codes! { Limitation:
    NEEDS_SIZES = "L0701", "decided only at given sizes",
r#"An index or a condition multiplies a parameter with an iterator or with another parameter (`N*i`,
`N*N`). Whether such a system is right at all sizes is not decidable in general; at given sizes it
is.

```text
var X: f32 = x[N*i + j];
```

Give the sizes: `systola check file.ure --set N=64`. Or give the array two axes: `x[i, j]`."#;

    TOO_COMPLEX = "L0702", "too complex to decide",
r#"A question about the integer points of the system took more steps than allowed, or numbers larger
than 128 bits. Nothing is wrong with the system as such.

Give concrete sizes with `--set`, which makes most questions easier, or split long conditions with
many `||`, `!=`, `/` and `%`."#;

    POINTWISE_ORDER = "L0704", "the order of the equations changes from point to point",
r#"At each point some order of the equations works, but no order works at all points, and all
processing elements run one order.

```text
var X: f32 = select(i < N/2, 1, Y);
var Y: f32 = select(i < N/2, X, 2);
```

Split the system in two, or give the variables other names on either side of the condition."#;

    NOT_SHOWN_COMPUTABLE = "L0705", "no order of the points was found",
r#"The distances of some references add up to zero around a cycle. At the sizes tried, no value depends
on itself, because the guards never hold all along the cycle, but this is not proved for all sizes.

Give the sizes with `--set`, or split the variable by its guards into several."#;

    OVERFLOW = "L0710", "an index expression with huge numbers",
r#"Coefficients of index expressions stay below 2^80. Use smaller constants, or give sizes with
`--set`."#;

    REDUCE_NEEDS_RANGE = "L0711", "a sum over an iterator without a range",
r#"To put a sum into an order, its iterators need a range: `reduce(+, q in 0..Q, …)`."#;

    SUM_NOT_A_BOX = "L0712", "one sum over iterators that bound each other",
r#"A sum over several iterators is serialised as a chain through a box.

```text
reduce(+, i in 0..N, j in 0..i, f)                    // the range of j depends on i
reduce(+, i in 0..N, reduce(+, j in 0..i, f))         // write it so
```"#;

    WINDOW_NOT_CONSTANT = "L0713", "a window of variables whose size is not constant",
r#"A `reduce` that reads variables at its own iterators is unrolled into its terms, which needs
constant bounds and at most 1024 terms. Otherwise add the iterator to the index space and let a
variable carry the value along it."#;

    PERIODIC = "L0714", "periodic tiles of a system that has none",
r#"`tile … overlap … periodic` lets tiles overlap around a ring. The iterator runs from 0 to a size,
every equation is the same all along it, except for references that wrap around,
`select(i == 0, X(t-1, i+N-1), X(t-1, i-1))`, each value is computed from those of the step before,
and a launch is a number of steps:

```text
tile t by 4 as (tl, s);
tile i by 24 as (bi, ii) overlap (3, 3) periodic;
launch = tl;
```

A ring is at least as long as a launch reaches. Otherwise omit `periodic`, and give every step a
launch of its own."#;

    OVERLAP_OF_TILE = "L0715", "overlap of something that is not an iterator",
r#"Only an iterator of the system can be tiled with overlap, and only once. Split the inner part of the
tile by `/` and `%`, which need no overlap."#;

    REVERSE_OF_PIECES = "L0716", "a user's reverse transform of a mapping by pieces",
r#"A mapping with `when` has one reverse transform for each piece. Leave it out: the compiler derives
all."#;

    LINK_BETWEEN_PIECES = "L0717", "a dependence between pieces that move apart",
r#"Between two pieces of a mapping, place and time of a dependence must change by constants.

```text
when i < 4 { lane = i; time = j; }
lane = 2*i; time = j;                  // X(i - 1, j) at i = 4 comes from lane 3; at lane 8
```

Let the pieces differ by constants only."#;

    EMPTY_SUM = "L0718", "a sum that is empty at some points",
r#"A sum is serialised into an accumulation that starts at its first term. Where the range of the sum
is empty, there is none. A guard such as `select(lo < hi, reduce(…), 0)` does not help, since the
accumulation has no point to start from there; split the system so that the sum is never empty."#;

    SCAN_WITH_GAPS = "L0719", "a prefix sum along a line with gaps",
r#"A `scan` passes its value from each point to the next one of its iterator. Where the domain has gaps
along it, the next point is not there.

```text
index i in 0..N where i % 2 == 0;
var S: i32 = scan(+, i, x[i]);
```

Let the iterator count the points that are there: `index k in 0..(N + 1)/2` and `x[2*k]`."#;

    LET_OF_A_SUM = "L0720", "a `let` of a sum inside another sum",
r#"Each sum becomes a recurrence of its own. A sum that is named by `let` inside another sum, and used
more than once beside a third, would become several.

```text
var U: f32 = reduce(max, q in 0..M, (let s = reduce(+, p in 0..N, x[p, q]); s * s + reduce(+, r in 0..N, w[r])));
```

Give the third sum a variable: `var W: f32 = reduce(+, r in 0..N, w[r]);`."#;

    LINK_NOT_COMPILED = "L0721", "a link that is not compiled yet",
r#"The array is legal and the interpreters run it, but no kernel is made of it yet: within one launch,
values go from block to block in both directions along every block coordinate.

```text
flags;
tile x by 64 as (bx, xx);
block = bx;                       // U(t - 1, x - 1) comes from the left, U(t - 1, x + 1) from the right
time = t;
```

Two such blocks would wait for each other alternately, and nothing guarantees that both run at the
same time. Where all values go one way, a block waits only for blocks that began before it. Tile
along a direction in which they do (a slanted strip), let a launch separate the blocks, or recompute
a halo:

```text
block = (t + x) / 64;             // (1, -1) stays, (1, 1) goes forward
```

```text
tile x by 64 as (bx, xx) overlap (1, 1);
launch = t;
block = bx;
```"#;

    NOT_COMPILED = "L0722", "an array that is not compiled yet",
r#"The array is legal and the interpreters run it, but no kernel is made of it yet: values arrive
within one step from PEs on both sides, and depend on each other or involve more PEs than are
unrolled; or they come from a distance that depends on the sizes. Give the dependence a delay of at
least one step, or make the tiles of a block smaller."#;

    NO_DESIGN = "L0723", "the explorer has no design for this system",
r#"The explorer writes mappings of a system and lowers each at the given sizes. None of them, and no
mapping of the file, is legal and has a kernel there. The reason of the first refusal follows the
message. The system itself is fine, but all variables of a point run at one place and time: where
one ascends and another descends, no mapping has an order for both.

```text
var F: i32 = select(i == 0, 0, F(i - 1)) + x[i];
var B: i32 = select(i == N - 1, 0, B(i + 1)) + F;
```

Make two systems of them and a `program` that runs one after the other. Where different parts of the
index space need different orders and the explorer has none, write a mapping by hand, with `when`
for the parts, and check it with `systola check`."#;

    AFFINE_LINK = "L0724", "a value at changing distances, and tiles with copies of it",
r#"Under this mapping a variable is read at a point whose distance changes from reader to reader, so its
values are kept in memory. A tile with overlap computes copies of what is around it, which reach only
as far as a constant.

```text
var X: i32 = select(i == 0, x[j], X(i - 1, N - 1 - j));
mapping m of s { tile j by 8 overlap (1, 1) as (b, l); … }
```

Leave `overlap` out. Or carry the value from the point that computes it to its readers, with `forward D
along (0, 0, 1)`, or align the variables so that the distance is constant."#;

    NO_INVERSE = "L0725", "an alignment without a closed inverse",
r#"A variable is aligned with a common space by forms from which its iterators cannot be computed in
closed form, although no two points meet.

```text
align F (i, j) -> (i + j, i / 2 + i % 2);
```

Align it by sums of its iterators with constants, and by the two parts of a tile."#;

    NOT_AT_SIZES = "L0730", "no array at the given sizes",
r#"All sizes are given, but something that the code has to compute has no closed form: the point that a
PE works on at a given time, for example. The mapping is legal; the interpreter of systems runs it.

```text
lane = i; time = 2*(i % 3) + 5*(i / 7);
```

Use a place and a time from which the point can be computed, such as the two parts of a tile."#;

}
