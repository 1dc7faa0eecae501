//! Errors that are planted are read back: counted by class, retried where that is allowed, always rolled back.

use crate::support::{SECOND, SimBase, Story, check, phase, run, run_to_rest, spec, written};
use nephoscope_drivers::{ErrorClass, ErrorClasses};
use nephoscope_engine::LoadSpec;
use nephoscope_engine::spec::{PhaseSpec, RetrySpec};
use serde_json::json;

/// A closed loop of 8 in one phase.
fn closed(url: &str, seconds: f64, transaction: &str, attempts: u32) -> LoadSpec {
    let mut spec = spec(url, [phase("all", seconds, json!({"concurrency": 8, "mix": {transaction: 1}}))]);
    spec.retry.attempts = attempts;
    spec
}

/// What was tallied is what the database has committed, and nothing is uncertain.
#[track_caller]
fn exact(story: &Story, base: &SimBase) {
    assert_eq!(base.commits(), story.all().committed());
    assert_eq!(story.totals().uncertain, 0);
}

#[test]
fn error_rates_are_read_back_by_class() {
    let planted = [
        (ErrorClass::Serialization, 0.08),
        (ErrorClass::Deadlock, 0.07),
        (ErrorClass::LockTimeout, 0.06),
        (ErrorClass::ReadOnly, 0.05),
        (ErrorClass::ShuttingDown, 0.04),
        (ErrorClass::StatementTimeout, 0.03),
        (ErrorClass::Constraint, 0.03),
        (ErrorClass::Throttled, 0.02),
        (ErrorClass::Other, 0.02),
        (ErrorClass::ConnectionLost, 0.01),
    ];
    let query = planted.map(|(class, share)| format!("error={}:{share}", class.name())).join("&");
    let base = SimBase::new(&format!("latency=constant(1ms)&{query}"));
    let story = run(&closed(&base.url, 2.0, "write", 1));
    let (all, started) = (story.all(), story.totals().started);
    assert!(started > 2000, "{started} tries are few");
    for (class, share) in planted {
        check::binomial(class.name(), all.errors(class), started, share);
    }
    let errors: u64 = planted.iter().map(|(class, _)| all.errors(*class)).sum();
    assert_eq!((all.failed(), all.sum(|series| series.retries)), (errors, 0), "one attempt each");
    assert_eq!(base.commits(), all.committed());
    let lost = all.errors(ErrorClass::ConnectionLost);
    assert_eq!(all.counted(|tenant| tenant.lost), lost, "a lost connection is the only one that is given up");
    assert!(lost - all.counted(|tenant| tenant.restored) <= 8, "and is made anew, unless the run ends");
    // A write whose commit was not answered may have been committed.
    let unanswered = [ErrorClass::ConnectionLost, ErrorClass::ShuttingDown, ErrorClass::StatementTimeout];
    let unanswered = unanswered.iter().map(|class| all.errors(*class)).sum::<u64>();
    assert_eq!((story.totals().uncertain, all.sum(|series| series.uncertain)), (unanswered, unanswered));
}

#[test]
fn a_phase_may_have_retries_of_its_own() {
    let base = SimBase::new("latency=constant(1ms)&error=deadlock:1");
    let mut spec = closed(&base.url, 0.5, "read", 1);
    (spec.retry.backoff_ms, spec.retry.backoff_max_ms) = (0.0, 0.0);
    let thrice = Some(RetrySpec { attempts: 3, ..spec.retry });
    spec.phases.push(PhaseSpec { retry: thrice, ..phase("thrice", 0.5, json!({})) });
    spec.phases.push(phase("still", 0.5, json!({})));
    let story = run(&spec);
    assert_eq!(story.phase("all").sum(|series| series.retries), 0);
    for later in ["thrice", "still"] {
        let (retries, failed) =
            (story.phase(later).sum(|series| series.retries), story.phase(later).failed());
        // What was begun in the phase before may have been given fewer, and is one for each session.
        assert!(failed > 100 && retries <= 2 * failed && retries >= 2 * failed - 16, "{retries} of {failed}");
    }
}

#[test]
fn only_what_may_be_retried_is_retried() {
    std::thread::scope(|scope| {
        for class in ErrorClass::ALL {
            scope.spawn(move || retried_or_not(class));
        }
    });
}

