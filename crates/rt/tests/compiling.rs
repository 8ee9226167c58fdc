//! From C to a loaded library, with and without a cache.

#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::*;
use systola_rt::{
    CacheOptions, CompileOptions, CpuProgram, Error, Note, Origin, RunOptions, View, ViewMut,
};

fn compile_with(options: &CompileOptions) -> Result<CpuProgram, Error> {
    let (program, source) = saxpy();
    CpuProgram::compile(program, source, options)
}

/// Saxpy with its own factor, which makes it a separate entry.
fn variant(n: usize, options: &CompileOptions) -> CpuProgram {
    let (program, mut source) = saxpy();
    source.code = source.code.replace("7 *", &format!("{n} *"));
    CpuProgram::compile(program, source, options).unwrap()
}

fn check_runs(program: &CpuProgram, factor: usize) {
    let x = [1f32, 2.0];
    let mut z = [0f32; 2];
    let inputs = [("x", View::from(&x[..])), ("y", View::from(&x[..]))];
    let outputs = &mut [("z", ViewMut::from(&mut z[..]))];
    program
        .run(&[2], &inputs, outputs, &RunOptions::default())
        .unwrap();
    let factor = factor as f32 + 1.0;
    assert_eq!(z, [factor, 2.0 * factor]);
}

/// The files of a cache.
fn files(dir: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    list(dir)
        .flat_map(|key| list(&key.path()).collect::<Vec<_>>())
        .map(|file| file.path())
        .collect()
}

fn libraries(dir: &Path) -> Vec<PathBuf> {
    let is_library = |path: &PathBuf| {
        path.extension()
            .is_some_and(|e| e == std::env::consts::DLL_EXTENSION)
    };
    files(dir).into_iter().filter(is_library).collect()
}

