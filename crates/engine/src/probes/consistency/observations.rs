//! What sessions write and read of the registers, and what is checked with it. Pure: times are given.
//!
//! Definitions are in `docs/metrics.md`, "Consistency"; those of the session guarantees are Terry et al.'s (PDIS 1994).
//! One clock times everything, because all sessions run on one thread. A check says *violation* only of what no order of
//! events explains: a version counts as expected if its write was acknowledged before the read was sent, and a write
//! whose outcome is unknown ends its register's part in all checks.

use std::rc::Rc;

use nephoscope_drivers::ErrorClass;
use nephoscope_runtime::Nanos;

use super::counts::Tally;
use super::fork::{Rounds, Sees};
use super::register::{CELLS, Register};
use super::visibility::{Watch, Write};
use crate::probes::sample::{Check, Journal, Kind, Outcome, Sample};

/// What a session knew of a register when it sent a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) key: usize,
    /// The register's first row.
    pub(crate) base: i64,
    sent: Nanos,
    /// The newest acknowledged version, and since when.
    expected: Option<(i64, Nanos)>,
    /// Whether it is one of the session's own.
    is_own: bool,
    /// The newest version that the session has read.
    seen: Option<i64>,
}

/// What a session remembers of a register: its first row, and the newest version that was read.
pub(crate) type Memory = Vec<Option<(i64, i64)>>;

/// A write that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) key: usize,
    pub(crate) base: i64,
    pub(crate) version: i64,
    /// Its number among all writes.
    pub(crate) number: u64,
    pub(crate) at: Nanos,
}

/// A register with what is looked for in it.
struct Key {
    register: Register,
    /// By node.
    watches: Vec<Watch>,
    rounds: Rounds,
}

/// All that is known of all registers.
pub(crate) struct Observations {
    keys: Vec<Key>,
    /// The first row of the next register.
    next: i64,
    /// The endpoints that are read, and the one that is written.
    nodes: Vec<usize>,
    writer: usize,
    long_fork: bool,
    limit: Nanos,
    pub(crate) tally: Tally,
    journal: Rc<Journal>,
}

impl Observations {
    pub(crate) fn new(
        keys: usize,
        (nodes, writer): (Vec<usize>, usize),
        long_fork: bool,
        limit: Nanos,
        journal: &Rc<Journal>,
    ) -> Self {
        let bases = (0..keys).map(|key| 1 + (key * CELLS) as i64);
        let watches = || nodes.iter().map(|_| Watch::default()).collect();
        let key = |base| Key { register: Register::new(base), watches: watches(), rounds: Rounds::default() };
        Self {
            keys: bases.map(key).collect(),
            next: 1 + (keys * CELLS) as i64,
            nodes,
            writer,
            long_fork,
            limit,
            tally: Tally::default(),
            journal: Rc::clone(journal),
        }
    }

    // --- writes ---------------------------------------------------------------------------------------------

    /// A write is sent.
    pub(crate) fn write(&mut self, key: usize, number: u64, now: Nanos) -> Sent {
        let of = &mut self.keys[key];
        let version = of.register.next();
        of.watches.iter_mut().for_each(|watch| watch.sent(version, number, now));
        if self.long_fork {
            of.rounds.begin(version, now);
        }
        Sent { key, base: of.register.base, version, number, at: now }
    }

    /// Whether a row of a register is to be updated: it has been inserted.
    pub(crate) fn is_there(&self, sent: &Sent, cell: usize) -> bool {
        self.keys[sent.key].register.there[cell]
    }

    /// A row has been written.
    pub(crate) fn stored(&mut self, sent: &Sent, cell: usize) {
        if let Some(register) = self.current(sent) {
            register.there[cell] = true;
        }
    }

    fn current(&mut self, sent: &Sent) -> Option<&mut Register> {
        let register = &mut self.keys[sent.key].register;
        (register.base == sent.base).then_some(register)
    }

    /// A write to the register itself was acknowledged.
    pub(crate) fn acknowledge(&mut self, sent: &Sent, at: Nanos) {
        if let Some(register) = self.current(sent) {
            register.acknowledge(sent.version, at);
            let watches = &mut self.keys[sent.key].watches;
            for watch in watches {
                watch.acknowledge(sent.version, at);
            }
        }
    }

    /// A write to the register itself has failed, for certain or not.
    pub(crate) fn fail(&mut self, sent: &Sent, class: ErrorClass, now: Nanos) {
        self.keys[sent.key].watches.iter_mut().for_each(|watch| watch.forget(sent.version));
        self.add(self.writer, sent.number, (sent.at, Some((sent.at, now))), Outcome::Failed(class));
    }

    /// A write that was due and not sent in time.
    pub(crate) fn not_written(&mut self, number: u64, due: Nanos) {
        self.add(self.writer, number, (due, None), Outcome::Missing);
    }

    fn add(&self, endpoint: usize, number: u64, times: (Nanos, Option<(Nanos, Nanos)>), outcome: Outcome) {
        let (time, sent) = times;
        let (sent, end) = sent.unzip();
        let (lower, upper, polls) = (None, None, 0);
        let kind = Kind::Register;
        self.journal.add(Sample { kind, endpoint, number, time, sent, end, outcome, lower, upper, polls });
    }

