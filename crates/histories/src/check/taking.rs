//! A transaction is taken: what it did goes to the items, and is compared with itself.

use std::collections::hash_map::Entry;

use super::nodes::{NOBODY, Node};
use super::{Checker, Counter, Last, List, Register};
use crate::finding::{Anomaly, Order, Party, Why};
use crate::history::{Operation, Outcome, Transaction};

/// What a transaction has done to an item so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    key: u64,
    register: bool,
    wrote: bool,
    /// The version that it saw before it wrote.
    seen: Option<u32>,
    /// Its last read of the item.
    read: Option<usize>,
}

/// The key that an operation reads or writes, and whether that is a register.
fn item(operation: &Operation) -> Option<(u64, bool)> {
    match operation {
        Operation::Append { key, .. } | Operation::List { key, .. } => Some((*key, false)),
        Operation::Write { key, .. } | Operation::Read { key, .. } => Some((*key, true)),
        _ => None,
    }
}

fn writes(operation: &Operation) -> bool {
    matches!(operation, Operation::Append { .. } | Operation::Write { .. })
}

impl Checker {
    pub(super) fn accept(&mut self, transaction: &Transaction) -> Result<(), String> {
        let Transaction { number, session, begin, end, outcome, .. } = *transaction;
        if end < begin {
            return Err(format!("transaction {number} ends at {end}, before it begins at {begin}"));
        }
        self.tally(transaction);
        let party = Party { number, session, begin, end };
        self.now = self.now.max(end);
        let previous = self.follow(&party)?;
        self.scene.late += u64::from(end < self.cutoff);
        self.numbers(transaction, party);
        let matters = |it: &Operation| item(it).is_some() && (outcome == Outcome::Committed || writes(it));
        if !transaction.operations.iter().any(matters) {
            return Ok(());
        }
        let slot = self.scene.nodes.add(Node {
            party,
            outcome,
            unsettled: 0,
            previous,
            lost: false,
            reported: false,
            retired: false,
        });
        if outcome == Outcome::Committed {
            self.sessions.insert(session, Last { slot, end });
        }
        self.summary.most_held = self.summary.most_held.max(self.scene.nodes.live());
        self.touched.clear();
        for at in 0..transaction.operations.len() {
            self.operation(transaction, slot, at)?;
        }
        let keys = self.lists.len() + self.registers.len() + self.counters.len();
        self.summary.most_keys = self.summary.most_keys.max(keys);
        Ok(())
    }

    /// Gives the transaction before this one in its session.
    fn follow(&mut self, party: &Party) -> Result<u32, String> {
        match self.sessions.entry(party.session) {
            Entry::Vacant(place) => {
                place.insert(Last { slot: NOBODY, end: party.end });
                Ok(NOBODY)
            }
            Entry::Occupied(mut place) => {
                let last = place.get_mut();
                if party.begin < last.end {
                    return Err(format!(
                        "transaction {} of session {} begins at {}, before the one before it ended at {}",
                        party.number, party.session, party.begin, last.end
                    ));
                }
                last.end = party.end;
                Ok(last.slot)
            }
        }
    }

    /// Takes what it did to counters and accounts.
    fn numbers(&mut self, transaction: &Transaction, party: Party) {
        let outcome = transaction.outcome;
        for operation in &transaction.operations {
            match *operation {
                Operation::Add { key, amount } if self.options.order == Order::RealTime => {
                    let counter: &mut Counter = self.counters.entry(key).or_default();
                    counter.add(&mut self.scene, &party, amount, outcome);
                }
                Operation::Count { key, value }
                    if outcome == Outcome::Committed && self.options.order == Order::RealTime =>
                {
                    let counter: &mut Counter = self.counters.entry(key).or_default();
                    counter.read(&mut self.scene, party, value);
                }
                Operation::Balances { first, length } if outcome == Outcome::Committed => {
                    let balances = transaction.elements(first, length).iter();
                    let sum = balances.fold(0_i64, |sum, it| sum.saturating_add(it.cast_signed()));
                    let total = *self.options.total.get_or_insert(sum);
                    let accounts = *self.accounts.get_or_insert(length);
                    if sum != total || length != accounts {
                        let why = Why::Balances { accounts: length, of: accounts, sum, total };
                        self.scene.found.add(Anomaly::Total, Order::None, vec![party], vec![why]);
                    }
                }
                _ => (),
            }
        }
    }

