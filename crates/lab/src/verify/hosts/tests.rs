//! Whole programs, compiled by the system's compiler as a user would, and run on files.

use std::path::Path;

use systola::rt::opencl::{DeviceInfo, devices};
use systola_filetests::draw::draw_any;
use systola_filetests::ways::all_wanted;

use super::*;

/// Random programs, and how many of their mappings are legal and run at least.
const DRAWS: u64 = 16;
const VERIFIED: usize = 16;

/// A file of the gallery or a stencil, a mapping of it, and what it is a case of.
type Case = (&'static str, &'static str, fn(&str) -> bool);

const CASES: &[Case] = &[
    ("gallery/conv1d/core.ure", "sbm", plain),
    ("gallery/conv1d/tiled.ure", "", plain),
    ("gallery/string/edit_distance_strips.ure", "strips", waits),
    ("gallery/scan/across_blocks.ure", "chained", waits),
    ("gallery/scan/look_back.ure", "vectors", looks_back),
    ("gallery/scan/look_back.ure", "strips", looks_back),
    ("gallery/scan/look_back.ure", "single_rows", looks_back),
    ("gallery/stencil/gauss_seidel_blocks.ure", "slanted", waits),
    ("gallery/string/smith_waterman.ure", "", plain),
    ("gallery/stencil/drift2d.ure", "", plain),
    ("gallery/stencil/heat2d.ure", "", plain),
    ("gallery/stencil/jacobi1d_overlap.ure", "", host_loops),
    ("gallery/graph/floyd_warshall.ure", "", plain),
    ("gallery/database/histogram.ure", "", plain),
    ("gallery/sort/rank.ure", "", plain),
    ("gallery/scan/summed_area.ure", "", plain),
    ("stencils/life.ure", "", host_loops),
];

fn plain(text: &str) -> bool {
    text.contains("static void run(")
}

fn waits(text: &str) -> bool {
    text.contains("await_flag(") && text.contains("ROLE_FLAGS")
}

fn looks_back(text: &str) -> bool {
    text.contains("published_") && text.contains("ROLE_FLAGS")
}

fn host_loops(text: &str) -> bool {
    let run = text.split("static void run(").nth(1).unwrap_or_default();
    let run = run.split("int main(").next().unwrap_or_default();
    run.contains("for (int64_t ") && text.contains("ROLE_TEMPORARY")
}

/// A lookup in a table that the program states, periodic boundaries, and a quotient that may have
/// no value.
const TABLE: &str = "system tabled(N) where N >= 1 {
  table weights[4]: i32 = [5, -7, 11, 13];
  input a[N]: i32;
  index i in 0..N;
  var Z: i32 = weights[a[i] & 3] * a[i];
  output z[N]: i32 = Z at [i];
}
mapping m of tabled { tile i by 2*L as (b, ii); block = b; lane = ii % L; reg = ii / L; time = 0; }
";

const PERIODIC: &str = "stencil ring(N, M, T) {
  field u[N, M]: f32 wrap;
  steps T;
  u = 0.4*u + 0.1*(u[0, 1] + u[0, -1] + u[1, 0] + u[-1, 0] + u[1, 1] + u[-1, -1]);
}
mapping m of ring {
  tile t by 4 as (tl, s);
  tile y by 16 as (by, yy) overlap (4, 4) periodic;
  tile x by 56 as (bx, xx) overlap (4, 4) periodic;
  launch = tl;
  block = (by, bx);
  lane = (xx + 4) / 2;
  reg = (xx + 4) % 2;
  time = (yy + s, s);
}
";

const DIVIDE: &str = "system divide(N) where N >= 3 {
  input a[N]: i32;
  input d[N]: i32;
  index i in 0..N;
  var Z: i32 = a[i] / d[i];
  output z[N]: i32 = Z at [i];
}
mapping m of divide { tile i by 2*L as (b, ii); block = b; lane = ii % L; reg = ii / L; time = 0; }
";

fn source(path: &str) -> Source {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    parsed(path, &std::fs::read_to_string(root.join(path)).unwrap())
}

fn parsed(path: &str, text: &str) -> Source {
    Source::parse(path, text).unwrap_or_else(|_| panic!("{path} is no program"))
}

fn campaign(language: Language) -> Campaign {
    let compiler = Compiler::new(&language).unwrap_or_else(|_| panic!("a compiler"));
    Campaign {
        language,
        compiler,
        compile_only: false,
        most_points: 4000,
        most_sizes: 2,
        keep: None,
    }
}

