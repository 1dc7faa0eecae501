//! What holds for MySQL's protocol in particular: its types, its transactions, its users.

use nephoscope_drivers::{
    Command, ConnectionState, Error, ErrorClass, Reply, RowEncoder, RowSource, Settings, Table, Value, Want,
    open, probe_tables,
};

use crate::client::Client;
use crate::fixtures::mysql::{Mysql, crossing, deadlock};
use crate::fixtures::{Provoked, unique};

/// Statements that give a parameter back as a type of SQL.
const ECHOES: [(&str, &str); 9] = [
    ("int", "SELECT CAST(:value AS SIGNED) AS value"),
    ("unsigned", "SELECT CAST(:value AS UNSIGNED) AS value"),
    ("double", "SELECT CAST(:value AS DOUBLE) AS value"),
    ("decimal", "SELECT CAST(:value AS DECIMAL(65, 18)) AS value"),
    ("text", "SELECT CAST(:value AS CHAR) AS value"),
    ("bytes", "SELECT CAST(:value AS BINARY) AS value"),
    ("date", "SELECT CAST(:value AS DATE) AS value"),
    ("time", "SELECT CAST(:value AS DATETIME(6)) AS value"),
    ("duration", "SELECT CAST(:value AS TIME(6)) AS value"),
];

#[track_caller]
fn comes_back(client: &mut Client, of: &str, value: Value<'_>, expected: Value<'_>) {
    client.rows.clear();
    let reply = client.call(of, &[value]).unwrap_or_else(|error| panic!("{of} {value:?}: {error}"));
    assert_eq!(client.value(reply), expected, "{of} {value:?}");
}

pub(crate) fn values_come_back_as_they_were_sent(mysql: &Mysql) {
    let mut client = mysql.client(&ECHOES);
    for number in [0, -1, i64::MIN, i64::MAX] {
        comes_back(&mut client, "int", Value::Int(number), Value::Int(number));
    }
    for number in [0.1, -0.5, 1e300, f64::MIN_POSITIVE, 123_456_789.25] {
        comes_back(&mut client, "double", Value::Float(number), Value::Float(number));
    }
    for text in ["", "it's \\ \"x\" \n\0\u{1a} Grüße 世界 🌍", "NULL", "\\'", "'; DROP TABLE t; --"] {
        comes_back(&mut client, "text", Value::Text(text.as_bytes()), Value::Text(text.as_bytes()));
    }
    let bytes: Vec<u8> = (0..=255).collect();
    comes_back(&mut client, "bytes", Value::Bytes(&bytes), Value::Bytes(&bytes));
    for days in [0, -1, 11_016, -719_162, 2_932_896] {
        comes_back(&mut client, "date", Value::Date(days), Value::Date(days));
    }
    for micros in [0, -1, 1_700_000_000_123_456, 253_402_300_799_999_999] {
        comes_back(&mut client, "time", Value::Timestamp(micros), Value::Timestamp(micros));
    }
    for (of, value, expected) in [
        ("unsigned", Value::Numeric("18446744073709551615"), Value::Unsigned(u64::MAX)),
        ("unsigned", Value::Unsigned(1 << 63), Value::Unsigned(1 << 63)),
        ("unsigned", Value::Int(7), Value::Int(7)),
        ("decimal", Value::Decimal { units: i64::MIN, scale: 18 }, Value::Numeric("-9.223372036854775808")),
        (
            "decimal",
            Value::Numeric("123456789012345678901234567890.5"),
            Value::Numeric("123456789012345678901234567890.500000000000000000"),
        ),
        ("text", Value::Uuid([0xab; 16]), Value::Text(b"abababab-abab-abab-abab-abababababab")),
        ("int", Value::Bool(true), Value::Int(1)),
        ("duration", Value::Text(b"-838:59:59.5"), Value::Time(-3_020_399_500_000)),
        ("duration", Value::Time(-3_723_000_001), Value::Time(-3_723_000_001)),
    ] {
        comes_back(&mut client, of, value, expected);
    }
}

