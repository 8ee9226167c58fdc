//! Families of problems, and their baselines.

use super::problem::Scale;

/// Problems with common baselines.
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
    /// The six designs of 1-D convolution, compared
    Designs,
    /// A star of five points, by `bench stencils`
    #[value(skip)]
    Stencil2d,
    /// A star of seven points, by `bench stencils`
    #[value(skip)]
    Stencil3d,
}

impl Family {
    pub const ALL: [Family; 8] = [
        Family::Conv1d,
        Family::Conv2d,
        Family::Matmul,
        Family::EditDistance,
        Family::SmithWaterman,
        Family::Designs,
        Family::Stencil2d,
        Family::Stencil3d,
    ];

    /// Its baselines, in the order of the table.
    pub fn baselines(self) -> &'static [&'static str] {
        match self {
            Family::Conv1d | Family::Conv2d => &["C", "OpenCV", "Halide", "SciPy"],
            Family::Matmul => &["C", "OpenBLAS", "Halide"],
            Family::EditDistance => &["C", "rapidfuzz"],
            Family::SmithWaterman => &["C", "parasail"],
            Family::Designs => &[],
            Family::Stencil2d => &["C", "OpenCV", "SciPy", "Devito", "Halide"],
            Family::Stencil3d => &["C", "SciPy", "Devito", "Halide"],
        }
    }

    /// Its name in bench/baselines/cpu.
    pub fn file_name(self) -> &'static str {
        match self {
            Family::Conv1d => "conv1d",
            Family::Conv2d => "conv2d",
            Family::Matmul => "matmul",
            Family::EditDistance => "edit_distance",
            Family::SmithWaterman => "smith_waterman",
            Family::Designs => "designs",
            Family::Stencil2d | Family::Stencil3d => "stencil",
        }
    }

    /// The folder of its programs, below the root.
    pub fn folder(self) -> &'static str {
        match self {
            Family::Conv1d
            | Family::Conv2d
            | Family::Matmul
            | Family::EditDistance
            | Family::SmithWaterman
            | Family::Designs => "gallery",
            Family::Stencil2d | Family::Stencil3d => "stencils",
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
            Family::Stencil2d => "2d5pt",
            Family::Stencil3d => "3d7pt",
        }
    }

    /// MiB of the copy measured with it, the size of its fields.
    pub fn copy_mib(self, scale: Scale) -> usize {
        match (self, scale) {
            (Family::Stencil2d | Family::Stencil3d, Scale::Full) => 256,
            (_, scale) => scale.copy_mib(),
        }
    }

    /// The unit of its rate.
    pub fn unit(self) -> &'static str {
        match self {
            Family::Conv1d
            | Family::Conv2d
            | Family::Matmul
            | Family::Designs
            | Family::Stencil2d
            | Family::Stencil3d => "GFLOP/s",
            Family::EditDistance | Family::SmithWaterman => "Gcell/s",
        }
    }

    /// Whether copying and multiplying bound its time: other problems do little of both.
    pub fn has_limit(self) -> bool {
        match self {
            Family::Conv1d
            | Family::Conv2d
            | Family::Matmul
            | Family::Designs
            | Family::Stencil2d
            | Family::Stencil3d => true,
            Family::EditDistance | Family::SmithWaterman => false,
        }
    }
}
