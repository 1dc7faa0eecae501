//! Whole numbers that a number of Lua's would round: they go in and out exactly, or not at all.

use std::num::NonZeroU64;
use std::rc::Rc;

use crate::support::{self, HEAD, Loaded, text};
use nephoscope_drivers::{Column, Columns, Reply, Rows, Value, Want};
use nephoscope_script::Step;

/// What a row holds, by the names n1, n2 …
const NUMBERS: [i64; 6] =
    [9_007_199_254_740_993, 985_162_418_487_296_001, i64::MAX, i64::MIN, 1 << 53, -(1 << 53)];

fn decode(kind: u32, _: &[u8]) -> Value<'static> {
    NUMBERS.get(kind as usize).map_or(Value::Numeric("-9007199254740995"), |number| Value::Int(*number))
}

fn answer(rows: &mut Rows, decode: nephoscope_drivers::Decode) -> Reply {
    let columns =
        (0..=NUMBERS.len() as u32).map(|kind| Column { name: format!("n{}", kind + 1).into(), kind });
    let columns = Rc::new(Columns { columns: columns.collect(), decode, any_name: false });
    let result = rows.begin(&columns);
    rows.push_row();
    (0..=NUMBERS.len()).for_each(|_| rows.push_cell(Some(&[])));
    Reply { affected: 1, result: Some(result), ..Reply::default() }
}

/// What a transaction gives to its statements; `row` is what it has read.
fn given_by(body: &str, decode: nephoscope_drivers::Decode) -> Result<Vec<String>, String> {
    let lua = format!(
        "{HEAD}w:transaction(\"t\", function(tx)\nlocal row, same = tx:one(\"none\"), tx:one(\"none\")\n{body}\nend)"
    );
    let loaded = Loaded::new(&lua)?;
    let mut script = loaded.vm.script(1, 1).unwrap();
    let (mut step, mut given) = (script.begin(0), Vec::new());
    loop {
        match step {
            Step::Call { want, .. } => {
                given.extend(script.params().iter().map(text));
                let reply = if want == Want::Rows { answer(script.rows(), decode) } else { Reply::default() };
                step = script.resume(reply);
            }
            Step::Query { .. } | Step::Flush => panic!("nothing is made here"),
            Step::Done { .. } | Step::Skipped => return Ok(given),
            Step::Failed(error) => return Err(error.to_string()),
        }
    }
}

/// What a transaction's body notes.
fn given(body: &str) -> Result<Vec<String>, String> {
    given_by(body, decode)
}

