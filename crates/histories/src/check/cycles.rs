//! The cycles of a part of the dependency graph: each with its name, and the shortest that its first edge allows.

use std::collections::VecDeque;

use super::graph::{Components, Graph};
use crate::finding::{Anomaly, Order, Why};

const WW: u8 = 1;
const WR: u8 = 2;
const RW: u8 = 4;
const SESSION: u8 = 8;
const REAL_TIME: u8 = 16;

/// So many times the edges of the part are looked at before the search for names ends.
const PATIENCE: usize = 64;
const LEAST_PATIENCE: usize = 1 << 20;

/// An edge between nodes of the part. Nodes from `real` on are points in time, which only real-time edges have to do with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) why: Why,
}

impl Edge {
    fn kind(&self) -> u8 {
        match self.why {
            Why::WriteWrite { .. } => WW,
            Why::WriteRead { .. } => WR,
            Why::Session => SESSION,
            Why::RealTime => REAL_TIME,
            _ => RW,
        }
    }
}

/// A cycle that was found: its transactions, and why each comes before the next.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) anomaly: Anomaly,
    pub(crate) order: Order,
    pub(crate) nodes: Vec<u32>,
    pub(crate) steps: Vec<Why>,
}

/// The edge that a cycle begins with, and the edges and shape of the rest.
struct Family {
    anomaly: Anomaly,
    first: u8,
    rest: u8,
}

/// From the most severe. A cycle with one read-write edge begins with it.
const FAMILIES: [Family; 5] = [
    Family { anomaly: Anomaly::G0, first: WW, rest: WW },
    Family { anomaly: Anomaly::G1c, first: WR, rest: WW | WR },
    Family { anomaly: Anomaly::GSingle, first: RW, rest: WW | WR },
    Family { anomaly: Anomaly::GNonadjacent, first: RW, rest: WW | WR | RW },
    Family { anomaly: Anomaly::G2Item, first: RW, rest: WW | WR | RW },
];

/// Searches a part of the dependency graph.
pub(crate) struct Part {
    pub(crate) edges: Vec<Edge>,
    /// Those within a component, by their places in the graph.
    inner: Vec<Edge>,
    graph: Graph,
    /// The component of each node.
    pub(crate) components: Components,
    /// So many nodes are transactions.
    real: usize,
    /// Transactions that were witnesses before; no cycle goes directly from one of them to another.
    covered: Vec<bool>,
    /// When a state of the search was reached, and by which edge from which state.
    reached: Vec<(u32, u32, u32)>,
    round: u32,
    patience: usize,
}

/// The last edge was a read-write edge.
const LAST_RW: u32 = 1;
/// There was a read-write edge after the first edge.
const SECOND_RW: u32 = 2;
const STATES: u32 = 4;

impl Part {
    pub(crate) fn new(nodes: usize, real: usize, edges: Vec<Edge>, covered: Vec<bool>) -> Self {
        let whole = Graph::new(nodes, edges.iter().map(|edge| edge.from));
        let components = whole.components(|edge| Some(edges[edge as usize].to));
        let within = |edge: &&Edge| components.of[edge.from as usize] == components.of[edge.to as usize];
        let inner: Vec<Edge> = edges.iter().filter(within).copied().collect();
        let graph = Graph::new(nodes, inner.iter().map(|edge| edge.from));
        let patience = (inner.len() * PATIENCE).max(LEAST_PATIENCE);
        Self { edges, inner, graph, components, real, covered, reached: Vec::new(), round: 0, patience }
    }

    /// Gives cycles of which none has an edge between two transactions of those before it; at least one of each component
    /// that has no transaction covered.
    pub(crate) fn cycles(&mut self, orders: &[Order]) -> Vec<Cycle> {
        let mut found = Vec::new();
        self.reached = vec![(0, 0, 0); self.graph_nodes() * STATES as usize];
        for order in orders {
            let order_edges = match order {
                Order::None => 0,
                Order::Session => SESSION,
                Order::RealTime => SESSION | REAL_TIME,
            };
            for family in &FAMILIES {
                self.family(family, order_edges, &mut found);
            }
        }
        if self.patience == 0 {
            self.any(orders, &mut found);
        }
        found
    }

