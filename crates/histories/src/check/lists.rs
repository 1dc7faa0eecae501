//! A list: its longest read gives the order of its versions, and every other read is its beginning.

use super::nodes::{NOBODY, Nodes, RETIRED, Scene, UNSEEN, live};
use crate::few::Few;
use crate::finding::{Anomaly, Order, Party, Why};
use crate::history::Outcome;

/// More readers times writers without an order than this are not joined one by one.
const MOST_PAIRS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Version {
    writer: u32,
    /// Who read it and appended then.
    updater: u32,
    /// Its writer appended more to the list.
    intermediate: bool,
}

#[derive(Clone, Copy, Debug)]
struct Appended {
    writer: u32,
    intermediate: bool,
}

#[derive(Clone, Copy, Debug)]
struct Unseen {
    place: u32,
    /// Who read it first.
    reader: Option<Party>,
}

#[derive(Debug)]
pub(crate) struct List {
    pub(crate) key: u64,
    values: Vec<u64>,
    versions: Vec<Version>,
    first_updater: u32,
    /// How many elements they saw, and who they are.
    readers: Vec<(u32, u32)>,
    /// Appended, and in no read yet.
    waiting: Few<Appended>,
    /// Read, and appended by nobody who has come yet.
    unseen: Few<Unseen>,
    first_aborted: u32,
    pub(crate) touched: u64,
    pub(crate) settled: bool,
}

impl List {
    pub(crate) fn new(key: u64) -> Self {
        Self {
            key,
            values: Vec::new(),
            versions: Vec::new(),
            first_updater: NOBODY,
            readers: Vec::new(),
            waiting: Few::default(),
            unseen: Few::default(),
            first_aborted: u32::MAX,
            touched: 0,
            settled: false,
        }
    }

    fn value(&self, place: u32) -> Option<u64> {
        place.checked_sub(1).map(|at| self.values[at as usize])
    }

    /// Takes an append.
    ///
    /// # Errors
    /// If the value was appended before.
    pub(crate) fn append(
        &mut self,
        scene: &mut Scene,
        slot: u32,
        value: u64,
        intermediate: bool,
    ) -> Result<(), String> {
        let appended = Appended { writer: slot, intermediate };
        let Some(Unseen { place, .. }) = self.unseen.remove(value) else {
            if self.waiting.get(value).is_some() {
                return Err(twice(self.key, value));
            }
            self.waiting.insert(value, appended);
            scene.nodes.all[slot as usize].unsettled += 1;
            return Ok(());
        };
        self.place(&scene.nodes, place as usize, appended);
        let aborted = scene.nodes.is(slot, Outcome::Aborted);
        let next = self.versions.get(place as usize + 1).map_or(NOBODY, |version| version.writer);
        if next == RETIRED || !self.readers.iter().any(|(seen, _)| *seen > place) {
            scene.late += 1;
        }
        for at in 0..self.readers.len() {
            let (seen, reader) = self.readers[at];
            if aborted && seen > place {
                scene.value(Anomaly::G1a, reader, slot, self.key, value);
            }
            if intermediate && seen == place + 1 && reader != slot {
                scene.value(Anomaly::G1b, reader, slot, self.key, value);
            }
        }
        Ok(())
    }

    fn place(&mut self, nodes: &Nodes, place: usize, appended: Appended) {
        self.versions[place].writer = appended.writer;
        self.versions[place].intermediate = appended.intermediate;
        if nodes.is(appended.writer, Outcome::Aborted) {
            self.first_aborted = self.first_aborted.min(place as u32);
        }
    }

