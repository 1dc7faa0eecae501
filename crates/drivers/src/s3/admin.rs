//! The connection for set-up, loading and checks.

use std::sync::Arc;

use nephoscope_runtime::Nanos;

use super::config::Config;
use super::object;
use super::service::{Listing, S3Service, is_absent, list, listing};
use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::net::aws::Caller;
use crate::net::aws::refusal::of_xml as refused;
use crate::net::http::loading::{Batch, TextRow, load};
use crate::net::http::{Blocking, Method, Response};
use crate::net::sigv4::Unsigned;

/// What a query may be.
const COMMANDS: &str =
    "LIST PREFIX, GET KEY, PUT KEY TEXT, DELETE KEY; keys are those below the URL's prefix";

/// An object is put alone.
const ALONE: Batch = Batch { rows: 1, bytes: 0 };

pub(super) struct S3Admin {
    config: Arc<Config>,
    blocking: Blocking<Caller>,
}

impl S3Admin {
    pub(super) fn connect(config: &Arc<Config>, settings: &Settings) -> Result<Self, Error> {
        let account = &config.account;
        let signed = |caller| Caller::new(caller, account.signer("s3"));
        let blocking = Blocking::connect(&account.endpoint, settings, signed)?;
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
        let loaded = self.blocking.run(async |caller, _, deadline| {
            load::<S3Service>(columns, rows, ALONE, async |rows| {
                for row in rows {
                    let (key, body) = (format!("{table}/{}", row.key()), object_of(row));
                    ask(caller, &config, (Method::Put, &key, &body), deadline).await?;
                }
                Ok(())
            })
            .await
        });
        loaded.map_err(|error| error.context(&format!("table {table}")))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let bucket = ("bucket".to_owned(), self.config.bucket.clone());
        Ok(self.config.account.facts("2006-03-01").into_iter().chain([bucket]).collect())
    }
}

/// A row as the bytes of its object.
fn object_of(row: &TextRow<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    row.fields().for_each(|(name, text)| object::put_field(&mut body, name.as_bytes(), text.as_bytes()));
    object::end(&mut body);
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::http::loading::tests::{example, refusals};

    #[test]
    fn rows_are_objects() {
        let columns = ["k", "a", "b"].map(str::to_owned);
        let rows = example::<S3Service>(&columns);
        let objects: Vec<_> = rows.rows().map(|row| (row.key().to_owned(), object_of(&row))).collect();
        assert_eq!(objects[0], ("7".to_owned(), br#"{"a":"x\"y","b":"1"}"#.to_vec()));
        refusals::<S3Service>();
    }
}