fn retried_or_not(class: ErrorClass) {
    let base = SimBase::new(&format!("latency=constant(1ms)&error={}:0.3", class.name()));
    let story = run(&closed(&base.url, 1.0, "write", 3));
    let (all, started) = (story.all(), story.totals().started);
    let (retries, retried) = (all.sum(|series| series.retries), all.sum(|series| series.retried));
    let errors = all.errors(class);
    // A write commits by itself: where the server was shutting down, nobody knows whether it did.
    let may = [ErrorClass::Serialization, ErrorClass::Deadlock];
    if may.contains(&class) {
        check::binomial(&format!("{}: failed", class.name()), all.failed(), started, 0.027);
        // Those that the end of the run left without their next attempt are few.
        assert!(errors - all.failed() == retries, "{}: {errors} errors, {retries} retries", class.name());
        check::binomial(&format!("{}: retried", class.name()), retried, started, 0.3 * 0.7 + 0.09 * 0.7);
    } else {
        assert_eq!((retries, retried), (0, 0), "{}", class.name());
        check::binomial(class.name(), all.failed(), started, 0.3);
    }
    assert_eq!(base.commits(), all.committed());
    assert_eq!(story.tally("written").0, all.committed() as f64, "what failed is not in the tallies");
}

#[test]
fn the_classes_that_are_tried_again_are_a_setting() {
    let base = SimBase::new("latency=constant(1ms)&error=throttled:0.3&error=deadlock:0.1");
    let mut spec = closed(&base.url, 1.0, "write", 3);
    spec.retry.classes = ErrorClasses::named(&["throttled", "connection_lost"]).unwrap();
    let story = run(&spec);
    let all = story.all();
    let (deadlocks, throttled) = (all.errors(ErrorClass::Deadlock), all.errors(ErrorClass::Throttled));
    let retries = all.sum(|series| series.retries);
    assert!(deadlocks > 20 && throttled > 100 && retries > 100, "{deadlocks} {throttled} {retries}");
    assert!(retries <= throttled && all.failed() >= deadlocks);
    assert_eq!(base.commits(), all.committed());
}

#[test]
fn a_commit_that_a_shutdown_answers_is_never_run_again() {
    for transaction in ["write", "transfer"] {
        let base = SimBase::new("latency=constant(1ms)&late_error=shutting_down:0.2");
        let story = run(&closed(&base.url, 1.0, transaction, 5));
        let (all, totals) = (story.all(), story.totals());
        // Each that reached its commit is there, and once.
        assert_eq!(base.commits(), all.committed() + totals.uncertain, "{transaction}");
        assert!(totals.uncertain > 20 && totals.uncertain <= all.failed(), "{} uncertain", totals.uncertain);
        assert_eq!(all.sum(|series| series.uncertain), totals.uncertain, "none is in flight at the end");
        assert_eq!(story.tally("written"), (all.committed() as f64, totals.uncertain as f64));
        // Before its commit a transfer is tried again.
        assert_eq!(all.sum(|series| series.retries) > 20, transaction == "transfer");
    }
}

#[test]
fn what_has_committed_a_part_is_not_run_again() {
    let base = SimBase::new("latency=constant(1ms)&error=deadlock:0.2");
    let folder = written(
        "local w = workload 'parts'\nw:transaction('both', {}, function(tx)\n  tx:tally('parts', 2)\n  \
         tx:exec('write')\n  tx:exec('write')\nend)\nw:mix('all', { both = 1 })",
        "-- name: write\nUPDATE t SET a = a + 1\n",
    );
    let mut spec = closed(&base.url, 1.0, "both", 5);
    spec.tenants[0].workload.folder = folder.path().to_owned();
    let story = run(&spec);
    let (all, totals) = (story.all(), story.totals());
    assert!(totals.uncertain > 20 && all.sum(|series| series.retries) > 20);
    assert_eq!(base.commits(), 2 * all.committed() + totals.uncertain, "no first part is there twice");
    assert_eq!(story.tally("parts"), ((2 * all.committed()) as f64, (2 * totals.uncertain) as f64));
}

