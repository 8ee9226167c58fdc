//! The vector unit of this CPU.

use std::env;
use std::fs;
use std::sync::OnceLock;

use systola_ir::target::Simd;

use crate::error::Error;

/// The widest vector unit of this CPU.
pub fn detect() -> Simd {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq") {
            return Simd::Avx512;
        }
        if has!("avx2") && has!("fma") {
            return Simd::Avx2;
        }
        Simd::Sse
    }
    #[cfg(target_arch = "aarch64")]
    {
        Simd::Neon
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Simd::Portable
    }
}

/// The vector unit of this name, if this CPU has it.
pub fn named(name: &str) -> Result<Simd, Error> {
    let requested = Simd::ALL
        .into_iter()
        .find(|s| s.name() == name)
        .ok_or_else(|| Error::BadVariable {
            name: "SYSTOLA_SIMD",
            value: name.to_string(),
            expected: "avx512, avx2, sse, neon or portable",
        })?;
    let has = detect();
    let present = match requested {
        Simd::Portable => true,
        Simd::Neon => has == Simd::Neon,
        Simd::Avx512 | Simd::Avx2 | Simd::Sse => {
            has != Simd::Neon && has.bytes() >= requested.bytes()
        }
    };
    if present {
        Ok(requested)
    } else {
        Err(Error::NoSuchSimd {
            requested: requested.name(),
            has: has.name(),
        })
    }
}

/// The vector unit named by `SYSTOLA_SIMD`, or the widest one.
pub fn from_env() -> Result<Simd, Error> {
    match env::var("SYSTOLA_SIMD") {
        Ok(name) if !name.is_empty() => named(&name),
        Ok(_) | Err(_) => Ok(detect()),
    }
}

/// Flags for gcc and clang. The widest unit comes with all other features of this CPU; a narrower
/// one was requested, and no wider instructions may appear.
pub fn flags(simd: Simd) -> Vec<String> {
    let native = simd == detect();
    let flags: &[&str] = match simd {
        Simd::Avx512 => &["-march=native", "-mprefer-vector-width=512"],
        Simd::Avx2 if native => &["-march=native"],
        Simd::Avx2 => &[
            "-mavx2",
            "-mfma",
            "-mf16c",
            "-mbmi",
            "-mbmi2",
            "-mtune=native",
        ],
        Simd::Sse if native => &["-march=native"],
        Simd::Sse => &["-mtune=native"],
        Simd::Neon => &["-mcpu=native"],
        Simd::Portable => &[],
    };
    flags.iter().map(|f| (*f).to_string()).collect()
}

/// All features of this CPU that generated code may depend on.
pub(crate) fn cpu_features() -> &'static str {
    static FEATURES: OnceLock<String> = OnceLock::new();
    FEATURES.get_or_init(|| {
        // The system lists more features than the standard library detects, and `-march=native` may
        // use any.
        let listed = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            let mut lines = text.lines();
            let line = lines.find(|l| l.starts_with("flags") || l.starts_with("Features"))?;
            Some(line.to_string())
        });
        format!(
            "{} {} {}",
            env::consts::ARCH,
            detect().name(),
            listed.unwrap_or_default()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detected_unit_can_be_selected_by_name() {
        let has = detect();
        assert_eq!(named(has.name()).unwrap(), has);
        assert_eq!(named("portable").unwrap(), Simd::Portable);
        let foreign = if has == Simd::Neon { "sse" } else { "neon" };
        assert!(matches!(named(foreign), Err(Error::NoSuchSimd { .. })));
        assert!(matches!(named("mmx"), Err(Error::BadVariable { .. })));
    }
}
