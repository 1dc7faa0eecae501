//! What the fuzz target `histories` calls, and a test with its seeds.

use crate::check::{Checker, Options};
use crate::finding::Order;
use crate::forms::{self, HEADER};
use crate::history::Transaction;

/// Reads a history; what was read says the same when it is written and read again, and checking it comes to an end.
///
/// # Panics
/// Where something of this does not hold.
pub fn histories(data: &[u8]) {
    let mut history: Vec<Transaction> = Vec::new();
    let keep = |transaction: &Transaction| {
        history.push(transaction.clone());
        Ok(())
    };
    let read = forms::read(data, keep);
    let mut text = format!("{HEADER}\n");
    for transaction in &history {
        forms::write_line(transaction, &mut text);
    }
    let mut again = Vec::new();
    let told = forms::read(text.as_bytes(), |transaction| {
        again.push(transaction.clone());
        Ok(())
    });
    assert_eq!(told.map(|told| told.transactions), Ok(history.len() as u64), "{read:?}");
    assert_eq!(again, history);
    let mut checker =
        Checker::new(Options { order: Order::RealTime, reads_before_writes: true, ..Options::default() });
    if history.iter().all(|transaction| checker.push(transaction).is_ok())
        && let Ok(summary) = checker.finish()
    {
        assert_eq!(summary.committed + summary.aborted + summary.unknown, history.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_fuzzers_seeds_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/histories");
        let mut seeds = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            super::histories(&std::fs::read(entry.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds > 4);
    }
}
