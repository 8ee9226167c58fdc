//! What the checks find out of a system beside mistakes, in words for editors.

use std::collections::BTreeMap;

use systola_ir::VarId;
use systola_ir::form::Cond;
use systola_ir::system::{Dim, System};
use systola_lower::dependences::{dependences, input_reads};

/// Of the variables of one system, by name.
pub type Facts = BTreeMap<String, VarFacts>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct VarFacts {
    pub ty: String,
    /// `c in 0..C, q in 0..Q where c <= q`; empty for a single point.
    pub domain: String,
    /// `Z at (0, 1) where q > 0`, one for each.
    pub dependences: Vec<String>,
    /// `x[c + q]`, one for each.
    pub inputs: Vec<String>,
    /// The outputs that it is written to.
    pub outputs: Vec<String>,
}

/// What is said of each variable.
pub fn facts(system: &System) -> Facts {
    let (params, dims) = (system.param_names(), system.dim_names());
    let mut facts = Facts::new();
    for (n, var) in system.vars.iter().enumerate() {
        let seen = system.around(VarId::from(n));
        let dims = seen.dim_names();
        // The domain around a variable with iterators of its own has its conditions already.
        let conditions: &[Cond] = match var.own {
            None => &system.domain,
            Some(_) => &[],
        };
        let domain = domain(&seen.dims, conditions, &params, &dims);
        let on: Vec<String> = (var.on.iter())
            .map(|cond| cond.display(&params, &dims).to_string())
            .collect();
        let own = VarFacts {
            ty: var.ty.to_string(),
            domain: restricted(&domain, &on),
            ..VarFacts::default()
        };
        facts.insert(var.name.clone(), own);
    }
    let name = |var: VarId| system.vars[var.index()].name.as_str();
    // A system that is not uniform is told so by its check.
    for dependence in dependences(system).unwrap_or_default() {
        let distance: Vec<String> = (dependence.distance.iter())
            .map(|e| e.display(&params).to_string())
            .collect();
        let source = name(dependence.source);
        let mut text = format!("{source} at ({})", distance.join(", "));
        if distance.is_empty() {
            text = source.to_string();
        }
        text.push_str(&condition(&dependence.when, &params, &dims));
        push(
            &mut facts,
            name(dependence.sink),
            |f| &mut f.dependences,
            text,
        );
    }
    for read in input_reads(system) {
        let dims = system.around(read.sink).dim_names();
        let index: Vec<String> = (read.index.iter())
            .map(|form| form.display(&params, &dims).to_string())
            .collect();
        let input = &system.inputs[read.input.index()].name;
        let text = format!("{input}[{}]", index.join(", "));
        push(&mut facts, name(read.sink), |f| &mut f.inputs, text);
    }
    for output in &system.outputs {
        for write in &output.writes {
            systola_ir::system::visit::walk(&write.value, &mut |e| {
                if let systola_ir::system::Expr::Var { var, .. } = e {
                    push(
                        &mut facts,
                        name(*var),
                        |f| &mut f.outputs,
                        output.name.clone(),
                    );
                }
            });
        }
    }
    facts
}

/// The points of some iterators, as `index` declares them.
fn domain(list: &[Dim], conditions: &[Cond], params: &[String], dims: &[String]) -> String {
    let iterators: Vec<String> = (list.iter())
        .map(|dim| match &dim.range {
            Some((lo, hi)) => format!(
                "{} in {}..{}",
                dim.name,
                lo.display(params, dims),
                hi.display(params, dims)
            ),
            None => dim.name.clone(),
        })
        .collect();
    let conditions: Vec<String> = (conditions.iter())
        .map(|cond| cond.display(params, dims).to_string())
        .collect();
    restricted(&iterators.join(", "), &conditions)
}

fn restricted(domain: &str, conditions: &[String]) -> String {
    if conditions.is_empty() {
        return domain.to_string();
    }
    let join = if domain.contains(" where ") {
        ", "
    } else {
        " where "
    };
    format!("{domain}{join}{}", conditions.join(", "))
}

fn condition(cond: &Cond, params: &[String], dims: &[String]) -> String {
    if *cond == Cond::TRUE {
        return String::new();
    }
    format!(" where {}", cond.display(params, dims))
}

fn push(
    facts: &mut Facts,
    var: &str,
    list: impl Fn(&mut VarFacts) -> &mut Vec<String>,
    text: String,
) {
    if let Some(own) = facts.get_mut(var) {
        let list = list(own);
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_described() {
        let module = systola_driver::load(
            "system s(N) where N >= 2 {
               input x[N]: f32;
               index i in 0..N, k in 0..N where k <= i;
               var A: f32 on i >= 1 = select(k == 0, x[i], A(i, k - 1) + x[N - 1 - i]);
               output z[N]: f32 = A at [i] when k == i else 0;
             }",
        );
        let facts = facts(&module.unwrap().systems[0]);
        let a = &facts["A"];
        assert_eq!(a.ty, "f32");
        assert_eq!(a.domain, "i in 0..N, k in 0..N where k <= i, i >= 1");
        assert_eq!(a.dependences.len(), 1);
        assert!(a.dependences[0].starts_with("A at (0, 1) where "), "{a:?}");
        assert_eq!(a.inputs.len(), 2);
        assert_eq!(a.inputs[0], "x[i]");
        assert_eq!(a.outputs, ["z"]);
    }
}
