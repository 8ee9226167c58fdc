//! The mappings of the files as arrays: legal, of the stated size, and computing the same.

use std::collections::{BTreeMap, BTreeSet};

use systola_driver::{Checked, check_mapping};
use systola_filetests::cpus::on_all_cpus;
use systola_filetests::gallery::{self, Algorithm};
use systola_filetests::reference;
use systola_filetests::tensor::{Params, Rng};
use systola_interp::array::run_array;
use systola_interp::run_system;
use systola_ir::array::{Array, Port, Realisation};
use systola_ir::diag::{Counterexample, Diagnostic, MappedPoint};
use systola_ir::mapping::{Directive, DirectiveKind, Mapping, NameExpr, NameExprKind, NameOp};
use systola_ir::system::{Expr, System, visit};
use systola_ir::{Cond, Kind};

use crate::support::{
    algorithms, eval, mapping, ordered, parse, points, seeded, sizes, system, to_interp,
};

fn by_name(params: &Params) -> BTreeMap<String, i128> {
    let value = |(name, value): (&String, &i64)| (name.clone(), i128::from(*value));
    params.0.iter().map(value).collect()
}

fn list(errors: &[Diagnostic]) -> String {
    let line = |e: &Diagnostic| format!("{e}\n  {}", e.notes.join("\n  "));
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Runs all cases and reports every failure, not the first.
fn all(failures: Vec<String>) {
    let n = failures.len();
    assert!(
        failures.is_empty(),
        "{n} failures:\n{}",
        failures.join("\n")
    );
}

#[test]
fn every_system_is_legal() {
    let mut failures = Vec::new();
    for file in gallery::files() {
        for system in &parse(&file).systems {
            let errors = systola_driver::check_system(system, &BTreeMap::new());
            if !errors.is_empty() {
                failures.push(format!("{}: {}: {}", file.path, system.name, list(&errors)));
            }
        }
    }
    all(failures);
}

/// Localising and serialising a system for a mapping gives a system that reads only existing
/// values.
#[test]
fn every_localised_system_is_legal() {
    let failures = on_all_cpus(&gallery::files(), |file| {
        let (module, no_sizes) = (parse(file), BTreeMap::new());
        let mut failures = Vec::new();
        for mapping in &module.mappings {
            let Ok(checked) = check_mapping(&module, mapping, &no_sizes) else {
                continue;
            };
            let mut errors = systola_driver::check_system(&checked.localised, &no_sizes);
            // The variables of a common space may be too much for a question about all of them.
            let aligned = checked.array.keeps_values();
            errors.retain(|e| !(aligned && e.kind() == Kind::Limitation));
            if !errors.is_empty() {
                failures.push(format!(
                    "{}: {}: {}",
                    file.path,
                    mapping.name,
                    list(&errors)
                ));
            }
        }
        failures
    });
    all(failures.into_iter().flatten().collect());
}

#[test]
fn every_design_is_legal_and_of_the_stated_size() {
    let mut failures = Vec::new();
    for (algorithm, file, module) in algorithms() {
        for design in &algorithm.designs {
            let mapping = mapping(&module, &design.mapping);
            for stated in &design.checked {
                let context = format!("{}: {} at {:?}", file.path, mapping.name, stated.params);
                match check_mapping(&module, mapping, &by_name(&stated.params)) {
                    Err(errors) => failures.push(format!("{context}: {}", list(&errors))),
                    Ok(checked) => {
                        let counts = checked.report.counts.expect("all sizes are given");
                        let got = (counts.points, counts.pes, counts.steps);
                        let want = (stated.points, stated.pes, stated.steps);
                        if got != (want.0 as i128, want.1 as i128, want.2 as i128) {
                            failures.push(format!("{context}: {got:?}, should be {want:?}"));
                        }
                    }
                }
            }
        }
    }
    all(failures);
}

/// A verdict for all sizes holds at every small size; where there is none, sizes are required.
#[test]
fn verdicts_for_all_sizes_hold_at_small_sizes() {
    let (mut failures, mut proved) = (Vec::new(), 0);
    for (algorithm, file, module) in algorithms() {
        let system = system(&module, &algorithm.system);
        for design in &algorithm.designs {
            let mapping = mapping(&module, &design.mapping);
            let context = format!("{}: {}", file.path, mapping.name);
            match check_mapping(&module, mapping, &BTreeMap::new()) {
                Err(errors) => {
                    let open = errors.iter().all(|e| e.kind() == Kind::Limitation);
                    // The only design that requires more than the context of its system.
                    let false_somewhere = context == "vision/motion_estimation.ure: linear_n";
                    if !open && !false_somewhere {
                        failures.push(format!("{context}: {}", list(&errors)));
                    }
                }
                Ok(checked) => {
                    proved += 1;
                    let trees = trees(&checked.array);
                    for params in small_sizes(system) {
                        if let Some(fault) = fault(mapping, system, &params, &trees) {
                            failures.push(format!("{context}: proved, but at {params:?} {fault}"));
                        }
                    }
                }
            }
        }
    }
    all(failures);
    assert_eq!(proved, 133, "designs proved for all sizes");
}

/// All sizes up to 3 that the context allows.
fn small_sizes(system: &System) -> Vec<Params> {
    let names = system.param_names();
    let lists = names.iter().fold(vec![Vec::new()], |lists, _| {
        let extend = |list: Vec<i64>| (0..=3).map(move |n| [list.as_slice(), &[n]].concat());
        lists.into_iter().flat_map(extend).collect()
    });
    let params = |list: Vec<i64>| Params(names.iter().cloned().zip(list).collect());
    let allowed = |params: &Params| {
        let values = ordered(system, params);
        let context = system.context_cond();
        context.eval(&values, &[]).expect("small numbers")
    };
    lists.into_iter().map(params).filter(allowed).collect()
}

/// The same array with time running backwards.
fn negated(mapping: &Mapping) -> Mapping {
    let mut mapping = mapping.clone();
    for Directive { kind, .. } in &mut mapping.directives {
        if let DirectiveKind::Time { forms, .. } = kind {
            for form in forms {
                let inner = Box::new(form.clone());
                *form = NameExpr::from(NameExprKind::Neg(inner));
            }
        }
    }
    mapping
}

/// The values that the equations at a point read elsewhere: variable and point.
fn reads(system: &System, params: &[i128], z: &[i128]) -> Vec<(String, Vec<i128>)> {
    fn collect(
        system: &System,
        expr: &Expr,
        params: &[i128],
        z: &[i128],
        found: &mut Vec<(String, Vec<i128>)>,
    ) {
        match expr {
            Expr::Var { var, index, .. } => {
                let point = index
                    .iter()
                    .map(|f| f.eval(params, z).expect("small numbers"));
                found.push((system.vars[var.index()].name.clone(), point.collect()));
            }
            Expr::Guard {
                cond,
                then,
                otherwise,
            } => {
                if cond.eval(params, z).expect("small numbers") {
                    collect(system, then, params, z, found);
                } else if let Some(otherwise) = otherwise {
                    collect(system, otherwise, params, z, found);
                }
            }
            other => {
                for child in visit::children(other) {
                    collect(system, child, params, z, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    for var in &system.vars {
        let holds = |cond: &Cond| cond.eval(params, z).expect("small numbers");
        if var.on.iter().all(holds) {
            collect(system, &var.body, params, z, &mut found);
        }
    }
    found.retain(|(_, point)| point != z);
    found
}

/// The place and the time of a point, evaluated from the text of the mapping.
fn slot(mapping: &Mapping, system: &System, params: &[i128], z: &[i128]) -> (Vec<i128>, Vec<i128>) {
    let params = system.param_names().into_iter().zip(params.iter().copied());
    let dims = system
        .dims
        .iter()
        .map(|d| d.name.clone())
        .zip(z.iter().copied());
    let names = params.chain(dims).collect();
    let (mut place, mut time) = (Vec::new(), Vec::new());
    for directive in &mapping.directives {
        match &directive.kind {
            DirectiveKind::Place { forms, .. } => {
                place.extend(forms.iter().map(|f| eval(f, &names)));
            }
            DirectiveKind::Time { forms, .. } => {
                time.extend(forms.iter().map(|f| eval(f, &names)));
            }
            _ => {}
        }
    }
    (place, time)
}

/// Whether the variable may be used in the step in which it is computed.
fn is_broadcast(mapping: &Mapping, var: &str) -> bool {
    let mut kinds = mapping.directives.iter().map(|d| &d.kind);
    kinds.any(|kind| matches!(kind, DirectiveKind::Broadcast { var: name } if name.text == var))
}

/// Why a mapping is illegal at given sizes, found by trying every point; only for mappings made of
/// `lane`, `time` and `broadcast`. The variables in `trees` may arrive in the step in which they
/// leave.
fn fault(
    mapping: &Mapping,
    system: &System,
    params: &Params,
    trees: &BTreeSet<String>,
) -> Option<String> {
    let values = ordered(system, params);
    let mut taken = BTreeMap::new();
    for z in points(system, params) {
        let (place, time) = slot(mapping, system, &values, &z);
        for (var, source) in reads(system, &values, &z) {
            let left = slot(mapping, system, &values, &source).1;
            let may_stand = is_broadcast(mapping, &var) || trees.contains(&var);
            if time < left || (time == left && !may_stand) {
                return Some(format!(
                    "{z:?} reads {var}{source:?}, made at {left:?}, at {time:?}"
                ));
            }
        }
        if let Some(other) = taken.insert((place, time), z.clone()) {
            return Some(format!("{z:?} and {other:?} share a slot"));
        }
    }
    None
}

/// The sums that an array makes by trees: integers may be added in any order.
fn trees(array: &Array) -> BTreeSet<String> {
    let is_tree = |port: &&Port| {
        let mut links = port.links.iter();
        port.sink == port.source && links.any(|l| l.realisation == Realisation::Tree)
    };
    let ports = array.ports.iter().filter(is_tree);
    ports
        .map(|p| array.cells[p.source.index()].name.clone())
        .collect()
}

/// Is a refusal correct? Its two points are put into the mapping.
fn confirm(example: &Counterexample, mapping: &Mapping, system: &System) -> Result<(), String> {
    let value = |name: &String| {
        let found = example.params.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| *v).ok_or(format!("no value for {name}"))
    };
    let values: Vec<i128> = system
        .param_names()
        .iter()
        .map(value)
        .collect::<Result<_, _>>()?;
    let allowed = |cond: &Cond, z: &[i128]| cond.eval(&values, z).expect("small numbers");
    if !allowed(&system.context_cond(), &[]) {
        return Err(format!("{values:?} are no sizes of the system"));
    }
    let [first, second] = &example.points[..] else {
        return Err(format!("{} points", example.points.len()));
    };
    for mapped in [first, second] {
        if !allowed(&system.domain_cond(), &mapped.point) {
            return Err(format!("{:?} is outside of the domain", mapped.point));
        }
        let slot = slot(mapping, system, &values, &mapped.point);
        if slot != (mapped.place.clone(), mapped.time.clone()) {
            return Err(format!("{mapped:?} has the slot {slot:?}"));
        }
    }
    let conflict =
        first.point != second.point && (&first.place, &first.time) == (&second.place, &second.time);
    let late = |source: &MappedPoint, sink: &MappedPoint| {
        reads(system, &values, &sink.point)
            .iter()
            .any(|(var, from)| {
                let standing = sink.time == source.time && !is_broadcast(mapping, var);
                *from == source.point && (sink.time < source.time || standing)
            })
    };
    if conflict || late(first, second) || late(second, first) {
        Ok(())
    } else {
        Err(format!("nothing is wrong with {example:?}"))
    }
}

/// A refusal needs a counterexample, and a true one.
fn confirm_all(errors: &[Diagnostic], mapping: &Mapping, system: &System) -> Result<(), String> {
    let mut confirmed = 0;
    for error in errors {
        match &error.counterexample {
            None => return Err(format!("no counterexample: {error}")),
            Some(example) => {
                confirm(example, mapping, system).map_err(|e| format!("{error}: {e}"))?;
                confirmed += 1;
            }
        }
    }
    if confirmed == 0 {
        return Err("refused without a reason".to_string());
    }
    Ok(())
}

#[test]
fn every_negated_schedule_is_refused_with_a_true_counterexample() {
    let mut failures = Vec::new();
    for (algorithm, file, module) in algorithms() {
        let system = system(&module, &algorithm.system);
        for design in &algorithm.designs {
            let mapping = negated(mapping(&module, &design.mapping));
            for stated in &design.checked {
                let context = format!("{}: {} at {:?}", file.path, mapping.name, stated.params);
                match check_mapping(&module, &mapping, &by_name(&stated.params)) {
                    Ok(_) => failures.push(format!("{context}: accepted")),
                    Err(errors) => {
                        if let Err(why) = confirm_all(&errors, &mapping, system) {
                            failures.push(format!("{context}: {why}"));
                        }
                    }
                }
            }
        }
    }
    all(failures);
}

/// Random schedules on the allocations of the designs. An accepted one has no fault at the given
/// sizes; a refused one has the reported fault, perhaps at other sizes.
#[test]
fn the_checker_agrees_with_trying_every_point() {
    let mut rng = Rng::new(7);
    let (mut failures, mut accepted, mut refused) = (Vec::new(), 0, 0);
    for (algorithm, file, module) in algorithms() {
        let system = system(&module, &algorithm.system);
        for design in &algorithm.designs {
            for _ in 0..4 {
                let mut mapping = mapping(&module, &design.mapping).clone();
                let terms: Vec<(String, i64)> = algorithm
                    .dims
                    .iter()
                    .map(|d| (d.clone(), rng.int(-1, 4)))
                    .collect();
                for Directive { kind, .. } in &mut mapping.directives {
                    if let DirectiveKind::Time { forms, .. } = kind {
                        *forms = vec![sum(&terms)];
                    }
                }
                let params = &design.checked[0].params;
                let context = format!(
                    "{}: {} at {params:?}, time = {terms:?}",
                    file.path, mapping.name
                );
                match check_mapping(&module, &mapping, &by_name(params)) {
                    Ok(checked) => {
                        accepted += 1;
                        let trees = trees(&checked.array);
                        if let Some(fault) = fault(&mapping, system, params, &trees) {
                            failures.push(format!("{context}: accepted, but {fault}"));
                        }
                    }
                    Err(errors) => {
                        refused += 1;
                        if let Err(why) = confirm_all(&errors, &mapping, system) {
                            failures.push(format!("{context}: {why}"));
                        }
                    }
                }
            }
        }
    }
    all(failures);
    assert!(
        accepted >= 20 && refused >= 200,
        "{accepted} accepted, {refused} refused"
    );
}

/// Σ coefficient · name.
fn sum(terms: &[(String, i64)]) -> NameExpr {
    let product = |(name, c): &(String, i64)| {
        NameExpr::binary(
            NameOp::Mul,
            NameExpr::int(i128::from(*c)),
            NameExpr::name(name),
        )
    };
    terms
        .iter()
        .map(product)
        .reduce(|a, b| NameExpr::binary(NameOp::Add, a, b))
        .expect("an index space")
}

/// Every mapping of every file, as an array cycle by cycle, against the equations of its system.
#[test]
fn arrays_compute_what_their_systems_compute() {
    let algorithms: BTreeMap<String, Algorithm> = gallery::algorithms()
        .into_iter()
        .map(|a| (a.file.clone(), a))
        .collect();
    let mut failures = Vec::new();
    for file in gallery::files() {
        let module = parse(&file);
        let algorithm = algorithms.get(&file.path);
        for mapping in &module.mappings {
            let system = system(&module, &mapping.system);
            let reference = reference::find(&file.path, &system.name).expect("a reference");
            for params in sizes(&reference, system, algorithm) {
                let context = format!("{}: {} at {params:?}", file.path, mapping.name);
                // A design may require more of the sizes than its system does (D11).
                let none = BTreeSet::new();
                let fault = algorithm.and_then(|_| fault(mapping, system, &params, &none));
                let checked = match (check_mapping(&module, mapping, &by_name(&params)), fault) {
                    (Ok(checked), None) => checked,
                    (Ok(_), Some(fault)) => {
                        failures.push(format!("{context}: accepted, but {fault}"));
                        continue;
                    }
                    (Err(errors), None) => {
                        failures.push(format!("{context}: {}", list(&errors)));
                        continue;
                    }
                    (Err(errors), Some(_)) => {
                        if let Err(why) = confirm_all(&errors, mapping, system) {
                            failures.push(format!("{context}: {why}"));
                        }
                        continue;
                    }
                };
                let values = ordered(system, &params);
                let inputs = to_interp(system, &seeded(&reference, &params));
                let want = run_system(system, &values, &inputs).expect("a legal system");
                match run_array(&checked.array, &values, &inputs) {
                    Err(error) => failures.push(format!("{context}: {}", list(&[error]))),
                    Ok(got) if got != want => {
                        failures.push(format!("{context}: {got:?}, should be {want:?}"))
                    }
                    Ok(_) => {}
                }
            }
        }
    }
    all(failures);
}

/// Table 2 and Table 4 of the paper at C = 16, Q = 5, and README.md: PEs, steps, registers.
#[test]
fn the_papers_convolutions_have_their_names_and_registers() {
    let stated = [
        ("sbm", "SBM", 20, 5, 100),
        ("bsm", "BSM", 5, 20, 25),
        ("fsm", "FSM", 5, 20, 35),
        ("bfs", "BFS", 16, 20, 80),
        ("ffs", "FFS", 16, 35, 112),
        ("fbs", "FBS", 16, 5, 80),
        ("fbs_stride2", "FBS", 16, 5, 96),
    ];
    let sizes = BTreeMap::from([("C".to_string(), 16), ("Q".to_string(), 5)]);
    let mut failures = Vec::new();
    for file in gallery::files() {
        let (is_paper, is_core) = (
            file.path == "conv1d/paper.ure",
            file.path == "conv1d/core.ure",
        );
        if !is_paper && !is_core {
            continue;
        }
        let module = parse(&file);
        for (name, letters, pes, steps, registers) in stated {
            if is_core && name == "fbs_stride2" {
                continue;
            }
            let context = format!("{}: {name}", file.path);
            match check_mapping(&module, mapping(&module, name), &sizes) {
                Err(errors) => failures.push(format!("{context}: {}", list(&errors))),
                Ok(Checked { report, .. }) => {
                    let counts = report.counts.expect("all sizes are given");
                    let per_pe = report.registers_per_pe.expect("constant delays");
                    let got = (
                        report.name.as_str(),
                        counts.pes,
                        counts.steps,
                        per_pe * counts.pes,
                    );
                    let want = (letters, pes, steps, registers);
                    // The core form keeps no register for a value that is read where it is used.
                    if got != want && !(is_core && (got.0, got.1, got.2) == (letters, pes, steps)) {
                        failures.push(format!("{context}: {got:?}, should be {want:?}"));
                    }
                }
            }
        }
        if is_core {
            let fsa = check_mapping(&module, mapping(&module, "fsa"), &sizes);
            match fsa {
                Err(errors) => failures.push(format!("fsa: {}", list(&errors))),
                Ok(fsa) if fsa.report.name != "FSA" => failures.push(fsa.report.name),
                Ok(_) => {}
            }
        }
    }
    all(failures);
}
