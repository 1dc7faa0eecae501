//! What was found: anomalies by the names of the literature, each with its witness.

use std::fmt;

/// An anomaly. The names G0 to G2 are those of Adya, Liskov and O'Neil (2000), with the refinements of Elle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Anomaly {
    /// A cycle of write-write dependencies: dirty writes.
    G0,
    /// A read of what an aborted transaction wrote.
    G1a,
    /// A read of what its writer went on to overwrite.
    G1b,
    /// A cycle of write-write and write-read dependencies.
    G1c,
    /// Two transactions read the same version of an item, and both wrote it.
    LostUpdate,
    /// A cycle with exactly one read-write dependency: read skew.
    GSingle,
    /// Two readers saw two writes in opposite orders.
    LongFork,
    /// Another cycle of several read-write dependencies of which no two are adjacent.
    GNonadjacent,
    /// A cycle with adjacent read-write dependencies on items: write skew.
    G2Item,
    /// A transaction that contradicts its own reads and writes.
    Internal,
    /// A list with an element twice.
    Duplicate,
    /// A list without an element that it must have.
    Missing,
    /// Two reads of a list of which neither is the other's beginning.
    IncompatibleOrder,
    /// A read of what no transaction wrote.
    Unwritten,
    /// A counter outside of what the additions allow.
    Counter,
    /// Balances of other accounts than all, or whose sum is not the constant one.
    Total,
}

/// Every anomaly, the most severe first.
pub const ANOMALIES: [Anomaly; 16] = [
    Anomaly::G0,
    Anomaly::G1a,
    Anomaly::G1b,
    Anomaly::G1c,
    Anomaly::LostUpdate,
    Anomaly::GSingle,
    Anomaly::LongFork,
    Anomaly::GNonadjacent,
    Anomaly::G2Item,
    Anomaly::Internal,
    Anomaly::Duplicate,
    Anomaly::Missing,
    Anomaly::IncompatibleOrder,
    Anomaly::Unwritten,
    Anomaly::Counter,
    Anomaly::Total,
];

impl Anomaly {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::G0 => "G0",
            Self::G1a => "G1a",
            Self::G1b => "G1b",
            Self::G1c => "G1c",
            Self::LostUpdate => "lost update",
            Self::GSingle => "G-single",
            Self::LongFork => "long fork",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2Item => "G2-item",
            Self::Internal => "internal",
            Self::Duplicate => "duplicate elements",
            Self::Missing => "missing elements",
            Self::IncompatibleOrder => "incompatible order",
            Self::Unwritten => "unwritten value",
            Self::Counter => "counter out of bounds",
            Self::Total => "wrong total",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::G0 => "dirty write: writes of transactions are interleaved",
            Self::G1a => "aborted read: a value of a transaction that aborted",
            Self::G1b => "intermediate read: a value that its transaction overwrote",
            Self::G1c => "circular information flow: each transaction saw or overwrote the other's writes",
            Self::LostUpdate => "two transactions read the same version and both wrote the item",
            Self::GSingle => "read skew: a transaction saw another's writes in part",
            Self::LongFork => "two readers saw two writes in opposite orders",
            Self::GNonadjacent => "transactions saw each other's snapshots in no order",
            Self::G2Item => "write skew: each transaction overwrote what another had read",
            Self::Internal => "a transaction contradicts its own reads and writes",
            Self::Duplicate => "a list has an element twice",
            Self::Missing => "a list lacks an element that it must have",
            Self::IncompatibleOrder => "two reads of a list, neither the beginning of the other",
            Self::Unwritten => "a value that no transaction wrote",
            Self::Counter => "a counter that the additions cannot explain",
            Self::Total => "balances whose sum is not the constant one",
        }
    }
}

/// What orders transactions besides their dependencies, and so which order an anomaly needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Dependencies alone: serializability.
    #[default]
    None,
    /// A session's transactions follow each other: strong session serializability.
    Session,
    /// A transaction that began after another's end follows it: strict serializability.
    RealTime,
}

impl Order {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Session => "session",
            Self::RealTime => "real-time",
        }
    }
}

