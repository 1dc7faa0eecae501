//! A wrong load is refused before anything is touched, with one error that says what, where, and what is allowed.

use crate::support::{SimBase, load, phase, spec, tenant};
use nephoscope_engine::spec::{LoadChange, Reads, RetrySpec, TenantSpec};
use nephoscope_engine::{EngineError, LoadSpec, Run};
use serde_json::json;

type Spoil = fn(&mut LoadSpec);

fn stream(name: &str, of: &str) -> TenantSpec {
    TenantSpec { stream_of: Some(of.to_owned()), ..tenant(name, "sim://") }
}

fn spoil_load(spec: &mut LoadSpec, change: serde_json::Value) {
    spec.phases[0].loads.insert("*".to_owned(), load(change));
}

const WRONG: &[(&str, Spoil)] = &[
    ("load.threads is 0; it must be from 1 to 256", |spec| spec.threads = 0),
    ("load.cpus has 1024; it must be from 0 to 1023", |spec| spec.cpus = vec![0, 1024]),
    ("load.interval_ms is 49; it must be from 50", |spec| spec.interval_ms = 49),
    ("load.connect_timeout_ms is 0", |spec| spec.connect_timeout_ms = 0),
    ("load.statement_timeout_ms is 0", |spec| spec.statement_timeout_ms = 0),
    ("load.drain_timeout_ms is 99999999", |spec| spec.drain_timeout_ms = 99_999_999),
    ("load.retry.attempts is 0; it must be from 1", |spec| spec.retry.attempts = 0),
    ("load.retry.backoff_ms is -1", |spec| spec.retry.backoff_ms = -1.0),
    ("load.retry.backoff_max_ms is NaN", |spec| spec.retry.backoff_max_ms = f64::NAN),
    ("phase \"all\": load.retry.attempts is 2000; it must be from 1 to 1000", |spec| {
        spec.phases[0].retry = Some(RetrySpec { attempts: 2000, ..spec.retry });
    }),
    ("allowed are simple, extended, prepared", |spec| spec.statement_mode = "binary".into()),
    ("at least one tenant and one phase", |spec| spec.tenants.clear()),
    ("at least one tenant and one phase", |spec| spec.phases.clear()),
    ("sessions must be from 1", |spec| spec.tenants[0].sessions = 0),
    ("\"default\" is not unique", |spec| spec.tenants.push(tenant("default", "sim://"))),
    ("stream reports of tenant \"nobody\": no tenant before it has that name", |spec| {
        spec.tenants.push(stream("reports", "nobody"));
    }),
    ("stream more of tenant \"reports\": no tenant before it has that name", |spec| {
        spec.tenants.extend([stream("reports", "default"), stream("more", "reports")]);
    }),
    ("stream reports of tenant \"default\": its workload is not the tenant's", |spec| {
        spec.tenants.push(stream("reports", "default"));
        spec.tenants[1].workload.scale = 2.0;
    }),
    ("tenant default has no rw endpoint", |spec| spec.tenants[0].rw.clear()),
    ("reads go to ro, and it has no ro endpoint", |spec| spec.tenants[0].reads = Reads::Ro),
    ("writer_weight is 0; it must be above 0", |spec| spec.tenants[0].writer_weight = 0.0),
    ("sim's latency cannot be \"1\"", |spec| spec.tenants[0].rw[0] = "sim://?latency=1".into()),
    ("workload.lua", |spec| spec.tenants[0].workload.folder = "/nowhere".into()),
    ("no option \"nothing\"", |spec| {
        spec.tenants[0].workload.options.insert("nothing".to_owned(), json!(1));
    }),
    ("workload.scale is 0", |spec| spec.tenants[0].workload.scale = 0.0),
    ("phase \"all\": 0 seconds is no length", |spec| spec.phases[0].seconds = Some(0.0)),
    ("phase \"all\" has no seconds, and another follows", |spec| {
        spec.phases.push(phase("next", 1.0, json!({})));
        spec.phases[0].seconds = None;
    }),
    ("phase \"all\": there is no tenant \"someone\"; they are default", |spec| {
        spec.phases[0].loads.insert("someone".to_owned(), LoadChange::default());
    }),
    ("concurrency and rate exclude each other", |spec| {
        spoil_load(spec, json!({"rate": 1, "concurrency": 1, "mix": "half"}));
    }),
    ("the load has no mix", |spec| spoil_load(spec, json!({"rate": 1}))),
    ("rate is 1000000000; it must be from 0 to 100000000", |spec| {
        spoil_load(spec, json!({"rate": 1e9, "mix": "half"}));
    }),
    ("concurrency is 200000; it must be from 0 to 100000", |spec| {
        spoil_load(spec, json!({"concurrency": 200_000, "mix": "half"}));
    }),
    ("arrivals belong to a rate", |spec| {
        spoil_load(spec, json!({"concurrency": 1, "arrivals": "poisson", "mix": "half"}));
    }),
    ("think belongs to a concurrency", |spec| {
        spoil_load(spec, json!({"rate": 1, "think": {"law": "constant", "ms": 1}, "mix": "half"}));
    }),
    ("think is -1 ms", |spec| {
        spoil_load(spec, json!({"concurrency": 1, "think": {"law": "exponential", "ms": -1}, "mix": "half"}));
    }),
    ("lab has no mix \"whole\"; its mixes are half", |spec| {
        spoil_load(spec, json!({"rate": 1, "mix": "whole"}));
    }),
    ("no transaction is called \"reed\"; they are write, read", |spec| {
        spoil_load(spec, json!({"rate": 1, "mix": {"reed": 1}}));
    }),
    ("the weight of read is -1", |spec| spoil_load(spec, json!({"rate": 1, "mix": {"read": -1}}))),
    ("no transaction has a weight above 0", |spec| spoil_load(spec, json!({"rate": 1, "mix": {"read": 0}}))),
    ("access.theta is 11; it must be from 0 to 10", |spec| {
        spoil_load(
            spec,
            json!({"rate": 1, "mix": "half", "access": {"distribution": "zipfian", "theta": 11}}),
        );
    }),
    ("access.keys is 2; it must be from 0 to 1", |spec| {
        let access = json!({"distribution": "hotspot", "keys": 2, "accesses": 0.5});
        spoil_load(spec, json!({"rate": 1, "mix": "half", "access": access}));
    }),
    ("access.k is 0", |spec| {
        spoil_load(spec, json!({"rate": 1, "mix": "half", "access": {"distribution": "latest", "k": 0}}));
    }),
];

