//! Texts with backslash escapes.

/// The text that escapes stand for; `None` where it is no UTF-8, or cannot be told.
pub(crate) fn unescaped(body: &str, quote: &str, mysql: bool) -> Option<String> {
    let mut text = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        if next != '\\' {
            text.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
            // A doubled quote is one.
            if rest.starts_with(quote) && quote.starts_with(next) {
                rest = &rest[1..];
            }
            continue;
        }
        let escape = rest.chars().next()?;
        rest = &rest[escape.len_utf8()..];
        if mysql { mysql_escape(escape, &mut text) } else { rest = postgres_escape(escape, rest, &mut text)? }
    }
    String::from_utf8(text).ok().filter(|text| !text.contains('\0') || mysql)
}

fn mysql_escape(escape: char, text: &mut Vec<u8>) {
    match escape {
        '0' => text.push(0),
        'b' => text.push(8),
        'n' => text.push(b'\n'),
        'r' => text.push(b'\r'),
        't' => text.push(b'\t'),
        'Z' => text.push(0x1a),
        // As they are, for patterns.
        '%' | '_' => text.extend([b'\\', escape as u8]),
        other => text.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn postgres_escape<'a>(escape: char, rest: &'a str, text: &mut Vec<u8>) -> Option<&'a str> {
    let (radix, most, start) = match escape {
        'b' => return push(text, 8, rest),
        'f' => return push(text, 12, rest),
        'n' => return push(text, b'\n', rest),
        'r' => return push(text, b'\r', rest),
        't' => return push(text, b'\t', rest),
        'x' => (16, 2, 0),
        'u' => (16, 4, 0),
        'U' => (16, 8, 0),
        '0'..='7' => (8, 2, escape.to_digit(8)?),
        other => {
            text.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
    };
    let size = rest.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
    let read = if size == 0 { 0 } else { u32::from_str_radix(&rest[..size], radix).ok()? };
    let value = (start << (3 * size)) | read;
    if matches!(escape, 'u' | 'U') {
        if size != most {
            return None;
        }
        text.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
    } else if size == 0 && escape == 'x' {
        text.push(b'x');
    } else {
        text.push(value as u8);
    }
    Some(&rest[size..])
}

#[expect(clippy::unnecessary_wraps, reason = "as its caller gives it")]
fn push<'a>(text: &mut Vec<u8>, byte: u8, rest: &'a str) -> Option<&'a str> {
    text.push(byte);
    Some(rest)
}
