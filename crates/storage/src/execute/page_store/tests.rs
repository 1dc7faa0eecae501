//! The target on page stores that run beside it.

use std::time::Duration;

use nephoscope_runtime::clock::MILLISECOND;

use super::*;
use crate::execute::target::Session as _;
use crate::execute::{Execution, Options, Schedule, open};
use crate::page_store::{Costs, PageStore, Settings, Stall};
use crate::requests::{Columns, Operation, Process, Request};

const FAR: Nanos = 60 * SECOND;

fn request(operation: Operation, offset: u64, bytes: u32) -> Request {
    let (segment, process, latency_us) = (3, Process::Backend, f32::NAN);
    Request { time_us: 0, segment, offset, bytes, operation, process, latency_us }
}

fn layout() -> Layout {
    let mut columns = Columns::default();
    columns.push(&request(Operation::Write, 0, 1 << 20));
    Layout::of([&columns])
}

fn target(store: &PageStore, quorum: usize) -> PageStoreTarget {
    let addresses: Vec<String> = store.addresses().iter().map(ToString::to_string).collect();
    PageStoreTarget::parse(&format!("{}?quorum={quorum}", addresses.join(","))).unwrap()
}

/// Runs a session on a target that is prepared.
fn session<T>(target: &PageStoreTarget, run: impl AsyncFnOnce(&mut PageStoreSession) -> T) -> T {
    let runtime = Runtime::new().unwrap();
    let result = runtime.block_on(async {
        let mut session = target.connect(&runtime, &Rc::new(layout()), clock::now() + FAR).await.unwrap();
        run(&mut session).await
    });
    runtime.shut_down();
    result
}

/// The shortest time that a request took, of many.
async fn shortest(session: &mut PageStoreSession, request: Request) -> Nanos {
    let mut shortest = Nanos::MAX;
    for _ in 0..100 {
        let begun = clock::now();
        session.execute(&request, begun + FAR).await.unwrap();
        shortest = shortest.min(clock::now() - begun);
    }
    shortest
}

#[test]
fn planted_service_times_are_read_back() {
    let costs = Costs { append: 3 * MILLISECOND, read: MILLISECOND, byte: 1000.0, record: 20_000 };
    let store = PageStore::start(&Settings { costs, consolidate: None, ..Settings::of(3) }).unwrap();
    let target = target(&store, 2);
    target.prepare(&layout()).unwrap();
    session(&target, async |session| {
        // Nobody is delayed a hundred times in a row.
        for (request, planted) in [
            (request(Operation::Write, 0, 1000), 4 * MILLISECOND),
            (request(Operation::Discard, 0, 1000), 3 * MILLISECOND),
            // A hundred writes and as many discards hang on the page.
            (request(Operation::Read, 0, 1000), 2 * MILLISECOND + 200 * 20_000),
            (request(Operation::Read, 16384, 2000), 3 * MILLISECOND),
        ] {
            let found = shortest(session, request).await;
            assert!((planted..planted + MILLISECOND).contains(&found), "{request:?} took {found} ns");
        }
        let begun = clock::now();
        session.execute(&request(Operation::Sync, 0, 0), begun + FAR).await.unwrap();
    });
    let counters = store.statistics();
    assert!(counters.iter().all(|one| (one.appends, one.appended_bytes) == (200, 100_000)), "{counters:?}");
    let reads: Vec<u64> = counters.iter().map(|one| one.reads).collect();
    // A session reads from one replica where it may.
    assert_eq!(reads.iter().sum::<u64>(), 200);
}

#[test]
fn a_stall_of_one_replica_shows_only_where_the_quorum_needs_it() {
    let mut settings = Settings::of(3);
    settings.replicas[2].stalls = vec![Stall { from: 0, length: 600 * SECOND }];
    let store = PageStore::start(&settings).unwrap();
    for (quorum, patience, complete) in [(2, FAR, true), (3, 200 * MILLISECOND, false)] {
        let target = target(&store, quorum);
        target.prepare(&layout()).unwrap();
        session(&target, async |session| {
            let write = request(Operation::Write, 0, 100);
            let done = session.execute(&write, clock::now() + patience).await;
            assert!(done.is_ok() == complete, "a quorum of {quorum}: {done:?}");
            if complete {
                // Nor does a read wait, which asks a replica that has what it is to see.
                let read = request(Operation::Read, 0, 100);
                assert_eq!(session.execute(&read, clock::now() + patience).await, Ok(()));
            } else {
                assert!(matches!(done, Err(Failure::Timeout(_))), "{done:?}");
            }
        });
    }
}

