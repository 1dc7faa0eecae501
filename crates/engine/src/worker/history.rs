//! A worker's part of the history: transactions that have observed something, in boxes that travel by channel to whoever
//! checks them, and back.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use nephoscope_histories::Transaction;
use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::MILLISECOND;

/// So many transactions fit in a box.
const BOX: usize = 256;
/// A worker has so many boxes at the most: where all are on their way, the checker cannot keep up.
const BOXES: usize = 128;
/// A box is sent no later than this after its first transaction, if another comes.
const LONGEST: Nanos = 100 * MILLISECOND;

/// A session's number holds its tenant's place above these bits: tenants have 100,000 sessions at the most.
pub(crate) const SESSION_BITS: u32 = 17;

/// Transactions in the order in which they ended. What is beyond `used` is there for its memory.
#[derive(Default)]
pub(crate) struct Batch {
    transactions: Vec<Transaction>,
    used: usize,
}

impl Batch {
    pub(crate) fn transactions(&mut self) -> &mut [Transaction] {
        &mut self.transactions[..self.used]
    }
}

/// What a worker sends to the checker.
pub(crate) enum Parcel {
    /// Transactions of a worker.
    Box(usize, Box<Batch>),
    /// What a worker's transactions begin from here on is a history of its own; since the start of the load.
    Mark(usize, Nanos),
    /// The run is over: nothing that counts comes any more.
    End,
}

/// When the checker could no longer keep up, since the start of the load: nothing is recorded from then on, by any worker.
#[derive(Clone)]
pub(crate) struct Cut(Arc<AtomicU64>);

impl Default for Cut {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Cut {
    pub(crate) fn at(&self) -> Option<Nanos> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at < u64::MAX)
    }

    fn now(&self, at: Nanos) {
        self.0.fetch_min(at, Ordering::Relaxed);
    }
}

/// The way from a worker to the checker.
pub(crate) struct HistoryRecorder {
    worker: usize,
    parcels: Sender<Parcel>,
    used: Receiver<Box<Batch>>,
    cut: Cut,
    open: Option<Box<Batch>>,
    made: usize,
    /// When the first transaction of the open box ended.
    since: Nanos,
}

impl HistoryRecorder {
    pub(crate) fn new(worker: usize, parcels: Sender<Parcel>, used: Receiver<Box<Batch>>, cut: Cut) -> Self {
        Self { worker, parcels, used, cut, open: None, made: 0, since: 0 }
    }

    /// Takes a transaction, and leaves another in its place to be used again.
    pub(crate) fn take(&mut self, transaction: &mut Transaction) {
        if self.cut.at().is_some() {
            return;
        }
        let end = transaction.end;
        let Some(batch) = self.open.take().or_else(|| self.fresh(end)) else { return };
        let batch = self.open.insert(batch);
        if batch.used == 0 {
            self.since = end;
        }
        if batch.used == batch.transactions.len() {
            batch.transactions.push(Transaction::default());
        }
        std::mem::swap(&mut batch.transactions[batch.used], transaction);
        transaction.restart(0, 0, 0);
        batch.used += 1;
        if batch.used == BOX || end.saturating_sub(self.since) > LONGEST {
            self.flush();
        }
    }

    fn fresh(&mut self, now: Nanos) -> Option<Box<Batch>> {
        if let Ok(mut batch) = self.used.try_recv() {
            batch.used = 0;
            return Some(batch);
        }
        if self.made == BOXES {
            self.cut.now(now);
            return None;
        }
        self.made += 1;
        Some(Box::default())
    }

    /// Sends what there is.
    pub(crate) fn flush(&mut self) {
        if let Some(batch) = self.open.take_if(|batch| batch.used > 0) {
            // The receiver is gone only when the run was given up.
            let _ = self.parcels.send(Parcel::Box(self.worker, batch));
        }
    }

    /// A history of its own begins.
    pub(crate) fn mark(&mut self, at: Nanos) {
        self.flush();
        let _ = self.parcels.send(Parcel::Mark(self.worker, at));
    }
}

/// The history of a worker, where the load has one.
pub(super) struct OwnHistory(RefCell<Option<HistoryRecorder>>);

impl OwnHistory {
    pub(super) fn new(recorder: Option<HistoryRecorder>) -> Self {
        Self(RefCell::new(recorder))
    }

    /// Takes a transaction of a tenant's session, whose times are on the monotonic clock; the load began at `origin`.
    pub(super) fn take(&self, tenant: usize, session: usize, origin: Nanos, observed: &mut Transaction) {
        let Some(history) = &mut *self.0.borrow_mut() else { return };
        observed.session = (tenant as u32) << SESSION_BITS | session as u32;
        observed.begin = observed.begin.saturating_sub(origin);
        observed.end = observed.end.saturating_sub(origin);
        history.take(observed);
    }

    pub(super) fn mark(&self, at: Nanos) {
        self.0.borrow_mut().iter_mut().for_each(|history| history.mark(at));
    }

    pub(super) fn flush(&self) {
        self.0.borrow_mut().iter_mut().for_each(HistoryRecorder::flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn ended(end: Nanos) -> Transaction {
        Transaction { end, ..Transaction::default() }
    }

    #[test]
    fn boxes_go_and_come_back_and_too_few_of_them_end_the_history() {
        let ((parcels, sent), (back, used), cut) = (channel(), channel(), Cut::default());
        let mut recorder = HistoryRecorder::new(3, parcels, used, cut.clone());
        for end in 0..(BOX * BOXES) as u64 {
            recorder.take(&mut ended(end / 1000));
        }
        assert_eq!(cut.at(), None);
        let mut boxes: Vec<Box<Batch>> = sent
            .try_iter()
            .map(|parcel| match parcel {
                Parcel::Box(3, batch) => batch,
                _ => panic!("no box of the worker"),
            })
            .collect();
        assert_eq!(boxes.iter_mut().map(|batch| batch.transactions().len()).sum::<usize>(), BOX * BOXES);
        back.send(boxes.remove(0)).unwrap();
        recorder.take(&mut ended(70));
        recorder.mark(80);
        assert!(matches!(sent.try_recv(), Ok(Parcel::Box(3, _))));
        assert!(matches!(sent.try_recv(), Ok(Parcel::Mark(3, 80))));
        recorder.take(&mut ended(90));
        assert_eq!(cut.at(), Some(90));
        back.send(boxes.remove(0)).unwrap();
        recorder.take(&mut ended(100));
        recorder.flush();
        assert!(sent.try_recv().is_err(), "a history has no hole");
    }
}
