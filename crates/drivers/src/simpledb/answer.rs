//! What the service says, in XML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::contract::error::{Error, ErrorClass};
use crate::net::aws::refusal;
use crate::net::http::service::{Cells, Found, Keyed};
use crate::net::http::{self, Response};
use crate::net::xml;

/// What the service says of a request that it refused. It tells that requests come too fast by a code that other
/// services have for a failure (<https://docs.aws.amazon.com/AmazonSimpleDB/latest/DeveloperGuide/APIError.html>).
pub(super) fn refused(response: &Response) -> Error {
    let error = refusal::of_xml(response);
    match error.code() {
        "ServiceUnavailable" => {
            let (code, class) = (error.code(), Some(ErrorClass::Throttled));
            http::refusal(response.status, class, code, error.message())
        }
        _ => error,
    }
}

/// Adds a text itself: what XML cannot hold is sent in base64, and its tag says so.
pub(super) fn plain(tag: &[u8], text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    if !tag.ends_with(b"encoding=\"base64\"") {
        return xml::unescape(text, out);
    }
    let decoded = STANDARD.decode_vec(text.trim_ascii(), out);
    decoded.map_err(|_| Error::connection_lost("the server's answer says base64 and holds something else"))
}

/// The rows of an answer as they come.
struct RowsOf<'a, 'b, O> {
    keyed: &'a Keyed<O>,
    cells: &'a mut Cells,
    found: &'a mut Found<'b>,
    most: usize,
    /// Whether a row has begun.
    is_open: bool,
    /// The column of the attribute whose value comes next.
    column: Option<usize>,
}

impl<O> RowsOf<'_, '_, O> {
    fn begin(&mut self) {
        self.cells.begin(self.keyed.verb.fields.len());
        (self.is_open, self.column) = (true, None);
    }

    fn end(&mut self) -> Result<(), Error> {
        let is_wanted = std::mem::take(&mut self.is_open) && self.found.count() < self.most;
        if is_wanted { self.found.push(self.cells) } else { Ok(()) }
    }

    fn attribute(&mut self, tag: &[u8], text: &[u8]) -> Result<(), Error> {
        if !self.is_open {
            self.begin();
        }
        let mut name = Vec::new();
        plain(tag, text, &mut name)?;
        self.column = self.keyed.column(|field| field == name);
        // An empty value is no text that is told.
        self.column.map_or(Ok(()), |column| self.cells.set(column, |_| Ok(())))
    }

    fn value(&mut self, tag: &[u8], text: &[u8]) -> Result<(), Error> {
        self.column.map_or(Ok(()), |column| self.cells.set(column, |out| plain(tag, text, out)))
    }
}

/// Reads the rows of an answer, so many at most in all; gives the token by which the next ones are asked for.
/// `GetAttributes` tells the attributes of one item, `Select` those of several, each with its name.
pub(super) fn rows<O>(
    keyed: &Keyed<O>,
    response: &Response,
    (cells, most): (&mut Cells, usize),
    found: &mut Found<'_>,
) -> Result<Option<String>, Error> {
    let mut rows = RowsOf { keyed, cells, found, most, is_open: false, column: None };
    let mut token = Vec::new();
    xml::tagged(&response.body, |parent, tag, text| {
        let name = tag.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        match (parent, name) {
            (b"Item", b"Name") => {
                rows.end()?;
                rows.begin();
                Ok(())
            }
            (b"Attribute", b"Name") => rows.attribute(tag, text),
            (b"Attribute", b"Value") => rows.value(tag, text),
            (_, b"NextToken") => plain(tag, text, &mut token),
            _ => Ok(()),
        }
    })?;
    rows.end()?;
    let token = String::from_utf8_lossy(&token).into_owned();
    Ok(Some(token).filter(|token| !token.is_empty()))
}
