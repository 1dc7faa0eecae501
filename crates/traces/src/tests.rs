//! Every format over its example, and statements with every kind of literal.

use nephoscope_drivers::Lexer;
use proptest::prelude::*;

use crate::logs::Format;
use crate::normal::{filled, normalised};
use crate::tokens::{Token, tokens};
use crate::{Batch, Options, Reader};

/// What a log holds: a statement a line as `time session transaction duration text kinds values error`.
fn read(format: &str, text: &str) -> Result<Vec<String>, String> {
    let format = Format::of(format)?;
    let mut reader =
        Reader::new("log", std::io::Cursor::new(text.as_bytes().to_vec()), format, &Options::default())?;
    let mut found = Vec::new();
    while let Some(batch) = reader.next()? {
        found.extend((0..batch.len()).map(|at| told(&batch, at)));
    }
    Ok(found)
}

pub(crate) fn told(batch: &Batch, at: usize) -> String {
    let values: Vec<_> =
        batch.parameters_of(at).iter().map(|value| value.unwrap_or("NULL").to_owned()).collect();
    let name = |named: &crate::Named| named.texts.get(named.codes[at] as usize).to_owned();
    format!(
        "{} s{} t{} {} {}|{}|{}|{}|{}",
        batch.time_us[at] - 1_769_904_000_000_000,
        batch.session[at],
        batch.transaction[at],
        batch.duration_us[at],
        batch.statement_of(at),
        batch.kinds_of(at),
        values.join(","),
        name(&batch.error),
        name(&batch.database),
    )
}

