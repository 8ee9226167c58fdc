//! Mappings: the choices around a strategy.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::lin::Lin;
use super::matrix::vectors;
use super::system::Sketch;
use super::{DrawnMapping, Source};

/// A mapping while it is drawn.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) head: Vec<String>,
    pub(super) place: Vec<(&'static str, String)>,
    pub(super) time: Vec<(&'static str, String)>,
    pub(super) whens: Vec<String>,
    pub(super) tail: Vec<String>,
    pub(super) traits: BTreeSet<&'static str>,
}

/// The subject of a mapping, with numbers for the parameters.
pub(super) struct Task<'a> {
    pub(super) sketch: &'a Sketch,
    /// All iterators, those of sums last.
    pub(super) dims: Vec<String>,
    pub(super) distances: Vec<Vec<Lin>>,
    pub(super) order: Vec<(usize, i64)>,
}

pub(super) fn draw_mapping(sketch: &Sketch, n: usize, source: &mut Source) -> DrawnMapping {
    let mut dims: Vec<String> = sketch.dims.iter().chain(&sketch.bound).cloned().collect();
    if sketch.batch.is_some() {
        dims.push("n".into());
    }
    let mut plan = Plan::default();
    let mut task = Task {
        sketch,
        distances: sketch.distances.clone(),
        order: sketch.order.clone(),
        dims,
    };
    task.choose_sums(&mut plan, source);
    if sketch.batch.is_none() {
        task.choose_forwarding(&mut plan, source);
    }
    for e in &mut task.distances {
        e.resize(task.dims.len(), Lin::constant(0, 0, sketch.params.len()));
    }
    match source.below(100) {
        0..=22 => task.linear(&mut plan, source),
        23..=29 => task.skewed(&mut plan, source),
        30..=44 => task.lexicographic(&mut plan, source),
        45..=59 => task.tiled(&mut plan, source),
        60..=77 => task.overlapped(&mut plan, source),
        78..=83 => task.digits(&mut plan, source),
        84..=86 => task.table1(&mut plan, source),
        87..=91 => task.staged(&mut plan, source),
        92..=95 => task.running(&mut plan, source),
        _ => task.anything(&mut plan, source),
    }
    task.vary(&mut plan, source);
    plan.finish(n, source)
}

pub(super) fn unit(d: usize, c: i64, n_dims: usize, n_params: usize) -> Vec<Lin> {
    let mut e = vec![Lin::constant(0, 0, n_params); n_dims];
    e[d].c = c;
    e
}

