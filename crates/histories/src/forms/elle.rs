//! Elle's histories: each transaction is invoked by one map and ended by another.
//!
//! `{:type :invoke, :process 0, :f :txn, :value [[:append 5 1] [:r 7 nil]], :time 10}`, in JSON with texts in place of
//! keywords. Read are the transactions of `list-append` and of `rw-register` (github.com/jepsen-io/elle).

use std::collections::HashMap;
use std::io::BufRead;

use super::maps::{Maps, Value};
use super::{Fault, Told};
use crate::history::{Operation, Outcome, Transaction};

/// What reads without a value mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nobody knows yet.
    Open,
    Lists,
    Registers,
}

struct Reading<'a, F> {
    each: &'a mut F,
    told: Told,
    kind: Kind,
    /// What each session has begun.
    open: HashMap<u32, Begun>,
    /// The numbers of keys that are none.
    names: HashMap<String, u64>,
    made: Transaction,
    maps: u64,
}

struct Begun {
    number: u64,
    time: u64,
    value: Value,
}

/// Keys that are no numbers are counted from here.
const FIRST_NAME: u64 = 1 << 62;

pub(super) fn read<F: FnMut(&Transaction) -> Result<(), String>>(
    input: impl BufRead,
    each: &mut F,
) -> Result<Told, Fault> {
    let mut reading = Reading {
        each,
        told: Told::default(),
        kind: Kind::Open,
        open: HashMap::new(),
        names: HashMap::new(),
        made: Transaction::default(),
        maps: 0,
    };
    let mut maps = Maps::new(input);
    loop {
        let line = maps.line;
        let Some(map) = maps.map()? else { break };
        // The line in which a map begins: nothing but space is before it.
        let line = if maps.line == line { line } else { maps.line };
        reading.take(&map).map_err(|message| Fault { line, message })?;
    }
    let line = maps.line;
    reading.finish().map_err(|message| Fault { line, message })
}

