//! Errors of the runtime and the kernel interpreter, as diagnostics.

use systola::cpu;
use systola::rt::{self, Note};
use systola_interp::OpError;
use systola_interp::kernel::{Fault, FaultKind, RunError};
use systola_ir::codes::{Code, opencl, run};
use systola_ir::{Diagnostic, Span};

use crate::source::{Failure, Source, Status};
use crate::term::{self, Paint};

/// The maximum lines of a compiler's output that are shown: the first errors cause the others.
const SHOWN_LINES: usize = 20;

/// Prints the error; ends the command.
pub fn fail(source: &Source, error: cpu::Error) -> Failure {
    match error {
        cpu::Error::Refused(found) => source.fail(&found),
        cpu::Error::Runtime(error) => {
            let failure = source.fail(&[diagnostic(&error)]);
            if is_missing(&error) {
                failure.with_status(Status::Limitation)
            } else {
                failure
            }
        }
    }
}

/// Does this machine lack a component? The program and the command may be right.
fn is_missing(error: &rt::Error) -> bool {
    use rt::Error as E;
    matches!(
        error,
        E::NoCompiler { .. } | E::NoDriver { .. } | E::NoNvrtc { .. } | E::NoOpenCl { .. }
    )
}

/// The same for the interpreter of kernels.
pub fn fail_kernel(source: &Source, error: RunError) -> Failure {
    source.fail(&[kernel_diagnostic(error)])
}

