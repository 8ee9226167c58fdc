//! Counts draws and their results: a test with too little coverage fails.

use std::collections::BTreeMap;
use std::time::Duration;

/// The traits that must be drawn, each with its minimum number.
pub const REQUIRED: &[(&str, usize)] = &[
    ("1 dim", 20),
    ("2 dims", 100),
    ("3 dims", 100),
    ("4 dims", 20),
    ("box", 100),
    ("triangle", 50),
    ("band", 50),
    ("domain with mod", 20),
    ("domain by conditions", 50),
    ("negative bound", 100),
    ("bound other than 0", 100),
    ("no parameter", 50),
    ("1 parameter", 100),
    ("2 parameters", 100),
    ("several variables", 100),
    ("restricted variable", 50),
    ("constant distance", 200),
    ("parametric distance", 50),
    ("same point", 50),
    ("guard with mod", 50),
    ("propagation", 100),
    ("accumulation", 100),
    ("carry", 10),
    ("window", 20),
    ("reduce with a function", 10),
    ("variable inside a sum", 10),
    ("constant", 20),
    ("table", 20),
    ("let", 5),
    ("tuple", 20),
    ("function", 10),
    ("choice by value", 10),
    ("reduce", 100),
    ("triangular sum", 5),
    ("sum inside an expression", 10),
    ("scan", 30),
    ("sum along", 50),
    ("descending sum", 20),
    ("sum tree", 10),
    ("forward", 100),
    ("several place coordinates", 200),
    ("several time coordinates", 200),
    ("several projections", 200),
    ("no place", 20),
    ("not unimodular", 30),
    ("reverse given", 20),
    ("wrong reverse given", 5),
    ("tile", 100),
    ("tile of a tile", 20),
    ("overlap", 50),
    ("two overlapped tiles", 10),
    ("tiles in launches", 3),
    ("tile of a parameter", 3),
    ("place with an offset", 20),
    ("several pieces", 10),
    ("V > 1", 50),
    ("launch", 100),
    ("block step", 10),
    ("flags", 20),
    ("pieces", 50),
    ("broadcast", 100),
    ("schedule with a parameter", 20),
    ("table 1", 20),
    ("i8", 20),
    ("i16", 20),
    ("i32", 20),
    ("i64", 20),
    ("u8", 20),
    ("u16", 20),
    ("u32", 20),
    ("u64", 20),
    ("f32", 50),
    ("f64", 50),
    ("bool", 50),
    ("verdict: legal for all sizes", 300),
    ("verdict: legal at given sizes", 10),
    ("verdict: refused", 300),
    ("refused: E0501", 100),
    ("refused: E0502", 100),
    ("refused: E0503", 5),
    ("refused: E0504", 10),
    ("refused: E0505", 5),
    ("refused by a counterexample", 300),
    ("array run: same bits", 300),
    ("array run: within the tolerance", 20),
    ("array run: overlapped", 10),
    ("array run: pieces", 5),
    ("array run: launches", 20),
    ("array run: V > 1", 20),
    ("kernel run: made for all sizes", 500),
    ("kernel run: made for its size", 50),
];

#[derive(Default)]
pub struct Tally {
    pub counts: BTreeMap<String, usize>,
    pub failures: Vec<String>,
    pub times: Vec<(Duration, String)>,
}

impl Tally {
    pub fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    pub fn add(&mut self, other: Tally) {
        for (what, n) in other.counts {
            *self.counts.entry(what).or_default() += n;
        }
        self.failures.extend(other.failures);
        self.times.extend(other.times);
    }

    pub fn get(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or(0)
    }

    pub fn table(&self) -> String {
        let rows = self
            .counts
            .iter()
            .map(|(what, n)| format!("{n:>7}  {what}"));
        rows.collect::<Vec<_>>().join("\n")
    }
}