/// The failures of some mappings, and the number of runs.
fn failures(campaign: &Campaign, cases: &[(Source, &str)]) -> (Vec<String>, usize) {
    let done = each(cases, available(), |(source, name)| {
        let mapping = mapping_of(source, name);
        let rows = campaign.mapping(source, mapping);
        let shown = format!("{} {}", source.path, mapping.name);
        let verified = (rows.iter()).filter(|row| matches!(row, RunResult::Verified(_)));
        let verified = verified.count();
        let refused = rows.iter().any(|row| matches!(row, RunResult::Refused(_)));
        let lines: Vec<String> = rows.iter().map(|row| row.line(&shown)).collect();
        let failed = rows.iter().any(|r| matches!(r, RunResult::Failed(_)));
        let wrong = (failed || verified == 0 && !refused).then(|| lines.concat());
        (verified, wrong)
    });
    let runs = done.iter().map(|(verified, _)| verified).sum();
    let wrong = done.into_iter().filter_map(|(_, wrong)| wrong);
    (wrong.collect(), runs)
}

fn c() -> Language {
    let options = systola::CpuOptions::from_env().unwrap_or_else(|e| panic!("{e}"));
    Language::C(options.simd)
}

#[test]
fn programs_in_c_compute_what_the_equations_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut campaign = campaign(c());
    campaign.keep = Some(folder.path().to_path_buf());
    let own = [("tabled", TABLE), ("ring", PERIODIC), ("divide", DIVIDE)];
    let mut cases: Vec<(Source, &str)> = (own.into_iter())
        .map(|(name, text)| (parsed(name, text), "m"))
        .collect();
    cases.extend(CASES.iter().map(|(path, map, _)| (source(path), *map)));
    let (wrong, runs) = failures(&campaign, &cases);
    println!("{} programs, {runs} runs", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(runs > cases.len(), "{runs} runs");
    // The cases are what they are there for.
    let text = |source: &Source, name: &str| {
        let mapping = mapping_of(source, name);
        let file = format!("{}_{}.c", mapping.system, mapping.name);
        std::fs::read_to_string(folder.path().join(file)).expect("the text was kept")
    };
    for ((source, name), (path, _, is)) in cases.iter().skip(own.len()).zip(CASES) {
        assert!(is(&text(source, name)), "{path} {name}");
    }
    assert!(text(&cases[0].0, "m").contains("ROLE_TABLE"));
    assert!(text(&cases[1].0, "m").contains("for (int64_t "));
    assert!(text(&cases[2].0, "m").contains("E0613: integer division by zero"));
}

/// Random systems, stencils and programs with random mappings, the legal ones of which become
/// programs.
#[test]
fn random_programs_compute_what_the_equations_say() {
    let mut campaign = campaign(c());
    campaign.most_sizes = 1;
    let seeds: Vec<u64> = (0..DRAWS).collect();
    let done = each(&seeds, available(), |seed| {
        let name = format!("seed {seed}");
        let source = parsed(&name, &draw_any(*seed, 2).text());
        let rows = source.module.mappings.iter().flat_map(|mapping| {
            let rows = campaign.mapping(&source, mapping).into_iter();
            rows.map(|row| (row.line(&format!("{name} {}", mapping.name)), row))
        });
        rows.collect::<Vec<_>>()
    });
    let rows: Vec<&(String, RunResult)> = done.iter().flatten().collect();
    let count = |is: fn(&RunResult) -> bool| rows.iter().filter(|(_, row)| is(row)).count();
    let verified = count(|row| matches!(row, RunResult::Verified(_)));
    let failed = rows
        .iter()
        .filter(|(_, row)| matches!(row, RunResult::Failed(_)));
    let failed: Vec<&str> = failed.map(|(line, _)| line.as_str()).collect();
    println!("{} mappings, {verified} run", rows.len());
    assert!(failed.is_empty(), "{}", failed.concat());
    assert!(verified >= VERIFIED, "{verified} of {} ran", rows.len());
}

/// The last one of a file where it has no name.
fn mapping_of<'m>(source: &'m Source, name: &str) -> &'m Mapping {
    let mut mappings = source.module.mappings.iter();
    let found = match name {
        "" => mappings.next_back(),
        name => mappings.find(|m| m.name == name),
    };
    found.unwrap_or_else(|| panic!("{} has no `{name}`", source.path))
}

/// The program of a mapping, the last one of a file where it has no name.
fn text_of(source: &Source, name: &str, language: &Language) -> String {
    let mapping = mapping_of(source, name);
    let system = source.system(Some(&mapping.system));
    let system = system.unwrap_or_else(|_| panic!("a system"));
    let params = &sizes(system, &Sizes::new())[0];
    let named = Parameters::from(system).named(params);
    let fix = systola_driver::Fix::Nothing;
    let machine = language.machine();
    let lowered = systola_driver::lower(&source.module, mapping, &named, &fix, &machine);
    let lowered = lowered.unwrap_or_else(|e| panic!("{}: {e:?}", source.path));
    language.emit(&lowered.program).expect("it is printed")
}

