//! The connection for set-up, loading and checks.

use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};
use nephoscope_runtime::{Runtime, Yield};

use super::service::{CONTENT, refused, target};
use crate::contract::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::value::{Value, write_plain};
use crate::net::aws::{Account, Blocking, Caller};
use crate::net::http::{Method, Response};
use crate::net::json::{Reader, put_text};
use crate::net::sigv4::Unsigned;

/// The most items that one request writes, and the most bytes that they may have here: a quarter of what is allowed.
const MOST_ITEMS: usize = 25;
const MOST_BYTES: usize = 4 << 20;
/// The pauses before what was left undone is sent again.
const PAUSES: (Nanos, Nanos) = (50 * MILLISECOND, 5 * SECOND);

pub(super) struct DynamoDbAdmin {
    blocking: Blocking,
    facts: Vec<(String, String)>,
}

impl DynamoDbAdmin {
    pub(super) fn connect(account: &Account, settings: &Settings) -> Result<Self, Error> {
        let blocking = Blocking::connect(&account.endpoint, account.signer("dynamodb"), settings)?;
        Ok(Self { blocking, facts: account.facts("2012-08-10") })
    }
}

/// Makes a request; the error is the service's.
async fn ask(caller: &mut Caller, operation: &str, body: &[u8], deadline: Nanos) -> Result<Response, Error> {
    let target = target(operation);
    let headers = [CONTENT, ("X-Amz-Target", target.as_str())];
    let request = Unsigned { method: Method::Post, path: "/", query: &[], headers: &headers, body };
    let response = caller.call(&request, deadline).await?;
    if response.status == 200 { Ok(response) } else { Err(refused(&response)) }
}

impl Admin for DynamoDbAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.blocking.answer_timeout = limit;
    }

    /// Makes one request: an operation and its JSON, `ListTables {"Limit": 5}`. Gives the response's JSON, one cell.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let (operation, body) = sql.trim().split_once(char::is_whitespace).unwrap_or((sql.trim(), "{}"));
        if operation.is_empty() || !operation.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Error::other(
                "DynamoDB has no SQL; an operation and its JSON is a request: ListTables {\"Limit\": 5}",
            ));
        }
        let response = self
            .blocking
            .run(async |caller, _, deadline| ask(caller, operation, body.trim().as_bytes(), deadline).await);
        let text = String::from_utf8_lossy(&response?.body).into_owned();
        Ok(Table { columns: vec!["response".to_owned()], rows: vec![vec![Some(text)]] })
    }

    /// Stores rows as items, the first column as their key. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let loaded = self.blocking.run(async |caller, runtime, deadline| {
            load(caller, runtime, &mut Encoder::new(table, columns), rows, deadline).await
        });
        loaded.map_err(|error| error.context(&format!("table {table}")))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(self.facts.clone())
    }
}

async fn load(
    caller: &mut Caller,
    runtime: &Runtime,
    encoder: &mut Encoder<'_>,
    rows: &mut dyn RowSource,
    deadline: Nanos,
) -> Result<u64, Error> {
    let mut count = 0;
    loop {
        let more = rows.fill(encoder)?;
        let (mut sent, mut start) = (0, 0);
        while sent < encoder.ends.len() {
            let most = encoder.ends[sent..].iter().take(MOST_ITEMS);
            let fitting = most.take_while(|end| **end - start <= MOST_BYTES).count().max(1);
            sent += fitting;
            let end = encoder.ends[sent - 1];
            let items =
                format!("{{{}:[{}]}}", encoder.table, &encoder.items[start..end].trim_end_matches(','));
            store(caller, runtime, items, deadline).await?;
            (start, count) = (end, count + fitting as u64);
        }
        encoder.items.clear();
        encoder.ends.clear();
        if !more {
            return Ok(count);
        }
        Yield::default().await;
    }
}