pub(crate) fn null_of_every_type_comes_back(mysql: &Mysql) {
    let mut client = mysql.client(&ECHOES);
    for (of, _) in ECHOES {
        comes_back(&mut client, of, Value::Null, Value::Null);
    }
    // The bits of the nulls go over several bytes.
    let list: Vec<String> = (0..20).map(|at| format!("CAST(:p{at} AS SIGNED) AS c{at}")).collect();
    let sql = format!("SELECT {}", list.join(", "));
    let mut client = mysql.client(&[("many", &sql)]);
    for nulls in [0_u32, 0xfffff, 0x5_5555, 0xa_aaaa, 1 << 6, 1 << 19] {
        let values: Vec<Value<'_>> = (0..20)
            .map(|at| if nulls >> at & 1 == 1 { Value::Null } else { Value::Int(i64::from(at)) })
            .collect();
        client.rows.clear();
        let result = client.call("many", &values).unwrap().result.unwrap();
        for (at, value) in values.iter().enumerate() {
            assert_eq!(client.rows.value(result, 0, at), Some(*value), "column {at} of {nulls:x}");
        }
    }
}

pub(crate) fn columns_of_every_type_are_read(mysql: &Mysql) {
    let cases = [
        ("tinyint", "-128", Value::Int(-128)),
        ("tinyint unsigned", "255", Value::Int(255)),
        ("smallint unsigned", "65535", Value::Int(65_535)),
        ("mediumint", "-8388608", Value::Int(-8_388_608)),
        ("int unsigned", "4294967295", Value::Int(4_294_967_295)),
        ("bigint unsigned", "18446744073709551615", Value::Unsigned(u64::MAX)),
        ("bigint unsigned", "9223372036854775807", Value::Int(i64::MAX)),
        ("year", "2024", Value::Int(2024)),
        ("bit(1)", "1", Value::Int(1)),
        ("bit(64)", "18446744073709551615", Value::Unsigned(u64::MAX)),
        ("float", "0.5", Value::Float(0.5)),
        ("double", "-1e300", Value::Float(-1e300)),
        ("decimal(20,4)", "-1234567890.1234", Value::Numeric("-1234567890.1234")),
        ("varchar(9)", "'é'", Value::Text("é".as_bytes())),
        ("char(3)", "'a'", Value::Text(b"a")),
        ("text", "'t'", Value::Text(b"t")),
        ("enum('x','y')", "'y'", Value::Text(b"y")),
        ("set('x','y')", "'x,y'", Value::Text(b"x,y")),
        ("varbinary(9)", "X'00ff'", Value::Bytes(&[0, 255])),
        ("blob", "X'80'", Value::Bytes(&[0x80])),
        ("date", "'2000-02-29'", Value::Date(11_016)),
        ("datetime", "'1970-01-01 00:00:01'", Value::Timestamp(1_000_000)),
        ("datetime(6)", "'1969-12-31 23:59:59.999999'", Value::Timestamp(-1)),
        ("timestamp(3) null", "'1970-01-02 00:00:00.250'", Value::Timestamp(86_400_250_000)),
        ("time", "'12:34:56'", Value::Time(45_296_000_000)),
        ("time(6)", "'-838:59:59'", Value::Time(-3_020_399_000_000)),
        ("date", "'0000-00-00'", Value::Text(b"0000-00-00")),
        ("datetime", "'0000-00-00'", Value::Text(b"0000-00-00 00:00:00")),
    ];
    let table = unique("typed");
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for (at, (of, literal, _)) in cases.iter().enumerate() {
        columns.push(format!("c{at} {of}"));
        values.push(*literal);
    }
    let sql = format!(
        "SET sql_mode = ''; CREATE TABLE {table} ({}); INSERT INTO {table} VALUES ({})",
        columns.join(", "),
        values.join(", ")
    );
    mysql.admin().query(&sql).unwrap();
    let select = format!("SELECT * FROM {table}");
    let mut client = mysql.client(&[("all", &select)]);
    let result = client.call("all", &[]).unwrap().result.unwrap();
    for (at, (of, literal, expected)) in cases.iter().enumerate() {
        assert_eq!(client.rows.value(result, 0, at), Some(*expected), "{of} {literal}");
    }
}

