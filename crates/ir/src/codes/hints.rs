use crate::codes::codes;

codes! { Hint:
    OLD_WORD = "H0801", "a word of an older version",
r#"The language has a new word for this. The old one means the same and is still accepted.

```ure
stencil s(N) { field u[N]: f32 held; u = 0.5*u[-1] + 0.5*u[1]; }
```

Write the new word: a boundary that keeps its values is `fixed`."#;
}
