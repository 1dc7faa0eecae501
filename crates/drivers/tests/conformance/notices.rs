//! What a server says without being asked: notices, changed parameters, notifications.

use nephoscope_drivers::{Value, Want};

use crate::fixtures::postgres::Postgres;
use crate::fixtures::unique;

pub(crate) fn notices_before_between_and_after_rows_do_no_harm(postgres: &Postgres) {
    let function = unique("noisy");
    let sql = format!(
        "CREATE FUNCTION {function}(n int8) RETURNS int8 LANGUAGE plpgsql AS
         $$ BEGIN RAISE NOTICE 'row % é', n; RAISE WARNING USING ERRCODE = '57P01'; RETURN n; END $$"
    );
    postgres.admin().query(&sql).unwrap();
    let noisy = format!("SELECT {function}(i) FROM generate_series(1, :rows::int8) AS i");
    let statements = [
        ("noisy", noisy.as_str()),
        ("do", "DO $$ BEGIN RAISE NOTICE 'done'; END $$"),
        ("one", "SELECT 1::int8"),
    ];
    let mut client = postgres.client(&statements);
    client.queue("do", &[], Want::Count).unwrap();
    client.queue("noisy", &[Value::Int(500)], Want::Rows).unwrap();
    client.queue("do", &[], Want::Count).unwrap();
    client.flush().unwrap();
    let result = 0.into();
    assert_eq!(client.rows.count(result), 500);
    assert!((0..500).all(|row| client.rows.value(result, row, 0) == Some(Value::Int(row as i64 + 1))));
    assert_eq!(client.integer("one", &[]), 1);
}

pub(crate) fn parameters_that_change_in_mid_stream_do_no_harm(postgres: &Postgres) {
    let statements = [
        ("set", "SET application_name = 'changed'"),
        ("config", "SELECT set_config('TimeZone', :zone, false) FROM generate_series(1, 3)"),
        ("time", "SELECT :time::timestamptz"),
    ];
    let mut client = postgres.client(&statements);
    client.queue("set", &[], Want::Count).unwrap();
    client.queue("config", &[Value::Text(b"Asia/Tokyo")], Want::Rows).unwrap();
    let reply = client.flush().unwrap();
    assert_eq!(client.rows.count(reply.result.unwrap()), 3);
    let reply = client.call("time", &[Value::Timestamp(5)]).unwrap();
    assert_eq!(client.value(reply), Value::Timestamp(5));
}

pub(crate) fn notifications_do_no_harm(postgres: &Postgres) {
    let channel = unique("channel");
    let driver = postgres.driver(&[&format!("LISTEN {channel}")]);
    let notify = format!("SELECT pg_notify('{channel}', :text), 7::int8");
    let mut client = crate::client::Client::new(&*driver, &[("notify", &notify), ("one", "SELECT 1::int8")]);
    let mut admin = postgres.admin();
    for text in ["", "with é", &"long ".repeat(1000)] {
        // Its own, which comes before the server is ready again, and somebody else's, which may come at any time.
        client.queue("notify", &[Value::Text(text.as_bytes())], Want::Rows).unwrap();
        let result = client.flush().unwrap().result.unwrap();
        assert_eq!(client.rows.value(result, 0, 1), Some(Value::Int(7)));
        admin.query(&format!("NOTIFY {channel}, '{text}'")).unwrap();
        assert_eq!(client.integer("one", &[]), 1);
    }
}
