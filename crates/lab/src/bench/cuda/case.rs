//! A problem that is timed on a GPU: a program of the gallery at a size, its inputs, and how its
//! results are checked.

use std::sync::Arc;

use systola::rt::HostArray;

use crate::arrays::{Array, Arrays};

/// Problems that are grouped in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Group {
    /// 1-D convolution of 2^28 samples, and a copy as one with a single tap
    Conv1d,
    /// 2-D convolution in single precision, as large as the image
    Conv2d,
    /// The same in double precision
    Conv2dF64,
    /// Other windows over an image: dilation 2, grey erosion, two outputs
    Windows,
    /// 1000 sweeps over a field: 5 points, a star of radius 2, a box
    Stencil,
    /// The seven 1-D designs of Rong et al. 2020
    Designs1d,
    /// Their 2-D designs
    Designs2d,
    /// Matrix product
    Matmul,
    /// Smith-Waterman with affine gaps, of many pairs
    Alignment,
    /// Time from the command to the first result
    Startup,
}

impl Group {
    pub const ALL: [Group; 10] = [
        Group::Conv1d,
        Group::Conv2d,
        Group::Conv2dF64,
        Group::Windows,
        Group::Stencil,
        Group::Matmul,
        Group::Alignment,
        Group::Designs1d,
        Group::Designs2d,
        Group::Startup,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Group::Conv1d => "conv1d",
            Group::Conv2d => "conv2d",
            Group::Conv2dF64 => "conv2d-f64",
            Group::Windows => "windows",
            Group::Stencil => "stencil",
            Group::Matmul => "matmul",
            Group::Alignment => "alignment",
            Group::Designs1d => "designs1d",
            Group::Designs2d => "designs2d",
            Group::Startup => "startup",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Group::Conv1d => "1-D convolution, f32",
            Group::Conv2d => "2-D convolution, f32, zero outside",
            Group::Conv2dF64 => "2-D convolution, f64, zero outside",
            Group::Windows => "other windows over an image of 8192², f32",
            Group::Stencil => "sweeps over a field, f32, boundary fixed",
            Group::Matmul => "matrix product, f32",
            Group::Alignment => "Smith-Waterman with affine gaps",
            Group::Designs1d => {
                "designs of 1-D convolution, tiles of 16 or 64 outputs, beside the model"
            }
            Group::Designs2d => "designs of 2-D convolution, tiles of 16 outputs, beside the model",
            Group::Startup => "from the command to the first result",
        }
    }

    /// Its baselines, as bench/baselines/cuda names them.
    pub fn baselines(self) -> &'static [&'static str] {
        match self {
            Group::Conv1d => &["cuDNN"],
            Group::Conv2d => &["cuDNN", "NPP", "CuPy"],
            Group::Conv2dF64 => &["cuDNN", "CuPy"],
            Group::Matmul => &["cuBLAS"],
            Group::Windows
            | Group::Stencil
            | Group::Alignment
            | Group::Designs1d
            | Group::Designs2d
            | Group::Startup => &[],
        }
    }
}

/// The mappings of a program that are tried.
#[derive(Clone, Debug)]
pub enum Mappings {
    /// All mappings of this system in the file, except for some.
    Of {
        system: &'static str,
        but: &'static [&'static str],
    },
    These(&'static [&'static str]),
}

/// One problem.
pub struct Case {
    /// Its name, also in the output of a baseline.
    pub name: String,
    /// Its file in the gallery.
    pub program: &'static str,
    pub mappings: Mappings,
    pub sizes: Sizes,
    /// The sizes that become constants in the kernel.
    pub fix: &'static [&'static str],
    pub work: Work,
    /// A remark at the end of its row.
    pub note: String,
    /// The arguments of the baselines' scripts.
    pub baseline: Option<String>,
    /// Inputs are made when the case is run.
    pub make: Box<dyn Fn(&Arrays) -> Data>,
}

pub type Sizes = Vec<(&'static str, i64)>;

/// The minimum work of a problem, however it is solved.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub operations: f64,
    pub unit: Unit,
    /// Bytes that must be read and written at least once.
    pub bytes: f64,
    /// Cells of a field or of a table, in each step, where the rate counts cells.
    pub cells: Option<Cells>,
}

/// The unit that performs the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Two in each fused multiply-add of single precision.
    F32,
    /// The same of double precision.
    F64,
    /// Each an instruction of single precision.
    Single,
    /// Each an instruction on integers.
    Integer,
}

#[derive(Clone, Copy, Debug)]
pub struct Cells {
    pub count: f64,
    /// The unit of 10⁹ cells per second.
    pub unit: &'static str,
}

pub struct Data {
    pub inputs: Vec<(&'static str, Arc<Array>)>,
    /// Each is run and checked; the last is timed, and has the sizes of the case.
    pub trials: Vec<Trial>,
}

pub struct Trial {
    pub sizes: Sizes,
    pub outputs: Vec<Output>,
}

pub struct Output {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub check: Check,
}

/// The error of a result, if it is wrong.
pub type Check = Box<dyn Fn(&HostArray) -> Option<String>>;
