//! Summaries and findings as JSON, as `docs/run-directory.md` names them.

use serde_json::{Value, json};

use crate::check::Summary;
use crate::finding::{Finding, Order, Why};

fn seconds(time: u64) -> f64 {
    time as f64 / 1e9
}

/// A summary; `looked` is the order that the checker looked for.
#[must_use]
pub fn summary(of: &Summary, looked: Order) -> Value {
    let strongest = of.strongest(looked);
    let counts = of.counts.iter().map(|count| {
        json!({
            "anomaly": count.anomaly.name(), "order": count.order.name(), "times": count.times,
            "about": count.anomaly.about(), "forbidden_from": count.anomaly.forbidden_from().name(),
        })
    });
    json!({
        "committed": of.committed, "aborted": of.aborted, "unknown": of.unknown, "operations": of.operations,
        "anomalies": counts.collect::<Vec<_>>(),
        "witnesses": of.findings.iter().map(finding).collect::<Vec<_>>(),
        "late": of.late, "forced": of.forced, "unordered": of.unordered, "most_held": of.most_held,
        "looked": looked.name(),
        "strongest": strongest.map(|(level, order)| level.name_with(order)),
        "level": strongest.map(|(level, _)| level.name()),
    })
}

fn finding(of: &Finding) -> Value {
    let parties = of.parties.iter().map(|party| {
        json!({
            "number": party.number, "session": party.session, "begin_s": seconds(party.begin),
            "end_s": seconds(party.end),
        })
    });
    json!({
        "anomaly": of.anomaly.name(), "order": of.order.name(), "told": of.to_string(),
        "transactions": parties.collect::<Vec<_>>(),
        "steps": of.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn step(why: &Why) -> Value {
    let (kind, key) = match *why {
        Why::WriteWrite { key, .. } => ("ww", Some(key)),
        Why::WriteRead { key, .. } => ("wr", Some(key)),
        Why::ReadWrite { key, .. } => ("rw", Some(key)),
        Why::SameVersion { key, .. } => ("same version", Some(key)),
        Why::Value { key, .. } => ("value", Some(key)),
        Why::Bounds { key, .. } => ("bounds", Some(key)),
        Why::Balances { .. } => ("balances", None),
        Why::Session => ("session", None),
        Why::RealTime => ("real-time", None),
    };
    json!({ "kind": kind, "key": key })
}
