//! A statement without its literals: the same text, and the same fingerprint, whatever the values.
//!
//! Literals become `$1`, `$2` … in their order, comments go, blanks become one, words are written in lower case (with
//! the lexer of `MySQL` keywords alone, because names of tables have a case there). A list of `IN` whose items differ in
//! their literals alone is written with its first item, `in ($1, …)`, and so are the rows of `VALUES ($1, $2), …`,
//! however many there are.

use std::fmt::Write as _;

use nephoscope_drivers::Lexer;

pub use crate::tokens::{Kind, Literal};
use crate::tokens::{Token, tokens};

/// A statement without its literals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// The text.
    pub text: String,
    /// FNV-1a, 64 bits, of the text's bytes.
    pub fingerprint: u64,
    /// What stood in the places of the text; a list has all of its items' here.
    pub literals: Vec<Literal>,
    /// A letter for each literal; those of a list or of rows stand in brackets.
    pub kinds: String,
}

/// What marks a list or rows of which the first stands for all.
pub(crate) const MORE: &str = "…";

/// The hash of a normalised text.
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    nephoscope_drivers::fnv1a(text.as_bytes())
}

/// Takes the literals out of a statement, in one pass over its text.
#[must_use]
pub fn normalised(sql: &str, lexer: Lexer) -> Normal {
    let mut found = tokens(sql, lexer);
    while found.last().is_some_and(|last| last.sign() == ";") {
        found.pop();
    }
    let mut writer = Writer { normal: Normal::default(), places: 0, lexer, last: None };
    writer.normal.text.reserve(sql.len());
    writer.all(&found);
    let mut normal = writer.normal;
    normal.fingerprint = fingerprint(&normal.text);
    normal
}

struct Writer<'a> {
    normal: Normal,
    /// How many places the text has.
    places: usize,
    lexer: Lexer,
    last: Option<&'a Token<'a>>,
}

impl<'a> Writer<'a> {
    fn all(&mut self, tokens: &'a [Token<'a>]) {
        let mut at = 0;
        while at < tokens.len() {
            let opens = tokens[at].sign() == "(";
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let items = match before {
                Some(word) if opens && word.is("in") => list(tokens, at),
                Some(word) if opens && word.is("values") => rows(tokens, at),
                _ => None,
            };
            let Some(Items { found, size, within }) = items else {
                self.token(&tokens[at]);
                if let Token::Literal(literal) = &tokens[at] {
                    self.take(literal);
                }
                at += 1;
                continue;
            };
            self.normal.kinds.push('[');
            let (first, rest) = found.split_at(1);
            if within {
                self.token(&tokens[at]);
            }
            first[0].iter().for_each(|token| self.token(token));
            self.normal.text.push_str(", …");
            let end = &tokens[at + size - 1];
            if within {
                self.normal.text.push(')');
            }
            self.last = Some(end);
            for token in first.iter().chain(rest).copied().flatten() {
                if let Token::Literal(literal) = token {
                    self.take(literal);
                }
            }
            self.normal.kinds.push(']');
            at += size;
        }
    }

    fn take(&mut self, literal: &Literal) {
        self.normal.kinds.push(char::from(literal.kind.letter()));
        self.normal.literals.push(literal.clone());
    }

    fn token(&mut self, token: &'a Token<'a>) {
        let text = &mut self.normal.text;
        if self.last.is_some_and(|last| is_apart(last, token)) {
            text.push(' ');
        }
        self.last = Some(token);
        match token {
            Token::Literal(_) => {
                self.places += 1;
                let _ = write!(text, "${}", self.places);
            }
            Token::Word(word) if self.lexer.backslash_escapes && !is_keyword(word) => text.push_str(word),
            Token::Word(word) => text.extend(word.chars().map(|letter| letter.to_ascii_lowercase())),
            Token::Name(text_of) | Token::Sign(text_of) => text.push_str(text_of),
        }
    }
}

/// Items that differ in their literals alone.
struct Items<'a> {
    /// The tokens of each.
    found: Vec<&'a [Token<'a>]>,
    /// How many tokens they take, with what stands between and around them.
    size: usize,
    /// Whether the brackets are around all of them.
    within: bool,
}

