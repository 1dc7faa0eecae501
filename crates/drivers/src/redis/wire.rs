//! RESP, the protocol's values: versions 2 and 3 (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use crate::contract::error::{Error, ErrorClass};
use crate::net::frame::{Part, shown};

/// The longest text that a server may send: `proto-max-bulk-len` by default.
const LONGEST_TEXT: usize = 512 << 20;
/// The longest line: a number, or a text of its own.
const LONGEST_LINE: usize = 64 << 10;
/// The most items that one value may have.
const MOST_ITEMS: usize = 1 << 26;
/// How much of a server's error is kept.
const LONGEST_ERROR: usize = 1000;

/// A value, or the beginning of one that has items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// There is none.
    Null,
    /// A whole number.
    Int(i64),
    /// A text, whatever its form: a truth value, a double and a big number are told as they were sent.
    Text(&'a [u8]),
    /// The server refuses.
    Error(&'a [u8]),
    /// So many values follow.
    Items(usize),
    /// So many values follow that nobody has asked for.
    Push(usize),
    /// So many values follow that describe the next one.
    Attribute(usize),
}

pub(crate) fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server does not speak Redis's protocol: {what}"))
}

fn number(line: &[u8]) -> Result<i64, Error> {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or_else(|| garbage("no number"))
}

/// A length or a count; `None` is null, as version 2 has it.
fn length(line: &[u8], most: usize) -> Result<Option<usize>, Error> {
    match number(line)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Some(length)),
            _ => Err(garbage("a length beyond what is allowed")),
        },
    }
}

/// The line that begins at a place, without its end, and where the next begins.
fn line(bytes: &[u8], start: usize) -> Result<Part<(&[u8], usize)>, Error> {
    let rest = bytes.get(start..).unwrap_or_default();
    let Some(end) = rest.iter().position(|byte| *byte == b'\r') else {
        if rest.len() > LONGEST_LINE {
            return Err(garbage("a line without an end"));
        }
        return Ok(Part::Partial(bytes.len() + 1));
    };
    match rest.get(end + 1) {
        Some(b'\n') => Ok(Part::Whole((&rest[..end], start + end + 2))),
        Some(_) => Err(garbage("a line that ends amiss")),
        None => Ok(Part::Partial(bytes.len() + 1)),
    }
}

/// The value that begins at a place, without its items, and where the next begins.
#[inline]
pub(crate) fn value(bytes: &[u8], start: usize) -> Result<Part<(Value<'_>, usize)>, Error> {
    let Some(kind) = bytes.get(start) else { return Ok(Part::Partial(start + 1)) };
    if !b"$*:+-_#,(!=%~>|".contains(kind) {
        return Err(garbage("a value of no known type"));
    }
    let (line, next) = match line(bytes, start + 1)? {
        Part::Whole(found) => found,
        Part::Partial(size) => return Ok(Part::Partial(size)),
    };
    let items = |times: usize| length(line, MOST_ITEMS).map(|count| count.map(|count| count * times));
    let found = match kind {
        b'$' | b'=' | b'!' => {
            let Some(size) = length(line, LONGEST_TEXT)? else { return Ok(Part::Whole((Value::Null, next))) };
            let Some(text) = bytes.get(next..next + size + 2) else {
                return Ok(Part::Partial(next + size + 2));
            };
            let (text, end) = text.split_at(size);
            if end != b"\r\n" {
                return Err(garbage("a text that ends amiss"));
            }
            let found = match kind {
                b'!' => Value::Error(text),
                // Three letters say what it is.
                b'=' => Value::Text(text.get(4..).ok_or_else(|| garbage("a text without its type"))?),
                _ => Value::Text(text),
            };
            return Ok(Part::Whole((found, next + size + 2)));
        }
        b'*' | b'~' => items(1)?.map_or(Value::Null, Value::Items),
        b'%' => items(2)?.map_or(Value::Null, Value::Items),
        b'>' => Value::Push(items(1)?.unwrap_or(0)),
        b'|' => Value::Attribute(items(2)?.unwrap_or(0)),
        b':' => Value::Int(number(line)?),
        b'-' => Value::Error(line),
        b'_' => Value::Null,
        _ => Value::Text(line),
    };
    Ok(Part::Whole((found, next)))
}

