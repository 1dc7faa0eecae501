//! Which rows statements touch.

use super::*;
use crate::normal::normalised;

/// Numbers of the parts that statements touch: the same number is the same part; `w` where it is written.
fn parts(statements: &[&str], lexer: Lexer) -> Vec<String> {
    let read: Vec<_> = statements.iter().map(|sql| normalised(sql, lexer)).collect();
    let texts: Vec<_> = read.iter().map(|one| one.text.clone()).collect();
    let (keys, mut known) = (Keys::new(&texts, lexer), Vec::new());
    let shown = |(number, one): (usize, &crate::normal::Normal)| {
        let values: Vec<_> = one.literals.iter().map(|literal| literal.value.as_deref()).collect();
        let mut found: Vec<_> = keys.of(number, &one.kinds, &values);
        found.dedup();
        let of = |key: Key| {
            let at = known.iter().position(|part| *part == key.part).unwrap_or_else(|| {
                known.push(key.part);
                known.len() - 1
            });
            format!("{at}{}", if key.writes { "w" } else { "" })
        };
        found.into_iter().map(of).collect::<Vec<_>>().join(" ")
    };
    read.iter().enumerate().map(shown).collect()
}

#[test]
fn rows_are_told_by_the_columns_that_all_writers_name() {
    let found = parts(
        &[
            "UPDATE stock SET n = n - 3 WHERE w = 1 AND i = 05",
            "UPDATE s.stock SET n = 3 WHERE (i = 5) AND w = 1 AND n > 2",
            "SELECT n FROM stock WHERE i = 5 AND w = 1",
            "SELECT n FROM stock WHERE i = 6 AND w = 1 FOR UPDATE",
            "SELECT n FROM stock WHERE i = 5",
            "INSERT INTO stock (i, w, n) VALUES (5, 1, 0), (6, 1, 0), (7, 2, 0)",
            "DELETE FROM stock WHERE w = 1 AND i IN (5, 6, 7)",
        ],
        Lexer::POSTGRES,
    );
    assert_eq!(found, ["0w", "0w", "0", "1w", "", "0w 1w 2w", "0w 1w 3w"]);
}

#[test]
fn what_names_no_row_touches_its_whole_table() {
    for whole in [
        "UPDATE t SET a = 1",
        "UPDATE t SET a = 1 WHERE id = 5 OR id = 6",
        "UPDATE t SET id = 1 WHERE id = 5",
        "DELETE FROM t WHERE id > 5",
        "INSERT INTO t SELECT * FROM u",
        "INSERT INTO t (a, id) VALUES (1, 2) ON CONFLICT DO NOTHING",
        "TRUNCATE TABLE t",
        "ALTER TABLE t ADD b int",
        "WITH x AS (SELECT 1) UPDATE t SET a = 1 WHERE id = 5",
    ] {
        let found = parts(&[whole, "UPDATE t SET a = 2 WHERE id = 8"], Lexer::POSTGRES);
        let last = found[0].split(' ').next_back();
        assert_eq!((last, found[1].as_str()), (Some(found[1].as_str()), found[1].as_str()), "{whole}");
        assert!(found[1].ends_with('w'), "{whole}");
    }
    let upsert = "INSERT INTO t (id, a) VALUES (5, 1) ON CONFLICT (id) DO UPDATE SET a = 1";
    assert_eq!(parts(&[upsert, "UPDATE t SET a = 2 WHERE id = 5"], Lexer::POSTGRES), ["0w", "0w"]);
    assert_eq!(parts(&["BEGIN", "SET x = 1", "SELECT a FROM t WHERE id = 5"], Lexer::MYSQL), ["", "", ""]);
}
