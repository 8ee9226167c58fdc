//! The same programs, compiled and run on every target of this machine.

use std::collections::BTreeMap;

use systola_filetests::cpus::on_all_cpus;
use systola_filetests::oracle::{Device, Runner, Subject, runners, try_all};

use crate::aligned::PROGRAMS;
use crate::random::{Draw, alignments, cases, text};

/// Places and times that are legal for some of the draws.
const SCHEDULES: [&str; 8] = [
    "lane = 0; time = (p, q, r);",
    "lane = 0; time = (p, -q, r);",
    "lane = 0; time = (p, q, -r);",
    "launch = p; lane = r; time = q;",
    "launch = p; lane = q; time = -r;",
    "launch = p; block = q; lane = 0; time = r;",
    "warp = q % 2; lane = r % 4; time = (p, q / 2, r / 4);",
    "launch = p; block = q / 3; warp = q % 3; lane = 0; time = r;",
];

/// The text of a system with alignments, or with values that are forwarded, under some schedules.
fn program(seed: u64) -> String {
    let draw = &mut Draw(seed);
    let (mut program, first) = match seed % 3 {
        0 => {
            let (system, arity) = text(draw);
            let alignments = alignments(draw, &arity);
            (system, format!("space (p, q, r);{alignments}"))
        }
        _ => elimination(draw),
    };
    for (n, schedule) in SCHEDULES.iter().enumerate() {
        program.push_str(&format!("\nmapping m{n} of s {{ {first} {schedule} }}"));
    }
    program
}

/// A row and a column of an earlier step are read at all points, and forwarded to them.
fn elimination(draw: &mut Draw) -> (String, String) {
    let domain = draw.of(&["p <= N", "p <= q", "p <= q, p <= r", "q <= r", "p < q + 2"]);
    let domain_at = |p: &str, q: &str, r: &str| {
        let place = domain
            .replace(", ", " && ")
            .replace('p', "P")
            .replace('q', "Q")
            .replace('r', "R");
        let place = place
            .replace('P', &format!("({p})"))
            .replace('Q', &format!("({q})"));
        place.replace('R', &format!("({r})"))
    };
    let fixed = ["p - 1", "p - 1", "p", "p + 1", "0", "N - 1"];
    let (row, column) = (draw.of(&fixed), draw.of(&fixed));
    let (down, along) = (draw.of(&["1", "-1"]), draw.of(&["1", "-1"]));
    let mut read = |row: Option<&str>, column: Option<&str>| {
        let back = draw.of(&["p - 1", "p - 1", "p - 2"]);
        let (q, r) = (row.unwrap_or("q"), column.unwrap_or("r"));
        // Readers are ahead of the value that they read.
        let ahead = |sign: &str| if sign == "1" { ">=" } else { "<=" };
        let ahead = format!("q {} {q} && r {} {r}", ahead(down), ahead(along));
        let more = draw.of(&["q >= 0", "q > p", "r >= p", "q + r < N + 2"]);
        let inside = domain_at(back, q, r);
        format!(
            "select(0 <= {back} && 0 <= {q} < N && 0 <= {r} < N && {inside} && {ahead} && {more}, A({back}, {q}, {r}), 7)"
        )
    };
    let first = read(Some(row), None);
    let second = read(None, Some(column));
    let own = read(None, None);
    let system = format!(
        "system s(N) where N >= 1 {{
           input x[N, N]: i32;
           index p in 0..N, q in 0..N, r in 0..N;
           var A: i32 on {domain} = select(p == 0, x[q, r], {own} + {first} - 3 * {second});
           output z[N, N, N]: i32 = A at [p, q, r] when {} else 0;
         }}",
        domain.replace(", ", " && ")
    );
    let directions = format!("forward A along (0, {down}, 0); forward A along (0, 0, {along});");
    (system, directions)
}

/// The programs of the tests of alignments, and random ones; those that are refused are left out.
fn subjects(seeds: u64) -> Vec<Subject> {
    let given = PROGRAMS.iter().enumerate().map(|(n, (text, sizes))| {
        let module = systola_driver::load(text).expect("loaded elsewhere");
        let names = module.systems[0].param_names();
        let sizes: BTreeMap<String, i128> = names.into_iter().zip(sizes.iter().copied()).collect();
        let name = format!("program {n}");
        Subject::new(&name, text, &[sizes], false, n as u64).ok()
    });
    let random = (0..seeds).map(|seed| {
        let sizes = [1, 5].map(|n| BTreeMap::from([("N".to_string(), n)]));
        Subject::new(&format!("draw {seed}"), &program(seed), &sizes, false, seed).ok()
    });
    given.chain(random).flatten().collect()
}

/// Compares all of them on some runners; the cases of each.
fn compare(list: &[Runner], seeds: u64) -> BTreeMap<String, u64> {
    let subjects = subjects(seeds);
    let batches: Vec<&[Subject]> = subjects.chunks(16).collect();
    let outcomes = on_all_cpus(&batches, |batch| {
        let outcome = try_all(batch, list, &|_, _, _| {});
        for find in &outcome.finds {
            let subject = &batch[find.subject];
            println!("{}: {find}\n{}", subject.name, subject.text);
        }
        (outcome.cases, outcome.finds.len())
    });
    let mut cases: BTreeMap<String, u64> = BTreeMap::new();
    let mut finds = 0;
    for (own, found) in outcomes {
        for (target, n) in own {
            *cases.entry(target).or_default() += n;
        }
        finds += found;
    }
    println!("{cases:?}");
    assert_eq!(finds, 0);
    cases
}

#[test]
fn programs_are_right_on_every_target() {
    let mut list = runners(&[]).expect("runners");
    list.retain(|runner| !matches!(runner, Runner::On(Device::OpenCl(_))));
    let cases = compare(&list, cases(40));
    for runner in &list {
        let seen = cases.get(&runner.to_string()).copied().unwrap_or(0);
        assert!(seen >= 30, "{seen} cases on {runner}");
    }
}

/// Where `SYSTOLA_OPENCL_DEVICES` promises devices, as in `cargo xtask test`.
#[test]
fn programs_are_right_on_opencl_devices() {
    let mut list = runners(&[]).expect("runners");
    list.retain(|runner| matches!(runner, Runner::On(Device::OpenCl(_))));
    if list.is_empty() {
        println!("skipped: SYSTOLA_OPENCL_DEVICES says how many devices there are");
        return;
    }
    let cases = compare(&list, cases(100));
    for runner in &list {
        let seen = cases.get(&runner.to_string()).copied().unwrap_or(0);
        assert!(seen >= 5, "{seen} cases on {runner}");
    }
}
