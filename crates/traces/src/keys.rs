//! Which rows a statement touches, as far as its text tells: what two transactions have in common.
//!
//! Rows are put into parts by the columns that every writing statement of a table compares with a value, or inserts. Two
//! statements that write into different parts have no row in common. A table that some statement writes without naming
//! such a column is one part.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nephoscope_drivers::Lexer;

use crate::normal::{Kind, MORE, fingerprint, item_before};
use crate::tokens::{Token, tokens};

/// What a statement does to a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Touch {
    table: String,
    writes: bool,
    /// The places of the values of each column, from 0; of a list those of its first item.
    columns: BTreeMap<String, Vec<usize>>,
    /// The values are those of rows that are inserted: those of one row belong together.
    are_rows: bool,
}

/// A part of a table that a statement touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The part.
    pub part: u64,
    /// Whether the statement may change it.
    pub writes: bool,
}

/// The keys of the statements of one trace.
pub struct Keys {
    statements: Vec<(Vec<Touch>, Shape)>,
    /// The columns that all writing statements of a table name.
    common: HashMap<String, BTreeSet<String>>,
}

impl Keys {
    /// Reads the normalised texts of a trace; the numbers of statements are theirs.
    #[must_use]
    pub fn new(texts: &[String], lexer: Lexer) -> Self {
        let read = |text: &String| {
            let found = tokens(text, lexer);
            (touches(&found), Shape::of(&found))
        };
        let statements: Vec<_> = texts.iter().map(read).collect();
        let mut common: HashMap<String, BTreeSet<String>> = HashMap::new();
        for touch in statements.iter().flat_map(|(touches, _)| touches).filter(|touch| touch.writes) {
            let named: BTreeSet<String> = touch.columns.keys().cloned().collect();
            match common.get_mut(&touch.table) {
                Some(known) => known.retain(|column| named.contains(column)),
                None => drop(common.insert(touch.table.clone(), named)),
            }
        }
        Self { statements, common }
    }

    /// The parts that a statement touches: those that it writes, and those that it reads and others write. A query that
    /// does not name the columns of a part touches none.
    #[must_use]
    pub fn of(&self, statement: usize, kinds: &str, values: &[Option<&str>]) -> Vec<Key> {
        let Some((touches, shape)) = self.statements.get(statement) else { return Vec::new() };
        let items = shape.items(kinds);
        let mut keys = Vec::new();
        for touch in touches {
            let Some(common) = self.common.get(&touch.table) else { continue };
            let columns: Option<Vec<&Vec<usize>>> =
                common.iter().map(|column| touch.columns.get(column)).collect();
            let Some(columns) = columns else { continue };
            let given: Vec<Vec<String>> = columns
                .iter()
                .map(|places| {
                    let at = places.iter().flat_map(|place| items.get(*place).into_iter().flatten());
                    at.map(|at| plain(values.get(*at).copied().flatten())).collect()
                })
                .collect();
            let parts =
                if touch.are_rows { rows(&touch.table, &given) } else { combined(&touch.table, &given) };
            keys.extend(parts.iter().map(|part| Key { part: fingerprint(part), writes: touch.writes }));
        }
        keys
    }
}

/// A part of each row that is inserted.
fn rows(table: &str, given: &[Vec<String>]) -> Vec<String> {
    let count = given.iter().map(Vec::len).max().unwrap_or(1);
    let part = |row: usize| {
        let values = given.iter().map(|values| values.get(row).map_or("", String::as_str));
        values.fold(table.to_owned(), |part, value| part + "\0" + value)
    };
    (0..count).map(part).collect()
}

/// A part of each combination of values.
fn combined(table: &str, given: &[Vec<String>]) -> Vec<String> {
    given.iter().fold(vec![table.to_owned()], |parts, values| {
        parts.iter().flat_map(|part| values.iter().map(move |value| format!("{part}\0{value}"))).collect()
    })
}

/// The same text for values that are the same: `05`, `5` and `5.0`, `a` and `A `.
fn plain(value: Option<&str>) -> String {
    let Some(value) = value else { return String::new() };
    match value.parse::<f64>() {
        Ok(number) if number.abs() < 1e15 => format!("{}", number + 0.0),
        _ => value.trim_end().to_lowercase(),
    }
}

/// Which values belong to which place.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// The places one after the other: single ones (0), and lists by the places of their first item.
    groups: Vec<usize>,
}

