//! A mapping that every boundary condition allows: a launch for each sweep, neighbouring columns in
//! neighbouring lanes.

use systola_ir::system::{Dim, System};

/// Its name.
pub const PLAIN: &str = "plain";

/// One sweep has a block for each row; with many sweeps a block goes down the first axis, since
/// partial sums migrate along it.
pub fn plain(system: &System, many: bool) -> Option<String> {
    let name = |dim: &Dim| dim.name.clone();
    let mut dims: Vec<String> = system.dims.iter().map(name).collect();
    let column = dims.pop()?;
    let (launch, time) = if many {
        let mut first = dims.drain(..dims.len().min(2));
        let (step, first) = (first.next()?, first.next()?);
        (format!("\n  launch = {step};"), first)
    } else if system.bound.is_empty() {
        (String::new(), "0".to_string())
    } else {
        let bound: Vec<String> = system.bound.iter().map(name).collect();
        (String::new(), format!("({})", bound.join(", ")))
    };
    dims.push("plain_block".to_string());
    Some(format!(
        "mapping {PLAIN} of {} {{
  tile {column} by L as (plain_block, plain_lane);{launch}
  block = ({});
  lane = plain_lane;
  time = {time};
}}
",
        system.name,
        dims.join(", ")
    ))
}