    fn covered(&self, edge: &Edge) -> bool {
        self.covered[edge.from as usize] && self.covered[edge.to as usize]
    }

    fn graph_nodes(&self) -> usize {
        self.components.of.len()
    }

    fn family(&mut self, family: &Family, order_edges: u8, found: &mut Vec<Cycle>) {
        let may = family.first | family.rest | order_edges;
        let components = self.graph.components(|edge| {
            Some(&self.inner[edge as usize]).filter(|it| it.kind() & may != 0).map(|it| it.to)
        });
        for first in 0..self.inner.len() {
            let edge = self.inner[first];
            let inside = components.of[edge.from as usize] == components.of[edge.to as usize];
            if edge.kind() != family.first || !inside || self.covered(&edge) {
                continue;
            }
            if self.patience == 0 {
                return;
            }
            if let Some(path) = self.back(first as u32, family, order_edges, &components)
                && let Some(cycle) = self.named(&path)
            {
                self.take(cycle, found);
            }
        }
    }

    /// The shortest way from the end of an edge back to its start that makes a cycle of the family.
    fn back(
        &mut self,
        first: u32,
        family: &Family,
        order_edges: u8,
        components: &Components,
    ) -> Option<Vec<u32>> {
        self.round += 1;
        let start = self.inner[first as usize];
        let rw_before = if family.first == RW { LAST_RW } else { 0 };
        let begin = start.to * STATES + rw_before;
        let mut queue = VecDeque::from([begin]);
        self.reached[begin as usize] = (self.round, first, begin);
        while let Some(state) = queue.pop_front() {
            let (node, flags) = (state / STATES, state % STATES);
            for edge in self.graph.of(node) {
                self.patience = self.patience.saturating_sub(1);
                let next = &self.inner[*edge as usize];
                let kind = next.kind();
                let inside = components.of[next.to as usize] == components.of[start.from as usize];
                if kind & (family.rest | order_edges) == 0 || !inside || self.covered(next) {
                    continue;
                }
                let nonadjacent = family.anomaly == Anomaly::GNonadjacent;
                if kind == RW && nonadjacent && flags & LAST_RW != 0 {
                    continue;
                }
                let flags = if kind == RW { LAST_RW | SECOND_RW } else { flags & SECOND_RW };
                if next.to == start.from {
                    let shape = if nonadjacent { flags == SECOND_RW } else { true };
                    if shape && let Some(path) = self.path(first, state, *edge) {
                        return Some(path);
                    }
                    continue;
                }
                let reached = next.to * STATES + flags;
                if self.reached[reached as usize].0 != self.round {
                    self.reached[reached as usize] = (self.round, *edge, state);
                    queue.push_back(reached);
                }
            }
            if self.patience == 0 {
                return None;
            }
        }
        None
    }

    /// The edges of a cycle that returns by `last` from `state`; none if it meets a transaction twice.
    fn path(&self, first: u32, mut state: u32, last: u32) -> Option<Vec<u32>> {
        let mut path = vec![last];
        loop {
            let (_, edge, before) = self.reached[state as usize];
            path.push(edge);
            if edge == first && before == state {
                break;
            }
            state = before;
        }
        path.reverse();
        let mut nodes: Vec<u32> = path.iter().map(|edge| self.inner[*edge as usize].from).collect();
        nodes.sort_unstable();
        nodes.windows(2).all(|pair| pair[0] != pair[1]).then_some(path)
    }