/// Where the answer ends that begins at a place, with all of its items.
#[inline]
pub(crate) fn end(bytes: &[u8], start: usize) -> Result<Part<usize>, Error> {
    let (mut at, mut left) = (start, 1_usize);
    while left > 0 {
        let (found, next) = match value(bytes, at)? {
            Part::Whole(found) => found,
            Part::Partial(size) => return Ok(Part::Partial(size)),
        };
        left = match found {
            Value::Items(items) => left - 1 + items,
            Value::Push(items) if left == 1 && at == start => items,
            Value::Push(_) => return Err(garbage("a message within a value")),
            Value::Attribute(items) => left + items,
            _ => left - 1,
        };
        if left > MOST_ITEMS {
            return Err(garbage("more items than are allowed"));
        }
        at = next;
    }
    Ok(Part::Whole(at))
}

/// The items of an answer that is there as a whole, one after another; attributes are left out.
pub(crate) struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Items<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next value; its own items, if it has some, come after it.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Value<'a>, Error> {
        loop {
            let Part::Whole((found, next)) = value(self.bytes, self.at)? else {
                return Err(garbage("fewer items than were told"));
            };
            self.at = next;
            let Value::Attribute(items) = found else { return Ok(found) };
            for _ in 0..items {
                let Part::Whole(next) = end(self.bytes, self.at)? else {
                    return Err(garbage("fewer items than were told"));
                };
                self.at = next;
            }
        }
    }
}

/// Writes a number in decimal digits.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, number: usize) {
    let (mut digits, mut at, mut rest) = ([0; 20], 20, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Begins a command of so many words.
pub(crate) fn put_words(out: &mut Vec<u8>, count: usize) {
    out.push(b'*');
    put_number(out, count);
    out.extend_from_slice(b"\r\n");
}

/// Writes one word of a command.
#[inline]
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'$');
    put_number(out, text.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Writes words of a command.
pub(crate) fn put_texts(out: &mut Vec<u8>, words: &[&[u8]]) {
    for word in words {
        put_text(out, word);
    }
}

/// Writes a whole command.
pub(crate) fn put_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_words(out, words.len());
    put_texts(out, words);
}

