//! The model on small systems whose numbers can be computed by hand.

use std::collections::BTreeMap;

use systola_driver::{Fix, Machine, Simd, load, lower};
use systola_explore::model::code::Lanes;
use systola_explore::model::count::{Census, Sampling};
use systola_explore::model::footprint::{Cache, Footprint};
use systola_explore::model::tally::Quantity;
use systola_explore::model::{Cpu, Device, Error, predict};
use systola_ir::kernel::Program;
use systola_ir::kernel::census::Event;

const CONV2D: &str = "
system conv2d(R, C, H, Q) where R >= 1, C >= 1, H >= 1, Q >= 1 {
  input x[R + H - 1, C + Q - 1]: f32;
  input w[H, Q]: f32;
  index r in 0..R, c in 0..C;
  var Z: f32 reorderable = reduce(+, p in 0..H, q in 0..Q, x[r + p, c + q] * w[p, q]);
  output z[R, C]: f32 = Z at [r, c];
}
mapping rows of conv2d {
  tile r by 4 as (br, rr);
  tile c by 2*L as (bc, cc);
  block = (br, bc);
  lane = cc % L;
  reg = (rr, cc / L);
  time = (q, p);
  sum Z along (p, q);
}
mapping narrow of conv2d {
  tile c by L as (bc, cc);
  block = (r, bc);
  lane = cc;
  time = (q, p);
  sum Z along (p, q);
}
mapping columns of conv2d {
  tile c by L as (bc, cc);
  block = (bc, r);
  lane = cc;
  time = (q, p);
  sum Z along (p, q);
}";

const COLUMNS: &str = "
system columns(M, N) where M >= 1, N >= 1 {
  input x[M, N]: f32;
  index i in 0..M, j in 0..N;
  var S: f32 = scan(+, i, x[i, j]);
  output s[M, N]: f32 = S at [i, j];
}
mapping narrow of columns {
  tile j by 256 as (b, w);
  tile w by L as (r, l);
  block = b;
  lane = l;
  reg = r;
  time = i;
}
mapping high of columns {
  look_back;
  tile i by 16 as (p, r);
  tile j by L as (q, l);
  block = (p, q);
  lane = l;
  reg = r;
  time = 0;
}
mapping wide of columns {
  tile j by 4096 as (b, w);
  tile w by L as (t, l);
  block = b;
  lane = l;
  time = (i, t);
  unroll t by 4;
}";

const SUM: &str = "
system total(N) where N >= 1 {
  input x[N]: f32;
  var Z: f32 = reduce(+, i in 0..N, x[i]);
  output z[]: f32 = Z at [];
}
mapping neighbours of total {
  tile i by 32768 as (b, w);
  tile w by 8*L as (t, v);
  tile v by L as (r, l);
  sum Z along t then tree (r, l, b);
  block = b;
  lane = l;
  reg = r;
  time = t;
}
mapping apart of total {
  tile i by 32768 as (b, w);
  tile w by 8192 as (t, v);
  tile v by 1024 as (r, y);
  tile y by L as (s, l);
  sum Z along (s, t) then tree (r, l, b);
  block = b;
  lane = l;
  reg = r;
  time = (t, s);
}";

fn machine() -> Machine {
    Machine::cpu(Simd::Avx512)
}

/// The program of a mapping, with the given sizes as constants, and its sizes.
fn program(name: &str, sizes: &[(&str, i128)], fix: &[&str]) -> (Program, Vec<i128>) {
    program_of(CONV2D, name, sizes, fix)
}

fn program_of(
    text: &str,
    name: &str,
    sizes: &[(&str, i128)],
    fix: &[&str],
) -> (Program, Vec<i128>) {
    let module = load(text).unwrap();
    let mapping = module.mappings.iter().find(|m| m.name == name).unwrap();
    let sizes: BTreeMap<String, i128> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let fix = Fix::Names(fix.iter().map(ToString::to_string).collect());
    let lowered = lower(&module, mapping, &sizes, &fix, &machine()).unwrap();
    let params = lowered.program.params.iter();
    let values = params.map(|p| sizes[&p.name]).collect();
    (lowered.program, values)
}