/// The same without a source to point into.
pub fn fail_alone(error: &rt::Error) -> Failure {
    let found = diagnostic(error);
    let failure = Failure::new(format!("{} ({})", found.message, found.code.id));
    let failure = if is_missing(error) {
        failure.with_status(Status::Limitation)
    } else {
        failure
    };
    match found.help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// The diagnostic of an error of the runtime.
pub fn diagnostic(error: &rt::Error) -> Diagnostic {
    if let rt::Error::Raised(raised) = error {
        return raised.diagnostic();
    }
    let message = error.to_string();
    let (message, said) = match message.split_once('\n') {
        Some((first, rest)) => (first.to_string(), Some(beginning(rest))),
        None => (message, None),
    };
    let (code, help) = code_of(error);
    let mut diagnostic = Diagnostic::new(code, Span::NONE, message);
    diagnostic.notes.extend(said);
    diagnostic.help = help.map(str::to_string);
    diagnostic
}

fn beginning(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let mut shown = lines[..lines.len().min(SHOWN_LINES)].join("\n");
    if lines.len() > SHOWN_LINES {
        shown.push_str(&format!("\n… {} more lines", lines.len() - SHOWN_LINES));
    }
    shown
}

fn code_of(error: &rt::Error) -> (&'static Code, Option<&'static str>) {
    use rt::Error as E;
    match error {
        E::NoCompiler { .. } => (
            &run::NO_COMPILER,
            Some("--target kernel needs no compiler: the interpreter runs the same kernel"),
        ),
        E::CompilerFailed { .. } => (
            &run::COMPILER_FAILED,
            Some("name another compiler in SYSTOLA_CC, or use --target kernel"),
        ),
        E::CompilerHung { .. } | E::OutOfTime => (
            &run::COMPILER_HUNG,
            Some("unroll or fix less, or name another compiler in SYSTOLA_CC"),
        ),
        E::LoadFailed { .. } => (
            &run::LOAD_FAILED,
            Some("name a compiler for this machine in SYSTOLA_CC"),
        ),
        E::Io { .. } => (
            &run::CANNOT_TOUCH_FILE,
            Some("choose other folders with TMPDIR and SYSTOLA_CACHE"),
        ),
        E::BadVariable { .. } | E::NoSuchSimd { .. } => (&run::BAD_ENVIRONMENT, None),
        E::SizeCount { .. } => (&run::MISSING_PARAM, None),
        E::SizeMismatchFixed { .. } => (&run::OTHER_SIZES, None),
        E::SizesViolateContext { .. } => (&run::CONTEXT_VIOLATED, None),
        E::MissingInput { .. } => (&run::MISSING_INPUT, None),
        E::MissingOutput { .. } => (&run::MISSING_OUTPUT, None),
        E::UnknownName { .. } | E::StatedByProgram { .. } => (&run::UNKNOWN_INPUT, None),
        E::GivenTwice { .. } => (&run::GIVEN_TWICE, None),
        E::WrongShape { .. } | E::WrongLength { .. } => (&run::WRONG_SHAPE, None),
        E::WrongType { .. } => (&run::WRONG_TYPE, None),
        E::Aliasing { .. } => (&run::ALIASING, None),
        E::BadBool { .. } => (&run::MALFORMED_NPY, None),
        E::Overflow { .. } | E::OutOfMemory { .. } => {
            (&run::TOO_LARGE, Some("use smaller sizes with --set"))
        }
        E::IndexTooLarge { .. } => (
            &run::TOO_LARGE,
            Some(
                "use smaller sizes with --set, or smaller numbers in the expression; the equations (--target system) report the point where an index leaves 64 bits, if one does",
            ),
        ),
        E::NoDriver { .. } => (
            &run::NO_GPU,
            Some(
                "--target cpu compiles the same mapping for the CPU; `systola devices` lists the devices of this machine",
            ),
        ),
        E::DriverTooOld { .. } => (
            &run::DRIVER_TOO_OLD,
            Some("update the driver, or name an older NVRTC in SYSTOLA_NVRTC"),
        ),
        E::NoNvrtc { .. } => (
            &run::NO_NVRTC,
            Some(
                "install it with `pip install nvidia-cuda-nvrtc`, and name its folder in SYSTOLA_NVRTC",
            ),
        ),
        E::NvrtcFailed { .. } => (&run::NVRTC_FAILED, None),
        E::CudaFailed { .. } => (&run::GPU_FAILED, None),
        E::NoOpenCl { .. } => (
            &opencl::NO_OPENCL,
            Some(
                "--target cpu compiles the same mapping for the CPU; `systola devices` lists the devices of this machine",
            ),
        ),
        E::OpenClBuild { .. } => (&opencl::OPENCL_BUILD, None),
        E::OpenClFailed { .. } => (&opencl::OPENCL_FAILED, None),
        E::DeviceLost { .. } => (
            &opencl::DEVICE_LOST,
            Some("run it again when the device is back"),
        ),
        E::NoSuchDevice { .. } => (
            &run::NO_SUCH_DEVICE,
            Some("give a number, or a part of one name; `systola devices` lists them"),
        ),
        E::DeviceMemory { .. } => (
            &run::GPU_MEMORY,
            Some("use smaller sizes with --set, or end what else runs on the GPU"),
        ),
        E::SharedMemory { .. } => (
            &run::SHARED_MEMORY,
            Some("use smaller tiles in the mapping, or smaller sizes"),
        ),
        E::Misaligned { .. } | E::OtherDevice { .. } => (&run::WRONG_PLACE, None),
        E::SourceMismatch { .. } => {
            panic!("the generated C does not fit the program it was generated from: {error}")
        }
        // The enum is non-exhaustive; any new error is about running compiled code.
        _ => (&run::LOAD_FAILED, None),
    }
}

/// The diagnostic of an error of the kernel interpreter. Equations without a value, and sizes that
/// are too large, are the user's mistakes; any other error of a kernel is ours, since its mapping
/// was proved legal.
fn kernel_diagnostic(error: RunError) -> Diagnostic {
    match error {
        RunError::Setup(diagnostic) => *diagnostic,
        RunError::Raised(raised) => raised.diagnostic(),
        RunError::Fault(fault) => match fault_code(&fault) {
            Some(code) => {
                let found = Diagnostic::new(code, Span::NONE, fault.kind.to_string())
                    .note(format!("in `{}` of kernel {}", fault.stmt, fault.kernel));
                match &fault.origin {
                    Some(origin) => found.note(format!("`{}` {}", origin.stmt, origin.why)),
                    None => found,
                }
            }
            None => panic!("a kernel of a legal mapping is wrong: {fault}"),
        },
        RunError::Invalid(_) | RunError::Unwritten { .. } => {
            panic!("a kernel of a legal mapping is wrong: {error}")
        }
    }
}

fn fault_code(fault: &Fault) -> Option<&'static Code> {
    match &fault.kind {
        FaultKind::Operator(OpError::Types { .. }) => Some(&run::ILL_TYPED),
        FaultKind::IndexOverflow | FaultKind::StepLimit { .. } => Some(&run::TOO_LARGE),
        FaultKind::Operator(OpError::DivisionByZero(_) | OpError::NegativeExponent(_))
        | FaultKind::OutOfBounds { .. }
        | FaultKind::Misaligned { .. }
        | FaultKind::UndefinedStored { .. }
        | FaultKind::UndefinedTest
        | FaultKind::Raised { .. }
        | FaultKind::Race { .. }
        | FaultKind::LanesDisagree { .. }
        | FaultKind::CopyInFlight { .. }
        | FaultKind::CopySourceWritten { .. }
        | FaultKind::CopiesLeft { .. }
        | FaultKind::FlagTouched { .. }
        | FaultKind::DivergentBarrier { .. }
        | FaultKind::Deadlock { .. }
        | FaultKind::NothingPublished { .. }
        | FaultKind::PublishedTwice { .. } => None,
    }
}

/// Prints a note about the stored results of explorations and choices.
pub fn print_tuning_note(text: &str) {
    let code = systola_ir::codes::explore::TUNING_UNUSABLE.id;
    term::eprint(format!("{}: {text} ({code})\n", Paint::Blue.err("note")));
}

