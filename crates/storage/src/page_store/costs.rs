//! What a replica is made to cost: service times, a queue before them, stalls. Times are planted, not spent: a reply
//! leaves when its time has come.

use nephoscope_runtime::Nanos;

/// Service times, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Of an append.
    pub append: Nanos,
    /// Of a read.
    pub read: Nanos,
    /// Of each byte that is appended or read. Fractions count.
    pub byte: f64,
    /// Of each record that a read has to apply to its pages' images, and that a consolidation takes up.
    pub record: Nanos,
}

impl Costs {
    /// The service time of an append.
    #[must_use]
    pub fn of_append(&self, bytes: u64) -> Nanos {
        self.append + self.of_bytes(bytes)
    }

    /// The service time of a read that has to apply so many records.
    #[must_use]
    pub fn of_read(&self, bytes: u64, records: u64) -> Nanos {
        self.read + self.of_bytes(bytes) + self.record * records
    }

    fn of_bytes(&self, bytes: u64) -> Nanos {
        (self.byte * bytes as f64).round() as Nanos
    }
}

/// A time in which a replica does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When it begins, since the replica was started.
    pub from: Nanos,
    /// How long it lasts.
    pub length: Nanos,
}

/// Requests wait for the first of several servers that is free, in the order in which they came; none works during a
/// stall.
#[derive(Debug)]
pub(crate) struct Queue {
    /// When each server is free.
    free: Vec<Nanos>,
    /// On the clock, in order and apart from each other.
    stalls: Vec<Stall>,
}

impl Queue {
    /// A queue before so many servers, at least one.
    pub(crate) fn new(servers: usize, started: Nanos, stalls: &[Stall]) -> Self {
        let mut sorted: Vec<Stall> =
            stalls.iter().map(|stall| Stall { from: started + stall.from, ..*stall }).collect();
        sorted.sort_by_key(|stall| stall.from);
        let mut apart: Vec<Stall> = Vec::new();
        for stall in sorted {
            match apart.last_mut() {
                Some(last) if stall.from <= last.from + last.length => {
                    last.length = last.length.max(stall.from + stall.length - last.from);
                }
                _ => apart.push(stall),
            }
        }
        Self { free: vec![0; servers.max(1)], stalls: apart }
    }

    /// Takes a request that has come now; gives when it is done.
    pub(crate) fn admit(&mut self, now: Nanos, service: Nanos) -> Nanos {
        let first = self.free.iter().enumerate().min_by_key(|(_, free)| **free).map_or(0, |(at, _)| at);
        let done = self.serve(now.max(self.free[first]), service);
        self.free[first] = done;
        done
    }

    /// When work is done that begins at a time at the earliest: it rests during stalls.
    fn serve(&self, start: Nanos, service: Nanos) -> Nanos {
        let mut done = start + service;
        for stall in &self.stalls {
            let over = stall.from + stall.length;
            if over <= start || stall.from >= done {
                // Work without length that comes as a stall begins waits for its end as well.
                if over <= start || stall.from > start {
                    continue;
                }
            }
            done += over - stall.from.max(start);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_time_is_made_of_its_parts() {
        let costs = Costs { append: 1000, read: 2000, byte: 0.5, record: 30 };
        assert_eq!((costs.of_append(0), costs.of_append(8193)), (1000, 5097));
        assert_eq!(costs.of_read(8192, 7), 2000 + 4096 + 210);
    }

    #[test]
    fn requests_wait_for_a_server_that_is_free() {
        let mut queue = Queue::new(2, 0, &[]);
        let done: Vec<Nanos> = [0, 0, 0, 5, 100].map(|now| queue.admit(now, 10)).to_vec();
        assert_eq!(done, [10, 10, 20, 20, 110]);
    }

    #[test]
    fn nothing_is_done_during_a_stall() {
        let stalls = [Stall { from: 100, length: 50 }, Stall { from: 20, length: 10 }];
        let admit =
            |now: Nanos, service: Nanos| Queue::new(1, 1000, &stalls).admit(1000 + now, service) - 1000;
        assert_eq!(admit(0, 10), 10);
        assert_eq!(admit(0, 20), 20);
        // One that is at work rests.
        assert_eq!(admit(15, 10), 35);
        // One that comes meanwhile waits, if it takes no time too.
        assert_eq!((admit(25, 10), admit(20, 0), admit(29, 0), admit(30, 0)), (40, 30, 30, 30));
        // Through both.
        assert_eq!(admit(0, 200), 260);
        assert_eq!(admit(160, 5), 165);
    }

    #[test]
    fn stalls_that_overlap_are_one() {
        let stalls = [
            Stall { from: 0, length: 10 },
            Stall { from: 5, length: 10 },
            Stall { from: 7, length: 1 },
            Stall { from: 15, length: 5 },
        ];
        assert_eq!(Queue::new(1, 0, &stalls).admit(3, 1), 21);
    }
}
