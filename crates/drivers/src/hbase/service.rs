//! Verbs as requests, and their responses as rows.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::cells::{Cell, FAMILY, coded, column, decode, refused, row, rows, set};
use super::config::Config;
use crate::contract::error::Error;
use crate::contract::value::Params;
use crate::contract::verb::{Action, Verb};
use crate::net::http::service::{Cells, Found, Keyed, Service};
use crate::net::http::{Method, Request, Response};

/// What a path has as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
/// What the gateway's paths mean by these words in a key's place.
const RESERVED: [&[u8]; 5] = [b"exists", b"multiget", b"regions", b"scanner", b"schema"];
/// The most rows that one request takes from a scanner.
const MOST_ROWS: usize = 1000;

/// A session's side of the protocol.
pub(crate) struct HBaseService {
    config: Arc<Config>,
    text: Vec<u8>,
    value: Vec<u8>,
    cells: Cells,
    scan: Scan,
}

/// A scan on its way.
#[derive(Default)]
struct Scan {
    /// The path of the scanner at the gateway.
    scanner: String,
    /// Whether the response that is due is that to its end.
    ends: bool,
    /// The key of the last row, in base64: a row of many cells may come in parts.
    last: Vec<u8>,
}

/// The parts of a verb's requests that do not change.
pub(crate) struct Parts {
    /// The table's path, and a slash.
    table: String,
    /// Behind a key: the columns.
    columns: String,
    /// The columns of the fields, in base64.
    coded: Vec<String>,
}

/// A text as a part of a path.
pub(super) fn encoded(text: &[u8]) -> String {
    percent_encode(text, PATH).to_string()
}

/// Writes a request; a body is JSON.
pub(super) fn write(
    (method, target, body): (Method, &str, &str),
    authority: &str,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    const JSON: &str = "application/json";
    let headers = [("Host", authority), ("Accept", JSON), ("Content-Type", JSON)];
    let headers = if body.is_empty() { &headers[..2] } else { &headers };
    Request { method, target, headers, body: body.as_bytes() }.write(out)
}

/// Where rows are stored: each names its key in the body, and the path's key stands for none.
pub(super) fn any_row(table: &str) -> String {
    format!("{table}fakerow")
}

impl HBaseService {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        let (text, value, config) = (Vec::new(), Vec::new(), Arc::clone(config));
        Self { config, text, value, cells: Cells::default(), scan: Scan::default() }
    }

    fn send(&self, request: (Method, &str, &str), out: &mut Vec<u8>) -> Result<Option<Method>, Error> {
        write(request, self.config.endpoint.authority(), out)?;
        Ok(Some(request.0))
    }

    /// Takes the key of a call; the error is one by which no row can be asked for.
    fn key(&mut self, keyed: &Keyed<Parts>, params: &Params) -> Result<(), Error> {
        self.text.clear();
        keyed.key(params, &mut self.text)?;
        let key = self.text.as_slice();
        let what = match () {
            () if keyed.verb.action == Action::Scan => return Ok(()),
            () if key.is_empty() => "HBase keeps no empty key",
            () if key.ends_with(b"*") => "the gateway takes a key that ends with \"*\" for many keys",
            () if RESERVED.contains(&key) => "the gateway takes this key for a word of its own",
            () => return Ok(()),
        };
        Err(Error::other(format!("table {}: {what}", keyed.verb.table)))
    }

    /// The row of a call that writes.
    fn row(&mut self, keyed: &Keyed<Parts>, params: &Params) -> Result<String, Error> {
        if keyed.own.coded.is_empty() {
            let what = "HBase keeps no row that has a key alone";
            return Err(Error::other(format!("table {}: {what}", keyed.verb.table)));
        }
        self.value.clear();
        let mut ends = Vec::with_capacity(keyed.own.coded.len());
        for place in 0..keyed.own.coded.len() {
            keyed.field(params, place, &mut self.value)?;
            ends.push(self.value.len());
        }
        let mut start = 0;
        let cells = keyed.own.coded.iter().zip(ends).map(|(column, end)| {
            let value = &self.value[start..end];
            start = end;
            (column.clone(), value)
        });
        Ok(set(&[row(&self.text, cells)]))
    }

    /// Opens a scanner. It gives so many cells at a time that no row is cut.
    fn open(
        &self,
        keyed: &Keyed<Parts>,
        params: &Params,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let Parts { table, coded: columns, .. } = &keyed.own;
        let cells = keyed.count(params)?.clamp(1, MOST_ROWS) * columns.len().max(1);
        let columns = if columns.is_empty() { vec![coded(FAMILY.as_bytes())] } else { columns.clone() };
        let body = format!(
            "{{\"batch\":{cells},\"startRow\":\"{}\",\"column\":[\"{}\"]}}",
            coded(&self.text),
            columns.join("\",\"")
        );
        self.send((Method::Put, &format!("{table}scanner"), &body), out)
    }

    /// Adds a row of a response.
    fn found(
        cells: &mut Cells,
        keyed: &Keyed<Parts>,
        told: &[Cell<'_>],
        found: &mut Found<'_>,
    ) -> Result<(), Error> {
        cells.begin(keyed.verb.fields.len());
        for (column, value) in told {
            let place = keyed.own.coded.iter().position(|known| column.is(known.as_bytes()));
            if let Some(place) = place {
                cells.set(place, |out| decode(*value, out))?;
            }
        }
        found.push(cells)
    }

    /// Takes a response to a scan's request: to the scanner's beginning, to a look at it, or to its end.
    fn scanned(
        &mut self,
        (keyed, params, turn): (&Keyed<Parts>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let most = keyed.count(params)?;
        let mut goes_on = true;
        match response.status {
            201 if turn == 0 => {
                let scanner = scanner(&keyed.own.table, response)?;
                self.scan = Scan { scanner, ends: false, last: Vec::new() };
            }
            200..300 | 404 if self.scan.ends && turn > 0 => return Ok(None),
            200 if turn > 0 => {
                let Self { cells, scan, .. } = self;
                rows(&response.body, |key, told| {
                    if found.count() == most || key.is(&scan.last) {
                        return Ok(());
                    }
                    scan.last.clear();
                    key.append_to(&mut scan.last)?;
                    Self::found(cells, keyed, told, found)
                })?;
            }
            // The scanner has no more.
            204 if turn > 0 => goes_on = false,
            _ => return Err(refused(response)),
        }
        let left = most.saturating_sub(found.count());
        if goes_on && left > 0 {
            let target = format!("{}?n={}", self.scan.scanner, left.min(MOST_ROWS));
            return self.send((Method::Get, &target, ""), out);
        }
        self.scan.ends = true;
        self.send((Method::Delete, &self.scan.scanner, ""), out)
    }
}

/// The path of a scanner that was opened: the last part of its address is its name.
fn scanner(table: &str, response: &Response) -> Result<String, Error> {
    let location = response.headers.get("location").unwrap_or_default();
    let name = location.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name.len() > 100 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Error::connection_lost("the gateway opens a scanner without saying its address"));
    }
    Ok(format!("{table}scanner/{name}"))
}