/// A transaction of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Its number.
    pub number: u64,
    /// Its session.
    pub session: u32,
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended, in nanoseconds.
    pub end: u64,
}

/// Why one transaction comes before another, or what a transaction read that it must not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The second wrote the version after the first's.
    WriteWrite {
        /// The item.
        key: u64,
        /// The first's value.
        value: u64,
        /// The second's.
        next: u64,
    },
    /// The second read what the first wrote.
    WriteRead {
        /// The item.
        key: u64,
        /// The value.
        value: u64,
    },
    /// The second wrote the version after the one that the first read.
    ReadWrite {
        /// The item.
        key: u64,
        /// What the first read; `None` before the first write.
        value: Option<u64>,
        /// What the second wrote.
        next: u64,
    },
    /// The session ran the first before the second.
    Session,
    /// The first had ended when the second began.
    RealTime,
    /// Both read this version and wrote the item.
    SameVersion {
        /// The item.
        key: u64,
        /// What they read; `None` before the first write.
        value: Option<u64>,
    },
    /// The first read a value of the item that the anomaly says is wrong; the second, where there is one, wrote it or
    /// has read otherwise.
    Value {
        /// The item.
        key: u64,
        /// The value.
        value: u64,
    },
    /// A number was read that lies outside of these bounds.
    Bounds {
        /// The item.
        key: u64,
        /// What was read.
        read: i64,
        /// The least that is possible.
        least: i64,
        /// The most that is possible.
        most: i64,
    },
    /// The balances that it read are not those of all accounts, or do not add up.
    Balances {
        /// How many it read.
        accounts: u32,
        /// How many accounts there are.
        of: u32,
        /// What it read adds up to.
        sum: i64,
        /// What all accounts add up to.
        total: i64,
    },
}

impl Why {
    /// Says it of the first transaction, with the name of the second.
    fn tell(&self, to: &mut fmt::Formatter<'_>, next: &str) -> fmt::Result {
        let named =
            |value: Option<u64>| value.map_or_else(|| "the initial state".to_owned(), |it| it.to_string());
        match *self {
            Self::WriteWrite { key, value, next: after } => {
                write!(to, "wrote {value} to key {key}, which {next} followed with {after}")
            }
            Self::WriteRead { key, value } => write!(to, "wrote {value} to key {key}, which {next} read"),
            Self::ReadWrite { key, value, next: after } => {
                write!(to, "read {} of key {key}, which {next} followed with {after}", named(value))
            }
            Self::Session => write!(to, "came before {next} in their session"),
            Self::RealTime => write!(to, "had ended when {next} began"),
            Self::SameVersion { key, value } => {
                write!(to, "read {} of key {key} and wrote the key, as did {next}", named(value))
            }
            Self::Value { key, value } => write!(to, "met value {value} of key {key}"),
            Self::Bounds { key, read, least, most } => {
                write!(to, "read {read} at key {key}, where {least} to {most} is possible")
            }
            Self::Balances { accounts, of, sum, total } => {
                write!(to, "read {accounts} balances that add up to {sum}, where {of} add up to {total}")
            }
        }
    }
}

/// An anomaly and its witness: step `i` says why transaction `i` comes before the next, the last before the first, or
/// what transaction `i` read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The order that it needs to be one.
    pub order: Order,
    /// The transactions.
    pub parties: Vec<Party>,
    /// The steps.
    pub steps: Vec<Why>,
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.anomaly.name())?;
        if self.order != Order::None {
            write!(to, " in {} order", self.order.name())?;
        }
        for (at, why) in self.steps.iter().enumerate() {
            write!(to, "{}", if at == 0 { ": " } else { "; " })?;
            if let (Some(from), Some(next)) =
                (self.parties.get(at), self.parties.get((at + 1) % self.parties.len()))
            {
                write!(to, "T{} ", from.number)?;
                why.tell(to, &format!("T{}", next.number))?;
                if matches!(why, Why::Value { .. }) && next.number != from.number {
                    write!(to, "; the other is T{}", next.number)?;
                }
            }
        }
        Ok(())
    }
}