/// Logs as servers write them, from 2026-02-01 00:00 on, and what they hold.
pub(crate) const EXAMPLES: &[(&str, &str, &[&str])] = &[
    (
        "postgresql-csv",
        r#"2026-02-01 00:00:00.010 UTC,"u","d",7,"h:1",6a.1,1,"BEGIN",2026-02-01 00:00:00 UTC,1/1,0,LOG,00000,"duration: 0.120 ms  statement: BEGIN",,,,,,,,,"a","client backend",,0
2026-02-01 00:00:00.020 UTC,"u","d",7,"h:1",6a.1,2,"BIND",2026-02-01 00:00:00 UTC,1/1,0,LOG,00000,"duration: 0.020 ms  bind <unnamed>: SELECT a FROM t WHERE b = $1","parameters: $1 = '5'",,,,,,,,"a","client backend",,0
2026-02-01 00:00:00.021 UTC,"u","d",7,"h:1",6a.1,3,"SELECT",2026-02-01 00:00:00 UTC,1/1,0,LOG,00000,"duration: 1.000 ms  execute <unnamed>: SELECT a
FROM t WHERE b = $1 AND c = ""C""","Parameters: $1 = 'it''s'",,,,,,,,"a","client backend",,0
2026-02-01 00:00:00.030 UTC,"u","d",7,"h:1",6a.1,4,"SELECT",2026-02-01 00:00:00 UTC,1/1,0,ERROR,42703,"column ""x"" does not exist",,,,,,"SELECT x + 1",8,,"a","client backend",,0
2026-02-01 00:00:00.040 UTC,"u","d",7,"h:1",6a.1,5,"ROLLBACK",2026-02-01 00:00:00 UTC,1/1,0,LOG,00000,"statement: ROLLBACK",,,,,,,,,"a","client backend",,0
2026-02-01 00:00:00.041 UTC,"u","d",7,"h:1",6a.1,6,"ROLLBACK",2026-02-01 00:00:00 UTC,1/1,0,LOG,00000,"duration: 0.500 ms",,,,,,,,,"a","client backend",,0
2026-02-01 00:00:00.050 UTC,"u","d",7,"h:1",6a.1,7,"ALTER",2026-02-01 00:00:00 UTC,1/1,0,LOG,00000,"duration: 0.500 ms  statement: ALTER ROLE u PASSWORD 'hunter2'",,,,,,,,,"a","client backend",,0
"#,
        &[
            "9880 s0 t0 120 begin||||d",
            "20000 s0 t0 1000 select a from t where b = $1 and c = \"C\"|p|it's||d",
            "30000 s0 t0 -1 select x + $1|n|1|42703|d",
            "40000 s0 t0 500 rollback||||d",
        ],
    ),
    (
        "postgresql-json",
        r#"{"timestamp":"2026-02-01 00:00:00.010 UTC","user":"u","dbname":"d","pid":7,"session_id":"6a.1","line_num":1,"error_severity":"LOG","message":"duration: 0.120 ms  statement: SELECT 'a\nb'","backend_type":"client backend","query_id":0}
{"timestamp":"2026-02-01 00:00:00.011 UTC","pid":8,"session_id":"6a.2","line_num":1,"error_severity":"LOG","message":"checkpoint starting: time","backend_type":"checkpointer","query_id":0}
"#,
        &["9880 s0 t0 120 select $1|t|a\nb||d"],
    ),
    (
        "mariadb-general",
        "mariadbd, Version: 10.11.6-MariaDB (Debian). started with:\nTcp port: 0  Unix socket: /s\nTime\t\t    Id Command\tArgument\n260201  0:00:01\t     3 Connect\troot@localhost on a using Socket\n\t\t     3 Query\tselect \"b\nc\"\n\t\t     3 Query\texecute s using @a\n\t\t     3 Execute\tselect * from T where x=-5\n260201  0:00:02\t     3 Init DB\tz\n\t\t     4 Query\tset password = 'x'\n\t\t     3 Query\tinsert into t values (1,'it\\'s'),(2,NULL)\n\t\t     3 Quit\t\n",
        &[
            "1000000 s0 t0 -1 select $1|t|b\nc||a",
            "1000000 s0 t1 -1 select * from T where x = $1|n|-5||a",
            "2000000 s0 t2 -1 insert into t values ($1, $2), …|[ntnc]|1,it's,2,NULL||z",
        ],
    ),
    (
        "mariadb-general-table",
        "\"2026-02-01 00:00:00.000001\",\"[root] @ localhost []\",3,1,\"Connect\",\"root@localhost on a using Socket\"\n\"2026-02-01 00:00:00.000002\",\"root[root] @ localhost []\",3,1,\"Query\",\"select \\\"x\\\\ny\\\" /* c */\\n, 2\"\n\"2026-02-01 00:00:00.000003\",\"root[root] @ localhost []\",3,1,\"Quit\",\"\"\n",
        &["2 s0 t0 -1 select $1, $2|tn|x\ny,2||a"],
    ),
];

#[test]
fn each_format_is_read() {
    for (format, text, expected) in EXAMPLES {
        assert_eq!(read(format, text).unwrap(), *expected, "{format}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let (_, csv, _) = EXAMPLES[0];
    let cut = &csv[..csv.len() - 40];
    assert_eq!(read("postgresql-csv", cut).unwrap().len(), 4, "the last record is cut off");
    let changed = csv.replacen("00:00:00.040 UTC", "00:00:00.040 CET", 1);
    assert!(read("postgresql-csv", &changed).unwrap_err().starts_with("log: line 6: the clock changes"));
    assert!(read("postgresql-csv", "a,b\n").unwrap_err().contains("2 columns (allowed: 26"));
    assert!(read("postgresql-json", "{}\n").unwrap_err().starts_with("log: line 1: column"));
    assert!(read("mariadb-general", "x\n").unwrap_err().contains("line 1"));
    assert!(read("mariadb-general-table", "\"x\",1\n").unwrap_err().contains("allowed: 6"));
    assert!(Format::of("x").is_err_and(|why| why.contains("mariadb-general-table")));
}

#[test]
fn a_record_that_is_too_long_is_left_out_alone() {
    let (_, csv, expected) = EXAMPLES[0];
    let long = format!("{}\n{}\"\n", "x\"\"\n".repeat(10), "y".repeat(9 << 20));
    let at = csv.find("2026-02-01 00:00:00.030").unwrap();
    let start = "2026-02-01 00:00:00.021 UTC,\"u\",\"d\",7,\"h:1\",6a.1,3,\"";
    let text = format!("{}{start}{long}{}", &csv[..at], &csv[at..]);
    assert_eq!(read("postgresql-csv", &text).unwrap(), *expected);
}

fn normal(sql: &str, lexer: Lexer) -> (String, String, String) {
    let found = normalised(sql, lexer);
    let values: Vec<_> =
        found.literals.iter().map(|literal| literal.value.clone().unwrap_or("NULL".to_owned())).collect();
    (found.text, found.kinds, values.join("|"))
}

#[test]
fn literals_are_told_from_the_rest() {
    for (sql, text, kinds, values) in [
        (
            "SELECT -1, a-1, a - -1, (-.5e-3), 1::int, -1::int;",
            "select $1, a - $2, a - $3, ($4), $5::int, - $6::int",
            "nnnnnn",
            "-1|1|-1|-.5e-3|1|1",
        ),
        (
            "Select  E'it\\'s\\n' , U&'d\\0061' , X'1F', b'01', N'n', $t$a'b$t$, $$c$$",
            "select $1, $2, $3, $4, $5, $6, $7",
            "tuxbNtt",
            "it's\n|d\\0061|1F|01|n|a'b|c",
        ),
        (
            "select 'a'\n 'b', 'it''s' -- c\n from T /* x /* y */ */ where \"A b\" = $2",
            "select $1, $2 from t where \"A b\" = $3",
            "ttp",
            "ab|it's|NULL",
        ),
        (
            "SELECT a[1], ARRAY[1, 2], x IS NULL, y = NULL, NOT true LIMIT 5",
            "select a[$1], array[$2, $3], x is null, y = $4, not true limit $5",
            "nnncn",
            "1|1|2|NULL|5",
        ),
        (
            "select * from t where a in (1,2, 3) and b IN (select 1) and c in (x, 2)",
            "select * from t where a in ($1, …) and b in (select $2) and c in (x, $3)",
            "[nnn]nn",
            "1|2|3|1|2",
        ),
        (
            "INSERT INTO t(a,b) VALUES (1, now()), (2,NOW())",
            "insert into t(a, b) values ($1, now()), …",
            "[nn]",
            "1|2",
        ),
        ("insert into t values (1), (DEFAULT)", "insert into t values ($1), (default)", "n", "1"),
        (
            "select a!=1, j->>'k', j @> '{}'::jsonb, t.*, count(*)",
            "select a <> $1, j ->> $2, j @> $3::jsonb, t.*, count(*)",
            "ntt",
            "1|k|{}",
        ),
    ] {
        let (text, kinds, values) = (text.to_owned(), kinds.to_owned(), values.to_owned());
        assert_eq!(normal(sql, Lexer::POSTGRES), (text, kinds, values), "{sql}");
    }
}

#[test]
fn literals_of_mysql_are_told_from_the_rest() {
    for (sql, text, kinds, values) in [
        (
            "SELECT 'a\\'b' \"c\\n\", `x y`, 0xFF, -1 # c\n FROM Orders",
            "select $1, `x y`, $2, $3 from Orders",
            "tnn",
            "a'bc\n|0xFF|-1",
        ),
        (
            "SELECT 1a, @v, @@x, ?, 1--2 /*!40101 , 3 *//*M! , 4 */",
            "select 1a, @v, @@x, $1, $2 - $3 /*!40101, $4 */ /*M!, $5 */",
            "pnnnn",
            "NULL|1|-2|3|4",
        ),
        ("select a.2b, `c`.3d, e . 4f, .5, (g).6", "select a. 2b, `c`. 3d, e. 4f, $1, (g) $2", "nn", ".5|.6"),
    ] {
        let (text, kinds, values) = (text.to_owned(), kinds.to_owned(), values.to_owned());
        assert_eq!(normal(sql, Lexer::MYSQL), (text, kinds, values), "{sql}");
        let found = normalised(sql, Lexer::MYSQL);
        let values: Vec<_> = found.literals.iter().map(|literal| literal.value.as_deref()).collect();
        let again = filled(&found.text, &found.kinds, &values, Lexer::MYSQL).unwrap();
        assert_eq!(normalised(&again, Lexer::MYSQL).text, found.text);
    }
}

#[test]
fn the_fingerprint_is_that_of_fnv() {
    // The test vectors of the algorithm's authors.
    assert_eq!(crate::normal::fingerprint(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(crate::normal::fingerprint("foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(
        normalised("SELECT 1", Lexer::POSTGRES).fingerprint,
        normalised(" select  'x';", Lexer::POSTGRES).fingerprint
    );
}

/// A statement's tokens, without what case and the spelling of a text say.
fn plain(sql: &str, lexer: Lexer) -> Vec<String> {
    let of = |token: &Token<'_>| match token {
        Token::Word(word) => word.to_lowercase(),
        Token::Name(text) | Token::Sign(text) => (*text).to_owned(),
        Token::Literal(literal) => format!("{:?} {:?}", literal.kind, literal.value),
    };
    tokens(sql, lexer).iter().map(of).collect()
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,5}(\\.[0-9]{1,3})?",
        "'[a-z ,()é]{0,6}(''[a-z])?'",
        "NULL|TRUE|a|t\\.b|\"Q r\"|now\\(\\)|X'0F'|b'01'",
        "\\([0-9]{1,2}, 'x'\\)",
    ]
}

fn condition() -> impl Strategy<Value = String> {
    let operator = prop_oneof![Just("="), Just("<>"), Just("- "), Just("||"), Just("LIKE"), Just("AND")];
    prop_oneof![
        (value(), operator, value()).prop_map(|(one, operator, other)| format!("{one} {operator} {other}")),
        (value(), proptest::collection::vec(value(), 1..4))
            .prop_map(|(one, items)| format!("{one} IN ({})", items.join(","))),
        proptest::collection::vec(("[0-9]{1,3}", "'[a-z]{0,3}'"), 1..4).prop_map(|rows| {
            let rows: Vec<_> = rows.iter().map(|(one, other)| format!("({one}, {other})")).collect();
            format!("x IN (VALUES {})", rows.join(", "))
        }),
    ]
}

proptest! {
    #[test]
    fn a_statement_that_is_filled_has_its_tokens(
        values in proptest::collection::vec(value(), 1..4), conditions in proptest::collection::vec(condition(), 0..4), mysql in any::<bool>()
    ) {
        let lexer = if mysql { Lexer::MYSQL } else { Lexer::POSTGRES };
        let sql = format!("SELECT {} FROM t WHERE {}", values.join(", "), conditions.join(" AND "));
        let found = normalised(&sql, lexer);
        let values: Vec<_> = found.literals.iter().map(|literal| literal.value.as_deref()).collect();
        let again = filled(&found.text, &found.kinds, &values, lexer).unwrap();
        prop_assert_eq!(plain(&again, lexer), plain(&sql, lexer), "{}", found.text);
        prop_assert_eq!(normalised(&again, lexer).text, found.text);
    }
}
