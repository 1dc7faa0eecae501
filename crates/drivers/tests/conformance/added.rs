//! Statements that a connection comes to know while it is in use.

use std::rc::Rc;

use nephoscope_drivers::{Command, ListShape, Statement, Value, Want};

use crate::client::Client;
use crate::fixtures::Fixture;

/// More than a connection keeps.
const MANY: i64 = 300;

/// A connection that knows one statement, with a table of its own in the database.
fn client(fixture: &dyn Fixture) -> Client {
    let mut client = Client::new(&*fixture.open("added"), &[("one", "SELECT :a::int8 AS a")]);
    client.call_text("CREATE TEMPORARY TABLE added (id integer PRIMARY KEY, name varchar(40))", &[]).unwrap();
    client
}

pub(crate) fn a_text_is_run_as_it_is(fixture: &dyn Fixture) {
    let mut client = client(fixture);
    let written =
        client.call_text("INSERT INTO added VALUES (1, 'it''s'), (2, NULL), (3, 'c')", &[]).unwrap();
    if fixture.echoes() {
        assert_eq!(written.affected, 1);
        return;
    }
    assert_eq!((written.affected, written.result), (3, None));
    let reply = client.call_text("SELECT id, name, 0.5 AS half FROM added ORDER BY id", &[]).unwrap();
    let result = reply.result.unwrap();
    assert_eq!((reply.affected, client.rows.count(result)), (3, 3));
    let cells = |row| ["id", "name"].map(|name| client.rows.named(result, row, name).unwrap());
    assert_eq!(cells(0), [Value::Int(1), Value::Text(b"it's")]);
    assert_eq!(cells(1), [Value::Int(2), Value::Null]);
    assert_eq!(client.rows.named(result, 0, "other"), None);
    let none = client.call_text("SELECT id FROM added WHERE id > 3", &[]).unwrap();
    assert_eq!((none.affected, client.rows.count(none.result.unwrap())), (0, 0));
    let place = client.add("SELECT id FROM added").unwrap();
    assert!(client.queue_command(Command::Execute(place), &[Value::Int(1)], Want::Rows).is_err());
    client.queue_command(Command::Execute(place), &[], Want::Count).unwrap();
    let counted = client.flush().unwrap();
    assert_eq!((counted.affected, counted.result), (3, None));
}

pub(crate) fn an_added_statement_is_as_good_as_one_that_was_there(fixture: &dyn Fixture) {
    let sql = "SELECT :a::int8 AS a, :b::text AS b, :c::int8 AS c, :a::int8 + 1 AS next";
    let mut client = Client::new(&*fixture.open("added"), &[("known", sql)]);
    for (a, b, c) in [(7, Some("x"), 5), (-1, None, -1 << 60)] {
        let text = b.map_or(Value::Null, |text| Value::Text(text.as_bytes()));
        let values = [Value::Int(a), text, Value::Int(c)];
        let replies = [client.call("known", &values).unwrap(), client.call_text(sql, &values).unwrap()];
        let cells = replies.map(|reply| {
            let cell = |column| format!("{:?}", client.rows.value(reply.result.unwrap(), 0, column));
            (reply.affected, (0..5).map(cell).collect::<Vec<_>>())
        });
        assert_eq!(cells[0], cells[1]);
    }
    let place = client.add(sql).unwrap();
    let error = client.queue_command(Command::Execute(place), &[], Want::Rows).err();
    assert!(fixture.echoes() || error.unwrap().message().contains("takes 3 parameters and was given 0"));
}

pub(crate) fn any_number_of_statements_is_added(fixture: &dyn Fixture) {
    let mut client = client(fixture);
    for round in 0..2 {
        for number in 0..MANY {
            let sql = format!("SELECT :a::int8 + {number} AS a");
            let reply = client.call_text(&sql, &[Value::Int(round)]).unwrap();
            let sum = if fixture.echoes() { round } else { round + number };
            assert_eq!(client.rows.named(reply.result.unwrap(), 0, "a"), Some(Value::Int(sum)));
            // The first one is used all the time.
            let reply = client.call_text("SELECT :a::int8 + 0 AS a", &[Value::Int(number)]).unwrap();
            assert_eq!(client.rows.named(reply.result.unwrap(), 0, "a"), Some(Value::Int(number)));
            client.rows.clear();
        }
    }
    assert_eq!(client.integer("one", &[Value::Int(5)]), 5);
}

