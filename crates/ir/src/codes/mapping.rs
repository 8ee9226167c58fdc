use crate::codes::codes;

codes! { Mistake:
    UNKNOWN_NAME = "E0401", "a name in a mapping that means nothing",
"A place or time uses a name that is neither an iterator of the system, nor a tile index made by an
earlier `tile`, nor a parameter.

    mapping m of conv1d { lane = c + r; time = q; }   // conv1d has no r

Use an iterator of the system, or define the tile index before it is used.";
    UNKNOWN_VARIABLE = "E0402", "a mapping names a variable that the system does not have",
"`broadcast`, `sum` and the primitives of Table 1 name variables of the mapped system.

    mapping m of conv1d { lane = c; time = q; broadcast Y; }

Name one of the variables that the message lists.";
    UNKNOWN_INPUT = "E0403", "a mapping names an input that the system does not have",
"`forward`, `read` and `transfer` name inputs of the mapped system.

    mapping m of conv1d { lane = c; time = q; forward y along (1, 0); }

Name one of the inputs that the message lists.";
    NOT_AFFINE = "E0404", "a place or time multiplies two iterators",
"Places and times are quasi-affine: sums of iterators, each with a constant or a parameter before
it, and floors and remainders by constants.

    time = i*j;        // refused
    time = N*i + j;    // a parameter times an iterator is fine";
    BAD_DIVISOR = "E0405", "a division by something other than a positive constant",
"`/` and `%` in a mapping round down and divide by positive constants.

    lane = c / 0;
    lane = c / q;

Divide by a constant such as 4.";
    BAD_FACTOR = "E0406", "a tile size, halo, stage or unroll count out of range",
"Tile sizes are at least 1, halos at least 0, stages and unroll factors at least 1.

    tile x by 0 as (bx, xx);";
    NAME_TAKEN = "E0407", "a tile index with a name that is taken",
"The names that `tile` makes must be new, and a list of loops names each once.

    tile x by 4 as (y, xx);   // y is an iterator already";
    GIVEN_TWICE = "E0408", "a level of place or time is given twice",
"Each level is given once, with all its coordinates.

    lane = i; lane = j;      // refused
    lane = (i, j);           // two lane coordinates";
    NO_TIME = "E0409", "a mapping without a time",
"Every mapping says when its points run.

    mapping m of conv1d { lane = c; }

Add `time = …;`.";
    NOT_IN_WHEN = "E0410", "a directive that cannot stand in a `when`",
"`when cond { … }` gives places and times of a part of the points; everything else holds for the
whole mapping and goes outside.";
    UNEVEN_PIECES = "E0411", "pieces of a mapping with different coordinates",
"All pieces of a mapping have the same number of coordinates at each level, since they share one
array and one clock.

    when i < 4 { lane = (i, j); time = k; }
    lane = i; time = k;                       // one lane coordinate, above two";
    WRONG_DIRECTION = "E0412", "what cannot be forwarded along this direction",
"`forward x along e` passes an element from z - e to z. That is the element z needs only if the
access reads the same element at both points: A·e = 0.

    forward x along (1, 0);    // x[c + q] is another element at (c - 1, q)
    forward x along (-1, 1);   // x[c + q] again

A variable is forwarded in the same way from the point that computes its value, so its readers lie
on the line through that point, up to a constant distance:

    var S: f32 = … - A(k - 1, i, k - 1) * …;
    forward A along (0, 0, 1);  // from (k - 1, i, k - 1) to (k - 1, i, j), for all j >= k - 1";
    NOT_A_SUM = "E0413", "an order for a sum that is not there",
"`sum Z along q` chooses the order of a `reduce` or `scan` in the equation of Z, over the iterators
of that sum.";
    FUNC_MISMATCH = "E0414", "a `func` declaration that contradicts the system",
"`func X(f32, (c, q), device)` repeats the type and the arguments of the variable X; they must be
those of the system.";
    MERGE_ORDER = "E0415", "equations merged in an order they cannot run in",
"`X.merge_ures(W, Z)` makes X, W, Z the body of one loop nest, in that order. At one point an
equation may read only those before it.";
    BAD_TRANSFORM = "E0416", "a space-time transform of the wrong shape",
"`space_time_transform(src, dst, T)` needs one row of T for each destination, the last being the
schedule, and one column for each source loop; its entries are constants or expressions in the
parameters.";
    UNKNOWN_MAPPING = "E0417", "a mapping that is not in the file",
"`--map NAME` must name a mapping of the file, and a mapping must name a system of the file.";
    AMBIGUOUS_NAME = "E0418", "a name in a mapping that several iterators have",
"Sums over the same range under one name share an iterator, and the name means all of them. Where the
ranges or directions differ, or one sum needs the result of another, each sum has an iterator of its
own, and the name alone does not say which one is meant.

    var A: f32 = reduce(+, q in 0..Q, x[c + q]);
    var D: f32 = reduce(+, q in 0..Q, A * w[q]);      // begins where A ends
    mapping m of s { lane = c; time = q; }            // which q?

Give one of the iterators another name.";
    NAME_OF_LANES = "E0419", "a name in a mapping that a parameter and the lanes of the target have",
"In a mapping `L` and `lanes` are the lanes of the target. Where the system has a parameter of that
name, the mapping cannot use the name, since it could mean either.

    system band(N, L) where N >= 1, L >= 1 { index i in 0..N; … }
    mapping m of band { tile i by L as (bi, ii); … }      // the band, or the lanes?
    mapping m of band { tile i by lanes as (bi, ii); … }  // the lanes

Write the other name for the lanes; to use the parameter in a mapping, call it something else.";
    STAGES_NEED_LAW = "E0420", "stages of a sum whose order matters",
"`sum Z along t then tree jj` adds up the terms of every `jj` first, and these sums then: terms that
do not follow each other meet first. An operator of the language allows that in a `reduce`; a function
must promise it.

    fn longer(a: (i64, i64), b: (i64, i64)) -> (i64, i64) reorderable = select(a.0 >= b.0, a, b);";
    NOT_ALIGNED = "E0421", "a variable without a place in the common space",
"A mapping gives every point of one index space a place and a time. A variable with iterators of its
own is moved there by `align`, unless its iterators have the names of those of the space.

    var A(t, i): f32 = …;  var S(t): f32 = …;
    mapping m of p { space (t, i); align S (t) -> (t, 0); … }

Say at which point of the space each of its values is computed.";
    BAD_ALIGNMENT = "E0422", "an alignment that is no change of basis",
"`align V (z) -> (x)` gives every value of V a point x of the common space of its own, with one form
for each coordinate of the space.

    align A (t, i) -> (t, 0);       // A(t, 0) and A(t, 1) meet
    align A (t, i) -> (2*t, i);     // right

Use every iterator of the variable. A running sum of V goes along one coordinate of the space.";
    BAD_STORE = "E0423", "a `store` that gives no place in memory",
"`store V in a[i, j]` keeps the values of V in the array `a`, which may be an output, and `store V modulo (2, 0)`
in an array of their own: one number for each iterator of the index space, 0 to keep all of its values
apart, 1 to leave it out.

    store U modulo (2, 0, 0);     // two time steps of U(t, y, x)
    store S in lu[i, j];          // where the output `lu` is

Variables that share an array have values of one type, and an output is stored in as it is written.";
}
