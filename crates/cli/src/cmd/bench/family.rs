//! Kinds of problems, and what they are measured beside.

/// Problems that have their peers in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// 1-D convolution
    Conv1d,
    /// 2-D convolution
    Conv2d,
    /// Matrix product
    Matmul,
    /// Edit distance, of one pair and of many
    EditDistance,
    /// Smith-Waterman with affine gaps, of many pairs
    SmithWaterman,
    /// The six designs of 1-D convolution, beside each other
    Designs,
}

impl Family {
    pub const ALL: [Family; 6] = [
        Family::Conv1d,
        Family::Conv2d,
        Family::Matmul,
        Family::EditDistance,
        Family::SmithWaterman,
        Family::Designs,
    ];

    /// The libraries it is measured beside, in the order of the table.
    pub fn peers(self) -> &'static [&'static str] {
        match self {
            Family::Conv1d | Family::Conv2d => &["C", "OpenCV", "Halide", "SciPy"],
            Family::Matmul => &["C", "OpenBLAS", "Halide"],
            Family::EditDistance => &["C", "rapidfuzz"],
            Family::SmithWaterman => &["C", "parasail"],
            Family::Designs => &[],
        }
    }

    /// What bench/peers/cpu calls it.
    pub fn file_name(self) -> &'static str {
        match self {
            Family::Conv1d => "conv1d",
            Family::Conv2d => "conv2d",
            Family::Matmul => "matmul",
            Family::EditDistance => "edit_distance",
            Family::SmithWaterman => "smith_waterman",
            Family::Designs => "designs",
        }
    }

    /// The heading of its part of the table.
    pub fn title(self) -> &'static str {
        match self {
            Family::Conv1d => "1-D convolution",
            Family::Conv2d => "2-D convolution",
            Family::Matmul => "matrix product",
            Family::EditDistance => "edit distance",
            Family::SmithWaterman => "Smith-Waterman",
            Family::Designs => "designs",
        }
    }

    /// What its rate counts.
    pub fn unit(self) -> &'static str {
        match self {
            Family::Conv1d | Family::Conv2d | Family::Matmul | Family::Designs => "GFLOP/s",
            Family::EditDistance | Family::SmithWaterman => "Gcell/s",
        }
    }

    /// Whether copying and multiplying bound its time: the others neither copy nor multiply much.
    pub fn has_limit(self) -> bool {
        match self {
            Family::Conv1d | Family::Conv2d | Family::Matmul | Family::Designs => true,
            Family::EditDistance | Family::SmithWaterman => false,
        }
    }
}
