//! The latency model of SSAM (Chen, Wahib, Takizawa, Takano and Matsuoka, SC'19): the time of a
//! warp for one output, with partial sums that migrate through registers, and with values in shared
//! memory.

/// Cycles of the operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycles {
    pub fma: f64,
    pub shared: f64,
    pub register: f64,
    pub shuffle: f64,
}

impl Cycles {
    /// As the paper measured them on a V100.
    pub const V100: Cycles = Cycles {
        fma: 4.0,
        shared: 27.0,
        register: 0.0,
        shuffle: 22.0,
    };
}

/// A filter of M × N over lanes that keep C = N + P − 1 rows for P outputs each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    pub width: u32,
    pub height: u32,
    pub outputs: u32,
}

/// The latencies of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// One output, with partial sums shuffled between registers: M·N·(fma + shared + 2 register) +
    /// (M − 1)·shuffle.
    pub registers: f64,
    /// One output, values in shared memory: M·N·(fma + 2 shared + 2 register).
    pub shared: f64,
    /// The share of the loaded values that belongs to neighbours: 1 − (32 − M)(C − N) / (32 C).
    pub halo: f64,
}

impl Latency {
    /// The speedup of registers over shared memory.
    pub fn gain(self) -> f64 {
        self.shared / self.registers
    }
}

pub fn latency(filter: Filter, cycles: &Cycles) -> Latency {
    let (m, n) = (f64::from(filter.width), f64::from(filter.height));
    let rows = n + f64::from(filter.outputs) - 1.0;
    let each = cycles.fma + 2.0 * cycles.register;
    Latency {
        registers: m * n * (each + cycles.shared) + (m - 1.0) * cycles.shuffle,
        shared: m * n * (each + 2.0 * cycles.shared),
        halo: 1.0 - (32.0 - m) * (rows - n) / (32.0 * rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_win_on_a_v100() {
        let filter = |width, height| Filter {
            width,
            height,
            outputs: 4,
        };
        let small = latency(filter(3, 3), &Cycles::V100);
        assert_eq!(small.registers, 9.0 * 31.0 + 2.0 * 22.0);
        assert_eq!(small.shared, 9.0 * 58.0);
        assert_eq!(small.halo, 1.0 - 29.0 * 3.0 / (32.0 * 6.0));
        // The more rows a filter has, the fewer shuffles per product.
        let gains: Vec<f64> = [1, 3, 9, 20]
            .map(|k| latency(filter(k, k), &Cycles::V100).gain())
            .to_vec();
        assert!(gains[1..].windows(2).all(|g| g[0] < g[1]), "{gains:?}");
        assert!(gains[3] < 58.0 / 31.0);
    }
}
