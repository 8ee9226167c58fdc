//! Corrupts one property of an array at a time. The array must then fail to run or give another
//! result; otherwise the interpreter of arrays ignores this property.
//!
//! The set contains no unobservable corruptions, such as a link that no point uses at these sizes,
//! an additional register, or the delay of a value that goes through memory.

use std::collections::BTreeMap;

use systola_driver::{check_mapping, load, system_of};
use systola_filetests::gallery;
use systola_interp::{Arrays, Tensor, run_array, run_system, trace};
use systola_ir::array::{Array, Link, Port, Reverse};
use systola_ir::form::{Cond, Form, Poly};
use systola_ir::mapping::TimeLevel;
use systola_ir::system::InputKind;
use systola_ir::{DimId, VarId};

type Sizes = &'static [(&'static str, i128)];

/// File, mapping, sizes: large enough that links of every kind are used.
const ARRAYS: &[(&str, &str, Sizes)] = &[
    ("conv1d/core.ure", "sbm", &[("C", 6), ("Q", 3)]),
    ("conv1d/core.ure", "fsm", &[("C", 6), ("Q", 3)]),
    ("conv1d/core.ure", "fsa", &[("C", 6), ("Q", 3)]),
    ("conv1d/paper.ure", "fbs_stride2", &[("C", 5), ("Q", 4)]),
    ("conv1d/table1.ure", "sbm", &[("C", 70), ("Q", 3)]),
    (
        "conv2d/core.ure",
        "sbm",
        &[("R", 2), ("C", 4), ("H", 3), ("Q", 2)],
    ),
    (
        "linear-algebra/matmul.ure",
        "hexagonal",
        &[("N", 3), ("M", 4), ("K", 3)],
    ),
    (
        "linear-algebra/matmul.ure",
        "linear_i",
        &[("N", 3), ("M", 4), ("K", 3)],
    ),
    (
        "linear-algebra/matmul.ure",
        "register_tile",
        &[("N", 5), ("M", 5), ("K", 3)],
    ),
    ("linear-algebra/lu.ure", "rows_stream", &[("N", 4)]),
    (
        "linear-algebra/iterated_matvec.ure",
        "linear_a",
        &[("T", 4), ("N", 3)],
    ),
    (
        "string/edit_distance.ure",
        "pe_per_a",
        &[("N", 4), ("M", 5)],
    ),
    (
        "database/nearest_neighbour.ure",
        "pe_per_pair",
        &[("N", 3), ("M", 4), ("K", 3)],
    ),
    ("sort/odd_even.ure", "pe_per_key", &[("N", 6)]),
    (
        "stencil/jacobi1d_overlap.ure",
        "overlapped",
        &[("T", 6), ("N", 50)],
    ),
    (
        "stencil/heat2d.ure",
        "wavefront",
        &[("T", 6), ("N", 5), ("M", 30)],
    ),
];

