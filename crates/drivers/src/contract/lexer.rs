//! How a dialect's texts and comments are told from what stands around them.

/// In what SQL dialects differ where text is told from parameters. All have texts in single and double quotes, comments
/// from `--` to the line's end and between `/*` and `*/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own, as the manuals list them")]
pub struct Lexer {
    /// A backslash in quotes takes the next character's meaning away, in `'…'` and in `"…"`; without it only in `E'…'`.
    pub backslash_escapes: bool,
    /// A name may stand in backticks.
    pub backticks: bool,
    /// `#` begins a comment, and `--` only before a blank.
    pub hash_comments: bool,
    /// A text may stand between `$tag$` and the same again, and `E'…'` has backslashes.
    pub dollar_quotes: bool,
    /// Comments between `/*` and `*/` nest.
    pub nested_comments: bool,
    /// A name may stand in brackets.
    pub brackets: bool,
    /// `//` begins a comment.
    pub slash_comments: bool,
}

impl Lexer {
    /// `PostgreSQL`'s (manual, section 4.1 "Lexical Structure").
    pub const POSTGRES: Self = Self {
        backslash_escapes: false,
        backticks: false,
        hash_comments: false,
        dollar_quotes: true,
        nested_comments: true,
        brackets: false,
        slash_comments: false,
    };
    /// `MySQL`'s and `MariaDB`'s with the default `sql_mode` (manual, section 11 "Language Structure").
    pub const MYSQL: Self = Self {
        backslash_escapes: true,
        backticks: true,
        hash_comments: true,
        dollar_quotes: false,
        nested_comments: false,
        brackets: false,
        slash_comments: false,
    };
    /// `SQLite`'s (<https://www.sqlite.org/lang.html>).
    pub const SQLITE: Self = Self {
        backslash_escapes: false,
        backticks: true,
        hash_comments: false,
        dollar_quotes: false,
        nested_comments: false,
        brackets: true,
        slash_comments: false,
    };
    /// Cassandra's CQL (<https://cassandra.apache.org/doc/latest/cassandra/developing/cql/definitions.html>).
    pub const CQL: Self = Self { nested_comments: false, slash_comments: true, ..Self::POSTGRES };
}

/// What begins something in which nothing counts but its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A comment.
    Comment,
    /// A text or a name in quotes, with the letter or the tag that belongs to its quotes. Doubled quotes within one look
    /// like two side by side, and are two pieces.
    Quoted,
}

impl Lexer {
    /// The quoted text or the comment at the start of `rest`, with its length; one without an end reaches to the last
    /// byte.
    #[must_use]
    pub fn piece(self, rest: &str) -> Option<(Piece, usize)> {
        let quoted = match rest.as_bytes().first()? {
            quote @ (b'\'' | b'"') if self.backslash_escapes => escaped(rest, char::from(*quote)),
            quote @ (b'\'' | b'"') => quoted(rest, char::from(*quote)),
            b'`' if self.backticks => quoted(rest, '`'),
            b'[' if self.brackets => quoted(rest, ']'),
            b'-' if rest.starts_with("--") && self.is_comment(&rest[2..]) => return comment_to(line(rest)),
            b'#' if self.hash_comments => return comment_to(line(rest)),
            b'/' if self.slash_comments && rest.starts_with("//") => return comment_to(line(rest)),
            b'/' if rest.starts_with("/*") => return comment_to(comment(rest, self.nested_comments)),
            b'$' if self.dollar_quotes => dollar_quoted(rest)?,
            // The E of E'…' belongs to its quotes.
            b'e' | b'E' if self.dollar_quotes && rest[1..].starts_with('\'') => 1 + escaped(&rest[1..], '\''),
            _ => return None,
        };
        Some((Piece::Quoted, quoted))
    }

    /// The length of the token at the start of `rest`, whose first character is `first`: a parameter, a quoted text, a
    /// comment, a cast, or one character.
    pub(super) fn token(self, rest: &str, first: char) -> usize {
        if let Some((_, size)) = self.piece(rest) {
            return size;
        }
        match first {
            ':' if rest.starts_with("::") => 2,
            ':' => 1 + rest[1..].find(|next: char| !is_word(next)).unwrap_or(rest.len() - 1),
            // A whole word at a time: $ within a word is no quote.
            _ if is_word(first) => {
                rest.find(|next: char| !is_word(next) && next != '$').unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        }
    }

    /// Whether two hyphens with this behind them begin a comment: without a blank `MySQL` takes them for signs.
    fn is_comment(self, rest: &str) -> bool {
        !self.hash_comments
            || rest.chars().next().is_none_or(|next| next.is_whitespace() || next.is_control())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as its caller gives it")]
fn comment_to(size: usize) -> Option<(Piece, usize)> {
    Some((Piece::Comment, size))
}

/// To the end of the line.
fn line(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

/// A text in quotes; doubled quotes within it need no care, for they look like two texts side by side.
fn quoted(rest: &str, quote: char) -> usize {
    rest[1..].find(quote).map_or(rest.len(), |end| end + 2)
}

/// A text in quotes in which a backslash takes the next character's meaning away.
fn escaped(rest: &str, quote: char) -> usize {
    let mut after_backslash = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if after_backslash => after_backslash = false,
            '\\' => after_backslash = true,
            _ if next == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A comment in `/* … */`; they may nest.
fn comment(rest: &str, nested: bool) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") && (nested || depth == 0) {
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

/// A text between `$tag$` and the same again; a lone dollar sign is none.
fn dollar_quoted(rest: &str) -> Option<usize> {
    let end = rest[1..].find('$').map(|end| end + 2)?;
    let mark = &rest[..end];
    if !mark[1..end - 1].chars().all(is_word) || mark[1..].starts_with(|next: char| next.is_ascii_digit()) {
        return None;
    }
    Some(rest[end..].find(mark).map_or(rest.len(), |close| end + close + end))
}
