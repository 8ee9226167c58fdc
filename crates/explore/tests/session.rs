//! Whole explorations on a target that needs no compiler: the interpreter runs the kernels, and
//! times are simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use systola_driver::{Fix, Lowered, Machine, Simd, load};
use systola_explore::measure::Target;
use systola_explore::model::{Cpu, Device};
use systola_explore::problem::Problem;
use systola_explore::reduced::Reduced;
use systola_explore::report::{Ended, Outcome};
use systola_explore::search::Fault;
use systola_explore::session::{self, Event, Options, explore};
use systola_explore::space::Candidate;
use systola_interp::kernel::{Options as KernelOptions, run_kernel_program};
use systola_interp::{Arrays, Value};
use systola_ir::system::{Module, System};
use systola_jit::cpu::Error;
use systola_rt::Deadline;

const PROGRAM: &str = "
system conv1d(C, Q) where C >= 1, Q >= 1 {
  input x[C + Q - 1]: f32;
  input w[Q]: f32;
  index c in 0..C;
  var Z: f32 reorderable = reduce(+, q in 0..Q, x[c + q] * w[q]);
  output z[C]: f32 = Z at [c];
}
mapping slow of conv1d { lane = c + q; time = q; forward x along (-1, 1); sum Z along q; }
mapping fast of conv1d { lane = c; time = q; sum Z along q; }
mapping other of conv1d { lane = c; time = -q; sum Z along -q; }
mapping illegal of conv1d { lane = c; time = 0; sum Z along q; }
";

/// The fault that is injected into the results of one mapping.
#[derive(Clone, Copy, PartialEq)]
enum Sabotage {
    None,
    /// At sizes below 1000.
    Small,
    /// One element at the sizes of the problem, away from boundaries and samples.
    OneElement,
    /// No output is written.
    Nothing,
    Panics,
    NotCompiled,
    /// Lowering and printing it never end.
    Endless,
    /// Its compiler never ends, and is stopped at the deadline.
    NeverCompiled,
}

struct Interpreted {
    victim: &'static str,
    sabotage: Sabotage,
}

struct Placed {
    params: Vec<i128>,
    inputs: Arrays,
    outputs: Arrays,
}

impl Interpreted {
    fn interpret(&self, code: &Lowered, params: &[i128], inputs: &Arrays) -> Arrays {
        let run = run_kernel_program(&code.program, params, inputs, &KernelOptions::default());
        let mut outputs = run.unwrap().outputs;
        if code.checked.report.mapping == self.victim {
            let z = outputs.get_mut("z").unwrap();
            match self.sabotage {
                Sabotage::Small if params[0] < 1000 => assert!(z.data.set(0, &Value::F32(3.0))),
                Sabotage::OneElement if params[0] >= 1000 => {
                    assert!(z.data.set(1234, &Value::F32(3.0)))
                }
                Sabotage::Nothing => {
                    *z = systola_interp::Tensor::vector(vec![f32::NAN; z.data.len()])
                }
                Sabotage::Panics => panic!("a run that panics"),
                Sabotage::None
                | Sabotage::Small
                | Sabotage::OneElement
                | Sabotage::NotCompiled
                | Sabotage::Endless
                | Sabotage::NeverCompiled => {}
            }
        }
        outputs
    }
}

impl Target for Interpreted {
    type Code = Lowered;
    type Placed = Placed;

    fn compile(&self, lowered: Lowered, deadline: &Deadline) -> Result<Lowered, Error> {
        let name = &lowered.checked.report.mapping;
        if name != self.victim && self.victim != "all" {
            return Ok(lowered);
        }
        match self.sabotage {
            Sabotage::NotCompiled => Err(Error::Refused(Vec::new())),
            Sabotage::Endless => loop {
                affine::cancel::check();
            },
            Sabotage::NeverCompiled => {
                while !deadline.is_over() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(systola_rt::Error::OutOfTime.into())
            }
            _ => Ok(lowered),
        }
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn run(&self, code: &Lowered, params: &[i128], inputs: &Arrays) -> Result<Arrays, Error> {
        Ok(self.interpret(code, params, inputs))
    }

    fn place(&self, _: &System, params: &[i128], inputs: &Arrays) -> Result<Placed, Error> {
        Ok(Placed {
            params: params.to_vec(),
            inputs: inputs.clone(),
            outputs: Arrays::new(),
        })
    }

    fn time(&self, code: &Lowered, placed: &mut Placed, times: usize) -> Result<Vec<f64>, Error> {
        if placed.outputs.is_empty() {
            placed.outputs = self.interpret(code, &placed.params, &placed.inputs);
        }
        let seconds = match code.checked.report.mapping.as_str() {
            "fast" => 1e-6,
            _ => 2e-6,
        };
        Ok(vec![seconds; times])
    }

    fn outputs<'p>(&self, placed: &'p mut Placed) -> Result<&'p Arrays, Error> {
        Ok(&placed.outputs)
    }

    fn clear(&self, placed: &mut Placed) -> Result<(), Error> {
        placed.outputs.clear();
        Ok(())
    }

    fn registers(&self, _: &Lowered) -> Option<u32> {
        Some(7)
    }
}

