//! The vector unit of this processor.

use std::env;
use std::fs;
use std::sync::OnceLock;

use systola_ir::target::Simd;

use crate::error::Error;

/// The widest this processor has.
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

/// The one of this name, if this processor has it.
pub fn named(name: &str) -> Result<Simd, Error> {
    let asked = Simd::ALL
        .into_iter()
        .find(|s| s.name() == name)
        .ok_or_else(|| Error::BadVariable {
            name: "SYSTOLA_SIMD",
            value: name.to_string(),
            expected: "avx512, avx2, sse, neon or portable",
        })?;
    let has = detect();
    let present = match asked {
        Simd::Portable => true,
        Simd::Neon => has == Simd::Neon,
        Simd::Avx512 | Simd::Avx2 | Simd::Sse => has != Simd::Neon && has.bytes() >= asked.bytes(),
    };
    if present {
        Ok(asked)
    } else {
        Err(Error::NoSuchSimd {
            asked: asked.name(),
            has: has.name(),
        })
    }
}

/// What `SYSTOLA_SIMD` asks for; without it the widest there is.
pub fn from_env() -> Result<Simd, Error> {
    match env::var("SYSTOLA_SIMD") {
        Ok(name) if !name.is_empty() => named(&name),
        Ok(_) | Err(_) => Ok(detect()),
    }
}

/// Flags for gcc and clang. The widest unit goes with everything else that this processor has; a
/// narrower one was asked for, and then nothing wider is to appear.
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

/// Everything that tells the code made for this processor from that made for another.
pub(crate) fn processor() -> &'static str {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(|| {
        // The system lists more features than the standard library can ask for, and `-march=native` may use any.
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
    fn the_detected_unit_can_be_asked_for_by_name() {
        let has = detect();
        assert_eq!(named(has.name()).unwrap(), has);
        assert_eq!(named("portable").unwrap(), Simd::Portable);
        let foreign = if has == Simd::Neon { "sse" } else { "neon" };
        assert!(matches!(named(foreign), Err(Error::NoSuchSimd { .. })));
        assert!(matches!(named("mmx"), Err(Error::BadVariable { .. })));
    }
}
