//! SQL with named parameters.

use std::fmt;

use crate::contract::error::Error;
use crate::contract::lexer::Lexer;
use crate::contract::value::Params;
use crate::contract::verb::Verb;

/// A statement of a workload: SQL whose parameters are written `:name`, cut at them, so that each driver writes
/// them as its server wants.
///
/// What stands in quotes or in comments is text, as the dialect's [`Lexer`] has them, and so is the cast `::type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    name: String,
    /// One more piece of text than there are places of parameters.
    pieces: Vec<String>,
    /// For each place, which parameter stands there.
    places: Vec<usize>,
    /// For each place, what follows a parameter that is a list.
    marks: Vec<&'static str>,
    params: Vec<String>,
    /// What it is in the words of key-value systems, where a workload has said it so.
    verb: Option<Box<Verb>>,
}

/// How many values a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListShape {
    /// Its items.
    pub items: usize,
    /// The values of each item, where items are rows.
    pub columns: Option<usize>,
}

impl ListShape {
    /// How many values there are.
    #[must_use]
    pub fn values(self) -> usize {
        self.items * self.columns.unwrap_or(1)
    }

    /// What stands before a value, and behind the last one.
    fn between(self, value: usize) -> &'static str {
        match self.columns {
            None if value == 0 || value == self.items => "",
            Some(_) if value == 0 => "(",
            Some(_) if value == self.values() => ")",
            Some(columns) if value.is_multiple_of(columns) => "), (",
            None | Some(_) => ", ",
        }
    }
}

/// What says that a parameter is a list.
const MARKS: [&str; 2] = ["…", "..."];

impl Statement {
    /// As [`Statement::read`], with the lexer of `PostgreSQL`.
    #[must_use]
    pub fn new(name: &str, sql: &str) -> Self {
        Self::read(name, sql, Lexer::POSTGRES)
    }

