//! The device that `--device` names.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use systola::rt::device::choose;
use systola::rt::{Error, cuda, opencl};

/// Its index, or a part of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName(String);

impl Default for DeviceName {
    fn default() -> Self {
        DeviceName("0".to_string())
    }
}

impl FromStr for DeviceName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(DeviceName(text.to_string()))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DeviceName {
    /// The index of an NVIDIA GPU.
    pub fn cuda(&self) -> Result<usize, Error> {
        let names: Vec<String> = cuda::devices()?.into_iter().map(|d| d.name).collect();
        choose("NVIDIA GPU", &names, &self.0)
    }

    /// The index of an OpenCL device. Its platform is part of its name.
    pub fn opencl(&self) -> Result<usize, Error> {
        choose("OpenCL device", &opencl_names()?, &self.0)
    }

    /// The same OpenCL device for another process, where indices may differ: by its full name, if
    /// no other name contains it.
    pub fn for_children(&self) -> String {
        let by_name = || -> Result<String, Error> {
            let names = opencl_names()?;
            let number = choose("OpenCL device", &names, &self.0)?;
            let same = choose("OpenCL device", &names, &names[number])?;
            Ok(match same == number {
                true => names[number].clone(),
                false => self.0.clone(),
            })
        };
        by_name().unwrap_or_else(|_| self.0.clone())
    }
}

/// All OpenCL devices, as `--device` compares them.
fn opencl_names() -> Result<Vec<String>, Error> {
    let found = opencl::devices()?.into_iter();
    Ok(found
        .map(|d| format!("{}; {}", d.name, d.platform))
        .collect())
}
