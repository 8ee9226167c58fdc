//! The explorer through the binary, at small sizes. The speed of the machine does not matter:
//! searches of few candidates end before their budget, and others wait for a compiler that stalls
//! until the test releases it.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{check, check_with, command, stderr, stdout, temporary};
use serde_json::Value;

const TWO: &str = "\
// Sums, and twice the sums.
system sums(N, K) where N >= 1, K >= 1 {
  input x[N + K]: i32;
  index n in 0..N;
  var S: i32 = x[n] + x[n + K];
  output s[N]: i32 = S at [n];
}

mapping rows of sums {
  lane = n;
  time = 0;
}

system twice(N) where N >= 1 {
  input x[N]: i32;
  index n in 0..N;
  var T: i32 = x[n] + x[n];
  output t[N]: i32 = T at [n];
}

mapping plain of twice {
  lane = n;
  time = 0;
}
";

/// A cache, with its tuning database, for one test.
fn cache(name: &str) -> String {
    let dir = temporary(&format!("explore-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir.display().to_string()
}

fn database(cache: &str) -> PathBuf {
    PathBuf::from(cache).join("tuning-1.jsonl")
}

fn two(cache: &str) -> String {
    let path = PathBuf::from(cache).join("two.ure");
    fs::write(&path, TWO).unwrap();
    path.display().to_string()
}

const SIZES: [&str; 6] = ["--set", "N=40", "--set", "K=3", "--fix", "K"];

/// The cache, and the quickest compiler of this machine, since searches compile many kernels.
fn environment(cache: &str) -> [(&'static str, &str); 2] {
    let clang = Command::new("clang").arg("--version").output();
    let compiler = match clang {
        Ok(said) if said.status.success() => "clang",
        _ => "cc",
    };
    [("SYSTOLA_CACHE", cache), ("SYSTOLA_CC", compiler)]
}

/// A budget that a search of few candidates never exhausts.
const ENOUGH: [&str; 2] = ["--budget", "3600s"];

fn explore(cache: &str, file: &str, more: &[&str]) -> (String, String) {
    let args = [&["explore", file], &SIZES[..], more].concat();
    check_with(&environment(cache), &args, 0)
}

fn json(cache: &str, file: &str, more: &[&str]) -> Value {
    let (out, _) = explore(cache, file, &[more, &["--json"], &ENOUGH].concat());
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_search_is_remembered_until_its_system_changes() {
    let cache = cache("remembered");
    let file = two(&cache);
    let first = json(&cache, &file, &[]);
    assert_eq!((&first["schema"], &first["status"]), (&1.into(), &0.into()));
    assert_eq!(first["target"], "cpu");
    for (n, name) in ["sums", "twice"].iter().enumerate() {
        let system = &first["systems"][n];
        assert_eq!(
            (&system["name"], &system["remembered"]),
            (&(*name).into(), &false.into())
        );
        let designs = system["designs"].as_array().unwrap();
        assert!(!designs.is_empty() && designs[0]["measured_seconds"].as_f64() > Some(0.0));
        assert!(designs.iter().any(|d| d["on_front"] == true), "{designs:?}");
        let failed = system["failed"].as_array().unwrap();
        assert!(failed.iter().all(|f| f["kind"] != "wrong"), "{failed:?}");
    }
    let second = json(&cache, &file, &[]);
    for system in second["systems"].as_array().unwrap() {
        assert_eq!(system["remembered"], true);
    }
    let best = |all: &Value| all["systems"][0]["designs"][0]["mapping"].clone();
    assert_eq!(best(&first), best(&second));
    // Changing a comment or a name keeps the result, changing an equation does not.
    let text = TWO
        .replace("x[n] + x[n]", "3*x[n]")
        .replace("// Sums", "// The sums");
    fs::write(&file, text.replace("sums", "totals")).unwrap();
    let third = json(&cache, &file, &[]);
    assert_eq!(third["systems"][0]["name"], "totals");
    assert_eq!(third["systems"][0]["remembered"], true);
    assert_eq!(third["systems"][1]["remembered"], false);
    let again = json(&cache, &file, &["--system", "totals", "--again"]);
    assert_eq!(again["systems"][0]["remembered"], false);
}

#[test]
fn a_run_without_a_mapping_takes_the_best() {
    let cache = cache("run");
    let file = two(&cache);
    let run = |more: &[&str]| {
        let run = [
            "run", &file, "--system", "sums", "--target", "cpu", "--verify",
        ];
        let variables = environment(&cache);
        check_with(&variables, &[&run[..], more].concat(), 0).0
    };
    let out = run(&SIZES);
    assert!(out.contains("of sums: the model's choice of "), "{out}");
    // The model's choice is stored, until the mappings of the file change.
    let again = run(&SIZES);
    assert!(again.contains("predicted, remembered;"), "{again}");
    let text = fs::read_to_string(&file).unwrap();
    let other = "\nmapping other of sums { lane = n; time = 1; }\n";
    fs::write(&file, format!("{text}{other}")).unwrap();
    let anew = run(&SIZES);
    assert!(anew.contains("the model's choice of "), "{anew}");
    assert!(!anew.contains("remembered"), "{anew}");
    fs::write(&file, text).unwrap();
    let last = run(&SIZES);
    assert!(last.contains("predicted, remembered;"), "{last}");
    explore(
        &cache,
        &file,
        &[&["--system", "sums"], &ENOUGH[..]].concat(),
    );
    let out = run(&SIZES);
    assert!(
        out.contains("that `systola explore` measured here"),
        "{out}"
    );
    assert!(out.contains("verified s: 40 elements equal"), "{out}");
    // Without --fix, the best design determines the fixed sizes.
    let out = run(&SIZES[..4]);
    assert!(
        out.contains("measured here") && out.contains("K = 3"),
        "{out}"
    );
    let out = run(&["--set", "N=41", "--set", "K=3", "--fix", "K"]);
    assert!(out.contains("the model's choice"), "{out}");
    let out = run(&[&SIZES[..], &["--map", "rows"]].concat());
    assert!(!out.contains("no --map"), "{out}");
}

#[test]
fn the_stages_of_a_program_each_take_their_best() {
    let cache = cache("program");
    let path = PathBuf::from(&cache).join("program.ure");
    let program = "
program both(N) where N >= 2 {
  input x[N]: i32;
  first = twice(N = N)(x = x);
  second = sums(N = N - 1, K = 1)(x = first.t);
  output y = second.s;
}
";
    fs::write(&path, format!("{TWO}{program}")).unwrap();
    let file = path.display().to_string();
    let variables = environment(&cache);
    let sizes = ["--system", "twice", "--set", "N=40"];
    check_with(
        &variables,
        &[&["explore", &file], &sizes[..], &ENOUGH].concat(),
        0,
    );
    let run = [
        "run",
        &file,
        "--program",
        "both",
        "--target",
        "cpu",
        "-p",
        "N=40",
        "--verify",
    ];
    let (out, _) = check_with(&variables, &run, 0);
    assert!(out.contains("of twice: the best of"), "{out}");
    assert!(out.contains("of sums: the model's choice"), "{out}");
    assert!(out.contains("verified y"), "{out}");
}

#[test]
fn what_is_found_can_be_saved_looked_at_and_drawn() {
    let cache = cache("save");
    let file = two(&cache);
    let pictures = PathBuf::from(&cache).join("pictures");
    let plot = pictures.display().to_string();
    let wanted = [
        "--system",
        "sums",
        "--budget",
        "3600s",
        "--save",
        "found",
        "--plot",
        &plot,
        "--explain",
    ];
    let (out, _) = explore(&cache, &file, &wanted);
    for part in [
        "sums at N = 40, K = 3 on cpu (",
        "rows=",
        "mapping found written to",
        "limited by ",
        "verified: each against the equations in full at N = ",
        "measured",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let text = fs::read_to_string(&file).unwrap();
    let comment = "}\n\n// Found by the explorer for N = 40, K = 3 with K fixed on cpu (";
    assert!(text.contains(comment), "{text}");
    let start = text.find("\n// Found").unwrap();
    let end = start + text[start..].find("\n}\n").unwrap() + 3;
    assert_eq!(format!("{}{}", &text[..start], &text[end..]), TWO);
    let (out, _) = check(
        &["check", &file, "--map", "found", "-p", "N=40", "-p", "K=3"],
        0,
    );
    assert!(out.contains("found"), "{out}");
    for name in ["sums-model.svg", "sums-space.svg"] {
        let svg = fs::read_to_string(pictures.join(name)).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(svg.matches("<circle").count() >= 2, "{svg}");
    }
    // An existing name is refused, and the file is unchanged.
    let taken = [
        &["explore", &file, "--system", "sums"],
        &SIZES[..],
        &["--save", "found"],
    ]
    .concat();
    let (_, err) = check_with(&environment(&cache), &taken, 1);
    assert!(err.contains("E0673"), "{err}");
    let no_name = [
        &["explore", &file, "--system", "sums"],
        &SIZES[..],
        &["--save", "2x"],
    ]
    .concat();
    let (_, err) = check_with(&environment(&cache), &no_name, 1);
    assert!(err.contains("E0673"), "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let (out, _) = explore(&cache, &file, &["--system", "sums", "--list", "--top", "3"]);
    assert!(
        out.contains("predicted") && out.lines().count() == 6,
        "{out}"
    );
    let (out, _) = explore(&cache, &file, &["--system", "sums", "--explain", "rows"]);
    assert!(
        out.contains("mapping rows of sums {") && out.contains("limited by"),
        "{out}"
    );
}

#[test]
fn a_file_that_can_not_be_replaced_is_left_alone() {
    let cache = cache("readonly");
    let folder = PathBuf::from(&cache).join("folder");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("two.ure");
    fs::write(&file, TWO).unwrap();
    // The folder is removed during the exploration: permissions do not stop some users.
    let path = file.display().to_string();
    let mut child = command(
        &[
            &["explore", &path, "--system", "sums"],
            &SIZES[..],
            &["--budget", "3600s", "--save", "found"],
        ]
        .concat(),
    )
    .envs(environment(&cache))
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    // When the first kernel is compiled, the file has been read.
    while !PathBuf::from(&cache).join("locks").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let moved = PathBuf::from(&cache).join("moved");
    fs::rename(&folder, &moved).unwrap();
    let mut err = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{err}");
    assert!(err.contains("E0674"), "{err}");
    assert_eq!(fs::read_to_string(moved.join("two.ure")).unwrap(), TWO);
}

#[test]
fn mistakes_are_reported() {
    let cache = cache("mistakes");
    let file = two(&cache);
    let ends = |args: &[&str], status: i32, part: &str| {
        let args = [&["explore", &file], args].concat();
        let variables = [
            ("SYSTOLA_CACHE", cache.as_str()),
            ("SYSTOLA_OPENCL", "/no/such/library"),
        ];
        let (_, err) = check_with(&variables, &args, status);
        assert!(err.contains(part), "{part}\n{err}");
    };
    let fails = |args: &[&str], part: &str| ends(args, 1, part);
    let sums = [&["--system", "sums"], &SIZES[..]].concat();
    fails(&["--system", "nobody"], "has no system `nobody`");
    fails(&["--system", "sums", "--set", "N=4"], "E0602");
    fails(
        &["--system", "sums", "--set", "N=0", "--set", "K=1"],
        "E0603",
    );
    fails(&["--set", "M=4"], "no parameter `M`");
    fails(&[&sums[..], &["--explain", "nobody"]].concat(), "E0672");
    fails(&[&sums[..], &["--budget", "1us"]].concat(), "--budget");
    fails(&[&sums[..], &["--budget", "0.01ms"]].concat(), "E0671");
    fails(&[&sums[..], &["--device", "0"]].concat(), "--device");
    fails(&[&sums[..], &["--machine", "cuda"]].concat(), "--machine");
    fails(&[&SIZES[..], &["--save", "one"]].concat(), "--save");
    let far = ["--target", "cuda", "--device", "77"];
    // A missing component of the machine is no mistake.
    ends(&[&sums[..], &far].concat(), 2, "E0641");
    let far = ["--target", "opencl", "--device", "77"];
    ends(&[&sums[..], &far].concat(), 2, "E0660");
}

#[test]
fn a_system_without_a_design_is_reported() {
    let cache = cache("none");
    // Both variables of a point run in one step, and one ascends where the other descends.
    let text = "\
system back_and_forth(N) where N >= 2 {
  input x[N]: i32;
  index i in 0..N;
  var F: i32 = select(i == 0, 0, F(i - 1)) + x[i];
  var B: i32 = select(i == N - 1, 0, B(i + 1)) + F;
  output b[N]: i32 = B at [i];
}
mapping backwards of back_and_forth { time = -i; }
";
    let path = PathBuf::from(&cache).join("back_and_forth.ure");
    fs::write(&path, text).unwrap();
    let file = path.display().to_string();
    let args = ["explore", &file, "-p", "N=50", "--budget", "3600s"];
    let output = command(&args)
        .env("SYSTOLA_CACHE", &cache)
        .output()
        .unwrap();
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(2), "{out}\n{err}");
    assert!(err.contains("L0723") && err.contains("E0501"), "{err}");
    let why = "`F` and `B` go against each other";
    assert!(err.contains(why), "{err}");
    let list = [&args[..4], &["--list"]].concat();
    let (_, err) = check_with(&environment(&cache), &list, 2);
    assert!(err.contains("L0723"), "{err}");
}

#[test]
fn damage_in_the_database_is_said_and_survived() {
    let cache = cache("damage");
    let file = two(&cache);
    explore(
        &cache,
        &file,
        &[&["--system", "twice"], &ENOUGH[..]].concat(),
    );
    let path = database(&cache);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        format!("{}\n{text}{}", &text[..text.len() / 2], &text[..90]),
    )
    .unwrap();
    let (out, err) = explore(&cache, &file, &["--system", "twice"]);
    assert!(out.contains("remembered"), "{out}");
    assert!(err.contains("2 lines of") && err.contains("E0675"), "{err}");
}

/// Many candidates, more than any budget suffices for.
const MANY: &str = "\
system sums(N, K) where N >= 1, K >= 1 {
  input x[N + K - 1]: i32;
  index n in 0..N;
  var S: i32 reorderable = reduce(+, k in 0..K, x[n + k]);
  output s[N]: i32 = S at [n];
}
";

/// A compiler that stalls after some kernels: those that are compiled before anything is measured.
struct Stalling {
    script: PathBuf,
    stalled: PathBuf,
}

impl Stalling {
    fn new(cache: &str, kernels: usize) -> Stalling {
        let dir = Path::new(cache).join("compiler");
        fs::create_dir_all(&dir).unwrap();
        let (script, stalled) = (dir.join("cc.sh"), dir.join("stalled"));
        let text = format!(
            "if [ \"$1\" = --version ]; then exec cc --version; fi\n\
             n=0\nwhile ! mkdir {0}/$n 2>/dev/null; do n=$((n + 1)); done\n\
             if [ $n -lt {kernels} ]; then exec cc \"$@\"; fi\n\
             touch {1}\nwhile [ -e {1} ]; do sleep 0.1; done\nexit 1\n",
            dir.display(),
            stalled.display()
        );
        fs::write(&script, text).unwrap();
        Stalling { script, stalled }
    }

    fn explore(&self, cache: &str, file: &str, more: &[&str]) -> Child {
        command(&[&["explore", file, "--system", "sums"], &SIZES[..], more].concat())
            .env("SYSTOLA_CACHE", cache)
            .env("SYSTOLA_CC", format!("/bin/sh {}", self.script.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until a compiler stalls.
    fn wait(&self, child: &mut Child) {
        while !self.stalled.exists() {
            assert_eq!(child.try_wait().unwrap(), None, "no compiler stalled");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Stalling {
    /// Ends stalled compilers.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.stalled);
    }
}

fn many(cache: &str) -> String {
    let path = Path::new(cache).join("many.ure");
    fs::write(&path, MANY).unwrap();
    path.display().to_string()
}

/// Kernels of the first batch.
fn first_batch() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn a_search_that_is_killed_leaves_the_database_as_it_was() {
    let cache = cache("killed");
    let file = two(&cache);
    explore(
        &cache,
        &file,
        &[&["--system", "twice"], &ENOUGH[..]].concat(),
    );
    let stalling = Stalling::new(&cache, 1);
    let mut child = stalling.explore(&cache, &many(&cache), &ENOUGH);
    stalling.wait(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let (out, err) = explore(&cache, &file, &["--system", "twice"]);
    assert!(
        out.contains("remembered") && !err.contains("E0675"),
        "{out}\n{err}"
    );
    let (out, _) = explore(
        &cache,
        &file,
        &[&["--system", "sums"], &ENOUGH[..]].concat(),
    );
    assert!(!out.contains("remembered"), "{out}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_keeps_what_was_found() {
    use rustix::process::{Pid, Signal, kill_process};
    let cache = cache("interrupted");
    let file = many(&cache);
    // The second batch is compiled after the first was measured.
    let stalling = Stalling::new(&cache, first_batch());
    let mut child = stalling.explore(&cache, &file, &[&["--seed", "5"], &ENOUGH[..]].concat());
    stalling.wait(&mut child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains(", interrupted"), "{out}");
    let run = ["run", &file, "--system", "sums", "--target", "cpu"];
    let (out, _) = check_with(&environment(&cache), &[&run[..], &SIZES].concat(), 0);
    assert!(out.contains("measured here"), "{out}");
}

/// No compiler ever ends. The search ends with its budget, and the model's choice is printed and
/// can be saved.
#[test]
fn a_budget_ends_compilers_that_do_not_end() {
    let cache = cache("stalled");
    let file = many(&cache);
    let stalling = Stalling::new(&cache, 0);
    let budget = ["--budget", "10s", "--save", "found"];
    let child = stalling.explore(&cache, &file, &budget);
    let output = child.wait_with_output().unwrap();
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    for part in [
        "0 measured",
        "nothing was measured; of what is legal, the model expects ",
        "mapping found written to",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(" predicted, nothing measured.\nmapping found of sums {"),
        "{text}"
    );
}
