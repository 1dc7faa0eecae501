//! Histories as Elle reads them.

use std::io::{self, Write};

use crate::history::{Operation, Outcome, Transaction};

/// How Elle's maps are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A map a line.
    Edn,
    /// A list of objects.
    Json,
}

/// Which of a history's operations are written: Elle's checkers take one kind each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Appends and reads of lists: `list-append`.
    Lists,
    /// Writes and reads of registers: `rw-register`.
    Registers,
}

impl Family {
    fn has(self, operation: &Operation) -> bool {
        match operation {
            Operation::Append { .. } | Operation::List { .. } => self == Self::Lists,
            Operation::Write { .. } | Operation::Read { .. } => self == Self::Registers,
            _ => false,
        }
    }
}

/// Writes a history, each transaction as two maps, in the order of time; gives how many transactions were written, and how
/// many operations were left out because they are of another kind.
///
/// # Errors
/// What writing meets.
pub fn export(
    history: &[Transaction],
    dialect: Dialect,
    family: Family,
    to: &mut impl Write,
) -> io::Result<(u64, u64)> {
    let of_family = |of: &Transaction| of.operations.iter().any(|it| family.has(it));
    // A session that begins when its last transaction ended has ended that first.
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (at, transaction) in history.iter().enumerate().filter(|(_, it)| of_family(it)) {
        events.push((transaction.begin, true, at));
        events.push((transaction.end.max(transaction.begin + 1), false, at));
    }
    events.sort_unstable();
    let last = events.len();
    if dialect == Dialect::Json {
        writeln!(to, "[")?;
    }
    for (index, (time, begins, at)) in events.iter().enumerate() {
        write_map(to, dialect, family, (index, *time, *begins), &history[*at])?;
        writeln!(to, "{}", if dialect == Dialect::Json && index + 1 < last { "," } else { "" })?;
    }
    if dialect == Dialect::Json {
        writeln!(to, "]")?;
    }
    let left = history.iter().flat_map(|it| &it.operations).filter(|it| !family.has(it)).count();
    Ok((last as u64 / 2, left as u64))
}

fn write_map(
    to: &mut impl Write,
    dialect: Dialect,
    family: Family,
    (index, time, begins): (usize, u64, bool),
    of: &Transaction,
) -> io::Result<()> {
    let json = dialect == Dialect::Json;
    let kind = match of.outcome {
        _ if begins => "invoke",
        Outcome::Committed => "ok",
        Outcome::Aborted => "fail",
        Outcome::Unknown => "info",
    };
    let session = of.session;
    if json {
        write!(
            to,
            r#"{{"index":{index},"type":"{kind}","process":{session},"time":{time},"f":"txn","value":["#
        )?;
    } else {
        write!(to, "{{:index {index}, :type :{kind}, :process {session}, :time {time}, :f :txn, :value [")?;
    }
    let reads = !begins && of.outcome == Outcome::Committed;
    let (between, none, mark) = if json { (",", "null", "\"") } else { (" ", "nil", "") };
    let colon = if json { "\"" } else { ":" };
    for (at, operation) in of.operations.iter().filter(|it| family.has(it)).enumerate() {
        if at > 0 {
            write!(to, "{between}")?;
        }
        let (word, key) = match *operation {
            Operation::Append { key, .. } => ("append", key),
            Operation::Write { key, .. } => ("w", key),
            Operation::List { key, .. } | Operation::Read { key, .. } => ("r", key),
            _ => continue,
        };
        write!(to, "[{colon}{word}{mark}{between}{key}{between}")?;
        match *operation {
            Operation::Append { value, .. } | Operation::Write { value, .. } => write!(to, "{value}")?,
            Operation::Read { value: Some(value), .. } if reads => write!(to, "{value}")?,
            Operation::List { first, length, .. } if reads => {
                let values = of.elements(first, length).iter().map(u64::to_string);
                write!(to, "[{}]", values.collect::<Vec<_>>().join(between))?;
            }
            _ => write!(to, "{none}")?,
        }
        write!(to, "]")?;
    }
    write!(to, "]}}")
}
