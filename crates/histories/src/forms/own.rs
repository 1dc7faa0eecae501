//! Our own form: a line a transaction, in the order in which they ended.
//!
//! `c 12 3 1000 2500 a7:1 l7:1 w9:5 r9:- i4:-2 n4:3 t1:2:30 b100,90`: the outcome (`c`ommitted, `a`borted, `u`nknown), the
//! number, the session, begin and end in nanoseconds, and what it did: `a`ppend and `l`ist, `w`rite and `r`ead of a
//! register, `i`ncrement and `n`umber of a counter, `t`ransfer and all `b`alances. A line with `#` says something to people.

use std::fmt::Write as _;
use std::io::BufRead;

use super::{Fault, Told};
use crate::history::{Operation, Outcome, Transaction};

/// How a file begins.
pub const HEADER: &str = "# nephoscope history 1";
/// The comment that says that the file is not the whole history.
pub(super) const CUT: &str = "# cut";
/// A longer line is no transaction.
const MOST: usize = 1 << 22;

/// Adds the line of a transaction.
pub fn write_line(of: &Transaction, to: &mut String) {
    let outcome = match of.outcome {
        Outcome::Committed => 'c',
        Outcome::Aborted => 'a',
        Outcome::Unknown => 'u',
    };
    // Writing into a text cannot fail.
    let _ = write!(to, "{outcome} {} {} {} {}", of.number, of.session, of.begin, of.end);
    for operation in &of.operations {
        let _ = match *operation {
            Operation::Append { key, value } => write!(to, " a{key}:{value}"),
            Operation::Write { key, value } => write!(to, " w{key}:{value}"),
            Operation::Read { key, value: Some(value) } => write!(to, " r{key}:{value}"),
            Operation::Read { key, value: None } => write!(to, " r{key}:-"),
            Operation::Add { key, amount } => write!(to, " i{key}:{amount}"),
            Operation::Count { key, value } => write!(to, " n{key}:{value}"),
            Operation::Transfer { from, to: account, amount } => write!(to, " t{from}:{account}:{amount}"),
            Operation::List { key, first, length } => {
                let _ = write!(to, " l{key}:");
                join(to, of.elements(first, length).iter())
            }
            Operation::Balances { first, length } => {
                to.push_str(" b");
                join(to, of.elements(first, length).iter().map(|it| it.cast_signed()))
            }
        };
    }
    to.push('\n');
}

fn join(to: &mut String, values: impl Iterator<Item = impl std::fmt::Display>) -> std::fmt::Result {
    for (at, value) in values.enumerate() {
        write!(to, "{}{value}", if at == 0 { "" } else { "," })?;
    }
    Ok(())
}

pub(super) fn read(
    mut input: impl BufRead,
    each: &mut impl FnMut(&Transaction) -> Result<(), String>,
) -> Result<Told, Fault> {
    let (mut told, mut line, mut transaction) = (Told::default(), Vec::new(), Transaction::default());
    for number in 1.. {
        let fault = |message: String| Fault { line: number, message };
        line.clear();
        let mut limited = std::io::Read::take(&mut input, MOST as u64 + 1);
        if limited.read_until(b'\n', &mut line).map_err(|error| fault(error.to_string()))? == 0 {
            break;
        }
        if line.len() > MOST {
            return Err(fault(format!("it is longer than {MOST} bytes")));
        }
        let text = std::str::from_utf8(&line).map_err(|_| fault("it is no text in UTF-8".to_owned()))?;
        if text.starts_with('#') || text.trim().is_empty() {
            told.is_cut |= text.starts_with(CUT);
            continue;
        }
        // A run that was killed may have left half a line.
        if !text.ends_with('\n') {
            told.is_cut = true;
            break;
        }
        parse(text.trim_end(), &mut transaction).map_err(fault)?;
        told.transactions += 1;
        each(&transaction).map_err(fault)?;
    }
    Ok(told)
}

fn parse(line: &str, into: &mut Transaction) -> Result<(), String> {
    let mut words = line.split(' ');
    let outcome = match words.next() {
        Some("c") => Outcome::Committed,
        Some("a") => Outcome::Aborted,
        Some("u") => Outcome::Unknown,
        other => return Err(format!("{:?} is no outcome; allowed are c, a, u", other.unwrap_or_default())),
    };
    let mut field = |name: &str| {
        let word = words.next().unwrap_or_default();
        whole::<u64>(word).map_err(|()| format!("its {name} is {word:?}; expected a whole number"))
    };
    let (number, session) = (field("number")?, field("session")?);
    let session = u32::try_from(session).map_err(|_| format!("session {session} is above {}", u32::MAX))?;
    into.restart(number, session, field("begin")?);
    (into.end, into.outcome) = (field("end")?, outcome);
    for word in words {
        operation(word, into).ok_or_else(|| {
            format!("{word:?} is no operation; allowed are a, w, r, i, n, t, l and b with their numbers")
        })?;
    }
    Ok(())
}

/// A whole number without a plus sign.
fn whole<T: std::str::FromStr>(word: &str) -> Result<T, ()> {
    if word.starts_with('+') { Err(()) } else { word.parse().map_err(drop) }
}

fn operation(word: &str, into: &mut Transaction) -> Option<()> {
    let kind = *word.as_bytes().first()?;
    let rest = word.get(1..)?;
    if kind == b'b' {
        let first = into.elements.len() as u32;
        let length = values(rest, &mut into.elements, |it| whole::<i64>(it).map(i64::cast_unsigned))?;
        into.operations.push(Operation::Balances { first, length });
        return Some(());
    }
    let (key, rest) = rest.split_once(':')?;
    let key = whole::<u64>(key).ok()?;
    into.operations.push(match kind {
        b'a' => Operation::Append { key, value: whole(rest).ok()? },
        b'w' => Operation::Write { key, value: whole(rest).ok()? },
        b'r' => Operation::Read { key, value: if rest == "-" { None } else { Some(whole(rest).ok()?) } },
        b'i' => Operation::Add { key, amount: whole(rest).ok()? },
        b'n' => Operation::Count { key, value: whole(rest).ok()? },
        b't' => {
            let (to, amount) = rest.split_once(':')?;
            Operation::Transfer { from: key, to: whole(to).ok()?, amount: whole(amount).ok()? }
        }
        b'l' => {
            let first = into.elements.len() as u32;
            let length = values(rest, &mut into.elements, whole::<u64>)?;
            Operation::List { key, first, length }
        }
        _ => return None,
    });
    Some(())
}

fn values(text: &str, to: &mut Vec<u64>, read: impl Fn(&str) -> Result<u64, ()>) -> Option<u32> {
    let before = to.len();
    for word in text.split(',').filter(|_| !text.is_empty()) {
        to.push(read(word).ok()?);
    }
    u32::try_from(to.len() - before).ok()
}
