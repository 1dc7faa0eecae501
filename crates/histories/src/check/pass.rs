//! A pass over all that is held: lists settle, cycles are found and named, and what is old is retired.

use super::Checker;
use super::cycles::{Edge, Part};
use super::graph::Graph;
use super::nodes::{RETIRED, live};
use crate::finding::{Order, Why};

/// What is known of a transaction when the graph has been peeled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It lies on a cycle or behind one.
    Inside,
    /// Peeled, and held.
    Held,
    /// Peeled, and to be retired.
    Leaving,
}

/// The points in time of real-time order.
struct Points {
    /// When transactions end, in order, each with the transaction.
    ends: Vec<(u64, u32)>,
    /// How many points lie before a transaction's begin, and the transaction.
    begins: Vec<(u32, u32)>,
}

impl Checker {
    pub(super) fn pass(&mut self, cutoff: u64) -> Result<(), String> {
        self.cutoff = self.cutoff.max(cutoff);
        for list in self.lists.values_mut().filter(|list| !list.settled && list.touched < cutoff) {
            list.settle(&mut self.scene)?;
        }
        for register in self.registers.values_mut() {
            register.unwritten(&mut self.scene, cutoff);
        }
        for (key, counter) in &mut self.counters {
            counter.settle(&mut self.scene.found, *key, cutoff);
        }
        let points = self.points(|_| true);
        let mut edges = std::mem::take(&mut self.edges);
        edges.clear();
        let left = self.each_edge(&points, |from, to, _| edges.push((from, to)));
        self.scene.unordered = self.scene.unordered.max(left);
        self.peel(&edges, points.ends.len());
        self.edges = edges;
        self.force();
        self.sweep();
        Ok(())
    }

