//! XML as services send it: the texts of its elements, one after another, with their names.

use crate::contract::error::Error;

/// How deep elements may nest.
const DEEPEST: usize = 16;

fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server's answer is not XML as it is read here: {what}"))
}

/// The name in a tag.
fn name(tag: &[u8]) -> &[u8] {
    tag.split(u8::is_ascii_whitespace).next().unwrap_or_default()
}

/// Tells every text, with the names of its element and of the element around that. Blanks between elements are texts,
/// too; namespaces, attributes, comments and declarations are passed over.
pub(crate) fn texts<'a>(
    bytes: &'a [u8],
    mut told: impl FnMut(&'a [u8], &'a [u8], &'a [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    tagged(bytes, |parent, tag, text| told(parent, name(tag), text))
}

/// The same with the text's whole tag, its attributes among it.
pub(crate) fn tagged<'a>(
    bytes: &'a [u8],
    mut told: impl FnMut(&'a [u8], &'a [u8], &'a [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut open, mut depth): ([&[u8]; DEEPEST], usize) = ([b""; DEEPEST], 0);
    let mut rest = bytes;
    while !rest.is_empty() {
        let start = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
        let (text, tag) = rest.split_at(start);
        if !text.is_empty() && depth > 0 {
            told(name(if depth > 1 { open[depth - 2] } else { b"" }), open[depth - 1], text)?;
        }
        let Some(tag) = tag.strip_prefix(b"<") else { break };
        let end = tag.iter().position(|byte| *byte == b'>').ok_or_else(|| garbage("a tag without an end"))?;
        let (inside, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if inside.starts_with(b"?") || inside.starts_with(b"!") {
            continue;
        }
        if let Some(ended) = inside.strip_prefix(b"/") {
            if depth == 0 || name(open[depth - 1]) != ended.trim_ascii_end() {
                return Err(garbage("an element that ends has not begun"));
            }
            depth -= 1;
        } else if !inside.ends_with(b"/") {
            if depth == DEEPEST {
                return Err(garbage("it is nested too deep"));
            }
            open[depth] = inside;
            depth += 1;
        }
    }
    if depth == 0 { Ok(()) } else { Err(garbage("an element does not end")) }
}

/// Adds a text with its references resolved.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'&') {
        out.extend_from_slice(&rest[..at]);
        let reference = &rest[at + 1..];
        let end = reference.iter().position(|byte| *byte == b';');
        let end = end.ok_or_else(|| garbage("a reference without an end"))?;
        let letter = match &reference[..end] {
            b"amp" => '&',
            b"lt" => '<',
            b"gt" => '>',
            b"quot" => '"',
            b"apos" => '\'',
            number => numbered(number).ok_or_else(|| garbage("a reference to no character"))?,
        };
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &reference[end + 1..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// `#65` or `#x41`.
fn numbered(reference: &[u8]) -> Option<char> {
    let digits = std::str::from_utf8(reference.strip_prefix(b"#")?).ok()?;
    let code = match digits.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    char::from_u32(code.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(text: &str) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        texts(text.as_bytes(), |parent, name, text| {
            let mut plain = Vec::new();
            unescape(text, &mut plain)?;
            found.push(
                [parent, name, &plain].map(|part| String::from_utf8_lossy(part).into_owned()).join("/"),
            );
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn texts_are_told_with_their_elements() {
        let text = "<?xml version=\"1.0\"?>\n<!-- no --><List xmlns=\"x\"><Key>a&amp;b&#233;&#x1F600;</Key><Empty/>\
                    <Contents><Key>c</Key></Contents></List>";
        assert_eq!(told(text).unwrap(), ["List/Key/a&bé😀", "Contents/Key/c"]);
        assert_eq!(told("").unwrap(), Vec::<String>::new());
        for text in [
            "<a>",
            "</a>",
            "<a></b>",
            "<a",
            "<a>&x;</a>",
            "<a>&amp</a>",
            "<a>&#xD800;</a>",
            &"<a>".repeat(99),
        ] {
            assert!(told(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(letters in prop::collection::vec(prop::sample::select(b"<>/&;#x1a! ".to_vec()), 0..40)) {
            let _ = told(std::str::from_utf8(&letters).unwrap());
        }
    }
}
