//! The bytes that enter and leave a cache of a given size.
//!
//! The part of an array that a piece of a kernel touches is approximated by a box: along each axis
//! from the smallest to the largest index, found by bounding the forms over the ranges of the
//! loops. If the boxes of a piece fit into the cache, each of its bytes is loaded once, in whatever
//! order they are used. If they do not fit, the piece is divided: a loop whose iterations each fit
//! loads, at each iteration, what the previous iteration did not touch; a loop whose iterations do
//! not fit loads the bytes of each iteration anew. The blocks of a grid are loops around the
//! kernel, the last axis innermost. This is the analysis by loops and footprints of Ferrante,
//! Sarkar and Thrash (1991).
//!
//! Rows whose distance is a multiple of a large power of two conflict in few sets of a cache: such
//! a box takes as much space as if it also filled the sets that stay empty.

use systola_ir::form::Overflow;
use systola_ir::kernel::Memory;

use super::code::{Access, Code, Direction, DynamicBlockId, Lanes, Layout, Node};
use super::count::{bounds, trip_count};

/// Runs of contiguous memory that go on at the same time: eight rows were read at full speed, 16 not
/// (`bench/results/2026-11-19-cpu-sums.md`).
const STREAMS: f64 = 8.0;
/// Runs that straight-line code begins at the same time: the line fill buffers of L1 (Golden Cove,
/// Intel's optimization manual).
const FILL_BUFFERS: f64 = 16.0;

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    pub read: f64,
    pub written: f64,
    /// Bytes that are read of large arrays that no instruction prefetches, and
    pub waited_for: f64,
    /// beginnings of runs of contiguous bytes among them.
    pub runs: f64,
}

impl Traffic {
    pub fn bytes(self) -> f64 {
        self.read + self.written
    }

    #[must_use]
    pub fn plus(self, other: Traffic, times: f64) -> Traffic {
        Traffic {
            read: self.read + other.read * times,
            written: self.written + other.written * times,
            waited_for: self.waited_for + other.waited_for * times,
            runs: self.runs + other.runs * times,
        }
    }

    /// The bytes of this that exceed another, at most all of that other. Few runs go on where the
    /// other's end; of more, each begins anew, in code without loops several at the same time.
    fn beyond(self, other: Traffic, nodes: &[Node]) -> Traffic {
        let waited_for = (self.waited_for - other.waited_for).clamp(0.0, other.waited_for);
        Traffic {
            read: (self.read - other.read).clamp(0.0, other.read),
            waited_for,
            written: (self.written - other.written).clamp(0.0, other.written),
            runs: if other.runs <= STREAMS {
                (self.runs - other.runs).clamp(0.0, other.runs)
            } else if waited_for == 0.0 {
                0.0
            } else if has_loop(nodes) {
                other.runs
            } else {
                other.runs / FILL_BUFFERS
            },
        }
    }
}

/// A cache: its bytes and its associativity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    pub bytes: f64,
    /// 0: fully associative.
    pub ways: f64,
}

impl Cache {
    /// The additional bytes that set conflicts cost a box of `rows` rows, each of `lines` lines and
    /// `pitch` lines apart.
    fn crowding(self, rows: f64, lines: f64, pitch: f64, line: f64) -> f64 {
        let sets = self.bytes / (line * self.ways.max(1.0));
        if self.ways == 0.0 || rows <= 1.0 || sets < 1.0 || pitch.fract() != 0.0 {
            return 1.0;
        }
        let (mut a, mut b) = (pitch as u64, sets as u64);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let common = a as f64;
        // The rows start in sets at a regular distance, and each extends into the sets between.
        let used = (sets / common) * lines.min(common);
        (sets / used.max(1.0)).max(1.0)
    }
}

/// What a piece touches, and the space that this takes in a cache.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    traffic: Traffic,
    room: f64,
}

/// The statements with the most loads: how many, and the array and the elements of each.
#[derive(Default)]
struct Longest {
    loads: f64,
    read: Vec<(usize, i64, i64)>,
}

/// One launch of a kernel.
pub struct Footprint<'c, 'p> {
    code: &'c Code<'p>,
    /// Bytes of a line.
    line: f64,
    /// Runs are those of arrays of more bytes than this.
    pub large: f64,
    /// The range of each bound variable.
    ranges: Vec<(i64, i64)>,
    /// The first block and the number of blocks along each axis.
    grid: Vec<(usize, i64, i64)>,
    block_ids: Vec<&'c DynamicBlockId>,
    /// The box of one access; the allocation is reused.
    axes: Vec<(i64, i64)>,
}

