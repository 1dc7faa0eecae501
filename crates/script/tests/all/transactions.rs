//! What a transaction can say: `tx`, `pick`, the rows it reads; and what a session keeps to itself.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::support::{self, HEAD, Loaded, noted, run};
use nephoscope_drivers::{Column, Columns, Command, Reply, Rows, Value, Want};
use nephoscope_script::{Access, Step};

#[test]
fn statements_and_borders_are_called_in_order() {
    let body = r#"
        tx:begin()
        local row = tx:one("note", 1)
        local rows = tx:rows("none")
        local affected = tx:exec("pair", 1.5, "x")
        tx:queue("note", true)
        tx:exec("note", affected)
        tx:exec("note", #rows)
        tx:commit()"#;
    let calls = [
        "begin",
        "note(1) rows",
        "none() rows",
        "pair(1.5, 'x')",
        "note(true)",
        "note(3)",
        "note(2)",
        "commit",
    ];
    assert_eq!(run(body).unwrap(), calls);
}

#[test]
fn commands_without_a_result_are_queued_where_the_load_pipelines() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx)
          tx:begin() tx:queue("none") tx:exec("none") tx:queue("none") tx:commit() end)"#
    );
    let loaded = Loaded::with(&lua, support::SQL, true).unwrap();
    let calls = loaded.session(1, 1).run("t").unwrap();
    assert_eq!(calls, ["begin queued", "none() queued", "none()", "none() queued", "commit"]);
}

#[test]
fn a_rollback_of_its_own_is_an_abort() {
    assert_eq!(run("tx:begin() tx:rollback()").unwrap(), ["begin", "rollback", "aborted"]);
    assert_eq!(run("tx:exec(\"none\") tx:abort()").unwrap(), ["none()", "aborted"]);
    assert_eq!(run("tx:begin() tx:commit()").unwrap(), ["begin", "commit"]);
}

#[test]
fn parameters_keep_their_kind() {
    let values = [
        ("0", "0"),
        ("-1", "-1"),
        ("2^53", "9007199254740992"),
        ("2^53 + 2", "9007199254740994.0"),
        ("0.1", "0.1"),
        ("1e300", "1e300"),
        ("1/0", "inf"),
        ("'it\\\'s'", "'it's'"),
        ("''", "''"),
        ("true", "true"),
        ("nil", "null"),
        ("tx.null", "null"),
    ];
    for (lua, expected) in values {
        assert_eq!(noted(&format!("tx:exec('note', {lua})")), [expected], "{lua}");
    }
}

#[test]
fn named_parameters_are_put_in_their_places() {
    let calls = run("tx:exec('pair', { b = 2, a = 1 }) tx:exec('pair', { a = tx.null, b = 'x' })").unwrap();
    assert_eq!(calls, ["pair(1, 2)", "pair(null, 'x')"]);
    // A metatable has no say in it.
    let body = "tx:exec('pair', setmetatable({ a = 1 }, { __index = function() return 2 end }))";
    assert!(run(body).unwrap_err().contains("pair lacks its parameter :b"));
}

#[test]
fn a_row_gives_every_kind_of_value_by_name_and_place() {
    let body = r#"
        local row = tx:one("none")
        for _, name in ipairs { "yes", "int", "float", "decimal", "numeric", "text", "json", "uuid", "date", "stamp", "nothing" } do
          tx:exec("note", row[name])
        end
        tx:exec("note", row[2])
        tx:exec("note", #row.bytes)"#;
    let uuid = "'1f1f1f1f-1f1f-1f1f-1f1f-1f1f1f1f1f1f'";
    assert_eq!(
        noted(body),
        [
            "true",
            "42",
            "1.5",
            "12.34",
            "99.25",
            "'word'",
            "'{}'",
            uuid,
            "'2024-01-01'",
            "1.5",
            "null",
            "42",
            "2"
        ]
    );
}

#[test]
fn rows_come_as_a_list_and_one_is_the_first_or_nil() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx)
          for place, row in ipairs(tx:rows("none")) do tx:exec("note", place * 10 + row.row) end
          local first = tx:one("none")
          tx:exec("note", first and first.row or "none")
        end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    session.rows = 3;
    let calls = session.run("t").unwrap();
    assert_eq!(calls, ["none() rows", "note(11)", "note(22)", "note(33)", "none() rows", "note(1)"]);
    session.rows = 0;
    assert_eq!(session.run("t").unwrap(), ["none() rows", "none() rows", "note('none')"]);
}