    /// Takes a read of a transaction that has committed, and gives how many elements it saw.
    pub(crate) fn read(&mut self, scene: &mut Scene, slot: u32, list: &[u64]) -> Option<u32> {
        let common = self.values.len().min(list.len());
        if self.values[..common] != list[..common] {
            self.contradicts(scene, slot, list);
            return None;
        }
        if !self.extend(scene, slot, &list[common..]) {
            return None;
        }
        let seen = list.len() as u32;
        if seen > self.first_aborted {
            let place = self.first_aborted as usize;
            scene.value(Anomaly::G1a, slot, self.versions[place].writer, self.key, self.values[place]);
        }
        if let Some(last) = seen.checked_sub(1).map(|at| self.versions[at as usize])
            && last.intermediate
            && last.writer != slot
        {
            scene.value(Anomaly::G1b, slot, last.writer, self.key, list[list.len() - 1]);
        }
        if self.versions.get(seen as usize).is_some_and(|next| next.writer == RETIRED) {
            scene.late += 1;
        }
        if self.readers.last() != Some(&(seen, slot)) {
            self.readers.push((seen, slot));
        }
        Some(seen)
    }

    /// Takes the elements that no read has seen yet; false at one that is there already.
    fn extend(&mut self, scene: &mut Scene, slot: u32, new: &[u64]) -> bool {
        for value in new {
            let place = self.values.len();
            let appended = self.waiting.remove(*value);
            // Whatever waited was in no read, so only what did not wait can be there twice.
            if appended.is_none() && self.values.contains(value) {
                scene.value(Anomaly::Duplicate, slot, NOBODY, self.key, *value);
                return false;
            }
            self.values.push(*value);
            self.versions.push(Version { writer: UNSEEN, updater: NOBODY, intermediate: false });
            match appended {
                Some(appended) => {
                    self.place(&scene.nodes, place, appended);
                    scene.nodes.settled(appended.writer);
                }
                None => self
                    .unseen
                    .insert(*value, Unseen { place: place as u32, reader: scene.nodes.party(slot) }),
            }
        }
        true
    }

