//! Passes from kernel to kernel, each tested by files in `tests/passes/PASS/`.
//!
//! A file has comments, a program of kernels as it is printed, a line `// after PASS`, and the
//! program after the pass: its kernels, or all of it where the pass changes more than those, or `//
//! unchanged`. With `SYSTOLA_BLESS=1` all but the comments are rewritten.
//!
//! A comment such as `// block memory: 1024` configures the pass:
//!
//! - `machine`: `cuda` (the default), `avx512` or `opencl`;
//! - `links`: `shared memory`, or `shared memory, no barrier in branches`;
//! - `wide bytes`, `block memory`, `unsized arrays` (`block` or `global`) and `prefetch pressure`
//!   of the machine;
//! - `rows of x`: the layout of the window of an input, `plain`, `rotate` or `chosen`.

use std::fs;
use std::path::{Path, PathBuf};

use systola_ir::KernelId;
use systola_ir::kernel::Program;
use systola_ir::kernel::parse::parse;
use systola_ir::kernel::print::KernelText;
use systola_ir::mapping::{Engine, Layout, Name, Rows, Store, Transfer};
use systola_ir::target::{Links, Machine, Simd, Target, Threads, Unsized, WarpSizes};
use systola_lower::passes::tidy::tidy;
use systola_lower::passes::{Context, passes};

/// The passes of all targets, and the last step of emission.
fn all_passes() -> Vec<&'static str> {
    let mut names = vec!["tidy"];
    for pass in Target::ALL.into_iter().flat_map(passes) {
        if !names.contains(&pass.name) {
            names.push(pass.name);
        }
    }
    names
}

fn run_pass(name: &str, program: &mut Program, settings: &Settings) {
    if name == "tidy" {
        let kernels = std::mem::take(&mut program.kernels);
        program.kernels = kernels.into_iter().map(tidy).collect();
        return;
    }
    let mut passes = Target::ALL.into_iter().flat_map(passes);
    let pass = passes.find(|pass| pass.name == name).expect("a pass");
    let cx = Context {
        machine: &settings.machine,
        transfers: &settings.transfers,
    };
    pass.run(program, &cx).expect("small numbers");
}

/// The settings in the comments of a file.
struct Settings {
    machine: Machine,
    transfers: Vec<Transfer>,
}

impl Settings {
    fn of(comments: &str) -> Settings {
        let mut settings = Settings {
            machine: Machine::cuda(),
            transfers: Vec::new(),
        };
        for line in comments.lines() {
            let comment = line.trim_start_matches("// ");
            let Some((key, value)) = comment.split_once(": ") else {
                continue;
            };
            let number = || value.parse().expect("a number");
            let machine = &mut settings.machine;
            match (key, value) {
                ("machine", "avx512") => *machine = Machine::cpu(Simd::Avx512),
                ("machine", "opencl") => {
                    let threads = Threads {
                        links: Links::Shuffles(WarpSizes::one(32)),
                        multiprocessor: None,
                        ..threads(machine).to_owned()
                    };
                    *machine = Machine::threads(Target::OpenCl, 32, threads);
                }
                ("links", _) => {
                    let waits_in_branches = match value {
                        "shared memory" => true,
                        "shared memory, no barrier in branches" => false,
                        other => panic!("{other} is no link"),
                    };
                    threads(machine).links = Links::SharedMemory { waits_in_branches };
                }
                ("wide bytes", _) => threads(machine).wide_bytes = number(),
                ("block memory", _) => threads(machine).block_memory = number().into(),
                ("unsized arrays", "block") => threads(machine).unsized_arrays = Unsized::Block,
                ("unsized arrays", "global") => threads(machine).unsized_arrays = Unsized::Global,
                ("prefetch pressure", _) => {
                    let prefetch = machine.memory.prefetch.as_mut();
                    prefetch.expect("a machine that prefetches").pressure = number();
                }
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

fn threads(machine: &mut Machine) -> &mut Threads {
    machine.threads.as_mut().expect("a machine with threads")
}

#[test]
fn passes_do_what_their_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let bless = std::env::var_os("SYSTOLA_BLESS").is_some();
    let mut failures = Vec::new();
    for name in all_passes() {
        let files = files(&folder.join(name));
        assert!(files.len() >= 5, "{name} has {} files", files.len());
        let mut unchanged = 0;
        for path in files {
            let text = fs::read_to_string(&path).expect("a readable file");
            let shown = path.display();
            let want = match written(&text, name) {
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
        if unchanged == 0 {
            failures.push(format!("no file where {name} must do nothing"));
        }
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
fn written(text: &str, name: &str) -> Result<String, String> {
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
    run_pass(name, &mut made, &settings);
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
