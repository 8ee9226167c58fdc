//! The ways of running the gallery that a mapping takes. Every mapping runs as an array, as kernels
//! in their interpreter and as machine code of this CPU. Compilers for other targets are slow, so
//! each mapping is given to some of them. Its names alone decide, so that a new mapping changes
//! nothing for the others. `SYSTOLA_TESTS=all` gives every mapping to every compiler.

/// A way that not every mapping takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// CUDA C++, emulated on the CPU: half of the mappings.
    EmulatedCuda,
    /// CUDA C++, compiled by NVRTC: the other half.
    Nvrtc,
    /// An OpenCL device with sub-groups: half of each of those two.
    OpenClSubGroups,
    /// An OpenCL device without: half of the others.
    OpenClLocalMemory,
}

impl Way {
    pub const ALL: [Way; 4] = [
        Way::EmulatedCuda,
        Way::Nvrtc,
        Way::OpenClSubGroups,
        Way::OpenClLocalMemory,
    ];

    /// Does a mapping of a file take this way?
    pub fn takes(self, file: &str, mapping: &str) -> bool {
        all_wanted() || self.draws(file, mapping)
    }

    fn draws(self, file: &str, mapping: &str) -> bool {
        let number = number(file, mapping);
        match self {
            Way::EmulatedCuda => number.is_multiple_of(2),
            Way::Nvrtc => !number.is_multiple_of(2),
            Way::OpenClSubGroups => (number / 2).is_multiple_of(2),
            Way::OpenClLocalMemory => number / 2 % 4 == 1,
        }
    }
}

/// Does `SYSTOLA_TESTS` ask for all tests in full?
pub fn all_wanted() -> bool {
    std::env::var("SYSTOLA_TESTS").is_ok_and(|tests| tests == "all")
}

/// A number that depends on the names alone.
pub fn number(file: &str, mapping: &str) -> u64 {
    let mut number = 0xcbf2_9ce4_8422_2325u64;
    for byte in file.bytes().chain([0]).chain(mapping.bytes()) {
        number = (number ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    // The low bits of this hash are far from uniform.
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^ (number >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery;

    #[test]
    fn every_way_has_many_mappings() {
        let mut mappings = 0;
        let mut drawn = [0; 4];
        for file in gallery::files() {
            let heads = file.text.lines().filter_map(|l| l.strip_prefix("mapping "));
            for name in heads.filter_map(|head| head.split(' ').next()) {
                mappings += 1;
                let ways = Way::ALL.map(|way| way.draws(&file.path, name));
                assert!(ways[0] != ways[1], "{name}: one of both ways of CUDA");
                assert!(!(ways[2] && ways[3]), "{name}: at most one OpenCL device");
                for (n, takes) in drawn.iter_mut().zip(ways) {
                    *n += usize::from(takes);
                }
            }
        }
        assert!(mappings > 250, "{mappings}");
        let [emulated, nvrtc, sub_groups, local_memory] = drawn.map(|n| n * 100 / mappings);
        let near = |percent: usize, least: usize, most: usize| {
            assert!((least..=most).contains(&percent), "{drawn:?} of {mappings}");
        };
        near(emulated, 40, 60);
        near(nvrtc, 40, 60);
        near(sub_groups, 40, 60);
        near(local_memory, 18, 32);
    }
}