impl<'c, 'p> Footprint<'c, 'p> {
    pub fn new(
        code: &'c Code<'p>,
        arguments: &[i64],
        line: f64,
    ) -> Result<Footprint<'c, 'p>, Overflow> {
        let mut point = vec![0; code.kernel.vars.len()];
        for (var, value) in code.host.iter().zip(arguments) {
            point[*var] = *value;
        }
        let mut grid = Vec::new();
        for range in &code.grid {
            let (lo, hi) = bounds(&range.lo, &range.hi, &point)?;
            grid.push((range.var, lo, hi.saturating_sub(lo).max(0)));
        }
        let mut ranges: Vec<(i64, i64)> = point.into_iter().map(|v| (v, v)).collect();
        if let Some(lane) = code.lane {
            ranges[lane] = (0, i64::from(code.kernel.lanes) - 1);
        }
        if let Some(warp) = code.warp {
            ranges[warp] = (0, i64::from(code.kernel.warps) - 1);
        }
        let mut block_ids = Vec::new();
        find_block_ids(&code.body, &mut block_ids);
        let mut footprint = Footprint {
            code,
            line,
            large: 0.0,
            ranges,
            grid,
            block_ids,
            axes: Vec::new(),
        };
        footprint.all_blocks_from(0);
        Ok(footprint)
    }

    /// The traffic of the whole launch into a cache.
    pub fn of_launch(&mut self, capacity: Cache) -> Traffic {
        if self.grid.iter().any(|(_, _, n)| *n == 0) {
            return Traffic::default();
        }
        self.all_blocks_from(0);
        self.axis(0, capacity)
    }

    /// The traffic of one block in the middle of the grid into a cache.
    pub fn of_block(&mut self, capacity: Cache) -> Traffic {
        self.one_block();
        self.fill(&self.code.body, capacity)
    }

    /// The mean number of consecutive bytes in memory that `blocks` concurrent blocks touch.
    pub fn stretch(&mut self, blocks: f64) -> f64 {
        let mut left = blocks;
        for (var, lo, n) in self.grid.iter().rev() {
            let along = (left.floor() as i64).clamp(1, (*n).max(1));
            let first = lo + (n - along) / 2;
            self.ranges[*var] = (first, first + along - 1);
            left /= along as f64;
        }
        self.number_blocks();
        let hulls = self.hulls(&self.code.body);
        let (mut bytes, mut stretches) = (0.0, 0.0);
        for (layout, sides) in self.code.buffers.iter().zip(&hulls) {
            for hull in sides.iter().filter(|hull| hull.parts > 0.0) {
                let own = hull.bytes(layout, self.line);
                bytes += own;
                stretches += own / hull.stretch(layout);
            }
        }
        if stretches > 0.0 {
            bytes / stretches
        } else {
            0.0
        }
    }

    /// The places in large arrays that an iteration of the longest innermost loop reads: those that lie
    /// more than half a page apart.
    pub fn streams(&mut self, page: f64) -> f64 {
        self.one_block();
        let code = self.code;
        let mut longest = Longest::default();
        self.innermost(&code.body, 1.0, &mut longest);
        let mut read: Vec<(usize, f64, f64)> = Vec::new();
        for (array, from, to) in longest.read {
            let layout = &code.buffers[array];
            if layout.total_bytes() > self.large {
                let bytes = layout.bytes as f64;
                read.push((array, from as f64 * bytes, to as f64 * bytes));
            }
        }
        read.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut streams = 0.0;
        let mut end: Option<(usize, f64)> = None;
        for (array, from, to) in read {
            match end.filter(|(of, to)| *of == array && from <= to + page / 2.0) {
                Some((_, before)) => end = Some((array, before.max(to))),
                None => {
                    streams += 1.0;
                    end = Some((array, to));
                }
            }
        }
        streams
    }

    /// Looks for the innermost loop with the most loads, in statements that are executed this many
    /// times.
    fn innermost(&mut self, nodes: &'c [Node], times: f64, longest: &mut Longest) {
        let mut here = Vec::new();
        for node in nodes {
            match node {
                Node::Straight(_) | Node::Once(_) | Node::DynamicBlockId(_) => {}
                Node::Access(n) => {
                    let access = &self.code.accesses[*n];
                    if let (Memory::Global(id), Direction::Load) = (access.memory, access.direction)
                        && let Some((from, to)) = access.position.range(&self.ranges)
                    {
                        here.push((id.index(), from, to));
                    }
                }
                Node::If {
                    test,
                    then,
                    otherwise,
                } => {
                    let holds = test.outcomes(&self.ranges).holds;
                    let nodes = if holds { then } else { otherwise };
                    self.innermost(nodes, times, longest);
                }
                Node::For {
                    var, step, body, ..
                } => {
                    let Some((lo, hi)) = self.loop_range(node) else {
                        continue;
                    };
                    let n = trip_count(lo, hi.saturating_add(1), *step);
                    let middle = lo + n / 2 * step;
                    let before = std::mem::replace(&mut self.ranges[*var], (middle, middle));
                    self.innermost(body, times * n as f64, longest);
                    self.ranges[*var] = before;
                }
            }
        }
        let loads = here.len() as f64 * times;
        if loads > longest.loads {
            *longest = Longest { loads, read: here };
        }
    }

