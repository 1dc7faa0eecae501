//! Roles, balancing and tenants: who runs where.

use crate::support::{SimBase, Story, check, load, phase, run, spec, tenant};
use nephoscope_engine::LoadSpec;
use nephoscope_engine::spec::{Balance, Reads, Role};
use serde_json::json;

fn urls(bases: &[SimBase]) -> Vec<String> {
    bases.iter().map(|base| base.url.clone()).collect()
}

fn connections(bases: &[SimBase]) -> Vec<u64> {
    bases.iter().map(SimBase::connections).collect()
}

fn three() -> [SimBase; 3] {
    [(); 3].map(|()| SimBase::new("latency=constant(2ms)"))
}

/// Twelve writers over three endpoints.
fn balanced(bases: &[SimBase], balance: Balance, threads: usize) -> LoadSpec {
    let mut spec = spec(&bases[0].url, [phase("all", 0.3, json!({"concurrency": 12, "mix": {"write": 1}}))]);
    (spec.balance, spec.threads, spec.tenants[0].rw) = (balance, threads, urls(bases));
    spec
}

#[test]
fn sessions_are_dealt_to_the_endpoints_by_the_stated_rule() {
    for threads in 1..=3 {
        let bases = three();
        let story = run(&balanced(&bases, Balance::RoundRobin, threads));
        assert_eq!(connections(&bases), [4, 4, 4]);
        assert_eq!(bases.iter().map(SimBase::commits).sum::<u64>(), story.all().committed());
        assert!(bases.iter().all(|base| base.commits() > 0));

        let bases = three();
        run(&balanced(&bases, Balance::First, threads));
        assert_eq!(connections(&bases), [12, 0, 0]);
    }
}

#[test]
fn chance_deals_sessions_as_the_seed_says() {
    let dealt = |seed: u64, sessions: usize| {
        let bases = three();
        let mut spec = balanced(&bases, Balance::Random, 2);
        spec.seed = seed;
        spec.phases[0]
            .loads
            .insert("*".to_owned(), load(json!({"concurrency": sessions, "mix": {"write": 1}})));
        run(&spec);
        connections(&bases)
    };
    let first = dealt(7, 300);
    assert_eq!(first, dealt(7, 300));
    assert_eq!(first.iter().sum::<u64>(), 300);
    for count in &first {
        check::binomial("sessions of an endpoint", *count, 300, 1.0 / 3.0);
    }
    assert_ne!(first, dealt(8, 300));
}

#[test]
fn a_session_whose_endpoint_is_gone_goes_to_the_next() {
    let bases =
        [SimBase::new("latency=constant(2ms)&outage=300ms+1000s"), SimBase::new("latency=constant(2ms)")];
    let mut spec = balanced(&bases, Balance::First, 2);
    spec.phases[0].seconds = Some(1.2);
    let story = run(&spec);
    assert_eq!(connections(&bases), [12, 12]);
    assert!(bases[1].commits() > 100);
    assert_eq!(bases[0].commits() + bases[1].commits(), story.all().committed());
    let all = story.all();
    assert_eq!(
        [all.counted(|t| t.lost), all.counted(|t| t.restored), all.counted(|t| t.refused)],
        [12, 12, 0]
    );

    // At the start, too.
    let bases = [SimBase::new("outage=0s+1000s"), SimBase::new("latency=constant(2ms)")];
    run(&balanced(&bases, Balance::RoundRobin, 1));
    assert_eq!(connections(&bases), [0, 12]);
}

#[test]
fn what_only_reads_goes_to_ro_and_the_rest_to_rw() {
    let (rw, ro) = (three(), three());
    let mut spec = spec(&rw[0].url, [phase("all", 0.5, json!({"concurrency": 6, "mix": "half"}))]);
    (spec.tenants[0].rw, spec.tenants[0].ro, spec.tenants[0].reads) = (urls(&rw), urls(&ro), Reads::Ro);
    spec.threads = 2;
    let story = run(&spec);
    let all = story.all();
    let commits = |bases: &[SimBase]| bases.iter().map(SimBase::commits).sum::<u64>();
    assert_eq!((commits(&rw), commits(&ro)), (all.committed_of("write"), all.committed_of("read")));
    assert!(commits(&ro) > 50 && commits(&rw) > 50);
    assert_eq!(
        (connections(&rw), connections(&ro)),
        (vec![2; 3], vec![2; 3]),
        "one connection for each role"
    );
    for series in story.intervals.iter().flat_map(|interval| &interval.series) {
        let role = if series.name.transaction == "read" { Role::Ro } else { Role::Rw };
        assert_eq!(series.name.role, role);
    }
}

#[test]
fn reads_stay_on_rw_where_the_tenant_says_so() {
    let (rw, ro) = (SimBase::new("latency=constant(2ms)"), SimBase::new("latency=constant(2ms)"));
    let mut spec = spec(&rw.url, [phase("all", 0.3, json!({"concurrency": 4, "mix": "half"}))]);
    spec.tenants[0].ro = vec![ro.url.clone()];
    let story = run(&spec);
    assert_eq!((rw.commits(), ro.commits(), ro.connections()), (story.all().committed(), 0, 0));
}