    fn orders(&self) -> &'static [Order] {
        match self.options.order {
            Order::None => &[Order::None],
            Order::Session => &[Order::None, Order::Session],
            Order::RealTime => &[Order::None, Order::Session, Order::RealTime],
        }
    }

    /// The points in time of some transactions: none without real-time order.
    fn points(&self, of: impl Fn(u32) -> bool) -> Points {
        if self.options.order != Order::RealTime {
            return Points { ends: Vec::new(), begins: Vec::new() };
        }
        let nodes = &self.scene.nodes;
        let held = || (0..nodes.all.len() as u32).filter(|slot| nodes.counts(*slot) && of(*slot));
        let certain = held().filter(|slot| nodes.is(*slot, crate::history::Outcome::Committed));
        let mut ends: Vec<(u64, u32)> =
            certain.map(|slot| (nodes.all[slot as usize].party.end, slot)).collect();
        ends.sort_unstable();
        let begins = held().map(|slot| {
            let begin = nodes.all[slot as usize].party.begin;
            (ends.partition_point(|point| point.0 < begin) as u32, slot)
        });
        let begins = begins.filter(|begin| begin.0 > 0).collect();
        Points { ends, begins }
    }

    /// Gives every edge between those that are held, and how many dependencies were left out. Points in time come after
    /// the transactions.
    fn each_edge(&self, points: &Points, mut link: impl FnMut(u32, u32, Why)) -> u64 {
        let nodes = &self.scene.nodes;
        let mut left = 0;
        for list in self.lists.values() {
            left += list.edges(nodes, &mut link);
        }
        for register in self.registers.values() {
            left += register.edges(nodes, &mut link);
        }
        if self.options.order != Order::None {
            for (slot, node) in nodes.all.iter().enumerate().filter(|(_, node)| !node.retired) {
                if live(node.previous) {
                    link(node.previous, slot as u32, Why::Session);
                }
            }
        }
        let first = nodes.all.len() as u32;
        for (at, (_, slot)) in points.ends.iter().enumerate() {
            let point = first + at as u32;
            link(*slot, point, Why::RealTime);
            if at > 0 {
                link(point - 1, point, Why::RealTime);
            }
        }
        for (before, slot) in &points.begins {
            link(first + before - 1, *slot, Why::RealTime);
        }
        left
    }

    fn old(&self, slot: u32) -> bool {
        match self.scene.nodes.all.get(slot as usize) {
            Some(node) => node.party.end < self.cutoff && node.unsettled == 0,
            // A point in time.
            None => true,
        }
    }

    /// Takes transactions from the graph that nothing precedes, until there is none; retires the old ones that only
    /// retired ones precede.
    fn peel(&mut self, edges: &[(u32, u32)], points: usize) {
        let count = self.scene.nodes.all.len() + points;
        let graph = Graph::new(count, edges.iter().map(|edge| edge.0));
        let mut before = vec![0_u32; count];
        for (_, to) in edges {
            before[*to as usize] += 1;
        }
        let mut places = vec![Place::Inside; count];
        let mut held = vec![false; count];
        let mut sources: Vec<u32> = (0..count as u32).filter(|slot| before[*slot as usize] == 0).collect();
        while let Some(slot) = sources.pop() {
            let leaves = !held[slot as usize] && self.old(slot);
            places[slot as usize] = if leaves { Place::Leaving } else { Place::Held };
            for edge in graph.of(slot) {
                let to = edges[*edge as usize].1;
                held[to as usize] |= !leaves;
                before[to as usize] -= 1;
                if before[to as usize] == 0 {
                    sources.push(to);
                }
            }
        }
        if places.contains(&Place::Inside) {
            self.name_cycles(&mut places, &mut held);
        }
        for (slot, place) in places.iter().enumerate().take(self.scene.nodes.all.len()) {
            if *place == Place::Leaving && !self.scene.nodes.all[slot].retired {
                self.scene.nodes.retire(slot as u32);
            }
        }
    }

    fn name_cycles(&mut self, places: &mut [Place], held: &mut [bool]) {
        let inside = |slot: u32| places[slot as usize] == Place::Inside;
        let mut members: Vec<u32> =
            (0..self.scene.nodes.all.len() as u32).filter(|slot| inside(*slot)).collect();
        let real = members.len();
        let points = self.points(|slot| places[slot as usize] == Place::Inside);
        let first = self.scene.nodes.all.len() as u32;
        members.extend((0..points.ends.len() as u32).map(|at| first + at));
        let mut local = vec![RETIRED; self.scene.nodes.all.len() + points.ends.len()];
        for (at, slot) in members.iter().enumerate() {
            local[*slot as usize] = at as u32;
        }
        let mut edges = Vec::new();
        self.each_edge(&points, |from, to, why| {
            let (from, to) = (local[from as usize], local[to as usize]);
            if live(from) && live(to) {
                edges.push(Edge { from, to, why });
            }
        });
        let nodes = &self.scene.nodes;
        let covered =
            members.iter().map(|slot| nodes.get(*slot).is_some_and(|node| node.reported || node.lost));
        let mut part = Part::new(members.len(), real, edges, covered.collect());
        for cycle in part.cycles(self.orders()) {
            let slots: Vec<u32> = cycle.nodes.iter().map(|node| members[*node as usize]).collect();
            for slot in &slots {
                self.scene.nodes.all[*slot as usize].reported = true;
            }
            let parties = slots.iter().filter_map(|slot| self.scene.nodes.party(*slot)).collect();
            self.scene.found.add(cycle.anomaly, cycle.order, parties, cycle.steps);
        }
        self.retire_behind(&part, &members, real, places, held);
    }

    /// Retires what lies on cycles and behind them. A component that reaches another has the higher number.
    fn retire_behind(
        &self,
        part: &Part,
        members: &[u32],
        real: usize,
        places: &mut [Place],
        held: &mut [bool],
    ) {
        let sizes = part.components.sizes();
        let mut order: Vec<u32> = (0..members.len() as u32).collect();
        order.sort_unstable_by_key(|node| std::cmp::Reverse(part.components.of[*node as usize]));
        let mut behind = vec![Vec::new(); members.len()];
        for edge in &part.edges {
            behind[edge.from as usize].push(edge.to);
        }
        let mut waits: Vec<bool> =
            (0..members.len()).map(|at| at < real && held[members[at] as usize]).collect();
        for node in order {
            let at = node as usize;
            let component = part.components.of[at];
            let point = at >= real;
            let on_cycle = sizes[component as usize] > 1;
            let leaves = (on_cycle || !waits[at]) && (point || self.old(members[at]));
            if !point {
                places[members[at] as usize] = if leaves { Place::Leaving } else { Place::Held };
            }
            for to in &behind[at] {
                waits[*to as usize] |= !leaves;
            }
        }
    }

    /// Retires the oldest where more are held than may be.
    fn force(&mut self) {
        let nodes = &mut self.scene.nodes;
        let held = nodes.live() - nodes.leaving.len();
        if held <= self.options.most_held {
            return;
        }
        let slots = 0..nodes.all.len() as u32;
        let mut ends: Vec<(u64, u32)> =
            slots.filter_map(|slot| nodes.get(slot).map(|node| (node.party.end, slot))).collect();
        ends.sort_unstable();
        ends.truncate(held - self.options.most_held / 2);
        self.summary.forced += ends.len() as u64;
        for (_, slot) in ends {
            nodes.retire(slot);
        }
    }

    /// Takes every reference to those that leave away, then their places can be used again.
    fn sweep(&mut self) {
        if self.scene.nodes.leaving.is_empty() {
            return;
        }
        let nodes = &self.scene.nodes;
        let retired = &mut self.retired_lists;
        self.lists.retain(|key, list| {
            let gone = list.sweep(nodes);
            if gone {
                retired.insert(*key);
            }
            !gone
        });
        for register in self.registers.values_mut() {
            register.sweep(nodes, self.cutoff);
        }
        let nodes = &mut self.scene.nodes;
        for slot in 0..nodes.all.len() {
            nodes.all[slot].previous = nodes.swept(nodes.all[slot].previous);
        }
        for last in self.sessions.values_mut() {
            last.slot = nodes.swept(last.slot);
        }
        nodes.forget();
    }
}
