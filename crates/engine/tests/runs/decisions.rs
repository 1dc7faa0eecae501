//! What a workload decides for itself: which errors it expects, and that there is nothing to do.

use nephoscope_drivers::{ErrorClass, ErrorClasses};
use nephoscope_engine::LoadSpec;
use serde_json::json;

use crate::support::{SimBase, Story, check, phase, run, spec_of, written};

const SQL: &str = "-- name: write\nUPDATE t SET a = a + 1\n-- name: find\nSELECT a FROM t\n";

/// A closed loop of 8 that runs the transactions of a workload, all alike.
fn load(url: &str, lua: &str) -> (LoadSpec, tempfile::TempDir) {
    let folder = written(&format!("local w = workload 'w'\n{lua}"), SQL);
    let mix = lua.matches("w:transaction('").count();
    let names = lua.split("w:transaction('").skip(1).filter_map(|rest| rest.split('\'').next());
    let weights: serde_json::Map<_, _> = names.map(|name| (name.to_owned(), json!(1))).collect();
    assert_eq!(weights.len(), mix);
    (spec_of(&folder, url, [phase("all", 1.0, json!({"concurrency": 8, "mix": weights}))]), folder)
}

fn aborted(story: &Story) -> u64 {
    story.all().sum(|series| series.aborted)
}

const INSERT: &str = "w:transaction('insert', { aborts_on = 'constraint' }, function(tx)
  tx:tally('written', 1)
  tx:begin()
  tx:exec('write')
  tx:exec('write')
  tx:commit()
end)";

#[test]
fn an_expected_violation_rolls_back_and_is_no_error() {
    let base = SimBase::new("latency=constant(1ms)&error=constraint:0.1&error=other:0.05");
    let (mut spec, _folder) = load(&base.url, INSERT);
    // What is expected is not tried again.
    spec.retry.classes = ErrorClasses::named(&["constraint"]).unwrap();
    let story = run(&spec);
    let all = story.all();
    assert_eq!(all.errors(ErrorClass::Constraint), 0);
    assert_eq!(all.failed(), all.errors(ErrorClass::Other), "another class is an error as ever");
    // Four round trips, each of which may meet one of both.
    let ended = all.committed() + all.failed() + aborted(&story);
    check::binomial("aborted", aborted(&story), ended, (1.0 - 0.85_f64.powi(4)) * 0.1 / 0.15);
    assert_eq!(all.sum(|series| series.retries), 0);
    assert_eq!((story.totals().uncertain, all.counted(|tenant| tenant.lost)), (0, 0));
    assert_eq!((base.commits(), story.tally("written").0), (all.committed(), all.committed() as f64));
}

#[test]
fn only_the_classes_that_a_transaction_names_are_expected() {
    let base = SimBase::new("latency=constant(1ms)&error=constraint:0.1&error=lock_timeout:0.1");
    for (expected, both) in [("'lock_timeout'", false), ("{ 'constraint', 'lock_timeout' }", true)] {
        let (spec, _folder) = load(&base.url, &INSERT.replace("'constraint'", expected));
        let story = run(&spec);
        let all = story.all();
        assert!(aborted(&story) > 50);
        assert_eq!(all.errors(ErrorClass::LockTimeout), 0);
        assert_eq!(all.errors(ErrorClass::Constraint), all.failed());
        assert_eq!(all.failed() > 50, !both);
    }
}

#[test]
fn an_outcome_that_nobody_knows_is_not_expected() {
    // The second write is sent together with the first, which commits by itself: nobody knows whether it has.
    let lua = "w:transaction('both', { aborts_on = 'constraint' }, function(tx)
      tx:tally('written', 2)
      tx:queue('write')
      tx:exec('write')
    end)";
    let base = SimBase::new("latency=constant(1ms)&error=constraint:0.2");
    let (mut spec, _folder) = load(&base.url, lua);
    spec.pipeline = true;
    let story = run(&spec);
    let all = story.all();
    assert!(story.totals().uncertain > 50);
    assert_eq!((all.failed(), aborted(&story)), (story.totals().uncertain, 0));
}

#[test]
fn what_was_committed_before_an_expected_error_stays() {
    let lua = "w:transaction('parts', { aborts_on = 'constraint' }, function(tx)
      tx:tally('parts', 1)
      tx:exec('write')
      tx:tally('parts', 1)
      tx:exec('write')
    end)";
    let base = SimBase::new("latency=constant(1ms)&error=constraint:0.2");
    let (spec, _folder) = load(&base.url, lua);
    let story = run(&spec);
    let all = story.all();
    assert!(aborted(&story) > 50);
    assert_eq!((all.failed(), story.totals().uncertain), (0, 0));
    let (sure, uncertain) = story.tally("parts");
    assert_eq!(sure, 2.0 * all.committed() as f64);
    let stays = base.commits() as f64 - sure;
    assert!(stays > 0.0 && stays <= uncertain, "{stays} of {uncertain}");
}

/// A transaction of which so many in a hundred have nothing to do, and one that always has.
fn skipping(share: u32) -> String {
    format!(
        "w:transaction('perhaps', function(tx, pick)
           tx:tally('begun', 1)
           if pick.chance({share} / 100) then return tx:skip() end
           tx:tally('written', 1)
           tx:exec('write')
         end)
         w:transaction('always', function(tx)
           tx:tally('written', 1)
           tx:exec('write')
         end)"
    )
}

