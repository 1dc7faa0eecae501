//! Files of named statements, as users of aiosql and sqlc know them: each begins with a line `-- name: find_order`.

use nephoscope_drivers::{Action, Lexer, Statement, Verb};

use crate::error::ScriptError;

/// Reads a file of named statements. `file` is its name for messages, `lexer` that of the dialect which runs them.
///
/// What stands before the first name may only be comments. A statement's text runs to the next name, without the
/// comments around it and without semicolons at its end.
pub fn parse_statements(file: &str, text: &str, lexer: Lexer) -> Result<Vec<Statement>, ScriptError> {
    let mut statements: Vec<Statement> = Vec::new();
    let mut current: Option<(usize, &str, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if let Some(name) = name_line(line) {
            let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
            if name.is_empty() || !name.chars().all(is_part) {
                let message = "a name is one word of letters, digits and underscores";
                return Err(ScriptError::new(file, number, message));
            }
            finish(file, current.take(), lexer, &mut statements)?;
            current = Some((number, name, Vec::new()));
        } else if let Some((_, _, lines)) = &mut current {
            lines.push(line);
        } else if !(line.trim().is_empty() || line.trim_start().starts_with("--")) {
            return Err(ScriptError::new(file, number, "SQL before the first line `-- name: …`"));
        }
    }
    finish(file, current, lexer, &mut statements)?;
    Ok(statements)
}

/// What stands for a name in a line `-- name: NAME`.
fn name_line(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("--")?.trim_start().strip_prefix("name:")?.trim())
}

fn finish(
    file: &str,
    current: Option<(usize, &str, Vec<&str>)>,
    lexer: Lexer,
    statements: &mut Vec<Statement>,
) -> Result<(), ScriptError> {
    let Some((number, name, lines)) = current else { return Ok(()) };
    let statement = named_statement(name, &lines, lexer)
        .map_err(|(line, message)| ScriptError::new(file, number + line, &message))?;
    if statements.iter().any(|other| other.name() == name) {
        return Err(ScriptError::new(file, number, &format!("a second statement has the name {name}")));
    }
    statements.push(statement);
    Ok(())
}

/// A statement of these lines, without the comments around it and without semicolons at its end; or what is wrong, and
/// in which of them, counted from 1, where it is not the whole.
pub(crate) fn named_statement(
    name: &str,
    lines: &[&str],
    lexer: Lexer,
) -> Result<Statement, (usize, String)> {
    let is_end = |next: char| next == ';' || next.is_whitespace();
    let is_sql = |line: &&str| !(line.trim_matches(is_end).is_empty() || line.trim_start().starts_with("--"));
    let last = lines.iter().rposition(is_sql).map_or(0, |last| last + 1);
    let first = lines.iter().position(is_sql).unwrap_or(last);
    let sql = lines[first..last].join("\n");
    let sql = sql.trim().trim_end_matches(is_end);
    if sql.is_empty() {
        return Err((0, format!("the statement {name} has no SQL")));
    }
    if let Some((line, what)) = unended(sql, lexer) {
        return Err((1 + first + line, format!("the statement {name} has {what} that does not end")));
    }
    Ok(Statement::read(name, sql, lexer))
}

/// The statement of a verb for some fields, or for `all`.
pub(crate) fn verb_statement(
    action: Action,
    table: &str,
    key: &str,
    fields: &[String],
    all: bool,
) -> Statement {
    // No statement of a workload has a blank in its name.
    let of = if all { String::new() } else { format!(".{}", fields.join(",")) };
    let name = format!("{} {table}{of}", action.name());
    let fields = if action == Action::Delete { Vec::new() } else { fields.to_vec() };
    Statement::of_verb(&name, Verb { action, table: table.to_owned(), key: key.to_owned(), fields })
}

/// What is opened in SQL and not closed, and on which of its lines.
///
/// A parameter is put in at the end, on a line of its own: where it is not seen as one, it is part of something.
fn unended(sql: &str, lexer: Lexer) -> Option<(usize, &'static str)> {
    let ends = |sql: &str, closed_by: &str| {
        let probe = "an_end_that_nobody_else_writes";
        let sql = format!("{sql}{closed_by}\n:{probe}");
        Statement::read("", &sql, lexer).params().iter().any(|param| param == probe)
    };
    if ends(sql, "") {
        return None;
    }
    let lines: Vec<&str> = sql.split('\n').collect();
    let line = (0..lines.len()).rev().find(|line| ends(&lines[..*line].join("\n"), "")).unwrap_or(0);
    // From that line on, since what comes before is in order.
    let rest = lines[line..].join("\n");
    let kinds = [
        ("'", "a text in '…'"),
        ("\"", "a name in \"…\""),
        ("`", "a name in `…`"),
        ("*/", "a comment in /* … */"),
    ];
    let kind = kinds.into_iter().find(|(closed_by, _)| ends(&rest, closed_by));
    Some((line, kind.map_or("a quotation or comment", |(_, what)| what)))
}

