//! OpenCL devices on any machine: errors, never a panic, and no leaks.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use systola_ir::Scalar;
use systola_rt::opencl::{DeviceArray, Gpu, OpenClCompileOptions, devices};
use systola_rt::{Error, View};

/// Is there a device? Where the environment promises one, there must be.
fn has_devices() -> bool {
    match devices() {
        Ok(_) => true,
        Err(error) => {
            let promised = std::env::var("SYSTOLA_OPENCL_DEVICES").is_ok_and(|n| n != "0");
            assert!(!promised, "{error}");
            println!("skipped: {error}");
            false
        }
    }
}

#[test]
fn a_missing_device_is_an_error() {
    match devices() {
        Ok(found) => {
            for device in &found {
                assert!(
                    device.most_threads > 0 && device.local_memory > 0,
                    "{device:?}"
                );
            }
            let beyond = Gpu::open(found.len()).unwrap_err();
            assert!(matches!(beyond, Error::NoOpenCl { .. }), "{beyond}");
        }
        Err(error) => {
            assert!(matches!(error, Error::NoOpenCl { .. }), "{error}");
            let again = Gpu::open(0).unwrap_err();
            assert_eq!(again.to_string(), error.to_string());
        }
    }
}

#[test]
fn arrays_come_back_from_every_device() {
    if !has_devices() {
        return;
    }
    for n in 0..devices().unwrap().len() {
        let gpu: Arc<Gpu> = Gpu::open(n).unwrap();
        let data: Vec<f64> = (0..1000).map(f64::from).collect();
        let array = DeviceArray::from_view(&gpu, &View::from(&data[..])).unwrap();
        let mut back = vec![0f64; 1000];
        array.copy_to(&mut (&mut back[..]).into()).unwrap();
        assert_eq!(back, data);
        let zeros = DeviceArray::new(&gpu, Scalar::F64, &[1000]).unwrap();
        zeros.copy_to(&mut (&mut back[..]).into()).unwrap();
        let huge = DeviceArray::new(&gpu, Scalar::F64, &[1 << 50]);
        assert!(matches!(huge, Err(Error::DeviceMemory { .. })), "{huge:?}");
        drop((array, zeros));
        gpu.release_memory();
    }
    assert_eq!(OpenClCompileOptions::default().cache, None);
}

/// A library that wraps the real one, compiled here; it forwards the remaining functions.
fn faulty(folder: &std::path::Path) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opencl/faulty.c");
    let library = folder.join("libfaulty.so");
    let done = Command::new("cc")
        .args([
            "-shared",
            "-fPIC",
            "-O1",
            "-Wno-incompatible-pointer-types",
            "-o",
        ])
        .arg(&library)
        .arg(source)
        .args(["-Wl,--no-as-needed", "-l:libOpenCL.so.1", "-ldl"])
        .output();
    match done {
        Ok(done) if done.status.success() => Some(library),
        Ok(done) => {
            println!("skipped: {}", String::from_utf8_lossy(&done.stderr));
            None
        }
        Err(error) => {
            println!("skipped: cc: {error}");
            None
        }
    }
}

/// Runs the test `child` with a fault, in its own process.
fn with_fault(library: &std::path::Path, counts: &std::path::Path, fault: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--include-ignored"])
        .env("SYSTOLA_OPENCL", library)
        .env("FAULT", fault)
        .env("FAULT_COUNTS", counts)
        .output()
        .unwrap()
}

#[test]
fn every_fault_is_reported_without_leaks() {
    if !has_devices() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = faulty(folder.path()) else {
        return;
    };
    let counts = folder.path().join("counts");
    for (fault, said) in [
        ("none", "result: ok"),
        ("no platform", "no implementation is installed"),
        ("no device", "its implementations know no device"),
        (
            "little local memory",
            "bytes of shared memory, this device has 64",
        ),
        ("no memory", "no memory on the device for"),
        ("build failure", "nothing_of_the_kind"),
        (
            "lost device",
            "the OpenCL device was lost when it was to launch a kernel",
        ),
    ] {
        let output = with_fault(&library, &counts, fault);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{fault}: {text}");
        assert!(text.contains(said), "{fault}: {text}");
        let counted = std::fs::read_to_string(&counts).unwrap();
        let left: Vec<&str> = counted.lines().filter(|l| !l.ends_with(" 0")).collect();
        // A device that was opened keeps one queue.
        let opened = !fault.starts_with("no ") || fault == "no memory";
        let expect: &[&str] = if opened { &["queues 1"] } else { &[] };
        assert_eq!(left, expect, "{fault}");
    }
}

