//! Streams: loads of one tenant side by side, in one key space, each with sessions of its own.

use nephoscope_engine::LoadSpec;
use nephoscope_engine::spec::TenantSpec;
use serde_json::{Value, json};

use crate::support::{SimBase, Story, check, load, phase, run, spec_of, written};

const LUA: &str = "local w = workload 'w'
w:table('item', { rows = 10, columns = { { 'i_id', serial() } } })
local sessions = 0
w:session(function() sessions = sessions + 1 return sessions end)
w:transaction('add', function(tx, pick, mine)
  tx:tally('new ' .. pick.new('item'), 1)
  tx:tally('added', 1)
  tx:exec('write')
end)
w:transaction('ask', { read_only = true }, function(tx, pick, mine)
  tx:tally('asked by ' .. tx.session .. ' of ' .. tx.sessions, 1)
  tx:exec('write')
end)";

/// A load of the tenant `default` and its stream `reports`, on two threads.
fn streams(base: &SimBase, seconds: f64, first: Value, second: Value) -> (LoadSpec, tempfile::TempDir) {
    let folder = written(LUA, "-- name: write\nUPDATE t SET a = a + 1\n");
    let mut spec = spec_of(&folder, &base.url, [phase("all", seconds, first)]);
    spec.threads = 2;
    let own = spec.tenants[0].clone();
    let (name, stream_of) = ("reports".to_owned(), Some(own.name.clone()));
    spec.tenants.push(TenantSpec { name, stream_of, ..own });
    let first = spec.phases[0].loads.remove("*").unwrap();
    spec.phases[0].loads = [("default".to_owned(), first), ("reports".to_owned(), load(second))].into();
    (spec, folder)
}

fn committed(story: &Story, stream: &str) -> u64 {
    story.all().sum(|series| if series.name.tenant == stream { series.committed } else { 0 })
}

#[test]
fn each_stream_keeps_its_rate() {
    let base = SimBase::new("latency=constant(1ms)");
    let first = json!({"rate": 300, "mix": {"add": 1}});
    let (spec, _folder) = streams(&base, 2.0, first, json!({"rate": 70, "mix": {"ask": 1, "add": 1}}));
    let story = run(&spec);
    check::arrivals(&story);
    assert_eq!((committed(&story, "default"), committed(&story, "reports")), (600, 140));
    check::binomial("ask", story.all().committed_of("ask"), 140, 0.5);
}

#[test]
fn each_stream_has_sessions_of_its_own() {
    let base = SimBase::new("latency=constant(10ms)");
    let think = json!({"law": "constant", "ms": 40});
    let first = json!({"concurrency": 6, "mix": {"add": 1}});
    let (spec, _folder) =
        streams(&base, 1.0, first, json!({"concurrency": 3, "think": think, "mix": {"ask": 1}}));
    let story = run(&spec);
    for interval in story.phase("all").0 {
        let sessions: Vec<_> = interval.tenants.iter().map(|of| (of.tenant.as_str(), of.sessions)).collect();
        assert_eq!(sessions, [("default", 6), ("reports", 3)]);
    }
    assert_eq!(base.connections(), 9);
    // Who thinks does at most one transaction in 50 ms.
    let asked = committed(&story, "reports");
    assert!(asked <= 3 * 21 && asked < committed(&story, "default") / 4, "{asked}");
    let asked: Vec<_> = story.tallies("asked by").into_keys().collect();
    assert_eq!(asked, ["1 of 3", "2 of 3", "3 of 3"]);
}

#[test]
fn streams_share_their_tenants_keys_and_tallies() {
    let base = SimBase::new("latency=constant(1ms)");
    let adds = json!({"concurrency": 4, "mix": {"add": 1}});
    let (spec, _folder) = streams(&base, 0.5, adds.clone(), adds);
    let story = run(&spec);
    let all = story.all().committed();
    assert!(committed(&story, "default") > 100 && committed(&story, "reports") > 100);
    assert_eq!(story.tally("added").0, all as f64);
    let new = story.tallies("new");
    assert_eq!((new.len() as u64, new.values().all(|count| *count == 1.0)), (all, true), "no key twice");
    let totals = story.totals();
    assert_eq!((totals.tallies.len(), totals.handed_out.len()), (1, 1), "the stream has none of its own");
    assert!(totals.handed_out["default"]["item new"] == all);
}