impl<F: FnMut(&Transaction) -> Result<(), String>> Reading<'_, F> {
    fn take(&mut self, map: &Value) -> Result<(), String> {
        self.maps += 1;
        let word = |name: &str| match map.get(name) {
            Some(Value::Text(word)) => Ok(word.as_str()),
            Some(other) => Err(format!("{name} is {other:?}; expected a word")),
            None => Err(format!("the map has no {name}")),
        };
        let Some(Value::Whole(process)) = map.get("process") else {
            // A nemesis', or a checkpoint of the test's own.
            self.told.skipped += 1;
            return Ok(());
        };
        let session = u32::try_from(*process)
            .map_err(|_| format!("process {process} is no number from 0 to {}", u32::MAX))?;
        let kind = word("type")?;
        if !matches!(map.get("value"), Some(Value::List(_) | Value::Nil)) {
            let does = map.get("f").map_or_else(String::new, |f| format!(" of f = {f:?}"));
            return Err(format!(
                "a transaction's value is a list of reads, appends and writes; this is none{does}"
            ));
        }
        let time = match map.get("time") {
            Some(Value::Whole(time)) => {
                u64::try_from(*time).map_err(|_| format!("time {time} is no number of nanoseconds"))?
            }
            _ => self.maps,
        };
        let value = map.get("value").cloned().unwrap_or(Value::Nil);
        if kind == "invoke" {
            self.learn(&value);
            let begun = Begun { number: self.number(map)?, time, value };
            return match self.open.insert(session, begun) {
                None => Ok(()),
                Some(_) => {
                    Err(format!("process {session} begins a transaction before its last one has ended"))
                }
            };
        }
        let outcome = match kind {
            "ok" => Outcome::Committed,
            "fail" => Outcome::Aborted,
            "info" => Outcome::Unknown,
            other => return Err(format!("type is {other:?}; allowed are invoke, ok, fail, info")),
        };
        let Some(begun) = self.open.remove(&session) else {
            return Err(format!("process {session} ends a transaction that it has not begun"));
        };
        // Whoever failed may tell nothing of what it tried.
        let did = if outcome == Outcome::Committed { value } else { begun.value };
        self.end(session, begun.number, (begun.time, time), outcome, &did)
    }

    fn number(&self, map: &Value) -> Result<u64, String> {
        match map.get("index") {
            Some(Value::Whole(index)) => {
                u64::try_from(*index).map_err(|_| format!("index {index} is below 0, or too large"))
            }
            _ => Ok(self.maps - 1),
        }
    }

    /// Whether lists or registers are meant, as soon as something says so.
    fn learn(&mut self, value: &Value) {
        let Value::List(operations) = value else { return };
        for operation in operations {
            let Value::List(parts) = operation else { continue };
            match parts.as_slice() {
                [Value::Text(word), ..] if word == "append" => self.kind = Kind::Lists,
                [Value::Text(word), ..] if word == "w" => self.kind = Kind::Registers,
                [_, _, Value::List(_)] => self.kind = Kind::Lists,
                _ => {}
            }
        }
    }

    fn end(
        &mut self,
        session: u32,
        number: u64,
        (begin, end): (u64, u64),
        outcome: Outcome,
        value: &Value,
    ) -> Result<(), String> {
        self.learn(value);
        let mut made = std::mem::take(&mut self.made);
        made.restart(number, session, begin);
        (made.end, made.outcome) = (end, outcome);
        if let Value::List(operations) = value {
            for operation in operations {
                self.operation(operation, outcome, &mut made)?;
            }
        }
        self.told.transactions += 1;
        (self.each)(&made)?;
        self.made = made;
        Ok(())
    }

    fn operation(
        &mut self,
        operation: &Value,
        outcome: Outcome,
        made: &mut Transaction,
    ) -> Result<(), String> {
        let Value::List(parts) = operation else {
            return Err(format!("{operation:?} is no operation; expected [:append, key, value], say"));
        };
        let [Value::Text(word), key, value] = parts.as_slice() else {
            return Err("an operation has a word, a key and a value".to_owned());
        };
        let key = self.key(key)?;
        let whole = |value: &Value| match value {
            Value::Whole(whole) => {
                u64::try_from(*whole).map_err(|_| format!("the value {whole} is below 0, or too large"))
            }
            other => Err(format!("the value {other:?} of an {word:?} is no whole number")),
        };
        match (word.as_str(), value) {
            ("append", value) => made.operations.push(Operation::Append { key, value: whole(value)? }),
            ("w", value) => made.operations.push(Operation::Write { key, value: whole(value)? }),
            // What it read matters only where it has committed.
            ("r", _) if outcome != Outcome::Committed => {}
            ("r", Value::List(values)) => {
                let values = values.iter().map(whole).collect::<Result<Vec<_>, _>>()?;
                made.list(key, &values);
            }
            ("r", Value::Nil) => {
                // As long as nobody knows, it is both: nobody writes to what is none of the history's kind.
                if self.kind != Kind::Registers {
                    made.list(key, &[]);
                }
                if self.kind != Kind::Lists {
                    made.operations.push(Operation::Read { key, value: None });
                }
            }
            ("r", value) => made.operations.push(Operation::Read { key, value: Some(whole(value)?) }),
            (other, _) => return Err(format!("{other:?} is no operation; allowed are append, r, w")),
        }
        Ok(())
    }

    fn key(&mut self, key: &Value) -> Result<u64, String> {
        let name = match key {
            Value::Whole(key) if (0..i128::from(FIRST_NAME)).contains(key) => {
                return Ok(u64::try_from(*key).unwrap_or_default());
            }
            Value::Whole(key) => key.to_string(),
            Value::Text(name) | Value::Other(name) => format!("{name:?}"),
            other => return Err(format!("{other:?} is no key; expected a number or a text")),
        };
        let next = FIRST_NAME + self.names.len() as u64;
        Ok(*self.names.entry(name).or_insert(next))
    }

    /// Nobody knows what became of those that have begun and not ended.
    fn finish(mut self) -> Result<Told, String> {
        let latest = self.open.values().map(|begun| begun.time).max().unwrap_or_default();
        let mut left: Vec<(u32, Begun)> = self.open.drain().collect();
        left.sort_unstable_by_key(|(session, _)| *session);
        for (session, begun) in left {
            self.end(
                session,
                begun.number,
                (begun.time, latest.max(begun.time)),
                Outcome::Unknown,
                &begun.value,
            )?;
        }
        Ok(self.told)
    }
}
