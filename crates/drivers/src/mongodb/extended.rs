//! `MongoDB` Extended JSON, relaxed but for dates
//! (<https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>): documents are shown in it. Read is plain JSON.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bson::{self, Element, Elements, fixed, kind};
use super::decimal;
use super::wire::garbage;
use crate::contract::error::Error;
use crate::contract::value::Value;
use crate::net::hex::hex;
use crate::net::json::{self, Reader};

/// How deep documents may nest: what servers allow.
const DEEPEST: u32 = 180;

/// Writes a document.
pub(super) fn write_document(document: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    write(&Element { kind: kind::DOCUMENT, name: b"", body: document }, out, 0)
}

/// Writes a text; what is not UTF-8 is replaced.
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    if !json::put_text(out, text) {
        // It is UTF-8 now.
        let _ = json::put_text(out, String::from_utf8_lossy(text).as_bytes());
    }
}

/// Writes a value.
pub(super) fn write(element: &Element<'_>, out: &mut Vec<u8>, depth: u32) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(garbage("a document that is nested too deep"));
    }
    let body = element.body;
    // Writing into memory cannot fail.
    let _ = match element.kind {
        kind::DOCUMENT | kind::ARRAY => return write_items(element, out, depth),
        kind::TEXT | kind::SYMBOL => {
            write_text(element.text().unwrap_or_default(), out);
            Ok(())
        }
        kind::INT32 | kind::INT64 => write!(out, "{}", element.int().unwrap_or_default()),
        kind::DOUBLE => write_double(f64::from_le_bytes(fixed(body)), out),
        kind::BOOL => write!(out, "{}", element.is_true()),
        kind::NULL => write!(out, "null"),
        kind::DATE => {
            let millis = i64::from_le_bytes(fixed(body));
            write!(out, "{{\"$date\":{{\"$numberLong\":\"{millis}\"}}}}")
        }
        kind::OBJECT_ID => write!(out, "{{\"$oid\":\"{}\"}}", hex(body)),
        kind::DECIMAL => {
            out.extend_from_slice(b"{\"$numberDecimal\":\"");
            decimal::write(fixed(body), out);
            write!(out, "\"}}")
        }
        kind::BINARY => {
            let (coded, subtype) = (STANDARD.encode(&body[5..]), body[4]);
            write!(out, "{{\"$binary\":{{\"base64\":\"{coded}\",\"subType\":\"{subtype:02x}\"}}}}")
        }
        kind::TIMESTAMP => {
            let number = u64::from_le_bytes(fixed(body));
            let (seconds, place) = (number >> 32, number & 0xFFFF_FFFF);
            write!(out, "{{\"$timestamp\":{{\"t\":{seconds},\"i\":{place}}}}}")
        }
        kind::CODE => {
            out.extend_from_slice(b"{\"$code\":");
            write_text(element.text().unwrap_or_default(), out);
            write!(out, "}}")
        }
        kind::REGEX => {
            let mut parts = body.split(|byte| *byte == 0);
            out.extend_from_slice(b"{\"$regularExpression\":{\"pattern\":");
            write_text(parts.next().unwrap_or_default(), out);
            out.extend_from_slice(b",\"options\":");
            write_text(parts.next().unwrap_or_default(), out);
            write!(out, "}}}}")
        }
        kind::MIN_KEY => write!(out, "{{\"$minKey\":1}}"),
        kind::MAX_KEY => write!(out, "{{\"$maxKey\":1}}"),
        kind::UNDEFINED => write!(out, "{{\"$undefined\":true}}"),
        // Pointers and code with a scope are of old.
        kind => write!(out, "{{\"$type\":{kind}}}"),
    };
    Ok(())
}

fn write_double(number: f64, out: &mut Vec<u8>) -> std::io::Result<()> {
    if number.is_finite() {
        return write!(out, "{number:?}");
    }
    let name = match () {
        () if number.is_nan() => "NaN",
        () if number > 0.0 => "Infinity",
        () => "-Infinity",
    };
    write!(out, "{{\"$numberDouble\":\"{name}\"}}")
}

fn write_items(element: &Element<'_>, out: &mut Vec<u8>, depth: u32) -> Result<(), Error> {
    let is_document = element.kind == kind::DOCUMENT;
    out.push(if is_document { b'{' } else { b'[' });
    let (mut items, mut is_first) = (Elements::of(element.body)?, true);
    while let Some(item) = items.next()? {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        if is_document {
            write_text(item.name, out);
            out.push(b':');
        }
        write(&item, out, depth + 1)?;
    }
    out.push(if is_document { b'}' } else { b']' });
    Ok(())
}

const NO_JSON: &str = "it is no JSON that MongoDB keeps";

/// Writes a value that is given in JSON.
pub(super) fn put_json(out: &mut Vec<u8>, name: &str, text: &[u8]) -> Result<(), String> {
    let mut reader = Reader::new(text);
    let put = put_next(&mut reader, out, name);
    put.and_then(|()| reader.end()).map_err(|_| NO_JSON.to_owned())
}

/// The elements of a document that is given in JSON.
pub(super) fn elements(text: &str) -> Result<Vec<u8>, String> {
    let (mut reader, mut out) = (Reader::new(text.as_bytes()), Vec::new());
    let put = put_members(&mut reader, &mut out);
    put.and_then(|()| reader.end()).map_err(|_| "it is no JSON object".to_owned())?;
    Ok(out)
}