#[test]
fn waits_between_attempts_double_and_are_jittered() {
    let mut twice = closed("sim://?latency=constant(1ms)&error=deadlock:0.5", 3.0, "write", 2);
    (twice.retry.backoff_ms, twice.retry.backoff_max_ms) = (100.0, 1000.0);
    let latency = run(&twice).all().latency();
    let at = |q: f64| latency.value_at_quantile(q) as f64 / SECOND;
    // Two thirds of those that commit do so at once, a third after 50 to 150 ms and another round trip.
    assert!(at(0.5) < 0.05, "{}", at(0.5));
    let jittered = [0.72, 0.84, 0.95].map(at);
    assert!(jittered[0] > 0.051 && jittered[2] < 0.25, "{jittered:?}");
    assert!(jittered[2] - jittered[0] > 0.04, "waits differ: {jittered:?}");

    let mut four = closed("sim://?latency=constant(1ms)&error=deadlock:1", 3.0, "write", 4);
    (four.retry.backoff_ms, four.retry.backoff_max_ms) = (20.0, 50.0);
    let story = run(&four);
    // 20, 40 and 50 ms on the average, and 4 round trips: 114 ms.
    let failed = story.all().failed() as f64;
    assert!((0.6..1.1).contains(&(failed / (8.0 * 3.0 / 0.114))), "{failed}");
    assert_eq!(story.all().committed(), 0);
}

#[test]
fn a_failed_transaction_is_rolled_back_before_the_next_one() {
    // Transfers have three round trips, each of which may fail, and after a failure all but a rollback is refused.
    let base = SimBase::new("latency=constant(1ms)&error=lock_timeout:0.2");
    let story = run(&closed(&base.url, 1.5, "transfer", 3));
    let all = story.all();
    assert_eq!(all.errors(ErrorClass::Other), 0, "nothing was asked of a transaction that had failed");
    assert_eq!(all.failed(), all.errors(ErrorClass::LockTimeout));
    assert!(all.failed() > 50 && all.committed() > 50);
    exact(&story, &base);
    // Where a rollback itself fails the connection is of no use any more.
    assert!(all.counted(|tenant| tenant.lost) < all.failed() / 2);
}

#[test]
fn an_outage_breaks_every_connection_and_all_are_made_anew() {
    let base = SimBase::new("latency=constant(2ms)&outage=700ms+600ms");
    let mut spec = closed(&base.url, 3.5, "write", 3);
    (spec.threads, spec.interval_ms) = (2, 50);
    let story = run(&spec);
    let all = story.all();
    assert_eq!(all.counted(|tenant| tenant.lost), 8);
    assert_eq!(all.counted(|tenant| tenant.restored), 8);
    assert_eq!(base.connections(), 16);
    // Waits of 5, 10, 20 … ms, jittered by half: some seven in 600 ms, and no storm.
    let refused = all.counted(|tenant| tenant.refused);
    assert!((8..=8 * 11).contains(&refused), "{refused} refused");
    assert_eq!(story.between(0.75, 1.3).committed(), 0);
    assert!(story.between(0.0, 0.7).committed() > 100);
    // The longest wait that can have begun in the outage is 960 ms.
    assert!(story.between(2.4, 3.5).committed() > 100);
    let connected = story.phase("all").gauge(|tenant| tenant.connected);
    assert_eq!((connected[0], connected[20], *connected.last().unwrap()), (8, 0, 8));
    let missing = story.phase("all").gauge(|tenant| tenant.disconnected);
    assert_eq!((missing[0], missing[20], *missing.last().unwrap()), (0, 8, 0));
    assert_eq!(all.errors(ErrorClass::ConnectionLost), 8, "a refusal is no error of a transaction");
    assert_eq!(base.commits(), all.committed());
}

#[test]
fn sessions_that_a_server_has_no_place_for_are_told_as_long_as_the_load_wants_them() {
    for threads in [1, 2] {
        let base = SimBase::new("latency=constant(2ms)&connections=5");
        let phases = [
            phase("few", 0.5, json!({"concurrency": 4, "mix": {"write": 1}})),
            phase("many", 1.0, json!({"concurrency": 12})),
            phase("few again", 0.5, json!({"concurrency": 4})),
        ];
        let mut spec = spec(&base.url, phases);
        spec.threads = threads;
        let story = run(&spec);
        let missing = |name: &str| story.phase(name).gauge(|tenant| tenant.disconnected);
        for few in ["few", "few again"] {
            assert!(missing(few).iter().all(|missing| *missing == 0), "{few}: {:?}", missing(few));
        }
        assert_eq!(missing("many").last(), Some(&7));
        assert_eq!(story.phase("many").gauge(|tenant| tenant.connected).last(), Some(&5));
        assert!(story.phase("many").counted(|tenant| tenant.refused) > 7);
        assert_eq!(
            story.phase("few again").counted(|tenant| tenant.refused),
            0,
            "who is not wanted does not knock"
        );
    }
}