    fn one_block(&mut self) {
        for (var, lo, n) in &self.grid {
            let middle = lo + n / 2;
            self.ranges[*var] = (middle, middle);
        }
        self.number_blocks();
    }

    /// Binds all axes starting at `axis` to all of their blocks.
    fn all_blocks_from(&mut self, axis: usize) {
        for (var, lo, n) in &self.grid[axis..] {
            self.ranges[*var] = (*lo, lo.saturating_add((n - 1).max(0)));
        }
        self.number_blocks();
    }

    /// Binds each dynamic block id to the range of the block numbers.
    fn number_blocks(&mut self) {
        for block_id in &self.block_ids {
            let (mut first, mut last) = (0i64, 0i64);
            for (var, lo, n) in &self.grid {
                if !block_id.counter.contains(var) {
                    let (from, to) = self.ranges[*var];
                    first = first.saturating_mul(*n).saturating_add(from - lo);
                    last = last.saturating_mul(*n).saturating_add(to - lo);
                }
            }
            self.ranges[block_id.var] = (first, last);
        }
    }

    /// With the axes before this one bound to one block each.
    fn axis(&mut self, axis: usize, capacity: Cache) -> Traffic {
        self.all_blocks_from(axis);
        let Some((var, lo, n)) = self.grid.get(axis).copied() else {
            return self.fill(&self.code.body, capacity);
        };
        let all = self.touched(&self.code.body, capacity);
        if all.room <= capacity.bytes {
            return all.traffic;
        }
        let middle = lo + n / 2;
        self.ranges[var] = (middle, middle);
        self.number_blocks();
        let one = self.touched(&self.code.body, capacity);
        if one.room > capacity.bytes {
            let inner = self.axis(axis + 1, capacity);
            return Traffic::default().plus(inner, n as f64);
        }
        self.ranges[var] = (middle, middle + 1);
        self.number_blocks();
        let two = self.touched(&self.code.body, capacity);
        let more = two.traffic.beyond(one.traffic, &self.code.body);
        one.traffic.plus(more, (n - 1) as f64)
    }

    fn fill(&mut self, nodes: &'c [Node], capacity: Cache) -> Traffic {
        let all = self.touched(nodes, capacity);
        if all.room <= capacity.bytes {
            return all.traffic;
        }
        let mut sum = Traffic::default();
        // The statements between two loops are one piece.
        let mut run = 0;
        for (at, node) in nodes.iter().enumerate() {
            let part = match node {
                Node::Straight(_) | Node::Once(_) | Node::DynamicBlockId(_) | Node::Access(_) => {
                    continue;
                }
                Node::For { .. } => self.iterations(node, capacity),
                Node::If {
                    test,
                    then,
                    otherwise,
                } => {
                    let outcomes = test.outcomes(&self.ranges);
                    match (outcomes.holds, outcomes.fails) {
                        (true, _) => self.fill(then, capacity),
                        (false, _) => self.fill(otherwise, capacity),
                    }
                }
            };
            let between = self.touched(&nodes[run..at], capacity).traffic;
            sum = sum.plus(between, 1.0).plus(part, 1.0);
            run = at + 1;
        }
        sum.plus(self.touched(&nodes[run..], capacity).traffic, 1.0)
    }

    /// The traffic of a loop that does not fit as a whole.
    fn iterations(&mut self, node: &'c Node, capacity: Cache) -> Traffic {
        let Node::For {
            var, step, body, ..
        } = node
        else {
            return Traffic::default();
        };
        let Some((lo, hi)) = self.loop_range(node) else {
            return Traffic::default();
        };
        let before = self.ranges[*var];
        let n = trip_count(lo, hi.saturating_add(1), *step);
        let middle = lo + n / 2 * step;
        self.ranges[*var] = (middle, middle);
        let one = self.touched(body, capacity);
        let sum = if one.room > capacity.bytes {
            Traffic::default().plus(self.fill(body, capacity), n as f64)
        } else {
            self.ranges[*var] = (middle, middle.saturating_add(*step));
            let more = self
                .touched(body, capacity)
                .traffic
                .beyond(one.traffic, body);
            one.traffic.plus(more, (n - 1) as f64)
        };
        self.ranges[*var] = before;
        sum
    }

