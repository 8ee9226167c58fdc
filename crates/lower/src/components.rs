//! The strongly connected components of a graph, in time linear in its size (Tarjan, 1972).

/// A component number for each vertex. Two vertices have the same number if each reaches the other.
pub fn strong_components(
    n_vertices: usize,
    edges: impl IntoIterator<Item = (usize, usize)>,
) -> Vec<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); n_vertices];
    for (from, to) in edges {
        next[from].push(to);
    }
    let mut search = Search {
        next: &next,
        found: vec![None; n_vertices],
        least: vec![0; n_vertices],
        component: vec![None; n_vertices],
        open: Vec::new(),
        n_found: 0,
        n_components: 0,
    };
    for vertex in 0..n_vertices {
        if search.found[vertex].is_none() {
            search.from(vertex);
        }
    }
    let component = search.component.into_iter();
    component.map(Option::unwrap_or_default).collect()
}

struct Search<'a> {
    next: &'a [Vec<usize>],
    /// When a vertex was first seen.
    found: Vec<Option<usize>>,
    /// The earliest open vertex that is known to be reachable.
    least: Vec<usize>,
    component: Vec<Option<usize>>,
    /// Vertices without a component yet, in the order in which they were found.
    open: Vec<usize>,
    n_found: usize,
    n_components: usize,
}

impl Search<'_> {
    /// Depth-first search with an explicit stack: a chain of equations may be too long for
    /// recursion.
    fn from(&mut self, start: usize) {
        let mut path = vec![(start, 0)];
        self.enter(start);
        while let Some((vertex, at)) = path.pop() {
            let Some(&to) = self.next[vertex].get(at) else {
                self.leave(vertex);
                if let Some((parent, _)) = path.last() {
                    self.least[*parent] = self.least[*parent].min(self.least[vertex]);
                }
                continue;
            };
            path.push((vertex, at + 1));
            match self.found[to] {
                None => {
                    self.enter(to);
                    path.push((to, 0));
                }
                Some(when) if self.component[to].is_none() => {
                    self.least[vertex] = self.least[vertex].min(when);
                }
                Some(_) => {}
            }
        }
    }

    fn enter(&mut self, vertex: usize) {
        self.found[vertex] = Some(self.n_found);
        self.least[vertex] = self.n_found;
        self.n_found += 1;
        self.open.push(vertex);
    }

    /// A vertex that reaches no earlier vertex closes the component of all vertices found after it.
    fn leave(&mut self, vertex: usize) {
        if self.found[vertex] != Some(self.least[vertex]) {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.component[member] = Some(self.n_components);
            if member == vertex {
                break;
            }
        }
        self.n_components += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with pairwise reachability on graphs from a congruential generator.
    #[test]
    fn two_vertices_share_a_component_if_each_reaches_the_other() {
        let mut state: u64 = 7;
        let mut below = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..200 {
            let n = 1 + below(9);
            let edges: Vec<(usize, usize)> = (0..below(2 * n + 1))
                .map(|_| (below(n), below(n)))
                .collect();
            let itself = |v: usize| (0..n).map(|w| v == w).collect();
            let mut reach: Vec<Vec<bool>> = (0..n).map(itself).collect();
            for _ in 0..n {
                for (from, to) in &edges {
                    for row in &mut reach {
                        row[*to] |= row[*from];
                    }
                }
            }
            let component = strong_components(n, edges.iter().copied());
            for a in 0..n {
                for b in 0..n {
                    let both = reach[a][b] && reach[b][a];
                    assert_eq!(component[a] == component[b], both, "{a} {b} of {edges:?}");
                }
            }
        }
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let n = 200_000;
        let component = strong_components(n, (1..n).map(|v| (v - 1, v)));
        assert_ne!(component[0], component[n - 1]);
    }
}