#[test]
fn a_row_of_an_earlier_transaction_is_refused() {
    let lua = format!(
        r#"{HEAD}local kept
        w:transaction("keep", function(tx) kept = tx:one("none") end)
        w:transaction("use", function(tx) tx:exec("note", kept.int) end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    session.run("keep").unwrap();
    let error = session.run("use").unwrap_err();
    assert!(error.contains("a row can be used only within the transaction that read it"), "{error}");
}

#[test]
fn tx_knows_the_time_the_session_and_the_attempt() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx)
          tx:exec("note", tx.now == tx.now and tx.now > 1.7e9)
          tx:exec("pair", tx.session, tx.attempt)
        end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 12);
    assert_eq!(session.run("t").unwrap(), ["note(true)", "pair(12, 1)"]);
    let step = session.script.retry(0);
    assert_eq!(session.finish(step).unwrap()[1], "pair(12, 2)");
    assert_eq!(session.run("t").unwrap()[1], "pair(12, 1)", "a new transaction counts anew");
}

#[test]
fn pick_draws_within_its_bounds() {
    let body = r#"
        local seen = {}
        for _ = 1, 2000 do
          local integer, number = pick.integer(-2, 2), pick.number(1, 2)
          assert(integer >= -2 and integer <= 2 and integer % 1 == 0)
          assert(number >= 1 and number < 2)
          local rounded = pick.number(0.5, 100, 2) * 100
          assert(math.abs(rounded - math.floor(rounded + 0.5)) < 1e-6)
          local letters = pick.letters(2, 4)
          assert(#letters >= 2 and #letters <= 4 and letters:match("^%l+$"))
          assert(pick.item() >= 1 and pick.item() <= 1000)
          assert(math.random(3) >= 1 and math.random(3) <= 3 and math.random() < 1 and math.random(5, 6) >= 5)
          seen[integer], seen[pick.choice { "a", "b" }], seen[tostring(pick.chance(0.5))] = true, true, true
        end
        assert(pick.chance(1) and not pick.chance(0))
        for _, key in ipairs { -2, -1, 0, 1, 2, "a", "b", "true", "false" } do assert(seen[key], key) end
        tx:exec("note", pick.letters(0, 0))"#;
    assert_eq!(noted(body), ["''"]);
}

#[test]
fn once_gives_each_loaded_key_once_and_then_nothing() {
    let lua =
        format!(r#"{HEAD}w:transaction("t", function(tx, pick) tx:exec("note", pick.once("item")) end)"#);
    let loaded = Loaded::new(&lua).unwrap();
    let (mut one, mut other) = (loaded.session(1, 1), loaded.session(1, 2));
    let keys: BTreeSet<String> =
        (0..500).flat_map(|_| [one.run("t").unwrap().remove(0), other.run("t").unwrap().remove(0)]).collect();
    assert_eq!(keys.len(), 1000);
    assert_eq!(one.run("t").unwrap(), ["note(null)"]);
}

/// Draws of one session, one a transaction.
fn draws(loaded: &Loaded, seed: u64, session: u64) -> Vec<String> {
    let mut session = loaded.session(seed, session);
    (0..50).map(|_| session.run("t").unwrap().remove(0)).collect()
}

#[test]
fn a_seed_repeats_each_session_and_sessions_differ() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx, pick) tx:exec("pair", pick.item(), math.random(1000000)) end)"#
    );
    let (loaded, again) = (Loaded::new(&lua).unwrap(), Loaded::new(&lua).unwrap());
    let first = draws(&loaded, 7, 1);
    assert_eq!(first, draws(&again, 7, 1), "the same in another state");
    assert_ne!(first, draws(&loaded, 7, 2));
    assert_ne!(first, draws(&loaded, 8, 1));
    // Another session beside it makes no difference.
    let (mut one, mut other) = (loaded.session(7, 1), loaded.session(7, 2));
    let mixed: Vec<String> = (0..50)
        .map(|_| {
            other.run("t").unwrap();
            one.run("t").unwrap().remove(0)
        })
        .collect();
    assert_eq!(first, mixed);
}

