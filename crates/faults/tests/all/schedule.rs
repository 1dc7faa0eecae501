//! Outages that begin and end at planned moments.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::support::{self, connect, echo, eventually, through};
use nephoscope_faults::{Accept, Event, Faults, Planned, Proxy, What};
use nephoscope_runtime::clock::{MILLISECOND, Nanos, SECOND, now};

/// What may pass on a busy machine between a planned time and the thread's waking.
const LATE: Nanos = 200 * MILLISECOND;

fn plan(start: Nanos, faults: impl IntoIterator<Item = (Nanos, Faults)>) -> Vec<Planned> {
    faults.into_iter().map(|(after, faults)| Planned { at: start + after, faults }).collect()
}

fn check(event: &Event, planned: &Planned) {
    assert_eq!(event.planned, Some(planned.at));
    assert_eq!(event.what, What::Faults { faults: planned.faults.clone() });
    assert!(event.at >= planned.at && event.at < planned.at + LATE, "{} for {}", event.at, planned.at);
    assert_eq!(event.error, None);
}

#[test]
fn an_outage_of_a_second_is_a_second_for_who_waits_for_an_answer() {
    let proxy = Proxy::start(None, echo()).unwrap();
    let outage =
        plan(now(), [(200 * MILLISECOND, Faults::black_hole()), (1200 * MILLISECOND, Faults::default())]);
    proxy.schedule(outage.clone()).unwrap();
    let answered = ask_until(connect(&proxy), outage[1].at + 300 * MILLISECOND);
    let events = proxy.events();
    events.iter().zip(&outage).for_each(|(event, planned)| check(event, planned));
    let [begin, over] = [events[0].at, events[1].at];
    // What was asked in the last moments may have been read only after them.
    let within = answered.iter().filter(|(before, after)| *before > begin && *after < over - LATE).count();
    assert_eq!(within, 0, "nothing passes");
    let gap = answered.windows(2).map(|pair| pair[1].1 - pair[0].0).max().unwrap();
    let planted = over - begin;
    assert!(gap + LATE > planted && gap < planted + LATE, "{gap} ns for {planted}");
}

/// Asks an echo a numbered question about every millisecond up to a time, and gives the times just before and just
/// after each that was answered was sent.
fn ask_until(mut client: TcpStream, end: Nanos) -> Vec<(Nanos, Nanos)> {
    client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (mut asked, mut answered, mut bytes) = (Vec::new(), Vec::new(), [0; 400]);
    while now() < end {
        let before = now();
        client.write_all(&(asked.len() as u32).to_le_bytes()).unwrap();
        asked.push((before, now()));
        if let Ok(count) = client.read(&mut bytes) {
            let numbers =
                bytes[..count].chunks(4).map(|number| u32::from_le_bytes(number.try_into().unwrap()));
            answered.extend(numbers.map(|number| asked[number as usize]));
        }
        thread::sleep(Duration::from_millis(1));
    }
    answered
}

#[test]
fn a_planned_refusal_is_one_and_ends() {
    let (proxy, target, ..) = through();
    let refusing = Faults { accept: Accept::Refuse, ..Faults::default() };
    let outage = plan(now(), [(50 * MILLISECOND, refusing), (350 * MILLISECOND, Faults::default())]);
    proxy.schedule(outage.clone()).unwrap();
    eventually("it has begun", || proxy.events().len() == 1);
    let refused = TcpStream::connect(proxy.address()).is_err();
    assert!(refused || proxy.events().len() == 2, "refused, unless this thread slept through the outage");
    eventually("it is over", || proxy.events().len() == 2);
    support::assert_connected(&connect(&proxy), &target.next());
    proxy.events().iter().zip(&outage).for_each(|(event, planned)| check(event, planned));
}

#[test]
fn a_schedule_is_put_in_order_replaces_the_one_before_and_goes_on_beside_other_changes() {
    let (proxy, ..) = through();
    let start = now();
    proxy.schedule(plan(start, [(60 * SECOND, Faults::black_hole())])).unwrap();
    let seeded = |seed| Faults { seed, ..Faults::default() };
    // The first time has passed: it is now.
    let unordered =
        plan(start, [(100 * MILLISECOND, seeded(3)), (0, seeded(1)), (40 * MILLISECOND, seeded(2))]);
    proxy.schedule(unordered).unwrap();
    eventually("the first has taken effect", || !proxy.events().is_empty());
    proxy.set(seeded(9)).unwrap();
    eventually("the last has taken effect", || {
        proxy.events().last().is_some_and(|event| event.what == What::Faults { faults: seeded(3) })
    });
    let mut seeds: Vec<(u64, bool)> = proxy
        .events()
        .into_iter()
        .map(|event| match event.what {
            What::Faults { faults } => (faults.seed, event.planned.is_some()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(proxy.events().is_sorted_by_key(|event| event.at));
    seeds.retain(|seed| *seed != (9, false));
    assert_eq!(seeds, [(1, true), (2, true), (3, true)]);
}

#[test]
fn events_are_written_as_json() {
    let (proxy, ..) = through();
    let at = proxy.set(Faults { accept: Accept::Silent, ..Faults::default() }).unwrap();
    let cut = proxy.cut_all().unwrap();
    let json = serde_json::to_value(proxy.events()).unwrap();
    assert_eq!(json[0]["at_ns"], at);
    assert_eq!(json[0]["what"], "faults");
    assert_eq!(json[0]["faults"]["accept"], "silent");
    assert!(json[0].get("planned_ns").is_none());
    assert_eq!(json[1], serde_json::json!({"at_ns": cut, "what": "cut"}));
}
