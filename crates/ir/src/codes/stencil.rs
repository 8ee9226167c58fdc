use crate::codes::codes;

codes! { Mistake:
    NO_STEPS = "E0230", "a stencil without steps",
r#"`steps` says how often a stencil is applied: a number of at least 1, or a parameter.

```ure
stencil s(N) { field u[N]: f32 clamp; steps 0; u = u[-1] + u[1]; }
```

Omit it for a single sweep."#;

    UNKNOWN_REACH = "E0231", "a neighbourhood of unknown size at a boundary without values",
r#"Where there is nothing beyond the boundary, it must be known which cells have all their neighbours:
the distances are numbers.

```ure
stencil s(N, H) { field u[N]: f32 fixed; input w[H]: f32; u = reduce(+, q in 0..H, u[q] * w[q]); }
```

Give the field a boundary condition with values, or the sum a number as its bound."#;

    NOTHING_BEYOND = "E0232", "a read beyond a boundary where there is nothing",
r#"A field that is `interior` (also when nothing is said) or `fixed` has no values beyond its boundary.
An equation whose own boundary condition gives it a value in every cell cannot read its neighbours.

```ure
stencil s(N) { field u[N]: f32 clamp; field c[N]: f32; u = c[-1] * u[0]; }
```

Give the field that is read a boundary condition with values."#;

    SMALLER_THAN_REACH = "E0233", "a grid that is smaller than what is read",
r#"`mirror`, `reflect` and `wrap` fold back once, so the grid is at least as large as the reach of the
neighbourhood. An `interior` must have cells left.

```ure
stencil s(N) { field u[2]: f32 mirror; u = u[-2] + u[2]; }
```

Make the field larger, or use `clamp` or `constant`."#;

    MIXED_INTERIOR = "E0234", "interior beside other boundary conditions in many steps",
r#"With each step, an `interior` field has fewer cells. A field that has a value in every cell cannot
be computed from it.

```ure
stencil s(N, T) {
  field u[N]: f32;
  field v[N]: f32 clamp;
  steps T;
  u = u[-1] + u[1];
  v = v[-1] + u[0];
}
```

Give all fields of the stencil a boundary condition with values, or none of them."#;

    UNBOUNDED_SUM = "E0235", "a sum without fixed bounds in many steps",
r#"Many steps read neighbours at distances that are numbers. A sum over a neighbourhood is unrolled for
that, so its bounds are numbers too.

```ure
stencil s(N, H, T) { field u[N]: f32 clamp; input w[H]: f32; steps T; u = reduce(+, q in 0..H, u[q] * w[q]); }
```

Use `sum(w * u over box 2)`, or make one step."#;

    NOT_AN_OFFSET = "E0236", "an offset that is no integer",
r#"Fields are read relative to the current cell: `u[-1, 0]` is the cell above. An offset consists of
integers and of the iterators of a sum.

```ure
stencil s(N) { index i; field u[N]: f32 clamp; u = u[i - 1]; }
```

Write the distance only, `u[-1]`. An array that is read at its own indices is an `input`."#;

    UNKNOWN_BOUNDARY = "E0237", "an unknown boundary condition",
r#"What lies beyond the boundary of a field is `interior` (nothing; the same as no word), `fixed`,
`constant` and a number, `clamp`, `mirror`, `reflect` or `wrap`. An input has the same words except
the first two, since nothing is omitted or fixed at its ends. The filter of a convolution and the
arrays of a program have none: a filter is read only inside, and the arrays of a program are read by
its systems.

```ure
stencil s(N) { field u[N]: f32 clamped; u = u[-1] + u[1]; }
```

Use one of these words."#;

    WEIGHTS_SHAPE = "E0238", "weights that do not fit the neighbourhood",
r#"The weights of a box have its shape: `w[5, 5]` for `box 2` in two dimensions. Those of any other
neighbourhood are a list in the order of its cells, row by row: `w[5]` for `star 1`. A radius is
given for all axes, or for each.

```ure
stencil s(N, M) { field u[N, M]: f32 clamp; input w[3, 3]: f32; u = sum(w * u over star 1); }
```

Change the array or the neighbourhood."#;

    NO_UPDATE = "E0239", "a stencil that computes nothing",
r#"A stencil has a field, and an equation that gives a field its next value.

```ure
stencil s(N) { field u[N]: f32 clamp; }
```

Add one: `u = 0.5 * u[-1] + 0.5 * u[1];`."#;

    NOT_A_FIELD = "E0240", "something that is no field",
r#"An equation `u = …;` gives a declared field its next value, once. Neighbourhoods are those of fields
and of variables on the grid, and `output h = u;` names a field with an equation, or a variable.

```ure
stencil s(N) { field u[N]: f32 clamp; v = u[-1] + u[1]; }
```

Declare it with `field`, or as an intermediate value: `var v: f32 = …;`."#;

    FIELDS_DIFFER = "E0241", "fields of different grids",
r#"All fields of a stencil have the same axes, each from zero.

```ure
stencil s(N, M) { field u[N]: f32 clamp; field v[M]: f32 clamp; u = u[-1] + v[0]; }
```

Declare arrays that do not lie on the grid with `input`."#;

    NOT_IN_STENCIL = "E0242", "a neighbourhood outside a stencil",
r#"`sum(u over box 1)` is written in stencils only; systems have `reduce`.

```ure
system s(N) { input x[N]: f32; index i in 0..N; var A: f32 = sum(x over box 1); output z[N]: f32 = A at [i]; }
```

Declare a `stencil`, or write `reduce(+, d in -1..2, x[i + d])`."#;
}