#[test]
fn what_a_stall_takes_is_in_the_latency() {
    let mut settings = Settings::of(2);
    settings.replicas[1].stalls = vec![Stall { from: 0, length: 500 * MILLISECOND }];
    let begun = clock::now();
    let store = PageStore::start(&settings).unwrap();
    let target = target(&store, 2);
    target.prepare(&layout()).unwrap();
    session(&target, async |session| {
        session.execute(&request(Operation::Write, 0, 100), clock::now() + FAR).await.unwrap();
    });
    assert!(clock::now() - begun >= 500 * MILLISECOND);
}

#[test]
fn a_replica_that_is_gone_is_done_without_as_far_as_the_quorum_goes() {
    let mut stores: Vec<PageStore> = (0..3).map(|_| PageStore::start(&Settings::of(1)).unwrap()).collect();
    let addresses: Vec<String> = stores.iter().map(|store| store.addresses()[0].to_string()).collect();
    let target = PageStoreTarget::parse(&addresses.join(",")).unwrap();
    target.prepare(&layout()).unwrap();
    session(&target, async |session| {
        let (write, read) = (request(Operation::Write, 9000, 100), request(Operation::Read, 9000, 100));
        session.execute(&write, clock::now() + FAR).await.unwrap();
        stores.remove(0);
        for _ in 0..10 {
            session.execute(&write, clock::now() + FAR).await.unwrap();
            // The first one may have been on its way when the replica went.
            let _ = session.execute(&read, clock::now() + FAR).await;
        }
        assert_eq!(session.execute(&read, clock::now() + FAR).await, Ok(()));
        assert!(target.facts().contains(&("lost replicas", addresses[0].clone())), "{:?}", target.facts());
        stores.remove(0);
        // The other replica may be seen to be gone by the one after.
        let last = [
            session.execute(&write, clock::now() + FAR).await,
            session.execute(&write, clock::now() + FAR).await,
        ];
        assert!(matches!(last[1], Err(Failure::Broken(_))), "{last:?}");
    });
}

#[test]
fn requests_of_many_sessions_leave_whole_logs() {
    let costs = Costs { append: 100_000, read: 50_000, ..Costs::default() };
    let store = PageStore::start(&Settings { costs, ..Settings::of(3) }).unwrap();
    let mut columns = Columns::default();
    for number in 0..1000_i64 {
        let operation = Operation::ALL[number as usize % 4];
        let bytes = if operation == Operation::Sync { 0 } else { 8192 };
        let offset = number as u64 % 50 * 8192;
        columns.push(&Request { time_us: number * 100, ..request(operation, offset, bytes) });
    }
    let layout = Arc::new(Layout::of([&columns]));
    let target = open(&store.url(), false).unwrap();
    target.prepare(&layout).unwrap();
    let options = Options::default();
    let schedule = Schedule::new(&columns, options.syncs, options.speed).unwrap();
    let execution: Execution = target.start(&layout, schedule, &options).unwrap();
    let records: Vec<_> = std::iter::from_fn(|| execution.next(Duration::from_mins(1))).collect();
    let end = records.last().unwrap();
    assert_eq!((&end["record"], &end["complete"]), (&"end".into(), &true.into()), "{end}");
    let text = serde_json::to_string(&records).unwrap();
    assert!(!text.contains("is no replica") && !text.contains("Broken"), "{text}");
    drop(execution);
    let counters = store.statistics();
    // 250 writes and 250 discards are with a quorum at least, and 250 reads were answered once.
    assert!(counters.iter().filter(|one| one.appends == 500).count() >= 2, "{counters:?}");
    assert_eq!(counters.iter().map(|one| one.reads).sum::<u64>(), 250, "{counters:?}");
    assert_eq!(counters.iter().map(|one| one.refused).sum::<u64>(), 0, "{counters:?}");
}

#[test]
fn a_url_names_the_replicas_and_a_quorum() {
    let quorum = |rest: &str| PageStoreTarget::parse(rest).map(|target| target.quorum);
    assert_eq!(quorum("127.0.0.1:7001"), Ok(1));
    assert_eq!(quorum("127.0.0.1:7001,[::1]:7002,localhost:7003"), Ok(2));
    assert_eq!(quorum("127.0.0.1:7001,127.0.0.1:7002/?quorum=1"), Ok(1));
    for (rest, said) in [
        ("", "is no replica"),
        ("127.0.0.1", "is no replica"),
        ("127.0.0.1:0", "is no replica"),
        ("127.0.0.1:1?quorum=2", "quorum=1 to 1"),
        ("127.0.0.1:1?quorum=0", "quorum=1 to 1"),
        ("127.0.0.1:1?cache=1", "cache=1"),
        ("127.0.0.1:1,127.0.0.1:1,127.0.0.1:1,127.0.0.1:1", "4 replicas"),
    ] {
        assert!(PageStoreTarget::parse(rest).err().unwrap().contains(said), "{rest}");
    }
}
