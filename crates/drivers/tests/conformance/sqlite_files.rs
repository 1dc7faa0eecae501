//! SQLite's files: what they keep, how they are opened, how they are loaded.

use std::fs;
use std::thread;
use std::time::Duration;

use nephoscope_drivers::{
    Command, ConnectionState, ErrorClass, Interrupt, MOST_ROWS, Settings, Table, Value, open,
};
use nephoscope_runtime::clock::MILLISECOND;
use proptest::prelude::*;

use crate::admin::{cells, listed, names};
use crate::client::Client;
use crate::fixtures::Fixture as _;
use crate::fixtures::sqlite::{ENDLESS, STATEMENTS, Sqlite, comes_back};
use crate::types::property;

pub(crate) fn values_are_kept_in_their_storage_classes(sqlite: &Sqlite) {
    let mut client = sqlite.client(&[("class", "SELECT typeof(:value)")]);
    for (value, class) in [
        (Value::Null, "null"),
        (Value::Bool(true), "integer"),
        (Value::Int(i64::MIN), "integer"),
        (Value::Decimal { units: 7, scale: 0 }, "integer"),
        (Value::Float(3.0), "real"),
        (Value::Float(f64::INFINITY), "real"),
        (Value::Decimal { units: 7, scale: 1 }, "text"),
        (Value::Numeric("1.0"), "text"),
        (Value::Text(b"a\0b"), "text"),
        (Value::Json(b"{}"), "text"),
        (Value::Bytes(b""), "blob"),
        (Value::Uuid([1; 16]), "text"),
        (Value::Date(0), "text"),
        (Value::Timestamp(0), "text"),
    ] {
        assert_eq!(client.text("class", &[value]), class, "{value:?}");
    }
    // SQLite's own functions know the forms.
    let mut client = sqlite.client(&[("days", "SELECT CAST(julianday(:to) - julianday(:from) AS INTEGER)")]);
    let day = |days: i64| Value::Timestamp(days * 86_400_000_000);
    assert_eq!(client.integer("days", &[Value::Date(10), Value::Date(3)]), 7);
    assert_eq!(client.integer("days", &[day(10), Value::Date(3)]), 7);
}

pub(crate) fn values_of_columns_come_back(sqlite: &Sqlite) {
    sqlite.admin().query("CREATE TABLE kept (i INTEGER, r REAL, t TEXT, b BLOB)").unwrap();
    let insert = "INSERT INTO kept VALUES (:i, :r, :t, :b) RETURNING i, r, t, b";
    let client = std::cell::RefCell::new(sqlite.client(&[("insert", insert), ("empty", "DELETE FROM kept")]));
    let any = (any::<i64>(), any::<f64>(), any::<String>(), prop::collection::vec(any::<u8>(), 0..40));
    property(any, |(i, r, t, b)| {
        let client = &mut *client.borrow_mut();
        client.rows.clear();
        let values = [Value::Int(i), Value::Float(r), Value::Text(t.as_bytes()), Value::Bytes(&b)];
        let reply = client.call("insert", &values).map_err(|error| error.to_string())?;
        let (result, rows) = (reply.result.unwrap(), &client.rows);
        let same = (0..4).all(|column| rows.value(result, 0, column) == Some(values[column]));
        if same { Ok(()) } else { Err(format!("{values:?}")) }
    });
    let mut echo = sqlite.client(&[("echo", "SELECT :value")]);
    let times = -62_167_219_200_000_000..253_402_300_800_000_000_i64;
    let echo = std::cell::RefCell::new(&mut echo);
    property(times, |micros| comes_back(&mut echo.borrow_mut(), "echo", Value::Timestamp(micros)));
    property(-719_528..2_932_897, |days| comes_back(&mut echo.borrow_mut(), "echo", Value::Date(days)));
}

