//! A statement's tokens: words, names, operators, and literals with their values.

use nephoscope_drivers::{Lexer, Piece};

/// What a literal is; the letter stands in a trace's column `kinds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number, with its sign.
    Number,
    /// A text; its value is what is meant, without quotes and escapes.
    Text,
    /// A text with escapes that are no UTF-8: its value is as it stands between the quotes.
    Escaped,
    /// A text with Unicode escapes, `U&'…'`; as it stands between the quotes.
    Unicode,
    /// A national text, `N'…'`.
    National,
    /// A string of hexadecimal digits, `X'…'`.
    Hex,
    /// A string of bits, `B'…'`.
    Bits,
    /// `NULL`, `TRUE` or `FALSE`.
    Constant,
    /// A bound parameter, whose value stands elsewhere in the log.
    Bound,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Number,
        Self::Text,
        Self::Escaped,
        Self::Unicode,
        Self::National,
        Self::Hex,
        Self::Bits,
        Self::Constant,
        Self::Bound,
    ];

    /// Its letter.
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::Number => b'n',
            Self::Text => b't',
            Self::Escaped => b'e',
            Self::Unicode => b'u',
            Self::National => b'N',
            Self::Hex => b'x',
            Self::Bits => b'b',
            Self::Constant => b'c',
            Self::Bound => b'p',
        }
    }

    /// The kind of a letter.
    #[must_use]
    pub fn of(letter: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }
}

/// A literal of a statement, or a bound parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// What it is.
    pub kind: Kind,
    /// Its value; `None` for NULL, and for a bound parameter whose value is not in the log.
    pub value: Option<String>,
    /// The number of a bound parameter, from 1; 0 for what is none.
    pub bound: usize,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A keyword or a name without quotes, and what is written like one.
    Word(&'a str),
    /// A name in quotes.
    Name(&'a str),
    /// An operator, a bracket, a comma.
    Sign(&'a str),
    Literal(Literal),
}

impl Token<'_> {
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found.eq_ignore_ascii_case(word))
    }

    pub(crate) fn sign(&self) -> &str {
        if let Self::Sign(sign) = self { sign } else { "" }
    }
}

/// Words behind which an expression begins: there a hyphen is a number's sign, and NULL a value.
const BEFORE_EXPRESSIONS: &[&str] = &[
    "all",
    "and",
    "any",
    "between",
    "by",
    "case",
    "default",
    "distinct",
    "div",
    "else",
    "filter",
    "for",
    "from",
    "having",
    "ilike",
    "in",
    "like",
    "limit",
    "mod",
    "offset",
    "on",
    "or",
    "regexp",
    "return",
    "returning",
    "rlike",
    "select",
    "some",
    "then",
    "to",
    "using",
    "values",
    "when",
    "where",
    "xor",
];

/// Takes a statement apart. What is text and what is a comment says the lexer.
pub(crate) fn tokens(sql: &str, lexer: Lexer) -> Vec<Token<'_>> {
    let mut scan =
        Scan { rest: sql, lexer, found: Vec::with_capacity(sql.len() / 5), line_between: false, blank: true };
    while !scan.rest.is_empty() {
        scan.next();
    }
    scan.found
}

struct Scan<'a> {
    rest: &'a str,
    lexer: Lexer,
    found: Vec<Token<'a>>,
    /// Whether a line has ended since the last token.
    line_between: bool,
    /// Whether anything but a token stands before `rest`.
    blank: bool,
}

impl<'a> Scan<'a> {
    /// Whether the dialect is that of `MySQL`: words in double quotes are text, names keep their case.
    fn is_mysql(&self) -> bool {
        self.lexer.backslash_escapes
    }