fn put_members(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    reader.object(|reader, name| {
        let mut own = Vec::new();
        name.append_to(&mut own)?;
        let name = String::from_utf8(own).ok().filter(|name| !name.contains('\0'));
        put_next(reader, out, &name.ok_or_else(|| garbage("a name"))?)
    })
}

fn put_next(reader: &mut Reader<'_>, out: &mut Vec<u8>, name: &str) -> Result<(), Error> {
    match reader.peek()? {
        b'{' => bson::put_document(out, name, |out| put_members(reader, out)),
        b'[' => bson::put_nested(out, kind::ARRAY, name, |out| {
            let mut place = 0_u32;
            reader.array(|reader| {
                let name = place.to_string();
                place += 1;
                put_next(reader, out, &name)
            })
        }),
        b'"' => {
            let mut text = Vec::new();
            reader.text()?.append_to(&mut text)?;
            bson::put_value(out, name, Value::Text(&text)).map_err(Error::other)
        }
        _ => put_word(reader.word()?, out, name),
    }
}

fn put_word(word: &[u8], out: &mut Vec<u8>, name: &str) -> Result<(), Error> {
    match word {
        b"true" | b"false" => bson::put_bool(out, name, word == b"true"),
        b"null" => bson::put_head(out, kind::NULL, name),
        _ => {
            let word = std::str::from_utf8(word).unwrap_or_default();
            if let Ok(number) = word.parse::<i64>() {
                bson::put_int(out, name, number);
            } else {
                // No number of JSON has the letters of NaN and the infinities.
                let number = word.parse().ok().filter(|_| !word.contains(['n', 'N']));
                bson::put_double(out, name, number.ok_or_else(|| garbage("a number"))?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(elements: &[u8]) -> String {
        let mut document = Vec::new();
        let start = bson::begin(&mut document);
        document.extend_from_slice(elements);
        bson::end(&mut document, start);
        let mut out = Vec::new();
        write_document(&document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_comes_back() {
        for text in [
            "{}",
            r#"{"a":1,"b":-9223372036854775808,"c":0.5,"d":"x\"y","e":[true,false,null,[],{}],"f":{"g":1e300}}"#,
        ] {
            assert_eq!(shown(&elements(text).unwrap()), text);
        }
        for wrong in
            ["", "[]", "{", "{\"a\":1}}", "{\"a\":NaN}", "{\"a\":x}", "{\"a\\u0000\":1}", "{\"a\":1,}"]
        {
            assert_eq!(elements(wrong).unwrap_err(), "it is no JSON object", "{wrong}");
        }
    }

    #[test]
    fn what_json_has_no_word_for_is_extended() {
        let mut out = Vec::new();
        for (of, body) in [
            (kind::OBJECT_ID, &[0xAB; 12][..]),
            (kind::DATE, &0_i64.to_le_bytes()),
            (kind::BINARY, b"\x02\0\0\0\x05hi"),
            (kind::TIMESTAMP, &(7_u64 << 32 | 9).to_le_bytes()),
            (kind::REGEX, b"a+\0i\0"),
            (kind::CODE, b"\x02\0\0\0x\0"),
            (kind::DOUBLE, &f64::NAN.to_le_bytes()),
            (kind::DECIMAL, &decimal::encode(true, 15, -1)),
            (kind::MIN_KEY, b""),
            (kind::MAX_KEY, b""),
            (kind::UNDEFINED, b""),
            (kind::POINTER, b"\x02\0\0\0x\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ] {
            bson::put_head(&mut out, of, "x");
            out.extend_from_slice(body);
        }
        let expected = [
            r#"{"$oid":"abababababababababababab"}"#,
            r#"{"$date":{"$numberLong":"0"}}"#,
            r#"{"$binary":{"base64":"aGk=","subType":"05"}}"#,
            r#"{"$timestamp":{"t":7,"i":9}}"#,
            r#"{"$regularExpression":{"pattern":"a+","options":"i"}}"#,
            r#"{"$code":"x"}"#,
            r#"{"$numberDouble":"NaN"}"#,
            r#"{"$numberDecimal":"-1.5"}"#,
            r#"{"$minKey":1}"#,
            r#"{"$maxKey":1}"#,
            r#"{"$undefined":true}"#,
            r#"{"$type":12}"#,
        ];
        assert_eq!(shown(&out), format!("{{\"x\":{}}}", expected.join(",\"x\":")));
    }

    #[test]
    fn nesting_has_an_end() {
        let mut document = vec![5, 0, 0, 0, 0];
        for _ in 0..=DEEPEST {
            let mut outer = Vec::new();
            let start = bson::begin(&mut outer);
            bson::put_head(&mut outer, kind::DOCUMENT, "a");
            outer.append(&mut document);
            bson::end(&mut outer, start);
            document = outer;
        }
        assert!(write_document(&document, &mut Vec::new()).is_err());
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
        assert!(elements(&deep).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut document = Vec::new();
            let start = bson::begin(&mut document);
            document.extend_from_slice(&bytes);
            bson::end(&mut document, start);
            let _ = write_document(&document, &mut Vec::new());
            let _ = write_document(&bytes, &mut Vec::new());
            let _ = elements(&String::from_utf8_lossy(&bytes));
        }
    }
}
