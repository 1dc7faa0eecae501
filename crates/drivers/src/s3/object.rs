//! A row as the bytes of an object: a JSON object of texts, by the names of the fields.

use crate::contract::error::Error;
use crate::net::http::service::{Cells, Keyed};
use crate::net::json::{Reader, Text, put_text};

/// Adds a field; the text is UTF-8.
pub(super) fn put_field(out: &mut Vec<u8>, name: &[u8], text: &[u8]) {
    out.push(if out.is_empty() { b'{' } else { b',' });
    // Both are UTF-8.
    let _ = put_text(out, name);
    out.push(b':');
    let _ = put_text(out, text);
}

/// Ends the object.
pub(super) fn end(out: &mut Vec<u8>) {
    if out.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
}

/// Tells every field of an object; the error is one that no nephoscope has written.
pub(super) fn fields(
    bytes: &[u8],
    mut told: impl FnMut(Text<'_>, Text<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut json = Reader::new(bytes);
    let read = json.object(|json, name| {
        let text = json.text()?;
        told(name, text)
    });
    // It is no fault of the connection.
    let foreign = |_| Error::other("an object of the table is no row: it was not written by nephoscope");
    read.and_then(|()| json.end()).map_err(foreign)
}

/// Reads the fields that a call wants.
pub(super) fn read<O>(keyed: &Keyed<O>, bytes: &[u8], cells: &mut Cells) -> Result<(), Error> {
    cells.begin(keyed.verb.fields.len());
    fields(bytes, |name, text| match keyed.column(|field| name.is(field)) {
        Some(column) => cells.set(column, |out| text.append_to(out)),
        None => Ok(()),
    })
}