#[test]
fn what_the_compiler_says_is_passed_on() {
    let (program, mut source) = saxpy();
    source.code.push_str("\nint broken = no_such_name;\n");
    match CpuProgram::compile(program, source, &options()) {
        Err(Error::CompilerFailed { command, stderr }) => {
            assert!(stderr.contains("no_such_name"), "{stderr}");
            assert!(command.contains("-O1") && command.contains("-shared"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_compiler_that_hangs_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    for before_version in [false, true] {
        let script = dir.path().join(format!("{before_version}.sh"));
        let version = "if [ \"$1\" = --version ]; then echo 1; exit; fi\n";
        let text = if before_version { "" } else { version };
        fs::write(&script, format!("{text}sleep 600\n")).unwrap();
        let options = CompileOptions {
            compilers: vec![format!("/bin/sh {}", script.display())],
            time_limit: SHORT,
            deadline: None,
            cache: Some(CacheOptions::new(dir.path().join("cache"))),
        };
        let error = compile_with(&options).unwrap_err();
        assert!(matches!(error, Error::CompilerHung { .. }), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(500));
}

/// A compiler that does not finish with -O3 is run again with -O1.
#[test]
fn a_kernel_that_takes_too_long_is_optimised_less() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("cc.sh");
    let text = "case \"$*\" in *-O3*-O1*|*--version*) exec cc \"$@\";; esac\nwhile :; do :; done\n";
    fs::write(&script, text).unwrap();
    let mut options = CompileOptions {
        compilers: vec![format!("/bin/sh {}", script.display())],
        time_limit: 4 * SHORT,
        ..options()
    };
    for cache in [None, Some(CacheOptions::new(dir.path().join("cache")))] {
        options.cache = cache;
        let (program, mut source) = saxpy();
        source.flags = vec!["-O3".to_string()];
        let program = CpuProgram::compile(program, source, &options).unwrap();
        check_runs(&program, 7);
        match program.notes() {
            [note @ Note::LessOptimised { .. }] => assert!(note.to_string().contains("-O1")),
            notes => panic!("{notes:?}"),
        }
    }
}

/// The system identifies loaded libraries by name: a library that is still loaded must not be
/// mistaken for another one that comes later.
#[test]
fn libraries_that_come_and_go_are_not_confused() {
    let dir = tempfile::tempdir().unwrap();
    let options = CompileOptions {
        cache: Some(CacheOptions::new(dir.path().join("cache"))),
        ..options()
    };
    let first = variant(1, &options);
    let again = variant(1, &options);
    drop(first);
    let second = variant(2, &options);
    let third = variant(3, &options);
    check_runs(&again, 1);
    check_runs(&second, 2);
    check_runs(&third, 3);
}

/// As on a full disk: the compiler fails in the cache, where nothing can be written, and works
/// elsewhere.
#[test]
fn code_runs_even_if_the_cache_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let script = dir.path().join("cc.sh");
    let fails_in_the_cache = format!(
        "case $PWD in {}/*) rm -rf \"$PWD\"; exit 1;; esac\nexec cc \"$@\"\n",
        cache.display()
    );
    fs::write(&script, fails_in_the_cache).unwrap();
    let options = CompileOptions {
        compilers: vec![format!("/bin/sh {}", script.display())],
        cache: Some(CacheOptions::new(&cache)),
        ..options()
    };
    let program = compile_with(&options).unwrap();
    check_runs(&program, 7);
    assert!(matches!(program.notes(), [Note::CacheUnusable { .. }]));
}

#[test]
fn without_a_compiler_nothing_is_compiled() {
    let options = CompileOptions {
        compilers: vec!["no-such-cc".to_string(), "/no/such/cc".to_string()],
        ..options()
    };
    let error = compile_with(&options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no C compiler found (tried no-such-cc, /no/such/cc); install one or name it in SYSTOLA_CC"
    );
}

#[test]
fn symbols_must_be_there() {
    let (program, mut source) = saxpy();
    source.symbols = vec!["sapxy".to_string()];
    let error = CpuProgram::compile(program, source, &options()).unwrap_err();
    assert!(matches!(&error, Error::LoadFailed { reason, .. } if reason.contains("sapxy")));

    let (program, mut source) = saxpy();
    source.code = source.code.replace("7 *", "elsewhere() *");
    source.code = format!("float elsewhere(void);\n{}", source.code);
    let error = CpuProgram::compile(program, source, &options()).unwrap_err();
    assert!(matches!(&error, Error::LoadFailed { reason, .. } if reason.contains("elsewhere")));
}

#[test]
fn a_source_must_fit_its_program() {
    let (program, mut source) = saxpy();
    source.symbols.push("another".to_string());
    let error = CpuProgram::compile(program, source, &options()).err();
    assert!(matches!(error, Some(Error::SourceMismatch { .. })));
    let (mut program, source) = saxpy();
    program.body = vec![launch(1, vec![])];
    let error = CpuProgram::compile(program, source, &options()).err();
    assert!(matches!(error, Some(Error::SourceMismatch { .. })));
    let (mut program, source) = saxpy();
    program.body = vec![launch(0, vec![number(1)])];
    let error = CpuProgram::compile(program, source, &options()).err();
    assert!(matches!(error, Some(Error::SourceMismatch { .. })));
}

fn scripted_cache(dir: &Path, before: &str) -> CompileOptions {
    CompileOptions {
        compilers: vec![scripted(dir, before)],
        ..cached_in(&dir.join("cache"))
    }
}

#[test]
fn the_same_code_is_compiled_once() {
    let dir = tempfile::tempdir().unwrap();
    let options = scripted_cache(dir.path(), "");
    let first = compile_with(&options).unwrap();
    assert_eq!((first.origin(), calls(dir.path())), (Origin::Compiler, 1));
    let second = compile_with(&options).unwrap();
    assert_eq!((second.origin(), calls(dir.path())), (Origin::Cache, 1));
    check_runs(&first, 7);
    check_runs(&second, 7);
    assert!(first.notes().is_empty() && second.notes().is_empty());

    check_runs(&variant(8, &options), 8);
    assert_eq!(calls(dir.path()), 2);
    let (program, mut source) = saxpy();
    source.flags.push("-DOTHER".to_string());
    CpuProgram::compile(program, source, &options).unwrap();
    assert_eq!(calls(dir.path()), 3);

    // Another compiler: its arguments name another script.
    let other = tempfile::tempdir().unwrap();
    let options = CompileOptions {
        compilers: vec![scripted(other.path(), "")],
        ..options
    };
    assert_eq!(compile_with(&options).unwrap().origin(), Origin::Compiler);
}

#[test]
fn torn_files_are_compiled_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = scripted_cache(dir.path(), "");
    drop(compile_with(&options).unwrap());
    let damages: [fn(&mut Vec<u8>); 3] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.clear(),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        },
    ];
    for (n, damage) in damages.iter().enumerate() {
        let found = libraries(&dir.path().join("cache"));
        assert_eq!(found.len(), 1);
        let mut bytes = fs::read(&found[0]).unwrap();
        damage(&mut bytes);
        fs::write(&found[0], bytes).unwrap();
        let program = compile_with(&options).unwrap();
        check_runs(&program, 7);
        assert_eq!(
            (program.origin(), calls(dir.path())),
            (Origin::Compiler, n + 2)
        );
    }
    assert_eq!(compile_with(&options).unwrap().origin(), Origin::Cache);
}