pub(crate) fn text_is_safe_whatever_the_sql_mode_says(mysql: &Mysql) {
    for sql_mode in ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ANSI,NO_BACKSLASH_ESCAPES"] {
        let driver = mysql.driver(&[&format!("SET sql_mode = '{sql_mode}'")]);
        let mut client = Client::new(&*driver, &ECHOES);
        for text in ["\\", "'", "\\'", "''\\\\", "\" OR \"\"=\"", "a\\nb", "\\' OR 1=1 -- "] {
            comes_back(&mut client, "text", Value::Text(text.as_bytes()), Value::Text(text.as_bytes()));
            comes_back(&mut client, "bytes", Value::Bytes(text.as_bytes()), Value::Bytes(text.as_bytes()));
        }
    }
}

pub(crate) fn values_that_mysql_does_not_have_are_refused(mysql: &Mysql) {
    let mut client = mysql.client(&ECHOES);
    for (value, told) in [
        (Value::Float(f64::NAN), "NaN is not a number that MySQL has"),
        (Value::Float(f64::INFINITY), "only finite ones"),
        (Value::Numeric("1; DROP TABLE t"), "is no number"),
        (Value::Date(i32::MAX), "years 1 to 9999"),
        (Value::Timestamp(i64::MIN), "years 1 to 9999"),
    ] {
        let error = client.call("int", &[value]).unwrap_err();
        assert!(error.message().starts_with("int, parameter :value: "), "{error}");
        assert!(error.message().contains(told), "{error}");
        assert_eq!(client.state(), ConnectionState::Idle);
        comes_back(&mut client, "int", Value::Int(7), Value::Int(7));
    }
    assert!(client.call("int", &[]).unwrap_err().message().contains("takes 1 parameters and was given 0"));
}

pub(crate) fn a_transaction_goes_on_after_an_error(mysql: &Mysql) {
    let table = mysql.table();
    let insert = format!("INSERT INTO {table} VALUES (:id, 0)");
    let count = format!("SELECT count(*) FROM {table}");
    let mut client = mysql.client(&[("insert", &insert), ("count", &count)]);
    client.control(Command::Begin).unwrap();
    client.count("insert", &[Value::Int(3)]).unwrap();
    let error = client.count("insert", &[Value::Int(1)]).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::Constraint, "1062"));
    assert_eq!(client.state(), ConnectionState::InTransaction);
    assert_eq!(client.integer("count", &[]), 3);
    client.control(Command::Rollback).unwrap();
    assert_eq!((client.integer("count", &[]), client.state()), (2, ConnectionState::Idle));
}

pub(crate) fn a_deadlock_ends_the_transaction(mysql: &Mysql) {
    let Provoked { error, client } = deadlock(mysql.pair());
    assert_eq!((error.class(), error.code()), (ErrorClass::Deadlock, "1213"));
    assert_eq!(client.unwrap().state(), ConnectionState::Idle);
}

/// The server goes on after a deadlock without a transaction: what followed would be committed at once.
pub(crate) fn statements_behind_a_deadlock_are_not_run(mysql: &Mysql) {
    for _ in 0..3 {
        let (mut first, mut second) = crossing(mysql.pair());
        // The statement that closes the circle, one behind it, and the commit.
        second.queue("add", &[Value::Int(1)], Want::Count).unwrap();
        second.queue("add", &[Value::Int(2)], Want::Count).unwrap();
        second.queue_command(Command::Commit, &[], Want::Count).unwrap();
        let expected = match second.flush() {
            Ok(_) => {
                assert_eq!(first.flush().unwrap_err().class(), ErrorClass::Deadlock);
                3
            }
            Err(error) => {
                assert_eq!((error.class(), second.state()), (ErrorClass::Deadlock, ConnectionState::Idle));
                first.flush().unwrap();
                first.control(Command::Commit).unwrap();
                2
            }
        };
        assert_eq!(second.integer("read", &[]), expected);
    }
}

pub(crate) fn a_failed_statement_is_not_followed_by_those_that_commit_themselves(mysql: &Mysql) {
    let table = mysql.table();
    let add = format!("UPDATE {table} SET n = n + :by WHERE id = 1");
    let insert = format!("INSERT INTO {table} VALUES (1, :by)");
    let read = format!("SELECT n FROM {table} WHERE id = 1");
    let mut client = mysql.client(&[("add", &add), ("fails", &insert), ("read", &read)]);
    client.queue("add", &[Value::Int(1)], Want::Count).unwrap();
    client.queue("fails", &[Value::Int(0)], Want::Count).unwrap();
    client.queue("add", &[Value::Int(10)], Want::Count).unwrap();
    assert_eq!(client.flush().unwrap_err().code(), "1062");
    assert_eq!((client.state(), client.integer("read", &[])), (ConnectionState::Idle, 1));
}

