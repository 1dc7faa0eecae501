//! The connection for set-up, loading and checks: it blocks, on a runtime of its own.

use std::sync::Arc;

use nephoscope_runtime::Yield;
use nephoscope_runtime::clock::Nanos;

use super::startup::{Endpoint, Link};
use super::wire::{self, Items, Value, put_text, put_texts, put_words};
use crate::contract::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::contract::value::{self, write_plain};
use crate::net::asking::Asking;
use crate::net::reach::not_in_time;

/// What a manifest says of a server: lines of INFO, and settings.
const FACTS: [&str; 6] =
    ["redis_version", "redis_mode", "role", "connected_slaves", "maxmemory_policy", "aof_enabled"];
const SETTINGS: [&str; 6] =
    ["maxmemory", "appendonly", "appendfsync", "save", "io-threads", "min-replicas-to-write"];

pub(super) struct RedisAdmin {
    link: Link,
    asking: Asking,
}

impl RedisAdmin {
    pub(super) fn connect(endpoint: &Arc<Endpoint>, settings: &Settings) -> Result<Self, Error> {
        let asking = Asking::new(settings)?;
        let Asking { runtime, interrupt, .. } = &asking;
        let link = runtime.block_on(interrupt.or(async {
            let deadline = endpoint.deadline();
            let mut link = endpoint.establish(runtime, deadline).await?;
            link.channel.set_deadline(deadline);
            set_up(&mut link, &settings.on_connect).await.map_err(not_in_time)?;
            Ok(link)
        }))?;
        Ok(Self { link, asking })
    }

    fn ask<T>(&mut self, question: impl AsyncFnOnce(&mut Link) -> Result<T, Error>) -> Result<T, Error> {
        self.asking.ask(&mut self.link, |link| &mut link.channel, question)
    }
}

/// Runs the commands that every connection begins with.
pub(super) async fn set_up(link: &mut Link, on_connect: &[String]) -> Result<(), Error> {
    for line in on_connect {
        let done = run(link, line).await;
        done.map_err(|error| error.context(&format!("on_connect {line:?}")))?;
    }
    Ok(())
}

async fn run(link: &mut Link, line: &str) -> Result<Vec<u8>, Error> {
    let words = words(line).map_err(Error::other)?;
    if words.is_empty() {
        return Err(Error::other("there is no command"));
    }
    link.command(&words.iter().map(Vec::as_slice).collect::<Vec<_>>()).await
}

/// The words of a command as `redis-cli` reads them: apart by blanks, or in `"…"` with `\"`, `\\` and `\n`, or in `'…'`.
fn words(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let (mut words, mut letters) = (Vec::new(), line.chars().peekable());
    loop {
        while letters.next_if(|next| next.is_whitespace()).is_some() {}
        let Some(first) = letters.next() else { return Ok(words) };
        let mut word = String::new();
        if first == '"' || first == '\'' {
            loop {
                match letters.next() {
                    None => return Err(format!("a word in {first}…{first} does not end")),
                    Some(next) if next == first => break,
                    Some('\\') if first == '"' => match letters.next() {
                        Some('n') => word.push('\n'),
                        next => word.extend(next),
                    },
                    Some(next) => word.push(next),
                }
            }
        } else {
            word.push(first);
            while let Some(next) = letters.next_if(|next| !next.is_whitespace()) {
                word.push(next);
            }
        }
        words.push(word.into_bytes());
    }
}

/// An answer as a table: a value of its own is one row, a list one row for each, a map its keys and values.
fn table(answer: &[u8]) -> Result<Table, Error> {
    let cell = |value: Value<'_>| match value {
        Value::Null => Ok(None),
        Value::Int(number) => Ok(Some(number.to_string())),
        Value::Text(text) => Ok(Some(String::from_utf8_lossy(text).into_owned())),
        _ => Err(Error::other("the answer is no list of plain values")),
    };
    let mut items = Items::new(answer);
    let (width, count) = match items.next()? {
        Value::Items(count) if answer[0] == b'%' => (2, count / 2),
        Value::Items(count) => (1, count),
        value => return Ok(Table { columns: vec!["value".to_owned()], rows: vec![vec![cell(value)?]] }),
    };
    let row = |_| (0..width).map(|_| cell(items.next()?)).collect();
    let names = if width == 2 { &["name", "value"][..] } else { &["value"] };
    Ok(Table {
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        rows: (0..count).map(row).collect::<Result<_, Error>>()?,
    })
}