    /// The first and the last value of a loop's variable, if it may have an iteration.
    fn loop_range(&self, node: &Node) -> Option<(i64, i64)> {
        let Node::For { lo, hi, .. } = node else {
            return None;
        };
        let least = lo.iter().map(|f| f.range(&self.ranges).map(|r| r.0));
        let most = hi.iter().map(|f| f.range(&self.ranges).map(|r| r.1));
        let least = least.collect::<Option<Vec<i64>>>()?.into_iter().max()?;
        let most = most.collect::<Option<Vec<i64>>>()?.into_iter().min()? - 1;
        (least <= most).then_some((least, most))
    }

    /// The boxes that the nodes touch.
    fn touched(&mut self, nodes: &'c [Node], cache: Cache) -> Touched {
        let hulls = self.hulls(nodes);
        let layouts = self.code.buffers.iter().chain(&self.code.shared);
        let mut sum = Touched::default();
        for (n, (layout, [read, written])) in layouts.zip(&hulls).enumerate() {
            let whole = (layout.total_bytes() / self.line).ceil() * self.line;
            let bytes = |hull: &Hull| hull.bytes(layout, self.line).min(whole);
            sum.traffic.read += bytes(read);
            sum.traffic.written += bytes(written);
            let is_large = n < self.code.buffers.len() && layout.total_bytes() > self.large;
            if read.parts > 0.0 && is_large && !layout.is_prefetched {
                sum.traffic.waited_for += bytes(read);
                sum.traffic.runs += (bytes(read) / read.stretch(layout)).max(1.0);
            }
            for hull in [read, written] {
                sum.room += bytes(hull) * self.crowding(hull, layout, cache);
            }
        }
        sum
    }

    fn hulls(&mut self, nodes: &'c [Node]) -> Vec<[Hull; 2]> {
        let arrays = self.code.buffers.len() + self.code.shared.len();
        let mut hulls = vec![[const { Hull::new() }; 2]; arrays];
        self.collect(nodes, &mut hulls);
        hulls
    }

    fn crowding(&self, hull: &Hull, layout: &Layout, cache: Cache) -> f64 {
        let (Some(last), Some(width)) = (hull.axes.last(), layout.extent.last()) else {
            return 1.0;
        };
        let rows = hull.axes[..hull.axes.len() - 1].iter();
        let rows: f64 = rows.map(|(from, to)| (to - from + 1) as f64).product();
        let in_lines = |elements: f64| elements * layout.bytes as f64 / self.line;
        let lines = in_lines((last.1 - last.0 + 1) as f64).ceil();
        cache.crowding(rows, lines, in_lines(*width as f64), self.line)
    }

    fn collect(&mut self, nodes: &'c [Node], hulls: &mut [[Hull; 2]]) {
        for node in nodes {
            affine::cancel::check();
            match node {
                Node::Straight(_) | Node::Once(_) | Node::DynamicBlockId(_) => {}
                Node::Access(n) => {
                    let code = self.code;
                    self.access(&code.accesses[*n], hulls);
                }
                Node::If {
                    test,
                    then,
                    otherwise,
                } => {
                    let outcomes = test.outcomes(&self.ranges);
                    if outcomes.holds {
                        self.collect(then, hulls);
                    } else {
                        self.collect(otherwise, hulls);
                    }
                }
                Node::For { var, body, .. } => {
                    let Some(range) = self.loop_range(node) else {
                        continue;
                    };
                    let before = std::mem::replace(&mut self.ranges[*var], range);
                    self.collect(body, hulls);
                    self.ranges[*var] = before;
                }
            }
        }
    }