pub(crate) fn a_result_may_be_longer_than_a_packet(mysql: &Mysql) {
    let mut client = mysql.client(&[("echo", "SELECT CAST(:value AS CHAR) AS value, 7 AS seven")]);
    for length in [(16 << 20) - 20, (16 << 20) + 5, 20 << 20] {
        let text = "x".repeat(length);
        client.rows.clear();
        let result = client.call("echo", &[Value::Text(text.as_bytes())]).unwrap().result.unwrap();
        assert!(client.rows.value(result, 0, 0) == Some(Value::Text(text.as_bytes())), "{length}");
        assert_eq!(client.rows.value(result, 0, 1), Some(Value::Int(7)));
    }
}

pub(crate) fn every_result_of_a_procedure_is_told(mysql: &Mysql) {
    let procedure = unique("results");
    let sql =
        format!("CREATE PROCEDURE {procedure}(n int) BEGIN SELECT n AS a; SELECT n + 1 AS b, 'x' AS c; END");
    mysql.admin().query(&sql).unwrap();
    let call = format!("CALL {procedure}(:n)");
    let mut client = mysql.client(&[("call", &call), ("one", "SELECT CAST(1 AS SIGNED)")]);
    for number in [1, 5] {
        client.rows.clear();
        let reply = client.call("call", &[Value::Int(number)]).unwrap();
        let [first, last] = reply.results().collect::<Vec<_>>()[..] else { panic!("{reply:?}") };
        assert_eq!(client.rows.named(first, 0, "a"), Some(Value::Int(number)));
        assert_eq!(client.rows.named(last, 0, "b"), Some(Value::Int(number + 1)));
        assert_eq!(client.integer("one", &[]), 1);
        assert_eq!(client.count("call", &[Value::Int(1)]).unwrap().result, None);
    }
}

pub(crate) fn affected_counts_what_was_found(mysql: &Mysql) {
    let table = mysql.table();
    let update = format!("UPDATE {table} SET n = n");
    let select = format!("SELECT id FROM {table}");
    let mut client = mysql.client(&[("update", &update), ("select", &select), ("set", "SET @a = 1")]);
    assert_eq!(client.count("update", &[]).unwrap().affected, 2);
    assert_eq!(client.count("select", &[]).unwrap().affected, 2);
    assert_eq!(client.call("set", &[]).unwrap(), Reply::default());
}

pub(crate) fn columns_that_change_are_read_anew(mysql: &Mysql) {
    let table = mysql.table();
    let select = format!("SELECT * FROM {table} WHERE id = 1");
    let mut client = mysql.client(&[("select", &select)]);
    for _ in 0..2 {
        client.rows.clear();
        let result = client.call("select", &[]).unwrap().result.unwrap();
        assert_eq!(client.rows.named(result, 0, "n"), Some(Value::Int(0)));
    }
    mysql.admin().query(&format!("ALTER TABLE {table} MODIFY n varchar(9), ADD m bigint DEFAULT 5")).unwrap();
    let result = client.call("select", &[]).unwrap().result.unwrap();
    assert_eq!(client.rows.named(result, 0, "n"), Some(Value::Text(b"0")));
    assert_eq!(client.rows.named(result, 0, "m"), Some(Value::Int(5)));
}

pub(crate) fn several_statements_give_the_last_result(mysql: &Mysql) {
    let mut admin = mysql.admin();
    let table = admin.query("SELECT 1; SELECT 2 AS two, NULL AS none, 'é' AS text;").unwrap();
    assert_eq!(table.columns, ["two", "none", "text"]);
    assert_eq!(table.rows, [[Some("2".to_owned()), None, Some("é".to_owned())]]);
    assert_eq!(admin.query("SELECT 1; SET @a = 1").unwrap(), Table::default());
    assert_eq!(admin.query("SELECT 1; SELEC 2; SELECT 3").unwrap_err().code(), "1064");
    assert_eq!(admin.query("SELECT 4 AS four").unwrap().rows, [[Some("4".to_owned())]]);
    let error = admin.query("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t").unwrap_err();
    assert!(["1146", ""].contains(&error.code()), "{error}");
}

