use crate::codes::codes;

codes! { Mistake:
    UNKNOWN_NAME = "E0201", "an unknown name",
r#"Nothing of this name is declared in the system or program.

```ure
system s(N) { index i in 0..N; var A: f32 = Bee; }
```

Check upper and lower case. The message names the closest declaration."#;

    DUPLICATE_NAME = "E0202", "a name that is declared twice",
r#"In a system all names are distinct: parameters, constants, inputs, functions, iterators, variables
and outputs. A `let` and the iterator of a `reduce` shadow nothing either, but two that are side by
side may have the same name.

```ure
system s(N) { index i in 0..N; var i: f32 = 1; }
```

Choose another name."#;

    TYPE_MISMATCH = "E0203", "types that do not match",
r#"Operators never convert: both operands have one type, and an equation has the type of its variable.
Iterators and parameters are `i64`. A literal takes the type of the other operand; an integer
literal may become a float, never the reverse.

```ure
system s(N) { index i in 0..N; var A: f32 = i; }
```

Convert with a cast: `f32(i)`."#;

    NO_SUCH_OPERATOR = "E0204", "an operator that the type does not have",
r#"Arithmetic is for numbers, `%` and shifts are for integers,
`sqrt rsqrt exp log pow floor ceil sin cos tanh` for floats, `&& ||` for `bool`, `& | ^ !` for
integers and `bool`.

```ure
system s(N) { index i in 0..N; var A: f32 = 1.5 % 2; }
```

Cast first, or compare a number with zero to get a `bool`."#;

    LITERAL_RANGE = "E0205", "a literal outside the range of its type",
r#"A literal must be a value of its type; it is never wrapped, nor rounded to infinity.

```ure
system s(N) { const k: u8 = 300; }
```

Use a wider type or another value."#;

    WRONG_COUNT = "E0206", "the wrong number of indices or arguments",
r#"A variable takes one index for each iterator, an array one for each axis, a function one argument
for each parameter.

```ure
system s(N) { index i in 0..N, j in 0..N; var A: f32 = A(i - 1); }
```

Give exactly as many as were declared."#;

    NOT_AFFINE = "E0207", "a product of iterators in an index",
r#"Index expressions are quasi-affine: a product has at most one factor with iterators. Only then can
dependences be analysed exactly.

```ure
system s(N) { input x[N]: f32; index i in 0..N, j in 0..N; var A: f32 = x[i*j]; }
```

Multiply by constants or parameters only; values that index come from a `table`."#;

    DIVISOR_NOT_CONSTANT = "E0208", "division of an index by something unknown",
r#"In an index, the right side of `/` and `%` is a positive number, not a parameter or iterator.

```ure
system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = x[i/N]; }
```

Write the number, or introduce an iterator for the quotient."#;

    BAD_DIVISOR = "E0209", "division by zero or a negative constant",
r#"An index is divided by positive constants only, rounding down. An integer value is not divided by
the literal 0.

```ure
system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = x[i % 0]; }
```

Divide by a positive number; `-(i/2)` for a quotient with the other sign."#;

    VALUE_IN_INDEX = "E0210", "a value in an index expression",
r#"Variables are read at affine points and arrays at quasi-affine indices, of iterators, parameters and
integers. A computed value can index a `table` only.

```ure
system s(N) { input x[N]: f32; input y[N]: i32; index i in 0..N; var A: f32 = x[y[i]]; }
```

Declare `x` as a `table` if it is small."#;

    WRONG_KIND = "E0211", "a name of another kind",
r#"Variables are read as `V(i, j)`, elements of arrays as `x[i, j]`, functions are called as `f(a, b)`,
outputs and the index of a batch cannot be read.

```ure
system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = x(i); }
```

Use the brackets that belong to the kind."#;

    RECURSIVE_FUNCTION = "E0212", "a recursive function",
r#"A `fn` is inlined and must not call itself, directly or indirectly.

```ure
system s(N) { fn f(a: i32) -> i32 = f(a - 1); }
```

Write a recurrence: a `var` that reads itself at an earlier point."#;

    IMPURE_FUNCTION = "E0213", "a function that reads the point it is called at",
r#"A `fn` sees its arguments, constants, parameters and tables; iterators, variables and inputs belong
to the equation that calls it.

```ure
system s(N) { index i in 0..N; fn f(a: i64) -> i64 = a + i; }
```

Pass the value as an argument."#;

    READ_ELSEWHERE = "E0214", "an output that reads another point",
r#"A write of an output runs at each point of its guard and reads variables at that same point.

```ure
system s(N) { index i in 0..N; var A: f32 = 1; output z[N]: f32 = A(i - 1) at [i]; }
```

Write `A at [i + 1]` instead: choose the element, not the point."#;

    TABLE_SHAPE = "E0215", "contents that do not fit their table",
r#"The contents of a table are nested rows, one pair of brackets for each axis, with as many entries as
the axis is long; the sizes are numbers.

```ure
system s(N) { table t[2, 2]: i32 = [[1, 0, 0], [0, 1, 0]]; }
```

Correct the rows or the axes."#;

    SELECT_NEEDS_ELSE = "E0216", "a select by value without else",
r#"`select(c, a)` leaves the value undefined where c does not hold. That is decided by the position of
a point only, so c is a condition on iterators and parameters; by a computed value both branches are
needed.

```ure
system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = select(x[i] > 0, x[i]); }
```

Add the third argument."#;

    NOT_A_CONDITION = "E0217", "no condition on the position",
r#"Domains and guards (`where`, `on`, `when`) compare quasi-affine expressions of iterators and
parameters, joined by `&& || !`.

```ure
system s(N) where N + 1 { }
```

Compare it with something: `N + 1 > 0`."#;

    ITERATOR_NOT_SEEN = "E0218", "an iterator where it has no value",
r#"Sizes of arrays and conditions on parameters see no iterator; the range of an iterator sees those
before it.

```ure
system s(N) { index i in 0..j, j in 0..N; }
```

Reorder the iterators, or write the condition with `where`."#;

    UNKNOWN_SYSTEM = "E0219", "an unknown system",
r#"A mapping and a stage name a system of the same file.

```ure
mapping m of s { lane = i; }
```

Check the spelling, or declare the system."#;

    STAGE_PARAMETERS = "E0220", "the parameters of a stage",
r#"A stage gives each parameter of its system one value, by name.

```ure
system s(N, M) { }
program p(N) { a = s(N = N)(); }
```

Add the missing ones: `s(N = N, M = 3)`."#;

    STAGE_INPUTS = "E0221", "the inputs of a stage",
r#"A stage gives each input of its system one array, by name, except for tables with contents.

```ure
system s(N) { input x[N]: f32; }
program p(N) { a = s(N = N)(); }
```

Connect them: `(x = …)`."#;

    STAGE_ORDER = "E0222", "a stage that reads a later one",
r#"Stages run in the order in which they are written, and read outputs of earlier ones.

```ure
system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = x[i]; output z[N]: f32 = A at [i]; }
program p(N) { a = s(N = N)(x = a.z); }
```

Reorder the stages; iteration belongs in a system, as an iterator."#;

    ARRAY_MISMATCH = "E0223", "arrays that do not match",
r#"An array and the input it is connected to have the same type, number of axes and lengths.

```ure
system s(N) { input x[N]: f32; }
program p(N) { input y[N + 1]: f32; a = s(N = N)(x = y); }
```

Connect another array, or choose the parameters of the stage to fit."#;

    NO_SUCH_FIELD = "E0224", "a field that is not there",
r#"Fields of a tuple are counted from zero; scalars have none.

```ure
system s(N) { index i in 0..N; var A: f32 = 1; var B: f32 = A.0; }
```

Use one of the fields that the message lists."#;

    BAD_COMBINE = "E0225", "a function that cannot combine",
r#"`reduce` and `scan` take a function of two arguments whose types are that of its result.

```ure
system s(N) { fn f(a: i32) -> i32 = a; index i in 0..N; var A: i32 = reduce(f, k in 0..N, 1); }
```

Give it two parameters of the type it returns."#;

    MISPLACED_REDUCE = "E0226", "a reduce outside an equation",
r#"`reduce` and `scan` range over points, so they stand in the equations of variables, not in functions
or outputs.

```ure
system s(N) { index i in 0..N; output z[N]: i64 = reduce(+, k in 0..N, k) at [i]; }
```

Give the sum a variable of its own and write that."#;

    COEFFICIENT_TOO_LARGE = "E0227", "a coefficient that is too large",
r#"Coefficients of index expressions stay below 2^80, so that the exact arithmetic on them cannot
overflow.

```ure
system s(N) { index i in 0..9999999999999999999999999; }
```

No array has this size; use smaller constants."#;

    NOT_SCALAR = "E0228", "a tuple where a scalar is needed",
r#"Arrays and constants hold scalars. Variables and functions carry tuples.

```ure
system s(N) { input x[N]: (f32, f32); }
```

Declare one array for each field."#;
}