pub(crate) fn affected_counts_what_was_touched_or_returned(sqlite: &Sqlite) {
    sqlite.table();
    let statements = [
        ("insert", "INSERT INTO accounts VALUES (11, 0), (12, 0), (:id + 2, 0)", 3),
        ("update", "UPDATE accounts SET n = 1 WHERE id >= :id", 3),
        ("returning", "UPDATE accounts SET n = 2 WHERE id >= :id RETURNING id", 3),
        ("select", "SELECT id FROM accounts WHERE id >= :id", 3),
        ("none", "SELECT id FROM accounts WHERE id > 1000 + :id", 0),
        ("create", "CREATE TABLE IF NOT EXISTS more AS SELECT 1 AS one WHERE :id > 0", 0),
        ("delete", "DELETE FROM accounts WHERE id >= :id", 3),
    ];
    let list = statements.map(|(name, sql, _)| (name, sql.to_owned()));
    let list: Vec<(&str, &str)> = list.iter().map(|(name, sql)| (*name, sql.as_str())).collect();
    let create = list[5].1.replace(":id", "1");
    let mut client = sqlite.client(&[&list[..5], &[("create", create.as_str()), list[6]]].concat());
    for (name, _, affected) in statements {
        let values: &[Value<'_>] = if name == "create" { &[] } else { &[Value::Int(11)] };
        let reply = client.call(name, values).unwrap();
        assert_eq!(reply.affected, affected, "{name}");
        assert_eq!(reply.result.is_some(), matches!(name, "returning" | "select" | "none"), "{name}");
    }
}

pub(crate) fn a_file_that_is_read_only_takes_no_writes(sqlite: &Sqlite) {
    sqlite.table();
    let mut client = Client::new(&*sqlite.with("mode=ro", &[]), &STATEMENTS);
    for begin in [false, true] {
        if begin {
            client.control(Command::Begin).unwrap();
        }
        let error = client.count("add", &[Value::Int(1)]).unwrap_err();
        assert_eq!((error.class(), error.code()), (ErrorClass::ReadOnly, "SQLITE_READONLY"));
        assert_eq!(error.message(), "attempt to write a readonly database");
        client.recover();
        assert_eq!(client.integer("read", &[]), 0);
    }
}

pub(crate) fn a_file_that_is_no_database_is_named(sqlite: &Sqlite) {
    fs::write(sqlite.path("letter.txt"), "Dear Sir or Madam, ".repeat(100)).unwrap();
    for (file, options, class, said) in [
        ("letter.txt", "", ErrorClass::Other, "file is not a database"),
        ("letter.txt", "journal_mode=wal", ErrorClass::Other, "file is not a database"),
        ("missing.db", "mode=rw", ErrorClass::ConnectionLost, "unable to open database file"),
        ("missing.db", "mode=ro", ErrorClass::ConnectionLost, "unable to open database file"),
        ("nowhere/new.db", "", ErrorClass::ConnectionLost, "unable to open database file"),
    ] {
        let driver = open(&sqlite.url_of(file, options), &Settings::default()).unwrap();
        let expected = format!("sqlite file {}: {said}", sqlite.path(file).display());
        for error in [Client::try_new(&*driver, &[]).err().unwrap(), driver.admin().err().unwrap()] {
            assert_eq!((error.class(), error.message()), (class, expected.as_str()));
        }
    }
    assert!(!sqlite.path("missing.db").exists());
}

pub(crate) fn options_are_set_on_every_connection(sqlite: &Sqlite) {
    let url = sqlite.url_of(
        "options.db",
        "page_size=8192&journal_mode=wal&synchronous=normal&cache_size=-4000&foreign_keys=off&wal_autocheckpoint=50",
    );
    let driver = open(&url, &sqlite.settings()).unwrap();
    assert_eq!((driver.name(), driver.dialect().name, driver.redacted_url()), ("sqlite", "sqlite", url));
    let pragmas = ["page_size", "synchronous", "cache_size", "foreign_keys", "wal_autocheckpoint"];
    let statements = pragmas.map(|name| (name, format!("PRAGMA {name}")));
    let statements: Vec<(&str, &str)> = statements.iter().map(|(name, sql)| (*name, sql.as_str())).collect();
    for _ in 0..2 {
        let mut client = Client::new(&*driver, &statements);
        let found = pragmas.map(|name| client.integer(name, &[]));
        assert_eq!(found, [8192, 1, -4000, 0, 50]);
    }
    // What a file cannot have is an error, and not another mode than asked for.
    let error = Client::try_new(&*sqlite.with("mode=ro&journal_mode=truncate", &[]), &[]).err().unwrap();
    assert!(error.message().starts_with(&format!("sqlite file {}: ", sqlite.path("test.db").display())));
}

pub(crate) fn a_statement_follows_the_schema(sqlite: &Sqlite) {
    sqlite.table();
    let mut client = sqlite.client(&[("all", "SELECT * FROM accounts WHERE id = :id")]);
    client.call("all", &[Value::Int(1)]).unwrap();
    sqlite.admin().query("ALTER TABLE accounts ADD COLUMN added TEXT DEFAULT 'new'").unwrap();
    let result = client.call("all", &[Value::Int(1)]).unwrap().result.unwrap();
    assert_eq!(client.rows.named(result, 0, "added"), Some(Value::Text(b"new")));
    assert_eq!(client.rows.columns(result).unwrap().columns.len(), 3);
}

pub(crate) fn errors_have_the_names_of_sqlite(sqlite: &Sqlite) {
    sqlite.table();
    let mut client = sqlite.client(&[("insert", "INSERT INTO accounts VALUES (:id, :n)")]);
    let violated = ErrorClass::Constraint;
    for (values, class, code, message) in [
        (
            [Value::Int(1), Value::Int(0)],
            violated,
            "SQLITE_CONSTRAINT_PRIMARYKEY",
            "UNIQUE constraint failed: accounts.id",
        ),
        (
            [Value::Int(7), Value::Null],
            violated,
            "SQLITE_CONSTRAINT_NOTNULL",
            "NOT NULL constraint failed: accounts.n",
        ),
        ([Value::Text(b"x"), Value::Int(0)], ErrorClass::Other, "SQLITE_MISMATCH", "datatype mismatch"),
    ] {
        let error = client.count("insert", &values).unwrap_err();
        assert_eq!((error.class(), error.code(), error.message()), (class, code, message));
        assert_eq!(client.state(), ConnectionState::Idle);
    }
    for (sql, said) in [
        ("SELEC 1", "statement wrong: near \"SELEC\": syntax error"),
        ("SELECT * FROM nowhere", "statement wrong: no such table: nowhere"),
        ("SELECT 1; SELECT 2", "statement wrong: the text holds more than one statement"),
    ] {
        let error = Client::try_new(&*sqlite.with("", &[]), &[("wrong", sql)]).err().unwrap();
        assert_eq!((error.code(), error.message()), ("SQLITE_ERROR", said));
    }
    let blank =
        sqlite.client(&[("blank", " -- nothing\n"), ("one", "SELECT 1; -- one\n ;")]).call("blank", &[]);
    assert_eq!((blank.as_ref().unwrap().affected, blank.unwrap().result), (0, None));
}

pub(crate) fn a_constraint_that_fails_at_commit_is_the_commits_error(sqlite: &Sqlite) {
    const SQL: &str = "CREATE TABLE parent (id INTEGER PRIMARY KEY); CREATE TABLE child (parent INTEGER \
         REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";
    sqlite.admin().query(SQL).unwrap();
    let statements = [("insert", "INSERT INTO child VALUES (5)"), ("count", "SELECT count(*) FROM child")];
    let mut client = sqlite.client(&statements);
    client.control(Command::Begin).unwrap();
    client.count("insert", &[]).unwrap();
    let error = client.control(Command::Commit).unwrap_err();
    assert_eq!((error.code(), client.state()), ("SQLITE_CONSTRAINT_FOREIGNKEY", ConnectionState::Idle));
    assert_eq!(client.integer("count", &[]), 0);
    for stray in [Command::Commit, Command::Rollback] {
        client.control(stray).unwrap();
    }
    client.control(Command::Begin).unwrap();
    client.control(Command::Begin).unwrap();
    assert_eq!(client.state(), ConnectionState::InTransaction);
}

pub(crate) fn rows_without_an_end_fail_and_the_session_goes_on(sqlite: &Sqlite) {
    let many = ENDLESS.replace("max(i)", "i");
    let large = ENDLESS.replace("max(i)", "zeroblob(4000000)");
    let mut client = sqlite.client(&[("many", &many), ("large", &large), ("one", "SELECT 1")]);
    for name in ["many", "large"] {
        client.rows.clear();
        let error = client.call(name, &[]).unwrap_err();
        assert!(error.message().contains("more rows than are kept"), "{error}");
        assert!(client.rows.count(0.into()) <= MOST_ROWS);
        assert_eq!(client.state(), ConnectionState::Idle);
    }
    client.rows.clear();
    assert_eq!(client.integer("one", &[]), 1);
}

pub(crate) fn statements_that_run_first_are_run_in_order(sqlite: &Sqlite) {
    let first = ["CREATE TEMP TABLE own (n); INSERT INTO own VALUES (1)", "UPDATE own SET n = n + 41"];
    let mut client = Client::new(&*sqlite.with("", &first), &[("own", "SELECT n FROM own")]);
    assert_eq!(client.integer("own", &[]), 42);
    let driver = sqlite.with("", &["SELECT 1", "SELEC 2"]);
    for error in [Client::try_new(&*driver, &[]).err().unwrap(), driver.admin().err().unwrap()] {
        assert_eq!(error.message(), "on_connect \"SELEC 2\": near \"SELEC\": syntax error");
    }
}

pub(crate) fn several_statements_give_the_last_result(sqlite: &Sqlite) {
    let mut admin = sqlite.admin();
    let table = admin.query("SELECT 1; SELECT 2 AS two, NULL AS none, 'é' AS text, 0.1, x'00ff';").unwrap();
    assert_eq!(table.columns[..3], ["two", "none", "text"]);
    assert_eq!(cells(&table), [["2", "NULL", "é", "0.1", "\\x00ff"]]);
    assert_eq!(admin.query("SELECT 1; CREATE TABLE made (n)").unwrap(), Table::default());
    assert_eq!(admin.query("").unwrap(), Table::default());
    let none = admin.query("SELECT 1 AS one WHERE false -- none").unwrap();
    assert_eq!((none.columns.len(), none.rows.len()), (1, 0));
    let error = admin.query("INSERT INTO made VALUES (1); SELECT * FROM nowhere").unwrap_err();
    assert_eq!((error.code(), error.message()), ("SQLITE_ERROR", "no such table: nowhere"));
    assert_eq!(
        cells(&admin.query("SELECT count(*) FROM made").unwrap()),
        [["1"]],
        "each is its own transaction"
    );
    admin.limit_answers(30 * MILLISECOND);
    assert_eq!(admin.query(ENDLESS).unwrap_err().class(), ErrorClass::StatementTimeout);
    let endless = ENDLESS.replace("max(i)", "zeroblob(1000000)");
    admin.limit_answers(100_000 * MILLISECOND);
    let error = admin.query(&endless).unwrap_err();
    assert!(error.message().contains("it takes more than 256 MiB"), "{error}");
}

pub(crate) fn a_failed_load_leaves_the_table_unchanged(sqlite: &Sqlite) {
    sqlite.table();
    let (mut admin, columns) = (sqlite.admin(), names(&["id", "n"]));
    let fine = [Value::Int(8), Value::Int(0)];
    for (row, message) in [
        (vec![Value::Int(2), Value::Int(0)], "UNIQUE constraint failed: accounts.id"),
        (vec![Value::Int(9), Value::Float(f64::NAN)], "table accounts, column n: NaN is no number"),
        (vec![Value::Int(9); 3], "table accounts: a row has more values than columns"),
        (vec![Value::Int(9)], "table accounts: a row has 1 values for 2 columns"),
        (vec![], "table accounts: a row has 0 values for 2 columns"),
    ] {
        let error = admin.bulk_load("accounts", &columns, &mut listed(&[&fine, &row])).unwrap_err();
        assert!(error.message().starts_with(message), "{error}");
        assert_eq!(cells(&admin.query("SELECT count(*) FROM accounts").unwrap()), [["2"]]);
    }
    let error = admin.bulk_load("accounts", &names(&["id", "nothing"]), &mut listed(&[])).unwrap_err();
    assert_eq!(error.message(), "table accounts has no column named nothing");
    assert!(admin.bulk_load("nowhere", &columns, &mut listed(&[])).is_err());
    // Within a transaction of the caller's the load alone is undone.
    admin.query("BEGIN; INSERT INTO accounts VALUES (5, 0)").unwrap();
    assert!(admin.bulk_load("accounts", &columns, &mut listed(&[&fine, &fine])).is_err());
    assert_eq!(admin.bulk_load("accounts", &columns, &mut listed(&[&fine])).unwrap(), 1);
    admin.query("COMMIT").unwrap();
    assert_eq!(cells(&sqlite.admin().query("SELECT group_concat(id) FROM accounts").unwrap()), [["1,2,5,8"]]);
}

pub(crate) fn every_value_is_loaded(sqlite: &Sqlite) {
    let loaded = [
        (Value::Null, "NULL"),
        (Value::Bool(true), "1"),
        (Value::Int(i64::MIN), "-9223372036854775808"),
        (Value::Float(0.1), "0.1"),
        (Value::Decimal { units: -1_234_567, scale: 4 }, "-123.4567"),
        (Value::Numeric("12345678901234567890.5"), "12345678901234567890.5"),
        (Value::Text("tab\t, é".as_bytes()), "tab\t, é"),
        (Value::Bytes(&[0, 255]), "\\x00ff"),
        (Value::Uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab"),
        (Value::Date(11_016), "2000-02-29"),
        (Value::Timestamp(1_500_000), "1970-01-01 00:00:01.500000"),
        (Value::Json(b"{\"a\":  1}"), "{\"a\":  1}"),
    ];
    let mut admin = sqlite.admin();
    admin.query("CREATE TABLE loaded (v)").unwrap();
    let values = loaded.map(|(value, _)| [value]);
    let rows: Vec<&[Value<'_>]> = values.iter().map(<[Value<'_>; 1]>::as_slice).collect();
    assert_eq!(admin.bulk_load("loaded", &names(&["v"]), &mut listed(&rows)).unwrap(), 12);
    let table = admin.query("SELECT v FROM loaded ORDER BY rowid").unwrap();
    assert_eq!(cells(&table).concat(), loaded.map(|(_, text)| text));
}

pub(crate) fn the_facts_tell_version_and_settings(sqlite: &Sqlite) {
    let facts = sqlite.admin().server_facts().unwrap();
    let fact = |name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} is missing")).1.as_str()
    };
    assert!(fact("version").starts_with("SQLite 3."));
    assert_eq!((fact("synchronous"), fact("page_size"), fact("foreign_keys")), ("off", "4096", "1"));
    assert_eq!(fact("journal_mode"), if sqlite.is_wal() { "wal" } else { "delete" });
}

