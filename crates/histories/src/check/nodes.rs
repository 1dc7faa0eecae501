//! The transactions that can still be part of a cycle, and the findings.

use crate::finding::{Anomaly, Finding, Order, Party, Why};
use crate::history::Outcome;

/// No transaction: of what was there before the first.
pub(crate) const NOBODY: u32 = u32::MAX;
/// A transaction that was retired.
pub(crate) const RETIRED: u32 = u32::MAX - 1;
/// A transaction that has not come yet.
pub(crate) const UNSEEN: u32 = u32::MAX - 2;

/// Whether this is a transaction's place, and it is there.
pub(crate) fn live(slot: u32) -> bool {
    slot < UNSEEN
}

/// A transaction without what it did: that lies with the items.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) party: Party,
    pub(crate) outcome: Outcome,
    /// How many of its appends have no place in their lists yet.
    pub(crate) unsettled: u32,
    /// The transaction before it in its session.
    pub(crate) previous: u32,
    /// It is part of a lost update.
    pub(crate) lost: bool,
    /// It was a witness of a cycle.
    pub(crate) reported: bool,
    pub(crate) retired: bool,
}

/// All of them. A place is used again only when nothing refers to it any more.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) all: Vec<Node>,
    free: Vec<u32>,
    /// Those that go with the next sweep.
    pub(crate) leaving: Vec<u32>,
}

impl Nodes {
    pub(crate) fn add(&mut self, node: Node) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.all[slot as usize] = node;
            return slot;
        }
        self.all.push(node);
        (self.all.len() - 1) as u32
    }

    pub(crate) fn live(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Node> {
        self.all.get(slot as usize).filter(|node| !node.retired)
    }

    pub(crate) fn party(&self, slot: u32) -> Option<Party> {
        self.get(slot).map(|node| node.party)
    }

    pub(crate) fn is(&self, slot: u32, outcome: Outcome) -> bool {
        self.get(slot).is_some_and(|node| node.outcome == outcome)
    }

    /// Whether edges may lead to it: it has committed, or may have.
    pub(crate) fn counts(&self, slot: u32) -> bool {
        self.get(slot).is_some_and(|node| node.outcome != Outcome::Aborted)
    }

    pub(crate) fn settled(&mut self, slot: u32) {
        if let Some(node) = self.all.get_mut(slot as usize) {
            node.unsettled = node.unsettled.saturating_sub(1);
        }
    }

    pub(crate) fn retire(&mut self, slot: u32) {
        self.all[slot as usize].retired = true;
        self.leaving.push(slot);
    }

    /// What a reference is when those that leave are gone.
    pub(crate) fn swept(&self, slot: u32) -> u32 {
        if live(slot) && self.all[slot as usize].retired { RETIRED } else { slot }
    }

    /// Frees the places of those that left; nothing refers to them now.
    pub(crate) fn forget(&mut self) {
        self.free.append(&mut self.leaving);
    }
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// How often each anomaly was found, by order.
    pub(crate) counts: [[u64; 3]; 16],
    pub(crate) kept: Vec<Finding>,
    /// So many witnesses of each are kept.
    most: u64,
}

impl Found {
    pub(crate) fn new(most: u64) -> Self {
        Self { counts: [[0; 3]; 16], kept: Vec::new(), most }
    }

    pub(crate) fn add(&mut self, anomaly: Anomaly, order: Order, parties: Vec<Party>, steps: Vec<Why>) {
        let count = &mut self.counts[anomaly as usize][order as usize];
        *count += 1;
        if *count <= self.most {
            self.kept.push(Finding { anomaly, order, parties, steps });
        }
    }
}

/// What the items of a history share while a transaction is taken.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) nodes: Nodes,
    pub(crate) found: Found,
    /// Operations that meet what has been retired.
    pub(crate) late: u64,
    /// Dependencies that were left out, because a key had too many transactions without an order.
    pub(crate) unordered: u64,
}

impl Scene {
    /// Adds a finding about a value that a transaction read, and about who wrote it or read otherwise.
    pub(crate) fn value(&mut self, anomaly: Anomaly, reader: u32, other: u32, key: u64, value: u64) {
        let parties = [reader, other].into_iter().filter_map(|slot| self.nodes.party(slot)).collect();
        self.found.add(anomaly, Order::None, parties, vec![Why::Value { key, value }]);
    }

    /// Two transactions read the same version and wrote the item.
    pub(crate) fn lost_update(&mut self, first: u32, second: u32, key: u64, value: Option<u64>) {
        let parties = [first, second].into_iter().filter_map(|slot| self.nodes.party(slot)).collect();
        for slot in [first, second] {
            self.nodes.all[slot as usize].lost = true;
        }
        self.found.add(Anomaly::LostUpdate, Order::None, parties, vec![Why::SameVersion { key, value }]);
    }
}
