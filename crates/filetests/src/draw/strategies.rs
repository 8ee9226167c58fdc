//! Strategies for places and times; most of them aim at legal mappings.

use super::Source;
use super::known;
use super::lin::Lin;
use super::mapping::{Plan, Task};
use super::matrix::{determinant, dot, inverse, rank};

impl Task<'_> {
    pub(super) fn form(&self, row: &[i64]) -> String {
        let lin = Lin {
            dims: row.to_vec(),
            params: Vec::new(),
            c: 0,
        };
        lin.text(&self.dims, &[])
    }

    /// The distances at two sizes.
    pub(super) fn numbers(&self) -> Vec<Vec<i64>> {
        let mut list = Vec::new();
        for extra in [1, 4] {
            let params: Vec<i64> = self.sketch.params.iter().map(|p| p.1 + extra).collect();
            for e in &self.distances {
                list.push(e.iter().map(|lin| lin.at(&params)).collect());
            }
        }
        list
    }

    /// A linear schedule that is positive on all dependences, if a few tries find one.
    pub(super) fn schedule(&self, source: &mut Source) -> Option<Vec<i64>> {
        let numbers = self.numbers();
        for attempt in 0..60 {
            let wide = if attempt < 30 { 2 } else { 4 };
            let h: Vec<i64> = self
                .dims
                .iter()
                .map(|_| source.int(-wide + 1, wide + 1))
                .collect();
            if numbers.iter().all(|e| dot(&h, e) >= 1) && h.iter().any(|c| *c != 0) {
                return Some(h);
            }
        }
        None
    }

    pub(super) fn row(&self, source: &mut Source) -> Vec<i64> {
        let mut row = vec![0; self.dims.len()];
        for _ in 0..source.pick(&[1, 1, 1, 2]) {
            let d = source.below(row.len());
            row[d] = source.pick(&[1, 1, 1, -1, 2]);
        }
        row
    }

    /// Rows independent of what is there, up to full rank.
    pub(super) fn complete(
        &self,
        rows: &[Vec<i64>],
        upto: usize,
        source: &mut Source,
    ) -> Vec<Vec<i64>> {
        let mut all = rows.to_vec();
        for _ in 0..60 {
            if all.len() >= upto {
                break;
            }
            let row = self.row(source);
            all.push(row);
            if rank(&all) < all.len() {
                all.pop();
            }
        }
        all.split_off(rows.len())
    }

    /// PE = P z, time = s·z, and the rest of the coordinates behind s.
    pub(super) fn linear(&self, plan: &mut Plan, source: &mut Source) {
        let Some(h) = self.schedule(source) else {
            return self.lexicographic(plan, source);
        };
        let n = self.dims.len();
        let places = self.complete(std::slice::from_ref(&h), n, source);
        let n_places = match source.below(10) {
            0..=6 => places.len(),
            _ => source.below(places.len() + 1),
        };
        if n_places + 1 < n {
            plan.traits.insert("several projections");
        }
        plan.time.push(("time", self.form(&h)));
        for (k, row) in places.iter().enumerate() {
            if k < n_places {
                plan.place.push(("lane", self.form(row)));
            } else if source.chance(90) {
                plan.time.push(("time", self.form(row)));
            }
        }
        let mut rows = places[..n_places].to_vec();
        rows.push(h);
        if rows.len() == n {
            match determinant(&rows).abs() {
                0 => {}
                1 => self.reverse(plan, &rows, source),
                _ => {
                    plan.traits.insert("not unimodular");
                }
            }
        }
    }

    /// The inverse of a unimodular mapping, sometimes corrupted.
    pub(super) fn reverse(&self, plan: &mut Plan, rows: &[Vec<i64>], source: &mut Source) {
        if !source.chance(20) {
            return;
        }
        let n = rows.len();
        let mut inverse = inverse(rows);
        plan.traits.insert("reverse given");
        if source.chance(30) {
            plan.traits.insert("wrong reverse given");
            let (d, k) = (source.below(n), source.below(n));
            inverse[d][k] += 1;
        }
        let mut names: Vec<String> = (0..n - 1)
            .map(|k| {
                if k == 0 {
                    "lane".into()
                } else {
                    format!("lane{k}")
                }
            })
            .collect();
        names.push("time".into());
        let bindings: Vec<String> = inverse
            .iter()
            .zip(&self.dims)
            .map(|(row, dim)| {
                let lin = Lin {
                    dims: row.clone(),
                    params: Vec::new(),
                    c: 0,
                };
                format!("{dim} = {}", lin.text(&names, &[]))
            })
            .collect();
        plan.tail.push(format!("reverse ({})", bindings.join(", ")));
    }

    /// Sums and differences of two iterators as two coordinates, `time = (i + j, j - i)`: not every
    /// slot has a point.
    pub(super) fn skewed(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.order.len();
        if n < 2 || known::PRECEDENCE {
            return self.linear(plan, source);
        }
        plan.traits.insert("skewed pair");
        let at = source.below(n - 1);
        for (k, (d, sign)) in self.order.iter().enumerate() {
            let name = &self.dims[*d];
            let form = signed(*sign, name);
            if k == at {
                let (d, sign) = self.order[k + 1];
                let other = signed(sign, &self.dims[d]);
                let factor = source.pick(&["", "", "2*"]);
                plan.time
                    .push(("time", format!("{factor}({form}) + ({other})")));
                let difference = format!("{} - ({form})", self.dims[d]);
                if source.chance(40) {
                    plan.place.push(("lane", difference));
                } else {
                    plan.time.push(("time", format!("({other}) - ({form})")));
                }
            } else if k != at + 1 {
                plan.time.push(("time", form));
            }
        }
    }

    /// The hidden order as time, some of it as place.
    pub(super) fn lexicographic(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.order.len();
        let placed = match source.below(4) {
            0 => 0,
            _ => source.below(n),
        };
        if placed == 0 {
            plan.traits.insert("no place");
        }
        let mut chosen: Vec<usize> = (0..n).collect();
        source.shuffle(&mut chosen);
        chosen.truncate(placed);
        let mut skew = Vec::new();
        for (at, (d, sign)) in self.order.iter().enumerate() {
            let form = signed(*sign, &self.dims[*d]);
            if chosen.contains(&at) {
                plan.place.push(("lane", self.dims[*d].clone()));
                skew.push(form);
            } else {
                plan.time.push(("time", form));
            }
        }
        if plan.time.is_empty() {
            plan.time.push(("time", "0".into()));
        }
        if source.chance(70) {
            let at = source.below(plan.time.len());
            for form in skew {
                plan.time[at].1 = format!("{} + ({form})", plan.time[at].1);
            }
        }
        if placed + 1 < n {
            plan.traits.insert("several projections");
        }
    }

    /// The hidden order with an iterator cut in two; outer parts become launches, blocks or steps.
    pub(super) fn tiled(&self, plan: &mut Plan, source: &mut Source) {
        plan.traits.insert("tile");
        let mut steps: Vec<String> = Vec::new();
        let cut = source.below(self.order.len());
        for (at, (d, sign)) in self.order.iter().enumerate() {
            let name = &self.dims[*d];
            if at == cut {
                let mut size = source.int(2, 5).to_string();
                if source.chance(6)
                    && let Some((param, _)) = self.sketch.params.first()
                {
                    plan.traits.insert("tile of a parameter");
                    size.clone_from(param);
                }
                plan.head
                    .push(format!("tile {name} by {size} as (b{name}, {name}{name})"));
                steps.push(signed(*sign, &format!("b{name}")));
                let inner = format!("{name}{name}");
                if source.chance(25) {
                    plan.traits.insert("tile of a tile");
                    plan.head
                        .push(format!("tile {inner} by 2 as (c{name}, d{name})"));
                    steps.push(signed(*sign, &format!("c{name}")));
                    steps.push(signed(*sign, &format!("d{name}")));
                } else {
                    steps.push(signed(*sign, &inner));
                }
            } else {
                steps.push(signed(*sign, name));
            }
        }
        if source.chance(30) {
            let (a, b) = (source.below(steps.len()), source.below(steps.len()));
            steps.swap(a, b);
        }
        let n_launches = if source.chance(40) {
            source.pick(&[1, 1, 2])
        } else {
            0
        };
        for (at, form) in steps.iter().enumerate() {
            let last = at + 1 == steps.len() && plan.time.is_empty();
            if at < n_launches && !last {
                plan.traits.insert("launch");
                plan.time.push(("launch", form.clone()));
            } else if source.chance(25) && !last {
                let level = source.pick(&["block", "warp", "lane", "lane", "node"]);
                plan.place
                    .push((level, form.trim_start_matches('-').to_string()));
                if source.chance(50)
                    && let Some(step) = plan.time.iter_mut().rev().find(|t| t.0 == "time")
                {
                    step.1 = format!("{} + ({form})", step.1);
                }
            } else if source.chance(10) && plan.time.iter().all(|t| t.0 != "time") {
                plan.traits.insert("block step");
                plan.time.push(("block_step", form.clone()));
            } else {
                plan.time.push(("time", form.clone()));
            }
        }
        if plan.time.is_empty() {
            plan.time.push(("time", "0".into()));
        }
        if source.chance(20) {
            plan.tail.push("flags".into());
            plan.traits.insert("flags");
        }
    }

    /// A sum in stages: over time, then registers, lanes and blocks. Other iterators run in time,
    /// in the hidden order, or are blocks.
    pub(super) fn staged(&self, plan: &mut Plan, source: &mut Source) {
        let Some((var, dims)) = self.sketch.sums.first() else {
            return self.tiled(plan, source);
        };
        plan.traits.insert("sum in stages");
        // One order holds for all sums over these iterators.
        plan.tail.retain(|line| !line.starts_with("sum "));
        let cut = source.pick(dims);
        let name = &self.dims[cut];
        let size = source.pick(&[2, 3, 4, 5]);
        plan.head
            .push(format!("tile {name} by {size} as (b{name}, {name}{name})"));
        let (outer, inner) = (format!("b{name}"), format!("{name}{name}"));
        let mut digits = vec![inner.clone()];
        if source.chance(40) {
            plan.head
                .push(format!("tile {inner} by 2 as (c{name}, d{name})"));
            digits = vec![format!("d{name}"), format!("c{name}")];
        }
        // Either index of the tile may be the serial one.
        let mut serial = outer;
        if digits.len() == 1 && source.chance(25) {
            std::mem::swap(&mut serial, &mut digits[0]);
        }
        let others: Vec<usize> = dims.iter().copied().filter(|d| *d != cut).collect();
        let mut first: Vec<String> = others.iter().rev().map(|d| self.dims[*d].clone()).collect();
        first.push(serial.clone());
        let along = match first.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(", ")),
        };
        let trees = match digits.as_slice() {
            [one] => format!("tree {one}"),
            many => format!("tree ({})", many.join(", ")),
        };
        plan.tail
            .push(format!("sum {var} along {along} then {trees}"));
        for digit in &digits {
            let level = source.pick(&["lane", "lane", "reg", "block"]);
            plan.place.push((level, digit.clone()));
        }
        for (d, sign) in &self.order {
            if *d == cut {
                continue;
            }
            let sign = if dims.contains(d) { 1 } else { *sign };
            plan.time.push(("time", signed(sign, &self.dims[*d])));
        }
        plan.time.push(("time", serial));
    }

    /// Running sums that take no time: a recurrence goes through registers, lanes and blocks. Other
    /// iterators run in time, in the hidden order, or are blocks.
    pub(super) fn running(&self, plan: &mut Plan, source: &mut Source) {
        let numbers = self.numbers();
        let along = |d: usize| {
            let only = |e: &&Vec<i64>| e[d] != 0 && e.iter().filter(|x| **x != 0).count() == 1;
            numbers.iter().any(|e| only(&e))
        };
        let n = self.sketch.dims.len();
        let candidates: Vec<usize> = (0..n).filter(|d| along(*d)).collect();
        if candidates.is_empty() {
            return self.tiled(plan, source);
        }
        let cut = source.pick(&candidates);
        let name = self.dims[cut].clone();
        let beside: Vec<usize> = (0..self.dims.len()).filter(|d| *d != cut).collect();
        if !beside.is_empty() && source.chance(30) {
            return self.running_beside(cut, source.pick(&beside), plan, source);
        }
        let lanes = source.pick(&["L", "L", "2", "3", "4"]);
        let (registers, vectors) = (source.pick(&[1, 2, 3, 4]), source.pick(&[1, 1, 2, 3]));
        let vector = match registers {
            1 => lanes.to_string(),
            r => format!("{r}*{lanes}"),
        };
        let piece = match vectors {
            1 => vector.clone(),
            v => format!("{v}*{vector}"),
        };
        let mut whole = name.clone();
        if source.chance(15) {
            let size = format!("{}*{piece}", source.int(1, 3));
            plan.head
                .push(format!("tile {name} by {size} as (g{name}, u{name})"));
            plan.time.push(("launch", format!("g{name}")));
            plan.traits.insert("launch");
            whole = format!("u{name}");
        }
        plan.head.push(format!(
            "tile {whole} by {piece} as (b{name}, {name}{name})"
        ));
        plan.place.push(("block", format!("b{name}")));
        let mut term = format!("{name}{name}");
        if vectors > 1 {
            plan.head
                .push(format!("tile {term} by {vector} as (v{name}, w{name})"));
            plan.place.push(("reg", format!("v{name}")));
            term = format!("w{name}");
        }
        if registers > 1 {
            plan.head
                .push(format!("tile {term} by {registers} as (l{name}, r{name})"));
            plan.place.push(("reg", format!("r{name}")));
            term = format!("l{name}");
        }
        plan.place.push(("lane", term));
        for (d, sign) in self.order.iter().filter(|(d, _)| *d != cut) {
            let form = signed(*sign, &self.dims[*d]);
            match source.below(4) {
                0 => plan.place.push(("block", self.dims[*d].clone())),
                _ => plan.time.push(("time", form)),
            }
        }
        self.across_blocks(plan, source);
    }

    /// Running sums through registers and blocks, or through blocks alone. Lanes are along another
    /// iterator, and each has sums of its own.
    fn running_beside(&self, cut: usize, other: usize, plan: &mut Plan, source: &mut Source) {
        let (name, lane) = (&self.dims[cut], &self.dims[other]);
        match source.int(1, 4) {
            1 => plan.place.push(("block", name.clone())),
            rows => {
                plan.head
                    .push(format!("tile {name} by {rows} as (b{name}, r{name})"));
                plan.place.push(("block", format!("b{name}")));
                plan.place.push(("reg", format!("r{name}")));
            }
        }
        let lanes = source.pick(&["L", "L", "3", "4"]);
        plan.head
            .push(format!("tile {lane} by {lanes} as (v{lane}, l{lane})"));
        plan.place.push(("lane", format!("l{lane}")));
        match source.below(3) {
            0 => plan.time.push(("time", format!("v{lane}"))),
            1 => plan.place.push(("reg", format!("v{lane}"))),
            _ => plan.place.push(("block", format!("v{lane}"))),
        }
        for (d, sign) in self.order.iter().filter(|(d, _)| ![cut, other].contains(d)) {
            plan.time.push(("time", signed(*sign, &self.dims[*d])));
        }
        plan.traits.insert("lanes beside a running sum");
        self.across_blocks(plan, source);
    }

    /// How the running sums of a plan cross blocks.
    fn across_blocks(&self, plan: &mut Plan, source: &mut Source) {
        if !plan.time.iter().any(|(level, _)| *level == "time") {
            plan.time.push(("time", "0".into()));
        }
        plan.traits.insert("pieces of a running sum");
        match source.below(4) {
            0 => {}
            1 => plan.tail.push("flags".into()),
            _ => {
                plan.tail.push("look_back".into());
                plan.traits.insert("look_back");
            }
        }
    }

    /// Sweeps in overlapped tiles: the first of the hidden order runs, another iterator is tiled.
    pub(super) fn overlapped(&self, plan: &mut Plan, source: &mut Source) {
        let candidates: Vec<usize> = (0..self.sketch.dims.len())
            .filter(|d| *d != self.order[0].0)
            .collect();
        if candidates.is_empty() || !self.sketch.is_box {
            return self.tiled(plan, source);
        }
        let (t, sign) = self.order[0];
        let x = source.pick(&candidates);
        let sweeps = source.int(1, 4);
        let reach = |sign: i64| {
            let most = self.numbers().iter().map(|e| sign * e[x]).max();
            most.unwrap_or(0).clamp(0, 3) * sweeps
        };
        let spoil = |halo: i64, source: &mut Source| (halo + source.pick(&[0, 0, 0, 1, -1])).max(0);
        let (lo, hi) = (spoil(reach(1), source), spoil(reach(-1), source));
        let (x_name, t_name) = (&self.dims[x], &self.dims[t]);
        let size = source.int(2, 6);
        plan.head.push(format!(
            "tile {x_name} by {size} as (bx, xx) overlap ({lo}, {hi})"
        ));
        if source.chance(6) {
            plan.traits.insert("tiles in launches");
            plan.time
                .push(("launch", source.pick(&["bx", "-bx"]).into()));
        }
        plan.traits.insert(if lo + hi > 0 {
            "overlap"
        } else {
            "overlap of 0"
        });
        let run = if sign < 0 {
            format!("-{t_name}")
        } else {
            t_name.clone()
        };
        match source.below(6) {
            0 => plan.time.push(("time", run)),
            1 => {
                plan.time.push(("launch", run));
                plan.traits.insert("launch");
            }
            _ => {
                plan.head
                    .push(format!("tile {t_name} by {sweeps} as (tl, u)"));
                plan.time.push(("launch", signed(sign, "tl")));
                plan.time.push(("time", signed(sign, "u")));
                plan.traits.insert("launch");
                plan.traits.insert("tile");
            }
        }
        plan.place.push((
            source.pick(&["block", "block", "block", "warp", "lane"]),
            "bx".into(),
        ));
        match source.below(4) {
            0 => plan.time.push(("time", "xx".into())),
            _ => plan.place.push(("lane", format!("xx + {lo}"))),
        }
        let mut second = source.chance(25);
        for (d, sign) in self.order.iter().skip(1) {
            if *d == x {
                continue;
            }
            if second && *d < self.sketch.dims.len() {
                second = false;
                plan.traits.insert("two overlapped tiles");
                let reach = |sign: i64| {
                    let most = self.numbers().iter().map(|e| sign * e[*d]).max();
                    most.unwrap_or(0).clamp(0, 2) * sweeps
                };
                let (lo, hi) = (spoil(reach(1), source), spoil(reach(-1), source));
                let size = source.int(2, 5);
                plan.head.push(format!(
                    "tile {} by {size} as (by, yy) overlap ({lo}, {hi})",
                    self.dims[*d]
                ));
                plan.place.push(("block", "by".into()));
                if source.chance(50) {
                    plan.place.push(("lane", format!("yy + {lo}")));
                } else {
                    plan.time.push(("time", signed(*sign, "yy")));
                }
                continue;
            }
            let form = signed(*sign, &self.dims[*d]);
            if source.chance(20) {
                plan.place.push(("lane", self.dims[*d].clone()));
            } else {
                plan.time.push(("time", form));
            }
        }
        if plan.time.iter().all(|(level, _)| *level == "launch") && source.chance(70) {
            plan.time.push(("time", "0".into()));
        }
    }

    /// A linear time with parameters in it.
    pub(super) fn digits(&self, plan: &mut Plan, source: &mut Source) {
        if self.sketch.params.is_empty() {
            return self.linear(plan, source);
        }
        plan.traits.insert("schedule with a parameter");
        let param = self.sketch.params[source.below(self.sketch.params.len())]
            .0
            .clone();
        let n = self.order.len();
        let mut forms: Vec<String> = Vec::new();
        let split = source.below(n);
        for (at, (d, sign)) in self.order.iter().enumerate() {
            let name = &self.dims[*d];
            let sign = if *sign < 0 { "-" } else { "" };
            let factor = match (at < split, source.below(4)) {
                (false, 0..=2) => String::new(),
                (false, _) => "2*".into(),
                (true, 0) => format!("({param} + 1)*"),
                (true, _) => format!("{param}*"),
            };
            forms.push(format!("{sign}{factor}{name}"));
        }
        plan.time
            .push(("time", forms.join(" + ").replace("+ -", "- ")));
        for row in self.complete(&[], source.below(n), source) {
            plan.place.push(("lane", self.form(&row)));
        }
    }

    /// The same as `linear`, in the notation of the paper.
    pub(super) fn table1(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.dims.len();
        let Some(h) = self
            .schedule(source)
            .filter(|_| n == self.sketch.dims.len())
        else {
            return self.linear(plan, source);
        };
        let mut rows = self.complete(std::slice::from_ref(&h), n, source);
        rows.push(h);
        let mut columns: Vec<usize> = (0..n).collect();
        source.shuffle(&mut columns);
        let src: Vec<&str> = columns.iter().map(|d| self.dims[*d].as_str()).collect();
        let dst: Vec<String> = (0..rows.len() - 1)
            .map(|k| format!("s{k}"))
            .chain(["t".to_string()])
            .collect();
        let matrix: Vec<String> = rows
            .iter()
            .map(|row| {
                let row: Vec<String> = columns.iter().map(|d| row[*d].to_string()).collect();
                format!("({})", row.join(", "))
            })
            .collect();
        plan.traits.insert("table 1");
        let tuple = |list: &[String]| format!("({})", list.join(", "));
        let src: Vec<String> = src.iter().map(|s| (*s).to_string()).collect();
        plan.tail.push(format!(
            "{}.space_time_transform({}, {}, {})",
            self.sketch.vars[0].name,
            tuple(&src),
            tuple(&dst),
            tuple(&matrix)
        ));
    }

    /// Forms without any plan.
    pub(super) fn anything(&self, plan: &mut Plan, source: &mut Source) {
        let n = self.dims.len();
        for _ in 0..source.below(n + 1) {
            let level = source.pick(&["lane", "lane", "lane", "warp", "block", "node", "reg"]);
            let mut form = self.form(&self.row(source));
            if source.chance(20) {
                form = format!("({form}) {} {}", source.pick(&["/", "%"]), source.int(2, 4));
            }
            plan.place.push((level, form));
        }
        for k in 0..source.pick(&[1, 1, 2, 3]) {
            let row: Vec<i64> = (0..n).map(|_| source.int(-1, 3)).collect();
            let level = match (k, source.below(8)) {
                (0, 0) => "launch",
                (0, 1) => "block_step",
                _ => "time",
            };
            match level {
                "launch" => {
                    plan.traits.insert("launch");
                }
                "block_step" => {
                    plan.traits.insert("block step");
                }
                _ => {}
            }
            plan.time.push((level, self.form(&row)));
        }
    }
}

fn signed(sign: i64, name: &str) -> String {
    if sign < 0 {
        format!("-{name}")
    } else {
        name.to_string()
    }
}
