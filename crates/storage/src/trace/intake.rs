//! What comes from a trace, on its way into a corpus: put into segments and in order, and checked.

use std::collections::BTreeMap;

use crate::{Columns, Operation, Process, Request, Segments};

/// How many requests are kept to put them in order, and how many come out at a time.
pub const WINDOW: usize = 1 << 17;
/// The longest trace, in days: a time beyond this is taken for a mistake.
pub const LONGEST_DAYS: i64 = 366;
const LONGEST_US: i64 = LONGEST_DAYS * 86_400 * 1_000_000;

/// A request as a trace has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When it began, in microseconds of the trace's own clock.
    pub time_us: i64,
    /// Where it begins, in bytes from the beginning of the file or device.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// What it asks for.
    pub operation: Operation,
    /// How long it took, in microseconds; NaN where that is not known.
    pub latency_us: f32,
}

/// Takes entries, gives columns of requests. Memory is bounded: entries are put in order over [`WINDOW`] of them, and
/// one that is earlier than what has been given out already is an error.
#[derive(Debug, Default)]
pub struct Intake {
    kept: Vec<Request>,
    ready: Columns,
    /// The first and the last time so far.
    range: Option<(i64, i64)>,
    /// The first time, once something was given out, and the time of what was given out last.
    given: Option<(i64, i64)>,
    taken: u64,
    left_out: BTreeMap<&'static str, u64>,
}

impl Intake {
    /// Takes an entry of the file or device `name`; whose it is is not known, as in most traces.
    ///
    /// # Errors
    ///
    /// If it is too large, too far away, or out of order by more than the window.
    pub fn take(&mut self, segments: &mut Segments, name: &str, entry: &Entry) -> Result<(), String> {
        self.take_of(segments, name, entry, Process::Unknown)
    }

    /// Takes an entry that a process of a known kind has made; as [`Self::take`] besides.
    ///
    /// # Errors
    ///
    /// As of [`Self::take`].
    pub fn take_of(
        &mut self,
        segments: &mut Segments,
        name: &str,
        entry: &Entry,
        process: Process,
    ) -> Result<(), String> {
        let bytes = u32::try_from(entry.bytes)
            .map_err(|_| format!("a request of {} bytes (allowed: up to {})", entry.bytes, u32::MAX))?;
        self.check_time(entry.time_us)?;
        let (segment, offset) = segments.place(name, entry.offset)?;
        let Entry { operation, latency_us, .. } = *entry;
        self.kept.push(Request {
            time_us: entry.time_us,
            segment,
            offset,
            bytes,
            operation,
            process,
            latency_us,
        });
        self.taken += 1;
        if self.kept.len() == 2 * WINDOW {
            self.give(WINDOW);
        }
        Ok(())
    }

    fn check_time(&mut self, time_us: i64) -> Result<(), String> {
        let (first, last) = self.range.unwrap_or((time_us, time_us));
        let range = (first.min(time_us), last.max(time_us));
        if range.1.checked_sub(range.0).is_none_or(|length| length > LONGEST_US) {
            let others = format!("those between {} s and {} s", seconds(first), seconds(last));
            return Err(format!(
                "its time, {} s, is more than {LONGEST_DAYS} days from {others}",
                seconds(time_us)
            ));
        }
        if let Some((_, given)) = self.given.filter(|(_, given)| time_us < *given) {
            let back = format!("its time, {} s, is {} s earlier", seconds(time_us), seconds(given - time_us));
            return Err(format!(
                "{back} than that of a request {WINDOW} or more before it: sort the trace by time"
            ));
        }
        self.range = Some(range);
        Ok(())
    }

    /// Makes what is left in the window ready; nothing comes any more.
    pub fn end(&mut self) {
        self.give(self.kept.len());
    }

    fn give(&mut self, count: usize) {
        if !self.kept.is_sorted_by_key(|request| request.time_us) {
            self.kept.sort_by_key(|request| request.time_us);
        }
        for request in self.kept.drain(..count) {
            let first = self.given.map_or(request.time_us, |(first, _)| first);
            self.given = Some((first, request.time_us));
            self.ready.push(&Request { time_us: request.time_us - first, ..request });
        }
    }

    /// How many requests are ready.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// What is ready, in the order of its times, which count from the trace's first.
    pub fn ready(&mut self) -> Option<Columns> {
        if self.ready.is_empty() { None } else { Some(std::mem::take(&mut self.ready)) }
    }

    /// Notes that something of the trace is no request, and why; the import says so at its end.
    pub fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// How often something was left out, and why.
    #[must_use]
    pub fn left_out(&self) -> &BTreeMap<&'static str, u64> {
        &self.left_out
    }

    /// How many requests were taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time_us: i64) -> Entry {
        Entry { time_us, offset: 0, bytes: 512, operation: Operation::Read, latency_us: f32::NAN }
    }

    fn times(entries: impl IntoIterator<Item = i64>) -> Result<Vec<i64>, String> {
        let (mut intake, mut found) = (Intake::default(), Vec::new());
        let mut segments = Segments::new(4096).unwrap();
        for time in entries {
            intake.take(&mut segments, "sda", &entry(time))?;
            found.extend(intake.ready().into_iter().flat_map(|columns| columns.time_us));
        }
        intake.end();
        found.extend(intake.ready().into_iter().flat_map(|columns| columns.time_us));
        Ok(found)
    }

    #[test]
    fn times_count_from_the_first_and_are_in_order() {
        assert_eq!(times([7_000, 5_000, 6_000]), Ok(vec![0, 1_000, 2_000]));
        assert_eq!(times([]), Ok(vec![]));
        let many = 3 * WINDOW as i64 + 1;
        // Each is displaced by almost the window.
        let displaced = (0..many).map(|at| if at % 2 == 0 { at } else { (at - WINDOW as i64 + 2).max(1) });
        let found = times(displaced).unwrap();
        assert_eq!(found.len(), many as usize);
        assert!(found.is_sorted());
    }

    #[test]
    fn what_is_out_of_order_by_more_than_the_window_is_refused() {
        let late = (0..2 * WINDOW as i64).chain([WINDOW as i64 - 2]);
        let refused = times(late).unwrap_err();
        assert!(refused.contains("is 0.000001 s earlier"), "{refused}");
    }

    #[test]
    fn what_is_too_large_or_too_far_away_is_refused() {
        assert!(times([0, LONGEST_US]).is_ok());
        assert!(times([0, LONGEST_US + 1]).unwrap_err().contains("366 days"));
        assert!(times([i64::MIN, i64::MAX]).is_err());
        let mut segments = Segments::new(4096).unwrap();
        let large = Entry { bytes: 1 << 32, ..entry(0) };
        assert!(Intake::default().take(&mut segments, "sda", &large).unwrap_err().contains("4294967295"));
    }
}
