//! Which commits a statement came after: those of other sessions' transactions that touched what it touches.
//!
//! Statements are gone through in the order in which they ended. Who writes a part comes after those who have written it
//! before, if they committed before: a lock had made it wait for them. When a commit ended, a log tells later than that
//! its locks were free, so a statement that waited for it may stand before it. Queries come after the writers that had
//! committed, and writers after the queries whose transactions had ended.
//!
//! Every transaction comes after such as committed before it, so there is no circle; and of each part only those are
//! remembered that the last ones do not come after.

use std::collections::HashMap;

use crate::keys::Key;

/// A transaction that has touched a part.
#[derive(Clone, Copy, Debug)]
struct Toucher {
    transaction: u32,
    session: u32,
    /// Where its commit stands in the order of ends.
    ended: usize,
}

/// The transactions that touched a part last.
#[derive(Debug, Default)]
struct Newest {
    /// In the order in which they first wrote it.
    writers: Vec<Toucher>,
    /// Those that have read it and ended: one of each session.
    readers: Vec<Toucher>,
}

/// What is known of a transaction that has not ended.
#[derive(Debug, Default)]
struct Open {
    /// The parts that it touches, and where its last statement stands that wrote each.
    parts: Vec<(u64, Option<usize>)>,
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

    /// Gives for each of some statements, in the order of their ends, the transactions that it comes after, unless an
    /// earlier statement of its transaction does so.
    #[must_use]
    pub fn after(&self, steps: &[Step]) -> Vec<Vec<u32>> {
        let commits = steps.iter().enumerate().filter(|(_, step)| step.ends_transaction);
        let mut course =
            Course { ended: commits.map(|(at, step)| (step.transaction, at)).collect(), ..Course::default() };
        let keys = |row: usize| {
            let from = row.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.keys[from..self.ends[row]]
        };
        steps.iter().enumerate().map(|(at, step)| course.step(at, *step, keys(step.row))).collect()
    }
}

/// The statements so far.
#[derive(Default)]
struct Course {
    /// Where the commit of each transaction stands.
    ended: HashMap<u32, usize>,
    parts: HashMap<u64, Newest>,
    open: HashMap<u32, Open>,
}

impl Course {
    fn step(&mut self, at: usize, step: Step, keys: &[Key]) -> Vec<u32> {
        let ended = self.ended.get(&step.transaction).copied().unwrap_or(usize::MAX);
        let own = Toucher { transaction: step.transaction, session: step.session, ended };
        let open = self.open.entry(step.transaction).or_default();
        let mut after = Vec::new();
        for key in keys {
            let newest = self.parts.entry(key.part).or_default();
            let limit = if key.writes { ended } else { at };
            let writers = newest.writers.iter().filter(|writer| writer.ended < limit);
            let readers = newest.readers.iter().filter(|_| key.writes);
            for found in writers.chain(readers) {
                if found.session != step.session && !open.after.contains(&found.transaction) {
                    open.after.push(found.transaction);
                    after.push(found.transaction);
                }
            }
            if key.writes && !newest.writers.iter().any(|writer| writer.transaction == step.transaction) {
                newest.writers.push(own);
            }
            let wrote = key.writes.then_some(at);
            match open.parts.iter_mut().find(|(part, _)| *part == key.part) {
                Some((_, known)) => *known = wrote.or(*known),
                None => open.parts.push((key.part, wrote)),
            }
        }
        if step.ends_transaction {
            self.end(at, own);
        }
        after
    }

    /// Ends a transaction: whoever comes after it comes after those that it came after, too.
    fn end(&mut self, at: usize, own: Toucher) {
        for (part, wrote) in self.open.remove(&own.transaction).unwrap_or_default().parts {
            let newest = self.parts.entry(part).or_default();
            if let Some(wrote) = wrote {
                let mut before = true;
                newest.writers.retain(|writer| {
                    before &= writer.transaction != own.transaction;
                    !before || writer.ended >= at
                });
                newest.readers.retain(|reader| reader.ended >= wrote);
            } else {
                newest.readers.retain(|reader| reader.session != own.session);
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
        order.after(&steps.collect::<Vec<_>>())
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
        assert_eq!(found, [vec![], vec![0], vec![], vec![], vec![1]]);
    }

    #[test]
    fn a_commit_that_is_told_too_late_waits_for_nobody_who_waited_for_it() {
        let found = after(&[
            (0, 0, WRITES, false),
            (1, 1, WRITES, false),
            (1, 1, &[], true),
            (0, 0, &[], true),
            (2, 2, WRITES, true),
        ]);
        assert_eq!(found, [vec![], vec![], vec![], vec![], vec![0, 1]]);
    }

    /// Some transactions of three statements in as many sessions, in one of all orders.
    fn shuffled(transactions: u32, mut number: u64) -> Vec<(u32, u32, &'static [Key], bool)> {
        let mut draw = |below: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % below
        };
        let (mut left, mut found) = ((0..transactions).map(|of| (of, 3)).collect::<Vec<_>>(), Vec::new());
        while !left.is_empty() {
            let at = draw(left.len() as u64) as usize;
            let (of, more) = &mut left[at];
            *more -= 1;
            let keys: &[Key] = [&[][..], READS, WRITES][draw(3) as usize];
            found.push((*of, *of, keys, *more == 0));
            if *more == 0 {
                left.remove(at);
            }
        }
        found
    }

    #[test]
    fn whoever_comes_after_another_commits_after_it_and_all_writers_are_in_order() {
        for number in 0..2000 {
            let statements = shuffled(6, number);
            let found = after(&statements);
            let end = |of: u32| statements.iter().position(|(own, _, _, ends)| *own == of && *ends).unwrap();
            let mut reached = vec![vec![false; 6]; 6];
            let mut order: Vec<u32> = (0..6).collect();
            order.sort_by_key(|of| end(*of));
            for of in order {
                let own = statements.iter().zip(&found).filter(|((own, ..), _)| *own == of);
                for after in own.flat_map(|(_, after)| after.iter().copied()) {
                    assert!(end(after) < end(of), "{statements:?}");
                    let through = reached[after as usize].clone();
                    reached[of as usize][after as usize] = true;
                    for (known, also) in reached[of as usize].iter_mut().zip(through) {
                        *known |= also;
                    }
                }
            }
            for (at, (of, _, keys, _)) in statements.iter().enumerate() {
                let wrote = |(own, _, keys, _): &&(u32, u32, &[Key], bool)| own != of && *keys == WRITES;
                for (before, ..) in statements[..at].iter().filter(wrote).filter(|_| *keys == WRITES) {
                    let is_after = reached[*of as usize][*before as usize];
                    assert!(is_after || end(*before) > end(*of), "{of} {before}: {statements:?}");
                }
            }
        }
    }
}
