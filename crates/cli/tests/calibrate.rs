//! `systola devices --calibrate`: numbers are stored, shown, and never used if damaged.

mod common;

use std::path::Path;

use common::{check_with, temporary};

fn calibration_in(cache: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(cache.join("calibration"));
    let files = files.into_iter().flatten().flatten();
    files.map(|entry| entry.path()).collect()
}

#[test]
fn numbers_are_measured_kept_and_shown() {
    let cache = temporary("calibrated");
    let _ = std::fs::remove_dir_all(&cache);
    let folder = cache.display().to_string();
    let variables = [("SYSTOLA_CACHE", folder.as_str())];
    let (out, err) = check_with(&variables, &["devices"], 0);
    assert!(out.contains("not calibrated"), "{out}");
    assert!(err.is_empty(), "{err}");

    let (measured, err) = check_with(&variables, &["devices", "--calibrate"], 0);
    for step in ["clock", "multiply-adds", "memory, all threads", "launches"] {
        assert!(err.contains(&format!(": {step}\n")), "{step}\n{err}");
    }
    for number in ["clock ", "fma ", "split_load ", "copy_all ", "launch "] {
        assert!(measured.contains(number), "{number}\n{measured}");
    }
    let files = calibration_in(&cache);
    assert!(!files.is_empty());
    let (shown, err) = check_with(&variables, &["devices"], 0);
    assert!(shown.contains("clock ") && err.is_empty(), "{shown}\n{err}");

    for file in files {
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    }
    let (out, err) = check_with(&variables, &["devices"], 0);
    assert!(err.contains("is damaged"), "{err}");
    assert!(err.contains("--calibrate"), "{err}");
    assert!(out.contains("not calibrated"), "{out}");
}

#[test]
fn without_a_cache_there_is_no_place_for_them() {
    let variables = [("SYSTOLA_CACHE_MB", "0")];
    let (_, err) = check_with(&variables, &["devices", "--calibrate"], 1);
    assert!(err.contains("no cache"), "{err}");
}