#[test]
fn each_is_one_error_that_names_the_place() {
    let base = SimBase::new("latency=constant(1ms)");
    for (says, spoil) in WRONG {
        let mut spec = spec(&base.url, [phase("all", 1.0, json!({"rate": 1, "mix": "half"}))]);
        spoil(&mut spec);
        let error = Run::start(&spec).err().unwrap_or_else(|| panic!("not refused: {says}"));
        let message = error.to_string();
        assert!(message.contains(says), "{message:?} does not say {says:?}");
        assert!(!message.contains('\n'), "one line: {message:?}");
        assert!(
            !matches!(error, EngineError::Failed(_)),
            "{message}: the input is wrong, no endpoint has failed"
        );
    }
    assert_eq!(base.connections(), 0, "nothing was touched");
}

#[test]
fn words_that_a_load_does_not_have_are_refused_when_it_is_read() {
    for wrong in [
        json!({"rate": {"from": 1, "to": 2, "secondes": 3}}),
        json!({"rat": 1}),
        json!({"think": {"law": "normal", "ms": 1}}),
        json!({"think": {"law": "constant", "ms": 1, "s": 1}}),
        json!({"arrivals": "bursty"}),
        json!({"access": {"distribution": "latest", "theta": 1}}),
    ] {
        assert!(serde_json::from_value::<LoadChange>(wrong.clone()).is_err(), "{wrong}");
    }
}
