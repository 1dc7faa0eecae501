//! When each request is to start.

use nephoscope_runtime::Nanos;
use serde::Deserialize;

use crate::requests::{Columns, Operation, Process, Request};

/// When written bytes are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syncs {
    /// Where the requests have a sync.
    #[default]
    Captured,
    /// After every so many writes, and nowhere else; each is due with the last of these writes.
    Every(u32),
    /// Never.
    Never,
}

/// The requests of a source in the order of their intended starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    requests: Columns,
    speed: f64,
}

impl Schedule {
    /// A schedule of requests, faster than captured by a factor; those before the beginning of their run are left out.
    /// The error says what is wrong with the columns.
    pub fn new(columns: &Columns, syncs: Syncs, speed: f64) -> Result<Self, String> {
        if !(speed.is_finite() && speed > 0.0) {
            return Err(format!("the speed is {speed}; it is a number above 0"));
        }
        if syncs == Syncs::Every(0) {
            return Err("a sync after every 0 writes: 1 is the least".to_owned());
        }
        check(columns)?;
        let mut order: Vec<usize> = (0..columns.len()).filter(|at| columns.time_us[*at] >= 0).collect();
        if !order.is_sorted_by_key(|at| columns.time_us[*at]) {
            order.sort_by_key(|at| columns.time_us[*at]);
        }
        let (mut requests, mut written) = (Columns::default(), 0_u32);
        for at in order {
            let request = columns.get(at);
            if request.operation == Operation::Sync && syncs != Syncs::Captured {
                continue;
            }
            requests.push(&request);
            let Syncs::Every(writes) = syncs else { continue };
            written += u32::from(request.operation == Operation::Write);
            if written == writes {
                written = 0;
                requests.push(&Request { operation: Operation::Sync, offset: 0, bytes: 0, ..request });
            }
        }
        Ok(Self { requests, speed })
    }

    /// The requests, in their order.
    #[must_use]
    pub fn requests(&self) -> &Columns {
        &self.requests
    }

    /// How many requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// When a request is to start, since the start of the execution.
    #[must_use]
    pub fn intended(&self, at: usize) -> Nanos {
        (self.requests.time_us[at] as f64 * 1e3 / self.speed) as Nanos
    }

    /// When the last of them is to start; 0 if there is none.
    #[must_use]
    pub fn last(&self) -> Nanos {
        self.len().checked_sub(1).map_or(0, |at| self.intended(at))
    }
}

/// Whether the columns have one length and hold numbers that stand for something.
fn check(columns: &Columns) -> Result<(), String> {
    let length = columns.len();
    let lengths = [
        columns.segment.len(),
        columns.offset.len(),
        columns.bytes.len(),
        columns.operation.len(),
        columns.process.len(),
        columns.latency_us.len(),
    ];
    if lengths.iter().any(|other| *other != length) {
        return Err(format!("columns of different lengths: {length} and {lengths:?}"));
    }
    let unknown = |column: &[u8], known: usize| column.iter().position(|it| usize::from(*it) >= known);
    if let Some(at) = unknown(&columns.operation, Operation::ALL.len()) {
        return Err(format!("request {at} has the operation {}, which there is not", columns.operation[at]));
    }
    if let Some(at) = unknown(&columns.process, Process::ALL.len()) {
        return Err(format!("request {at} has the process {}, which there is not", columns.process[at]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(requests: &[(i64, Operation)]) -> Columns {
        let mut columns = Columns::default();
        for (time_us, operation) in requests {
            columns.push(&Request {
                time_us: *time_us,
                segment: 1,
                offset: 8192,
                bytes: 4096,
                operation: *operation,
                process: Process::Backend,
                latency_us: f32::NAN,
            });
        }
        columns
    }

    fn operations(schedule: &Schedule) -> Vec<Operation> {
        (0..schedule.len()).map(|at| schedule.requests().get(at).operation).collect()
    }

    #[test]
    fn syncs_follow_the_policy() {
        use Operation::{Read, Sync, Write};
        let given = columns(&[(0, Write), (10, Read), (20, Sync), (30, Write), (40, Write), (50, Sync)]);
        for (syncs, expected) in [
            (Syncs::Captured, vec![Write, Read, Sync, Write, Write, Sync]),
            (Syncs::Never, vec![Write, Read, Write, Write]),
            (Syncs::Every(2), vec![Write, Read, Write, Sync, Write]),
            (Syncs::Every(1), vec![Write, Sync, Read, Write, Sync, Write, Sync]),
        ] {
            assert_eq!(operations(&Schedule::new(&given, syncs, 1.0).unwrap()), expected, "{syncs:?}");
        }
        let every = Schedule::new(&given, Syncs::Every(2), 1.0).unwrap();
        assert_eq!((every.requests().time_us[3], every.requests().bytes[3]), (30, 0));
    }

    #[test]
    fn a_speed_divides_the_times() {
        let given = columns(&[(30, Operation::Read), (-5, Operation::Read), (10, Operation::Write)]);
        let schedule = Schedule::new(&given, Syncs::Captured, 2.0).unwrap();
        assert_eq!((schedule.len(), schedule.intended(0), schedule.last()), (2, 5_000, 15_000));
    }

    #[test]
    fn what_stands_for_nothing_is_refused() {
        let mut wrong = columns(&[(0, Operation::Read)]);
        wrong.operation[0] = 9;
        let said = Schedule::new(&wrong, Syncs::Captured, 1.0).unwrap_err();
        assert_eq!(said, "request 0 has the operation 9, which there is not");
        wrong.bytes.clear();
        assert!(Schedule::new(&wrong, Syncs::Captured, 1.0).unwrap_err().contains("different lengths"));
        assert!(Schedule::new(&Columns::default(), Syncs::Captured, 0.0).unwrap_err().contains("speed"));
        assert!(
            Schedule::new(&Columns::default(), Syncs::Every(0), 1.0).unwrap_err().contains("1 is the least")
        );
    }

    proptest! {
        #[test]
        fn a_schedule_is_in_the_order_of_time_and_loses_nothing(times in prop::collection::vec(-100..10_000_i64, 0..200)) {
            let requests: Vec<_> = times.iter().map(|time| (*time, Operation::Read)).collect();
            let schedule = Schedule::new(&columns(&requests), Syncs::Captured, 1.0).unwrap();
            prop_assert_eq!(schedule.len(), times.iter().filter(|time| **time >= 0).count());
            prop_assert!((1..schedule.len()).all(|at| schedule.intended(at - 1) <= schedule.intended(at)));
        }
    }
}