    /// Names a cycle by its edges; points in time between two transactions are one step.
    fn named(&self, path: &[u32]) -> Option<Cycle> {
        let (mut nodes, mut steps, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for edge in path {
            let edge = &self.inner[*edge as usize];
            if (edge.from as usize) < self.real {
                nodes.push(edge.from);
                steps.push(edge.why);
                kinds.push(edge.kind());
            }
        }
        let rw: usize = kinds.iter().map(|kind| usize::from(*kind == RW)).sum();
        let adjacent = (0..kinds.len()).any(|at| kinds[at] == RW && kinds[(at + 1) % kinds.len()] == RW);
        let fork = kinds.len() == 4 && (0..4).all(|at| kinds[at] == if at % 2 == 0 { RW } else { WR });
        let anomaly = match rw {
            0 if kinds.contains(&WR) => Anomaly::G1c,
            0 if kinds.contains(&WW) => Anomaly::G0,
            0 => return None,
            1 => Anomaly::GSingle,
            _ if adjacent => Anomaly::G2Item,
            _ if fork => Anomaly::LongFork,
            _ => Anomaly::GNonadjacent,
        };
        let order = match kinds.iter().max() {
            Some(&REAL_TIME) => Order::RealTime,
            Some(&SESSION) => Order::Session,
            _ => Order::None,
        };
        Some(Cycle { anomaly, order, nodes, steps })
    }

    fn take(&mut self, cycle: Cycle, found: &mut Vec<Cycle>) {
        for node in &cycle.nodes {
            self.covered[*node as usize] = true;
        }
        found.push(cycle);
    }

    /// Out of patience: any cycle of each component of which no transaction is covered, by whatever name it has.
    fn any(&mut self, orders: &[Order], found: &mut Vec<Cycle>) {
        let mut done = vec![false; self.components.count as usize];
        for (node, component) in self.components.of.iter().enumerate() {
            done[*component as usize] |= self.covered[node];
        }
        let order_edges = if orders.len() > 1 { SESSION | REAL_TIME } else { 0 };
        let family = Family { anomaly: Anomaly::G2Item, first: 0, rest: WW | WR | RW };
        for first in 0..self.inner.len() {
            let edge = self.inner[first];
            let component = self.components.of[edge.from as usize];
            if done[component as usize]
                || self.components.of[edge.to as usize] != component
                || edge.kind() >= SESSION
            {
                continue;
            }
            done[component as usize] = true;
            self.patience = usize::MAX;
            let components = std::mem::replace(&mut self.components, Components { of: Vec::new(), count: 0 });
            let path = self.back(first as u32, &family, order_edges, &components);
            self.components = components;
            if let Some(cycle) = path.and_then(|path| self.named(&path)) {
                self.take(cycle, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RW_EDGE: Why = Why::ReadWrite { key: 0, value: None, next: 1 };
    const WR_EDGE: Why = Why::WriteRead { key: 1, value: 1 };

    /// Write skew between 0 and 1, read skew between 2 and 3, and both before 4.
    fn part() -> Part {
        let edges = [
            (0, 1, RW_EDGE),
            (1, 0, RW_EDGE),
            (2, 3, RW_EDGE),
            (3, 2, WR_EDGE),
            (1, 4, WR_EDGE),
            (3, 4, WR_EDGE),
        ];
        let edges = edges.map(|(from, to, why)| Edge { from, to, why });
        Part::new(5, 5, edges.to_vec(), vec![false; 5])
    }

    fn found(part: &mut Part) -> Vec<(Anomaly, Vec<u32>)> {
        let mut found: Vec<_> =
            part.cycles(&[Order::None]).into_iter().map(|cycle| (cycle.anomaly, cycle.nodes)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn without_patience_each_component_still_gives_a_cycle() {
        let named = vec![(Anomaly::GSingle, vec![2, 3]), (Anomaly::G2Item, vec![0, 1])];
        assert_eq!(found(&mut part()), named);
        let mut hasty = part();
        hasty.patience = 0;
        assert_eq!(found(&mut hasty), named);
    }

    #[test]
    fn no_cycle_goes_from_one_covered_transaction_to_another() {
        let mut part = part();
        part.covered = vec![true, true, true, false, false];
        assert_eq!(found(&mut part), [(Anomaly::GSingle, vec![2, 3])]);
    }
}
