//! GPUs on any machine: errors, never a panic.

use std::sync::Mutex;

use systola_rt::cuda::{
    CudaCompileOptions, DeviceArray, Gpu, compile_only, devices, nvrtc_version,
};
use systola_rt::device::Variant;
use systola_rt::{CacheOptions, Error, Origin, View};

const KERNEL: &str = "extern \"C\" __global__ void k(int *x) { x[threadIdx.x] = sizeof(INDEX); }";

/// One test at a time compiles, so that the contents of the cache are known.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_missing_driver_is_an_error() {
    match devices() {
        Ok(found) => {
            for device in &found {
                assert!(device.arch().starts_with("sm_"), "{device:?}");
            }
            let beyond = Gpu::open(found.len()).unwrap_err();
            assert!(matches!(beyond, Error::NoDriver { .. }), "{beyond}");
        }
        Err(error) => {
            assert!(matches!(error, Error::NoDriver { .. }), "{error}");
            let again = Gpu::open(0).unwrap_err();
            assert_eq!(again.to_string(), error.to_string());
        }
    }
}

#[test]
fn arrays_come_back_from_the_device() {
    let Ok(gpu) = Gpu::open(0) else {
        println!("skipped: no GPU");
        return;
    };
    let data: Vec<f64> = (0..1000).map(f64::from).collect();
    let array = DeviceArray::from_view(&gpu, &View::from(&data[..])).unwrap();
    let mut back = vec![0f64; 1000];
    array.copy_to(&mut (&mut back[..]).into()).unwrap();
    assert_eq!(back, data);
    let huge = DeviceArray::new(&gpu, systola_ir::Scalar::F64, &[1 << 50]);
    assert!(matches!(huge, Err(Error::DeviceMemory { .. })), "{huge:?}");
}

#[test]
fn what_nvrtc_refuses_comes_with_its_log() {
    let _alone = ALONE.lock();
    let options = CudaCompileOptions::default();
    let broken = compile_only(
        "__global__ void k() { x = 1; }",
        "sm_90",
        &Variant::narrow(),
        &options,
    );
    match broken.unwrap_err() {
        Error::NvrtcFailed { log, .. } => assert!(log.contains("\"x\" is undefined"), "{log}"),
        Error::NoNvrtc { looked } => {
            assert!(nvrtc_version().is_err() && !looked.is_empty());
            println!("skipped: no NVRTC");
        }
        other => panic!("{other}"),
    }
    let zero = compile_only("a\0b", "sm_90", &Variant::narrow(), &options);
    assert!(zero.is_err());
}

#[test]
fn machine_code_is_kept_by_architecture_and_width() {
    let _alone = ALONE.lock();
    if let Err(error) = nvrtc_version() {
        println!("skipped: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = CudaCompileOptions {
        flags: Vec::new(),
        cache: Some(CacheOptions::new(folder.path())),
        ..CudaCompileOptions::default()
    };
    let code = format!("typedef int int32_t;\n#ifndef INDEX\n#define INDEX long\n#endif\n{KERNEL}");
    let compile = |arch, variant: Variant| compile_only(&code, arch, &variant, &options).unwrap();
    let first = compile("sm_90", Variant::narrow());
    assert_eq!(first.origin, Origin::Compiler);
    assert_eq!(first.resources()[0].kernel, "k");
    assert_eq!(compile("sm_90", Variant::wide()).origin, Origin::Compiler);
    assert_eq!(compile("sm_80", Variant::narrow()).origin, Origin::Compiler);
    let again = compile("sm_90", Variant::narrow());
    assert_eq!((again.origin, again.cubin), (Origin::Cache, first.cubin));
}