impl Service for HBaseService {
    type Own = Parts;

    const NAME: &'static str = "HBase";

    fn own(&self, verb: &Verb) -> Parts {
        let fields = verb.fields.iter();
        let coded: Vec<String> = fields.clone().map(|field| column(field)).collect();
        let columns: Vec<String> =
            fields.map(|field| format!("{FAMILY}:{}", encoded(field.as_bytes()))).collect();
        let columns = if columns.is_empty() { FAMILY.to_owned() } else { columns.join(",") };
        let table = self.config.path(&format!("{}/", encoded(verb.table.as_bytes())));
        Parts { table, columns, coded }
    }

    fn ask(&mut self, keyed: &Keyed<Parts>, params: &Params, out: &mut Vec<u8>) -> Result<Method, Error> {
        self.key(keyed, params)?;
        let Parts { table, columns, .. } = &keyed.own;
        let one = |key: &[u8]| format!("{table}{}/{columns}", encoded(key));
        let asked = match keyed.verb.action {
            Action::Read => self.send((Method::Get, &one(&self.text), ""), out)?,
            Action::Delete => self.send((Method::Delete, &one(&self.text), ""), out)?,
            Action::Scan => self.open(keyed, params, out)?,
            Action::Insert | Action::Update => {
                let body = self.row(keyed, params)?;
                self.send((Method::Put, &any_row(table), &body), out)?
            }
        };
        Ok(asked.unwrap_or(Method::Get))
    }

    fn answer(
        &mut self,
        (keyed, params, turn): (&Keyed<Parts>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        match (keyed.verb.action, response.status) {
            (Action::Scan, _) => return self.scanned((keyed, params, turn), response, found, out),
            (Action::Read, 200) => {
                let mut is_first = true;
                rows(&response.body, |_, told| {
                    if std::mem::take(&mut is_first) {
                        Self::found(&mut self.cells, keyed, told, found)
                    } else {
                        Ok(())
                    }
                })?;
            }
            // The gateway says the same of a table that is not there.
            (Action::Read, 404) if refused(response).code().is_empty() => {}
            // A deletion does not tell whether there was a row.
            (Action::Insert | Action::Update | Action::Delete, 200..300) => found.touched(1),
            _ => return Err(refused(response)),
        }
        Ok(None)
    }
}