impl Shape {
    fn of(tokens: &[Token<'_>]) -> Self {
        let mut groups: Vec<usize> = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            if matches!(token, Token::Literal(_)) {
                groups.push(0);
            } else if token.sign() == MORE
                && let Some(item) = item_before(tokens, at)
            {
                let size = item.iter().filter(|token| matches!(token, Token::Literal(_))).count();
                groups.truncate(groups.len().saturating_sub(size));
                groups.push(size);
            }
        }
        Self { groups }
    }

    /// The numbers of the values of each place.
    fn items(&self, kinds: &str) -> Vec<Vec<usize>> {
        let (mut letters, mut value, mut found) = (kinds.bytes().peekable(), 0, Vec::new());
        for size in &self.groups {
            while letters.next_if(|letter| Kind::of(*letter).is_none() && *letter != b'[').is_some() {}
            if *size == 0 {
                letters.next_if(|letter| Kind::of(*letter).is_some());
                found.push(vec![value]);
                value += 1;
                continue;
            }
            letters.next_if_eq(&b'[');
            let mut count = 0;
            while letters.next_if(|letter| *letter != b']').is_some() {
                count += 1;
            }
            letters.next_if_eq(&b']');
            found.extend((0..*size).map(|place| (value + place..value + count).step_by(*size).collect()));
            value += count;
        }
        found
    }
}

