//! The connection for set-up, loading and checks: it blocks, on a runtime of its own.

use std::sync::Arc;

use nephoscope_runtime::Yield;
use nephoscope_runtime::clock::Nanos;

use super::bson::{self, Elements, put_int, put_long, put_text, put_value};
use super::errors::{Answer, text_of};
use super::extended;
use super::keyed::{Batch, KEY};
use super::levels::Levels;
use super::startup::{Endpoint, Link, Manner};
use super::wire;
use crate::contract::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::contract::value::Value;
use crate::net::asking::Asking;

/// What a message has beside its documents, with room to spare.
const BESIDE_DOCUMENTS: usize = 16 << 10;

pub(super) struct MongoDbAdmin {
    link: Link,
    asking: Asking,
    manner: Manner,
}

/// A document as text.
fn shown(document: &[u8]) -> Result<String, Error> {
    let mut out = Vec::new();
    extended::write_document(document, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

impl MongoDbAdmin {
    pub(super) fn connect(
        endpoint: &Arc<Endpoint>,
        settings: &Settings,
        levels: Option<Levels>,
    ) -> Result<Self, Error> {
        let asking = Asking::new(settings)?;
        let Asking { runtime, interrupt, .. } = &asking;
        let link = runtime.block_on(interrupt.or(endpoint.establish(runtime, endpoint.deadline())))?;
        let manner = Manner::new(&endpoint.config, levels, link.hello.is_primary());
        Ok(Self { link, asking, manner })
    }

    fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&mut Link, &Manner) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let manner = &self.manner;
        self.asking.ask(
            &mut self.link,
            |link| &mut link.channel,
            async |link: &mut Link| question(link, manner).await,
        )
    }

    /// The answer to a command of the server's own, if the server knows it and the user may ask.
    fn told(&mut self, command: &str) -> Result<Option<Vec<u8>>, Error> {
        let told = self.ask(async |link, _| link.ask("admin", |out| put_int(out, command, 1)).await);
        match told {
            Ok(body) => Ok(Some(body)),
            Err(error) if !error.code().is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Runs a command; gives the documents of its cursor, or the elements of its answer.
async fn run(link: &mut Link, database: &str, command: &str) -> Result<Table, Error> {
    let elements = extended::elements(command)
        .map_err(|why| Error::other(format!("a command of MongoDB is JSON, {{\"ping\": 1}}: {why}")))?;
    let body = link.ask(database, |out| out.extend_from_slice(&elements)).await?;
    if Answer::read(&body)?.cursor.is_some() {
        return documents(link, database, body).await;
    }
    let (mut elements, mut rows) = (Elements::of(&body)?, Vec::new());
    while let Some(element) = elements.next()? {
        let mut value = Vec::new();
        extended::write(&element, &mut value, 0)?;
        rows.push([element.name, &value].map(|text| Some(String::from_utf8_lossy(text).into_owned())).into());
    }
    Ok(Table { columns: ["name", "value"].map(str::to_owned).into(), rows })
}

/// The documents of a cursor, to its end.
async fn documents(link: &mut Link, database: &str, first: Vec<u8>) -> Result<Table, Error> {
    let (mut rows, mut body) = (Vec::new(), first);
    loop {
        let answer = Answer::read(&body)?;
        let mut batch = Batch::of(&answer)?;
        while let Some(document) = batch.next()? {
            rows.push(vec![Some(shown(document)?)]);
        }
        if batch.cursor == 0 {
            return Ok(Table { columns: vec!["document".to_owned()], rows });
        }
        let (cursor, of) = (batch.cursor, batch.collection.to_vec());
        let write = |out: &mut Vec<u8>| {
            put_long(out, "getMore", cursor);
            put_text(out, "collection", &of);
        };
        body = link.ask(database, write).await?;
    }
}

impl Admin for MongoDbAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.asking.answer_timeout = limit;
    }

    /// Runs one command, in JSON. Of an answer with a cursor the rows are its documents, in Extended JSON.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        self.ask(async |link, manner| run(link, &manner.database, sql).await)
    }

    /// Stores rows as documents, whose `_id` is the first column. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        self.ask(async |link, manner| load(link, manner, table, columns, rows).await)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let mut facts = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        };
        if let Some(body) = self.told("buildInfo")? {
            add("mongodb_version", text_of(&body, "version")?);
            add("ferretdb_version", text_of(&body, "ferretdbVersion")?);
        }
        if let Some(body) = self.told("serverStatus")?
            && let Some(engine) = bson::find(&body, "storageEngine")?.and_then(|found| found.document())
        {
            add("storage_engine", text_of(engine, "name")?);
        }
        if let Some(body) = self.told("getDefaultRWConcern")? {
            for (name, fact) in [
                ("defaultReadConcern", "default_read_concern"),
                ("defaultWriteConcern", "default_write_concern"),
            ] {
                let found = bson::find(&body, name)?.and_then(|found| found.document());
                add(fact, found.map(shown).transpose()?);
            }
        }
        let hello = &self.link.hello;
        add("replica_set", hello.replica_set.clone());
        add("members", hello.replica_set.as_ref().map(|_| hello.members.to_string()));
        Ok(facts)
    }
}