#[test]
fn a_failed_compilation_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let options = scripted_cache(dir.path(), "echo sorry >&2; exit 1");
    assert!(matches!(
        compile_with(&options).err(),
        Some(Error::CompilerFailed { stderr, .. }) if stderr == "sorry\n"
    ));
    let left = fs::read_dir(dir.path().join("cache")).unwrap().flatten();
    let left: Vec<_> = left.map(|e| e.file_name()).collect();
    assert_eq!(left, ["locks"]);
}

#[test]
fn code_runs_even_without_a_usable_cache() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let options = cached_in(&file.join("cache"));
    for _ in 0..2 {
        let program = compile_with(&options).unwrap();
        check_runs(&program, 7);
        assert_eq!(program.origin(), Origin::Compiler);
        match program.notes() {
            [note @ Note::CacheUnusable { dir, .. }] => {
                assert_eq!(*dir, file.join("cache"));
                assert!(note.to_string().contains("not kept"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "in the way");
}

#[test]
fn the_cache_stays_within_its_limit_and_loaded_code_stays_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = cached_in(dir.path());
    let first = variant(2, &options);
    let size = fs::metadata(&libraries(dir.path())[0]).unwrap().len();
    options.cache = Some(CacheOptions {
        limit: 2 * size + size / 2,
        ..CacheOptions::new(dir.path())
    });
    for n in 3..7 {
        check_runs(&variant(n, &options), n);
        assert!(libraries(dir.path()).len() <= 2);
    }
    check_runs(&first, 2);
    assert_eq!(variant(2, &options).origin(), Origin::Compiler);
    assert_eq!(variant(2, &options).origin(), Origin::Cache);
}

const CHILD_DIR: &str = "SYSTOLA_TEST_CHILD_DIR";
const CHILDREN: usize = 8;

#[test]
#[ignore = "a part of `processes_share_a_cache`, which starts it as a process of its own"]
fn one_of_many_processes() {
    let Some(dir) = std::env::var_os(CHILD_DIR).map(PathBuf::from) else {
        return;
    };
    // All begin together, when the file appears.
    while !dir.join("go").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let options = CompileOptions {
        compilers: vec![format!("/bin/sh {}", dir.join("compiler.sh").display())],
        ..cached_in(&dir.join("cache"))
    };
    for n in [7, 5, 3] {
        check_runs(&variant(n, &options), n);
    }
}

#[test]
fn processes_share_a_cache() {
    let dir = tempfile::tempdir().unwrap();
    scripted(dir.path(), "");
    let child = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["one_of_many_processes", "--exact", "--ignored"])
            .env(CHILD_DIR, dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..CHILDREN).map(|_| child()).collect();
    fs::write(dir.path().join("go"), "").unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(libraries(&dir.path().join("cache")).len(), 3);
    // The second process waits for the first instead of compiling the same code.
    assert_eq!(calls(dir.path()), 3);
}

/// A kernel that includes the header of all vector instructions.
#[cfg(target_arch = "x86_64")]
fn with_intrinsics(compiler: &str, n: usize, cache: &CacheOptions) -> CpuProgram {
    let (program, mut source) = saxpy();
    source.code = format!("#include <immintrin.h>\n{}", source.code);
    source.code = source.code.replace("7 *", &format!("{n} *"));
    let mut options = options();
    options.cache = Some(cache.clone());
    options.compilers = vec![compiler.to_string()];
    CpuProgram::compile(program, source, &options).unwrap()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn precompiled_headers_do_not_change_kernels() {
    for compiler in ["gcc", "clang"] {
        let done = Command::new(compiler).arg("--version").output();
        assert!(done.is_ok(), "{compiler} is needed");
        precompiled_headers_do_not_change_kernels_of(compiler);
    }
}

#[cfg(target_arch = "x86_64")]
fn precompiled_headers_do_not_change_kernels_of(compiler: &str) {
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let with = CacheOptions::new(with.path());
    let mut small = CacheOptions::new(without.path());
    small.limit = 100 << 20;
    for n in 1..=6 {
        for cache in [&with, &small] {
            check_runs(&with_intrinsics(compiler, n, cache), n);
        }
    }
    // Files are named by the sum of their bytes.
    let names = |dir: &Path, extension: &str| -> Vec<String> {
        let mut names: Vec<String> = files(dir)
            .iter()
            .filter(|path| path.extension().is_some_and(|e| e == extension))
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&with.dir, "gch").len(), 1, "{compiler}");
    assert!(names(&small.dir, "gch").is_empty());
    assert_eq!(names(&with.dir, "so").len(), 6);
    assert_eq!(names(&with.dir, "so"), names(&small.dir, "so"));
    // A header that cannot be read is ignored.
    for path in files(&with.dir) {
        if path.extension().is_some_and(|e| e == "gch") {
            fs::write(path, "damaged").unwrap();
        }
    }
    check_runs(&with_intrinsics(compiler, 7, &with), 7);
}
