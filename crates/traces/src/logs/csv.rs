//! Fields of a CSV record, which quotes may surround.

use std::borrow::Cow;

/// How quotes are written within quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Twice, as RFC 4180 has it.
    Doubled,
    /// Behind a backslash, as the CSV storage engine has it.
    Backslash,
}

/// Takes a record apart, without the end of its line.
pub(crate) fn fields(record: &str, escapes: Escapes) -> Result<Vec<Cow<'_, str>>, String> {
    let (mut found, mut rest) = (Vec::with_capacity(26), record);
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) if escapes == Escapes::Doubled => doubled(quoted)?,
            Some(quoted) => backslash(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        found.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(found),
            None => return Err(format!("field {}: something follows its quotes", found.len())),
        }
    }
}

const UNENDED: &str = "a quoted field does not end";

fn doubled(quoted: &str) -> Result<(Cow<'_, str>, &str), String> {
    let mut from = 0;
    loop {
        let end = from + quoted[from..].find('"').ok_or(UNENDED)?;
        if !quoted[end + 1..].starts_with('"') {
            let (body, after) = (&quoted[..end], &quoted[end + 1..]);
            let body = if from == 0 { Cow::Borrowed(body) } else { Cow::Owned(body.replace("\"\"", "\"")) };
            return Ok((body, after));
        }
        from = end + 2;
    }
}

fn backslash(quoted: &str) -> Result<(Cow<'_, str>, &str), String> {
    let first = quoted.find(['"', '\\']).ok_or(UNENDED)?;
    if quoted[first..].starts_with('"') {
        return Ok((Cow::Borrowed(&quoted[..first]), &quoted[first + 1..]));
    }
    let (mut body, mut rest) = (quoted[..first].to_owned(), &quoted[first..]);
    loop {
        let next = rest.find(['"', '\\']).ok_or(UNENDED)?;
        body.push_str(&rest[..next]);
        if rest[next..].starts_with('"') {
            return Ok((Cow::Owned(body), &rest[next + 1..]));
        }
        let escape = rest[next + 1..].chars().next().ok_or(UNENDED)?;
        body.push(match escape {
            'n' => '\n',
            'r' => '\r',
            other => other,
        });
        rest = &rest[next + 1 + escape.len_utf8()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_they_were_written() {
        let doubled = fields("a,\"b,\"\"c\"\"\nd\",,\"\"", Escapes::Doubled).unwrap();
        assert_eq!(doubled, ["a", "b,\"c\"\nd", "", ""]);
        let backslash = fields(r#"1,"a\"b\\n\nc","#, Escapes::Backslash).unwrap();
        assert_eq!(backslash, ["1", "a\"b\\n\nc", ""]);
        for (record, escapes) in
            [("\"a", Escapes::Doubled), ("\"a\\\"", Escapes::Backslash), ("\"a\"b", Escapes::Doubled)]
        {
            assert!(fields(record, escapes).is_err(), "{record}");
        }
    }
}