/// Rows from a list.
struct Listed<'a>(&'a [&'a [Value<'a>]]);

impl RowSource for Listed<'_> {
    fn fill(&mut self, encoder: &mut dyn RowEncoder) -> Result<bool, Error> {
        for row in std::mem::take(&mut self.0) {
            row.iter().try_for_each(|value| encoder.push(*value))?;
            encoder.end_row()?;
        }
        Ok(false)
    }
}

const LOADED: [(&str, Value<'static>, &str); 14] = [
    ("tinyint(1)", Value::Bool(true), "1"),
    ("bigint", Value::Int(i64::MIN), "-9223372036854775808"),
    ("bigint unsigned", Value::Numeric("18446744073709551615"), "18446744073709551615"),
    ("double", Value::Float(-1e300), "-1e300"),
    ("decimal(20,4)", Value::Decimal { units: -1_234_567, scale: 4 }, "-123.4567"),
    ("text", Value::Text("tab\t, line\n, \\N, é '\"".as_bytes()), "tab\t, line\n, \\N, é '\""),
    ("varchar(9)", Value::Text(b""), ""),
    ("varbinary(9)", Value::Bytes(b"a\\\t\0z"), "a\\\t\0z"),
    ("char(36)", Value::Uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab"),
    ("date", Value::Date(11_016), "2000-02-29"),
    ("datetime(6)", Value::Timestamp(-1), "1969-12-31 23:59:59.999999"),
    ("json", Value::Json(b"{\"a\":  1}"), "{\"a\":  1}"),
    ("bit(8)", Value::Int(65), "A"),
    ("time", Value::Text(b"12:34:56"), "12:34:56"),
];

fn load_every_type(mysql: &Mysql) {
    let table = unique("loaded");
    let names: Vec<String> = (0..LOADED.len()).map(|at| format!("c {at}")).collect();
    let list: Vec<String> =
        names.iter().zip(LOADED).map(|(name, (of, ..))| format!("`{name}` {of}")).collect();
    let mut admin = mysql.admin();
    admin.query(&format!("CREATE TABLE {table} ({})", list.join(", "))).unwrap();
    let values = LOADED.map(|(_, value, _)| value);
    let rows: [&[Value<'_>]; 2] = [&values, &[Value::Null; LOADED.len()]];
    assert_eq!(admin.bulk_load(&table, &names, &mut Listed(&rows)).unwrap(), 2);
    let found = admin.query(&format!("SELECT * FROM {table} ORDER BY `c 1` IS NULL")).unwrap();
    let expected = LOADED.map(|(.., text)| Some(text.to_owned()));
    assert_eq!(found.rows, [expected.to_vec(), vec![None; LOADED.len()]]);
}

pub(crate) fn every_type_is_loaded(mysql: &Mysql) {
    load_every_type(mysql);
}

pub(crate) fn a_row_the_server_refuses_leaves_the_table_unchanged(mysql: &Mysql) {
    let table = mysql.table();
    let names = ["id".to_owned(), "n".to_owned()];
    let fine: [Value<'_>; 2] = [Value::Int(8), Value::Int(0)];
    for (bad, code) in [
        ([Value::Int(2), Value::Int(0)], "1062"),
        ([Value::Int(9), Value::Text(b"many")], "1366"),
        ([Value::Int(9), Value::Int(1 << 40)], "1264"),
    ] {
        let mut admin = mysql.admin();
        let error = admin.bulk_load(&table, &names, &mut Listed(&[&fine, &bad])).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        let found = admin.query(&format!("SELECT count(*) FROM {table}")).unwrap();
        assert_eq!(found.rows, [[Some("2".to_owned())]]);
    }
    let error = mysql.admin().bulk_load("nowhere", &names, &mut Listed(&[])).unwrap_err();
    assert_eq!(error.code(), "1146");
    let error = mysql.admin().bulk_load(&table, &names, &mut Listed(&[&fine[..1]])).unwrap_err();
    assert_eq!(error.message(), format!("table {table}: a row has 1 values for 2 columns"));
}

/// Loads of other tests meet the setting, too, and go the same way for that time.
pub(crate) fn a_load_goes_on_without_local_files(mysql: &Mysql) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap();
    mysql.admin().query("SET GLOBAL local_infile = OFF").unwrap();
    let loaded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| load_every_type(mysql)));
    mysql.admin().query("SET GLOBAL local_infile = ON").unwrap();
    loaded.unwrap();
}

pub(crate) fn a_statement_has_no_second_one(mysql: &Mysql) {
    let driver = mysql.driver(&[]);
    let error = Client::try_new(&*driver, &[("two", "SELECT 1; SELECT 2")]).err().unwrap();
    assert_eq!(error.code(), "1064", "{error}");
    assert!(error.message().starts_with("statement two: "), "{error}");
}

pub(crate) fn users_of_every_plugin_are_let_in(mysql: &Mysql) {
    let socket = mysql.server().socket();
    for plugin in ["mysql_native_password", "ed25519"] {
        let user = unique("user");
        let sql = format!(
            "CREATE USER {user}@'%' IDENTIFIED VIA {plugin} USING PASSWORD('p@ss w:rd'); GRANT ALL ON test.* TO {user}@'%'"
        );
        mysql.admin().query(&sql).unwrap();
        let port = mysql.server().port;
        let right = mysql.url_of(&format!("{user}:p%40ss%20w%3Ard"), port);
        let by_socket = format!("mysql://{user}:p%40ss%20w%3Ard@/test?socket={socket}");
        for url in [&right, &by_socket] {
            let mut client = Client::new(
                &*open(url, &Settings::default()).unwrap(),
                &[("one", "SELECT CAST(1 AS SIGNED)")],
            );
            assert_eq!(client.integer("one", &[]), 1);
        }
        for wrong in [format!("{user}:wrong"), user.clone()] {
            let driver = open(&mysql.url_of(&wrong, port), &Settings::default()).unwrap();
            let error = Client::try_new(&*driver, &[]).err().unwrap();
            assert_eq!((error.class(), error.code()), (ErrorClass::Other, "1045"), "{error}");
            assert!(!error.message().contains("wrong"), "{error}");
        }
    }
}

pub(crate) fn the_facts_tell_version_and_settings(mysql: &Mysql) {
    let facts = mysql.admin().server_facts().unwrap();
    let fact = |name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} is missing")).1.as_str()
    };
    assert!(fact("version").contains("MariaDB"));
    assert_eq!((fact("innodb_flush_log_at_trx_commit"), fact("max_connections")), ("0", "300"));
}

