//! A request to the storage tier, and many of them as columns.

/// What a request asks for. The names are those of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Reads bytes.
    Read,
    /// Writes bytes; in the view `log`, redo of a segment.
    Write,
    /// Makes what was written durable (fsync, fdatasync); has no bytes.
    Sync,
    /// Gives a range back (discard, trim).
    Discard,
}

impl Operation {
    /// All of them; an operation's place is its number in a column.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Sync, Self::Discard];

    /// Its name in a corpus.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Discard => "discard",
        }
    }
}

/// The kind of process that made a request, the same words for every product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Process {
    /// Whoever made it is not known, as in most traces. It counts as foreground.
    Unknown,
    /// A session of a client, and its parallel workers: the foreground.
    Backend,
    /// Writes all dirty pages from time to time.
    Checkpointer,
    /// Writes dirty pages ahead of need (`InnoDB`: the page cleaner).
    BackgroundWriter,
    /// Writes the log ahead of a commit's need.
    LogWriter,
    /// Removes dead rows (autovacuum; `InnoDB`: purge).
    Vacuum,
    /// Sends or receives the log of a replica.
    Replication,
    /// Any other process of the server.
    Other,
}

impl Process {
    /// All of them; a kind's place is its number in a column.
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Backend,
        Self::Checkpointer,
        Self::BackgroundWriter,
        Self::LogWriter,
        Self::Vacuum,
        Self::Replication,
        Self::Other,
    ];

    /// Its name in a corpus.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Backend => "backend",
            Self::Checkpointer => "checkpointer",
            Self::BackgroundWriter => "background_writer",
            Self::LogWriter => "log_writer",
            Self::Vacuum => "vacuum",
            Self::Replication => "replication",
            Self::Other => "other",
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When it began, in microseconds since its run began.
    pub time_us: i64,
    /// The number of its segment: a relation's or a device's piece of a fixed size.
    pub segment: u32,
    /// Where it begins in the segment, in bytes.
    pub offset: u64,
    /// How many bytes; 0 for what has none.
    pub bytes: u32,
    /// What it asks for.
    pub operation: Operation,
    /// Who made it.
    pub process: Process,
    /// How long it took, in microseconds; NaN where that is not known.
    pub latency_us: f32,
}

/// Requests as columns of one length, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// See [`Request::time_us`].
    pub time_us: Vec<i64>,
    /// See [`Request::segment`].
    pub segment: Vec<u32>,
    /// See [`Request::offset`].
    pub offset: Vec<u64>,
    /// See [`Request::bytes`].
    pub bytes: Vec<u32>,
    /// The place of [`Request::operation`] in [`Operation::ALL`].
    pub operation: Vec<u8>,
    /// The place of [`Request::process`] in [`Process::ALL`].
    pub process: Vec<u8>,
    /// See [`Request::latency_us`].
    pub latency_us: Vec<f32>,
}

impl Columns {
    /// Adds a request at the end.
    pub fn push(&mut self, request: &Request) {
        self.time_us.push(request.time_us);
        self.segment.push(request.segment);
        self.offset.push(request.offset);
        self.bytes.push(request.bytes);
        self.operation.push(request.operation as u8);
        self.process.push(request.process as u8);
        self.latency_us.push(request.latency_us);
    }

    /// These and others as one, by their times.
    #[must_use]
    pub fn merged(&self, others: &Self) -> Self {
        let mut merged = Self::default();
        let mut at = 0;
        for other in 0..others.len() {
            while at < self.len() && self.time_us[at] <= others.time_us[other] {
                merged.push(&self.get(at));
                at += 1;
            }
            merged.push(&others.get(other));
        }
        (at..self.len()).for_each(|rest| merged.push(&self.get(rest)));
        merged
    }

    /// How many requests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time_us.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time_us.is_empty()
    }

    /// The request at a place.
    ///
    /// # Panics
    ///
    /// If there is none, or if a column holds a number that stands for nothing.
    #[must_use]
    pub fn get(&self, at: usize) -> Request {
        Request {
            time_us: self.time_us[at],
            segment: self.segment[at],
            offset: self.offset[at],
            bytes: self.bytes[at],
            operation: Operation::ALL[usize::from(self.operation[at])],
            process: Process::ALL[usize::from(self.process[at])],
            latency_us: self.latency_us[at],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_list_is_the_number_in_the_column() {
        assert!(Operation::ALL.iter().enumerate().all(|(at, operation)| *operation as usize == at));
        assert!(Process::ALL.iter().enumerate().all(|(at, process)| *process as usize == at));
    }

    #[test]
    fn columns_are_merged_by_time() {
        let of = |times: &[i64]| Columns {
            time_us: times.to_vec(),
            segment: vec![0; times.len()],
            offset: vec![0; times.len()],
            bytes: vec![0; times.len()],
            operation: vec![0; times.len()],
            process: vec![0; times.len()],
            latency_us: vec![0.0; times.len()],
        };
        assert_eq!(of(&[1, 5, 9]).merged(&of(&[0, 5, 6, 12])), of(&[0, 1, 5, 5, 6, 9, 12]));
        assert_eq!(of(&[]).merged(&of(&[3])), of(&[3]));
        assert_eq!(of(&[3]).merged(&of(&[])), of(&[3]));
    }

    #[test]
    fn a_request_comes_back_from_its_columns() {
        let request = Request {
            time_us: 7,
            segment: 3,
            offset: 8192,
            bytes: 100,
            operation: Operation::Write,
            process: Process::Checkpointer,
            latency_us: 1.5,
        };
        let mut columns = Columns::default();
        assert!(columns.is_empty());
        columns.push(&request);
        assert_eq!((columns.len(), columns.get(0)), (1, request));
    }
}
