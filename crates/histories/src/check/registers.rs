//! A register: its reads tell who wrote what they saw, and reads before writes tell which version came before.

use super::nodes::{NOBODY, Nodes, RETIRED, Scene, UNSEEN, live};
use crate::few::Few;
use crate::finding::{Anomaly, Why};
use crate::history::Outcome;

/// More readers times writers of one version's followers than this are not joined one by one.
const MOST_PAIRS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Version {
    /// `None` before the first write.
    value: Option<u64>,
    writer: u32,
    /// Who read it and wrote then.
    updater: u32,
    /// The version before it, as far as that is known.
    before: u32,
    intermediate: bool,
    /// A writer of a version after it was retired.
    followed: bool,
    /// When its writer or a reader last came.
    touched: u64,
}

const INITIAL: u32 = 0;

#[derive(Debug)]
pub(crate) struct Register {
    key: u64,
    versions: Vec<Version>,
    places: Few<u32>,
    /// The version that they saw, and who they are.
    readers: Vec<(u32, u32)>,
    /// Versions were forgotten, so a value may be one that was known.
    trimmed: bool,
}

impl Register {
    pub(crate) fn new(key: u64) -> Self {
        let mut register =
            Self { key, versions: Vec::new(), places: Few::default(), readers: Vec::new(), trimmed: false };
        register.versions.push(version(None, NOBODY));
        register
    }

    fn place(&mut self, value: u64) -> u32 {
        self.places.get(value).unwrap_or_else(|| {
            let place = self.versions.len() as u32;
            self.versions.push(version(Some(value), UNSEEN));
            self.places.insert(value, place);
            place
        })
    }

    /// Takes a write; `read` is the version that the transaction saw before.
    ///
    /// # Errors
    /// If the value was written before.
    pub(crate) fn write(
        &mut self,
        scene: &mut Scene,
        slot: u32,
        value: u64,
        intermediate: bool,
        read: Option<u32>,
    ) -> Result<(), String> {
        let place = self.place(value);
        let end = scene.nodes.all[slot as usize].party.end;
        let version = &mut self.versions[place as usize];
        if version.writer != UNSEEN {
            return Err(format!(
                "value {value} was written to key {} twice; values must be unique for their key",
                self.key
            ));
        }
        let was_read = version.touched > 0;
        (version.writer, version.intermediate) = (slot, intermediate);
        version.touched = version.touched.max(end);
        version.before = read.unwrap_or(INITIAL);
        if !was_read {
            return Ok(());
        }
        let aborted = scene.nodes.is(slot, Outcome::Aborted);
        let mut seen = false;
        for at in 0..self.readers.len() {
            let (version, reader) = self.readers[at];
            if version != place || reader == slot {
                continue;
            }
            seen = true;
            self.judge(scene, reader, slot, value, (aborted, intermediate));
        }
        scene.late += u64::from(!seen && !self.readers.iter().any(|(version, _)| *version == place));
        Ok(())
    }

    fn judge(&self, scene: &mut Scene, reader: u32, writer: u32, value: u64, wrong: (bool, bool)) {
        for (anomaly, found) in [(Anomaly::G1a, wrong.0), (Anomaly::G1b, wrong.1)] {
            if found {
                scene.value(anomaly, reader, writer, self.key, value);
            }
        }
    }

    /// Takes a read of a transaction that has committed, and gives the version that it saw.
    pub(crate) fn read(&mut self, scene: &mut Scene, slot: u32, value: Option<u64>) -> u32 {
        let place = value.map_or(INITIAL, |value| self.place(value));
        let end = scene.nodes.all[slot as usize].party.end;
        let seen = &mut self.versions[place as usize];
        seen.touched = seen.touched.max(end);
        let seen = *seen;
        if let Some(value) = value
            && seen.writer != slot
        {
            let aborted = scene.nodes.is(seen.writer, Outcome::Aborted);
            self.judge(scene, slot, seen.writer, value, (aborted, seen.intermediate));
        }
        scene.late += u64::from(seen.followed);
        if self.readers.last() != Some(&(place, slot)) {
            self.readers.push((place, slot));
        }
        place
    }

    /// Takes note that a transaction which saw this version has written.
    pub(crate) fn update(&mut self, scene: &mut Scene, slot: u32, seen: u32) {
        let version = &mut self.versions[seen as usize];
        match version.updater {
            NOBODY => version.updater = slot,
            RETIRED => scene.late += 1,
            other if other != slot => {
                let value = version.value;
                scene.lost_update(other, slot, self.key, value);
            }
            _ => (),
        }
    }