/// Prints notes about a successful compilation.
pub fn print_notes(notes: &[Note]) {
    for note in notes {
        let code = match note {
            Note::CacheUnusable { .. } => &run::CACHE_UNUSABLE,
            Note::LessOptimised { .. } => &run::LESS_OPTIMISED,
        };
        term::eprint(format!(
            "{}: {note} ({})\n",
            Paint::Blue.err("note"),
            code.id
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use systola_ir::Scalar;

    use super::*;

    fn check(error: rt::Error, id: &str) {
        let found = diagnostic(&error);
        assert_eq!(found.code.id, id, "{error}");
        assert!(!found.message.contains('\n'), "{found:?}");
    }

    #[test]
    fn every_error_of_the_runtime_has_its_code() {
        use rt::Error as E;
        let name = || "x".to_string();
        check(E::NoCompiler { tried: vec![] }, "E0630");
        check(
            E::CompilerFailed {
                command: "cc".into(),
                stderr: "line 1\nline 2".into(),
            },
            "E0631",
        );
        check(
            E::CompilerHung {
                command: "cc".into(),
                seconds: 1.0,
            },
            "E0632",
        );
        check(E::OutOfTime, "E0632");
        check(
            E::LoadFailed {
                path: PathBuf::new(),
                reason: name(),
            },
            "E0634",
        );
        check(
            E::BadVariable {
                name: "SYSTOLA_SIMD",
                value: name(),
                expected: "y",
            },
            "E0635",
        );
        check(
            E::NoSuchSimd {
                requested: "avx512",
                has: "sse",
            },
            "E0635",
        );
        check(
            E::Aliasing {
                output: name(),
                other: name(),
            },
            "E0636",
        );
        check(
            E::SizeMismatchFixed {
                name: name(),
                fixed: 1,
                got: 2,
            },
            "E0637",
        );
        check(E::MissingOutput { name: name() }, "E0638");
        check(E::GivenTwice { name: name() }, "E0639");
        check(
            E::Io {
                action: "write",
                path: PathBuf::new(),
                source: std::io::Error::other("full"),
            },
            "E0640",
        );
        check(
            E::SizeCount {
                expected: 1,
                got: 0,
            },
            "E0602",
        );
        check(
            E::SizesViolateContext {
                condition: name(),
                sizes: name(),
            },
            "E0603",
        );
        check(E::MissingInput { name: name() }, "E0604");
        check(
            E::UnknownName {
                role: "input",
                name: name(),
                known: vec![],
            },
            "E0605",
        );
        check(E::StatedByProgram { name: name() }, "E0605");
        check(
            E::WrongShape {
                name: name(),
                expected: vec![1],
                got: vec![2],
            },
            "E0606",
        );
        check(
            E::WrongLength {
                shape: vec![1],
                expected: 1,
                got: 2,
            },
            "E0606",
        );
        check(
            E::WrongType {
                name: name(),
                expected: Scalar::F32,
                got: Scalar::F64,
            },
            "E0607",
        );
        check(E::BadBool { at: 0, value: 2 }, "E0621");
        check(E::NoDriver { reason: name() }, "E0641");
        check(
            E::DriverTooOld {
                driver: (12, 4),
                nvrtc: (13, 0),
                least: (13, 0),
            },
            "E0642",
        );
        check(E::NoNvrtc { looked: vec![] }, "E0643");
        check(
            E::NvrtcFailed {
                reason: name(),
                log: "line 1\nline 2".into(),
            },
            "E0644",
        );
        check(
            E::CudaFailed {
                action: "start",
                reason: name(),
            },
            "E0645",
        );
        check(E::NoOpenCl { reason: name() }, "E0660");
        check(
            E::OpenClBuild {
                status: -11,
                log: "line 1\nline 2".into(),
            },
            "E0661",
        );
        check(
            E::OpenClFailed {
                action: "launch a kernel",
                reason: name(),
            },
            "E0662",
        );
        check(E::DeviceLost { action: "run" }, "E0663");
        check(
            E::DeviceMemory {
                what: name(),
                bytes: 2,
                free: 1,
            },
            "E0646",
        );
        check(
            E::SharedMemory {
                kernel: name(),
                wanted: 2,
                most: 1,
            },
            "E0647",
        );
        check(E::Misaligned { start: 8 }, "E0648");
        check(E::OtherDevice { name: name() }, "E0648");
        check(E::Overflow { what: name() }, "E0608");
        check(
            E::NoSuchDevice {
                kind: "NVIDIA GPU",
                wanted: name(),
                matching: 2,
                all: vec![name()],
            },
            "E0649",
        );
        check(
            E::IndexTooLarge {
                kernel: Some(name()),
                expression: name(),
                bound: None,
                limit: 1,
                sizes: name(),
            },
            "E0608",
        );
        check(
            E::OutOfMemory {
                what: name(),
                bytes: 1,
            },
            "E0608",
        );
    }

    #[test]
    fn what_the_compiler_said_is_kept_apart() {
        let error = rt::Error::CompilerFailed {
            command: "cc kernel.c".into(),
            stderr: "kernel.c:1: error\nkernel.c:2: error\n".into(),
        };
        let found = diagnostic(&error);
        assert_eq!(found.message, "the C compiler failed: cc kernel.c");
        assert_eq!(found.notes, ["kernel.c:1: error\nkernel.c:2: error"]);
        let long = "an error\n".repeat(100);
        assert!(beginning(&long).ends_with("an error\n… 80 more lines"));
    }
}
