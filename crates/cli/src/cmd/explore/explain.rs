//! Every term of the model for one design.

use systola_driver::{Fix, lower};
use systola_explore::model::ssam::{Cycles, Filter, latency};
use systola_explore::model::{Device, predict};
use systola_ir::codes::explore as codes;
use systola_ir::mapping::Mapping;
use systola_ir::{Diagnostic, Span};

use super::Task;
use crate::execute::duration;
use crate::source::{Failure, Parameters};
use crate::table::{Align, Table};
use crate::term::{self, Paint};

/// A design by its name.
pub fn named(task: &Task<'_>, name: &str) -> Result<(), Failure> {
    let all = task.candidates();
    let found = all.iter().find(|(c, _)| c.mapping.name == name);
    let Some((candidate, _)) = found else {
        let message = format!("`{}` has no design `{name}`", task.system.name);
        let unknown = Diagnostic::new(&codes::UNKNOWN_DESIGN, Span::NONE, message);
        return Err(task
            .source
            .fail(&[unknown.help("--list shows the candidates")]));
    };
    term::print(format!("{}\n", Paint::Bold.out(task.title())));
    mapping(task, &candidate.mapping, task.target_device.fix(), None)
}

/// A mapping, with its measured time if there is one.
pub fn mapping(
    task: &Task<'_>,
    mapping: &Mapping,
    fix: &Fix,
    measured: Option<f64>,
) -> Result<(), Failure> {
    let sizes = Parameters::from(task.system).named(&task.params);
    let machine = task.target_device.machine();
    let explain = || -> Result<_, Failure> {
        let lowered = lower(&task.source.module, mapping, &sizes, fix, &machine)
            .map_err(|found| task.source.fail(&found))?;
        let model = task.target_device.model();
        Ok(predict(&lowered.program, &task.params, &model))
    };
    // Measured designs were lowered before, and are lowered again.
    let prediction = match measured {
        Some(_) => explain()?,
        None => task.within(explain)??,
    };
    let prediction =
        prediction.map_err(|error| Failure::new(format!("nothing is predicted: {error}")))?;
    let mut text = format!("\n{mapping}");
    let mut table = Table::new(
        2,
        [
            Align::Left,
            Align::Right,
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Left,
        ],
    );
    table.header(["term", "amount", "", "per second", "time", "rate from"]);
    for term in &prediction.terms {
        let mark = if term.name == prediction.limit {
            " ←"
        } else {
            ""
        };
        table.row([
            term.name.to_string(),
            amount(term.amount),
            term.unit.to_string(),
            amount(term.rate),
            format!("{}{mark}", duration(term.seconds)),
            term.source.to_string(),
        ]);
    }
    text.push_str(&table.render());
    text.push_str(&format!(
        "  limited by {}: {} predicted",
        prediction.limit,
        duration(prediction.seconds)
    ));
    if let Some(measured) = measured {
        text.push_str(&format!(", {} measured", duration(measured)));
    }
    text.push_str(&format!(
        "\n  {} registers, occupancy {:.0} %, {:.0} % of the lanes store, {} instructions\n",
        prediction.registers,
        100.0 * prediction.occupancy,
        100.0 * prediction.utilisation,
        amount(prediction.code)
    ));
    text.push_str(&ssam(task).unwrap_or_default());
    term::print(text);
    Ok(())
}

/// The latency model of SSAM for comparison, where results are sums over one or two iterators of
/// known extent: a filter.
fn ssam(task: &Task<'_>) -> Option<String> {
    let extents: Vec<u32> = task
        .system
        .bound
        .iter()
        .map(|dim| {
            let (lo, hi) = dim.range.as_ref()?;
            let extent = hi.sub(lo).eval(&task.params, &[]).ok()?;
            u32::try_from(extent).ok()
        })
        .collect::<Option<_>>()?;
    let (height, width) = match extents.as_slice() {
        [width] => (1, *width),
        [height, width] => (*height, *width),
        _ => return None,
    };
    let cycles = match task.target_device.model() {
        Device::Cpu(cpu) => Cycles {
            fma: cpu.fma_latency.value,
            shared: cpu.load_latency.value,
            register: 0.0,
            shuffle: cpu.move_latency.value,
        },
        Device::Gpu(gpu) => Cycles {
            fma: gpu.fma_latency.value,
            shared: gpu.shared_latency.value,
            register: 0.0,
            shuffle: gpu.shuffle_latency.value,
        },
    };
    let filter = Filter {
        width,
        height,
        outputs: 1,
    };
    let found = latency(filter, &cycles);
    Some(format!(
        "  SSAM's latency model of a {height} × {width} filter, with the latencies of this device: {:.0} cycles for a result whose sums \
         migrate through registers, {:.0} through memory, {:.2} times as long\n",
        found.registers,
        found.shared,
        found.gain()
    ))
}

/// Three digits and a power of ten.
fn amount(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_string(),
        a if (1.0..1e4).contains(&a) => format!("{x:.0}"),
        a if a < 1e4 => format!("{x:.3}"),
        _ => format!("{x:.2e}"),
    }
}