/// An error of the server: its first word is the code.
pub(crate) fn refusal(text: &[u8]) -> Error {
    let text = shown(text, LONGEST_ERROR);
    let (code, rest) = text.split_once(' ').unwrap_or((text.as_str(), ""));
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase());
    let (code, message) = if is_code && !rest.is_empty() { (code, rest) } else { ("", text.as_str()) };
    let class = match code {
        // The server is coming up, or has lost its primary for now.
        "LOADING" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" => ErrorClass::ShuttingDown,
        "READONLY" | "NOREPLICAS" | "MISCONF" => ErrorClass::ReadOnly,
        // A script has the server to itself.
        "BUSY" => ErrorClass::LockTimeout,
        "OOM" => ErrorClass::Throttled,
        _ if message.starts_with("max number of clients") => ErrorClass::Throttled,
        _ => ErrorClass::Other,
    };
    let message = match code {
        "MOVED" | "ASK" | "CROSSSLOT" => {
            format!("{message}: the server is a node of a Redis Cluster, which the driver does not speak to")
        }
        _ => message.to_owned(),
    };
    // Whatever was refused was not done.
    Error::new(class, code, message).with_known_outcome()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn only(bytes: &[u8]) -> Value<'_> {
        let Part::Whole((found, end)) = value(bytes, 0).unwrap() else { panic!("{bytes:?}") };
        assert_eq!(end, bytes.len());
        found
    }

    #[test]
    fn values_of_both_versions_are_read() {
        for (bytes, expected) in [
            (&b"$3\r\na\r\n\r\n"[..], Value::Text(b"a\r\n")),
            (b"$0\r\n\r\n", Value::Text(b"")),
            (b"$-1\r\n", Value::Null),
            (b"*-1\r\n", Value::Null),
            (b"_\r\n", Value::Null),
            (b":-7\r\n", Value::Int(-7)),
            (b"+OK\r\n", Value::Text(b"OK")),
            (b"-ERR no\r\n", Value::Error(b"ERR no")),
            (b"!6\r\nERR no\r\n", Value::Error(b"ERR no")),
            (b"=7\r\ntxt:abc\r\n", Value::Text(b"abc")),
            (b"#t\r\n", Value::Text(b"t")),
            (b",1.5\r\n", Value::Text(b"1.5")),
            (b"(12345678901234567890\r\n", Value::Text(b"12345678901234567890")),
            (b"*2\r\n", Value::Items(2)),
            (b"~2\r\n", Value::Items(2)),
            (b"%2\r\n", Value::Items(4)),
            (b">1\r\n", Value::Push(1)),
            (b"|1\r\n", Value::Attribute(2)),
        ] {
            assert_eq!(only(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
        for bytes in
            ["?1\r\n", "$x\r\n", "$-2\r\n", "$9999999999\r\n", ":\r\n", "+a\rb", "$1\r\nabc", "=1\r\nt\r\n"]
        {
            assert!(value(bytes.as_bytes(), 0).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_ends_with_its_last_item() {
        for (bytes, items) in [
            ("*2\r\n*1\r\n:1\r\n%1\r\n+a\r\n_\r\n", 1),
            (">2\r\n+a\r\n+b\r\n", 1),
            ("|1\r\n+ttl\r\n:7\r\n$1\r\nx\r\n", 1),
            ("*0\r\n", 1),
        ] {
            let text = format!("{bytes}:5\r\n");
            assert_eq!(end(text.as_bytes(), 0).unwrap(), Part::Whole(bytes.len() * items));
        }
        assert!(end(b"*1\r\n>1\r\n+a\r\n", 0).is_err());
        assert!(end(b"*67108864\r\n*67108864\r\n", 0).is_err());
        let mut items = Items::new(b"*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:2\r\n:3\r\n");
        assert_eq!([(); 3].map(|()| items.next().unwrap()), [Value::Items(2), Value::Int(2), Value::Int(3)]);
        assert!(items.next().is_err());
    }

    #[test]
    fn errors_have_a_class_and_their_code() {
        for (text, class, code) in [
            ("LOADING Redis is loading the dataset in memory", ErrorClass::ShuttingDown, "LOADING"),
            ("READONLY You can't write against a read only replica.", ErrorClass::ReadOnly, "READONLY"),
            ("BUSY Redis is busy running a script.", ErrorClass::LockTimeout, "BUSY"),
            ("OOM command not allowed", ErrorClass::Throttled, "OOM"),
            ("ERR max number of clients reached", ErrorClass::Throttled, "ERR"),
            ("NOAUTH Authentication required.", ErrorClass::Other, "NOAUTH"),
            ("WRONGPASS invalid username-password pair", ErrorClass::Other, "WRONGPASS"),
            ("something else", ErrorClass::Other, ""),
        ] {
            let error = refusal(text.as_bytes());
            assert_eq!((error.class(), error.code()), (class, code), "{text}");
            assert!(!error.outcome_unknown(), "{text}");
        }
        assert!(refusal(b"MOVED 3999 127.0.0.1:6381").message().contains("a node of a Redis Cluster"));
    }

    proptest! {
        #[test]
        fn numbers_are_written(number in any::<usize>()) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }

        /// Of a whole answer every piece asks for more, and never for more than there is.
        #[test]
        fn a_piece_asks_for_more(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5)) {
            let mut whole = Vec::new();
            put_command(&mut whole, &texts.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(end(&whole, 0).unwrap(), Part::Whole(whole.len()));
            for cut in 0..whole.len() {
                let Part::Partial(size) = end(&whole[..cut], 0).unwrap() else { panic!("whole at {cut}") };
                prop_assert!((cut + 1..=whole.len()).contains(&size));
            }
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(prop::sample::select(b"$*:+-_#,!=%~>|019\r\na".to_vec()), 0..60)) {
            if let Ok(Part::Whole(end)) = end(&bytes, 0) {
                prop_assert!(end <= bytes.len());
                let mut items = Items::new(&bytes[..end]);
                while items.at < end && items.next().is_ok() {}
            }
        }
    }
}
