//! A directed graph by its edges' starts, and its strongly connected components.

/// Edges grouped by where they start: `order[starts[v]..starts[v + 1]]` are the places of those of `v`.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    starts: Vec<u32>,
    order: Vec<u32>,
}

impl Graph {
    /// Groups edges, given as where each starts.
    pub(crate) fn new(nodes: usize, from: impl Iterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        let mut edges = 0;
        for start in from.clone() {
            starts[start as usize + 1] += 1;
            edges += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut order = vec![0; edges];
        let mut next = starts.clone();
        for (edge, start) in from.enumerate() {
            let place = &mut next[start as usize];
            order[*place as usize] = edge as u32;
            *place += 1;
        }
        Self { starts, order }
    }

    /// The places of the edges that start here.
    pub(crate) fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.order[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Gives each node the number of its component; a component that reaches another has the higher number. `to` gives
    /// where an edge ends, and `None` where it is not to be followed.
    pub(crate) fn components(&self, to: impl Fn(u32) -> Option<u32>) -> Components {
        let nodes = self.starts.len() - 1;
        let mut search = Search {
            index: vec![0; nodes],
            low: vec![0; nodes],
            component: vec![UNDECIDED; nodes],
            stack: Vec::new(),
            visited: 0,
            components: 0,
        };
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for root in 0..nodes as u32 {
            if search.index[root as usize] > 0 {
                continue;
            }
            search.enter(root);
            calls.push((root, 0));
            while let Some((node, at)) = calls.pop() {
                match self.of(node).get(at as usize) {
                    None => search.leave(node, calls.last().map(|call| call.0)),
                    Some(edge) => {
                        calls.push((node, at + 1));
                        if let Some(next) = to(*edge)
                            && search.meets(node, next)
                        {
                            calls.push((next, 0));
                        }
                    }
                }
            }
        }
        Components { of: search.component, count: search.components }
    }
}

/// The components of a graph.
#[derive(Debug)]
pub(crate) struct Components {
    pub(crate) of: Vec<u32>,
    pub(crate) count: u32,
}

impl Components {
    /// How many nodes each has.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.count as usize];
        for component in &self.of {
            sizes[*component as usize] += 1;
        }
        sizes
    }
}

const UNDECIDED: u32 = u32::MAX;

/// Tarjan's search, without recursion.
struct Search {
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    stack: Vec<u32>,
    visited: u32,
    components: u32,
}

impl Search {
    fn enter(&mut self, node: u32) {
        self.visited += 1;
        self.index[node as usize] = self.visited;
        self.low[node as usize] = self.visited;
        self.stack.push(node);
    }

    /// Takes note of an edge; true if the search goes on at its end.
    fn meets(&mut self, node: u32, next: u32) -> bool {
        let index = self.index[next as usize];
        if index == 0 {
            self.enter(next);
            return true;
        }
        if self.component[next as usize] == UNDECIDED {
            let low = &mut self.low[node as usize];
            *low = index.min(*low);
        }
        false
    }

    fn leave(&mut self, node: u32, caller: Option<u32>) {
        let low = self.low[node as usize];
        if let Some(caller) = caller {
            let above = &mut self.low[caller as usize];
            *above = low.min(*above);
        }
        if low == self.index[node as usize] {
            while let Some(member) = self.stack.pop() {
                self.component[member as usize] = self.components;
                if member == node {
                    break;
                }
            }
            self.components += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_those_that_reach_each_other() {
        let mut state = 7_u64;
        for _ in 0..300 {
            let mut drawn = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 33) % below) as u32
            };
            let nodes = 1 + drawn(12);
            let edges: Vec<(u32, u32)> =
                (0..drawn(30)).map(|_| (drawn(nodes.into()), drawn(nodes.into()))).collect();
            let graph = Graph::new(nodes as usize, edges.iter().map(|edge| edge.0));
            let components = graph.components(|edge| Some(edges[edge as usize].1));
            let size = nodes as usize;
            let mut reach = vec![vec![false; size]; size];
            for (from, to) in edges.iter().copied().chain((0..nodes).map(|node| (node, node))) {
                reach[from as usize][to as usize] = true;
            }
            for via in 0..size {
                for from in 0..size {
                    for to in 0..size {
                        reach[from][to] |= reach[from][via] && reach[via][to];
                    }
                }
            }
            let of = &components.of;
            for (from, to) in (0..size).flat_map(|from| (0..size).map(move |to| (from, to))) {
                assert_eq!(of[from] == of[to], reach[from][to] && reach[to][from]);
                assert!(!reach[from][to] || of[from] >= of[to]);
            }
        }
    }
}
