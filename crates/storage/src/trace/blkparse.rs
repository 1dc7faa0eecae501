//! What blkparse prints in its default format: `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]`.

use std::collections::{BTreeMap, VecDeque};

use super::fields::{seconds, sectors, show, small, words};
use super::{Choice, Entry, Format, Parser, Target};
use crate::Operation;

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    about: "what blkparse prints by default",
    certain: true,
    choices: &[Choice {
        name: "event",
        about: "which event is a request: issue (D: what the device got, after merges), queue (Q: what was asked for), \
                complete (C: without a latency)",
        allowed: &["issue", "queue", "complete"],
    }],
    make: |chosen| {
        let event = match chosen.at(0) {
            "queue" => b'Q',
            "complete" => b'C',
            _ => b'D',
        };
        Box::new(Blkparse {
            event,
            pending: Pending::default(),
            name: String::new(),
            seen: false,
            summary: false,
        })
    },
};

/// The most requests that wait for their completion; the oldest goes on without a latency.
const MOST_PENDING: usize = 1 << 16;
const COMPLETED: u8 = b'C';
const REQUEUED: u8 = b'R';

struct Blkparse {
    event: u8,
    pending: Pending,
    name: String,
    /// Whether an event was seen: before that there is no summary.
    seen: bool,
    /// Whether the summary has begun, after which no event comes.
    summary: bool,
}

impl Parser for Blkparse {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        self.summary |= self.seen && (line.starts_with(b"CPU") || line.starts_with(b"Total ("));
        if self.summary {
            return Ok(());
        }
        let ([device, _, _, time, _, action, flags, sector, plus, count], found) = words::<10>(line);
        let (Some(device), 6..) = (device_of(device), found) else {
            let allowed = "allowed: DEVICE CPU SEQUENCE SECONDS PROCESS ACTION FLAGS SECTOR + COUNT [NAME]";
            return Err(format!("{} is no event ({allowed})", show(line)));
        };
        self.seen = true;
        let &[action] = action else { return Ok(()) };
        if action != self.event && action != COMPLETED && action != REQUEUED {
            return Ok(());
        }
        let Some(operation) = operation(flags) else {
            target.intake.leave_out("commands that neither read, write, flush nor discard");
            return Ok(());
        };
        let (offset, bytes) = match (operation, plus) {
            (_, b"+") => (sectors(sector, "the sector")?, sectors(count, "the number of sectors")?),
            (Operation::Sync, _) => (0, 0),
            _ => {
                target.intake.leave_out("commands without sectors");
                return Ok(());
            }
        };
        // A flush that carries data is a write; one that carries none is nowhere.
        let operation = if operation == Operation::Sync && bytes > 0 { Operation::Write } else { operation };
        let entry =
            Entry { time_us: seconds(time, "the time")?, offset, bytes, operation, latency_us: f32::NAN };
        self.event(action, device, entry, target)
    }

    fn end(&mut self, target: &mut Target<'_>) -> Result<(), String> {
        while let Some((device, entry)) = self.pending.oldest() {
            self.give(device, &entry, target)?;
        }
        if self.seen && target.intake.taken() == 0 {
            let event = char::from(self.event);
            return Err(format!("it has no event {event}: another may be chosen by the option event"));
        }
        Ok(())
    }
}

type Device = (u32, u32);

impl Blkparse {
    fn event(
        &mut self,
        action: u8,
        device: Device,
        entry: Entry,
        target: &mut Target<'_>,
    ) -> Result<(), String> {
        if action == self.event && action != COMPLETED {
            self.pending.push(device, entry);
            return match self.pending.overflow() {
                Some((device, entry)) => self.give(device, &entry, target),
                None => Ok(()),
            };
        }
        if action == self.event {
            return self.give(device, &entry, target);
        }
        // A request that is put back is issued once more; it stays what was asked for.
        if action == REQUEUED {
            if self.event == b'D' {
                self.pending.remove(device, &entry);
            }
            return Ok(());
        }
        while let Some(begun) = self.pending.remove(device, &entry) {
            let latency_us = entry.time_us.saturating_sub(begun.time_us).max(0) as f32;
            self.give(device, &Entry { latency_us, ..begun }, target)?;
        }
        Ok(())
    }

    fn give(&mut self, (major, minor): Device, entry: &Entry, target: &mut Target<'_>) -> Result<(), String> {
        use std::fmt::Write;
        self.name.clear();
        let _ = write!(self.name, "{major},{minor}");
        target.take(&self.name, entry)
    }
}

fn device_of(field: &[u8]) -> Option<Device> {
    let comma = field.iter().position(|byte| *byte == b',')?;
    let number = |field| small(field, "the device").ok();
    Some((number(&field[..comma])?, number(&field[comma + 1..])?))
}

/// What the letters say: `R`, `W`, `D` (discard), `F` (flush) among others that do not matter here.
fn operation(flags: &[u8]) -> Option<Operation> {
    if flags.contains(&b'D') {
        Some(Operation::Discard)
    } else if flags.contains(&b'F') {
        Some(Operation::Sync)
    } else if flags.contains(&b'W') {
        Some(Operation::Write)
    } else if flags.contains(&b'R') {
        Some(Operation::Read)
    } else {
        None
    }
}