impl Admin for RedisAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.asking.answer_timeout = limit;
    }

    /// Runs one command, written as for `redis-cli`.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let answer = self.ask(async |link| run(link, sql).await)?;
        table(&answer)
    }

    /// Stores rows under their first column. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        self.ask(async |link| load(link, table, columns, rows).await)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let info = self.query("INFO")?;
        let text = info.rows.into_iter().flatten().flatten().next().unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let mut facts: Vec<(String, String)> = lines
            .filter(|(name, _)| FACTS.contains(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        for name in SETTINGS {
            // A service may forbid CONFIG, and an older server lack the setting.
            let Ok(found) = self.query(&format!("CONFIG GET {name}")) else { continue };
            let value = found.rows.into_iter().flatten().flatten().nth(1);
            facts.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(facts)
    }
}

async fn load(
    link: &mut Link,
    table: &str,
    columns: &[String],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let mut encoder =
        Encoder { table, columns, out: Vec::new(), key: Vec::new(), cells: 0, rows: 0, value: Vec::new() };
    let mut count = 0;
    loop {
        let more = rows.fill(&mut encoder)?;
        link.channel.out().append(&mut encoder.out);
        // Two commands a row.
        for _ in 0..2 * std::mem::take(&mut encoder.rows) {
            let answer = link.answer().await?;
            if let Value::Error(text) = Items::new(&answer).next()? {
                return Err(wire::refusal(text).context(&format!("table {table}")));
            }
            count += 1;
        }
        if !more {
            return Ok(count / 2);
        }
        Yield::default().await;
    }
}

/// Writes each row as HSET and ZADD.
struct Encoder<'a> {
    table: &'a str,
    columns: &'a [String],
    out: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    cells: usize,
    rows: u64,
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, value: value::Value<'_>) -> Result<(), Error> {
        let Some(column) = self.columns.get(self.cells) else {
            return Err(Error::other(format!("table {}: a row has more values than columns", self.table)));
        };
        self.value.clear();
        if !write_plain(value, &mut self.value) {
            return Err(Error::other(format!("table {}, column {column}: Redis keeps no NULL", self.table)));
        }
        if self.cells == 0 {
            self.key.clone_from(&self.value);
            put_words(&mut self.out, 2 * self.columns.len());
            put_text(&mut self.out, b"HSET");
            put_text(&mut self.out, &[self.table.as_bytes(), b":", &self.key].concat());
        } else {
            put_text(&mut self.out, column.as_bytes());
            put_text(&mut self.out, &self.value);
        }
        self.cells += 1;
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        if self.cells != self.columns.len() {
            return Err(Error::other(format!("table {}: a row has fewer values than columns", self.table)));
        }
        put_words(&mut self.out, 4);
        put_texts(&mut self.out, &[b"ZADD", self.table.as_bytes(), b"0", &self.key]);
        self.cells = 0;
        self.rows += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_redis_cli_does() {
        let read = |line| {
            words(line)
                .map(|all| all.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(read(r#"  SET "a \"b\"\n\\" 'c "d' é "#).unwrap(), ["SET", "a \"b\"\n\\", "c \"d", "é"]);
        assert_eq!(read("").unwrap(), Vec::<String>::new());
        assert!(read("GET \"a").unwrap_err().contains("does not end"));
    }

    #[test]
    fn an_answer_is_a_table() {
        let rows = |answer: &[u8]| table(answer).map(|table| format!("{:?} {:?}", table.columns, table.rows));
        assert_eq!(rows(b"$2\r\nab\r\n").unwrap(), r#"["value"] [[Some("ab")]]"#);
        assert_eq!(rows(b"*2\r\n:1\r\n_\r\n").unwrap(), r#"["value"] [[Some("1")], [None]]"#);
        assert_eq!(rows(b"%1\r\n+a\r\n+b\r\n").unwrap(), r#"["name", "value"] [[Some("a"), Some("b")]]"#);
        assert!(rows(b"*1\r\n*0\r\n").is_err());
    }
}
