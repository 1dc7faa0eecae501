//! Which commits a statement came after: those of other sessions' transactions that touched what it touches.
//!
//! Events are gone through in the order in which they ended. Every edge leads back in that order, so there is no circle.
//! Of each part only the newest transactions are known: each of them comes after those before it, because a commit
//! comes after the commits of its parts as well.

use std::collections::HashMap;

use crate::keys::Key;

/// The transactions that touched a part last.
#[derive(Debug, Default)]
struct Newest {
    /// The one that wrote it, and its session.
    writer: Option<(u32, u32)>,
    /// Those that have read it since: one of each session.
    readers: Vec<(u32, u32)>,
}

/// What is known of a transaction that has not ended.
#[derive(Debug, Default)]
struct Open {
    keys: Vec<Key>,
    after: Vec<u32>,
}

/// A statement in the order of ends.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its row in the trace.
    pub row: usize,
    /// Its transaction.
    pub transaction: u32,
    /// Its session.
    pub session: u32,
    /// It is the last of its transaction.
    pub ends_transaction: bool,
}

/// The keys of all statements of a trace, row by row.
#[derive(Debug, Default)]
pub struct Order {
    keys: Vec<Key>,
    ends: Vec<usize>,
    parts: HashMap<u64, Newest>,
    open: HashMap<u32, Open>,
}

impl Order {
    /// Adds the keys of the next statement.
    pub fn push(&mut self, keys: Vec<Key>) {
        self.keys.extend(keys);
        self.ends.push(self.keys.len());
    }

    /// How many statements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Goes to the next statement in the order of ends; gives the transactions that it comes after, unless an earlier
    /// statement of its transaction does so.
    pub fn step(&mut self, step: Step) -> Vec<u32> {
        let from = step.row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let own = &self.keys[from..self.ends[step.row]];
        let mut open = self.open.remove(&step.transaction).unwrap_or_default();
        for key in own {
            match open.keys.iter_mut().find(|known| known.part == key.part) {
                Some(known) => known.writes |= key.writes,
                None => open.keys.push(*key),
            }
        }
        let mut after = Vec::new();
        // A commit comes after others' of all parts of its transaction.
        let looked_up = if step.ends_transaction { &open.keys[..] } else { own };
        for key in looked_up {
            let Some(newest) = self.parts.get(&key.part) else { continue };
            let readers = newest.readers.iter().filter(|_| key.writes);
            for (transaction, session) in newest.writer.iter().chain(readers) {
                if *session != step.session && !open.after.contains(transaction) {
                    open.after.push(*transaction);
                    after.push(*transaction);
                }
            }
        }
        if step.ends_transaction {
            self.publish(step, &open.keys);
        } else {
            self.open.insert(step.transaction, open);
        }
        after
    }

    fn publish(&mut self, step: Step, keys: &[Key]) {
        let own = (step.transaction, step.session);
        for key in keys {
            let newest = self.parts.entry(key.part).or_default();
            if key.writes {
                *newest = Newest { writer: Some(own), readers: Vec::new() };
            } else {
                newest.readers.retain(|(_, session)| *session != step.session);
                newest.readers.push(own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: &[Key] = &[Key { part: 7, writes: true }];
    const READS: &[Key] = &[Key { part: 7, writes: false }];

    /// Statements of a transaction and a session, their keys, and whether they end it; gives what each comes after.
    fn after(statements: &[(u32, u32, &[Key], bool)]) -> Vec<Vec<u32>> {
        let mut order = Order::default();
        for (_, _, keys, _) in statements {
            order.push(keys.to_vec());
        }
        let steps = statements.iter().enumerate().map(|(row, (transaction, session, _, ends))| Step {
            row,
            transaction: *transaction,
            session: *session,
            ends_transaction: *ends,
        });
        steps.map(|step| order.step(step)).collect()
    }

    #[test]
    fn a_statement_comes_after_the_commits_of_what_it_touches() {
        let found = after(&[
            (0, 0, WRITES, false),
            (0, 0, &[], true),
            (1, 1, READS, true),
            (2, 2, READS, true),
            (3, 3, WRITES, false),
            (4, 0, &[], true),
            (3, 3, &[], true),
            (5, 3, WRITES, true),
            (6, 4, &[Key { part: 8, writes: true }], true),
        ]);
        assert_eq!(found, [vec![], vec![], vec![0], vec![0], vec![0, 1, 2], vec![], vec![], vec![], vec![]]);
    }

    #[test]
    fn commits_of_transactions_side_by_side_keep_their_order() {
        let found = after(&[
            (0, 0, WRITES, false),
            (1, 1, WRITES, false),
            (0, 0, &[], true),
            (1, 1, &[], true),
            (2, 2, WRITES, true),
        ]);
        assert_eq!(found, [vec![], vec![], vec![], vec![0], vec![1]]);
    }
}
