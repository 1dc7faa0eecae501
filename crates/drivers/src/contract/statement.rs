//! SQL with named parameters.

/// A statement of a workload: SQL whose parameters are written `:name`, cut at them, so that each driver writes
/// them as its server wants.
///
/// What stands in quotes, in dollar quotes or in comments is text, and so is the cast `::type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    name: String,
    /// One more piece of text than there are places of parameters.
    pieces: Vec<String>,
    /// For each place, which parameter stands there.
    places: Vec<usize>,
    params: Vec<String>,
}

impl Statement {
    /// Cuts SQL at its parameters. They are numbered in the order in which they first appear.
    #[must_use]
    pub fn new(name: &str, sql: &str) -> Self {
        let mut statement =
            Self { name: name.to_owned(), pieces: Vec::new(), places: Vec::new(), params: Vec::new() };
        let (mut piece, mut rest) = (0, sql);
        while let Some(next) = rest.chars().next() {
            let at = sql.len() - rest.len();
            let size = token(rest, next);
            if let Some(param) = rest[..size].strip_prefix(':').filter(|param| is_name(param)) {
                statement.pieces.push(sql[piece..at].to_owned());
                piece = at + size;
                let known = statement.params.iter().position(|other| other == param);
                statement.places.push(known.unwrap_or(statement.params.len()));
                if known.is_none() {
                    statement.params.push(param.to_owned());
                }
            }
            rest = &rest[size..];
        }
        statement.pieces.push(sql[piece..].to_owned());
        statement
    }

    /// The name that transactions call it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its parameters, in the order in which a call gives their values.
    #[must_use]
    pub fn params(&self) -> &[String] {
        &self.params
    }

    /// The SQL with every parameter written by `write`, which is told the parameter's number, counted from 0.
    pub fn render<E>(
        &self,
        out: &mut Vec<u8>,
        mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (place, piece) in self.pieces.iter().enumerate() {
            out.extend_from_slice(piece.as_bytes());
            if let Some(param) = self.places.get(place) {
                write(*param, out)?;
            }
        }
        Ok(())
    }

    /// The SQL as it was written.
    #[must_use]
    pub fn text(&self) -> String {
        let mut sql = String::new();
        for (place, piece) in self.pieces.iter().enumerate() {
            sql.push_str(piece);
            if let Some(param) = self.places.get(place) {
                sql.push(':');
                sql.push_str(&self.params[*param]);
            }
        }
        sql
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// The length of the token at the start of `rest`: a parameter, a quoted text, a comment, a cast, or one character.
fn token(rest: &str, first: char) -> usize {
    match first {
        '\'' | '"' => quoted(rest, first),
        '-' if rest.starts_with("--") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
        '/' if rest.starts_with("/*") => comment(rest),
        '$' => dollar_quoted(rest),
        ':' if rest.starts_with("::") => 2,
        ':' => 1 + rest[1..].find(|next: char| !is_word(next)).unwrap_or(rest.len() - 1),
        // A whole word at a time: the E of E'…' belongs to its quotes, and $ within a word is no quote.
        'e' | 'E' if rest[1..].starts_with('\'') => 1 + escaped(&rest[1..]),
        _ if is_word(first) => rest.find(|next: char| !is_word(next) && next != '$').unwrap_or(rest.len()),
        _ => first.len_utf8(),
    }
}

fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

/// A text in quotes; doubled quotes within it need no care, for they look like two texts side by side.
fn quoted(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

/// A text in single quotes in which a backslash takes the next character's meaning away.
fn escaped(rest: &str) -> usize {
    let mut after_backslash = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if after_backslash => after_backslash = false,
            '\\' => after_backslash = true,
            '\'' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A comment in `/* … */`; they nest.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// A text between `$tag$` and the same again, or a lone dollar sign.
fn dollar_quoted(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$').map(|end| end + 2) else { return 1 };
    let mark = &rest[..end];
    if !mark[1..end - 1].chars().all(is_word) || mark[1..].starts_with(|next: char| next.is_ascii_digit()) {
        return 1;
    }
    rest[end..].find(mark).map_or(rest.len(), |close| end + close + end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(statement: &Statement) -> String {
        let mut out = Vec::new();
        let done: Result<(), ()> = statement.render(&mut out, |param, out| {
            out.extend_from_slice(format!("${}", param + 1).as_bytes());
            Ok(())
        });
        done.unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parameters_are_numbered_as_they_first_appear() {
        let statement =
            Statement::new("pay", "UPDATE t SET a = :now, b = b + :amount, c = :now WHERE id=:id;");
        assert_eq!(statement.params(), ["now", "amount", "id"]);
        assert_eq!(numbered(&statement), "UPDATE t SET a = $1, b = b + $2, c = $1 WHERE id=$3;");
    }

    #[test]
    fn what_is_quoted_cast_or_commented_is_text() {
        for sql in [
            "SELECT ':a', \":b\", 1::int, x::text -- :c\n",
            "SELECT /* :a /* :b */ :c */ 1",
            "SELECT $$ :a $$, $tag$ :b $$ :c $tag$",
            "SELECT E'it\\'s :a', 'it''s :b'",
            "SELECT a[1:2], a[:3], t.x$:: text",
            "SELECT 'unended :a",
            "SELECT $tag$ unended :a",
            "SELECT /* unended :a",
        ] {
            assert!(Statement::new("s", sql).params().is_empty(), "{sql}");
        }
        assert_eq!(Statement::new("s", "SELECT :a::int, $1:b").params(), ["a", "b"]);
        // A comment ends where PostgreSQL says it does.
        assert_eq!(Statement::new("s", "SELECT 1 -- :a\r + :b").params(), ["b"]);
    }

    proptest! {
        #[test]
        fn the_text_comes_back_whatever_it_is(sql in "([:a-cE$/*' \"\\\\é-]|--|::|\\$t\\$|\n){0,40}") {
            prop_assert_eq!(Statement::new("s", &sql).text(), sql);
        }

        #[test]
        fn any_text_is_taken(sql in any::<String>()) {
            prop_assert_eq!(Statement::new("s", &sql).text(), sql);
        }
    }
}