#[test]
fn every_corruption_is_seen() {
    let files: BTreeMap<String, String> = gallery::files()
        .into_iter()
        .map(|f| (f.path, f.text))
        .collect();
    let mut seen: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut missed = Vec::new();
    for (file, name, sizes) in ARRAYS {
        let module = load(&files[*file]).unwrap_or_else(|e| panic!("{file}: {e:?}"));
        let mapping = module.mappings.iter().find(|m| m.name == *name);
        let mapping = mapping.unwrap_or_else(|| panic!("{file}: no mapping {name}"));
        let system = system_of(&module, mapping).expect("its system");
        let given: BTreeMap<String, i128> =
            sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
        let checked = check_mapping(&module, mapping, &given)
            .unwrap_or_else(|e| panic!("{file}, {name}: {e:?}"));
        let params: Vec<i128> = system.params.iter().map(|p| given[&p.name]).collect();
        let mut inputs = Arrays::new();
        for (n, input) in system.inputs.iter().enumerate() {
            if !matches!(&input.kind, InputKind::Table { data: Some(_) }) {
                let seed = 5 + n as u64;
                let tensor = Tensor::random(input.ty, &input.axes, &params, seed);
                inputs.insert(input.name.clone(), tensor.expect("a small input"));
            }
        }
        let expected = run_system(system, &params, &inputs).expect("a gallery system runs");
        let sound = run_array(&checked.array, &params, &inputs)
            .unwrap_or_else(|e| panic!("{file}, {name}: {e}"));
        assert!(
            agree(&expected, &sound),
            "{file}, {name}: the sound array differs"
        );
        let corruptions = Corruptions::of(&checked.array, &params);
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (kind, what, array) in corruptions {
            *seen.entry(kind).or_default() += 1;
            *kinds.entry(kind).or_default() += 1;
            let unseen = run_array(&array, &params, &inputs).is_ok_and(|o| agree(&expected, &o));
            if unseen {
                missed.push(format!("{file}, {name}: {kind}: {what}"));
            }
        }
        let list: Vec<String> = kinds.iter().map(|(k, n)| format!("{n} {k}")).collect();
        println!("{file}, {name}: {}", list.join(", "));
    }
    println!("{seen:?}");
    assert!(missed.is_empty(), "nobody saw\n{}", missed.join("\n"));
    for kind in [
        "delay",
        "displacement",
        "link guard",
        "second link",
        "register",
        "place",
        "time",
        "reverse",
    ] {
        let n = seen.get(kind).copied().unwrap_or(0);
        assert!(n >= 10, "only {n} corruptions of the kind `{kind}`");
    }
}

fn agree(expected: &Arrays, outputs: &Arrays) -> bool {
    expected
        .iter()
        .all(|(name, want)| want.first_difference(&outputs[name], 1e-3).is_none())
}

struct Corruptions<'a> {
    array: &'a Array,
    params: &'a [i128],
    /// The owned points.
    points: Vec<Vec<i128>>,
    radix: Vec<i128>,
    list: Vec<(&'static str, String, Array)>,
}

impl<'a> Corruptions<'a> {
    fn of(array: &'a Array, params: &'a [i128]) -> Vec<(&'static str, String, Array)> {
        let slots = trace(array, params).expect("a sound array");
        let mut radix = vec![0; array.time.len()];
        let mut worth = 1;
        for k in (0..array.time.len()).rev() {
            if array.time[k].level != TimeLevel::Launch {
                radix[k] = worth;
                let times = || slots.iter().map(|s| i128::from(s.time[k]));
                worth *= times().max().unwrap_or(0) - times().min().unwrap_or(0) + 1;
            }
        }
        let owned = array.owned();
        let points: Vec<Vec<i128>> = slots
            .iter()
            .map(|s| s.point.iter().map(|x| i128::from(*x)).collect())
            .filter(|z: &Vec<i128>| owned.eval(params, z) == Ok(true))
            .collect();
        let mut corruptions = Corruptions {
            array,
            params,
            points,
            radix,
            list: Vec::new(),
        };
        corruptions.links();
        corruptions.registers();
        corruptions.space_time();
        corruptions.list
    }

    fn add(&mut self, kind: &'static str, what: String, change: impl FnOnce(&mut Array)) {
        let mut array = self.array.clone();
        change(&mut array);
        self.list.push((kind, what, array));
    }

    fn is_used(&self, port: &Port, link: &Link) -> bool {
        let sink = &self.array.cells[port.sink.index()].domain;
        let holds = |cond: &Cond, z: &[i128]| cond.eval(self.params, z) == Ok(true);
        self.points
            .iter()
            .any(|z| holds(sink, z) && holds(&port.when, z) && holds(&link.guard, z))
    }

    /// The links that some owned point uses.
    fn used(&self) -> Vec<(usize, usize)> {
        let ports = self.array.ports.iter().enumerate();
        ports
            .flat_map(|(p, port)| {
                let links = port.links.iter().enumerate();
                links
                    .filter(|(_, link)| self.is_used(port, link))
                    .map(move |(l, _)| (p, l))
            })
            .collect()
    }

    fn ticks(&self, link: &Link) -> i128 {
        let delay = link.delay.iter().zip(&self.radix);
        delay
            .map(|(d, r)| d.eval(self.params).expect("small numbers") * r)
            .sum()
    }