/// A statement that only a dialect's file has: a slip of the pen, unless something uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    pub(crate) name: String,
    pub(crate) file: String,
}

impl Stray {
    /// An error where nothing uses it.
    pub(crate) fn check(&self, is_used: impl Fn(&str) -> bool) -> Result<(), ScriptError> {
        if is_used(&self.name) {
            return Ok(());
        }
        let name = &self.name;
        let message = format!("the statement {name} overrides none of the common file, and nothing uses it");
        Err(ScriptError::new(&self.file, 0, &message))
    }
}

/// Puts a dialect's statements over the common ones, by name. What the common file lacks is added, and returned.
pub(crate) fn override_statements(
    common: &mut Vec<Statement>,
    dialect: Vec<Statement>,
    file: &str,
) -> Vec<Stray> {
    let mut strays = Vec::new();
    for statement in dialect {
        if let Some(place) = common.iter_mut().find(|other| other.name() == statement.name()) {
            *place = statement;
        } else {
            strays.push(Stray { name: statement.name().to_owned(), file: file.to_owned() });
            common.push(statement);
        }
    }
    strays
}

/// The names of a file's statements.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(name_line)
}

/// Whether a Lua file has a name as a text of its own.
pub(crate) fn mentions(lua: &str, name: &str) -> bool {
    ['"', '\''].iter().any(|quote| lua.contains(&format!("{quote}{name}{quote}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_is_cut_at_its_names() {
        let statements = parse_statements(
            "s.sql",
            "-- The statements of sales.\n\n-- name: find_order\n-- by key\nSELECT *\nFROM orders -- all\nWHERE o_id = :o_id;\n\n--name:two\nSELECT 2 ; ;\n-- done\n;\n",
            Lexer::POSTGRES,
        )
        .unwrap();
        assert_eq!(statements[0].name(), "find_order");
        assert_eq!(statements[0].text(), "SELECT *\nFROM orders -- all\nWHERE o_id = :o_id");
        assert_eq!(statements[1].name(), "two");
        assert_eq!(statements[1].text(), "SELECT 2");
        assert!(parse_statements("s.sql", "", Lexer::POSTGRES).unwrap().is_empty());
    }

    #[test]
    fn errors_name_file_line_and_what_is_expected() {
        for (text, expected) in [
            ("SELECT 1", "s.sql:1: SQL before the first line `-- name: …`"),
            ("\n-- name: a b\nSELECT 1", "s.sql:2: a name is one word of letters, digits and underscores"),
            ("-- name:\nSELECT 1", "s.sql:1: a name is one word of letters, digits and underscores"),
            ("-- name: a\n;", "s.sql:1: the statement a has no SQL"),
            (
                "-- name: a\n\n-- why\nSELECT 'b',\n  'c",
                "s.sql:5: the statement a has a text in '…' that does not end",
            ),
            (
                "-- name: a\nSELECT E'\\\\', \"b",
                "s.sql:2: the statement a has a name in \"…\" that does not end",
            ),
            (
                "-- name: a\nSELECT 1 /* b\nc",
                "s.sql:2: the statement a has a comment in /* … */ that does not end",
            ),
            (
                "-- name: a\nSELECT $x$\n 1",
                "s.sql:2: the statement a has a quotation or comment that does not end",
            ),
            ("-- name: a\nSELECT 1\n-- name: a\nSELECT 2", "s.sql:3: a second statement has the name a"),
        ] {
            assert_eq!(parse_statements("s.sql", text, Lexer::POSTGRES).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_dialect_overrides_by_name() {
        let mut common =
            parse_statements("s.sql", "-- name: a\nSELECT 1\n-- name: b\nSELECT 2", Lexer::POSTGRES).unwrap();
        let dialect = parse_statements("s.mysql.sql", "-- name: b\nSELECT 3", Lexer::POSTGRES).unwrap();
        assert_eq!(override_statements(&mut common, dialect, "s.mysql.sql"), []);
        assert_eq!(common[1].text(), "SELECT 3");
        let added = parse_statements("s.mysql.sql", "-- name: c\nSELECT 4", Lexer::MYSQL).unwrap();
        let strays = override_statements(&mut common, added, "s.mysql.sql");
        assert_eq!((common.len(), common[2].name()), (3, "c"));
        assert!(strays[0].check(|name| name == "c").is_ok());
        let expected = "s.mysql.sql: the statement c overrides none of the common file, and nothing uses it";
        assert_eq!(strays[0].check(|name| name == "d").unwrap_err().to_string(), expected);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "(-- name: [a-c]|[^\u{0}]|\n|;){0,60}") {
            let _ = parse_statements("s.sql", &text, Lexer::POSTGRES);
        }
    }
}