#[test]
fn a_retry_draws_the_same_numbers() {
    let lua = format!(r#"{HEAD}w:transaction("t", function(tx, pick) tx:exec("note", pick.item()) end)"#);
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(7, 1);
    let first = session.run("t").unwrap();
    let step = session.script.retry(0);
    assert_eq!(session.finish(step).unwrap(), first);
    assert_ne!(session.run("t").unwrap(), first);
}

#[test]
fn a_retry_picks_what_the_first_attempt_picked() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx, pick)
          if tx.attempt == 3 then pick.item() end
          tx:exec("pair", pick.item(), pick.once("item"))
          tx:exec("pair", pick.item(), pick.integer(1, 1000000)) end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let handed_out = || loaded.keys[0].1.handed_out();
    loaded.vm.set_access(Access::Latest { k: 3 });
    let mut session = loaded.session(5, 1);
    let first = session.run("t").unwrap();
    assert_eq!(handed_out(), 1);
    // The newest three are others by now.
    loaded.keys[0].1.arrived(5_000);
    for _ in 0..2 {
        let step = session.script.retry(0);
        let again = session.finish(step).unwrap();
        // The third attempt goes another way: it draws anew from where they part.
        assert_eq!(again == first, handed_out() == 1, "{again:?}, first {first:?}");
    }
    assert_eq!(handed_out(), 2, "a key that is handed out once is so for all attempts that ask for it");
    assert_ne!(session.run("t").unwrap(), first);
}

#[test]
fn sessions_interleave_without_touching_each_other() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx)
          local mine = tx.session
          tx:begin()
          local row = tx:one("note", mine)
          assert(tx.session == mine and row.int == 42)
          tx:exec("note", mine)
        end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let (mut one, mut other) = (loaded.session(1, 1), loaded.session(1, 2));
    let (step, _) = (one.script.begin(0), other.script.begin(0));
    assert!(matches!(step, Step::Call { command: Command::Begin, .. }));
    // The other is given up in the middle of its transaction, and begins a new one.
    other.script.abandon();
    assert_eq!(other.run("t").unwrap(), ["begin", "note(2) rows", "note(2)"]);
    let step = one.script.resume(Reply::default());
    assert_eq!(one.finish(step).unwrap(), ["note(1) rows", "note(1)"]);
}

#[test]
fn tallies_and_arrivals_count_once_the_transaction_is_committed() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx, pick)
          tx:exec("none")
          tx:tally("paid", 1.5) tx:tally("lines", 2) tx:tally("paid", 1)
          tx:inserted("item", 5000)
        end)
        w:transaction("newest", function(tx, pick) tx:exec("note", pick.item()) end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    loaded.vm.set_access(Access::Latest { k: 1 });
    let mut session = loaded.session(1, 1);
    session.run("t").unwrap();
    session.script.abandon();
    assert_eq!(session.script.take_tallies().count(), 0, "what is given up adds nothing");
    assert_eq!(session.run("newest").unwrap(), ["note(1000)"]);
    session.run("t").unwrap();
    let tallies: Vec<_> = session.script.take_tallies().collect();
    assert_eq!(loaded.vm.tally_names(), ["paid", "lines"]);
    assert_eq!(tallies, [(0, 1.5), (1, 2.0), (0, 1.0)]);
    assert_eq!(session.run("newest").unwrap(), ["note(5000)"], "latest moves with what arrives");
}

