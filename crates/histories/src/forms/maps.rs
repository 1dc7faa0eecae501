//! Maps of EDN and of JSON, one after the other, whether or not a list surrounds them.

use std::io::BufRead;

use super::Fault;

/// A value, as far as histories need it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Nil,
    Whole(i128),
    /// A text, or a keyword without its colon.
    Text(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// What no transaction is made of: a fraction, a symbol.
    Other(String),
}

impl Value {
    /// What a map has under a name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries
            .iter()
            .find(|(key, _)| matches!(key, Self::Text(text) if text == name))
            .map(|(_, value)| value)
    }
}

/// A map takes no more bytes than this.
const MOST: usize = 1 << 24;
/// Nor is it nested deeper.
const DEEPEST: usize = 24;

/// Reads maps from a text.
pub(super) struct Maps<R> {
    input: R,
    pub(super) line: u64,
    /// Colons stand between keys and values, and begin no keywords.
    is_json: Option<bool>,
    /// Bytes that the present map may still take.
    left: usize,
}

impl<R: BufRead> Maps<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: 1, is_json: None, left: MOST }
    }

    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { line: self.line, message: message.into() }
    }

    fn peek(&mut self) -> Result<Option<u8>, Fault> {
        let line = self.line;
        let buffer = self.input.fill_buf().map_err(|error| Fault { line, message: error.to_string() })?;
        Ok(buffer.first().copied())
    }

    fn next(&mut self) -> Result<Option<u8>, Fault> {
        let Some(byte) = self.peek()? else { return Ok(None) };
        self.input.consume(1);
        self.line += u64::from(byte == b'\n');
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| self.fault(format!("a map has more than {MOST} bytes")))?;
        Ok(Some(byte))
    }

    /// The next map; `None` at the end of the text.
    pub(super) fn map(&mut self) -> Result<Option<Value>, Fault> {
        loop {
            self.left = MOST;
            match self.space()? {
                None => return Ok(None),
                Some(b'[' | b']' | b'(' | b')') => _ = self.next()?,
                Some(b'{') => return self.value(0).map(Some),
                Some(b'#') => {
                    _ = self.next()?;
                    _ = self.word()?;
                }
                Some(other) => {
                    return Err(self.fault(format!("expected a map, {{ … }}, not {:?}", char::from(other))));
                }
            }
        }
    }

    /// Goes on to the next byte that means something.
    fn space(&mut self) -> Result<Option<u8>, Fault> {
        while let Some(byte) = self.peek()? {
            match byte {
                b';' => while !matches!(self.next()?, None | Some(b'\n')) {},
                b',' => _ = self.next()?,
                b':' if self.is_json == Some(true) => _ = self.next()?,
                byte if byte.is_ascii_whitespace() => _ = self.next()?,
                byte => return Ok(Some(byte)),
            }
        }
        Ok(None)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        if depth > DEEPEST {
            return Err(self.fault(format!("it is nested deeper than {DEEPEST} levels")));
        }
        match self.space()? {
            None => Err(self.fault("the text ends within a map")),
            Some(b'{') => self.entries(depth),
            Some(b'[' | b'(') => self.list(depth),
            Some(b'"') => {
                self.is_json.get_or_insert(true);
                self.text().map(Value::Text)
            }
            Some(b':') => {
                self.is_json.get_or_insert(false);
                _ = self.next()?;
                self.word().map(Value::Text)
            }
            Some(b'\\') => {
                _ = self.next()?;
                _ = self.next()?;
                self.word().map(Value::Other)
            }
            Some(b'#') => self.tagged(depth),
            Some(byte @ (b'}' | b']' | b')')) => {
                Err(self
                    .fault(format!("{:?} closes what is not open, or stands for a value", char::from(byte))))
            }
            Some(_) => self.word().map(plain),
        }
    }

    /// `#{…}` is a set; any other tag is left out, and `#_` with its value.
    fn tagged(&mut self, depth: usize) -> Result<Value, Fault> {
        _ = self.next()?;
        match self.peek()? {
            Some(b'{') => self.list(depth),
            Some(b'_') => {
                _ = self.next()?;
                self.value(depth + 1)?;
                self.value(depth + 1)
            }
            _ => {
                _ = self.word()?;
                self.value(depth + 1)
            }
        }
    }

    fn entries(&mut self, depth: usize) -> Result<Value, Fault> {
        _ = self.next()?;
        let mut entries = Vec::new();
        while self.space()? != Some(b'}') {
            let key = self.value(depth + 1)?;
            if self.space()? == Some(b'}') {
                return Err(self.fault("a map has a key without a value"));
            }
            entries.push((key, self.value(depth + 1)?));
        }
        _ = self.next()?;
        Ok(Value::Map(entries))
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let closes = match self.next()? {
            Some(b'[') => b']',
            Some(b'(') => b')',
            _ => b'}',
        };
        let mut values = Vec::new();
        while self.space()? != Some(closes) {
            values.push(self.value(depth + 1)?);
        }
        _ = self.next()?;
        Ok(Value::List(values))
    }

    /// What stands in quotes. Only escapes that names have are known; of others the character itself is left.
    fn text(&mut self) -> Result<String, Fault> {
        _ = self.next()?;
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                None => return Err(self.fault("the text ends within quotes")),
                Some(b'"') => break,
                Some(b'\\') => match self.next()? {
                    Some(b'n') => bytes.push(b'\n'),
                    Some(b't') => bytes.push(b'\t'),
                    Some(byte) => bytes.push(byte),
                    None => {}
                },
                Some(byte) => bytes.push(byte),
            }
        }
        String::from_utf8(bytes).map_err(|_| self.fault("it is no text in UTF-8"))
    }

    fn word(&mut self) -> Result<String, Fault> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.peek()? {
            let ends = byte.is_ascii_whitespace() || b",;\"{}[]()".contains(&byte);
            if ends || (byte == b':' && self.is_json == Some(true)) {
                break;
            }
            bytes.push(byte);
            _ = self.next()?;
        }
        String::from_utf8(bytes).map_err(|_| self.fault("it is no text in UTF-8"))
    }
}

fn plain(word: String) -> Value {
    match word.as_str() {
        "nil" | "null" => Value::Nil,
        digits => match digits.strip_suffix('N').unwrap_or(digits).parse() {
            Ok(whole) => Value::Whole(whole),
            Err(_) => Value::Other(word),
        },
    }
}
