//! JSON (RFC 8259) as services send it: read where it lies, one value after another, and nothing kept of what nobody wants.

use crate::contract::error::Error;

/// How deep values may nest.
const DEEPEST: u32 = 64;

fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server's answer is not JSON as it is read here: {what}"))
}

/// A text as it stands between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
    is_escaped: bool,
}

impl Text<'_> {
    /// Adds the text itself.
    pub(crate) fn append_to(self, out: &mut Vec<u8>) -> Result<(), Error> {
        if !self.is_escaped {
            out.extend_from_slice(self.raw);
            return Ok(());
        }
        let mut rest = self.raw;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
            out.extend_from_slice(&rest[..at]);
            rest = unescape(&rest[at + 1..], out)?;
        }
        out.extend_from_slice(rest);
        Ok(())
    }

    /// Whether it is this text.
    #[inline]
    pub(crate) fn is(self, text: &[u8]) -> bool {
        if !self.is_escaped {
            return self.raw == text;
        }
        let mut own = Vec::new();
        self.append_to(&mut own).is_ok() && own == text
    }
}

/// Adds the character that stands behind a backslash; gives what follows it.
fn unescape<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Error> {
    let (letter, rest) = rest.split_first().ok_or_else(|| garbage("an escape without its letter"))?;
    let plain = match letter {
        b'"' | b'\\' | b'/' => *letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let (first, rest) = unit(rest)?;
            let (code, rest) = match first {
                0xd800..0xdc00 => match rest.strip_prefix(b"\\u").map(unit).transpose()? {
                    Some((second @ 0xdc00..0xe000, rest)) => {
                        (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), rest)
                    }
                    _ => return Err(garbage("half a character")),
                },
                _ => (first, rest),
            };
            let letter = char::from_u32(code).ok_or_else(|| garbage("half a character"))?;
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(rest);
        }
        _ => return Err(garbage("an escape of another letter")),
    };
    out.push(plain);
    Ok(rest)
}

/// Four hexadecimal digits.
fn unit(bytes: &[u8]) -> Result<(u32, &[u8]), Error> {
    let (digits, rest) = bytes.split_at_checked(4).ok_or_else(|| garbage("an escape without its digits"))?;
    let value = digits
        .iter()
        .try_fold(0, |value, digit| char::from(*digit).to_digit(16).map(|digit| 16 * value + digit));
    value.map(|value| (value, rest)).ok_or_else(|| garbage("an escape without its digits"))
}

/// Reads the values of a text one after another.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    /// The next byte that is no blank.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, Error> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(garbage("it ends too early"))
    }

    #[inline]
    fn expect(&mut self, wanted: u8) -> Result<(), Error> {
        if self.peek()? != wanted {
            return Err(garbage("something stands at the place of something else"));
        }
        self.at += 1;
        Ok(())
    }

    /// Nothing but blanks may follow.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        if self.peek().is_ok() { Err(garbage("something follows it")) } else { Ok(()) }
    }

    /// The items between two brackets.
    fn items(
        &mut self,
        (open, close): (u8, u8),
        mut each: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.expect(open)?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(garbage("it is nested too deep"));
        }
        if self.peek()? == close {
            self.at += 1;
        } else {
            loop {
                each(self)?;
                let next = self.peek()?;
                self.at += 1;
                match next {
                    b',' => {}
                    next if next == close => break,
                    _ => return Err(garbage("an item without an end")),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads an object: `each` is told every name and has to read the value.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, Text<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.items((b'{', b'}'), |reader| {
            let name = reader.text()?;
            reader.expect(b':')?;
            each(reader, name)
        })
    }

    /// Reads an array: `each` has to read every item.
    pub(crate) fn array(&mut self, each: impl FnMut(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.items((b'[', b']'), each)
    }

    /// Reads a text.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Text<'a>, Error> {
        self.expect(b'"')?;
        let (start, mut is_escaped) = (self.at, false);
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
                None => return Err(garbage("a text without an end")),
            }
        }
        let raw = &self.bytes[start..self.at];
        self.at += 1;
        Ok(Text { raw, is_escaped })
    }

    /// A number, `true`, `false` or `null`.
    pub(crate) fn word(&mut self) -> Result<&'a [u8], Error> {
        self.peek()?;
        let rest = &self.bytes[self.at..];
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = rest.iter().position(|byte| !part(byte)).unwrap_or(rest.len());
        if length == 0 {
            return Err(garbage("there is no value"));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// The bytes of a value.
    pub(crate) fn raw(&mut self) -> Result<&'a [u8], Error> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Passes over a value.
    pub(crate) fn skip(&mut self) -> Result<(), Error> {
        match self.peek()? {
            b'{' => self.object(|reader, _| reader.skip()),
            b'[' => self.array(Self::skip),
            b'"' => self.text().map(|_| ()),
            _ => self.word().map(|_| ()),
        }
    }
}

/// Writes a text between quotes; `false` where it is not UTF-8, which JSON is, and nothing was written.
#[inline]
#[must_use]
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) -> bool {
    if std::str::from_utf8(text).is_err() {
        return false;
    }
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every name, text and whole number of a value, as they come.
    fn told(bytes: &[u8]) -> Result<Vec<String>, Error> {
        fn value(reader: &mut Reader<'_>, told: &mut Vec<String>) -> Result<(), Error> {
            fn tell(text: Text<'_>, told: &mut Vec<String>) -> Result<(), Error> {
                let mut bytes = Vec::new();
                text.append_to(&mut bytes)?;
                assert!(text.is(&bytes));
                told.push(String::from_utf8_lossy(&bytes).into_owned());
                Ok(())
            }
            match reader.peek()? {
                b'{' => reader.object(|reader, name| {
                    tell(name, told)?;
                    value(reader, told)
                }),
                b'[' => reader.array(|reader| value(reader, told)),
                b'"' => tell(reader.text()?, told),
                b'0'..=b'9' => {
                    told.push(String::from_utf8_lossy(reader.raw()?).into_owned());
                    Ok(())
                }
                _ => reader.skip(),
            }
        }
        let (mut reader, mut found) = (Reader::new(bytes), Vec::new());
        value(&mut reader, &mut found)?;
        reader.end()?;
        Ok(found)
    }

    #[test]
    fn values_are_read_one_after_another() {
        let text = r#" { "a" : [ 1, "x\"\\\/\b\f\n\r\t", {} , [] ], "\u00e9\ud83d\ude00": null, "b":true } "#;
        let expected = ["a", "1", "x\"\\/\u{8}\u{c}\n\r\t", "é😀", "b"];
        assert_eq!(told(text.as_bytes()).unwrap(), expected);
        let mut reader = Reader::new(text.as_bytes());
        reader.skip().unwrap();
        reader.end().unwrap();
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let deep = "[".repeat(100);
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "[1,]",
            "[1",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "1 2",
            "{a:1}",
            "[1;2]",
            &deep,
        ] {
            assert!(told(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back(text in any::<String>()) {
            let mut out = Vec::new();
            prop_assert!(put_text(&mut out, text.as_bytes()));
            prop_assert_eq!(told(&out).unwrap(), [text]);
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(prop::sample::select(b"{}[]:,\"\\u0d8 n1".to_vec()), 0..40)) {
            let _ = told(&bytes);
        }
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_not_written() {
        let mut out = Vec::new();
        assert!(!put_text(&mut out, b"\xff") && out.is_empty());
    }
}
