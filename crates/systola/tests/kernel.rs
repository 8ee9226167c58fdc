//! Kernels as users of the library call them.

use ndarray::{Array1, Array2, Axis, Slice};
use systola::{Error, Kernel, Target};

const CONV: &str = "
system conv1d(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  index c in 0..C;
  var Z: f32 reorderable = reduce(+, q in 0..Q, x[c + q] * w[q]);
  output z[C]: f32 = Z at [c];
}";

const SHIFT: &str = "
system shift(R, C) where R >= 1, C >= 1 {
  input x[R, C + 1]: i32;
  index r in 0..R, c in 0..C;
  var E: i32 = x[r, c + 1] - x[r, c];
  output e[R, C]: i32 = E at [r, c];
}
mapping rows of shift { block = r; lane = c; time = 0; }";

const TWO: &str = "
system twice(N) where N >= 1 {
  input x[N]: i32;
  index n in 0..N;
  var T: i32 = x[n] + x[n];
  output t[N]: i32 = T at [n];
}
system sums(N, K) where N >= 1, K >= 1 {
  input x[N + K]: i32;
  index n in 0..N;
  var S: i32 = x[n] + x[n + K];
  output s[N]: i32 = S at [n];
}
program both(N) where N >= 2 {
  input x[N]: i32;
  first = twice(N = N)(x = x);
  second = sums(N = N - 1, K = 1)(x = first.t);
  output y = second.s;
}";

#[test]
fn a_recurrence_is_enough_and_its_sizes_follow_from_the_shapes() {
    let kernel = Kernel::builder()
        .text(CONV)
        .without_cache()
        .build()
        .unwrap();
    assert!(kernel.mapping().is_none());
    let run = |x: Vec<f32>, w: &[f32]| {
        let mut z = vec![0f32; x.len() + 1 - w.len()];
        let inputs = [("x", (&x).into()), ("w", w.into())];
        kernel.call(&inputs, &mut [("z", (&mut z).into())]).unwrap();
        z
    };
    assert_eq!(run(vec![1.0, 2.0, 3.0], &[1.0, 10.0]), [21.0, 32.0]);
    let first = kernel.mapping().unwrap();
    assert_eq!(run(vec![1.0; 40], &[1.0, 1.0]), [2.0; 39]);
    assert_eq!(kernel.mapping().unwrap(), first, "it serves all lengths");
    assert_eq!(run(vec![1.0; 9], &[1.0, 1.0, 1.0]), [3.0; 7]);
    let why = kernel.choice().unwrap().to_string();
    assert!(why.contains("the model's choice of "), "{why}");
    assert!(
        kernel
            .mapping()
            .unwrap()
            .to_string()
            .starts_with("mapping ")
    );
    assert!(kernel.code().unwrap().contains("void "));
    assert_eq!(kernel.report().unwrap().system, "conv1d");
}

#[test]
fn arrays_come_as_slices_vectors_and_ndarray() {
    let kernel = Kernel::builder()
        .text(SHIFT)
        .mapping("rows")
        .build()
        .unwrap();
    let x = Array2::from_shape_fn((2, 4), |(r, c)| (10 * r + c * c) as i32);
    let expected = Array2::from_shape_fn((2, 3), |(_, c)| 2 * c as i32 + 1);
    let mut e = Array2::<i32>::zeros((2, 3));
    kernel.input("x", &x).output("e", &mut e).run().unwrap();
    assert_eq!(e, expected);
    let wide = x.t().to_owned();
    let mut frame = Array2::<i32>::zeros((2, 5));
    let inside = frame.slice_axis_mut(Axis(1), Slice::from(1..4));
    kernel
        .input("x", wide.t())
        .output("e", inside)
        .run()
        .unwrap();
    assert_eq!(frame.slice_axis(Axis(1), Slice::from(1..4)), expected);
    // Flat arrays, row by row, where the sizes are known.
    let flat: Vec<i32> = x.iter().copied().collect();
    let mut out = [0i32; 6];
    let call = kernel.size("R", 2).size("C", 3);
    call.input("x", &flat).output("e", &mut out).run().unwrap();
    assert_eq!(out, [1, 3, 5, 1, 3, 5]);
    let mut out = vec![0i32; 6];
    let error = kernel.input("x", &flat[..]).output("e", &mut out).run();
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("E0602"), "{error}");
    assert!(
        error.contains(".size(\"R\", …)") && error.contains("`x` has 2 axes"),
        "{error}"
    );
    let column = Array1::from(vec![0i32; 4]);
    let call = kernel.size("R", 2).size("C", 3);
    let error = call.input("x", &column).output("e", &mut out).run();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("shape [2, 4], got [4]"), "{error}");
    assert!(error.contains("at R = 2, C = 3"), "{error}");
}