    /// Gives a register up, where nobody knows what a write to it did, or will do.
    pub(crate) fn retire(&mut self, sent: &Sent, now: Nanos) {
        if self.current(sent).is_none() {
            return;
        }
        self.end(sent.key, now);
        let key = &mut self.keys[sent.key];
        key.rounds.clear();
        key.register.move_to(self.next);
        self.next += CELLS as i64;
        self.tally.add(Check::Retired, None, true);
    }

    /// The rows that registers have had: those below.
    pub(crate) fn rows(&self) -> std::ops::Range<i64> {
        1..self.next
    }

    // --- reads ----------------------------------------------------------------------------------------------

    /// A read is sent by a session with a memory, which writes the register or does not.
    pub(crate) fn ask(&self, key: usize, memory: &Memory, is_own: bool, sent: Nanos) -> Asked {
        let register = &self.keys[key].register;
        let seen = memory[key].filter(|(base, _)| *base == register.base).map(|(_, version)| version);
        Asked { key, base: register.base, sent, expected: register.newest(), is_own, seen }
    }

    /// A read was answered by a node, by its place among those that are read.
    pub(crate) fn answer(
        &mut self,
        asked: &Asked,
        node: usize,
        (cells, sees): ([i64; CELLS], Sees),
        now: Nanos,
        memory: &mut Memory,
    ) {
        let endpoint = self.nodes[node];
        self.tally.add(Check::Reads, Some(endpoint), true);
        let key = &mut self.keys[asked.key];
        if key.register.base != asked.base {
            return;
        }
        let [version, second, third] = cells;
        key.watches[node].read(version, asked.sent, now);
        if let Some((expected, at)) = asked.expected {
            let since = asked.sent.saturating_sub(at);
            self.tally.add_since(Check::Stale, endpoint, since, version < expected);
            self.tally.add_behind(endpoint, key.register.behind(version, expected));
            if asked.is_own {
                self.tally.add(Check::ReadYourWrites, Some(endpoint), version < expected);
            }
        }
        if let Some(seen) = asked.seen {
            self.tally.add(Check::MonotonicReads, Some(endpoint), version < seen);
        }
        let newest = asked.seen.map_or(version, |seen| seen.max(version));
        memory[asked.key] = Some((asked.base, newest));
        if self.long_fork {
            key.rounds.saw(node, version, second, sees);
            return;
        }
        if second > 0 {
            self.tally.add(Check::MonotonicWrites, Some(endpoint), version < second);
        }
        if third > 0 {
            self.tally.add(Check::WritesFollowReads, Some(endpoint), version < third);
        }
    }

    /// A read was sent and has failed.
    pub(crate) fn failed(&mut self, node: usize) {
        let endpoint = Some(self.nodes[node]);
        self.tally.add(Check::Reads, endpoint, false);
        self.tally.add(Check::FailedReads, endpoint, true);
    }

    /// A read was due and could not be sent before the next one was.
    pub(crate) fn not_read(&mut self, key: usize, node: usize, due: Nanos) {
        let endpoint = self.nodes[node];
        self.tally.add(Check::Reads, Some(endpoint), false);
        if let Some(since) = self.keys[key].register.age(due) {
            self.tally.add_since(Check::Missed, endpoint, since, true);
        }
    }

    // --- what is over ---------------------------------------------------------------------------------------

    /// Ends what was looked for long enough, and the slice of counts.
    pub(crate) fn sweep(&mut self, now: Nanos) {
        let until = now.saturating_sub(self.limit);
        for place in 0..self.keys.len() {
            let key = &mut self.keys[place];
            let taken = key.watches.iter_mut().map(|watch| watch.take_until(until)).collect();
            let (checks, forks) = key.rounds.take_until(until);
            self.tell(taken, now);
            self.tally.add_all(Check::LongFork, checks, forks);
        }
    }

    /// Ends everything.
    pub(crate) fn end_all(&mut self, now: Nanos) {
        for place in 0..self.keys.len() {
            for write in self.keys[place].watches[0].unanswered() {
                let times = (write.sent, Some((write.sent, now)));
                self.add(self.writer, write.number, times, Outcome::Failed(ErrorClass::StatementTimeout));
            }
            self.end(place, now);
            let (checks, forks) = self.keys[place].rounds.take_until(now);
            self.tally.add_all(Check::LongFork, checks, forks);
        }
        self.hand_over();
    }

    pub(crate) fn hand_over(&mut self) {
        self.tally.hand_over(&self.journal);
    }

    /// Ends the search for a register's writes.
    fn end(&mut self, key: usize, now: Nanos) {
        let taken = self.keys[key].watches.iter_mut().map(Watch::take_all).collect();
        self.tell(taken, now);
    }

    /// Tells how long writes took to be seen, by node.
    fn tell(&self, taken: Vec<Vec<(Nanos, Write)>>, now: Nanos) {
        for (endpoint, writes) in self.nodes.iter().zip(taken) {
            for (acknowledged, write) in writes {
                let (seen, (lower, upper)) = write.found(acknowledged);
                self.journal.add(Sample {
                    kind: Kind::Register,
                    endpoint: *endpoint,
                    number: write.number,
                    time: acknowledged,
                    sent: Some(write.sent),
                    end: Some(seen.unwrap_or(now)),
                    outcome: if seen.is_some() { Outcome::Ok } else { Outcome::NotSeen },
                    lower,
                    upper,
                    polls: write.reads,
                });
            }
        }
    }
}
