use systola_front::parse_module;

#[test]
fn everything_parses() {
    match parse_module(include_str!("good/everything.ure")) {
        Ok(_) => {}
        Err(errors) => panic!("{errors:#?}"),
    }
}