/// The items of the list that is opened at a place.
fn list<'a>(tokens: &'a [Token<'a>], open: usize) -> Option<Items<'a>> {
    let close = closing(tokens, open)?;
    let (mut found, mut from, mut depth) = (Vec::new(), open + 1, 0_usize);
    for at in open + 1..=close {
        match tokens[at].sign() {
            "(" | "[" => depth += 1,
            "," if depth == 0 => {
                found.push(&tokens[from..at]);
                from = at + 1;
            }
            _ if at == close => found.push(&tokens[from..at]),
            ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let begins = tokens.get(open + 1)?;
    let is_query = ["select", "values", "with", "table"].iter().any(|word| begins.is(word));
    (!is_query && are_alike(&found)).then_some(Items { found, size: close + 1 - open, within: true })
}

/// The rows of which the first is opened at a place.
fn rows<'a>(tokens: &'a [Token<'a>], open: usize) -> Option<Items<'a>> {
    let (mut found, mut at) = (Vec::new(), open);
    loop {
        let close = closing(tokens, at)?;
        found.push(&tokens[at..=close]);
        let goes_on = tokens.get(close + 1).is_some_and(|next| next.sign() == ",")
            && tokens.get(close + 2).is_some_and(|next| next.sign() == "(");
        if !goes_on {
            return are_alike(&found).then_some(Items { found, size: close + 1 - open, within: false });
        }
        at = close + 2;
    }
}

/// The place of the bracket that closes the one at a place.
fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.sign() {
            "(" => depth += 1,
            ")" if depth == 1 => return Some(at),
            ")" => depth -= 1,
            _ => {}
        }
    }
    None
}

fn are_alike(items: &[&[Token<'_>]]) -> bool {
    let same = |one: &Token<'_>, other: &Token<'_>| match (one, other) {
        (Token::Literal(_), Token::Literal(_)) => true,
        (Token::Word(one), Token::Word(other)) => one.eq_ignore_ascii_case(other),
        _ => one == other,
    };
    let first = items[0];
    first.iter().any(|token| matches!(token, Token::Literal(_)))
        && items.iter().all(|item| {
            item.len() == first.len() && item.iter().zip(first).all(|(one, other)| same(one, other))
        })
}

/// Whether a blank stands between two tokens.
fn is_apart(before: &Token<'_>, after: &Token<'_>) -> bool {
    if before.sign() == "." && begins_with_digit(after) {
        return true;
    }
    if matches!(before.sign(), "(" | "[" | "." | "::")
        || matches!(after.sign(), ")" | "]" | "," | ";" | "." | "::")
    {
        return false;
    }
    let is_value = match before {
        Token::Word(word) => !is_keyword(word),
        Token::Name(_) => true,
        Token::Sign(sign) => matches!(*sign, ")" | "]"),
        Token::Literal(_) => false,
    };
    match after.sign() {
        // A name and the bracket of its call: MySQL wants them together.
        "(" => !is_value || matches!(before.sign(), ")" | "]"),
        "[" => !is_value && !before.is("array"),
        _ => true,
    }
}

/// Whether it is a name such as `2nd`, which behind a point would be read as a number.
fn begins_with_digit(token: &Token<'_>) -> bool {
    matches!(token, Token::Word(word) if word.starts_with(|first: char| first.is_ascii_digit()))
}

/// Words that are written in lower case whatever the dialect, and from which a bracket stands apart.
const KEYWORDS: &[&str] = &[
    "add",
    "all",
    "alter",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "begin",
    "between",
    "by",
    "call",
    "case",
    "commit",
    "conflict",
    "create",
    "cross",
    "default",
    "delete",
    "desc",
    "distinct",
    "div",
    "do",
    "drop",
    "duplicate",
    "else",
    "end",
    "except",
    "exists",
    "explain",
    "filter",
    "for",
    "from",
    "full",
    "group",
    "having",
    "ignore",
    "in",
    "index",
    "inner",
    "insert",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "key",
    "left",
    "like",
    "limit",
    "lock",
    "mod",
    "natural",
    "not",
    "null",
    "of",
    "offset",
    "on",
    "or",
    "order",
    "outer",
    "over",
    "partition",
    "primary",
    "references",
    "regexp",
    "replace",
    "returning",
    "right",
    "rlike",
    "rollback",
    "row",
    "rows",
    "savepoint",
    "select",
    "set",
    "share",
    "some",
    "start",
    "table",
    "then",
    "to",
    "transaction",
    "truncate",
    "union",
    "unique",
    "update",
    "use",
    "using",
    "values",
    "when",
    "where",
    "with",
    "work",
    "xor",
];

fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Puts values into the places of a normalised text: a statement with the tokens of the one that it was made of. Where a
/// value is missing, it is NULL.
///
/// # Errors
///
/// If the kinds do not fit the places, or the values do not fit the kinds.
pub fn filled(text: &str, kinds: &str, values: &[Option<&str>], lexer: Lexer) -> Result<String, String> {
    let found = tokens(text, lexer);
    let mut filler =
        Filler { out: String::new(), kinds: kinds.bytes().peekable(), values: values.iter(), lexer };
    let mut at = 0;
    while at < found.len() {
        // The first item stands before the mark, and was written already: the others follow.
        if found[at].sign() == MORE {
            let item = item_before(&found, at).ok_or("a mark without a list before it")?;
            while filler.kinds.peek().is_some_and(|next| *next != b']') {
                filler.out.push_str(", ");
                filler.tokens(item)?;
            }
            at += 1;
        } else if found.get(at + 1).is_some_and(|next| next.sign() == MORE) && found[at].sign() == "," {
            at += 1;
        } else {
            filler.tokens(&found[at..=at])?;
            at += 1;
        }
    }
    match (filler.kinds.find(|rest| *rest != b']'), filler.values.next()) {
        (None, None) => Ok(filler.out),
        _ => Err("more values than places".to_owned()),
    }
}

struct Filler<'a> {
    out: String,
    kinds: std::iter::Peekable<std::str::Bytes<'a>>,
    values: std::slice::Iter<'a, Option<&'a str>>,
    lexer: Lexer,
}

impl Filler<'_> {
    fn tokens(&mut self, tokens: &[Token<'_>]) -> Result<(), String> {
        for token in tokens {
            if !self.out.is_empty()
                && !matches!(token.sign(), "(" | "." | "," | ")")
                && (!self.out.ends_with(['.', '(']) || (self.out.ends_with('.') && begins_with_digit(token)))
            {
                self.out.push(' ');
            }
            match token {
                Token::Literal(_) => self.literal()?,
                Token::Word(text) | Token::Name(text) | Token::Sign(text) => self.out.push_str(text),
            }
        }
        Ok(())
    }

    fn literal(&mut self) -> Result<(), String> {
        let kind = self.kinds.by_ref().find(|next| !matches!(next, b'[' | b']')).and_then(Kind::of);
        let (Some(kind), Some(value)) = (kind, self.values.next()) else {
            return Err("fewer values than places".to_owned());
        };
        let Some(value) = value else {
            self.out.push_str("NULL");
            return Ok(());
        };
        let doubled = value.replace('\'', "''");
        let doubled = if self.lexer.backslash_escapes { doubled.replace('\\', "\\\\") } else { doubled };
        let _ = match kind {
            Kind::Number | Kind::Constant => write!(self.out, "{value}"),
            Kind::Text | Kind::Bound => write!(self.out, "'{doubled}'"),
            Kind::National => write!(self.out, "N'{doubled}'"),
            Kind::Escaped if self.lexer.backslash_escapes => write!(self.out, "'{value}'"),
            Kind::Escaped => write!(self.out, "E'{value}'"),
            Kind::Unicode => write!(self.out, "U&'{value}'"),
            Kind::Hex => write!(self.out, "X'{value}'"),
            Kind::Bits => write!(self.out, "B'{value}'"),
        };
        Ok(())
    }
}

/// The tokens of the item that stands before a mark and its comma.
pub(crate) fn item_before<'a>(tokens: &'a [Token<'a>], mark: usize) -> Option<&'a [Token<'a>]> {
    let end = mark.checked_sub(1)?;
    let (mut depth, mut from) = (0_usize, None);
    for at in (0..end).rev() {
        match tokens[at].sign() {
            ")" => depth += 1,
            "(" if depth == 0 => return Some(&tokens[at + 1..end]),
            "(" => depth -= 1,
            _ => {}
        }
        if depth == 0 && at > 0 && tokens[at].sign() == "(" && tokens[at - 1].is("values") {
            from = Some(at);
            break;
        }
    }
    from.map(|from| &tokens[from..end])
}
