//! Programs: two or three systems with arrays between them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::known;
use super::system::{INTS, type_trait};
use super::{Drawn, DrawnMapping, Source};

/// A system that takes an array of two axes to another one.
struct Stage {
    /// With `$T` for the type and `$n` for the number of the stage.
    text: &'static str,
    /// Columns of its input and of its output, as multiples of M.
    columns: (i64, i64),
    mappings: &'static [&'static str],
}

const MAPPINGS: &[&str] = &[
    "time = (i, j);",
    "lane = j; time = i;",
    "lane = i; time = j;",
    "tile j by L as (bj, jj); block = bj; lane = jj; time = i;",
    "tile i by 3 as (bi, ii); block = (bi, j); lane = ii; time = 0;",
    "lane = j / 4; reg = j % 4; time = i;",
    "time = (i + j, j - i);",
];

const STAGES: &[Stage] = &[
    Stage {
        text: "system s$n(N, M) where N >= 1, M >= 1 {
  input a[N, M]: $T;
  index i in 0..N, j in 0..M;
  var A: $T = a[i, j] * 3 - $T(i);
  output z[N, M]: $T = A at [i, j];
}",
        columns: (1, 1),
        mappings: MAPPINGS,
    },
    Stage {
        text: "system s$n(N, M) where N >= 1, M >= 1 {
  input a[N, M]: $T else 5;
  index i in 0..N, j in 0..M;
  var A: $T = max(a[i, j - 1], a[i + 1, j]) ^ a[i, j];
  output z[N, M]: $T = A at [i, j];
}",
        columns: (1, 1),
        mappings: MAPPINGS,
    },
    Stage {
        text: "system s$n(N, M) where N >= 1, M >= 1 {
  input a[N, M]: $T;
  index i in 0..N, j in 0..M;
  var S: $T = scan(+, j, a[i, j]);
  output z[N, M]: $T = S at [i, j];
}",
        columns: (1, 1),
        mappings: &[
            "time = (i, j);",
            "lane = i; time = j;",
            "block = i; time = j;",
            "lane = i; time = i + j;",
        ],
    },
    Stage {
        text: "system s$n(N, M) where N >= 1, M >= 1 {
  input a[N, M]: $T;
  index i in 0..N, j in 0..3*M;
  var A: $T = a[i, j/3];
  output z[N, 3*M]: $T = A at [i, j];
}",
        columns: (1, 3),
        mappings: MAPPINGS,
    },
    Stage {
        text: "system s$n(N, M) where N >= 1, M >= 1 {
  input a[N, 3*M]: $T;
  index i in 0..N, j in 0..3*M;
  var S: $T = select(j % 3 == 0, 0, S(i, j - 1)) + a[i, j];
  output z[N, M]: $T = S at [i, j/3] when j % 3 == 2;
}",
        columns: (3, 1),
        mappings: &[
            "time = (i, j);",
            "lane = i; time = j;",
            "block = i; time = j;",
        ],
    },
    Stage {
        text: "system s$n(N, M) where N >= 1, M >= 1 {
  input a[N, M]: $T;
  index i in 0..N, j in 0..M;
  var S: $T = reduce(+, q in 0..M, a[i, q] * a[i, j]);
  output z[N, M]: $T = S at [i, j];
}",
        columns: (1, 1),
        mappings: &[
            "time = (i, j, q);",
            "lane = j; time = (i, q);",
            "block = i; lane = j; time = q;",
        ],
    },
];

pub(super) fn draw(source: &mut Source, n_mappings: usize) -> Drawn {
    let ty = source.pick(&INTS);
    let n_stages = source.pick(&[2, 2, 3]);
    let mut systems = String::new();
    let mut stages: Vec<(&Stage, i64)> = Vec::new();
    let first = source.pick(&[1, 3]);
    let mut columns = first;
    let mut program = format!(
        "program p(N, M) where N >= 1, M >= 1 {{\n  input image[N, {}]: {ty};\n",
        times(columns)
    );
    for n in 0..n_stages {
        let fits: Vec<&Stage> = STAGES
            .iter()
            .filter(|s| columns % s.columns.0 == 0 && columns * s.columns.1 <= 9)
            .collect();
        let stage = source.pick(&fits);
        let text = stage.text.replace("$T", ty).replace("$n", &n.to_string());
        let _ = writeln!(systems, "{text}");
        let units = columns / stage.columns.0;
        let from = if n == 0 {
            "image".to_string()
        } else {
            format!("r{}.z", n - 1)
        };
        let _ = writeln!(
            program,
            "  r{n} = s{n}(N = N, M = {})(a = {from});",
            times(units)
        );
        columns = units * stage.columns.1;
        stages.push((stage, units));
    }
    let _ = write!(program, "  output result = r{}.z;\n}}\n", n_stages - 1);
    let large = source.pick(&[5, 11, 23]);
    let sizes = [[1, 1], [3, 2], [2, large]].map(|[n, m]| {
        let names = ["N", "M"].map(str::to_string);
        names.into_iter().zip([n, m]).collect()
    });
    let mut begins = Vec::new();
    let mappings = (0..n_mappings.max(n_stages))
        .map(|n| {
            begins.push(source.taken.len());
            let at = n % n_stages;
            let mappings = stages[at].0.mappings;
            let known = if known::PRECEDENCE { 1 } else { 0 };
            let n_mappings = mappings.len() - known.min(mappings.len() / MAPPINGS.len());
            let body = source.pick(&mappings[..n_mappings]);
            DrawnMapping {
                text: format!("mapping m{n} of s{at} {{ {body} }}\n"),
                traits: BTreeSet::new(),
            }
        })
        .collect();
    Drawn {
        system: format!("{systems}{program}"),
        mappings,
        params: vec![("N".into(), 1), ("M".into(), 1)],
        sizes: sizes.to_vec(),
        traits: BTreeSet::from(["program", type_trait(ty)]),
        regroups_floats: false,
        rounds: false,
        choices: source.taken.clone(),
        begins,
    }
}

/// `3*M`.
fn times(factor: i64) -> String {
    match factor {
        1 => "M".into(),
        n => format!("{n}*M"),
    }
}
