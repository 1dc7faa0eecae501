//! What is known of each segment's log: which LSNs there are, and who has acknowledged them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The LSNs of a set: all up to one, and some beyond it.
#[derive(Clone, Debug, Default)]
struct Frontier {
    complete: u64,
    beyond: BTreeSet<u64>,
}

impl Frontier {
    fn add(&mut self, lsn: u64) {
        if lsn > self.complete {
            self.beyond.insert(lsn);
        }
        while self.beyond.remove(&(self.complete + 1)) {
            self.complete += 1;
        }
    }

    fn contains(&self, lsn: u64) -> bool {
        lsn <= self.complete || self.beyond.contains(&lsn)
    }
}

/// A segment's log.
#[derive(Debug)]
struct Track {
    last: u64,
    /// What a quorum has.
    durable: Frontier,
    /// What each replica has.
    replicas: Vec<Frontier>,
    /// How many have acknowledged an LSN that no quorum has yet.
    acknowledged: BTreeMap<u64, usize>,
}

/// The logs of all segments, in the order of the layout.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    tracks: Vec<Mutex<Track>>,
    quorum: usize,
}

impl Tracks {
    pub(super) fn new(segments: usize, replicas: usize, quorum: usize) -> Self {
        let track = || {
            Mutex::new(Track {
                last: 0,
                durable: Frontier::default(),
                replicas: vec![Frontier::default(); replicas],
                acknowledged: BTreeMap::new(),
            })
        };
        Self { tracks: (0..segments).map(|_| track()).collect(), quorum }
    }

    fn track(&self, place: usize) -> MutexGuard<'_, Track> {
        self.tracks[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The LSN of the next record of a segment.
    pub(super) fn next(&self, place: usize) -> u64 {
        let mut track = self.track(place);
        track.last += 1;
        track.last
    }

    /// A replica has a record.
    pub(super) fn acknowledge(&self, place: usize, replica: usize, lsn: u64) {
        let mut track = self.track(place);
        let track = &mut *track;
        if track.replicas[replica].contains(lsn) {
            return;
        }
        track.replicas[replica].add(lsn);
        if track.durable.contains(lsn) {
            return;
        }
        let count = track.acknowledged.entry(lsn).or_default();
        *count += 1;
        if *count >= self.quorum {
            track.acknowledged.remove(&lsn);
            track.durable.add(lsn);
        }
    }

    /// The LSN up to which a quorum has every record, and up to which each replica is known to have.
    pub(super) fn read_point(&self, place: usize) -> (u64, [u64; 3]) {
        let track = self.track(place);
        let mut known = [0; 3];
        for (known, replica) in known.iter_mut().zip(&track.replicas) {
            *known = replica.complete;
        }
        (track.durable.complete, known)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_read_point_is_what_a_quorum_has_without_a_gap(
            acknowledged in prop::collection::vec((0_usize..3, 1_u64..12), 0..60),
            quorum in 1_usize..4,
        ) {
            let tracks = Tracks::new(2, 3, quorum);
            for lsn in 1..12 {
                prop_assert_eq!(tracks.next(1), lsn);
            }
            let mut model = vec![BTreeSet::new(); 3];
            for (replica, lsn) in acknowledged {
                tracks.acknowledge(1, replica, lsn);
                model[replica].insert(lsn);
                let has = |lsn: &u64| model.iter().filter(|one| one.contains(lsn)).count() >= quorum;
                let durable = (1..12).take_while(has).count() as u64;
                let of = |one: &BTreeSet<u64>| (1..12).take_while(|lsn| one.contains(lsn)).count() as u64;
                let known = [of(&model[0]), of(&model[1]), of(&model[2])];
                prop_assert_eq!(tracks.read_point(1), (durable, known));
            }
            prop_assert_eq!(tracks.read_point(0), (0, [0; 3]));
        }
    }
}