    fn cut(&mut self, size: usize) -> &'a str {
        let (piece, rest) = self.rest.split_at(size);
        self.rest = rest;
        piece
    }

    fn push(&mut self, token: Token<'a>) {
        self.found.push(token);
        (self.line_between, self.blank) = (false, false);
    }

    fn next(&mut self) {
        let Some(first) = self.rest.chars().next() else { return };
        if first.is_whitespace() {
            self.line_between |= matches!(first, '\n' | '\r');
            self.blank = true;
            self.cut(first.len_utf8());
        } else if let Some(size) = ["/*!", "/*M!"]
            .iter()
            .find(|mark| self.is_mysql() && self.rest.starts_with(**mark))
            .map(|mark| mark.len())
        {
            // MySQL and MariaDB execute what stands in such a comment; MariaDB alone if there is an M.
            let digits = self.rest[size..].bytes().take_while(u8::is_ascii_digit).count();
            let mark = self.cut(size + digits);
            self.push(Token::Sign(mark));
        } else if let Some((piece, size)) = self.lexer.piece(self.rest) {
            self.piece(piece, size);
        } else if first.is_ascii_digit() || (first == '.' && self.digit_at(1) && !self.is_within_name()) {
            self.number();
        } else if let Some(size) = self.prefixed() {
            self.quoted(size);
        } else if is_word(first) || (first == '@' && self.is_mysql()) {
            self.word();
        } else {
            self.sign(first);
        }
    }

    fn digit_at(&self, at: usize) -> bool {
        self.rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Whether a name has just been read, of whose parts the next may begin with digits.
    fn is_within_name(&self) -> bool {
        self.is_mysql() && !self.blank && matches!(self.found.last(), Some(Token::Word(_) | Token::Name(_)))
    }

    fn piece(&mut self, piece: Piece, size: usize) {
        if piece == Piece::Comment {
            let comment = self.cut(size);
            self.line_between |= comment.starts_with("--");
            self.blank = true;
            return;
        }
        let is_text = match self.rest.as_bytes()[0] {
            b'"' => self.is_mysql(),
            b'`' | b'[' => false,
            _ => true,
        };
        let size = self.whole(size);
        if is_text {
            self.quoted(size);
        } else {
            let name = self.cut(size);
            self.push(Token::Name(name));
        }
    }

    /// The size of a quoted piece with those that follow it directly: doubled quotes.
    fn whole(&self, mut size: usize) -> usize {
        let quote = self.rest[..size].chars().next_back().unwrap_or_default();
        let doubles = matches!(quote, '\'' | '"' | '`');
        while doubles && self.rest[size..].starts_with(quote) {
            // The next is of the same kind, backslashes included.
            let escapes = self.lexer.backslash_escapes || matches!(self.rest.as_bytes()[0], b'e' | b'E');
            let lexer = Lexer { backslash_escapes: escapes, ..self.lexer };
            let Some((_, more)) = lexer.piece(&self.rest[size..]) else { break };
            size += more;
        }
        size
    }

    /// The size of a literal with a letter before its quotes: `X'…'`, `B'…'`, `N'…'`, `U&'…'`.
    fn prefixed(&self) -> Option<usize> {
        let bytes = self.rest.as_bytes();
        let prefix = match (bytes.first()?.to_ascii_lowercase(), bytes.get(1)?) {
            (b'x' | b'b' | b'n', b'\'') => 1,
            (b'u', b'&') if self.lexer.dollar_quotes && bytes.get(2) == Some(&b'\'') => 2,
            _ => return None,
        };
        let mut size = prefix;
        while self.rest[size..].starts_with('\'') {
            size += self.lexer.piece(&self.rest[size..])?.1;
        }
        Some(size)
    }

    fn quoted(&mut self, size: usize) {
        let literal = literal(self.cut(size), self.is_mysql());
        // Texts side by side are one.
        let joins = self.is_mysql() || self.line_between;
        if let Some(Token::Literal(before)) = self.found.last_mut()
            && joins
            && literal.kind == Kind::Text
            && matches!(before.kind, Kind::Text | Kind::National)
            && let (Some(text), Some(more)) = (&mut before.value, &literal.value)
        {
            text.push_str(more);
            (self.line_between, self.blank) = (false, false);
            return;
        }
        self.push(Token::Literal(literal));
    }

    fn number(&mut self) {
        let bytes = self.rest.as_bytes();
        let digits = |from: usize| {
            bytes[from..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count()
        };
        let mut size = digits(0);
        let is_based = size == 1
            && bytes[0] == b'0'
            && bytes.get(1).is_some_and(|base| matches!(base, b'x' | b'X' | b'b' | b'B' | b'o' | b'O'))
            && bytes.get(2).is_some_and(u8::is_ascii_hexdigit);
        if is_based {
            size =
                2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'_').count();
        } else {
            if bytes.get(size) == Some(&b'.') && bytes.get(size + 1) != Some(&b'.') {
                size += 1 + digits(size + 1);
            }
            if matches!(bytes.get(size), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(size + 1), Some(b'+' | b'-')));
                if bytes.get(size + 1 + sign).is_some_and(u8::is_ascii_digit) {
                    size += 1 + sign + digits(size + 1 + sign);
                }
            }
        }
        if self.is_mysql() && self.rest[size..].starts_with(is_word) && !self.rest[..size].contains('.') {
            // A name may begin with digits there.
            return self.word();
        }
        let text = self.cut(size);
        let is_signed = !self.rest.trim_start().starts_with("::") && self.takes_sign();
        let value = if is_signed { format!("-{text}") } else { text.to_owned() };
        if is_signed {
            self.found.pop();
        }
        self.push(Token::Literal(Literal { kind: Kind::Number, value: Some(value), bound: 0 }));
    }

    /// Whether the last token is the sign of a number that follows.
    fn takes_sign(&self) -> bool {
        let Some((last, before)) = self.found.split_last() else { return false };
        last.sign() == "-" && begins_expression(before.last())
    }

    fn word(&mut self) {
        let marks = self.rest.bytes().take_while(|byte| *byte == b'@').count();
        let size = self.rest[marks..]
            .find(|next: char| !is_word(next) && next != '$')
            .map_or(self.rest.len(), |size| marks + size);
        let is_value = begins_expression(self.found.last());
        let word = self.cut(size.max(1));
        let is_constant = ["null", "true", "false"].iter().any(|name| word.eq_ignore_ascii_case(name));
        if is_constant && is_value {
            let value = Some(word.to_ascii_lowercase()).filter(|word| word != "null");
            return self.push(Token::Literal(Literal { kind: Kind::Constant, value, bound: 0 }));
        }
        self.push(Token::Word(word));
    }

    fn sign(&mut self, first: char) {
        let digits =
            self.rest.bytes().skip(1).take_while(|next| first == '$' && next.is_ascii_digit()).count();
        if digits > 0 || (first == '?' && self.is_mysql()) {
            let bound = self.cut(1 + digits)[1..].parse().unwrap_or_default();
            return self.push(Token::Literal(Literal { kind: Kind::Bound, value: None, bound }));
        }
        let size = if self.is_mysql() { mysql_sign(self.rest) } else { postgres_sign(self.rest) };
        let sign = self.cut(size.unwrap_or(first.len_utf8()));
        self.push(Token::Sign(if sign == "!=" { "<>" } else { sign }));
    }
}

