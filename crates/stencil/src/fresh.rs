//! Fresh names for parts of a stencil.

use std::collections::HashSet;

use systola_ir::system::{Expr, System, visit};

/// Names that are taken.
#[derive(Clone, Debug, Default)]
pub struct Fresh(HashSet<String>);

impl Fresh {
    /// The names of a system, without those of its variables.
    pub(crate) fn of(system: &System) -> Fresh {
        let params = system.params.iter().map(|p| &p.name);
        let consts = system.consts.iter().map(|c| &c.name);
        let inputs = system.inputs.iter().map(|i| &i.name);
        let functions = system.functions.iter();
        let functions = functions.flat_map(|f| {
            let params = f.params.iter().map(|(name, _)| name);
            [&f.name].into_iter().chain(params)
        });
        let dims = system.dims.iter().chain(&system.bound).map(|d| &d.name);
        let batch = system.batch.iter().map(|b| &b.name);
        let mut locals = Vec::new();
        let vars = system.vars.iter().map(|v| &v.body);
        for body in vars.chain(system.functions.iter().map(|f| &f.body)) {
            visit::walk(body, &mut |e| {
                if let Expr::Let { name, .. } = e {
                    locals.push(name);
                }
            });
        }
        let all = params.chain(consts).chain(inputs).chain(functions);
        let all = all.chain(dims).chain(batch).chain(locals);
        Fresh(all.cloned().collect())
    }

    /// Marks a name as taken.
    pub fn take(&mut self, name: impl Into<String>) {
        self.0.insert(name.into());
    }

    /// The name, with underscores appended as long as it is taken.
    pub fn name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    /// Names for the axes of a grid: the last three are z, y, x.
    pub fn axes(&mut self, n_axes: usize) -> Vec<String> {
        self.several(["x", "y", "z", "w", "v", "u"], n_axes)
    }

    /// Names for the iterators of a sum over a box: the last two are p, q.
    pub fn window(&mut self, n_axes: usize) -> Vec<String> {
        self.several(["q", "p", "o", "n", "m", "l"], n_axes)
    }

    fn several(&mut self, words: [&str; 6], n: usize) -> Vec<String> {
        let word = |n: usize| match words.get(n) {
            Some(word) => (*word).to_string(),
            None => format!("{}{n}", words[0]),
        };
        (0..n).rev().map(|n| self.name(&word(n))).collect()
    }
}