    fn access(&mut self, access: &Access, hulls: &mut [[Hull; 2]]) {
        // A CPU has no shared memory: arrays of a block go through its caches.
        let array = match (access.memory, self.code.lanes) {
            (Memory::Global(id), _) => id.index(),
            (Memory::Shared(id), Lanes::Vectors { .. }) => self.code.buffers.len() + id.index(),
            (Memory::Shared(_), Lanes::Threads) => return,
        };
        if access.is_constant || !access.when.outcomes(&self.ranges).holds {
            return;
        }
        let layout = self.code.layout(access.memory);
        let last = access.index.len().saturating_sub(1);
        self.axes.clear();
        let bounds = layout.lo.iter().zip(&layout.extent);
        for (n, (form, (lo, extent))) in access.index.iter().zip(bounds).enumerate() {
            let Some((from, to)) = form.range(&self.ranges) else {
                return;
            };
            let wide = if n == last {
                access.width as i64 - 1
            } else {
                0
            };
            let end = lo.saturating_add(extent - 1);
            let (from, to) = (from.max(*lo), to.saturating_add(wide).min(end));
            if from > to {
                return;
            }
            self.axes.push((from, to));
        }
        let side = match access.direction {
            Direction::Load => 0,
            Direction::Store => 1,
        };
        hulls[array][side].add(&self.axes, layout.bytes, self.line);
    }
}

fn has_loop(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::For { .. } => true,
        Node::If {
            then, otherwise, ..
        } => has_loop(then) || has_loop(otherwise),
        Node::Straight(_) | Node::Once(_) | Node::DynamicBlockId(_) | Node::Access(_) => false,
    })
}

fn find_block_ids<'c>(nodes: &'c [Node], block_ids: &mut Vec<&'c DynamicBlockId>) {
    for node in nodes {
        match node {
            Node::DynamicBlockId(block_id) => block_ids.push(block_id),
            Node::For { body, .. } => find_block_ids(body, block_ids),
            Node::If {
                then, otherwise, ..
            } => {
                find_block_ids(then, block_ids);
                find_block_ids(otherwise, block_ids);
            }
            Node::Straight(_) | Node::Once(_) | Node::Access(_) => {}
        }
    }
}

/// The part of an array that accesses touch: at most the box around all of them, and at most the
/// sum of their own boxes.
#[derive(Clone, Debug)]
struct Hull {
    axes: Vec<(i64, i64)>,
    parts: f64,
}

impl Hull {
    const fn new() -> Hull {
        Hull {
            axes: Vec::new(),
            parts: 0.0,
        }
    }

    fn add(&mut self, axes: &[(i64, i64)], bytes: u64, line: f64) {
        if self.parts == 0.0 {
            self.axes = axes.to_vec();
        } else {
            for (hull, axis) in self.axes.iter_mut().zip(axes) {
                *hull = (hull.0.min(axis.0), hull.1.max(axis.1));
            }
        }
        self.parts += size(axes, bytes, line);
    }

    fn bytes(&self, layout: &Layout, line: f64) -> f64 {
        if self.parts == 0.0 {
            return 0.0;
        }
        // Short rows share lines: the count is at most that from the first byte to the last.
        let (mut span, mut pitch) = (1.0, 1.0);
        for ((from, to), extent) in self.axes.iter().zip(&layout.extent).rev() {
            span += (to - from) as f64 * pitch;
            pitch *= *extent as f64;
        }
        let span = (span * layout.bytes as f64 / line).ceil() * line;
        size(&self.axes, layout.bytes, line)
            .min(self.parts)
            .min(span)
    }

    /// Bytes of the box that are contiguous in memory.
    fn stretch(&self, layout: &Layout) -> f64 {
        let mut bytes = layout.bytes as f64;
        for ((from, to), extent) in self.axes.iter().zip(&layout.extent).rev() {
            bytes *= (to - from + 1) as f64;
            if to - from + 1 < *extent {
                break;
            }
        }
        bytes
    }
}

fn size(axes: &[(i64, i64)], bytes: u64, line: f64) -> f64 {
    let extent = |axis: &(i64, i64)| (axis.1 - axis.0 + 1) as f64;
    let Some((last, rows)) = axes.split_last() else {
        return bytes as f64;
    };
    let row = extent(last) * bytes as f64;
    let rows: f64 = rows.iter().map(extent).product();
    rows * (row / line).ceil() * line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_a_power_of_two_apart_conflict() {
        let cache = Cache {
            bytes: 49152.0,
            ways: 12.0,
        };
        // 64 sets: rows of 4096 bytes all begin in the same one.
        assert_eq!(cache.crowding(100.0, 1.0, 64.0, 64.0), 64.0);
        assert_eq!(cache.crowding(100.0, 4.0, 64.0, 64.0), 16.0);
        // With a pitch of one line more they spread over all sets.
        assert_eq!(cache.crowding(100.0, 1.0, 65.0, 64.0), 1.0);
        assert_eq!(cache.crowding(1.0, 1.0, 64.0, 64.0), 1.0, "one row");
        let anywhere = Cache { ways: 0.0, ..cache };
        assert_eq!(anywhere.crowding(100.0, 1.0, 64.0, 64.0), 1.0);
    }
}
