//! Markers of the lag probe: what is committed, and to which rows.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use nephoscope_runtime::clock::{self, Nanos};

use crate::probes::lane::Endpoint;
use crate::probes::sample::{Journal, Kind, Outcome, Sample};
use crate::probes::spec::LagSpec;

/// The kinds in their turn.
pub(crate) const KINDS: [Kind; 3] = [Kind::Insert, Kind::Update, Kind::Delete];

/// What became of a marker's commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    Sent,
    /// Since when it was acknowledged.
    Acknowledged(Nanos),
    /// It failed, or nobody knows.
    Failed,
}

/// A marker: one change of one row, on its way to the replicas.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(crate) kind: Kind,
    pub(crate) row: i64,
    /// Its number among all markers: the row's from now on.
    pub(crate) number: u64,
    pub(crate) sent: Nanos,
    pub(crate) commit: Cell<Commit>,
}

impl Marker {
    /// One that is sent now, and its row.
    pub(crate) fn new(number: u64, (kind, row): (Kind, i64)) -> Self {
        Self { kind, row, number, sent: clock::now(), commit: Cell::new(Commit::Sent) }
    }

    /// The number that its row has from now on.
    pub(crate) fn value(&self) -> i64 {
        self.number as i64
    }
}

/// Which row is changed next. Each is inserted, updated and deleted, in turns that lie further apart than a marker is
/// looked for: so replicas have seen a row before its deletion is looked for, and that it is not there says something.
#[derive(Debug)]
pub(crate) struct Stock {
    next: i64,
    to_update: VecDeque<i64>,
    to_delete: VecDeque<i64>,
}

impl Stock {
    /// A stock for so many turns of all kinds; the rows up to [`Stock::last`] are there from the beginning.
    pub(crate) fn new(turns: i64) -> Self {
        Self {
            next: 2 * turns + 1,
            to_update: (turns + 1..=2 * turns).collect(),
            to_delete: (1..=turns).collect(),
        }
    }

    /// The last row that was given out or is there from the beginning.
    pub(crate) fn last(&self) -> i64 {
        self.next - 1
    }

    /// The row that a marker of a kind changes. Where failed commits have used up the rows, it is an insertion instead.
    pub(crate) fn take(&mut self, kind: Kind) -> (Kind, i64) {
        let row = match kind {
            Kind::Update => self.to_update.pop_front(),
            Kind::Delete => self.to_delete.pop_front(),
            _ => None,
        };
        row.map_or_else(
            || {
                self.next += 1;
                (Kind::Insert, self.next - 1)
            },
            |row| (kind, row),
        )
    }

    /// A marker was committed: its row has its next turn.
    pub(crate) fn committed(&mut self, marker: &Marker) {
        match marker.kind {
            Kind::Insert => self.to_update.push_back(marker.row),
            Kind::Update => self.to_delete.push_back(marker.row),
            _ => {}
        }
    }
}

/// What the tasks of the lag probe have in common.
pub(crate) struct Common {
    pub(crate) spec: LagSpec,
    pub(crate) journal: Rc<Journal>,
    /// No marker is looked for beyond.
    pub(crate) stops: Cell<Nanos>,
}

impl Common {
    /// Adds a marker's sample, which is complete now but for `end`.
    pub(crate) fn add(&self, marker: &Marker, endpoint: &Endpoint, sample: &Found) {
        self.journal.add(Sample {
            kind: marker.kind,
            endpoint: endpoint.index,
            number: marker.number,
            time: sample.time,
            sent: Some(marker.sent),
            end: Some(sample.end),
            outcome: sample.outcome,
            lower: sample.bounds.0,
            upper: sample.bounds.1,
            polls: sample.polls,
        });
    }

    /// A marker that was not sent has a sample on the endpoint that takes writes.
    pub(crate) fn add_unsent(&self, marker: &Marker, endpoint: &Endpoint, due: Nanos) {
        self.journal.add(Sample {
            kind: marker.kind,
            endpoint: endpoint.index,
            number: marker.number,
            time: due,
            sent: None,
            end: None,
            outcome: Outcome::Missing,
            lower: None,
            upper: None,
            polls: 0,
        });
    }

    /// Until when a marker is looked for that was acknowledged at a time.
    pub(crate) fn patience(&self, acknowledged: Nanos) -> Nanos {
        (acknowledged + self.spec.limit()).min(self.stops.get())
    }
}

/// How a marker ended.
pub(crate) struct Found {
    pub(crate) time: Nanos,
    pub(crate) end: Nanos,
    pub(crate) outcome: Outcome,
    pub(crate) bounds: (Option<Nanos>, Option<Nanos>),
    pub(crate) polls: u64,
}

impl Found {
    /// It failed on the endpoint that takes writes: there is no lag.
    pub(crate) fn failed(time: Nanos, outcome: Outcome) -> Self {
        Self { time, end: clock::now(), outcome, bounds: (None, None), polls: 0 }
    }
}

/// Wakes one task, again and again.
#[derive(Default)]
pub(crate) struct Notify {
    notified: Cell<bool>,
    waiting: Cell<Option<Waker>>,
}

impl Notify {
    pub(crate) fn notify(&self) {
        self.notified.set(true);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// Waits until it is notified, or has been since the last wait.
    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            if self.notified.replace(false) {
                return Poll::Ready(());
            }
            self.waiting.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_inserted_updated_and_deleted_so_many_turns_apart() {
        let mut stock = Stock::new(3);
        assert_eq!(stock.last(), 6);
        let mut turns: [Vec<i64>; 3] = Default::default();
        for _ in 0..9 {
            for (kind, rows) in KINDS.into_iter().zip(&mut turns) {
                let taken = Marker::new(0, stock.take(kind));
                assert_eq!(taken.kind, kind);
                rows.push(taken.row);
                stock.committed(&taken);
            }
        }
        let [inserted, updated, deleted] = turns;
        assert_eq!(inserted, (7..16).collect::<Vec<_>>());
        assert_eq!(updated, (4..13).collect::<Vec<_>>());
        assert_eq!(deleted, (1..10).collect::<Vec<_>>());
    }

    #[test]
    fn rows_that_failed_commits_have_used_up_are_inserted_anew() {
        let mut stock = Stock::new(1);
        let taken: Vec<(Kind, i64)> = [Kind::Delete, Kind::Delete, Kind::Update, Kind::Update]
            .into_iter()
            .map(|kind| stock.take(kind))
            .collect();
        let expected = [(Kind::Delete, 1), (Kind::Insert, 3), (Kind::Update, 2), (Kind::Insert, 4)];
        assert_eq!(taken, expected);
    }
}
