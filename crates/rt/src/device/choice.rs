//! Selects one of several devices, by its index or a part of its name.

use crate::error::Error;

/// The index of the wanted device: an index itself, or a part of one name, case-insensitive. `kind`
/// is for the error.
pub fn choose(kind: &'static str, names: &[String], wanted: &str) -> Result<usize, Error> {
    let wanted = wanted.trim();
    let small = wanted.to_lowercase();
    let matching: Vec<usize> = match wanted.parse::<usize>() {
        Ok(number) => (0..names.len()).filter(|n| *n == number).collect(),
        Err(_) if wanted.is_empty() => Vec::new(),
        Err(_) => {
            let is_it = |n: &usize| names[*n].to_lowercase().contains(&small);
            (0..names.len()).filter(is_it).collect()
        }
    };
    if let [one] = matching[..] {
        return Ok(one);
    }
    let listed = names.iter().enumerate();
    Err(Error::NoSuchDevice {
        kind,
        wanted: wanted.to_string(),
        matching: matching.len(),
        all: listed.map(|(n, name)| format!("{n}: {name}")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_parts_of_names_choose() {
        let names = ["NVIDIA H200, CUDA", "Intel(R) Xeon(R)", "pthread-Intel"];
        let names = names.map(str::to_string);
        let chosen = |wanted| choose("OpenCL device", &names, wanted);
        assert_eq!(chosen("2").unwrap(), 2);
        assert_eq!(chosen("h200").unwrap(), 0);
        assert_eq!(chosen(" xeon ").unwrap(), 1);
        assert_eq!(chosen("PTHREAD").unwrap(), 2);
        for (wanted, n) in [("intel", 2), ("3", 0), ("amd", 0), ("", 0)] {
            let error = chosen(wanted).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, Error::NoSuchDevice { matching, .. } if matching == n),
                "{text}"
            );
            assert!(text.contains("1: Intel(R) Xeon(R)"), "{text}");
        }
    }
}
