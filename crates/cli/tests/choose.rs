//! Commands without `--map`: the same choice every time, said in one line, under a name that works.

mod common;

use std::fs;

use common::{CORE, check_with, file, temporary};

const SUMS: &str = "\
system sums(N, K) where N >= 1, K >= 1 {
  input x[N + K]: i32;
  index n in 0..N;
  var S: i32 = x[n] + x[n + K];
  output s[N]: i32 = S at [n];
}
";

/// An empty cache.
fn fresh(name: &str) -> String {
    let dir = temporary(&format!("choose-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir.display().to_string()
}

fn within(cache: &str, args: &[&str]) -> (String, String) {
    check_with(&[("SYSTOLA_CACHE", cache)], args, 0)
}

/// The name after `no --map: `.
fn chosen(line: &str) -> String {
    let rest = line.split("no --map: ").nth(1).expect("a choice");
    rest.split(' ').next().unwrap().to_string()
}

#[test]
fn empty_caches_give_the_same_code() {
    let file = file("choose-same.ure", SUMS);
    let (one, two) = (fresh("one"), fresh("two"));
    for more in [&[][..], &["--target", "cuda"], &["--target", "opencl"]] {
        let args = [&["emit", &file], more].concat();
        let (code, said) = within(&one, &args);
        assert_eq!((code, said.clone()), within(&two, &args));
        assert!(
            said.contains("no --map: ") && said.contains(" of sums at N = "),
            "{said}"
        );
        assert!(
            said.contains("(N, K not given): the model's choice of "),
            "{said}"
        );
    }
    // The second time it is remembered, and the code is the same.
    let again = within(&one, &["emit", &file]);
    assert!(again.1.contains("remembered"), "{}", again.1);
    fs::remove_dir_all(&two).unwrap();
    assert_eq!(again.0, within(&two, &["emit", &file]).0);
}

#[test]
fn the_name_of_a_choice_works_everywhere() {
    let path = file("choose-name.ure", SUMS);
    let cache = fresh("name");
    let sizes = ["--set", "N=40", "--set", "K=3"];
    let run = |more: &[&str]| {
        let run = ["run", &path, "--target", "cpu", "--verify"];
        within(&cache, &[&run[..], &sizes, more].concat()).0
    };
    let out = run(&[]);
    let name = chosen(&out);
    assert!(out.contains("verified s"), "{out}");
    let named = ["--map", name.as_str()];
    let out = run(&named);
    assert!(out.contains(&format!("mapping {name} of sums")), "{out}");
    let (text, _) = within(&cache, &[&["dump", &path][..], &named].concat());
    assert!(
        text.contains(&format!("\nmapping {name} of sums {{")),
        "{text}"
    );
    within(&cache, &[&["emit", &path][..], &named].concat());
    let svg = format!("{cache}/name.svg");
    within(&cache, &[&["show", &path, "-o", &svg][..], &named].concat());
    // Saved, it is a mapping of the file, which is then taken without a choice.
    within(
        &cache,
        &[&["dump", &path, "--save", "mine"][..], &named].concat(),
    );
    let saved = fs::read_to_string(&path).unwrap();
    assert!(
        saved.starts_with(SUMS) && saved.contains("mapping mine of sums {"),
        "{saved}"
    );
    let (_, said) = within(&cache, &["dump", &path, "--after", "array"]);
    assert!(
        said.contains("no --map: mine of sums: the first of the file"),
        "{said}"
    );
    let again = [&["dump", &path, "--save", "mine"][..], &named].concat();
    let (_, said) = check_with(&[("SYSTOLA_CACHE", &cache)], &again, 1);
    assert!(said.contains("E0673"), "{said}");
}

/// Without a cache, too, names are those of the explorer.
#[test]
fn names_of_candidates_need_no_cache() {
    let path = file("choose-list.ure", SUMS);
    let without = [("SYSTOLA_CACHE_MB", "0")];
    let sizes = ["-p", "N=40", "-p", "K=3"];
    let list = ["explore", &path, "--list", "--budget", "3600s"];
    let (listed, _) = check_with(&without, &[&list[..], &sizes].concat(), 0);
    let first = listed.lines().find(|l| l.trim_start().starts_with("1 "));
    let name = first
        .and_then(|l| l.split_whitespace().nth(1))
        .expect("a design");
    let dump = ["dump", &path, "--map", name];
    let (text, _) = check_with(&without, &[&dump[..], &sizes].concat(), 0);
    assert!(
        text.contains(&format!("mapping {name} of sums {{")),
        "{text}"
    );
    let (_, said) = check_with(&without, &["dump", &path, "--map", "tile99999"], 1);
    assert!(said.contains("has no mapping `tile99999`"), "{said}");
    let (_, said) = check_with(&without, &["run", CORE, "--map", "nobody"], 1);
    assert!(said.contains("it has ") && said.contains("sbm"), "{said}");
}

#[test]
fn a_check_shows_the_choice_and_a_picture_an_array() {
    let path = file("choose-check.ure", SUMS);
    let cache = fresh("check");
    let (out, _) = within(&cache, &["check", &path]);
    assert!(
        out.starts_with(&format!("{path}: legal, no mapping")),
        "{out}"
    );
    assert!(
        out.contains("no mapping of sums in the file; chosen: "),
        "{out}"
    );
    assert!(out.contains("legal for all sizes"), "{out}");
    let (json, _) = within(&cache, &["check", &path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["chosen"][0]["mapping"]["legal"], true, "{json}");
    assert_eq!(json["mappings"].as_array().map(Vec::len), Some(0));
    let svg = format!("{cache}/array.svg");
    let (out, _) = within(&cache, &["show", &path, "-o", &svg]);
    assert!(out.contains("a linear array with few steps"), "{out}");
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg "));
    let name = chosen(&out);
    let (text, _) = within(&cache, &["dump", &path, "--map", &name]);
    assert!(
        text.contains(&format!("mapping {name} of sums {{")),
        "{text}"
    );
    // Interpreters need no mapping either.
    for target in ["array", "kernel"] {
        let (out, _) = within(&cache, &["run", &path, "--target", target, "--verify"]);
        assert!(
            out.contains("no --map: ") && out.contains("verified s"),
            "{out}"
        );
    }
}

#[test]
fn a_system_without_a_design_is_a_limitation_of_what_needs_one() {
    let text = "\
system back_and_forth(N) where N >= 2 {
  input x[N]: i32;
  index i in 0..N;
  var F: i32 = select(i == 0, 0, F(i - 1)) + x[i];
  var B: i32 = select(i == N - 1, 0, B(i + 1)) + F;
  output b[N]: i32 = B at [i];
}
";
    let path = file("choose-none.ure", text);
    let cache = fresh("none");
    for command in [
        &["emit", &path][..],
        &["show", &path],
        &["dump", &path, "--after", "kernel"],
    ] {
        let (_, said) = check_with(&[("SYSTOLA_CACHE", &cache)], command, 2);
        assert!(
            said.contains("L0723") && said.contains("against each other"),
            "{said}"
        );
    }
    // The file itself is right.
    let (out, _) = within(&cache, &["check", &path]);
    assert!(
        out.contains("no mapping of back_and_forth was found: "),
        "{out}"
    );
}