/// Changes of the kernel, of a grid and of what is zeroed, each of which a comparison finds.
#[test]
fn programs_that_are_wrong_are_found() {
    let language = c();
    let check = |source: &Source, name: &str, from: &str, to: &str| {
        let text = text_of(source, name, &language);
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed, "{text}");
        let campaign = campaign(c());
        let mapping = source.module.mappings.iter().find(|m| m.name == name);
        let mapping = mapping.expect("a mapping of this name");
        let mut programs = Programs::new(&campaign, &source.module, mapping);
        programs.change = Some((from.to_string(), to.to_string()));
        let system = source.system(Some(&mapping.system));
        let system = system.unwrap_or_else(|_| panic!("a system"));
        let params = &sizes(system, &Sizes::new())[2];
        let row = campaign.at(&mut programs, source, system, mapping, params);
        let found = matches!(row, Some(RunResult::Failed(_)));
        assert!(found, "`{from}` became `{to}`, and nobody noticed");
    };
    let tabled = parsed("tabled", TABLE);
    check(
        &tabled,
        "m",
        "{\n    5, -7, 11, 13,",
        "{\n    5, 7, 11, 13,",
    );
    check(
        &tabled,
        "m",
        "const int64_t blocks = ",
        "const int64_t blocks = -1 + ",
    );
    let core = source("gallery/conv1d/core.ure");
    check(&core, "sbm", "extent(0, C + Q - 1)", "extent(1, C + Q - 1)");
}

/// What a program says, and its exit status.
fn said(program: &program::HostProgram, words: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(program.path())
        .args(words)
        .output()
        .expect("it was compiled");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn programs_refuse_what_they_can_not_run_and_tell_faults() {
    let divide = parsed("divide", DIVIDE);
    let campaign = campaign(c());
    let mapping = &divide.module.mappings[0];
    let mut programs = Programs::new(&campaign, &divide.module, mapping);
    let made = programs.at(&Sizes::new());
    let made = made.unwrap_or_else(|row| panic!("{}", row.line("divide")));
    let zeros = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(zeros.path(), [1u8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
        .expect("it can be written");
    let file = format!("d={}", zeros.path().display());
    let check = |words: &[&str], status: i32, text: &str| {
        let (code, said) = said(made, words);
        assert!(
            code == Some(status) && said.contains(text),
            "{words:?}: {code:?} {said}"
        );
    };
    check(&["N=3"], 0, "z: 3 elements, sum ");
    check(
        &["N=3", &file],
        1,
        "E0613: integer division by zero in `/`, in `Z` of `divide` at (i = 1), with N = 3",
    );
    check(
        &["N=4", &file],
        1,
        "has fewer than the 16 bytes of 4 elements",
    );
    check(&["N=2"], 1, "the sizes do not satisfy N >= 3");
    check(&["N=1000000000000000000"], 1, "these sizes are too large");
    check(&["N=many"], 1, "a whole number of 64 bits is needed");
    check(&[], 1, "N is not given");
    check(&["M=3"], 1, "there is no such name");
}

/// What `cargo xtask test` sets up must be there; elsewhere that is said.
fn opencl_devices() -> Vec<(usize, bool)> {
    let promised = std::env::var("SYSTOLA_OPENCL_DEVICES");
    if promised.as_deref().unwrap_or("0") == "0" {
        println!("skipped: not asked for");
        return Vec::new();
    }
    let all = devices().unwrap_or_else(|e| panic!("{e}"));
    let has = |info: &DeviceInfo| (info.ordinal, info.shuffles.is_some());
    let all: Vec<(usize, bool)> = all.iter().map(has).collect();
    for kind in [true, false] {
        let some = all.iter().any(|(_, shuffles)| *shuffles == kind);
        assert!(some, "no device with shuffles: {kind}");
    }
    all
}

/// Each run compiles its kernels anew, so a case of the gallery is run on one of the devices, and at
/// one size.
#[test]
fn programs_for_opencl_compute_the_same() {
    let devices = opencl_devices();
    for (n, (device, _)) in devices.iter().enumerate() {
        let language = Language::opencl(*device).unwrap_or_else(|e| panic!("{e}"));
        let mut campaign = campaign(language);
        campaign.most_sizes = if all_wanted() { 2 } else { 1 };
        let own = [("tabled", TABLE), ("divide", DIVIDE)];
        let mut cases: Vec<(Source, &str)> = (own.into_iter())
            .map(|(name, text)| (parsed(name, text), "m"))
            .collect();
        let short = CASES.iter().filter(|(path, ..)| !path.contains("conv2d"));
        let taken = short.take(9).enumerate();
        let taken = taken.filter(|(m, _)| all_wanted() || m % devices.len() == n);
        cases.extend(taken.map(|(_, (path, map, _))| (source(path), *map)));
        let (wrong, runs) = failures(&campaign, &cases);
        println!("device {device}: {runs} runs");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(runs >= cases.len(), "{runs} runs");
    }
}
