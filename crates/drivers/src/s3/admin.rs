//! The connection for set-up, loading and checks.

use std::sync::Arc;

use nephoscope_runtime::{Nanos, Yield};

use super::config::Config;
use super::object;
use super::service::{Listing, is_absent, list, listing, refused};
use crate::contract::bulk::{Admin, RowEncoder, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::contract::value::{Value, write_plain};
use crate::net::aws::{Blocking, Caller};
use crate::net::http::{Method, Response};
use crate::net::sigv4::Unsigned;

/// What a query may be.
const COMMANDS: &str =
    "LIST PREFIX, GET KEY, PUT KEY TEXT, DELETE KEY; keys are those below the URL's prefix";

pub(super) struct S3Admin {
    config: Arc<Config>,
    blocking: Blocking,
}

impl S3Admin {
    pub(super) fn connect(config: &Arc<Config>, settings: &Settings) -> Result<Self, Error> {
        let account = &config.account;
        let blocking = Blocking::connect(&account.endpoint, account.signer("s3"), settings)?;
        Ok(Self { config: Arc::clone(config), blocking })
    }
}

/// Makes a request of an object; `None` where there is none.
async fn ask(
    caller: &mut Caller,
    config: &Config,
    (method, key, body): (Method, &str, &[u8]),
    deadline: Nanos,
) -> Result<Option<Response>, Error> {
    let path = config.path(key);
    let request = Unsigned { method, path: &path, query: &[], headers: &[], body };
    let response = caller.call(&request, deadline).await?;
    match response.status {
        200..300 => Ok(Some(response)),
        _ if is_absent(&response) => Ok(None),
        _ => Err(refused(&response)),
    }
}

/// The first names that begin with a prefix, as many as one listing gives.
async fn names(caller: &mut Caller, config: &Config, start: &str, deadline: Nanos) -> Result<Listing, Error> {
    let parameters = list(config, start, "", usize::MAX);
    let query = parameters.each_ref().map(|(name, value)| (*name, value.as_str()));
    let path = config.bucket_path();
    let request = Unsigned { method: Method::Get, path, query: &query[..3], headers: &[], body: b"" };
    let response = caller.call(&request, deadline).await?;
    if response.status == 200 { listing(config, &response.body) } else { Err(refused(&response)) }
}

/// A table of one column.
fn table(name: &str, cells: impl IntoIterator<Item = String>) -> Table {
    let rows = cells.into_iter().map(|cell| vec![Some(cell)]).collect();
    Table { columns: vec![name.to_owned()], rows }
}

impl Admin for S3Admin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.blocking.answer_timeout = limit;
    }

    /// Makes one request: `LIST PREFIX` gives the first thousand keys that begin with it, `GET KEY` the object's text,
    /// or no row where there is none, `PUT KEY TEXT` and `DELETE KEY` nothing.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let (command, rest) = sql.trim().split_once(' ').unwrap_or((sql.trim(), ""));
        let (key, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let config = Arc::clone(&self.config);
        let (method, body) = match command {
            "LIST" => {
                let found = self
                    .blocking
                    .run(async |caller, _, deadline| names(caller, &config, key, deadline).await);
                return Ok(table("key", found?.keys));
            }
            "GET" => (Method::Get, ""),
            "PUT" => (Method::Put, text),
            "DELETE" => (Method::Delete, ""),
            _ => return Err(Error::other(format!("S3 has no SQL; commands are {COMMANDS}"))),
        };
        let found = self.blocking.run(async |caller, _, deadline| {
            ask(caller, &config, (method, key, body.as_bytes()), deadline).await
        });
        let found = found?.filter(|_| method == Method::Get);
        Ok(table("object", found.map(|response| String::from_utf8_lossy(&response.body).into_owned())))
    }

    /// Stores rows as objects, the first column as their key. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let config = Arc::clone(&self.config);
        let mut encoder =
            Encoder { columns, objects: Vec::new(), key: String::new(), body: Vec::new(), cells: 0 };
        let loaded = self.blocking.run(async |caller, _, deadline| {
            let mut count = 0;
            loop {
                let more = rows.fill(&mut encoder)?;
                for (key, body) in encoder.objects.drain(..) {
                    let key = format!("{table}/{key}");
                    ask(caller, &config, (Method::Put, &key, &body), deadline).await?;
                    count += 1;
                }
                if !more {
                    return Ok(count);
                }
                Yield::default().await;
            }
        });
        loaded.map_err(|error| error.context(&format!("table {table}")))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let bucket = ("bucket".to_owned(), self.config.bucket.clone());
        Ok(self.config.account.facts("2006-03-01").into_iter().chain([bucket]).collect())
    }
}

/// Writes each row as an object.
struct Encoder<'a> {
    columns: &'a [String],
    objects: Vec<(String, Vec<u8>)>,
    key: String,
    body: Vec<u8>,
    cells: usize,
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let Some(column) = self.columns.get(self.cells) else {
            return Err(Error::other("a row has more values than columns"));
        };
        let mut text = Vec::new();
        if !write_plain(value, &mut text) {
            return Err(Error::other(format!("column {column}: S3 keeps no NULL")));
        }
        let text = String::from_utf8(text)
            .map_err(|_| Error::other(format!("column {column}: S3 keeps UTF-8 here")))?;
        if self.cells == 0 {
            self.key = text;
        } else {
            object::put_field(&mut self.body, column.as_bytes(), text.as_bytes());
        }
        self.cells += 1;
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), Error> {
        if self.cells != self.columns.len() {
            return Err(Error::other("a row has fewer values than columns"));
        }
        object::end(&mut self.body);
        self.objects.push((std::mem::take(&mut self.key), std::mem::take(&mut self.body)));
        self.cells = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_objects() {
        let columns = ["k", "a", "b"].map(str::to_owned);
        let objects = Vec::new();
        let mut encoder =
            Encoder { columns: &columns, objects, key: String::new(), body: Vec::new(), cells: 0 };
        for value in [Value::Int(7), Value::Text(b"x\"y"), Value::Bool(true)] {
            encoder.push(value).unwrap();
        }
        encoder.end_row().unwrap();
        assert_eq!(encoder.objects, [("7".to_owned(), br#"{"a":"x\"y","b":"1"}"#.to_vec())]);
        encoder.push(Value::Int(7)).unwrap();
        assert!(encoder.end_row().unwrap_err().message().contains("fewer values"));
        assert!(encoder.push(Value::Null).unwrap_err().message().contains("column a: S3 keeps no NULL"));
        assert!(encoder.push(Value::Bytes(b"\xff")).unwrap_err().message().contains("S3 keeps UTF-8"));
    }
}
