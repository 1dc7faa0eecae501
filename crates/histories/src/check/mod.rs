//! The checker: it takes transactions as they end, and forgets those that can be part of no further cycle.
//!
//! Each item gives dependencies: write-write between a version and the next, write-read from a version to its readers,
//! read-write from a reader to the writer of the next version. From time to time the graph of those transactions that are
//! still held is peeled from its sources. What remains has cycles, which are named. A transaction is **retired** when
//!
//! - it ended longer ago than the window,
//! - each of its appends has its place in its list, and
//! - every transaction before it is retired, or it was part of a cycle that has been named.
//!
//! An edge *to* it can come no more unless an operation refers to something older than the window, and an edge *from* it
//! closes no cycle. Operations that do refer to something retired are counted as `late`: where that is 0 and nothing was
//! `forced` out, no cycle was missed, whatever the window. So the window has to be longer than the longest transaction
//! plus the time by which transactions come out of order, and a list has to be left alone for good once it was left
//! alone for the window.

mod counters;
mod cycles;
mod graph;
mod lists;
mod nodes;
mod pass;
mod ranges;
mod registers;
mod taking;

use crate::few::Numbers;
use crate::finding::{ANOMALIES, Anomaly, Finding, Order};
use crate::history::{Outcome, Transaction};
use counters::Counter;
use lists::List;
use nodes::{Found, Nodes, Scene};
use ranges::Ranges;
use registers::Register;
use taking::Touched;

/// What a checker takes for granted, and how much it holds.
#[derive(Clone, Debug)]
pub struct Options {
    /// What orders transactions besides their dependencies.
    pub order: Order,
    /// The window, in nanoseconds.
    pub window: u64,
    /// Whether a transaction that reads a register and writes it then makes the version after the one that it read.
    pub reads_before_writes: bool,
    /// What all balances add up to; the first read that committed says so otherwise.
    pub total: Option<i64>,
    /// So many witnesses of each anomaly are kept.
    pub witnesses: u64,
    /// So many transactions are held; beyond, the oldest half is retired by force, and counted.
    pub most_held: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            order: Order::None,
            window: 10_000_000_000,
            reads_before_writes: false,
            total: None,
            witnesses: 16,
            most_held: 1 << 22,
        }
    }
}

/// How often an anomaly was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The order that it needs to be one.
    pub order: Order,
    /// How often. Of cycles this is a lower bound: none is counted that goes directly from one transaction to another
    /// where both are part of a lost update or of a cycle counted before, and the most severe are counted first.
    pub times: u64,
}

/// What a checker has seen and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Transactions that committed, aborted, and those of which neither is known.
    pub committed: u64,
    /// See `committed`.
    pub aborted: u64,
    /// See `committed`.
    pub unknown: u64,
    /// Operations of all of them.
    pub operations: u64,
    /// What was found; anomalies that were not are left out.
    pub counts: Vec<Count>,
    /// The first witnesses of each.
    pub findings: Vec<Finding>,
    /// Operations that referred to something retired: cycles through them may be missing.
    pub late: u64,
    /// Transactions that were retired only to bound memory: cycles through them may be missing.
    pub forced: u64,
    /// The most dependencies that were left out at one time, because a key had too many transactions without an order.
    pub unordered: u64,
    /// The most transactions that were held.
    pub most_held: usize,
    /// The most lists, registers and counters that were held.
    pub most_keys: usize,
}

impl Summary {
    /// Whether every cycle was found: nothing referred to what was retired, and nothing was left out.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.late == 0 && self.forced == 0 && self.unordered == 0
    }
}

/// The last transactions of a session.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// The last that committed and has edges.
    slot: u32,
    end: u64,
}

/// Checks a history while it is made. Give it each transaction once it has ended, those of a session in order.
#[derive(Debug)]
pub struct Checker {
    options: Options,
    scene: Scene,
    lists: Numbers<u64, List>,
    retired_lists: Ranges,
    registers: Numbers<u64, Register>,
    counters: Numbers<u64, Counter>,
    sessions: Numbers<u32, Last>,
    /// How many accounts there are.
    accounts: Option<u32>,
    /// The latest end.
    now: u64,
    /// What ended before this may be retired.
    cutoff: u64,
    since_pass: usize,
    pass_after: usize,
    edges: Vec<(u32, u32)>,
    touched: Vec<Touched>,
    summary: Summary,
}

/// A pass over all that is held is worth its while after so many transactions at least.
const LEAST_BETWEEN_PASSES: usize = 1 << 14;

impl Checker {
    /// Makes a checker of an empty history.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let scene =
            Scene { nodes: Nodes::default(), found: Found::new(options.witnesses), late: 0, unordered: 0 };
        Self {
            scene,
            options,
            lists: Numbers::default(),
            retired_lists: Ranges::default(),
            registers: Numbers::default(),
            counters: Numbers::default(),
            sessions: Numbers::default(),
            accounts: None,
            now: 0,
            cutoff: 0,
            since_pass: 0,
            pass_after: LEAST_BETWEEN_PASSES,
            edges: Vec::new(),
            touched: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Takes the next transaction.
    ///
    /// # Errors
    /// If it cannot be one of this history: it ends before it begins, overlaps another of its session, or writes a value
    /// that was written before. Nothing more should be asked of the checker then.
    pub fn push(&mut self, transaction: &Transaction) -> Result<(), String> {
        self.accept(transaction)?;
        self.since_pass += 1;
        if self.since_pass >= self.pass_after {
            self.pass(self.now.saturating_sub(self.options.window))?;
            self.since_pass = 0;
            self.pass_after = self.scene.nodes.live().max(LEAST_BETWEEN_PASSES);
        }
        Ok(())
    }

    /// What was seen and found so far, as of the last pass.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        (summary.late, summary.unordered) = (self.scene.late, self.scene.unordered);
        summary.findings.clone_from(&self.scene.found.kept);
        for anomaly in ANOMALIES {
            for order in [Order::None, Order::Session, Order::RealTime] {
                let times = self.scene.found.counts[anomaly as usize][order as usize];
                if times > 0 {
                    summary.counts.push(Count { anomaly, order, times });
                }
            }
        }
        summary
    }

    /// Ends the history: no transaction comes any more.
    ///
    /// # Errors
    /// If a value was written twice.
    pub fn finish(mut self) -> Result<Summary, String> {
        self.pass(u64::MAX)?;
        Ok(self.summary())
    }

    fn tally(&mut self, transaction: &Transaction) {
        match transaction.outcome {
            Outcome::Committed => self.summary.committed += 1,
            Outcome::Aborted => self.summary.aborted += 1,
            Outcome::Unknown => self.summary.unknown += 1,
        }
        self.summary.operations += transaction.operations.len() as u64;
    }
}