    fn links(&mut self) {
        for (p, l) in self.used() {
            let link = &self.array.ports[p].links[l];
            let queued = link.realisation.is_within_launch();
            // Without its link, a port that is read has no value; with two links it has two.
            self.add("link guard", format!("port {p}, link {l}"), |array| {
                array.ports[p].links[l].guard = Cond::Const(false);
            });
            self.add("second link", format!("port {p}, link {l}"), |array| {
                let again = array.ports[p].links[l].clone();
                array.ports[p].links.push(again);
            });
            if !queued {
                continue;
            }
            // A point has one slot, so its value is in one queue at one tick. Any other place or
            // delay finds nothing, or the value of another point.
            for k in 0..self.array.place.len() {
                for by in [-1, 1] {
                    self.add(
                        "displacement",
                        format!("port {p}, link {l}, coordinate {k} by {by}"),
                        |array| {
                            let d = &mut array.ports[p].links[l].displacement[k];
                            *d = d.add(&Poly::constant(by));
                        },
                    );
                }
            }
            for k in 0..self.array.time.len() {
                if self.radix[k] == 0 {
                    continue;
                }
                for by in [-1, 1] {
                    self.add(
                        "delay",
                        format!("port {p}, link {l}, coordinate {k} by {by}"),
                        |array| {
                            let d = &mut array.ports[p].links[l].delay[k];
                            *d = d.add(&Poly::constant(by));
                        },
                    );
                }
            }
        }
    }

    /// Removes one register from the number that the longest used delay needs.
    fn registers(&mut self) {
        let used = self.used();
        for n in 0..self.array.cells.len() {
            let longest = used
                .iter()
                .filter(|(p, l)| {
                    let port = &self.array.ports[*p];
                    port.source == VarId::from(n) && port.links[*l].realisation.is_within_launch()
                })
                .map(|(p, l)| self.ticks(&self.array.ports[*p].links[*l]))
                .max();
            if let Some(longest) = longest.filter(|t| *t > 0) {
                self.add(
                    "register",
                    format!("cell {n}, {longest} registers"),
                    |array| {
                        array.cells[n].registers.depth = Some(Poly::constant(longest));
                    },
                );
            }
        }
    }

    fn space_time(&mut self) {
        let n_place = self.array.place.len();
        let moving: Vec<DimId> = (0..self.array.dims.len())
            .filter(|d| self.points.iter().any(|z| z[*d] != 0))
            .map(DimId::from)
            .collect();
        for n in 0..self.array.pieces.len() {
            let piece = &self.array.pieces[n];
            let Reverse::Forms(reverse) = &piece.reverse else {
                continue;
            };
            let inside = |z: &&Vec<i128>| piece.cond.eval(self.params, z) == Ok(true);
            if !self.points.iter().any(|z| inside(&z)) {
                continue;
            }
            // The reverse transform, which is off by one now, is checked at the slot of each point.
            for d in 0..reverse.len() {
                self.add("reverse", format!("piece {n}, iterator {d}"), |array| {
                    if let Reverse::Forms(forms) = &mut array.pieces[n].reverse {
                        let (form, divisor) = &mut forms[d];
                        *form = form.plus(*divisor);
                    }
                });
            }
            // The reverse transform uses this coordinate. If it also depends on another iterator,
            // it leads to another point wherever that iterator is not 0.
            for k in 0..n_place + self.array.time.len() {
                let read = reverse
                    .iter()
                    .any(|(form, _)| form.dims().contains(&DimId::from(k)));
                let Some(d) = moving.first().copied().filter(|_| read) else {
                    continue;
                };
                let more = |form: &mut Form| *form = form.add(&Form::from(d));
                if k < n_place {
                    self.add("place", format!("piece {n}, coordinate {k}"), |array| {
                        more(&mut array.pieces[n].place[k]);
                    });
                } else {
                    self.add(
                        "time",
                        format!("piece {n}, coordinate {}", k - n_place),
                        |array| {
                            more(&mut array.pieces[n].time[k - n_place]);
                        },
                    );
                }
            }
        }
    }
}