    /// Names what is wrong with a read that is not the beginning of another.
    fn contradicts(&mut self, scene: &mut Scene, slot: u32, list: &[u64]) {
        let at = (0..list.len()).find(|at| self.values.get(*at) != Some(&list[*at])).unwrap_or_default();
        let other = self.readers.iter().rev().find(|(seen, _)| *seen as usize > at).map_or(NOBODY, |it| it.1);
        let mut sorted = list.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            scene.value(Anomaly::Duplicate, slot, NOBODY, self.key, twice[0]);
            return;
        }
        let within = |short: &[u64], long: &[u64]| {
            let mut long = long.iter();
            short.iter().all(|value| long.any(|it| it == value))
        };
        if within(list, &self.values) {
            scene.value(Anomaly::Missing, slot, other, self.key, self.values[at]);
        } else if within(&self.values, list) {
            scene.value(Anomaly::Missing, other, slot, self.key, list[at]);
        } else {
            scene.value(Anomaly::IncompatibleOrder, slot, other, self.key, list[at]);
        }
    }

    /// Takes note that a transaction which saw so many elements has appended.
    pub(crate) fn update(&mut self, scene: &mut Scene, slot: u32, seen: u32) {
        let value = self.value(seen);
        let updater = match seen.checked_sub(1) {
            None => &mut self.first_updater,
            Some(at) => &mut self.versions[at as usize].updater,
        };
        match *updater {
            NOBODY => *updater = slot,
            RETIRED => scene.late += 1,
            other if other != slot => scene.lost_update(other, slot, self.key, value),
            _ => (),
        }
    }

    /// The list is used no more: what was appended and never read comes after all that was read.
    pub(crate) fn settle(&mut self, scene: &mut Scene) -> Result<(), String> {
        self.settled = true;
        for (value, unseen) in std::mem::take(&mut self.unseen).entries() {
            let why = Why::Value { key: self.key, value: *value };
            scene.found.add(Anomaly::Unwritten, Order::None, unseen.reader.into_iter().collect(), vec![why]);
        }
        let mut tail = Few::default();
        for (value, appended) in self.waiting.entries() {
            scene.nodes.settled(appended.writer);
            if self.values.contains(value) {
                return Err(twice(self.key, *value));
            }
            // Of one whose outcome is unknown an edge starts only where its writes were read.
            if scene.nodes.counts(appended.writer) {
                tail.insert(*value, *appended);
            }
        }
        self.waiting = tail;
        Ok(())
    }

    /// Gives each dependency that it shows.
    pub(crate) fn edges(&self, nodes: &Nodes, link: &mut impl FnMut(u32, u32, Why)) -> u64 {
        let key = self.key;
        for (at, version) in self.versions.iter().enumerate().skip(1) {
            let before = self.versions[at - 1].writer;
            if before != version.writer && nodes.counts(before) && nodes.counts(version.writer) {
                let (value, next) = (self.values[at - 1], self.values[at]);
                link(before, version.writer, Why::WriteWrite { key, value, next });
            }
        }
        let mut last_readers = 0;
        for (seen, reader) in &self.readers {
            let value = self.value(*seen);
            if let (Some(value), Some(at)) = (value, seen.checked_sub(1)) {
                let writer = self.versions[at as usize].writer;
                if writer != *reader && nodes.counts(writer) {
                    link(writer, *reader, Why::WriteRead { key, value });
                }
            }
            match self.versions.get(*seen as usize) {
                None => last_readers += 1,
                Some(next) if next.writer != *reader && nodes.counts(next.writer) => {
                    let next_value = self.values[*seen as usize];
                    link(*reader, next.writer, Why::ReadWrite { key, value, next: next_value });
                }
                Some(_) => (),
            }
        }
        if self.settled { self.tail_edges(nodes, last_readers, link) } else { 0 }
    }

    /// Gives the dependencies of what was never read, and how many were left out.
    fn tail_edges(&self, nodes: &Nodes, last_readers: usize, link: &mut impl FnMut(u32, u32, Why)) -> u64 {
        let (key, length) = (self.key, self.values.len() as u32);
        let value = self.value(length);
        let last = self.versions.last().map_or(NOBODY, |version| version.writer);
        let tail = self.waiting.entries();
        if let Some(value) = value.filter(|_| nodes.counts(last)) {
            for (next, appended) in tail.iter().filter(|(_, it)| live(it.writer) && it.writer != last) {
                link(last, appended.writer, Why::WriteWrite { key, value, next: *next });
            }
        }
        if last_readers.saturating_mul(tail.len()) > MOST_PAIRS {
            return (last_readers * tail.len()) as u64;
        }
        for (_, reader) in self.readers.iter().filter(|(seen, _)| *seen == length) {
            for (next, appended) in tail.iter().filter(|(_, it)| live(it.writer) && it.writer != *reader) {
                link(*reader, appended.writer, Why::ReadWrite { key, value, next: *next });
            }
        }
        0
    }

    /// Forgets transactions that leave; true when nothing of it matters any more.
    pub(crate) fn sweep(&mut self, nodes: &Nodes) -> bool {
        let mut any = false;
        for version in &mut self.versions {
            version.writer = nodes.swept(version.writer);
            version.updater = nodes.swept(version.updater);
            any |= live(version.writer);
        }
        self.first_updater = nodes.swept(self.first_updater);
        self.readers.retain(|(_, reader)| live(nodes.swept(*reader)));
        if self.waiting.entries().iter().any(|(_, it)| !live(nodes.swept(it.writer))) {
            let mut waiting = Few::default();
            for (value, appended) in
                self.waiting.entries().iter().filter(|(_, it)| live(nodes.swept(it.writer)))
            {
                waiting.insert(*value, *appended);
            }
            self.waiting = waiting;
        }
        self.settled && !any && self.readers.is_empty() && self.waiting.entries().is_empty()
    }
}

fn twice(key: u64, value: u64) -> String {
    format!("value {value} was appended to key {key} twice; values must be unique for their key")
}