/// Whether an expression begins behind a token.
fn begins_expression(before: Option<&Token<'_>>) -> bool {
    match before {
        None => true,
        Some(Token::Sign(sign)) => !matches!(*sign, ")" | "]" | "." | "::" | "…"),
        Some(Token::Word(word)) => BEFORE_EXPRESSIONS.iter().any(|known| word.eq_ignore_ascii_case(known)),
        Some(Token::Name(_) | Token::Literal(_)) => false,
    }
}

fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

/// The size of an operator, by the rule of `PostgreSQL`'s lexer (manual, section 4.1.3).
fn postgres_sign(rest: &str) -> Option<usize> {
    if rest.starts_with("::") || rest.starts_with(":=") || rest.starts_with("..") {
        return Some(2);
    }
    let all = rest.bytes().take_while(|byte| b"+-*/<>=~!@#%^&|`?".contains(byte)).count();
    let comment = (1..all).find(|at| rest[*at..].starts_with("--") || rest[*at..].starts_with("/*"));
    let mut size = comment.unwrap_or(all);
    if !rest[..size].bytes().any(|byte| b"~!@#%^&|`?".contains(&byte)) {
        while size > 1 && matches!(rest.as_bytes()[size - 1], b'+' | b'-') {
            size -= 1;
        }
    }
    (size > 0).then_some(size)
}

fn mysql_sign(rest: &str) -> Option<usize> {
    let signs = ["->>", "<=>", "->", "<=", ">=", "<>", "!=", "<<", ">>", "||", "&&", ":=", "*/"];
    signs.into_iter().find(|sign| rest.starts_with(sign)).map(str::len)
}

/// The literal that is written so.
fn literal(written: &str, mysql: bool) -> Literal {
    let bytes = written.as_bytes();
    let (kind, body) = match bytes[0] {
        b'$' => {
            let mark = written[1..].find('$').map_or(written.len(), |end| end + 2);
            let body = &written[mark..];
            let value = body.strip_suffix(&written[..mark]).unwrap_or(body).to_owned();
            return Literal { kind: Kind::Text, value: Some(value), bound: 0 };
        }
        b'x' | b'X' => (Kind::Hex, inside(&written[1..])),
        b'b' | b'B' => (Kind::Bits, inside(&written[1..])),
        b'n' | b'N' => (Kind::National, inside(&written[1..])),
        b'u' | b'U' => (Kind::Unicode, inside(&written[2..])),
        b'e' | b'E' => (Kind::Escaped, inside(&written[1..])),
        _ if mysql => (Kind::Escaped, inside(written)),
        _ => (Kind::Text, inside(written)),
    };
    let quote = if bytes[0] == b'"' { "\"" } else { "'" };
    let (kind, value) = match kind {
        Kind::Escaped => match crate::escapes::unescaped(body, quote, mysql) {
            Some(value) => (Kind::Text, value),
            None => (Kind::Escaped, body.to_owned()),
        },
        Kind::Text | Kind::National => (kind, body.replace("''", "'")),
        _ => (kind, body.to_owned()),
    };
    Literal { kind, value: Some(value), bound: 0 }
}

/// What stands between quotes; those at the end may be missing.
fn inside(quoted: &str) -> &str {
    let quote = quoted.chars().next().unwrap_or_default();
    let body = &quoted[quote.len_utf8().min(quoted.len())..];
    body.strip_suffix(quote).unwrap_or(body)
}