#[test]
fn an_open_load_does_not_lose_what_arrives_in_an_outage() {
    let base = SimBase::new("latency=constant(2ms)&outage=300ms+400ms");
    let load = json!({"rate": 200, "mix": {"write": 1}});
    let story = run_to_rest(&spec(&base.url, [phase("all", 2.5, load)]), 1.0);
    check::arrivals(&story);
    let all = story.all();
    assert_eq!(all.sum(|of| of.unstarted), 0);
    assert_eq!(all.committed() + all.failed(), 200, "who could not start waits with its intended time");
    assert_eq!(base.commits(), all.committed());
    let longest = all.latency().max() as f64 / SECOND;
    // Each session finds out by a transaction that its connection is gone; from the 17th arrival on they wait.
    assert_eq!(all.failed(), 16);
    assert!(
        longest > 0.3,
        "{longest} s: who came first to find nobody connected waited for the end of the outage"
    );
}

#[test]
fn a_failure_window_is_read_back_in_its_time() {
    let base = SimBase::new("latency=constant(2ms)&failure=600ms+500ms:read_only");
    let mut spec = closed(&base.url, 1.6, "write", 3);
    spec.interval_ms = 50;
    let story = run(&spec);
    for interval in &story.intervals {
        let (start, end) = (interval.start as f64 / SECOND, interval.end as f64 / SECOND);
        let (mut committed, mut refused) = (0, 0);
        for series in &interval.series {
            committed += series.committed;
            refused += series.failed;
        }
        // A reply may be read late, never early.
        assert!(refused == 0 || end > 0.6, "{refused} failures until {end} s");
        assert!(committed == 0 || start < 0.6 + 0.1 || end > 1.1, "{committed} commits from {start} s on");
    }
    assert!(story.between(0.7, 1.1).failed() > 50 && story.between(1.3, 1.6).committed() > 20);
    assert_eq!(story.all().counted(|tenant| tenant.lost), 0);
    exact(&story, &base);
}

#[test]
fn an_error_storm_is_counted_whole_and_told_in_a_few_words() {
    let base = SimBase::new("latency=constant(0ms)&error=other:1");
    let mut spec = closed(&base.url, 1.0, "write", 3);
    spec.threads = 2;
    let story = run(&spec);
    let all = story.all();
    assert!(all.failed() > 5000, "{} are no storm", all.failed());
    assert_eq!(all.failed(), all.errors(ErrorClass::Other));
    let told: u64 = story.errors.iter().map(|error| error.count).sum();
    assert_eq!(told, all.failed(), "one note of an interval speaks for all");
    assert!(story.errors.len() <= story.intervals.len(), "{} notes", story.errors.len());
    let note = &story.errors[0];
    assert_eq!(
        (note.class, note.code.as_str(), note.name.transaction.as_str()),
        (ErrorClass::Other, "sim", "write")
    );
    assert_eq!((base.commits(), story.tally("written").0), (0, 0.0));
}

#[test]
fn a_rollback_of_its_own_is_no_error() {
    let base = SimBase::new("latency=constant(1ms)");
    let story = run(&closed(&base.url, 0.5, "change_of_mind", 3));
    let all = story.all();
    assert!(all.sum(|series| series.aborted) > 50);
    assert_eq!((all.committed(), all.failed(), base.commits()), (0, 0, 0));
    assert_eq!(story.tally("written"), (0.0, 0.0), "what is rolled back counts for nothing");
}

#[test]
fn what_a_transaction_leaves_queued_is_sent() {
    let base = SimBase::new("latency=constant(1ms)");
    let mut spec = closed(&base.url, 0.5, "leave_queued", 3);
    spec.pipeline = true;
    let story = run(&spec);
    assert!(story.all().committed() > 50);
    exact(&story, &base);
}

#[test]
fn a_commit_that_is_not_answered_is_uncertain_and_nothing_else_is() {
    for pipeline in [false, true] {
        let base = SimBase::new("latency=constant(1ms)&error=connection_lost:0.1");
        let mut spec = closed(&base.url, 1.0, "transfer", 3);
        spec.pipeline = pipeline;
        let story = run(&spec);
        let (all, totals) = (story.all(), story.totals());
        let lost = all.errors(ErrorClass::ConnectionLost);
        assert_eq!((all.failed(), base.commits()), (lost, all.committed()));
        // Four round trips, of which the last commits; pipelined, begin and commit ride with the writes.
        if !pipeline {
            check::binomial("uncertain", totals.uncertain, all.committed() + totals.uncertain, 0.1);
        }
        assert!((1..lost).contains(&totals.uncertain), "{} of {lost}", totals.uncertain);
        assert_eq!(story.tally("written"), (all.committed() as f64, totals.uncertain as f64));
    }
}