/// What a statement does to tables.
fn touches(tokens: &[Token<'_>]) -> Vec<Touch> {
    let reader = Reader { tokens };
    let Some(first) = tokens.first() else { return Vec::new() };
    let is = |words: &[&str]| words.iter().any(|word| first.is(word));
    if is(&["insert"]) {
        vec![reader.inserted()]
    } else if is(&["update"]) {
        vec![reader.changed(1)]
    } else if is(&["delete"]) {
        reader.after("from").map(|at| vec![reader.changed(at)]).unwrap_or_default()
    } else if is(&["select"]) {
        reader.read()
    } else if is(&["create", "alter", "drop"]) {
        reader.after("table").map(|at| vec![reader.whole(at)]).unwrap_or_default()
    } else if is(&["replace", "truncate", "merge", "with", "copy"]) {
        let marks = ["into", "update", "from", "truncate", "copy"];
        let found = marks.iter().flat_map(|mark| reader.all_after(mark));
        found.map(|at| reader.whole(at)).filter(|touch| !touch.table.is_empty()).collect()
    } else {
        Vec::new()
    }
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
}

impl Reader<'_> {
    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(word))
    }

    fn sign(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", Token::sign)
    }

    fn all_after(&self, word: &str) -> Vec<usize> {
        (0..self.tokens.len()).filter(|at| self.is(*at, word)).map(|at| at + 1).collect()
    }

    fn after(&self, word: &str) -> Option<usize> {
        self.all_after(word).first().copied()
    }

    /// A name without its schema and its quotes, in lower case, and the place behind it.
    fn name(&self, mut at: usize) -> (String, usize) {
        while ["only", "into", "ignore", "if", "not", "exists", "table", "low_priority"]
            .iter()
            .any(|word| self.is(at, word))
        {
            at += 1;
        }
        let mut name = String::new();
        loop {
            match self.tokens.get(at) {
                Some(Token::Word(word) | Token::Name(word)) => {
                    name = word.trim_matches(['"', '`']).to_lowercase();
                    at += 1;
                }
                _ => return (name, at),
            }
            if self.sign(at) != "." {
                return (name, at);
            }
            at += 1;
        }
    }

    fn whole(&self, at: usize) -> Touch {
        Touch { table: self.name(at).0, writes: true, ..Touch::default() }
    }

    /// `INSERT INTO table (columns) VALUES (values)`.
    fn inserted(&self) -> Touch {
        let (table, mut at) = self.name(1);
        let whole = Touch { table, writes: true, are_rows: true, ..Touch::default() };
        if self.sign(at) != "(" {
            return whole;
        }
        let mut names = Vec::new();
        while self.sign(at) == "(" || self.sign(at) == "," {
            let (name, next) = self.name(at + 1);
            names.push(name);
            at = next;
        }
        let Some(mut at) = self.after("values").filter(|values| *values == at + 2) else { return whole };
        let mut columns = BTreeMap::new();
        let mut place = 0;
        for name in names {
            let literals = |from: usize, to: usize| {
                self.tokens[from..to].iter().filter(|token| matches!(token, Token::Literal(_))).count()
            };
            let end = self.end_of_value(at + 1);
            if end == at + 2 && matches!(self.tokens.get(at + 1), Some(Token::Literal(_))) {
                columns.insert(name, vec![place]);
            }
            place += literals(at + 1, end);
            at = end;
        }
        self.without_conflicts(Touch { columns, ..whole })
    }

    /// Where the value that begins at a place ends.
    fn end_of_value(&self, from: usize) -> usize {
        let mut depth = 0_usize;
        for at in from.min(self.tokens.len())..self.tokens.len() {
            match self.sign(at) {
                "(" => depth += 1,
                ")" | "," if depth == 0 => return at,
                ")" => depth -= 1,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Of an insertion that may change a row, the row is known by the columns whose conflict it takes.
    fn without_conflicts(&self, mut touch: Touch) -> Touch {
        let named: Vec<String> = match self.after("conflict") {
            Some(at) if self.sign(at) == "(" => {
                let end = self.end_of_value(at + 1).max(at + 1);
                let mut names = vec![self.name(at + 1).0];
                let mut next = end;
                while self.sign(next) == "," {
                    names.push(self.name(next + 1).0);
                    next = self.end_of_value(next + 1);
                }
                names
            }
            None if self.after("duplicate").is_none() => return touch,
            _ => Vec::new(),
        };
        touch.columns.retain(|column, _| named.contains(column));
        touch
    }

    /// `UPDATE table …` and `DELETE FROM table …`.
    fn changed(&self, at: usize) -> Touch {
        let (table, next) = self.name(at);
        let mut columns = if self.is_one_table(next) { self.compared() } else { BTreeMap::new() };
        if let Some(set) = self.after("set") {
            let end = self.after("where").unwrap_or(self.tokens.len());
            for at in set..end {
                if at == set || self.sign(at - 1) == "," {
                    columns.remove(&self.name(at).0);
                }
            }
        }
        Touch { table, writes: true, columns, are_rows: false }
    }

    fn is_one_table(&self, from: usize) -> bool {
        let until = self.after("set").or_else(|| self.after("where")).unwrap_or(self.tokens.len());
        !(from..until).any(|at| self.sign(at) == "," || self.is(at, "join"))
            && self.all_after("from").len() + self.all_after("using").len() <= 1
    }

    fn read(&self) -> Vec<Touch> {
        let writes = self.all_after("for").iter().any(|at| self.is(*at, "update") || self.is(*at, "no"));
        let (columns, mut found) = (self.compared(), Vec::new());
        let end = self.after("where").unwrap_or(self.tokens.len());
        let mut within = false;
        for at in 0..end {
            within = self.is(at, "from") || (within && !self.is(at, "on"));
            let begins = self.is(at, "from") || self.is(at, "join") || (within && self.sign(at) == ",");
            let (table, _) = self.name(at + 1);
            if begins && !table.is_empty() {
                found.push(Touch { table, writes, columns: columns.clone(), are_rows: false });
            }
        }
        found
    }

    /// The columns that all rows of a statement have one of some values in.
    fn compared(&self) -> BTreeMap<String, Vec<usize>> {
        let mut columns = BTreeMap::new();
        let Some(from) = self.after("where") else { return columns };
        let apart = ["or", "not", "xor", "case", "select", "union"];
        if (from..self.tokens.len())
            .any(|at| self.sign(at) == "||" || apart.iter().any(|word| self.is(at, word)))
        {
            return columns;
        }
        let literal = |at: usize| matches!(self.tokens.get(at), Some(Token::Literal(_)));
        let mut place = self.tokens[..from].iter().filter(|token| matches!(token, Token::Literal(_))).count();
        for at in from..self.tokens.len() {
            if literal(at) {
                place += 1;
            }
            if !(self.is(at - 1, "where") || self.is(at - 1, "and") || self.sign(at - 1) == "(") {
                continue;
            }
            let (column, next) = self.name(at);
            if column.is_empty() {
                continue;
            }
            if self.sign(next) == "=" && literal(next + 1) && self.ends_comparison(next + 2) {
                columns.insert(column, vec![place]);
            } else if self.is(next, "in") && self.sign(next + 1) == "(" {
                let mut end = next + 2;
                while literal(end) || [",", MORE].contains(&self.sign(end)) {
                    end += 1;
                }
                let count =
                    self.tokens[next..end].iter().filter(|token| matches!(token, Token::Literal(_))).count();
                if self.sign(end) == ")" && count > 0 {
                    columns.insert(column, (place..place + count).collect());
                }
            }
        }
        columns
    }

    fn ends_comparison(&self, at: usize) -> bool {
        let words = ["and", "for", "order", "limit", "returning", "group", "having", "offset", "lock"];
        at >= self.tokens.len() || self.sign(at) == ")" || words.iter().any(|word| self.is(at, word))
    }
}

#[cfg(test)]
mod tests;
