//! Parameters in binary as literals of SQL, for those who read what others send.

use super::rows::cell;
use super::{UNSIGNED, decode, field, instant, write_literal};
use crate::contract::value::Value;
use crate::mysql::types::encode::{PARAMETER_UNSIGNED, write_hex};
use crate::mysql::wire::Fields;

/// The literal of the parameter at the start of some fields, whose type stands so in `COM_STMT_EXECUTE`; `None` where it is
/// none of that type, or MySQL has no literal for it.
#[must_use]
pub fn literal([kind, flags]: [u8; 2], fields: &mut Fields<'_>) -> Option<String> {
    let cell = cell(kind, fields).ok()?;
    if kind == field::NULL {
        return Some("NULL".to_owned());
    }
    let sign = if flags & PARAMETER_UNSIGNED == 0 { 0 } else { UNSIGNED };
    let value = decode(u32::from(kind) | sign, cell);
    let mut out = Vec::new();
    match (kind, value) {
        (field::DATE | field::DATETIME | field::TIMESTAMP, Value::Text(_)) => {
            out.push(b'\'');
            instant::write_impossible(cell, kind != field::DATE, &mut out).ok()?;
            out.push(b'\'');
        }
        (field::TIME, Value::Text(_)) => return None,
        (_, Value::Text(bytes) | Value::Json(bytes) | Value::Bytes(bytes)) => {
            return Some(text_literal(bytes));
        }
        (_, value) => write_literal(value, &mut out).ok()?,
    }
    String::from_utf8(out).ok()
}

/// The literal of a text; where it is none in UTF-8, of its bytes.
#[must_use]
pub fn text_literal(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Err(_) => {
            let mut digits = Vec::new();
            write_hex(bytes, &mut digits);
            format!("X'{}'", String::from_utf8_lossy(&digits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::types::encode;

    #[test]
    fn what_a_client_sends_is_shown_as_a_literal() {
        for (value, shown) in [
            (Value::Null, "NULL"),
            (Value::Bool(true), "1"),
            (Value::Int(-7), "-7"),
            (Value::Unsigned(u64::MAX), "18446744073709551615"),
            (Value::Float(-0.5), "-5e-1"),
            (Value::Text(b"it's \\ so"), "'it\\'s \\\\ so'"),
            (Value::Bytes(b"a\xff"), "X'61ff'"),
            (Value::Bytes("é".as_bytes()), "'é'"),
            (Value::Numeric("-12.50"), "-12.50"),
            (Value::Date(0), "'1970-01-01'"),
            (Value::Timestamp(1_000_001), "'1970-01-01 00:00:01.000001'"),
            (Value::Time(-3_600_000_000), "'-01:00:00'"),
        ] {
            let mut sent = Vec::new();
            let kind = encode(value, &mut sent).unwrap();
            let mut fields = Fields(&sent);
            assert_eq!(literal(kind, &mut fields).as_deref(), Some(shown), "{value:?}");
            assert!(fields.0.is_empty());
        }
    }

    #[test]
    fn what_is_no_value_is_none_and_what_is_no_day_is_shown() {
        let read = |kind: u8, bytes: &[u8]| literal([kind, 0], &mut Fields(bytes));
        assert_eq!(read(field::LONG, &[1, 2]), None);
        assert_eq!(read(field::TIME, &[3, 1, 2, 3]), None);
        assert_eq!(read(field::NEWDECIMAL, b"\x01x"), None);
        assert_eq!(read(field::DATE, &[0]).as_deref(), Some("'0000-00-00'"));
        assert_eq!(read(field::SHORT, &[0xff, 0xff]).as_deref(), Some("-1"));
        assert_eq!(read(field::FLOAT, &0.25_f32.to_le_bytes()).as_deref(), Some("2.5e-1"));
    }
}
