//! Results: how many rows, how wide, how large, and what is kept of them.

use nephoscope_drivers::{Command, Reply, Value, Want};

use crate::client::Client;
use crate::fixtures::postgres::Postgres;
use crate::fixtures::{Fixture, unique};

pub(crate) fn results_have_as_many_rows_as_there_are(fixture: &dyn Fixture) {
    let sql = "SELECT i::int8, i * 2 AS twice FROM generate_series(1, :rows::int8) AS i";
    let mut client = Client::new(&*fixture.open("results"), &[("series", sql)]);
    for wanted in [0_i64, 1, 10_000] {
        let rows = if fixture.echoes() { 1 } else { wanted as usize };
        client.rows.clear();
        let reply = client.call("series", &[Value::Int(wanted)]).unwrap();
        let result = reply.result.unwrap();
        assert_eq!((reply.affected, client.rows.count(result)), (rows as u64, rows));
        if rows == 10_000 {
            for row in 0..rows {
                assert_eq!(client.rows.value(result, row, 1), Some(Value::Int(row as i64 * 2 + 2)));
            }
        }
        assert_eq!(client.rows.value(result, rows, 0), None);
    }
}

pub(crate) fn wide_rows_come_whole(fixture: &dyn Fixture) {
    let columns: Vec<String> = (0..600).map(|at| format!(":p{at}::int8 AS c{at}")).collect();
    let sql = format!("SELECT {}", columns.join(", "));
    let mut client = Client::new(&*fixture.open("results"), &[("wide", &sql)]);
    let values: Vec<Value<'_>> = (0..600).map(Value::Int).collect();
    let result = client.call("wide", &values).unwrap().result.unwrap();
    for (at, value) in values.iter().enumerate() {
        assert_eq!(client.rows.value(result, 0, at), Some(*value));
    }
    assert_eq!(client.rows.value(result, 0, 600), None);
}

pub(crate) fn large_values_come_whole(fixture: &dyn Fixture) {
    let sql = "SELECT :first::text AS first, :second::int8 AS second, :third::text AS third";
    let mut client = Client::new(&*fixture.open("results"), &[("large", sql)]);
    let (first, third) = ("a".repeat(5_000_000), "b'\\".repeat(1_000_000));
    let values = [Value::Text(first.as_bytes()), Value::Int(7), Value::Text(third.as_bytes())];
    let result = client.call("large", &values).unwrap().result.unwrap();
    for (at, value) in values.iter().enumerate() {
        assert!(client.rows.value(result, 0, at) == Some(*value), "column {at}");
    }
}

pub(crate) fn results_are_kept_side_by_side(fixture: &dyn Fixture) {
    let statements = [("one", "SELECT :a::int8 AS a"), ("two", "SELECT :b::text AS b, :c::int8 AS c")];
    let mut client = Client::new(&*fixture.open("results"), &statements);
    let first = client.call("one", &[Value::Int(1)]).unwrap().result.unwrap();
    let second = client.call("two", &[Value::Text(b"x"), Value::Null]).unwrap().result.unwrap();
    let third = client.call("one", &[Value::Int(3)]).unwrap().result.unwrap();
    let rows = &client.rows;
    assert_eq!(rows.named(first, 0, "a"), Some(Value::Int(1)));
    assert_eq!(rows.named(second, 0, "b"), Some(Value::Text(b"x")));
    assert_eq!(rows.named(second, 0, "c"), Some(Value::Null));
    assert_eq!(rows.named(third, 0, "a"), Some(Value::Int(3)));
    client.rows.clear();
    assert_eq!(client.rows.named(first, 0, "a"), None);
    let again = client.call("one", &[Value::Int(4)]).unwrap().result.unwrap();
    assert_eq!((again, client.rows.named(again, 0, "a")), (first, Some(Value::Int(4))));
}

pub(crate) fn rows_that_are_not_wanted_are_not_kept(fixture: &dyn Fixture) {
    let mut client = Client::new(&*fixture.open("results"), &[("one", "SELECT :a::int8 AS a")]);
    let reply = client.count("one", &[Value::Int(1)]).unwrap();
    assert_eq!(reply, Reply { affected: 1, ..Reply::default() });
    // The first result that is kept is the first that was wanted, also within a flush.
    client.queue("one", &[Value::Int(2)], Want::Count).unwrap();
    client.queue("one", &[Value::Int(3)], Want::Rows).unwrap();
    let result = client.flush().unwrap().result.unwrap();
    assert_eq!(result.number(), 0);
    assert_eq!(client.rows.value(result, 0, 0), Some(Value::Int(3)));
}

pub(crate) fn replies_that_are_wanted_are_kept_whatever_follows_them(fixture: &dyn Fixture) {
    let mut client = Client::new(&*fixture.open("results"), &[("one", "SELECT :a::int8 AS a")]);
    let added = client.add("SELECT :a::int8 AS a, 2 AS b").unwrap();
    client.queue_command(Command::Begin, &[], Want::Count).unwrap();
    client.queue("one", &[Value::Int(1)], Want::Kept).unwrap();
    client.queue("one", &[Value::Int(2)], Want::Count).unwrap();
    client.queue_command(Command::Execute(added), &[Value::Int(3)], Want::Kept).unwrap();
    client.queue_command(Command::Rollback, &[], Want::Count).unwrap();
    client.flush().unwrap();
    client.queue("one", &[Value::Int(4)], Want::Kept).unwrap();
    client.flush().unwrap();
    let kept: Vec<_> = client.rows.kept().to_vec();
    let values = kept.iter().map(|reply| client.rows.value(reply.result.unwrap(), 0, 0));
    assert_eq!(values.collect::<Vec<_>>(), [1, 3, 4].map(|value| Some(Value::Int(value))));
    assert!(kept.iter().all(|reply| reply.affected == 1), "{kept:?}");
    client.rows.clear();
    assert!(client.rows.kept().is_empty());
}