    fn operation(&mut self, transaction: &Transaction, slot: u32, at: usize) -> Result<(), String> {
        let operation = &transaction.operations[at];
        let Some((key, register)) = item(operation) else { return Ok(()) };
        let write = writes(operation);
        if !write && transaction.outcome != Outcome::Committed {
            return Ok(());
        }
        let known = self.touched.iter().position(|it| it.key == key && it.register == register);
        let place = known.unwrap_or_else(|| {
            self.touched.push(Touched { key, register, wrote: false, seen: None, read: None });
            self.touched.len() - 1
        });
        let touched = self.touched[place];
        if !write && !consistent(transaction, at, &touched) {
            self.scene.value(Anomaly::Internal, slot, NOBODY, key, read_value(transaction, at));
        }
        let intermediate = write
            && transaction.operations[at + 1..]
                .iter()
                .any(|it| writes(it) && item(it) == Some((key, register)));
        let seen = if register {
            self.register(slot, operation, intermediate, &touched)?
        } else {
            self.list(transaction, slot, operation, intermediate, &touched)?
        };
        let touched = &mut self.touched[place];
        if write {
            touched.wrote = true;
        } else {
            touched.seen = if touched.wrote || touched.read.is_some() { touched.seen } else { seen };
            touched.read = Some(at);
        }
        Ok(())
    }

    fn list(
        &mut self,
        transaction: &Transaction,
        slot: u32,
        operation: &Operation,
        intermediate: bool,
        touched: &Touched,
    ) -> Result<Option<u32>, String> {
        let key = touched.key;
        let list = match self.lists.entry(key) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(place) => {
                if self.retired_lists.contains(key) {
                    self.scene.late += 1;
                    return Ok(None);
                }
                place.insert(List::new(key))
            }
        };
        if list.settled {
            self.scene.late += 1;
            return Ok(None);
        }
        list.touched = list.touched.max(transaction.end);
        match *operation {
            Operation::Append { value, .. } => {
                list.append(&mut self.scene, slot, value, intermediate)?;
                if let Some(seen) = touched.seen.filter(|_| !touched.wrote)
                    && transaction.outcome == Outcome::Committed
                {
                    list.update(&mut self.scene, slot, seen);
                }
                Ok(None)
            }
            Operation::List { first, length, .. } => {
                Ok(list.read(&mut self.scene, slot, transaction.elements(first, length)))
            }
            _ => Ok(None),
        }
    }

    fn register(
        &mut self,
        slot: u32,
        operation: &Operation,
        intermediate: bool,
        touched: &Touched,
    ) -> Result<Option<u32>, String> {
        let key = touched.key;
        let register = self.registers.entry(key).or_insert_with(|| Register::new(key));
        match *operation {
            Operation::Write { value, .. } => {
                let seen = touched.seen.filter(|_| !touched.wrote);
                let before = seen.filter(|_| self.options.reads_before_writes);
                register.write(&mut self.scene, slot, value, intermediate, before)?;
                if let Some(seen) = seen {
                    register.update(&mut self.scene, slot, seen);
                }
                Ok(None)
            }
            Operation::Read { value, .. } => Ok(Some(register.read(&mut self.scene, slot, value))),
            _ => Ok(None),
        }
    }
}

/// A value that a read met: the last of a list.
fn read_value(transaction: &Transaction, at: usize) -> u64 {
    match transaction.operations[at] {
        Operation::List { first, length, .. } => {
            transaction.elements(first, length).last().copied().unwrap_or_default()
        }
        Operation::Read { value, .. } => value.unwrap_or_default(),
        _ => 0,
    }
}

/// Whether a read agrees with what its transaction has read and written before, and does not see what it writes later.
fn consistent(transaction: &Transaction, at: usize, touched: &Touched) -> bool {
    let operations = &transaction.operations;
    let since = touched.read.map_or(0, |read| read + 1);
    match operations[at] {
        Operation::List { key, first, length } => {
            let list = transaction.elements(first, length);
            let later = operations[at + 1..].iter().any(
                |it| matches!(it, Operation::Append { key: of, value } if *of == key && list.contains(value)),
            );
            let own = operations[since..at].iter().filter_map(|it| match it {
                Operation::Append { key: of, value } if *of == key => Some(*value),
                _ => None,
            });
            let appended = own.clone().count();
            let Some(rest) = list.len().checked_sub(appended) else { return false };
            let before = touched.read.map(|read| match operations[read] {
                Operation::List { first, length, .. } => transaction.elements(first, length),
                _ => &[],
            });
            !later && own.eq(list[rest..].iter().copied()) && before.is_none_or(|it| *it == list[..rest])
        }
        Operation::Read { key, value } => {
            let later = operations[at + 1..].iter().any(
                |it| matches!(it, Operation::Write { key: of, value: own } if *of == key && Some(*own) == value),
            );
            let own = operations[since..at].iter().rev().find_map(|it| match it {
                Operation::Write { key: of, value } if *of == key => Some(Some(*value)),
                _ => None,
            });
            let before = touched.read.and_then(|read| match operations[read] {
                Operation::Read { value, .. } => Some(value),
                _ => None,
            });
            !later && own.or(before).is_none_or(|it| it == value)
        }
        _ => true,
    }
}