async fn load(
    link: &mut Link,
    manner: &Manner,
    table: &str,
    columns: &[String],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let mut encoder = Documents { table, columns, row: None, cells: 0, bytes: Vec::new(), ends: Vec::new() };
    let limits = (link.hello.longest_message - BESIDE_DOCUMENTS, link.hello.most_documents);
    let mut stored = 0;
    loop {
        let more = rows.fill(&mut encoder)?;
        let (mut ends, mut start) = (encoder.ends.as_slice(), 0);
        while !ends.is_empty() {
            let (batch, rest) = ends.split_at(fitting(ends, start, limits));
            let end = batch.last().copied().unwrap_or(start);
            insert(link, manner, table, &encoder.bytes[start..end])
                .await
                .map_err(|error| error.context(&format!("table {table}")))?;
            (ends, start, stored) = (rest, end, stored + batch.len() as u64);
        }
        encoder.bytes.clear();
        encoder.ends.clear();
        if !more {
            return Ok(stored);
        }
        Yield::default().await;
    }
}

/// How many of the documents that end there, one at least, go into one message.
fn fitting(ends: &[usize], start: usize, (bytes, documents): (usize, usize)) -> usize {
    ends.iter().take(documents).take_while(|end| **end - start <= bytes).count().max(1)
}

async fn insert(link: &mut Link, manner: &Manner, table: &str, documents: &[u8]) -> Result<(), Error> {
    let number = link.next_number();
    let out = link.channel.out();
    let places = wire::begin(out, number);
    put_text(out, "insert", table.as_bytes());
    out.extend_from_slice(&manner.writes);
    put_text(out, "$db", manner.database.as_bytes());
    wire::end_with(out, places, "documents", documents);
    link.answer().await.map(|_| ())
}

/// Makes a document of each row.
struct Documents<'a> {
    table: &'a str,
    columns: &'a [String],
    /// Where the present row begins.
    row: Option<usize>,
    cells: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowEncoder for Documents<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let Self { table, columns, .. } = self;
        let Some(column) = columns.get(self.cells) else {
            return Err(Error::other(format!("table {table}: a row has more values than columns")));
        };
        if self.row.is_none() {
            self.row = Some(bson::begin(&mut self.bytes));
        }
        let name = if self.cells == 0 { KEY } else { column };
        put_value(&mut self.bytes, name, value)
            .map_err(|why| Error::other(format!("table {table}, column {column}: {why}")))?;
        self.cells += 1;
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        let Some(start) = self.row.take().filter(|_| self.cells == self.columns.len()) else {
            return Err(Error::other(format!("table {}: a row has fewer values than columns", self.table)));
        };
        bson::end(&mut self.bytes, start);
        self.ends.push(self.bytes.len());
        self.cells = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_to_the_limits_of_the_server() {
        let ends = [10, 20, 40, 100];
        assert_eq!(fitting(&ends, 0, (40, 100)), 3);
        assert_eq!(fitting(&ends, 0, (40, 2)), 2);
        assert_eq!(fitting(&ends[3..], 40, (40, 2)), 1, "a document that is too long goes alone");
    }

    #[test]
    fn rows_are_documents() {
        let columns = ["k", "a"].map(str::to_owned);
        let mut encoder = Documents {
            table: "t",
            columns: &columns,
            row: None,
            cells: 0,
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        for key in [1, 2] {
            encoder.push(Value::Int(key)).unwrap();
            encoder.push(Value::Text(b"x")).unwrap();
            encoder.end_row().unwrap();
        }
        let first = &encoder.bytes[..encoder.ends[0]];
        assert_eq!(shown(first).unwrap(), r#"{"_id":1,"a":"x"}"#);
        encoder.push(Value::Int(3)).unwrap();
        let told = encoder.push(Value::Text(b"\xff")).unwrap_err();
        assert_eq!(told.message(), "table t, column a: MongoDB keeps UTF-8 here");
        assert!(encoder.end_row().unwrap_err().message().contains("fewer values"));
    }
}