#[test]
fn programs_and_systems_are_selected() {
    let build = |system: Option<&str>| {
        let builder = Kernel::builder().text(TWO).without_cache();
        match system {
            Some(name) => builder.system(name).build(),
            None => builder.build(),
        }
    };
    let both = build(None).unwrap();
    let x = [1i32, 2, 3, 4];
    let mut y = [0i32; 3];
    both.input("x", &x).output("y", &mut y).run().unwrap();
    assert_eq!(y, [6, 10, 14]);
    let error = both.input("x", &x).run().unwrap_err();
    assert!(matches!(
        error.runtime(),
        Some(systola::rt::Error::MissingOutput { .. })
    ));
    let twice = build(Some("twice")).unwrap();
    let mut t = [0i32; 4];
    twice.input("x", &x).output("t", &mut t).run().unwrap();
    assert_eq!(t, [2, 4, 6, 8]);
    let error = build(Some("nobody")).unwrap_err();
    assert_eq!(error.code(), Some("E0657"));
    assert!(error.to_string().contains(".system(\"sums\")"), "{error}");
}

#[test]
fn mistakes_are_readable() {
    let fails = |kernel: Result<Kernel, Error>| kernel.unwrap_err().to_string();
    let error = fails(Kernel::from_text(CONV.replace("w[q]", "v[q]")));
    assert!(error.contains("--> 6:"), "{error}");
    assert!(error.contains("v[q]") && error.contains('^'), "{error}");
    assert!(!error.contains("Diagnostic {"), "{error}");
    let error = fails(Kernel::from_file("/no/such/file.ure"));
    assert!(
        error.starts_with("E0640") && error.contains("/no/such/file.ure"),
        "{error}"
    );
    let error = fails(Kernel::builder().build());
    assert!(error.contains(".text(…)"), "{error}");
    let error = fails(Kernel::builder().text(CONV).sizes(&[("N", 1)]).build());
    assert!(
        error.starts_with("E0601") && error.contains("C, Q"),
        "{error}"
    );
    let named = Kernel::builder().text(SHIFT).mapping("columns");
    let error = fails(named.sizes(&[("R", 2), ("C", 2)]).build());
    assert!(error.contains("there are: rows"), "{error}");
    let debug = format!("{:?}", systola::load("system").unwrap_err());
    assert_eq!(debug, systola::load("system").unwrap_err().to_string());
}

/// `?` works with both kinds of results.
#[test]
fn errors_convert() {
    fn ours() -> Result<(), Error> {
        systola::load(CONV)?;
        Err(systola::rt::Error::OutOfTime)?;
        Ok(())
    }
    fn boxed() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        systola::load("system")?;
        Ok(())
    }
    assert!(ours().is_err());
    let error = boxed().unwrap_err();
    assert_eq!(error.downcast::<Error>().unwrap().diagnostics().len(), 1);
}

/// With the feature it is a device or the lack of one, and no panic.
#[test]
fn a_gpu_is_a_feature() {
    match Kernel::builder().text(CONV).target(Target::Cuda).build() {
        Ok(kernel) => assert_eq!(kernel.target(), Target::Cuda),
        Err(error) if cfg!(feature = "cuda") => assert!(error.runtime().is_some(), "{error}"),
        Err(error) => assert!(
            error.to_string().contains("features = [\"cuda\"]"),
            "{error}"
        ),
    }
}

/// A kernel and its errors can be shared by threads, whatever its features.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<systola::Kernel>();
    shared::<systola::Error>();
};

#[test]
fn sizes_that_the_context_excludes_are_refused_with_the_condition() {
    let text = "system blur(N) where N >= 1 {
        input x[N + 2]: f32;
        index i in 0..N;
        var S: f32 = x[i] + x[i + 1] + x[i + 2];
        output y[N]: f32 = S at [i];
    }";
    let kernel = systola::Kernel::from_text(text).unwrap();
    let (x, mut y) = (vec![0f32; 2], vec![0f32; 0]);
    let refused = kernel.input("x", &x).output("y", &mut y).run();
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("N = 0 does not satisfy `N >= 1`"),
        "{message}"
    );
}

#[test]
fn a_mapping_that_is_not_there_is_refused_when_the_kernel_is_built() {
    let text = "system copy(N) { input x[N]: f32; index i in 0..N;
        var S: f32 = x[i]; output y[N]: f32 = S at [i]; }
        mapping one of copy { time = i; }";
    let refused = systola::Kernel::builder()
        .text(text)
        .mapping("rows")
        .build();
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("`copy` has no mapping `rows`"),
        "{message}"
    );
    assert!(message.contains("there are: one"), "{message}");
}
