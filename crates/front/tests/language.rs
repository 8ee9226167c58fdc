//! The examples of docs/language.md.

use systola_front::parse_module;

#[test]
fn examples_of_the_guide_are_true() {
    let guide = include_str!("../../../docs/language.md");
    let mut n_good = 0;
    let mut n_bad = 0;
    let mut rest = guide;
    while let Some((_, block)) = rest.split_once("```ure") {
        let (info, block) = block.split_once('\n').expect("a line");
        let (example, after) = block.split_once("\n```").expect("an end of the block");
        rest = after;
        match info.strip_prefix(",error ") {
            None => {
                assert_eq!(info, "", "unknown kind of example");
                let module = parse_module(example).unwrap_or_else(|e| panic!("{example}\n{e:#?}"));
                assert_eq!(parse_module(&module.to_string()), Ok(module), "{example}");
                n_good += 1;
            }
            Some(code) => {
                let errors = parse_module(example).expect_err(example);
                let codes: Vec<&str> = errors.iter().map(|e| e.code.id).collect();
                assert_eq!(codes, [code], "{example}\n{errors:#?}");
                n_bad += 1;
            }
        }
    }
    println!("{n_good} examples are accepted, {n_bad} are refused with their codes");
    assert!(n_good >= 15 && n_bad >= 10);
}