/// Not a separate test: the one above runs it in other processes.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn child() {
    match opencl::run() {
        Ok(out) => println!("result: ok {out:?}"),
        Err(error) => println!("result: {error}"),
    }
}

mod opencl {
    //! A small hand-written program for an OpenCL device: y[i] = 2 · x[i] through local memory.

    use systola_ir::form::{Form, Poly};
    use systola_ir::kernel::{Buffer, BufferKind, Host, Kernel, Program, Var, VarKind};
    use systola_ir::system::Axis;
    use systola_ir::{KernelId, Scalar};
    use systola_rt::device::{DeviceKernel, DeviceSource, KernelArgument, SharedPart};
    use systola_rt::opencl::{Gpu, OpenClCompileOptions, OpenClProgram};
    use systola_rt::{Error, View};

    const CODE: &str = "
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void twice(__global const float *x, __global float *y, __local uint4 *shared_memory)
{
    __local float *const own = (__local float *)shared_memory;
    own[get_local_id(0)] = 2 * x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[get_global_id(0)] = own[get_local_id(0)];
}
";

    fn program() -> Program {
        let buffer = |name: &str, kind| Buffer {
            name: name.to_string(),
            ty: Scalar::F32,
            kind,
            axes: vec![Axis {
                lo: Form::zero(),
                hi: Form::from(32),
            }],
        };
        Program {
            name: "twice".to_string(),
            params: Vec::new(),
            context: Vec::new(),
            buffers: vec![
                buffer("x", BufferKind::Input { data: None }),
                buffer("y", BufferKind::Output { fill: None }),
            ],
            kernels: vec![Kernel {
                hints: Default::default(),
                name: "twice".to_string(),
                lanes: 8,
                warps: 1,
                vars: vec![Var {
                    name: "b".to_string(),
                    kind: VarKind::Block {
                        lo: vec![Form::zero()],
                        hi: vec![Form::from(4)],
                    },
                }],
                shared: Vec::new(),
                regs: Vec::new(),
                values: Vec::new(),
                body: Vec::new(),
            }],
            host_vars: Vec::new(),
            body: vec![Host::Launch {
                kernel: KernelId(0),
                args: Vec::new(),
            }],
        }
    }

    pub fn run() -> Result<Vec<f32>, Error> {
        let gpu = Gpu::open(0)?;
        let source = DeviceSource {
            code: CODE.to_string(),
            kernels: vec![DeviceKernel {
                symbol: "twice".to_string(),
                threads: 8,
                arguments: vec![
                    KernelArgument::Buffer(0),
                    KernelArgument::Buffer(1),
                    KernelArgument::Shared,
                ],
                dynamic_shared: vec![SharedPart {
                    extents: vec![Poly::constant(32)],
                    bytes: 4,
                }],
                static_shared: 0,
                choices: Vec::new(),
            }],
            constants: Vec::new(),
        };
        let options = OpenClCompileOptions::default();
        let x: Vec<f32> = (0..32u8).map(f32::from).collect();
        let mut y = vec![0f32; 32];
        let ran =
            OpenClProgram::compile(program(), source, &gpu, &options, None).and_then(|compiled| {
                let inputs = [("x", View::from(&x[..]))];
                let mut outputs = [("y", (&mut y[..]).into())];
                compiled.run(&[], &inputs, &mut outputs)
            });
        gpu.release_memory();
        ran?;
        let want: Vec<f32> = x.iter().map(|x| 2.0 * x).collect();
        assert_eq!(y, want);
        Ok(y)
    }
}
