//! The gateway's JSON: rows of cells, their keys, columns and values in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::contract::error::{Error, ErrorClass};
use crate::net::frame::shown;
use crate::net::http::{self, Response};
use crate::net::json::{Reader, Text};

/// The one column family of a table.
pub(super) const FAMILY: &str = "f";
/// How much of the gateway's error is kept: a trace of Java's calls follows it.
const LONGEST_ERROR: usize = 1000;
/// Exceptions of servers that have too much to do; they have done nothing.
const THROTTLED: [&str; 4] =
    ["CallQueueTooBigException", "RegionTooBusyException", "RpcThrottlingException", "ThrottlingException"];

/// A text in base64.
pub(super) fn coded(text: &[u8]) -> String {
    STANDARD.encode(text)
}

/// The column of a field, in base64.
pub(super) fn column(field: &str) -> String {
    coded(format!("{FAMILY}:{field}").as_bytes())
}

/// A row to be stored: its columns are in base64, its key and values are not.
pub(super) fn row<'a>(key: &[u8], cells: impl Iterator<Item = (String, &'a [u8])>) -> String {
    let cell = |(column, value)| format!("{{\"column\":\"{column}\",\"$\":\"{}\"}}", coded(value));
    let cells: Vec<String> = cells.map(cell).collect();
    format!("{{\"key\":\"{}\",\"Cell\":[{}]}}", coded(key), cells.join(","))
}

/// A body of rows.
pub(super) fn set(rows: &[String]) -> String {
    format!("{{\"Row\":[{}]}}", rows.join(","))
}

/// Decodes a text behind `out`.
pub(super) fn decode(text: Text<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut letters = Vec::new();
    text.append_to(&mut letters)?;
    let start = out.len();
    if STANDARD.decode_vec(&letters, out).is_err() {
        return Err(Error::connection_lost("the gateway's answer has something else in place of base64"));
    }
    match std::str::from_utf8(&out[start..]) {
        Ok(_) => Ok(()),
        // It is no fault of the connection.
        Err(_) => Err(Error::other("a cell of the table is no UTF-8: it was not written by nephoscope")),
    }
}

/// What a row's cells tell: the column and the value, both in base64.
pub(super) type Cell<'a> = (Text<'a>, Text<'a>);

/// Tells every row, by its key in base64 and its cells.
pub(super) fn rows<'a>(
    body: &'a [u8],
    mut told: impl FnMut(Text<'a>, &[Cell<'a>]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut json, mut cells) = (Reader::new(body), Vec::new());
    json.object(|json, name| {
        if !name.is(b"Row") {
            return json.skip();
        }
        json.array(|json| {
            let mut key = None;
            cells.clear();
            json.object(|json, name| match () {
                () if name.is(b"key") => {
                    key = Some(json.text()?);
                    Ok(())
                }
                () if name.is(b"Cell") => json.array(|json| {
                    cells.extend(cell(json)?);
                    Ok(())
                }),
                () => json.skip(),
            })?;
            let key = key.ok_or_else(|| Error::connection_lost("the gateway gives a row without its key"))?;
            told(key, &cells)
        })
    })?;
    json.end()
}

fn cell<'a>(json: &mut Reader<'a>) -> Result<Option<Cell<'a>>, Error> {
    let (mut column, mut value) = (None, None);
    json.object(|json, name| {
        let place = match () {
            () if name.is(b"column") => &mut column,
            () if name.is(b"$") => &mut value,
            () => return json.skip(),
        };
        *place = Some(json.text()?);
        Ok(())
    })?;
    Ok(column.zip(value))
}

/// What the gateway says of a request that it refused: a line, then the exception behind it, where there is one.
pub(super) fn refused(response: &Response) -> Error {
    let text = shown(&response.body, LONGEST_ERROR);
    // A page in HTML is no message.
    let is_text = response.headers.get("content-type").is_some_and(|kind| kind.starts_with("text/plain"));
    let mut lines = text.lines().map(str::trim).filter(|line| is_text && !line.is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let name = second.split(':').next().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
    let is_name = name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let code = if is_name && name.ends_with("Exception") { name } else { "" };
    let message = if code.is_empty() { first.to_owned() } else { format!("{first}: {second}") };
    let known = THROTTLED.iter().any(|name| text.contains(name)).then_some(ErrorClass::Throttled);
    http::refusal(response.status, known, code, &message)
}