pub(crate) fn the_probes_statements_are_understood(mysql: &Mysql) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let driver = mysql.driver(&[]);
    let probes = &driver.dialect().probes;
    let mut admin = mysql.admin();
    admin.query(probes.create).unwrap();
    admin.query(probes.empty).unwrap();
    admin.query(&format!("{}7)", probes.stand)).unwrap();
    let mut client = Client::new(
        &*driver,
        &[
            ("write", probes.write),
            ("read", probes.read),
            ("insert", probes.insert),
            ("update", probes.update),
            ("delete", probes.delete),
            ("stock", probes.stock),
            ("poll", probes.poll),
        ],
    );
    client.count("write", &[Value::Int(1), Value::Int(2)]).unwrap();
    assert_eq!(client.integer("read", &[]), 7);
    client.count("insert", &[Value::Int(5), Value::Int(1)]).unwrap();
    assert_eq!(client.count("update", &[Value::Int(9), Value::Int(5)]).unwrap().affected, 1);
    assert_eq!(client.count("delete", &[Value::Int(5)]).unwrap().affected, 1);
    assert_eq!(client.count("stock", &[Value::Int(1), Value::Int(50_000)]).unwrap().affected, 50_000);
    let polled = client.call("poll", &[Value::Int(1), Value::Int(1000)]).unwrap().affected;
    assert_eq!(polled as usize, probe_tables::POLL_ROWS);
    assert_eq!(admin.query(probes.written).unwrap().rows, [[Some("1".to_owned()), Some("2".to_owned())]]);
    admin.query(probes.drop).unwrap();
}
