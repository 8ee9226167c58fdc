//! Lesson 2: the same language, embedded in Rust.
//!
//! Builders take the words of the text language and end in the same module, so a program can make
//! systems and mappings by the dozen: here it looks for every linear schedule of a convolution with
//! small coefficients. Run it with `cargo run -p systola --example 02_in_rust`.

use std::collections::BTreeMap;
use std::error::Error;

use systola::dsl::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut s = SystemBuilder::new("conv1d");
    let (outputs, taps) = (s.param("C"), s.param("Q"));
    s.context(outputs.ge(1)).context(taps.ge(1));
    let x = s.input("x", Scalar::F32, [&outputs + &taps - 1]);
    let w = s.input("w", Scalar::F32, [&taps]);
    let [c, q, z] = names(["c", "q", "Z"]);
    s.index([c.range(0, &outputs), q.range(0, &taps)]);
    s.var(
        &z,
        Scalar::F32,
        select(q.equals(0), 0, z.at((&c, &q - 1))) + x.at([&c + &q]) * w.at([&q]),
    );
    s.output("z", Scalar::F32, [&outputs])
        .write_when(&z, [&c], q.equals(&taps - 1));
    let system = s.build().map_err(systola::Error::from)?;
    println!("{system}");

    let mut module = Module {
        systems: vec![system],
        ..Module::default()
    };
    for along_c in -1..=1i64 {
        for along_q in -1..=1i64 {
            let mut m = MappingBuilder::new(format!("m{}", module.mappings.len()), "conv1d");
            m.lane([&c]).time([&c * along_c + &q * along_q]);
            module
                .mappings
                .push(m.build().map_err(systola::Error::from)?);
        }
    }
    let sizes = BTreeMap::from([("C".to_string(), 16), ("Q".to_string(), 5)]);
    for mapping in &module.mappings {
        match systola::check_mapping(&module, mapping, &sizes) {
            Ok(checked) => {
                let counts = checked.report.counts.ok_or("sizes were given")?;
                println!(
                    "{}: {}, {} steps",
                    mapping.name, checked.report.name, counts.steps
                );
            }
            Err(refused) => println!("{}: {}", mapping.name, refused[0].code.title),
        }
    }
    Ok(())
}