pub(crate) fn large_statements_and_large_results_may_pass_each_other(fixture: &dyn Fixture) {
    let mut client = Client::new(&*fixture.open("results"), &[("echo", "SELECT :value::text AS value")]);
    let text = "x".repeat(1 << 20);
    // More than the buffers of both sides hold: a side that only sent would wait for ever.
    for _ in 0..24 {
        client.queue("echo", &[Value::Text(text.as_bytes())], Want::Count).unwrap();
    }
    client.queue("echo", &[Value::Text(b"last")], Want::Rows).unwrap();
    let reply = client.flush().unwrap();
    assert_eq!(client.value(reply), Value::Text(b"last"));
}

pub(crate) fn affected_counts_what_was_touched_or_returned(postgres: &Postgres) {
    let table = postgres.table();
    let sql = |sql: &str| sql.replace("TABLE", &table);
    let statements = [
        ("insert", sql("INSERT INTO TABLE SELECT i, 0 FROM generate_series(11, :last::int4) AS i"), 0),
        ("update", sql("UPDATE TABLE SET n = 1 WHERE id >= :id"), 3),
        ("returning", sql("UPDATE TABLE SET n = 2 WHERE id >= :id RETURNING id"), 3),
        ("select", sql("SELECT id FROM TABLE WHERE id >= :id"), 3),
        ("none", sql("SELECT id FROM TABLE WHERE id > 1000 + :id"), 0),
        ("delete", sql("DELETE FROM TABLE WHERE id >= :id"), 3),
    ];
    let list: Vec<(&str, &str)> = statements.iter().map(|(name, sql, _)| (*name, sql.as_str())).collect();
    let mut client = postgres.client(&list);
    assert_eq!(client.count("insert", &[Value::Int(13)]).unwrap().affected, 3);
    for (name, _, affected) in &statements[1..5] {
        assert_eq!(client.count(name, &[Value::Int(11)]).unwrap().affected, *affected, "{name}");
        assert_eq!(client.call(name, &[Value::Int(11)]).unwrap().affected, *affected, "{name}");
    }
    assert_eq!(client.count("delete", &[Value::Int(12)]).unwrap().affected, 2);
    assert_eq!(client.count("delete", &[Value::Int(11)]).unwrap().affected, 1);
}

pub(crate) fn statements_without_columns_have_no_result(postgres: &Postgres) {
    let table = postgres.table();
    let update = format!("UPDATE {table} SET n = n");
    let statements = [
        ("update", update.as_str(), 2),
        ("nothing", "-- no statement at all", 0),
        ("set", "SET LOCAL work_mem = '1MB'", 0),
        ("no_columns", "SELECT FROM generate_series(1, 3)", 3),
    ];
    let list = statements.map(|(name, sql, _)| (name, sql));
    let mut client = postgres.client(&list);
    for (name, _, affected) in statements {
        assert_eq!(client.call(name, &[]).unwrap(), Reply { affected, ..Reply::default() }, "{name}");
        assert_eq!(client.count(name, &[]).unwrap(), Reply { affected, ..Reply::default() }, "{name}");
    }
}

pub(crate) fn the_columns_of_a_result_are_named(postgres: &Postgres) {
    let mut client = postgres.client(&[("named", "SELECT 1 AS a, 2 AS \"B c\", 3 AS a, 4")]);
    let result = client.call("named", &[]).unwrap().result.unwrap();
    let columns = &client.rows.columns(result).unwrap().columns;
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["a", "B c", "a", "?column?"]);
    assert_eq!(client.rows.named(result, 0, "a"), Some(Value::Int(1)));
    assert_eq!(client.rows.named(result, 0, "B c"), Some(Value::Int(2)));
    assert_eq!(client.rows.named(result, 0, "b c"), None);
}

pub(crate) fn the_key_of_an_inserted_row_is_told_where_it_can_be(fixture: &dyn Fixture) {
    let table = unique("keyed");
    let driver = fixture.open("keyed");
    let key = fixture.generated_key();
    if !fixture.echoes() {
        let of = key.unwrap_or("int PRIMARY KEY");
        let other = format!("CREATE TABLE {table}_plain (name varchar(9) PRIMARY KEY)");
        let sql = format!("CREATE TABLE {table} (id {of}, n int); {other}");
        driver.admin().unwrap().query(&sql).unwrap();
    }
    let sql = [
        format!("INSERT INTO {table} (id, n) VALUES (:id, 1)"),
        format!("UPDATE {table} SET n = n + 1"),
        format!("SELECT n FROM {table}"),
        format!("DELETE FROM {table} WHERE id = :id"),
    ];
    let statements = ["insert", "update", "select", "delete"].into_iter().zip(sql.iter().map(String::as_str));
    let mut client = Client::new(&*driver, &statements.collect::<Vec<_>>());
    let mut told = |name: &str, values: &[Value<'_>]| {
        client.rows.clear();
        client.call(name, values).unwrap().inserted_id.map(std::num::NonZeroU64::get)
    };
    if key.is_none() {
        assert_eq!(told("insert", &[Value::Int(7)]), None);
        return;
    }
    assert_eq!(told("insert", &[Value::Null]), Some(1));
    assert_eq!(told("insert", &[Value::Null]), Some(2));
    assert_eq!((told("update", &[]), told("select", &[])), (None, None));
    assert_eq!(told("delete", &[Value::Int(2)]), None);
    told("insert", &[Value::Int(i64::from(i32::MAX) + 5)]);
    assert_eq!(told("insert", &[Value::Null]), Some(0x8000_0005));
}