/// A request by where it is: the device, the operation, the offset, and a number that keeps equals apart.
type Key = (Device, u8, u64, u64);

/// Requests that have begun and not ended.
#[derive(Default)]
struct Pending {
    begun: BTreeMap<Key, Entry>,
    /// In the order in which they began; those that have ended are among them until they are the first.
    order: VecDeque<Key>,
    next: u64,
}

impl Pending {
    fn push(&mut self, device: Device, entry: Entry) {
        let key = (device, entry.operation as u8, entry.offset, self.next);
        self.next += 1;
        self.begun.insert(key, entry);
        self.order.push_back(key);
        if self.order.len() > 4 * MOST_PENDING {
            self.order.retain(|key| self.begun.contains_key(key));
        }
    }

    /// Takes out the first that begins where `ended` was: after merges, one event ends several.
    fn remove(&mut self, device: Device, ended: &Entry) -> Option<Entry> {
        let operation = ended.operation as u8;
        let behind = ended.offset.saturating_add(ended.bytes.max(1));
        let key =
            *self.begun.range((device, operation, ended.offset, 0)..(device, operation, behind, 0)).next()?.0;
        let entry = self.begun.remove(&key);
        while self.order.front().is_some_and(|key| !self.begun.contains_key(key)) {
            self.order.pop_front();
        }
        entry
    }

    fn overflow(&mut self) -> Option<(Device, Entry)> {
        if self.begun.len() > MOST_PENDING { self.oldest() } else { None }
    }

    fn oldest(&mut self) -> Option<(Device, Entry)> {
        while let Some(key) = self.order.pop_front() {
            if let Some(entry) = self.begun.remove(&key) {
                return Some((key.0, entry));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Found, read};

    const MERGED: &str = "\
  8,0    1        1     0.000001000   697  Q   W 100 + 8 [kjournald]
  8,0    1        2     0.000002000   697  Q   W 108 + 8 [kjournald]
  8,0    1        3     0.000002500   697  M   W 108 + 8 [kjournald]
  8,0    1        4     0.000004000   697  D   W 100 + 16 [kjournald]
  8,0    1        5     0.000104000     0  C   W 100 + 16 [0]
";

    fn events(event: &str, text: &str) -> Vec<Found> {
        read("blkparse", &[("event", event)], text).unwrap()
    }

    #[test]
    fn what_is_a_request_is_a_choice() {
        let device = "8,0".to_owned();
        assert_eq!(events("issue", MERGED), [(0, device.clone(), 51_200, 8192, "write", Some(100.0))]);
        let queued = [
            (0, device.clone(), 51_200, 4096, "write", Some(103.0)),
            (1, device.clone(), 55_296, 4096, "write", Some(102.0)),
        ];
        assert_eq!(events("queue", MERGED), queued);
        assert_eq!(events("complete", MERGED), [(0, device, 51_200, 8192, "write", None)]);
    }

    #[test]
    fn flushes_discards_notes_and_the_summary() {
        let text = "\
  8,16   0        0     0.000000000     0  m   N cfq workload slice:100
  8,16   0        1     0.100000000    12  D  FN [fsync]
  8,16   0        2     0.100500000     0  C  FN 0 [0]
  8,16   0        3     0.200000000    12  D  DS 2048 + 4096 [fstrim]
  8,16   0        4     0.300000000    12  D  WFS 8 + 8 [jbd2]
  8,16   0        5     0.300100000    12  D   R 36 (12 00 00 00) [smartctl]
  8,16   0        6     0.300200000    12  D   N [none]
CPU0 (8,16):
 Reads Queued:           1,        4KiB
Total (8,16):
";
        let device = || "8,16".to_owned();
        let expected = [
            (0, device(), 0, 0, "sync", Some(500.0)),
            (100_000, device(), 1_048_576, 2_097_152, "discard", None),
            (200_000, device(), 4096, 4096, "write", None),
        ];
        assert_eq!(events("issue", text), expected);
    }

    #[test]
    fn what_is_put_back_is_issued_once() {
        let text = "\
8,0 0 1 0.000001000 1 D R 8 + 8 [a]
8,0 0 2 0.000002000 1 R R 8 + 8 [0]
8,0 0 3 0.000003000 1 D R 8 + 8 [a]
8,0 0 4 0.000013000 1 C R 8 + 8 [0]
";
        assert_eq!(events("issue", text), [(0, "8,0".to_owned(), 4096, 4096, "read", Some(10.0))]);
    }

    #[test]
    fn a_trace_without_the_chosen_event_is_refused() {
        let refused = read("blkparse", &[], "8,0 0 1 0.000001000 1 Q R 8 + 8 [a]\n").unwrap_err();
        assert!(refused.contains("no event D") && refused.contains("option event"), "{refused}");
    }

    #[test]
    fn requests_that_never_end_do_not_pile_up() {
        let line = |at| format!("8,0 0 1 {at}.0 1 D R {} + 8 [a]\n", at * 8);
        let lines: Vec<String> = (0..200_000).map(line).collect();
        assert_eq!(events("issue", &lines.concat()).len(), 200_000);
    }
}