const VECTORS: Lanes = Lanes::Vectors { bytes: 64 };

#[test]
fn sums_and_loads_are_those_of_the_mapping() {
    let sizes = [("R", 64), ("C", 320), ("H", 3), ("Q", 3)];
    let (program, values) = program("rows", &sizes, &["H", "Q"]);
    let census = Census::take(&program, &values, VECTORS, Sampling::Everything).unwrap();
    let blocks = (64 / 4 * 320 / 32) as f64;
    let tally = &census.total;
    assert_eq!(tally[Event::Blocks], blocks);
    // Nine products for each of eight vectors; a tile of 4 rows reads 6, at three positions of each
    // of two vectors.
    assert_eq!(tally[Quantity::FloatOps], 9.0 * 8.0 * blocks);
    assert_eq!(tally[Quantity::VectorLoads], 6.0 * 3.0 * 2.0 * blocks);
    assert_eq!(tally[Quantity::VectorStores], 8.0 * blocks);
    // A row of x has 322 elements, so that hardly any vector begins at a line.
    let split = tally[Quantity::SplitLoads] / tally[Quantity::VectorLoads];
    assert!((0.9..1.0).contains(&split), "{split}");
}

#[test]
fn samples_are_near_the_whole() {
    for name in ["rows", "narrow"] {
        for fix in [&["H", "Q"][..], &[]] {
            let sizes = [("R", 130), ("C", 700), ("H", 5), ("Q", 31)];
            let (program, values) = program(name, &sizes, fix);
            let take = |sampling| Census::take(&program, &values, VECTORS, sampling).unwrap();
            let (all, some) = (take(Sampling::Everything), take(Sampling::Some));
            let (all, some) = (all.total, some.total);
            let check = |what: &str, all: f64, some: f64| {
                let off = (some / all - 1.0).abs();
                assert!(off < 0.06, "{name} {fix:?}: {what} {some} for {all}");
            };
            for event in [
                Event::Blocks,
                Event::Arithmetic,
                Event::Loads,
                Event::Stores,
                Event::GlobalSectors,
            ] {
                check(&format!("{event:?}"), all[event], some[event]);
            }
            for quantity in [Quantity::VectorLoads, Quantity::SplitLoads] {
                check(&format!("{quantity:?}"), all[quantity], some[quantity]);
            }
        }
    }
}

#[test]
fn each_cache_gets_what_does_not_fit_into_it() {
    let sizes = [("R", 1024), ("C", 1000), ("H", 3), ("Q", 3)];
    let (program, values) = program("narrow", &sizes, &["H", "Q"]);
    let census = Census::take(&program, &values, VECTORS, Sampling::Some).unwrap();
    let mut footprint = Footprint::new(&census.codes[0], &[], 64.0).unwrap();
    let mut read = |bytes: f64| {
        let traffic = footprint.of_launch(Cache { bytes, ways: 0.0 });
        assert!((traffic.written / 4096000.0 - 1.0).abs() < 0.1);
        traffic.read / (1026.0 * 1002.0 * 4.0)
    };
    // Everything once; three rows are kept from row to row; each row comes three times.
    assert!((read(1e9) - 1.0).abs() < 0.1);
    assert!((read(40e3) - 1.0).abs() < 0.1, "{}", read(40e3));
    let without = read(4e3);
    assert!((2.8..5.5).contains(&without), "{without}");
}

/// Eight blocks of 16 columns next to each other touch 512 bytes of a row, including what
/// neighbours share; one above the other, 64.
#[test]
fn which_blocks_follow_each_other_shows_in_memory() {
    let stretch = |name: &str, blocks: f64| {
        let sizes = [("R", 1024), ("C", 1024), ("H", 3), ("Q", 3)];
        let (program, values) = program(name, &sizes, &["H", "Q"]);
        let census = Census::take(&program, &values, VECTORS, Sampling::Some).unwrap();
        let mut footprint = Footprint::new(&census.codes[0], &[], 64.0).unwrap();
        footprint.stretch(blocks)
    };
    let (rows, columns) = (stretch("narrow", 8.0), stretch("columns", 8.0));
    assert!((300.0..600.0).contains(&rows), "{rows}");
    assert!((50.0..90.0).contains(&columns), "{columns}");
    let all = [stretch("narrow", 1e9), stretch("columns", 1e9)];
    assert!(all[0] > 1e6 && all[0] == all[1], "{all:?}");
}

