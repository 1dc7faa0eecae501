//! The connection for set-up, loading and checks.

use nephoscope_runtime::{Nanos, Runtime};

use super::service::{CONTENT, DynamoDbService, quoted, refused, target};
use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::net::aws::{Account, Caller};
use crate::net::http::loading::{Batch, TextRow, load, patiently};
use crate::net::http::{Blocking, Method, Response};
use crate::net::json::Reader;
use crate::net::sigv4::Unsigned;

/// The most items that a request may write, and an eighth of the bytes: JSON makes more of some.
const BATCH: Batch = Batch { rows: 25, bytes: 2 << 20 };
pub(super) struct DynamoDbAdmin {
    blocking: Blocking<Caller>,
    facts: Vec<(String, String)>,
}

impl DynamoDbAdmin {
    pub(super) fn connect(account: &Account, settings: &Settings) -> Result<Self, Error> {
        let signed = |caller| Caller::new(caller, account.signer("dynamodb"));
        let blocking = Blocking::connect(&account.endpoint, settings, signed)?;
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
            load::<DynamoDbService>(columns, rows, BATCH, async |rows| {
                store(caller, runtime, items_of(table, rows), deadline).await
            })
            .await
        });
        loaded.map_err(|error| error.context(&format!("table {table}")))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(self.facts.clone())
    }
}

/// Writes items, and those again that the service has left undone, beyond a rate, until the deadline.
async fn store(
    caller: &mut Caller,
    runtime: &Runtime,
    mut items: String,
    deadline: Nanos,
) -> Result<(), Error> {
    patiently(runtime, deadline, async || {
        let body = format!("{{\"RequestItems\":{items}}}");
        let response = ask(caller, "BatchWriteItem", body.as_bytes(), deadline).await?;
        let left = unprocessed(&response.body)?;
        let is_done = left.is_none();
        items = left.unwrap_or_default();
        Ok(is_done)
    })
    .await
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

/// Rows as requests to put them, by their table: `{"t":[{"PutRequest":…},…]}`.
fn items_of(table: &str, rows: &[TextRow<'_>]) -> String {
    let put = |row: &TextRow<'_>| {
        let attribute = |(name, text)| format!("{}:{{\"S\":{}}}", quoted(name), quoted(text));
        let attributes: Vec<String> = row.cells().map(attribute).collect();
        format!("{{\"PutRequest\":{{\"Item\":{{{}}}}}}}", attributes.join(","))
    };
    format!("{{{}:[{}]}}", quoted(table), rows.iter().map(put).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::http::loading::tests::{example, refusals, sizes_of_batches};

    #[test]
    fn rows_are_items_and_what_was_left_is_told() {
        let columns = ["k", "a", "b"].map(str::to_owned);
        let rows = example::<DynamoDbService>(&columns);
        let put = |key| {
            format!(
                r#"{{"PutRequest":{{"Item":{{"k":{{"S":"{key}"}},"a":{{"S":"x\"y"}},"b":{{"S":"1"}}}}}}}}"#
            )
        };
        let items = items_of("t", &rows.rows().collect::<Vec<_>>());
        assert_eq!(items, format!(r#"{{"t":[{},{}]}}"#, put(7), put(8)));
        for (limits, fitting) in [((25, 1000), 2), ((25, 9), 1), ((1, 1000), 1), ((25, 0), 1), ((25, 10), 2)]
        {
            assert_eq!(sizes_of_batches(&rows, &Batch { rows: limits.0, bytes: limits.1 }), fitting);
        }
        refusals::<DynamoDbService>();
        assert_eq!(unprocessed(br#"{"UnprocessedItems":{}}"#).unwrap(), None);
        let left = unprocessed(br#"{"UnprocessedItems": {"t":[1]}, "x": 1}"#).unwrap().unwrap();
        assert_eq!(left, r#"{"t":[1]}"#);
    }
}
