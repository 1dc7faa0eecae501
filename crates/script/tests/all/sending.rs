//! Statements that leave together, and their answers: `tx:send` and `tx:receive`.

use crate::support::{self, HEAD, Loaded};
use nephoscope_drivers::{Reply, Want};
use nephoscope_script::Step;

/// A transaction that sends three statements and notes their answers.
fn sent(pipeline: bool) -> Vec<String> {
    let lua = format!(
        r#"{HEAD}w:transaction("t", {{ pipeline = {pipeline} }}, function(tx)
          tx:begin() tx:queue("none") tx:send("note", 1) tx:send("pair", {{ a = 1, b = 2 }})
          tx:send(tx:query("SELECT :x"), 7)
          local first, second, third = tx:receive()
          tx:send("none")
          tx:exec("pair", #first + #second + #third, third[2].row)
          tx:send("none")
          tx:commit()
          local _, last = tx:receive()
          tx:exec("note", last[1].int)
        end)"#
    );
    Loaded::new(&lua).unwrap().session(1, 1).run("t").unwrap()
}

#[test]
fn what_a_transaction_sends_leaves_together_where_it_pipelines() {
    let together = [
        "begin queued",
        "none() queued",
        "note(1) kept queued",
        "pair(1, 2) kept queued",
        "SELECT :x(7) kept queued",
        "flush",
        "none() kept queued",
        "pair(6, 2)",
        "none() kept queued",
        "commit",
        "note(42)",
    ];
    assert_eq!(sent(true), together);
    let one_by_one = together.map(|call| call.replace(" queued", ""));
    assert_eq!(sent(false), one_by_one.into_iter().filter(|call| call != "flush").collect::<Vec<_>>());
}

#[test]
fn an_answer_without_rows_is_the_number_of_rows_touched() {
    let lua = format!(
        r#"{HEAD}w:transaction("t", {{ pipeline = true }}, function(tx)
          tx:send("note", 1) tx:send("none")
          local touched, rows = tx:receive()
          tx:exec("pair", touched, #rows) end)"#
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut script = loaded.vm.script(1, 1).unwrap();
    for _ in 0..2 {
        let mut step = script.begin(0);
        for _ in 0..2 {
            assert!(matches!(step, Step::Call { want: Want::Kept, flush: false, .. }), "{step:?}");
            step = script.resume(Reply::default());
        }
        assert!(matches!(step, Step::Flush), "{step:?}");
        let result = Some(support::answer(script.rows(), 2));
        script.rows().keep(Reply { affected: 5, ..Reply::default() });
        script.rows().keep(Reply { result, ..Reply::default() });
        step = script.resume(Reply::default());
        assert!(matches!(step, Step::Call { .. }), "{step:?}");
        assert_eq!(script.params().iter().map(support::text).collect::<Vec<_>>(), ["5", "2"]);
        assert!(matches!(script.resume(Reply::default()), Step::Done { aborted: false }));
    }
    script.begin(0);
    script.resume(Reply::default());
    script.resume(Reply::default());
    let Step::Failed(error) = script.resume(Reply::default()) else { panic!("nothing was kept") };
    assert!(error.to_string().contains("a statement that was sent is several, or was not answered"));
}