fn machine() -> Machine {
    Machine::cpu(Simd::Avx2)
}

fn run(
    module: &Module,
    fix: Fix,
    target: &Interpreted,
    budget: Duration,
    stopped: bool,
) -> Result<Outcome, session::Error> {
    let stop = Arc::new(AtomicBool::new(stopped));
    look(module, fix, target, budget, &stop, None, &mut |_| {})
}

fn look(
    module: &Module,
    fix: Fix,
    target: &Interpreted,
    budget: Duration,
    stop: &Arc<AtomicBool>,
    survey: Option<Reduced>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, session::Error> {
    let (system, params) = (&module.systems[0], [4001, 5]);
    let sizes = [("C".to_string(), 4001), ("Q".to_string(), 5)];
    let problem = Problem {
        module,
        system,
        sizes: sizes.into_iter().collect(),
        fix,
        machine: machine(),
    };
    let candidate = |mapping: &systola_ir::mapping::Mapping| Candidate {
        mapping: mapping.clone(),
        choices: Vec::new(),
    };
    let all = module
        .mappings
        .iter()
        .map(|m| (candidate(m), true))
        .collect();
    let options = Options {
        begin: Instant::now(),
        deadline: Deadline::after(budget).or_when(stop),
        seed: 1,
        survey,
    };
    let model = Device::Cpu(Cpu::default());
    explore(&problem, &params, all, target, &model, &options, on_event)
}

const ENOUGH: Duration = Duration::from_secs(300);

fn check(victim: &'static str, sabotage: Sabotage, fix: Fix, wrong: Option<&str>) {
    let module = load(PROGRAM).unwrap();
    let target = Interpreted { victim, sabotage };
    let outcome = run(&module, fix, &target, ENOUGH, false).unwrap();
    assert_eq!(outcome.ended, Ended::Complete);
    assert_eq!(outcome.refused.len(), 1, "{:?}", outcome.refused);
    let reasons: Vec<&str> = outcome.wrong().map(|(_, why)| why).collect();
    match wrong {
        None => assert_eq!(reasons, [""; 0]),
        Some(text) => {
            assert_eq!(reasons.len(), 1, "{reasons:?}");
            assert!(reasons[0].contains(text), "{reasons:?}");
            let (design, _) = outcome.wrong().next().unwrap();
            assert_eq!(design.name(), victim);
        }
    }
    let best = outcome.best().unwrap();
    let rest = if victim == "fast" { 2e-6 } else { 1e-6 };
    assert!(
        best.name() != victim && best.measured == Some(rest),
        "{best:?}"
    );
    assert_eq!(best.registers, Some(7));
}

#[test]
fn the_fastest_is_found_and_verified_in_both_ways() {
    let module = load(PROGRAM).unwrap();
    let target = Interpreted {
        victim: "",
        sabotage: Sabotage::None,
    };
    let outcome = run(&module, Fix::Nothing, &target, ENOUGH, false).unwrap();
    let names: Vec<&str> = outcome.designs.iter().map(|d| d.name()).collect();
    assert_eq!(names[0], "fast");
    assert_eq!((names.len(), outcome.candidates), (3, 4));
    assert!(
        outcome
            .designs
            .iter()
            .all(|d| d.predicted.is_some() && d.taxonomy.len() == 3)
    );
    assert_eq!(outcome.evidence.small, Some(vec![301, 5]));
    assert!(outcome.evidence.sampled > 60);
}

/// Of three designs two are surveyed; with a limit on the length, all that are short enough; if
/// there are none, an error.
#[test]
fn a_survey_takes_some() {
    let module = load(PROGRAM).unwrap();
    let target = Interpreted {
        victim: "",
        sabotage: Sabotage::None,
    };
    let survey = |designs, text| {
        let reduced = Reduced { designs, text };
        let stop = Arc::default();
        let mut quiet = |_: Event<'_>| {};
        look(
            &module,
            Fix::Nothing,
            &target,
            ENOUGH,
            &stop,
            Some(reduced),
            &mut quiet,
        )
    };
    let two = survey(2, None).unwrap();
    assert_eq!((two.designs.len(), two.strategy), (2, "survey"));
    let all = survey(100, Some(1e6)).unwrap();
    assert_eq!(all.designs.len(), 3);
    let none = survey(100, Some(1.0)).unwrap_err();
    assert!(matches!(none, session::Error::AllLong { shortest } if shortest > 1.0));
}

#[test]
fn wrong_results_disqualify() {
    check("other", Sabotage::Small, Fix::Nothing, Some("z[0]"));
    // Compared with the first that passes, which is the one predicted to be the fastest.
    check("other", Sabotage::OneElement, Fix::Nothing, Some("z[1234]"));
    check(
        "fast",
        Sabotage::Nothing,
        Fix::Everything,
        Some("the equations say"),
    );
    check("fast", Sabotage::Panics, Fix::Nothing, Some("panics"));
}

#[test]
fn what_is_refused_is_no_bug() {
    check("other", Sabotage::NotCompiled, Fix::Nothing, None);
    let module = load(PROGRAM).unwrap();
    let target = Interpreted {
        victim: "fast",
        sabotage: Sabotage::NotCompiled,
    };
    let outcome = run(&module, Fix::Nothing, &target, ENOUGH, false).unwrap();
    let faults: Vec<&Fault> = outcome
        .designs
        .iter()
        .filter_map(|d| d.fault.as_ref())
        .collect();
    assert!(matches!(faults[..], [Fault::Refused(_)]), "{faults:?}");
}

#[test]
fn kernels_for_one_size_are_verified_there() {
    let module = load(PROGRAM).unwrap();
    let target = Interpreted {
        victim: "",
        sabotage: Sabotage::None,
    };
    let outcome = run(&module, Fix::Everything, &target, ENOUGH, false).unwrap();
    assert_eq!(outcome.evidence.small, None);
    assert!(outcome.evidence.sampled > 60);
}

#[test]
fn nothing_to_explore_is_an_error() {
    let target = Interpreted {
        victim: "",
        sabotage: Sabotage::None,
    };
    let mut module = load(PROGRAM).unwrap();
    let tiny = run(&module, Fix::Nothing, &target, Duration::ZERO, false);
    assert!(
        matches!(tiny, Err(session::Error::BudgetTooSmall(_))),
        "{tiny:?}"
    );
    module.mappings.retain(|m| m.name == "illegal");
    let none = run(&module, Fix::Nothing, &target, ENOUGH, false);
    assert!(
        matches!(none, Err(session::Error::NoDesign(1, Some(_)))),
        "{none:?}"
    );
}

#[test]
fn a_stop_ends_it() {
    let module = load(PROGRAM).unwrap();
    let target = Interpreted {
        victim: "",
        sabotage: Sabotage::None,
    };
    let outcome = run(&module, Fix::Nothing, &target, ENOUGH, true).unwrap();
    assert_eq!(outcome.ended, Ended::Interrupted);
    assert!(outcome.designs.is_empty());
}

/// An exploration ends even if a step of it never ends; the candidate predicted to be the fastest
/// is reported.
#[test]
fn a_budget_ends_what_does_not_end() {
    let module = load(PROGRAM).unwrap();
    for sabotage in [Sabotage::Endless, Sabotage::NeverCompiled] {
        let victim = "all";
        let target = Interpreted { victim, sabotage };
        let budget = Duration::from_secs(3);
        let outcome = run(&module, Fix::Nothing, &target, budget, false).unwrap();
        assert_eq!(outcome.ended, Ended::Budget);
        assert!(outcome.best().is_none());
        let late = |d: &systola_explore::report::Design| d.fault == Some(Fault::Late);
        assert!(outcome.designs.iter().all(late), "{:?}", outcome.designs);
        let expected = outcome.expected.unwrap();
        assert!(expected.predicted.is_some() && expected.measured.is_none());
    }
}

/// An interrupt while something does not end: what was measured before is kept.
#[test]
fn an_interrupt_ends_what_does_not_end() {
    let module = load(PROGRAM).unwrap();
    for sabotage in [Sabotage::Endless, Sabotage::NeverCompiled] {
        let victim = "other";
        let target = Interpreted { victim, sabotage };
        let stop = Arc::new(AtomicBool::new(false));
        let mut measured = 0;
        let mut interrupt = |event: Event<'_>| {
            if let Event::Measured { best: Some(_), .. } = event {
                measured += 1;
                stop.store(measured == 2, Ordering::Relaxed);
            }
        };
        let budget = Duration::MAX;
        let outcome = look(
            &module,
            Fix::Nothing,
            &target,
            budget,
            &stop,
            None,
            &mut interrupt,
        );
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ended, Ended::Interrupted);
        assert_eq!(outcome.best().unwrap().name(), "fast");
        assert!(outcome.expected.is_none());
    }
}
