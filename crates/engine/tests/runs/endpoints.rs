//! Endpoints that come and go while the load runs: who goes where, and that no transaction is lost or counted twice.

use crate::support::{
    SECOND, SimBase, Story, check, load, open_phase, phase, run, run_with, spec, wait_until,
};
use nephoscope_engine::spec::{Balance, PhaseSpec};
use nephoscope_engine::{EngineError, Interval, LoadSpec, Run};
use serde_json::{Value, json};

fn bases<const N: usize>() -> [SimBase; N] {
    [(); N].map(|()| SimBase::new("latency=constant(2ms)"))
}

fn urls(bases: &[&SimBase]) -> Value {
    bases.iter().map(|base| base.url.as_str()).collect()
}

/// A phase with other endpoints, and what else changes.
fn moved(name: &str, seconds: f64, endpoints: Value, change: Value) -> PhaseSpec {
    let mut whole = change;
    whole["endpoints"] = endpoints;
    phase(name, seconds, whole)
}

fn readers(sessions: usize) -> Value {
    json!({"concurrency": sessions, "mix": {"read": 1}})
}

/// Every commit that is stored was told, and none twice.
fn agree(story: &Story, bases: &[&SimBase]) {
    assert_eq!(bases.iter().map(|base| base.commits()).sum::<u64>(), story.all().committed());
    let all = story.all();
    assert_eq!((all.failed(), all.counted(|of| of.lost + of.restored + of.refused)), (0, 0));
}

fn role_of_reads(story: &Story, phase: &str) -> Vec<(&'static str, u64)> {
    let mut of_role = std::collections::BTreeMap::new();
    for series in story.phase(phase).0.iter().flat_map(|interval| &interval.series) {
        *of_role.entry(series.name.role.name()).or_insert(0) += series.committed;
    }
    of_role.into_iter().collect()
}

#[test]
fn read_only_nodes_come_one_by_one_and_go_again() {
    for threads in 1..=3 {
        let [rw, one, two] = bases();
        let ro = |bases: &[&SimBase]| json!({"ro": urls(bases), "reads": "ro"});
        let phases = [
            phase("none", 0.4, readers(12)),
            moved("one", 0.4, ro(&[&one]), json!({})),
            moved("two", 0.4, ro(&[&one, &two]), json!({})),
            moved("none again", 0.4, ro(&[]), json!({})),
        ];
        let story = run(&LoadSpec { threads, ..spec(&rw.url, phases) });
        agree(&story, &[&rw, &one, &two]);
        // Of twelve on the first node six stay and six go; all go back.
        assert_eq!([&rw, &one, &two].map(SimBase::connections), [24, 12, 6]);
        for (name, role) in [("none", "rw"), ("one", "ro"), ("two", "ro"), ("none again", "rw")] {
            let known = role_of_reads(&story, name);
            let of = |wanted| known.iter().filter(|(role, _)| *role == wanted).map(|(_, n)| n).sum::<u64>();
            let other = if role == "rw" { "ro" } else { "rw" };
            // Who was in flight at the change ends in the phase after it, where it was.
            assert!(of(role) > 100 && of(other) <= 12, "{name}: {known:?}");
            assert_eq!(story.phase(name).gauge(|of| of.connected).last(), Some(&12), "{name}");
        }
        let times = story.intervals.iter().filter_map(|interval| interval.tenants[0].reached);
        let times: Vec<f64> = times.map(|at| at as f64 / SECOND).collect();
        let [_, first, second, last, _] =
            story.phases.iter().map(|of| of.at as f64 / SECOND).collect::<Vec<_>>()[..]
        else {
            panic!("{:?}", story.phase_names())
        };
        let within = |from: f64, to: f64| times.iter().filter(|at| (from..to).contains(*at)).count();
        assert!(within(first + 0.002, second) >= 1 && within(second + 0.002, last) >= 1, "{times:?}");
        assert_eq!(within(0.0, first) + within(last, 99.0), 0, "{times:?}: they had been there before");
    }
}

#[test]
fn who_has_the_same_endpoint_keeps_its_connection() {
    let [one, two, three] = bases();
    let phases = [
        moved("two", 0.3, json!({"rw": urls(&[&one, &two])}), json!({"concurrency": 6, "mix": {"write": 1}})),
        moved("three", 0.3, json!({"rw": urls(&[&one, &two, &three])}), json!({})),
    ];
    let story = run(&spec(&one.url, phases));
    agree(&story, &[&one, &two, &three]);
    // Sessions 0 to 5 have 0 1 0 1 0 1 and then 0 1 2 0 1 2: the second node is left by 3 and 5, the first by 2 and 4.
    assert_eq!([&one, &two, &three].map(SimBase::connections), [3 + 1, 3 + 1, 2]);
}

#[test]
fn chance_deals_anew_and_the_first_is_the_first() {
    let count = |balance| {
        let [one, two, three] = bases();
        let phases = [
            phase("one", 0.2, json!({"concurrency": 300, "mix": {"write": 1}})),
            moved("three", 0.4, json!({"rw": urls(&[&two, &one, &three])}), json!({})),
        ];
        let story = run(&LoadSpec { balance, ..spec(&one.url, phases) });
        agree(&story, &[&one, &two, &three]);
        [&one, &two, &three].map(SimBase::connections)
    };
    assert_eq!(count(Balance::First), [300, 300, 0]);
    let [kept, second, third] = count(Balance::Random);
    assert_eq!(kept, 300, "who draws the same again stays");
    for dealt in [second, third] {
        check::binomial("sessions of an endpoint", dealt, 300, 1.0 / 3.0);
    }
}