    /// Gives each dependency that it shows, and how many were left out.
    pub(crate) fn edges(&self, nodes: &Nodes, link: &mut impl FnMut(u32, u32, Why)) -> u64 {
        let key = self.key;
        let mut followers: Vec<(u32, u32, u64)> = Vec::new();
        for version in &self.versions {
            let Some(value) = version.value.filter(|_| nodes.counts(version.writer)) else { continue };
            let Some(before) = self.versions.get(version.before as usize) else { continue };
            if let Some(first) = before.value
                && before.writer != version.writer
                && nodes.counts(before.writer)
            {
                link(before.writer, version.writer, Why::WriteWrite { key, value: first, next: value });
            }
            followers.push((version.before, version.writer, value));
        }
        followers.sort_unstable();
        let mut seeing = vec![0_usize; self.versions.len()];
        for (place, _) in &self.readers {
            seeing[*place as usize] += 1;
        }
        let mut left = 0;
        for (place, reader) in &self.readers {
            let seen = self.versions[*place as usize];
            if let Some(value) = seen.value
                && seen.writer != *reader
                && nodes.counts(seen.writer)
            {
                link(seen.writer, *reader, Why::WriteRead { key, value });
            }
            let first = followers.partition_point(|follower| follower.0 < *place);
            let after = followers.partition_point(|follower| follower.0 <= *place);
            // Every write without a read before it follows the initial state, so these may be many.
            if (after - first).saturating_mul(seeing[*place as usize]) > MOST_PAIRS {
                left += (after - first) as u64;
                continue;
            }
            for (_, writer, next) in followers[first..after].iter().filter(|it| it.1 != *reader) {
                link(*reader, *writer, Why::ReadWrite { key, value: seen.value, next: *next });
            }
        }
        left
    }

    /// Forgets transactions that leave, and versions that nobody of those who stay has to do with.
    pub(crate) fn sweep(&mut self, nodes: &Nodes, cutoff: u64) {
        self.readers.retain(|(_, reader)| live(nodes.swept(*reader)));
        for at in 0..self.versions.len() {
            let version = &mut self.versions[at];
            (version.writer, version.updater) = (nodes.swept(version.writer), nodes.swept(version.updater));
            let (gone, before) = (version.writer == RETIRED, version.before);
            if gone && let Some(before) = self.versions.get_mut(before as usize) {
                before.followed = true;
            }
        }
        let mut needed = vec![false; self.versions.len()];
        needed[INITIAL as usize] = true;
        let newest = (0..self.versions.len()).max_by_key(|at| self.versions[*at].touched);
        needed[newest.unwrap_or_default()] = true;
        for (place, _) in &self.readers {
            needed[*place as usize] = true;
        }
        for (at, version) in self.versions.iter().enumerate() {
            needed[at] |= live(version.writer) || (version.writer == UNSEEN && version.touched >= cutoff);
        }
        let leaving = needed.iter().filter(|needed| !**needed).count();
        if leaving * 2 >= needed.len() {
            self.trim(&needed);
        }
    }

    /// Names values that were read and that nobody has written in time.
    pub(crate) fn unwritten(&mut self, scene: &mut Scene, cutoff: u64) {
        for (place, version) in self.versions.iter_mut().enumerate().skip(1) {
            let Some(value) = version.value else { continue };
            if version.writer == UNSEEN && version.touched < cutoff {
                version.writer = RETIRED;
                if self.trimmed {
                    scene.late += 1;
                } else {
                    let reader = self.readers.iter().find(|(seen, _)| *seen as usize == place);
                    let reader = reader.map_or(NOBODY, |it| it.1);
                    scene.value(Anomaly::Unwritten, reader, NOBODY, self.key, value);
                }
            }
        }
    }

    fn trim(&mut self, needed: &[bool]) {
        self.trimmed = true;
        let mut places = Vec::with_capacity(needed.len());
        let mut kept = 0;
        for needed in needed {
            places.push(if *needed { kept } else { NOBODY });
            kept += u32::from(*needed);
        }
        let moved = |place: u32| places.get(place as usize).copied().unwrap_or(NOBODY);
        let mut at = 0;
        self.versions.retain(|_| {
            at += 1;
            needed[at - 1]
        });
        self.places.clear();
        for (at, version) in self.versions.iter_mut().enumerate() {
            version.before = moved(version.before);
            if let Some(value) = version.value {
                self.places.insert(value, at as u32);
            }
        }
        for (place, _) in &mut self.readers {
            *place = moved(*place);
        }
    }
}

fn version(value: Option<u64>, writer: u32) -> Version {
    Version {
        value,
        writer,
        updater: NOBODY,
        before: NOBODY,
        intermediate: false,
        followed: false,
        touched: 0,
    }
}
