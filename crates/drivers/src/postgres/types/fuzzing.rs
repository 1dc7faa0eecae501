//! The fuzz target of the decoders: what was decoded is encoded again, in every form, and read back.

use super::encode::write_text;
use super::{Type, bytea_from_text, decode, encode, encode_binary, write_copy_text, write_literal};
use crate::contract::value::Value;

/// A cell: the first byte is the type and the form, the rest is the cell.
///
/// # Panics
/// If a value is another one after it was written and read again, or if text breaks out of its quotes.
pub fn values(data: &[u8]) {
    let Some((kind, cell)) = data.split_first() else { return };
    let (of, binary) = (Type::ALL[usize::from(kind / 2) % Type::ALL.len()], kind % 2 == 1);
    let value = decode(of.kind(binary), cell);
    // Text that is to be bytes is sent as what it becomes.
    check_text(of, if of == Type::Bytea { Value::Bytes(cell) } else { value });
    // Bytes that are not of the type.
    if value == Value::Text(cell) {
        return;
    }
    let mut again = Vec::new();
    match encode(of, value, &mut again) {
        Ok(form) => {
            assert_same(decode(of.kind(form), &again), value);
            if binary && form && !at_an_end(value) {
                assert_eq!(again, cell, "another encoding of {value:?}");
            }
        }
        // A text may hold a number that is too large for its type; the server sends none.
        Err(misfit) => assert!(!binary, "{misfit}"),
    }
    let mut copied = Vec::new();
    if encode_binary(of, value, &mut copied).is_ok() && of.binary() {
        assert_same(decode(of.kind(true), &copied), value);
    }
}

/// Checks the forms that are text: their quoting, and that they are the same value.
fn check_text(of: Type, value: Value<'_>) {
    let (mut literal, mut copied, mut text) = (Vec::new(), Vec::new(), Vec::new());
    write_text(value, &mut text);
    if write_literal(of, value, &mut literal).is_ok() {
        assert_eq!(unquoted(&literal), Some(text.clone()), "{:?}", String::from_utf8_lossy(&literal));
    }
    if write_copy_text(of, value, &mut copied).is_ok() {
        assert_eq!(unescaped(&copied), Some(text.clone()), "{:?}", String::from_utf8_lossy(&copied));
    }
    match value {
        Value::Bytes(bytes) => assert_eq!(bytea_from_text(&text).as_deref(), Some(bytes)),
        // What a client writes out, a server abbreviates.
        Value::Text(_) | Value::Bool(_) => {}
        value => assert_same(decode(of.kind(false), &text), value),
    }
}

/// Infinity, to which what is beyond every time is brought, and what is no number: they have several encodings.
fn at_an_end(value: Value<'_>) -> bool {
    match value {
        Value::Date(days) => days == i32::MAX,
        Value::Timestamp(micros) => micros == i64::MAX,
        Value::Float(number) => number.is_nan(),
        _ => false,
    }
}

fn assert_same(again: Value<'_>, value: Value<'_>) {
    if let (Value::Float(again), Value::Float(number)) = (again, value)
        && again.is_nan()
    {
        assert!(number.is_nan());
        return;
    }
    assert_eq!(again, value);
}

/// Reads an SQL literal to its closing quote, as a server would; `None` where that is not its end.
fn unquoted(literal: &[u8]) -> Option<Vec<u8>> {
    let (escapes, body) = match literal.strip_prefix(b" E'") {
        Some(body) => (true, body),
        None => (false, literal.strip_prefix(b"'")?),
    };
    let mut bytes = body.iter().copied();
    let mut text = Vec::new();
    loop {
        match bytes.next()? {
            b'\\' if escapes => text.push(bytes.next()?),
            b'\'' => match bytes.next() {
                Some(b'\'') => text.push(b'\''),
                Some(_) => return None,
                None => return Some(text),
            },
            byte => text.push(byte),
        }
    }
}

/// Reads a cell of COPY's text form; `None` where it would end early.
fn unescaped(cell: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = cell.iter().copied();
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'\\' => match bytes.next()? {
                b't' => b'\t',
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            b'\t' | b'\n' | b'\r' => return None,
            byte => byte,
        });
    }
    Some(text)
}