#[test]
fn sessions_that_wait_think_or_rest_go_as_well() {
    let [rw, ro] = bases();
    let mut first = readers(8);
    first["think"] = json!({"law": "constant", "ms": 3_600_000.0});
    let phases = [
        phase("thinking", 0.3, first),
        moved("still thinking", 0.3, json!({"ro": urls(&[&ro]), "reads": "ro"}), json!({})),
        phase("few", 0.3, json!({"concurrency": 3, "think": {"law": "none"}})),
        moved("rest", 0.3, json!({"ro": []}), json!({})),
        phase("open", 0.3, json!({"rate": 200})),
        moved("open elsewhere", 0.3, json!({"ro": urls(&[&ro])}), json!({})),
    ];
    let story = run(&spec(&rw.url, phases));
    agree(&story, &[&rw, &ro]);
    check::within("arrivals", story.all().counted(|of| of.arrivals) as f64, 120.0, 0.001);
    let gauge = |name: &str| *story.phase(name).gauge(|of| of.connected).last().unwrap();
    assert_eq!((gauge("still thinking"), ro.connections() >= 8), (8, true), "those that think have gone");
    // Five are not wanted: they let go, and do not come back.
    assert_eq!((gauge("few"), gauge("rest")), (8, 3));
    let reads = role_of_reads(&story, "open elsewhere");
    assert!(reads.iter().any(|(role, count)| *role == "ro" && *count > 40), "{reads:?}");
}

#[test]
fn an_endpoint_that_cannot_be_reached_is_left_when_it_goes() {
    let (rw, dead) = (SimBase::new("latency=constant(2ms)"), SimBase::new("outage=0s+1000s"));
    let phases = [
        phase("before", 0.2, readers(4)),
        moved("dead", 0.4, json!({"ro": urls(&[&dead]), "reads": "ro"}), json!({})),
        moved("back", 2.5, json!({"ro": []}), json!({})),
    ];
    let story = run(&spec(&rw.url, phases));
    assert_eq!(rw.commits(), story.all().committed());
    assert!(story.phase("dead").counted(|of| of.refused) > 4);
    assert!(story.phase("dead").committed() <= 4, "only who was in flight");
    assert!(story.phase("back").committed() > 400, "{}", story.phase("back").committed());
    assert!(story.intervals.iter().all(|interval| interval.tenants[0].reached.is_none()));
}

#[test]
fn endpoints_change_by_hand_and_a_wrong_change_changes_nothing() {
    let [rw, ro] = bases();
    let spec = spec(&rw.url, [open_phase("all", readers(4))]);
    let refused = |run: &Run, endpoints: Value, what: &str| {
        let change = PhaseSpec {
            loads: [("*".to_owned(), load(json!({"endpoints": endpoints})))].into(),
            ..open_phase("", json!({}))
        };
        let error = run.change(change, false).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, EngineError::Input(_)) && said.contains(what), "{error}");
        assert!(!said.contains("hunter2"), "{error}");
    };
    let story = run_with(&spec, |run| {
        refused(run, json!({"rw": []}), "at least one URL");
        refused(run, json!({"ro": ["postgresql://me:hunter2@localhost/x"]}), "speaks postgres");
        refused(run, json!({"ro": ["gopher://x"]}), "gopher");
        wait_until(run, 0.2);
        run.change(open_phase("", json!({"endpoints": {"ro": urls(&[&ro]), "reads": "ro"}})), false).unwrap();
        wait_until(run, 0.6);
        run.stop();
    });
    agree(&story, &[&rw, &ro]);
    assert_eq!((rw.connections(), ro.connections()), (4, 4));
    assert_eq!(story.phase_names(), ["all", "drain"]);
}

#[test]
fn who_is_in_flight_where_the_load_has_left_is_told() {
    let (slow, rw) = (SimBase::new("latency=constant(600ms)"), SimBase::new("latency=constant(2ms)"));
    let phases = [
        moved("there", 0.3, json!({"ro": urls(&[&slow]), "reads": "ro"}), readers(4)),
        moved("away", 0.7, json!({"ro": []}), json!({})),
    ];
    let story = run(&LoadSpec { threads: 2, ..spec(&rw.url, phases) });
    agree(&story, &[&slow, &rw]);
    let moving = |name: &str| story.phase(name).gauge(|of| of.moving);
    assert!(moving("there").iter().all(|count| *count == 0), "{:?}", moving("there"));
    let away = moving("away");
    assert_eq!((away[0], away.last()), (4, Some(&0)), "{away:?}");
    let committed_there = |interval: &Interval| {
        interval.series.iter().any(|series| series.name.role.name() == "ro" && series.committed > 0)
    };
    let gone = away.iter().position(|count| *count == 0).unwrap();
    let last = story.phase("away").0.iter().rposition(|interval| committed_there(interval)).unwrap();
    assert!(last <= gone, "commits in interval {last} where all had gone by the end of {gone}");
}