#[test]
fn reads_are_spread_over_all_endpoints_by_weight() {
    for (weight, dealt) in [(1.0, [4, 4, 4]), (0.5, [2, 5, 5]), (4.0, [8, 2, 2])] {
        for (mix, writers) in [(json!({"read": 1}), dealt[0]), (json!("half"), 12)] {
            let bases = three();
            let phases = [phase("all", 0.4, json!({"concurrency": 12, "mix": mix}))];
            let mut spec = spec(&bases[0].url, phases);
            spec.threads = 2;
            let of = &mut spec.tenants[0];
            (of.ro, of.reads, of.writer_weight) = (urls(&bases[1..]), Reads::All, weight);
            let story = run(&spec);
            assert_eq!(connections(&bases), [writers, dealt[1], dealt[2]], "weight {weight}");
            let commits: Vec<_> = bases.iter().map(SimBase::commits).collect();
            let reads = |role| {
                story.all().sum(|series| {
                    if (series.name.role, &*series.name.transaction) == (role, "read") {
                        series.committed
                    } else {
                        0
                    }
                })
            };
            assert_eq!(reads(Role::Ro), commits[1] + commits[2]);
            assert_eq!(reads(Role::Rw) + story.all().committed_of("write"), commits[0]);
            assert!(reads(Role::Rw) > 0 && commits.iter().all(|commits| *commits > 0));
        }
    }
}

#[test]
fn where_reads_are_spread_the_writer_serves_alone_until_a_node_comes() {
    let (rw, ro) = (SimBase::new("latency=constant(2ms)"), SimBase::new("latency=constant(2ms)"));
    let to = |urls: &[&String]| json!({"endpoints": {"ro": urls}});
    let mut spec = spec(
        &rw.url,
        [
            phase("alone", 0.3, json!({"concurrency": 8, "mix": {"read": 1}})),
            phase("two", 0.4, to(&[&ro.url])),
            phase("alone again", 0.3, to(&[])),
        ],
    );
    spec.tenants[0].reads = Reads::All;
    let story = run(&spec);
    let reads = |name: &str, role| {
        story.phase(name).sum(|series| if series.name.role == role { series.committed } else { 0 })
    };
    assert_eq!((reads("alone", Role::Ro), ro.connections()), (0, 4));
    assert!(reads("alone", Role::Rw) > 100);
    // Who was at it when it changed ends there.
    let [at_rw, at_ro] = [Role::Rw, Role::Ro].map(|role| reads("two", role));
    assert!(at_rw.abs_diff(at_ro) <= (at_rw + at_ro) / 5, "{at_rw} and {at_ro}");
    assert!(reads("alone again", Role::Ro) <= 4 && reads("alone again", Role::Rw) > 100);
}

#[test]
fn a_role_is_connected_to_when_the_mix_comes_to_need_it() {
    let (rw, ro) = (SimBase::new("latency=constant(2ms)"), SimBase::new("latency=constant(2ms)"));
    let phases = [
        phase("writes", 0.3, json!({"concurrency": 4, "mix": {"write": 1}})),
        phase("reads", 0.3, json!({"mix": {"read": 1}})),
    ];
    let mut spec = spec(&rw.url, phases);
    (spec.tenants[0].ro, spec.tenants[0].reads) = (vec![ro.url.clone()], Reads::Ro);
    let story = run(&spec);
    assert_eq!((rw.connections(), ro.connections()), (4, 4));
    assert_eq!(ro.commits(), story.all().committed_of("read"));
    assert_eq!(story.phase("writes").gauge(|tenant| tenant.connected).last(), Some(&4));
    assert_eq!(story.phase("reads").gauge(|tenant| tenant.connected).last(), Some(&8));
    assert_eq!(story.all().counted(|tenant| tenant.lost + tenant.restored), 0);
}

fn of_tenant(story: &Story, tenant: &str) -> u64 {
    story.all().sum(|series| if series.name.tenant == tenant { series.committed } else { 0 })
}

#[test]
fn tenants_have_their_own_endpoints_loads_and_accounts() {
    let bases = three();
    let mut first = phase("first", 0.5, json!({"rate": 60, "mix": {"write": 1}}));
    first.loads.insert("blue".to_owned(), load(json!({"rate": 200})));
    first.loads.insert("green".to_owned(), load(json!({"concurrency": 2, "mix": {"transfer": 1}})));
    let mut second = phase("second", 0.5, json!({}));
    second.loads.insert("blue".to_owned(), load(json!({"rate": 0})));
    let mut spec = spec("", [first, second]);
    spec.tenants =
        ["red", "blue", "green"].iter().zip(&bases).map(|(name, base)| tenant(name, &base.url)).collect();
    spec.threads = 2;
    let story = run(&spec);
    let arrivals =
        |tenant: usize| story.intervals.iter().map(|interval| interval.tenants[tenant].arrivals).sum::<u64>();
    assert_eq!([0, 1, 2].map(arrivals), [60, 100, 0]);
    assert!(of_tenant(&story, "red") > 40 && of_tenant(&story, "blue") > 80);
    for (name, base) in ["red", "blue", "green"].iter().zip(&bases) {
        assert_eq!(base.commits(), of_tenant(&story, name), "{name}");
        assert_eq!(story.totals().tallies[*name]["written"], (base.commits() as f64, 0.0), "{name}");
    }
    assert_eq!(bases[2].connections(), 2);
    for interval in &story.phase("second").0 {
        let arrivals: Vec<u64> = interval.tenants.iter().map(|tenant| tenant.arrivals).collect();
        assert_eq!(arrivals, [6, 0, 0]);
    }
}