impl Task<'_> {
    /// `sum Z along …`, and the dependences that come of it.
    pub(super) fn choose_sums(&mut self, plan: &mut Plan, source: &mut Source) {
        let (n, n_params) = (self.dims.len(), self.sketch.params.len());
        for (var, dims) in &self.sketch.sums {
            let mut order = dims.clone();
            order.reverse();
            let mut signs = vec![1; order.len()];
            match source.below(6) {
                0 => {}
                1 => {
                    plan.tail.push(format!("sum {var} tree"));
                    plan.traits.insert("sum tree");
                }
                _ => {
                    source.shuffle(&mut order);
                    for sign in &mut signs {
                        *sign = source.pick(&[1, 1, -1]);
                    }
                    let list: Vec<String> = order
                        .iter()
                        .zip(&signs)
                        .map(|(d, s)| {
                            let sign = if *s < 0 { "-" } else { "" };
                            format!("{sign}{}", self.dims[*d])
                        })
                        .collect();
                    let list = if list.len() == 1 {
                        list[0].clone()
                    } else {
                        format!("({})", list.join(", "))
                    };
                    plan.tail.push(format!("sum {var} along {list}"));
                    plan.traits.insert("sum along");
                    if signs.contains(&-1) {
                        plan.traits.insert("descending sum");
                    }
                }
            }
            // Outermost of the sum first, behind the index space.
            for (d, sign) in order.iter().zip(&signs).rev() {
                self.order.push((*d, *sign));
                self.distances.push(unit(*d, *sign, n, n_params));
            }
        }
        for d in self.sketch.dims.len()..n {
            if !self.order.iter().any(|(k, _)| *k == d) {
                self.order.push((d, 1));
            }
        }
    }

    /// `forward x along e` with a direction in which the element stays the same.
    pub(super) fn choose_forwarding(&mut self, plan: &mut Plan, source: &mut Source) {
        let (n, n_params) = (self.dims.len(), self.sketch.params.len());
        for array in &self.sketch.arrays {
            let Some(reads) = array.reads.as_ref().filter(|r| !r.is_empty()) else {
                continue;
            };
            if !source.chance(35) {
                continue;
            }
            let candidates: Vec<Vec<i64>> = vectors(n)
                .into_iter()
                .filter(|e| {
                    e.iter().any(|c| *c != 0)
                        && reads.iter().flatten().all(|form| {
                            form.dims.iter().zip(e).map(|(a, e)| a * e).sum::<i64>() == 0
                        })
                })
                .collect();
            if candidates.is_empty() {
                continue;
            }
            let e = source.pick(&candidates);
            let list: Vec<String> = e.iter().map(i64::to_string).collect();
            let list = if n == 1 {
                list[0].clone()
            } else {
                list.join(", ")
            };
            plan.tail
                .push(format!("forward {} along ({list})", array.name));
            plan.traits.insert("forward");
            self.distances
                .push(e.iter().map(|c| Lin::constant(*c, 0, n_params)).collect());
        }
    }

    /// Variations on any plan.
    pub(super) fn vary(&self, plan: &mut Plan, source: &mut Source) {
        if plan.traits.contains("table 1") {
            return;
        }
        let lanes: Vec<usize> = (0..plan.place.len())
            .filter(|k| plan.place[*k].0 == "lane")
            .collect();
        let reversed = plan.traits.contains("reverse given");
        if !lanes.is_empty() && !reversed && source.chance(22) {
            let at = source.pick(&lanes);
            let (v, form) = (source.pick(&[2, 3, 4, 5, 8]), plan.place[at].1.clone());
            plan.traits.insert("V > 1");
            plan.place[at].1 = format!("({form})/{v}");
            plan.place.push(("reg", format!("({form}) % {v}")));
        } else if !lanes.is_empty() && !reversed && source.chance(15) {
            let at = source.pick(&lanes);
            let form = plan.place[at].1.clone();
            let size = source.pick(&["4", "L", "2", "8", "3", "2*L"]);
            plan.traits.insert("blocks of lanes");
            plan.place[at].1 = format!("({form}) % ({size})");
            plan.place.push((
                source.pick(&["block", "reg", "warp"]),
                format!("({form}) / ({size})"),
            ));
        } else if lanes.len() > 1 && !reversed && source.chance(25) {
            let at = source.pick(&lanes);
            plan.place[at].0 = source.pick(&["warp", "block", "reg", "node"]);
            if source.chance(40) {
                plan.tail.push("flags".into());
                plan.traits.insert("flags");
            }
        }
        if source.chance(8) && !reversed && !plan.place.is_empty() {
            let at = source.below(plan.place.len());
            let param = self.sketch.params.first().map_or("7", |p| p.0.as_str());
            plan.traits.insert("place with an offset");
            plan.place[at].1 = match source.below(3) {
                0 => format!("{} - 3", plan.place[at].1),
                1 => format!("{param} - 1 - ({})", plan.place[at].1),
                _ => format!("{} + {param}", plan.place[at].1),
            };
        }
        if source.chance(12) && !reversed {
            self.pieces(plan, source);
            if source.chance(25) {
                plan.traits.insert("several pieces");
                self.pieces(plan, source);
            }
        }
        if source.chance(18) {
            let var = source.pick(&self.sketch.vars).name;
            plan.tail.push(format!("broadcast {var}"));
            plan.traits.insert("broadcast");
        }
        if source.chance(10) {
            plan.tail.push(source.pick(&["check", "auto"]).into());
        }
        // Inserts a possible error.
        if source.chance(16) && !reversed {
            // Pieces have the same coordinates.
            let kind = if plan.whens.is_empty() {
                source.below(4)
            } else {
                2
            };
            match kind {
                0 if plan.place.len() > 1 => {
                    let at = source.below(plan.place.len());
                    plan.place.remove(at);
                }
                1 if plan.time.len() > 1 => {
                    let at = source.below(plan.time.len());
                    plan.time.remove(at);
                }
                _ => {
                    let at = source.below(plan.time.len());
                    plan.time[at].1 = format!("-({})", plan.time[at].1);
                }
            }
        }
    }

    /// A half-space with places and times that differ by constants.
    pub(super) fn pieces(&self, plan: &mut Plan, source: &mut Source) {
        let d = source.below(self.sketch.dims.len());
        let name = &self.dims[d];
        let cond = match source.below(3) {
            0 => format!("{name} < {}", source.int(0, 4)),
            1 => format!("{name} >= {}", source.int(0, 4)),
            _ => format!("{name} % 2 == {}", source.int(0, 2)),
        };
        let moved = |list: &[(&'static str, String)], by: i64| {
            let list: Vec<(&'static str, String)> = list
                .iter()
                .enumerate()
                .map(|(k, (level, form))| {
                    let by = if k == 0 { by } else { 0 };
                    (*level, format!("{form} + {by}"))
                })
                .collect();
            levels(&list)
        };
        let (p, t) = (source.pick(&[0, 0, 10, 1, 20]), source.pick(&[0, 0, 1, 7]));
        let mut lines = moved(&plan.place, p);
        lines.extend(moved(&plan.time, t));
        plan.whens
            .push(format!("when {cond} {{ {} }}", lines.join(" ")));
        plan.traits.insert("pieces");
    }
}

impl Plan {
    pub(super) fn finish(mut self, n: usize, source: &mut Source) -> DrawnMapping {
        let mut text = format!("mapping m{n} of drawn {{\n");
        for line in &self.head {
            let _ = writeln!(text, "  {line};");
        }
        for line in levels(&self.place).iter().chain(&levels(&self.time)) {
            let _ = writeln!(text, "  {line}");
        }
        for line in &self.whens {
            let _ = writeln!(text, "  {line}");
        }
        source.shuffle(&mut self.tail);
        for line in &self.tail {
            let _ = writeln!(text, "  {line};");
        }
        text.push_str("}\n");
        if self.place.len() > 1 {
            self.traits.insert("several place coordinates");
        }
        if self.time.len() > 1 {
            self.traits.insert("several time coordinates");
        }
        DrawnMapping {
            text,
            traits: self.traits,
        }
    }
}

/// `lane = (a, b);`, one line for each level.
pub(super) fn levels(list: &[(&'static str, String)]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for (level, _) in list {
        if !names.contains(level) {
            names.push(level);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let forms: Vec<&str> = list
                .iter()
                .filter(|(level, _)| *level == name)
                .map(|(_, form)| form.as_str())
                .collect();
            match forms.as_slice() {
                [one] => format!("{name} = {one};"),
                many => format!("{name} = ({});", many.join(", ")),
            }
        })
        .collect()
}
