//! Probes of a real PostgreSQL, with and without a fault planted on the way to it. Their exact truth is tested in
//! simulated time; here it is that sockets, servers and replicas behave as that takes them to. Where PostgreSQL is
//! not installed the tests say so and pass.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "../../drivers/tests/support/mod.rs"]
mod servers;
mod support;

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_drivers::postgres::DIALECT;
use nephoscope_drivers::{ErrorClass, Settings, open};
use nephoscope_engine::EngineError;
use nephoscope_engine::probes::{Kind, Outcome, Probes, ProbesSpec, Sample};
use nephoscope_faults::{Accept, Faults, Planned, Proxy, target};
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};
use serde_json::{Value, json};
use servers::postgres::{Plan, Server, programs};
use support::{alone, measured};

const ACCESS: &str = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 trust\n";
/// Between two probes, in milliseconds.
const PERIOD: f64 = 5.0;
/// By how much a busy machine may be late, in milliseconds; a planted fault is twice as long or more.
const SLACK: f64 = 250.0;

fn url(port: u16) -> String {
    format!("postgresql://postgres@127.0.0.1:{port}/postgres")
}

/// What a statement returns, once the server takes connections.
fn ask(port: u16, sql: &str) -> Vec<Vec<Option<String>>> {
    let driver = open(&url(port), &Settings::default()).unwrap();
    let limit = Instant::now() + Duration::from_mins(1);
    loop {
        match driver.admin() {
            Ok(mut admin) => return admin.query(sql).unwrap().rows,
            Err(error) => assert!(Instant::now() < limit, "{error}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn set_up(port: u16) {
    ask(port, &format!("{}; {}; {}1)", DIALECT.probes.create, DIALECT.probes.empty, DIALECT.probes.stand));
}

/// A server with the tables of probes.
fn started() -> Option<Server> {
    let plan = Plan { access: ACCESS, settings: &[("max_connections", "100")], ..Plan::default() };
    let server = Server::start(&programs()?, plan);
    set_up(server.port);
    Some(server)
}

/// A replica, which replays commits so much later.
fn replica(primary: &Server, delay: &str) -> Server {
    let settings = [("max_connections", "100"), ("recovery_min_apply_delay", delay)];
    let plan = Plan { access: ACCESS, settings: &settings, standby_of: Some(primary), ..Plan::default() };
    let server = Server::start(&programs().unwrap(), plan);
    let limit = Instant::now() + Duration::from_mins(1);
    let wanted = ask(primary.port, DIALECT.probes.read);
    while ask(server.port, DIALECT.probes.read) != wanted {
        assert!(Instant::now() < limit, "{}", server.log());
        thread::sleep(Duration::from_millis(50));
    }
    server
}

fn spec(endpoints: &[(&str, String)], what: &Value) -> ProbesSpec {
    let endpoint = |(role, url): &(&str, String)| json!({"role": role, "node": role, "url": url});
    let mut spec = json!({"origin_ns": clock::now()});
    spec["endpoints"] = endpoints.iter().map(endpoint).collect();
    spec.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

/// Lets probes go on for a time, while something is done, and gives all samples.
fn probe(spec: &ProbesSpec, time: Duration, act: impl FnOnce()) -> Vec<Sample> {
    let probes = Probes::start(spec).unwrap();
    let end = Instant::now() + time;
    act();
    let mut samples = Vec::new();
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        samples.extend(probes.next(left).unwrap().into_iter().flat_map(|found| found.samples));
    }
    probes.stop();
    while let Some(rest) = probes.next(Duration::ZERO).unwrap() {
        samples.extend(rest.samples);
    }
    samples.sort_by_key(|sample| (sample.endpoint, sample.number));
    samples
}

fn milliseconds(time: Nanos) -> f64 {
    time as f64 / MILLISECOND as f64
}

fn of(samples: &[Sample], endpoint: usize) -> Vec<Sample> {
    let samples: Vec<Sample> = samples.iter().copied().filter(|sample| sample.endpoint == endpoint).collect();
    let numbers = samples.iter().map(|sample| sample.number);
    assert!(numbers.eq(0..samples.len() as u64), "each probe has its sample");
    samples
}

/// The longest time between two successes, by when they were due.
fn gap(samples: &[Sample]) -> f64 {
    let ok: Vec<Nanos> =
        samples.iter().filter(|sample| sample.outcome == Outcome::Ok).map(|sample| sample.time).collect();
    milliseconds(ok.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap())
}

/// An outage that is planted on the way to a server, and the gap that it must be read as.
fn outage(server: &Server, faults: &Faults, cut: bool, length: Nanos) {
    let proxy = Proxy::start(None, target(&format!("127.0.0.1:{}", server.port)).unwrap()).unwrap();
    let both = [("rw", url(proxy.address().port())), ("ro", url(proxy.address().port()))];
    set_up(server.port);
    let spec = spec(&both, &json!({"availability": {}}));
    let begin = clock::now() + SECOND;
    let samples = probe(&spec, Duration::from_millis(3500), || {
        let over = Planned { at: begin + length, faults: Faults::default() };
        proxy.schedule(vec![Planned { at: begin, faults: faults.clone() }, over]).unwrap();
        // Behind the fault: who is cut before it would come back at once.
        thread::sleep(Duration::from_nanos((begin + 5 * MILLISECOND).saturating_sub(clock::now())));
        if cut {
            proxy.cut_all().unwrap();
        }
    });
    let length = milliseconds(length);
    for endpoint in [0, 1] {
        let samples = of(&samples, endpoint);
        let gap = gap(&samples);
        // On a quiet machine it is within 10 ms and the probe interval.
        assert!((length - SLACK..length + 10.0 + PERIOD + SLACK).contains(&gap), "{gap} ms for {length} ms");
        assert!(samples.last().unwrap().outcome == Outcome::Ok, "it is back");
    }
    let written = ask(server.port, DIALECT.probes.written);
    let number = |row: &Vec<Option<String>>| row[1].as_deref().unwrap().parse::<u64>().unwrap();
    let written: BTreeSet<u64> = written.iter().map(number).collect();
    for sample in of(&samples, 0) {
        let there = written.contains(&sample.number);
        assert!(there || sample.outcome != Outcome::Ok, "{sample:?} was acknowledged");
        assert!(!there || sample.outcome != Outcome::Missing, "{sample:?} was never sent");
    }
}

#[test]
fn outages_are_read_as_long_as_they_were() {
    let _alone = alone();
    let Some(server) = started() else { return };
    measured(|| outage(&server, &Faults::black_hole(), false, SECOND));
    let refuse = Faults { accept: Accept::Refuse, ..Faults::default() };
    measured(|| outage(&server, &refuse, true, SECOND / 2));
}

#[test]
fn a_server_that_serves_fails_no_probe_and_keeps_what_it_acknowledged() {
    let _alone = alone();
    measured(|| {
        let Some(server) = started() else { return };
        let spec = spec(&[("rw", url(server.port)), ("ro", url(server.port))], &json!({"availability": {}}));
        let samples = probe(&spec, Duration::from_secs(3), || ());
        for endpoint in [0, 1] {
            let samples = of(&samples, endpoint);
            let ok = samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count();
            let failed = samples.iter().filter(|one| !matches!(one.outcome, Outcome::Ok | Outcome::Missing));
            assert_eq!(failed.collect::<Vec<_>>(), Vec::<&Sample>::new(), "none has failed");
            // Where the server had no processor for a while, probes may have found no lane.
            assert!(samples.len() > 500 && ok > samples.len() * 3 / 4, "{ok} of {}", samples.len());
            for pair in samples.windows(2) {
                assert_eq!(pair[1].time - pair[0].time, 5 * MILLISECOND, "the schedule is kept");
            }
        }
        let acknowledged = of(&samples, 0).iter().filter(|sample| sample.outcome == Outcome::Ok).count();
        assert_eq!(
            ask(server.port, DIALECT.probes.written).len(),
            acknowledged,
            "what was acknowledged is there"
        );
    });
}

/// Samples of the lag of a replica.
fn lag(primary: &Server, replica: &Server) -> Vec<Sample> {
    set_up(primary.port);
    let endpoints = [("rw", url(primary.port)), ("ro", url(replica.port))];
    probe(&spec(&endpoints, &json!({"lag": {}})), Duration::from_secs(4), || ())
}

/// Medians of the midpoints and of the half-widths, in milliseconds.
fn medians(samples: &[Sample]) -> (f64, f64) {
    let median = |of: fn(Nanos, Nanos) -> f64| {
        let ok = samples.iter().filter(|sample| sample.outcome == Outcome::Ok);
        let mut values: Vec<f64> =
            ok.map(|sample| of(sample.lower.unwrap(), sample.upper.unwrap())).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2] / MILLISECOND as f64
    };
    (median(|low, high| low.midpoint(high) as f64), median(|low, high| (high - low) as f64 / 2.0))
}

#[test]
fn a_delay_of_a_real_replica_is_read_back() {
    let _alone = alone();
    let Some(primary) = started() else { return };
    let (at_once, later) = (replica(&primary, "0"), replica(&primary, "30ms"));
    measured(|| {
        let (without, with) = (lag(&primary, &at_once), lag(&primary, &later));
        for samples in [&without, &with] {
            assert!(samples.len() > 30, "{} markers", samples.len());
            assert!(samples.iter().all(|sample| sample.outcome == Outcome::Ok));
            let kinds: BTreeSet<&str> = samples.iter().map(|sample| sample.kind.name()).collect();
            assert_eq!(kinds, BTreeSet::from([Kind::Insert, Kind::Update, Kind::Delete].map(Kind::name)));
        }
        let ((own, half), (delayed, _)) = (medians(&without), medians(&with));
        eprintln!("lag p50 {own:.3} ms, half-width p50 {half:.3} ms; with a delay of 30 ms {delayed:.3} ms");
        assert!((delayed - own - 30.0).abs() < 10.0, "{delayed} ms with 30 ms of delay, {own} ms without");
        assert!(half < 5.0, "{half} ms");
    });
}

#[test]
fn probes_begin_where_a_connection_takes_longer_than_a_probe_may() {
    let _alone = alone();
    measured(|| {
        let Some(server) = started() else { return };
        let replica = replica(&server, "0");
        let slow = r#"{"to_client": {"delay": {"law": "constant", "ms": 400}}}"#;
        let before = |port: u16| {
            let proxy = Proxy::start(None, target(&format!("127.0.0.1:{port}")).unwrap()).unwrap();
            proxy.set(Faults::from_json(slow).unwrap()).unwrap();
            proxy
        };
        let proxies = [before(server.port), before(replica.port)];
        let [rw, ro] = &proxies;
        let endpoints = [("rw", url(rw.address().port())), ("ro", url(ro.address().port()))];
        let limits = json!({"availability": {"limit_ms": 200, "lanes": 2}, "lag": {"poll_limit_ms": 200}});
        let samples = probe(&spec(&endpoints, &limits), Duration::from_secs(3), || {
            thread::sleep(Duration::from_millis(500));
            for proxy in &proxies {
                proxy.set(Faults::default()).unwrap();
            }
        });
        let probes: Vec<Sample> = samples.into_iter().filter(|one| one.kind == Kind::Read).collect();
        let failed = probes.iter().any(|sample| matches!(sample.outcome, Outcome::Failed(_)));
        assert!(failed, "a probe has its own limit");
        assert!(probes.last().unwrap().outcome == Outcome::Ok, "then it serves");
    });
}

#[test]
fn probes_that_cannot_begin_say_why() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = |endpoints: &[(&str, String)], what: Value| match Probes::start(&spec(endpoints, &what)) {
        Err(EngineError::Input(message)) => format!("input: {message}"),
        Err(EngineError::Failed(message)) => format!("failed: {message}"),
        Ok(_) => "nothing".to_owned(),
    };
    let sim = || ("rw", "sim://".to_owned());
    for (endpoints, what, message) in [
        (vec![("rw", url(port))], json!({"availability": {}}), "failed: probes of rw: "),
        (vec![sim()], json!({"lag": {}}), "input: probes.lag needs an endpoint that takes writes"),
        (vec![sim()], json!({}), "input: probes need endpoints, and availability, lag or consistency"),
        (vec![], json!({"availability": {}}), "input: probes need endpoints"),
        (
            vec![sim()],
            json!({"availability": {"rate": 0.0}}),
            "input: probes.availability.rate is 0; it must be",
        ),
        (vec![("rw", "noop://".to_owned())], json!({"availability": {}}), "input: probes need a database"),
        (vec![("rw", "oops://".to_owned())], json!({"availability": {}}), "input: url: the scheme"),
    ] {
        let said = refused(&endpoints, what);
        assert!(said.starts_with(message), "{said}");
    }
}

#[test]
fn an_error_of_the_endpoint_is_told_by_its_class() {
    let spec =
        spec(&[("rw", "sim://?error=read_only:1".to_owned())], &json!({"availability": {"rate": 100.0}}));
    let samples = probe(&spec, Duration::from_millis(500), || ());
    assert!(samples.len() > 20);
    assert!(samples.iter().all(|sample| sample.outcome == Outcome::Failed(ErrorClass::ReadOnly)));
}
