//! Records as JSON: what leaves the engine for the control plane, as `docs/run-directory.md` names it.

use std::collections::BTreeMap;

use nephoscope_drivers::ErrorClass;
use nephoscope_runtime::Nanos;
use serde_json::{Map, Value, json};

use crate::histogram::{self, WindowHistogram};
use crate::run::collect::{ErrorEvent, Record};
use crate::run::history::History;
use crate::run::intake::{Ending, Totals};
use crate::run::interval::{Interval, Series, TenantInterval};

fn seconds(time: Nanos) -> f64 {
    time as f64 / 1e9
}

fn milliseconds(time: f64) -> f64 {
    time / 1e6
}

fn micros(time: Nanos) -> f64 {
    time as f64 / 1e3
}

/// A record with its kind under `record`.
#[must_use]
pub fn record(record: &Record) -> Value {
    match record {
        Record::Phase { at, number, spec } => json!({
            "record": "phase", "time_s": seconds(*at), "phase": number, "name": spec.name,
            "kind": spec.kind.name(), "labels": spec.labels,
        }),
        Record::Error(event) => error(event),
        Record::Interval(of) => interval(of),
        Record::History(of) => history(of),
        Record::Gap(of) => json!({
            "record": "gap", "time_s": seconds(of.at), "stopped_s": seconds(of.stopped),
            "suspended_s": seconds(of.suspended),
        }),
        Record::End(of) => ending(of),
    }
}

fn history(of: &History) -> Value {
    let mut found = nephoscope_histories::json::summary(&of.summary, of.looked);
    found["record"] = "history".into();
    found["tenant"] = of.tenant.clone().into();
    found["from_s"] = seconds(of.from).into();
    found["to_s"] = seconds(of.to).into();
    found["file"] = of.file.clone().into();
    found["broken"] = of.broken.clone().into();
    found["unwritten"] = of.unwritten.clone().into();
    found
}

fn error(event: &ErrorEvent) -> Value {
    json!({
        "record": "error", "time_s": seconds(event.at), "tenant": event.name.tenant,
        "role": event.name.role.name(), "transaction": event.name.transaction, "class": event.class.name(),
        "code": event.code, "message": event.message, "outcome_unknown": event.outcome_unknown,
        "count": event.count,
    })
}

fn interval(of: &Interval) -> Value {
    let lag = of.lag.as_ref().map(|lag| {
        json!({
            "p50_us": micros(lag.value_at_quantile(0.5)), "p99_us": micros(lag.value_at_quantile(0.99)),
            "max_us": micros(lag.max()), "count": lag.len(), "histogram": histogram::encode(lag),
        })
    });
    json!({
        "record": "interval", "phase": of.phase, "start_s": seconds(of.start), "end_s": seconds(of.end),
        "series": of.series.iter().map(series).collect::<Vec<_>>(),
        "tenants": of.tenants.iter().map(tenant).collect::<Vec<_>>(),
        "lag": lag, "cpu_busy": of.busiest, "cpu_wait": of.starved,
        "cpu_s": seconds(of.cpu),
    })
}

fn series(of: &Series) -> Value {
    let mut row = Map::new();
    row.insert("tenant".to_owned(), of.name.tenant.clone().into());
    row.insert("role".to_owned(), of.name.role.name().into());
    row.insert("transaction".to_owned(), of.name.transaction.clone().into());
    let counts = [
        ("committed", of.committed),
        ("aborted", of.aborted),
        ("failed", of.failed),
        ("retried", of.retried),
        ("retries", of.retries),
        ("affected", of.affected),
        ("unstarted", of.unstarted),
        ("uncertain", of.uncertain),
    ];
    let errors = ErrorClass::ALL.iter().map(|class| class.name()).zip(of.errors);
    for (name, count) in counts.into_iter().chain(errors) {
        row.insert(name.to_owned(), count.into());
    }
    for (name, value) in latency(&of.latency) {
        row.insert(format!("latency_{name}_ms"), value);
    }
    if !of.latency.is_empty() {
        row.insert("latency".to_owned(), histogram::encode(&of.latency).into());
        row.insert("service".to_owned(), histogram::encode(&of.service).into());
        row.insert("service_max_ms".to_owned(), milliseconds(of.service.max() as f64).into());
    }
    for (kind, rare) in [("failed_latency", &of.failures), ("censored", &of.censored)] {
        if let Some(rare) = rare {
            row.insert(kind.to_owned(), histogram::encode(rare).into());
            row.insert(format!("{kind}_max_ms"), milliseconds(rare.max() as f64).into());
        }
    }
    Value::Object(row)
}

fn latency(of: &WindowHistogram) -> [(&'static str, Value); 5] {
    let value = |value: f64| if of.is_empty() { Value::Null } else { milliseconds(value).into() };
    [
        ("mean", value(of.mean())),
        ("p50", value(of.value_at_quantile(0.5) as f64)),
        ("p95", value(of.value_at_quantile(0.95) as f64)),
        ("p99", value(of.value_at_quantile(0.99) as f64)),
        ("max", value(of.max() as f64)),
    ]
}

fn tenant(of: &TenantInterval) -> Value {
    json!({
        "tenant": of.tenant, "arrivals": of.arrivals, "dropped": of.dropped, "backlog": of.backlog,
        "sessions": of.sessions, "connected": of.connected, "disconnected": of.disconnected, "moving": of.moving,
        "lost": of.lost, "restored": of.restored, "refused": of.refused, "woken_s": of.woken.map(seconds),
        "reached_s": of.reached.map(seconds),
    })
}

fn ending(of: &Ending) -> Value {
    let Totals { started, in_flight, by_series: _, uncertain, tallies, handed_out, script_memory } =
        &of.totals;
    let mut by_tenant: BTreeMap<&String, BTreeMap<&String, Value>> = BTreeMap::new();
    for (tenant, tallies) in tallies {
        for (name, (amount, uncertain)) in tallies {
            let tally = json!({"amount": amount, "uncertain": uncertain});
            by_tenant.entry(tenant).or_default().insert(name, tally);
        }
    }
    json!({
        "record": "end", "complete": of.complete, "failure": of.failure, "started": started, "in_flight": in_flight,
        "uncertain": uncertain, "tallies": by_tenant, "handed_out": handed_out, "script_memory": script_memory,
    })
}