pub(crate) fn what_is_added_may_leave_with_others(fixture: &dyn Fixture) {
    let mut client = client(fixture);
    client.queue_command(Command::Begin, &[], Want::Count).unwrap();
    for number in 0..MANY {
        let place = client.add(&format!("INSERT INTO added VALUES ({number}, 'text')")).unwrap();
        client.queue_command(Command::Execute(place), &[], Want::Count).unwrap();
        client.queue("one", &[Value::Int(number)], Want::Count).unwrap();
        let place = client.add("INSERT INTO added VALUES (1000 + :a, 'bound')").unwrap();
        client.queue_command(Command::Execute(place), &[Value::Int(number)], Want::Count).unwrap();
    }
    client.queue_command(Command::Commit, &[], Want::Count).unwrap();
    client.flush().unwrap();
    let sum = client.call_text("SELECT count(*) + sum(id) FROM added", &[]).unwrap();
    if !fixture.echoes() {
        let wanted = 2 * MANY + 1000 * MANY + MANY * (MANY - 1);
        let sum = format!("{:?}", client.value(sum));
        assert!(sum.contains(&wanted.to_string()), "{sum} is not {wanted}");
    }
}

pub(crate) fn a_wrong_one_is_an_error_whenever_it_is_added(fixture: &dyn Fixture) {
    if fixture.echoes() {
        return;
    }
    let mut client = client(fixture);
    for (sql, values) in [("SELECT lacking FROM added", vec![]), ("SELECT lacking + :a FROM added", vec![1])]
    {
        let values: Vec<Value<'_>> = values.into_iter().map(Value::Int).collect();
        for within in [false, true, true, false] {
            if within {
                client.control(Command::Begin).unwrap();
            }
            let error = client.call_text(sql, &values).unwrap_err();
            assert!(error.message().contains("lacking"), "{error}");
            client.recover();
            assert_eq!(client.integer("one", &[Value::Int(5)]), 5);
        }
    }
}

pub(crate) fn what_stands_behind_an_error_is_asked_for_again(fixture: &dyn Fixture) {
    if fixture.echoes() {
        return;
    }
    let mut client = client(fixture);
    let good = "SELECT :a::int8 * 3 AS a";
    for _ in 0..3 {
        let place = client.add("INSERT INTO added VALUES (NULL, NULL, NULL)").unwrap();
        client.queue_command(Command::Execute(place), &[], Want::Count).unwrap();
        let error = client.call_text(good, &[Value::Int(2)]).unwrap_err();
        assert!(!error.message().is_empty());
        client.recover();
    }
    let reply = client.call_text(good, &[Value::Int(2)]).unwrap();
    assert_eq!(client.rows.named(reply.result.unwrap(), 0, "a"), Some(Value::Int(6)));
}

pub(crate) fn lists_may_have_any_length(fixture: &dyn Fixture) {
    let mut client = client(fixture);
    let fill = Statement::new("fill", "INSERT INTO added VALUES :rows…");
    let find =
        Statement::new("find", "SELECT count(*) AS n FROM added WHERE id IN (:ids…) AND name <> :name");
    let mut next = 0;
    for items in [1, 2, 7, 2, 500] {
        let place = client
            .add_statement(&Rc::new(fill.expanded(&[ListShape { items, columns: Some(2) }])), true)
            .unwrap();
        let ids: Vec<i64> = (next..next + items as i64).collect();
        next += items as i64;
        let rows: Vec<Value<'_>> =
            ids.iter().flat_map(|id| [Value::Int(*id), Value::Text(b"o'clock")]).collect();
        client.queue_command(Command::Execute(place), &rows, Want::Count).unwrap();
        let touched = client.flush().unwrap().affected;
        assert_eq!(touched, if fixture.echoes() { 1 } else { items as u64 });
        let place = client
            .add_statement(&Rc::new(find.expanded(&[ListShape { items, columns: None }])), true)
            .unwrap();
        let mut values: Vec<Value<'_>> = ids.iter().map(|id| Value::Int(*id)).collect();
        values.push(Value::Text(b"x"));
        client.queue_command(Command::Execute(place), &values, Want::Rows).unwrap();
        let reply = client.flush().unwrap();
        let found = if fixture.echoes() { 1 } else { items as i64 };
        assert_eq!(client.rows.named(reply.result.unwrap(), 0, "n"), Some(Value::Int(found)));
    }
}
