//! When a write is to be seen: t-visibility of each write on each node, between two reads.

use std::collections::VecDeque;

use nephoscope_runtime::Nanos;

/// A write that is looked for on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) version: i64,
    /// Its number among all writes.
    pub(crate) number: u64,
    pub(crate) sent: Nanos,
    pub(crate) acknowledged: Option<Nanos>,
    /// When the last read was sent that did not see it.
    unseen: Option<Nanos>,
    /// When the first read was answered that saw it, of those since.
    seen: Option<Nanos>,
    /// How many reads could have seen it until then.
    pub(crate) reads: u64,
}

impl Write {
    /// When it was seen first, if it was, and the bounds of the time from the acknowledgement to then.
    pub(crate) fn found(&self, acknowledged: Nanos) -> (Option<Nanos>, (Option<Nanos>, Option<Nanos>)) {
        let since = |time: Nanos| time.saturating_sub(acknowledged);
        (self.seen, (Some(self.unseen.map_or(0, since)), self.seen.map(since)))
    }
}

/// The writes of a register that are looked for on a node, in the order of their versions.
///
/// A read that sees a version sees all before it. So those that are seen come first, and a read passes over the others
/// alone.
#[derive(Debug, Default)]
pub(crate) struct Watch(VecDeque<Write>);

impl Watch {
    pub(crate) fn sent(&mut self, version: i64, number: u64, sent: Nanos) {
        self.0.push_back(Write {
            version,
            number,
            sent,
            acknowledged: None,
            unseen: None,
            seen: None,
            reads: 0,
        });
    }

    pub(crate) fn acknowledge(&mut self, version: i64, at: Nanos) {
        if let Some(write) = self.0.iter_mut().rfind(|write| write.version == version) {
            write.acknowledged = Some(at);
        }
    }

    /// A write has failed: it is looked for no more.
    pub(crate) fn forget(&mut self, version: i64) {
        self.0.retain(|write| write.version != version);
    }

    /// A read that was sent and answered then has seen a version.
    pub(crate) fn read(&mut self, version: i64, sent: Nanos, answered: Nanos) {
        for write in self.0.iter_mut().rev() {
            if write.version > version {
                if sent < write.sent {
                    continue;
                }
                write.reads += 1;
                write.unseen = write.unseen.max(Some(sent));
                // It was there, and is gone again: it is to be seen for good only later.
                write.seen = write.seen.filter(|seen| *seen > sent);
            } else if write.seen.is_none() {
                write.reads += 1;
                write.seen = Some(answered);
            } else {
                break;
            }
        }
    }

    /// Takes out what has been looked for long enough: all that was acknowledged until a time.
    pub(crate) fn take_until(&mut self, time: Nanos) -> Vec<(Nanos, Write)> {
        let mut taken = Vec::new();
        while let Some(write) = self.0.front()
            && let Some(at) = write.acknowledged.filter(|at| *at <= time)
        {
            taken.push((at, *write));
            self.0.pop_front();
        }
        taken
    }

    /// The writes that have no answer.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &Write> {
        self.0.iter().filter(|write| write.acknowledged.is_none())
    }

    /// Takes out everything; what was not acknowledged is gone.
    pub(crate) fn take_all(&mut self) -> Vec<(Nanos, Write)> {
        self.0.drain(..).filter_map(|write| Some((write.acknowledged?, write))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_write_is_visible_between_the_last_read_without_it_and_the_first_with_it() {
        let mut watch = Watch::default();
        watch.sent(5, 0, 100);
        watch.acknowledge(5, 110);
        for (version, sent, answered) in
            [(4, 90, 130), (4, 105, 112), (4, 115, 125), (5, 120, 124), (5, 130, 131)]
        {
            watch.read(version, sent, answered);
        }
        assert_eq!(watch.take_until(109), []);
        let taken = watch.take_until(110);
        assert_eq!(taken[0].1.found(110), (Some(124), (Some(5), Some(14))));
        assert_eq!(taken[0].1.reads, 3);
        // Visible before it was acknowledged: at once.
        watch.sent(6, 1, 200);
        watch.read(6, 201, 203);
        watch.acknowledge(6, 210);
        assert_eq!(watch.take_all()[0].1.found(210), (Some(203), (Some(0), Some(0))));
    }

    #[test]
    fn one_that_is_gone_again_is_visible_when_it_is_back() {
        let mut watch = Watch::default();
        watch.sent(2, 0, 10);
        watch.acknowledge(2, 20);
        for (version, sent, answered) in [(2, 22, 25), (1, 30, 33), (2, 40, 44), (2, 50, 55)] {
            watch.read(version, sent, answered);
        }
        assert_eq!(watch.take_all()[0].1.found(20), (Some(44), (Some(10), Some(24))));
        watch.sent(3, 1, 60);
        watch.sent(4, 2, 61);
        watch.acknowledge(3, 70);
        watch.read(2, 80, 90);
        watch.forget(4);
        let unseen = watch.take_all();
        assert_eq!((unseen.len(), unseen[0].1.found(70)), (1, (None, (Some(10), None))));
    }

    proptest! {
        /// Whatever the node's state is at some moment of each read, the planted visibility lies between the bounds.
        #[test]
        fn the_planted_moment_lies_between_the_bounds(
            shows in prop::collection::vec(0_u64..400, 1..20),
            reads in prop::collection::vec((0_u64..900, 1_u64..40, 0_u64..40), 1..200),
        ) {
            let mut watch = Watch::default();
            // Write n is sent at 20n, acknowledged 5 later, and shown some time after the one before.
            let mut shown = Vec::new();
            for (place, lag) in shows.iter().enumerate() {
                let sent = 20 * place as u64;
                watch.sent(place as i64 + 1, place as u64, sent);
                watch.acknowledge(place as i64 + 1, sent + 5);
                shown.push((sent + lag).max(shown.last().copied().unwrap_or(0)));
            }
            let mut reads: Vec<(u64, u64, u64)> =
                reads.into_iter().map(|(sent, took, at)| (sent, sent + took, sent + at % (took + 1))).collect();
            reads.sort_by_key(|(_, answered, _)| *answered);
            for (sent, answered, at) in reads {
                let version = shown.iter().filter(|shown| **shown <= at).count() as i64;
                watch.read(version, sent, answered);
            }
            for (at, write) in watch.take_all() {
                let planted = shown[write.number as usize].saturating_sub(at);
                let (_, (lower, upper)) = write.found(at);
                prop_assert!(lower.unwrap() <= planted, "{write:?}: {planted}");
                prop_assert!(upper.is_none_or(|upper| planted <= upper), "{write:?}: {planted}");
            }
        }
    }
}