pub(crate) fn set_up_waits_for_a_lock_and_can_be_interrupted(sqlite: &Sqlite) {
    let (mut holder, _) = sqlite.pair();
    holder.control(Command::Begin).unwrap();
    holder.count("add", &[Value::Int(1)]).unwrap();
    let add = "UPDATE accounts SET n = n + 10 WHERE id = 1";
    let mut admin = sqlite.admin();
    admin.limit_answers(30 * MILLISECOND);
    assert_eq!(admin.query(add).unwrap_err().class(), ErrorClass::LockTimeout);
    for sql in [add, ENDLESS] {
        let interrupt = Interrupt::default();
        let settings = Settings { interrupt: interrupt.clone(), ..sqlite.settings() };
        let mut admin = open(&sqlite.url(), &settings).unwrap().admin().unwrap();
        let striker = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            interrupt.strike();
        });
        assert_eq!(admin.query(sql).unwrap_err().message(), "interrupted");
        striker.join().unwrap();
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| sqlite.admin().query(add).unwrap());
        thread::sleep(Duration::from_millis(30));
        holder.control(Command::Commit).unwrap();
        waiting.join().unwrap();
    });
    assert_eq!(holder.integer("read", &[]), 11);
}

pub(crate) fn what_probes_say_is_understood(sqlite: &Sqlite) {
    let (driver, probes) = (sqlite.with("", &[]), &nephoscope_drivers::sqlite::DIALECT.probes);
    let mut admin = driver.admin().unwrap();
    admin.query(probes.create).unwrap();
    admin.query(&format!("{}7)", probes.stand)).unwrap();
    assert_eq!(cells(&admin.query(probes.read).unwrap()), [["7"]]);
    let statements = [
        ("write", probes.write),
        ("insert", probes.insert),
        ("update", probes.update),
        ("delete", probes.delete),
        ("stock", probes.stock),
        ("poll", probes.poll),
    ];
    let mut client = Client::new(&*driver, &statements);
    let mut run = |name: &str, values: [i64; 2], count: usize| {
        client.rows.clear();
        let values = values.map(Value::Int);
        let reply = client.call(name, &values[..count]).unwrap();
        (
            reply.affected,
            reply.result.and_then(|result| client.rows.value(result, 0, 1)).map(|got| got == Value::Int(6)),
        )
    };
    assert_eq!(run("write", [1, 2], 2), (1, None));
    assert_eq!(run("insert", [5, 5], 2), (1, None));
    assert_eq!(run("update", [6, 5], 2), (1, None));
    assert_eq!(run("poll", [1, 9], 2), (1, Some(true)));
    assert_eq!(run("delete", [5, 0], 1), (1, None));
    assert_eq!(run("stock", [10, 1009], 2), (1000, None));
    assert_eq!(run("poll", [10, 1009], 2), (100, Some(false)));
    assert_eq!(cells(&admin.query(probes.written).unwrap()), [["1", "2"]]);
    admin.query(probes.empty).unwrap();
    assert!(admin.query(probes.written).unwrap().rows.is_empty());
    admin.query(probes.drop).unwrap();
    assert!(admin.query(probes.read).is_err());
}

pub(crate) fn an_inserted_key_is_that_of_its_own_statement(sqlite: &Sqlite) {
    sqlite
        .admin()
        .query("CREATE TABLE numbered (id INTEGER PRIMARY KEY, of int); CREATE TABLE named (name TEXT PRIMARY KEY) WITHOUT ROWID")
        .unwrap();
    let mut client = sqlite.client(&[
        ("numbered", "INSERT INTO numbered (of) VALUES (NULL)"),
        ("named", "INSERT INTO named VALUES (:name)"),
        ("child", "INSERT INTO numbered (of) VALUES (last_insert_rowid())"),
        ("of", "SELECT of FROM numbered ORDER BY id DESC LIMIT 1"),
    ]);
    let key = |client: &mut Client, name: &str, values: &[Value<'_>]| {
        client.count(name, values).unwrap().inserted_id.map(std::num::NonZeroU64::get)
    };
    assert_eq!(key(&mut client, "numbered", &[]), Some(1));
    // A row without a number leaves SQL's own last key as it was.
    assert_eq!(key(&mut client, "named", &[Value::Text(b"x")]), None);
    key(&mut client, "child", &[]);
    assert_eq!(client.integer("of", &[]), 1);
}