#[test]
fn what_was_read_is_given_back_exactly() {
    let body = "for place = 1, 7 do tx:exec(\"note\", row[place]) end tx:exec(\"note\", { value = row.n1 })";
    let numbers = NUMBERS.into_iter().chain([-9_007_199_254_740_995, NUMBERS[0]]);
    assert_eq!(given(body).unwrap(), numbers.map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn the_same_number_is_the_same_value() {
    let body = r#"
        local seen = { [row.n1] = "one" }
        tx:exec("pair", row.n1 == same.n1, row.n1 == row.n2)
        tx:exec("pair", seen[same.n1], seen[same.n2])
        tx:exec("pair", tostring(row.n3), "id " .. row.n4 .. ";")"#;
    let expected = ["true", "false", "'one'", "null", "'9223372036854775807'", "'id -9223372036854775808;'"];
    assert_eq!(given(body).unwrap(), expected);
}

#[test]
fn arithmetic_is_exact() {
    let body = r#"
        tx:exec("pair", row.n1 + 2, 2 * row.n1)
        tx:exec("pair", row.n1 - same.n1, -row.n2)
        tx:exec("pair", row.n1 % 10, row.n4 % 1000)
        tx:exec("pair", row.n5 + row.n1 - row.n5 == row.n1, row.n1 < row.n2)
        tx:exec("pair", row.n4 <= row.n3, row.n3 < row.n4)"#;
    let expected = [
        "9007199254740995",
        "18014398509481986",
        "0",
        "-985162418487296001",
        "3",
        "192",
        "true",
        "true",
        "true",
        "false",
    ];
    assert_eq!(given(body).unwrap(), expected);
}

#[test]
fn what_would_be_rounded_is_an_error() {
    for (body, said) in [
        ("return row.n3 + row.n3 + 2", "no whole number of 64 bits"),
        ("return row.n4 - 1", "no whole number of 64 bits"),
        ("return row.n1 + 0.5", "only with whole numbers, not with this number"),
        ("return row.n1 + 2^60", "only with whole numbers"),
        ("return row.n1 % 0", "no whole number of 64 bits"),
        ("return row.n1 / 2", "other arithmetic would round it"),
        ("return row.n1 < 5", "attempt to compare"),
        ("tx:inserted(\"item\", 0.5)", "a key must be a whole number"),
    ] {
        let error = given(body).unwrap_err();
        assert!(error.contains(said), "{body}: {error}");
    }
}

#[test]
fn a_panic_below_lua_is_an_error_that_nothing_catches() {
    fn broken(_: u32, _: &[u8]) -> Value<'static> {
        panic!("a cell that cannot be decoded")
    }
    for body in ["return row.n1", "pcall(function() return row.n1 end)"] {
        let error = given_by(body, broken).unwrap_err();
        assert!(
            error.contains("an internal error of nephoscope") && error.contains("cannot be decoded"),
            "{error}"
        );
    }
    assert!(given_by("tx:exec(\"note\", 1)", broken).is_ok(), "nobody looks");
}

/// What a transaction gives to its statements, where each that it runs has inserted the row of a key.
fn given_the_key(key: u64, body: &str) -> Vec<String> {
    let loaded = Loaded::new(&format!("{HEAD}w:transaction(\"t\", function(tx)\n{body}\nend)")).unwrap();
    let mut script = loaded.vm.script(1, 1).unwrap();
    let (mut step, mut given) = (script.begin(0), Vec::new());
    while let Step::Call { .. } = step {
        given.extend(script.params().iter().map(|value| format!("{value:?}")));
        step = script.resume(Reply { affected: 1, inserted_id: NonZeroU64::new(key), ..Reply::default() });
    }
    assert!(matches!(step, Step::Done { .. }), "{step:?}");
    given
}

#[test]
fn the_key_of_an_inserted_row_is_what_the_server_tells_beside_the_rows() {
    let body = "tx:exec(\"pair\", 1, tx:key(\"none\"))";
    assert_eq!(given_the_key(7, body), ["Int(1)", "Int(7)"]);
    for key in [(1 << 53) + 1, 1 << 63, u64::MAX] {
        assert_eq!(given_the_key(key, body)[1], format!("{:?}", Value::whole(key)));
    }
}

#[test]
fn numbers_without_a_sign_are_exact() {
    let body = "local key = tx:key(\"none\")
        tx:exec(\"pair\", key - 1, key == key)
        tx:exec(\"pair\", tostring(key) == \"18446744073709551615\", key % 10)";
    let error =
        "local key = tx:key(\"none\") tx:exec(\"note\", select(2, pcall(function() return key + 1 end)))";
    let given = given_the_key(u64::MAX, body);
    assert_eq!(given, ["Unsigned(18446744073709551614)", "Bool(true)", "Bool(true)", "Int(5)"]);
    assert!(given_the_key(u64::MAX, error)[0].starts_with("Text"), "an error, which is a text");
}

#[test]
fn numbers_without_a_sign_and_times_are_read() {
    let noted = support::noted(
        "local row = tx:one(\"none\") tx:exec(\"note\", row.time) tx:exec(\"note\", row.unsigned)",
    );
    assert_eq!(noted, ["'-12:34:56.5'", "Unsigned(18446744073709551615)"]);
}
