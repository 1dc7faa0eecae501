//! What the fuzz target in `fuzz/` calls; the tests replay its seeds.

use nephoscope_drivers::{Lexer, Statement};

use crate::parse_statements;

/// A file of named statements: it is refused, or means the same when it is written out and read again.
///
/// # Panics
/// If it does not.
pub fn statements(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_statement(&Statement::new("whole", text), text);
    // Of such line ends only a part is taken for one, and the rest is one when it is written out.
    if text.contains("\r\r") {
        return;
    }
    let Ok(statements) = parse_statements("s.sql", text, Lexer::POSTGRES) else { return };
    let mut written = String::new();
    for statement in &statements {
        check_statement(statement, &statement.text());
        written.extend(["-- name: ", statement.name(), "\n", &statement.text(), ";\n\n"]);
    }
    match parse_statements("s.sql", &written, Lexer::POSTGRES) {
        Ok(again) => assert_eq!(again, statements, "{written}"),
        Err(error) => panic!("{error}\n{written}"),
    }
}

/// The pieces and the parameters are the text, and the parameters are names, each of them once.
fn check_statement(statement: &Statement, text: &str) {
    assert_eq!(statement.text(), text);
    assert_eq!(&Statement::new(statement.name(), &statement.text()), statement);
    for (index, param) in statement.params().iter().enumerate() {
        assert!(param.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'), "{param}");
        assert!(param.chars().all(|next| next.is_alphanumeric() || next == '_'), "{param}");
        assert!(!statement.params()[..index].contains(param), "{param} twice");
    }
    let mut used = vec![false; statement.params().len()];
    let mut out = Vec::new();
    let done: Result<(), ()> = statement.render(&mut out, |param, out| {
        used[param] = true;
        out.push(b':');
        out.extend_from_slice(statement.params()[param].as_bytes());
        Ok(())
    });
    assert!(done.is_ok() && out == text.as_bytes() && used.iter().all(|used| *used));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_seeds_of_statements_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/statements");
        let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!seeds.is_empty(), "{} is empty", folder.display());
        for seed in seeds {
            println!("{}", seed.display());
            super::statements(&fs::read(&seed).unwrap());
        }
    }
}