/// Writes items, and those again that the service has left undone, beyond a rate, until the deadline.
async fn store(
    caller: &mut Caller,
    runtime: &Runtime,
    mut items: String,
    deadline: Nanos,
) -> Result<(), Error> {
    let (mut pause, longest) = PAUSES;
    loop {
        let body = format!("{{\"RequestItems\":{items}}}");
        match ask(caller, "BatchWriteItem", body.as_bytes(), deadline).await {
            Ok(response) => match unprocessed(&response.body)? {
                None => return Ok(()),
                Some(left) => items = left,
            },
            Err(error) if error.class() == ErrorClass::Throttled => {}
            Err(error) => return Err(error),
        }
        if clock::now().saturating_add(pause) >= deadline {
            return Err(Error::new(
                ErrorClass::Throttled,
                "",
                "rows were refused beyond a rate up to the time limit",
            ));
        }
        runtime.sleep_until(clock::now() + pause).await;
        pause = (2 * pause).min(longest);
    }
}

/// What was left undone, as the next request has it; `None` where nothing was.
fn unprocessed(body: &[u8]) -> Result<Option<String>, Error> {
    let mut left = None;
    Reader::new(body).object(|json, name| {
        if name.is(b"UnprocessedItems") {
            let raw = json.raw()?;
            let mut any = false;
            Reader::new(raw).object(|json, _| {
                any = true;
                json.skip()
            })?;
            left = any.then(|| String::from_utf8_lossy(raw).into_owned());
            return Ok(());
        }
        json.skip()
    })?;
    Ok(left)
}

/// Writes each row as the item of a request to put it.
struct Encoder<'a> {
    /// Between quotes.
    table: String,
    columns: &'a [String],
    items: String,
    /// Where each row ends.
    ends: Vec<usize>,
    cells: usize,
    text: Vec<u8>,
    quoted: Vec<u8>,
}

impl<'a> Encoder<'a> {
    fn new(table: &str, columns: &'a [String]) -> Self {
        let mut quoted = Vec::new();
        // A name is UTF-8.
        let _ = put_text(&mut quoted, table.as_bytes());
        let table = String::from_utf8_lossy(&quoted).into_owned();
        let (items, ends, text) = (String::new(), Vec::new(), Vec::new());
        Self { table, columns, items, ends, cells: 0, text, quoted }
    }

    fn quote(&mut self, column: &str) -> Result<(), Error> {
        self.quoted.clear();
        if !put_text(&mut self.quoted, &self.text) {
            return Err(Error::other(format!("column {column}: DynamoDB keeps UTF-8 here")));
        }
        self.items.push_str(&String::from_utf8_lossy(&self.quoted));
        Ok(())
    }
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let Some(column) = self.columns.get(self.cells) else {
            return Err(Error::other("a row has more values than columns"));
        };
        self.items.push_str(if self.cells == 0 { "{\"PutRequest\":{\"Item\":{" } else { "}," });
        self.text.clear();
        self.text.extend_from_slice(column.as_bytes());
        self.quote(column)?;
        self.items.push_str(":{\"S\":");
        self.text.clear();
        if !write_plain(value, &mut self.text) {
            return Err(Error::other(format!("column {column}: DynamoDB keeps no NULL")));
        }
        self.cells += 1;
        self.quote(column)
    }

    fn end_row(&mut self) -> Result<(), Error> {
        if self.cells != self.columns.len() {
            return Err(Error::other("a row has fewer values than columns"));
        }
        self.items.push_str("}}}},");
        self.ends.push(self.items.len());
        self.cells = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_items_and_what_was_left_is_told() {
        let columns = ["k", "a"].map(str::to_owned);
        let mut encoder = Encoder::new("t", &columns);
        for value in [Value::Int(7), Value::Text(b"x\"y")] {
            encoder.push(value).unwrap();
        }
        encoder.end_row().unwrap();
        assert_eq!(encoder.items, r#"{"PutRequest":{"Item":{"k":{"S":"7"},"a":{"S":"x\"y"}}}},"#);
        encoder.push(Value::Int(7)).unwrap();
        assert!(encoder.end_row().unwrap_err().message().contains("fewer values"));
        assert!(
            encoder.push(Value::Null).unwrap_err().message().contains("column a: DynamoDB keeps no NULL")
        );
        assert_eq!(unprocessed(br#"{"UnprocessedItems":{}}"#).unwrap(), None);
        let left = unprocessed(br#"{"UnprocessedItems": {"t":[1]}, "x": 1}"#).unwrap().unwrap();
        assert_eq!(left, r#"{"t":[1]}"#);
    }
}
