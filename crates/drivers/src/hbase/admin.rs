//! The connection for set-up, loading and checks.

use std::sync::Arc;

use nephoscope_runtime::Nanos;

use super::cells::{column, refused, row, set};
use super::config::Config;
use super::service::{HBaseService, any_row, encoded, write};
use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::net::http::loading::{Batch, TextRow, load, patiently};
use crate::net::http::{Blocking, Caller, Method, Response};
use crate::net::json::Reader;

/// How much one request stores.
const BATCH: Batch = Batch { rows: 500, bytes: 1 << 20 };
/// What a query may be.
const COMMANDS: &str = "GET PATH, PUT PATH JSON, POST PATH JSON, DELETE PATH; paths are those below the namespace, \
                        such as usertable/schema";

pub(super) struct HBaseAdmin {
    config: Arc<Config>,
    blocking: Blocking,
}

impl HBaseAdmin {
    pub(super) fn connect(config: &Arc<Config>, settings: &Settings) -> Result<Self, Error> {
        let blocking = Blocking::connect(&config.endpoint, settings, |caller| caller)?;
        Ok(Self { config: Arc::clone(config), blocking })
    }
}

/// Makes a request; `None` where there is nothing of the path.
async fn ask(
    caller: &mut Caller,
    (method, path, body): (Method, &str, &str),
    deadline: Nanos,
) -> Result<Option<Response>, Error> {
    let authority = caller.authority().to_owned();
    let written = |out: &mut Vec<u8>| write((method, path, body), &authority, out);
    let response = caller.call(method, written, deadline).await?;
    match (response.status, method) {
        (200..300, _) => Ok(Some(response)),
        (404, Method::Get) => Ok(None),
        _ => Err(refused(&response)),
    }
}

/// Rows as a body that stores them.
fn body_of(rows: &[TextRow<'_>]) -> String {
    let stored = |each: &TextRow<'_>| {
        let cells = each.fields().map(|(name, text)| (column(name), text.as_bytes()));
        row(each.key().as_bytes(), cells)
    };
    set(&rows.iter().map(stored).collect::<Vec<_>>())
}

/// The cluster's version, as the gateway tells it.
fn version(body: &[u8]) -> Result<String, Error> {
    let mut version = Vec::new();
    Reader::new(body).object(|json, name| match () {
        () if name.is(b"Version") => json.text()?.append_to(&mut version),
        () => json.skip(),
    })?;
    Ok(String::from_utf8_lossy(&version).into_owned())
}

impl Admin for HBaseAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.blocking.answer_timeout = limit;
    }

    /// Makes one request: `GET usertable/schema` gives the response's JSON, one cell, or no row where there is no such
    /// thing; what the other methods take and give is the gateway's.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let (command, rest) = sql.trim().split_once(' ').unwrap_or((sql.trim(), ""));
        let (path, body) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let known = [Method::Get, Method::Put, Method::Post, Method::Delete];
        let method = known.into_iter().find(|method| method.name() == command && !path.is_empty());
        let method =
            method.ok_or_else(|| Error::other(format!("HBase has no SQL; commands are {COMMANDS}")))?;
        let path = self.config.path(path);
        let found = self
            .blocking
            .run(async |caller, _, deadline| ask(caller, (method, &path, body.trim()), deadline).await)?;
        let text = |response: Response| vec![Some(String::from_utf8_lossy(&response.body).into_owned())];
        Ok(Table { columns: vec!["response".to_owned()], rows: found.map(text).into_iter().collect() })
    }

    /// Stores rows, the first column as their key. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let path = any_row(&self.config.path(&format!("{}/", encoded(table.as_bytes()))));
        let loaded = self.blocking.run(async |caller, runtime, deadline| {
            load::<HBaseService>(columns, rows, BATCH, async |rows| {
                let body = body_of(rows);
                patiently(runtime, deadline, async || {
                    ask(caller, (Method::Put, &path, &body), deadline).await.map(|_| true)
                })
                .await
            })
            .await
        });
        loaded.map_err(|error| error.context(&format!("table {table}")))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        let told = self.blocking.run(async |caller, _, deadline| {
            ask(caller, (Method::Get, "/version/cluster", ""), deadline).await
        })?;
        let version = told.map(|response| version(&response.body)).transpose()?.unwrap_or_default();
        let endpoint = self.config.endpoint.to_string();
        Ok([("server_version", version), ("endpoint", endpoint)]
            .map(|(name, fact)| (name.to_owned(), fact))
            .into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::{decode, rows as told_rows};
    use super::*;
    use crate::net::http::loading::tests::{example, refusals};

    #[test]
    fn rows_are_cells_in_base64() {
        let columns = ["k", "a", "b"].map(str::to_owned);
        let rows = example::<HBaseService>(&columns);
        let body = body_of(&rows.rows().take(1).collect::<Vec<_>>());
        let expected =
            r#"{"Row":[{"key":"Nw==","Cell":[{"column":"Zjph","$":"eCJ5"},{"column":"Zjpi","$":"MQ=="}]}]}"#;
        assert_eq!(body, expected);
        let mut told = Vec::new();
        told_rows(body.as_bytes(), |key, cells| {
            decode(key, &mut told)?;
            cells.iter().try_for_each(|(_, value)| decode(*value, &mut told))
        })
        .unwrap();
        assert_eq!(told, b"7x\"y1");
        refusals::<HBaseService>();
    }

    #[test]
    fn the_version_is_the_clusters() {
        assert_eq!(version(br#"{"Version":"1.4.14"}"#).unwrap(), "1.4.14");
        assert!(version(b"<ClusterVersion>").is_err());
    }
}