#[test]
fn a_turn_that_is_skipped_is_served_by_another_transaction() {
    let base = SimBase::new("latency=constant(1ms)");
    let (spec, _folder) = load(&base.url, &skipping(75));
    let story = run(&spec);
    let all = story.all();
    // Of draws that are no skips, one in five is of the transaction that skips three in four.
    check::binomial("perhaps", all.committed_of("perhaps"), all.committed(), 0.2);
    assert_eq!((all.failed(), aborted(&story), base.commits()), (0, 0, all.committed()));
    assert_eq!(story.tally("written").0, all.committed() as f64, "what is skipped adds nothing");
    assert_eq!(story.tally("begun").0, all.committed_of("perhaps") as f64);
}

#[test]
fn an_arrival_that_is_skipped_is_served_by_another_transaction() {
    let base = SimBase::new("latency=constant(1ms)");
    let (mut spec, _folder) = load(&base.url, &skipping(100));
    let mix = json!({"perhaps": 9, "always": 1});
    spec.phases = vec![phase("all", 1.0, json!({"rate": 500, "mix": mix}))];
    let story = run(&spec);
    check::arrivals(&story);
    let all = story.all();
    assert_eq!(all.committed_of("perhaps"), 0);
    assert_eq!((all.committed(), all.counted(|tenant| tenant.arrivals)), (500, 500));
}

#[test]
fn a_mix_that_can_only_skip_ends_the_run() {
    let base = SimBase::new("latency=constant(1ms)");
    let (mut spec, _folder) = load(&base.url, &skipping(100));
    spec.phases = vec![phase("all", 30.0, json!({"concurrency": 2, "mix": {"perhaps": 1}}))];
    let story = run(&spec);
    let failure = story.failure().unwrap();
    assert!(
        failure.starts_with("workload w, transaction perhaps: tx:skip() has ended 10001 transactions"),
        "{failure}"
    );
    assert_eq!((story.all().committed(), base.commits()), (0, 0));
}

#[test]
fn what_is_skipped_on_a_retry_has_failed() {
    let lua = "w:transaction('t', function(tx)
      if tx.attempt > 1 then return tx:skip() end
      tx:exec('write')
    end)";
    let base = SimBase::new("latency=constant(1ms)&error=deadlock:0.2");
    let (spec, _folder) = load(&base.url, lua);
    let story = run(&spec);
    let all = story.all();
    assert!(all.failed() > 50);
    assert_eq!((all.failed(), all.sum(|of| of.retries)), (all.errors(ErrorClass::Deadlock), 0));
}

const HOMES: &str = "local begun = 0
w:session(function(tx, pick)
  begun = begun + 1
  tx:tally('sessions', 1)
  tx:tally('at most ' .. tx.sessions, 1)
  tx:exec('write')
  return { home = begun, number = tx.session }
end)
w:transaction('t', function(tx, pick, mine)
  assert(mine.number == tx.session and mine.number <= tx.sessions)
  tx:tally('home ' .. mine.home, 1)
  tx:exec('write')
end)";

#[test]
fn a_sessions_own_function_runs_once_when_it_is_connected() {
    let base = SimBase::new("latency=constant(1ms)&outage=300ms+100ms");
    let (mut spec, _folder) = load(&base.url, HOMES);
    let few = phase("few", 0.6, json!({"concurrency": 3, "mix": {"t": 1}}));
    spec.phases = vec![few, phase("many", 0.4, json!({"concurrency": {"from": 3, "to": 7}}))];
    let story = run(&spec);
    let all = story.all();
    assert_eq!(all.counted(|tenant| tenant.restored), 3, "who connects anew keeps what is its own");
    assert_eq!(story.tally("sessions").0, 7.0);
    assert_eq!((story.tally("at most 3").0, story.tally("at most 7").0), (3.0, 4.0));
    let homes: f64 = (1..=7).map(|home| story.tally(&format!("home {home}")).0).sum();
    assert_eq!(homes, all.committed() as f64);
    assert_eq!(base.commits(), all.committed() + 7, "what a session's own function does is not counted");
}

#[test]
fn a_sessions_own_function_is_tried_again_as_a_transaction_is() {
    let base = SimBase::new("latency=constant(1ms)&error=deadlock:0.4");
    let (mut spec, _folder) = load(&base.url, HOMES);
    spec.retry.attempts = 50;
    let story = run(&spec);
    assert_eq!(story.tally("sessions").0, 8.0);
    assert_eq!(base.commits(), story.all().committed() + 8);
}

#[test]
fn what_is_wrong_with_a_sessions_own_function_ends_the_run_before_it_begins() {
    for (body, planted, expected) in [
        ("tx:exec('none')", "", "the function of w:session: workload.lua:2: no statement is called \"none\""),
        ("tx:exec('write')", "&error=other:1", "the function of w:session: "),
        (
            "while true do end",
            "",
            "the function of w:session: workload.lua:2: the function of w:session has run for 0.1 s",
        ),
        ("tx:begin()", "", "the function of w:session: the function returned within a transaction"),
    ] {
        let base = SimBase::new(&format!("latency=constant(1ms){planted}"));
        let lua = format!(
            "w:session(function(tx) {body} end) w:transaction('t', function(tx) tx:exec('write') end)"
        );
        let (mut spec, _folder) = load(&base.url, &lua);
        spec.script_timeout_ms = 100;
        let error = nephoscope_engine::Run::start(&spec).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