    /// Cuts SQL at its parameters. They are numbered in the order in which they first appear.
    #[must_use]
    pub fn read(name: &str, sql: &str, lexer: Lexer) -> Self {
        let mut statement = Self {
            name: name.to_owned(),
            pieces: Vec::new(),
            places: Vec::new(),
            marks: Vec::new(),
            params: Vec::new(),
            verb: None,
        };
        let (mut piece, mut rest) = (0, sql);
        if !sql.contains(':') {
            // A text of many rows is not looked through word by word.
            rest = "";
        }
        while let Some(next) = rest.chars().next() {
            let at = sql.len() - rest.len();
            let mut size = lexer.token(rest, next);
            if let Some(param) = rest[..size].strip_prefix(':').filter(|param| is_name(param)) {
                statement.pieces.push(sql[piece..at].to_owned());
                let mark = MARKS.into_iter().find(|mark| rest[size..].starts_with(mark)).unwrap_or_default();
                size += mark.len();
                statement.marks.push(mark);
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

    /// A text that is sent as it is: no colon in it begins a parameter.
    #[must_use]
    pub fn of_text(name: &str, text: String) -> Self {
        let (places, marks, params) = (Vec::new(), Vec::new(), Vec::new());
        Self { name: name.to_owned(), pieces: vec![text], places, marks, params, verb: None }
    }

    /// A verb, which drivers of SQL take as its SQL.
    #[must_use]
    pub fn of_verb(name: &str, verb: Verb) -> Self {
        let statement = Self::new(name, &verb.sql());
        Self { verb: Some(Box::new(verb)), ..statement }
    }

    /// The verb that it is, if it is one.
    #[must_use]
    pub fn verb(&self) -> Option<&Verb> {
        self.verb.as_deref()
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

    /// Whether a parameter is a list: `IN (:ids…)`, `VALUES :rows…`.
    #[must_use]
    pub fn is_list(&self, param: usize) -> bool {
        self.places.iter().zip(&self.marks).any(|(place, mark)| *place == param && !mark.is_empty())
    }

    /// Whether any parameter is a list. Such a statement is run only as [`Statement::expanded`].
    #[must_use]
    pub fn has_lists(&self) -> bool {
        self.marks.iter().any(|mark| !mark.is_empty())
    }

    /// The statement with a parameter for each value of its lists, whose shapes are in the order of the parameters.
    #[must_use]
    pub fn expanded(&self, shapes: &[ListShape]) -> Self {
        let (mut shapes, mut params, mut of) = (shapes.iter(), Vec::new(), Vec::new());
        for (param, name) in self.params.iter().enumerate() {
            let shape = self.is_list(param).then(|| shapes.next().copied()).flatten();
            of.push((params.len(), shape));
            match shape {
                Some(shape) => params.extend((1..=shape.values()).map(|value| format!("{name}[{value}]"))),
                None => params.push(name.clone()),
            }
        }
        let (mut pieces, mut places, mut piece) = (Vec::new(), Vec::new(), String::new());
        for (place, before) in self.pieces.iter().enumerate() {
            piece.push_str(before);
            let Some((first, shape)) = self.places.get(place).map(|param| of[*param]) else { continue };
            let values = shape.map_or(1, ListShape::values);
            for value in 0..values {
                piece.push_str(shape.map_or("", |shape| shape.between(value)));
                pieces.push(std::mem::take(&mut piece));
                places.push(first + value);
            }
            piece.push_str(shape.map_or("", |shape| shape.between(values)));
        }
        pieces.push(piece);
        let marks = vec![""; places.len()];
        Self { name: self.name.clone(), pieces, places, marks, params, verb: None }
    }

    /// The error of a call of a statement that a connection does not have.
    pub(crate) fn missing(index: usize) -> Error {
        Error::other(format!("there is no statement number {index}"))
    }

    /// Says whether a call gives as many values as there are parameters.
    #[inline]
    pub(crate) fn check_count(&self, given: &Params) -> Result<(), Error> {
        let (label, wanted, got) = (self.name(), self.params.len(), given.len());
        if wanted == got {
            return Ok(());
        }
        Err(Error::other(format!("{label} takes {wanted} parameters and was given {got}")))
    }

    /// The error of a value that its parameter cannot take.
    pub(crate) fn misfit(&self, param: usize, why: impl fmt::Display) -> Error {
        Error::other(format!("{}, parameter :{}: {why}", self.name, self.params[param]))
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

    /// The SQL up to its first parameter: all of it, where it has none.
    pub(crate) fn head(&self) -> &str {
        &self.pieces[0]
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
                sql.push_str(self.marks[place]);
            }
        }
        sql
    }
}

/// Whether it begins as a name does.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
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

    #[test]
    fn lists_have_a_parameter_for_each_value() {
        let statement = Statement::new("s", "SELECT :a IN (:ids…) OR :b = ANY(:b) OR x IN (:ids…)");
        assert_eq!(
            (statement.params(), statement.has_lists()),
            (&["a", "ids", "b"].map(str::to_owned)[..], true)
        );
        assert_eq!([0, 1, 2].map(|param| statement.is_list(param)), [false, true, false]);
        let three = statement.expanded(&[ListShape { items: 3, columns: None }]);
        assert_eq!(numbered(&three), "SELECT $1 IN ($2, $3, $4) OR $5 = ANY($5) OR x IN ($2, $3, $4)");
        assert_eq!(three.params(), ["a", "ids[1]", "ids[2]", "ids[3]", "b"]);
        assert!(!three.has_lists() && three.name() == "s");

        let rows = Statement::new("s", "INSERT INTO t VALUES :rows... RETURNING id + :n");
        let shape = ListShape { items: 2, columns: Some(2) };
        assert_eq!(
            numbered(&rows.expanded(&[shape])),
            "INSERT INTO t VALUES ($1, $2), ($3, $4) RETURNING id + $5"
        );
        let one = ListShape { items: 2, columns: Some(1) };
        assert_eq!(numbered(&rows.expanded(&[one])), "INSERT INTO t VALUES ($1), ($2) RETURNING id + $3");
        assert!(!Statement::new("s", "SELECT ':a…', :b::text, 1...3").has_lists());
    }

    #[test]
    fn what_is_text_depends_on_the_dialect() {
        for (lexer, sql, params) in [
            (Lexer::MYSQL, r#"SELECT '\':a', "\":b", '\\', :c"#, ["c"].as_slice()),
            (Lexer::MYSQL, "SELECT `a:b`, @x:=1 # it's :c\n, :d", &["d"]),
            (Lexer::MYSQL, "SELECT 1--:a, 2 -- :b\n, $1, $$:c$$", &["a", "c"]),
            (Lexer::MYSQL, "SELECT /* :a /* :b */ :c", &["c"]),
            (Lexer::CQL, "SELECT a // it's :b\n, c /* :d /* */ FROM t WHERE e = $$ :f $$ AND g = :h", &["h"]),
            (Lexer::SQLITE, "SELECT [a:b], `c:d`, '\\', :e, x[':f']", &["e"]),
            (Lexer::SQLITE, "SELECT 1--:a\n#:b", &["b"]),
            (Lexer::POSTGRES, "SELECT '\\', :a, `:b`, #:c", &["a", "b", "c"]),
        ] {
            assert_eq!(Statement::read("s", sql, lexer).params(), params, "{sql}");
        }
    }

    const LEXERS: [Lexer; 3] = [Lexer::POSTGRES, Lexer::MYSQL, Lexer::SQLITE];

    proptest! {
        #[test]
        fn the_text_comes_back_whatever_it_is(sql in "([:a-cE$/*' \"\\\\`#é…\\[\\]-]|\\.\\.\\.|--|::|\\$t\\$|\n){0,40}") {
            for lexer in LEXERS {
                prop_assert_eq!(&Statement::read("s", &sql, lexer).text(), &sql);
            }
        }

        #[test]
        fn any_text_is_taken(sql in any::<String>()) {
            for lexer in LEXERS {
                prop_assert_eq!(&Statement::read("s", &sql, lexer).text(), &sql);
            }
        }
    }
}