/// The amount of a term at sizes that are all constants.
fn amount(text: &str, mapping: &str, sizes: &[(&str, i128)], term: &str) -> f64 {
    let names: Vec<&str> = sizes.iter().map(|(name, _)| *name).collect();
    let (program, values) = program_of(text, mapping, sizes, &names);
    let prediction = predict(&program, &values, &Device::Cpu(Cpu::default())).unwrap();
    let found = prediction.terms.iter().find(|t| t.name == term).unwrap();
    found.amount
}

#[test]
fn each_row_of_a_block_begins_a_run() {
    let sizes = [("M", 8192), ("N", 8192)];
    let runs = |mapping: &str| amount(COLUMNS, mapping, &sizes, "runs");
    assert_eq!(runs("narrow"), 8192.0 * 32.0);
    assert_eq!(runs("wide"), 8192.0 * 2.0);
    // Each of these blocks begins 16 runs at the same time.
    let high = runs("high") / (512.0 * 512.0);
    assert!((0.9..1.1).contains(&high), "{high}");
}

#[test]
fn looking_back_takes_one_thread_time_too() {
    let sizes = [("M", 64), ("N", 64)];
    let looks = |mapping: &str| amount(COLUMNS, mapping, &sizes, "look-backs");
    assert_eq!(looks("high"), 4.0 * 4.0, "blocks of 16 rows and a vector");
    assert_eq!(looks("wide"), 0.0);
}

#[test]
fn pages_that_are_read_at_the_same_time_hide_where_they_begin() {
    let sizes = [("N", 1 << 27)];
    let pages = |mapping: &str| amount(SUM, mapping, &sizes, "pages begun");
    let all = (1u32 << 27) as f64 * 4.0 / 4096.0;
    assert!((0.99..1.01).contains(&(pages("neighbours") / all)));
    assert!((0.99..1.01).contains(&(pages("apart") * 64.0 / all)));
}

#[test]
fn a_tile_is_predicted_faster_than_a_row() {
    let device = Device::Cpu(Cpu::default());
    let seconds = |name: &str| {
        let sizes = [("R", 1024), ("C", 1024), ("H", 9), ("Q", 9)];
        let (program, values) = program(name, &sizes, &["H", "Q"]);
        let prediction = predict(&program, &values, &device).unwrap();
        assert!(prediction.terms.iter().any(|t| t.name == prediction.limit));
        assert!(prediction.utilisation > 0.9 && prediction.utilisation <= 1.0);
        let needed = 2.0 * 81.0 * 1024.0 * 1024.0;
        let redundancy = prediction.redundancy(needed);
        assert!((0.9..1.1).contains(&redundancy), "{redundancy}");
        prediction.seconds
    };
    let (rows, narrow) = (seconds("rows"), seconds("narrow"));
    assert!(2.0 * rows < narrow, "{rows} {narrow}");
}

#[test]
fn wrong_sizes_are_refused() {
    let sizes = [("R", 64), ("C", 64), ("H", 3), ("Q", 3)];
    let (program, values) = program("rows", &sizes, &["H", "Q"]);
    let device = Device::Cpu(Cpu::default());
    let given = predict(&program, &values[..3], &device).unwrap_err();
    assert_eq!(
        given,
        Error::Sizes {
            expected: 4,
            given: 3
        }
    );
    let mut other = values.clone();
    other[2] = 5;
    let fixed = predict(&program, &other, &device).unwrap_err();
    assert!(matches!(fixed, Error::Fixed { .. }), "{fixed}");
    let mut large = values;
    large[0] = i128::from(i64::MAX);
    large[1] = i128::from(i64::MAX);
    assert_eq!(predict(&program, &large, &device), Err(Error::TooLarge));
}