/// Every key that a session picks from 1,000 rows under an access distribution.
fn picked(access: Access, arrived: i64) -> BTreeSet<i64> {
    let lua = format!(
        r#"{HEAD}w:transaction("t", function(tx, pick) for _ = 1, 500 do tx:queue("note", pick.item()) end end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    loaded.keys[0].1.arrived(arrived);
    loaded.vm.set_access(access);
    let mut session = loaded.session(3, 1);
    let calls = (0..40).flat_map(|_| session.run("t").unwrap());
    calls.map(|call| call[5..call.len() - 1].parse().unwrap()).collect()
}

#[test]
fn access_distributions_reach_all_the_data_and_what_has_arrived() {
    let all: BTreeSet<i64> = (1..=1200).collect();
    assert_eq!(picked(Access::Uniform, 1200), all);
    assert_eq!(picked(Access::Latest { k: 10 }, 1200), (1191..=1200).collect());
    let zipfian = picked(Access::Zipfian { theta: 0.5 }, 1200);
    assert!(zipfian.len() > 1000 && zipfian.is_subset(&all) && zipfian.iter().any(|key| *key > 1000));
    let hotspot = picked(Access::Hotspot { keys: 0.1, accesses: 0.5 }, 1200);
    assert!(hotspot.len() > 1100 && hotspot.is_subset(&all) && hotspot.iter().any(|key| *key > 1000));
    assert_eq!(picked(Access::Hotspot { keys: 0.1, accesses: 1.0 }, 1000).len(), 100);
}

/// A reply with two results, of one row and of two.
fn two_results(rows: &mut Rows) -> Reply {
    let columns = |name: &str| {
        let columns = vec![Column { name: name.into(), kind: 0 }];
        Rc::new(Columns { columns, decode: |_, cell| Value::Int(cell[0].into()), any_name: false })
    };
    let mut last = None;
    for (name, cells) in [("a", &[1][..]), ("b", &[2, 3])] {
        last = Some(rows.begin(&columns(name)));
        for cell in cells {
            rows.push_row();
            rows.push_cell(Some(&[*cell]));
        }
    }
    Reply { result: last, earlier: 1, ..Reply::default() }
}

#[test]
fn every_result_of_a_statement_can_be_read() {
    let body = r#"
        local all = tx:results("none")
        tx:exec("pair", #all, #all[2])
        tx:exec("pair", all[1][1].a, all[2][2].b)"#;
    let loaded = Loaded::new(&format!("{HEAD}w:transaction('t', function(tx)\n{body}\nend)")).unwrap();
    let mut script = loaded.vm.script(1, 1).unwrap();
    let (mut step, mut given) = (script.begin(0), Vec::new());
    while let Step::Call { want, .. } = step {
        given.extend(script.params().iter().map(support::text));
        let reply = if want == Want::Rows { two_results(script.rows()) } else { Reply::default() };
        step = script.resume(reply);
    }
    assert!(matches!(step, Step::Done { .. }), "{step:?}");
    assert_eq!(given, ["2", "2", "1", "3"]);
}

/// What `tx:key` gives where the statement has such a reply.
fn key_of(reply: Reply) -> Result<String, String> {
    let lua = format!(
        "{HEAD}w:transaction('t', function(tx)\nlocal key = tx:key('none')\ntx:exec('note', key)\nend)"
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut script = loaded.vm.script(1, 1).unwrap();
    let step = script.begin(0);
    assert!(matches!(step, Step::Call { want: Want::Rows, flush: true, .. }));
    // The last of two results has the rows 2 and 3.
    let result = reply.result.is_some().then(|| two_results(script.rows()).result).flatten();
    match script.resume(Reply { result, ..reply }) {
        Step::Failed(error) => Err(error.to_string()),
        _ => Ok(script.params().iter().map(support::text).collect()),
    }
}

#[test]
fn a_key_is_what_is_returned_or_else_what_the_server_generated() {
    let told = Reply { affected: 1, inserted_id: std::num::NonZeroU64::new(7), ..Reply::default() };
    let result = two_results(&mut Rows::default()).result;
    let returned = Reply { affected: 2, result, ..Reply::default() };
    assert_eq!(key_of(told).unwrap(), "7");
    assert_eq!(key_of(returned).unwrap(), "2", "the first row's first column");
    assert_eq!(key_of(Reply { inserted_id: told.inserted_id, ..returned }).unwrap(), "2");
    assert_eq!(key_of(Reply::default()).unwrap(), "null", "no row was inserted");
    let error = key_of(Reply { affected: 1, ..Reply::default() }).unwrap_err();
    let expected = "workload.lua:5: tx:key: none touched a row, and the server told no key of it; let it end with RETURNING";
    assert!(error.starts_with(expected), "{error}");
}
