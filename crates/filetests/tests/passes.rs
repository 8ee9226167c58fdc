//! Passes from kernel to kernel, each tested by files in `tests/passes/PASS/`.
//!
//! A file has comments that say what it is about, a program of kernels as it is printed, a line `// after PASS`, and the program
//! after the pass: its kernels, or all of it where the pass changes more than those, or `// unchanged`. With
//! `SYSTOLA_BLESS=1` all but the comments are written anew.
//!
//! A comment such as `// block memory: 1024` says what the pass is to know:
//!
//! - `wide bytes` (16 unless told), `block memory` (232448) and `unsized arrays` (`block` or `global`) of the machine,
//! - `rows of x`, the layout of the window of an input: `plain`, `rotate` or `chosen`.

use std::fs;
use std::path::{Path, PathBuf};

use systola_ir::KernelId;
use systola_ir::kernel::parse::parse;
use systola_ir::kernel::print::KernelText;
use systola_ir::kernel::{Kernel, Program};
use systola_ir::mapping::{Engine, Layout, Name, Rows, Store, Transfer};
use systola_lower::kernel::ahead::load_ahead;
use systola_lower::kernel::banks::spread;
use systola_lower::kernel::early::load_early;
use systola_lower::kernel::spill::spill;
use systola_lower::kernel::tidy::tidy;
use systola_lower::kernel::wide::widen;
use systola_lower::kernel::{Copies, Threads, Unsized};

/// A pass takes a kernel to another; it may give the program more buffers.
type Pass = fn(Kernel, &mut Program, &Settings) -> Kernel;

/// Every pass by the name of its function.
const PASSES: [(&str, Pass); 6] = [
    ("tidy", |kernel, _, _| tidy(kernel)),
    ("spill", |kernel, program, settings| {
        spill(kernel, program, &settings.threads).expect("small numbers")
    }),
    ("widen", |kernel, program, settings| {
        widen(kernel, &program.buffers, settings.threads.wide_bytes)
    }),
    ("spread", |kernel, program, settings| {
        let Settings { transfers, threads } = settings;
        spread(kernel, transfers, &program.params, threads).expect("small numbers")
    }),
    ("load_early", |kernel, _, _| load_early(kernel)),
    ("load_ahead", |kernel, _, _| load_ahead(kernel)),
];

/// What the comments of a file say.
struct Settings {
    threads: Threads,
    transfers: Vec<Transfer>,
}

impl Settings {
    fn of(comments: &str) -> Settings {
        let mut settings = Settings {
            threads: Threads {
                warps: 32,
                wide_bytes: 16,
                copies: Copies::Asynchronous,
                block_memory: 227 << 10,
                unsized_arrays: Unsized::Block,
            },
            transfers: Vec::new(),
        };
        for line in comments.lines() {
            let comment = line.trim_start_matches("// ");
            let Some((key, value)) = comment.split_once(": ") else {
                continue;
            };
            let threads = &mut settings.threads;
            match (key, value) {
                ("wide bytes", bytes) => threads.wide_bytes = bytes.parse().expect("a number"),
                ("block memory", bytes) => threads.block_memory = bytes.parse().expect("a number"),
                ("unsized arrays", "block") => threads.unsized_arrays = Unsized::Block,
                ("unsized arrays", "global") => threads.unsized_arrays = Unsized::Global,
                (of, rows) if of.starts_with("rows of ") => {
                    let rows = match rows {
                        "plain" => Rows::Plain,
                        "rotate" => Rows::Rotate,
                        "chosen" => Rows::Chosen,
                        other => panic!("{other} is no layout"),
                    };
                    settings.transfers.push(Transfer {
                        source: Name::from(of.trim_start_matches("rows of ")),
                        store: Store::Shared,
                        at: None,
                        stages: 1,
                        layout: Layout::from(rows),
                        engine: Engine::Plain,
                    });
                }
                _ => panic!("nothing is known of {line:?}"),
            }
        }
        settings
    }
}

#[test]
fn passes_do_what_their_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some();
    let mut failures = Vec::new();
    for (name, pass) in PASSES {
        let files = files(&folder.join(name));
        assert!(files.len() >= 5, "{name} has {} files", files.len());
        let mut unchanged = 0;
        for path in files {
            let text = fs::read_to_string(&path).expect("a readable file");
            let shown = path.display();
            let want = match written(&text, name, pass) {
                Ok(want) => want,
                Err(why) => {
                    failures.push(format!("{shown}: {why}"));
                    continue;
                }
            };
            unchanged += usize::from(want.ends_with("// unchanged\n"));
            if bless {
                fs::write(&path, &want).expect("a writable file");
            } else if text != want {
                failures.push(format!("{shown} should be\n{want}"));
            }
        }
        assert!(unchanged > 0, "no file where {name} must do nothing");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("a file").path()).collect();
    files.sort();
    for path in &files {
        assert!(path.extension().is_some_and(|e| e == "kernel"), "{path:?}");
    }
    files
}

/// The file as it should be: its comments, the program before, and what the pass makes of it.
fn written(text: &str, name: &str, pass: Pass) -> Result<String, String> {
    let after = format!("// after {name}\n");
    let (before, _) = text
        .split_once(&after)
        .ok_or_else(|| format!("there is no line `// after {name}`"))?;
    let start = before.find("program ").ok_or("there is no program")?;
    let comments = &before[..start];
    let program = parse(before).map_err(|error| error.to_string())?;
    let verified = |program: &Program, when: &str| match program.verify() {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(format!("{when} the pass: {}\n{program}", wrong.join("\n"))),
    };
    verified(&program, "before")?;
    let settings = Settings::of(comments);
    let mut made = program.clone();
    for n in 0..made.kernels.len() {
        let kernel = made.kernels[n].clone();
        made.kernels[n] = pass(kernel, &mut made, &settings);
    }
    verified(&made, "after")?;
    let result = if made == program {
        "// unchanged\n".to_string()
    } else if made.buffers == program.buffers {
        let ids = (0..made.kernels.len()).map(KernelId::from);
        let kernels = ids.filter_map(|id| KernelText::new(&made, id));
        let kernels: Vec<String> = kernels.map(|kernel| kernel.to_string()).collect();
        kernels.join("\n")
    } else {
        made.to_string()
    };
    Ok(format!("{comments}{program}\n{after}{result}"))
}
