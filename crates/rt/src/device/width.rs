//! Do indices of 32 bits suffice?

use systola_ir::kernel::bounds::NARROW;

/// The type of indices in compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
}

impl Width {
    /// The width for numbers of up to this magnitude.
    pub(crate) fn holding(largest: i128) -> Width {
        if largest <= NARROW {
            Width::Narrow
        } else {
            Width::Wide
        }
    }

    /// An argument of this width in the low bytes of 8.
    pub(crate) fn encode(self, value: i64) -> u64 {
        match self {
            Width::Narrow => u64::from((value as i32) as u32),
            Width::Wide => value as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fill_the_low_end() {
        assert_eq!(Width::Narrow.encode(-1), 0xffff_ffff);
        assert_eq!(Width::Wide.encode(-1), u64::MAX);
    }
}
