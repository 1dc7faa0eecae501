//! What networks do to connections: each fault is planted for a second by a proxy.

use std::num::NonZeroU64;

use nephoscope_drivers::ErrorClass;
use nephoscope_faults::{Accept, Channel, Direction, Faults, Garbage, Law, Planned, Proxy, target};
use nephoscope_runtime::clock::{MILLISECOND, Nanos, SECOND};

use crate::scene::{BEGIN, END, IMPATIENT, OVER, PATIENT, SESSIONS, Scene, at, sleep_until, survive};
use crate::support::Story;
use crate::support::survivals::Survival;
use crate::this_test;

const fn network(
    test: &'static str,
    fault: &'static str,
    promise: &'static str,
    errors: &'static [ErrorClass],
) -> Survival {
    Survival { test, part: "network", fault, promise, errors, on: "PostgreSQL behind the fault proxy" }
}

/// Plants a fault under a load by a proxy, and looks at what came of it.
fn meet(
    survival: &Survival,
    statement_timeout_ms: u64,
    plant: impl Fn(&Proxy, Nanos) + Sync,
    look: impl Fn(&Story) + Sync,
) {
    survive(survival, |server, io| {
        let proxy = Proxy::start(None, target(&format!("127.0.0.1:{}", server.port)).unwrap()).unwrap();
        let scene = Scene::new(server, io, statement_timeout_ms).through(&proxy);
        let story = scene.run(|run| plant(&proxy, run.origin()));
        look(&story);
        story
    });
}

/// Plants faults for the second between [`BEGIN`] and [`OVER`].
fn outage(proxy: &Proxy, origin: Nanos, faults: Faults) {
    let begin = Planned { at: at(origin, BEGIN), faults };
    let over = Planned { at: at(origin, OVER), faults: Faults::default() };
    proxy.schedule(vec![begin, over]).unwrap();
}

/// Nothing is committed while nothing passes: the second is read back from the intervals.
fn assert_nothing_passed(story: &Story) {
    // A tenth of a second at either end is for a thread that wakes late, and for the end of an interval.
    let within = story.between(BEGIN + 0.2, OVER - 0.1);
    assert_eq!(within.committed(), 0);
    let longest = story.all().latency().max() as f64 / SECOND as f64;
    assert!(longest > OVER - BEGIN - 0.35, "who arrived at its beginning waited: {longest} s");
}

#[test]
fn a_second_in_a_black_hole() {
    let survival = network(
        this_test!(),
        "a network that swallows everything for a second",
        "nothing is committed meanwhile; every session gives up within its time limit and is back when the second is over",
        &[ErrorClass::StatementTimeout, ErrorClass::ConnectionLost],
    );
    meet(
        &survival,
        IMPATIENT,
        |proxy, origin| outage(proxy, origin, Faults::black_hole()),
        |story| {
            assert_nothing_passed(story);
            assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64, "every session was in it");
            // When it is over, a session waits at most for a connection that was begun in it, and a little.
            let back = story.between(OVER, OVER + 0.9);
            assert!(back.committed() > 0, "the load is back soon");
        },
    );
}

#[test]
fn a_server_that_nobody_can_reach_for_a_second() {
    let survival = network(
        this_test!(),
        "every connection cut, and for a second none is to be had",
        "refused attempts are counted; every session comes back",
        &[ErrorClass::ConnectionLost],
    );
    meet(
        &survival,
        PATIENT,
        |proxy, origin| {
            outage(proxy, origin, Faults { accept: Accept::Refuse, ..Faults::default() });
            sleep_until(at(origin, BEGIN) + 5 * MILLISECOND);
            proxy.cut_all().unwrap();
        },
        |story| {
            assert_nothing_passed(story);
            assert!(story.all().counted(|of| of.refused) >= SESSIONS as u64);
        },
    );
}

#[test]
fn a_second_in_which_connections_are_taken_and_not_answered() {
    let survival = network(
        this_test!(),
        "connections are accepted and never answered, for a second",
        "attempts end within the connection's time limit and are counted; every session comes back",
        &[ErrorClass::ConnectionLost, ErrorClass::StatementTimeout],
    );
    meet(
        &survival,
        PATIENT,
        |proxy, origin| {
            outage(proxy, origin, Faults { accept: Accept::Silent, ..Faults::default() });
            sleep_until(at(origin, BEGIN) + 5 * MILLISECOND);
            proxy.reset_all().unwrap();
        },
        |story| {
            assert_nothing_passed(story);
            assert!(story.all().counted(|of| of.refused) >= SESSIONS as u64);
        },
    );
}

#[test]
fn resets_again_and_again() {
    let survival = network(
        this_test!(),
        "every connection reset, ten times in a second",
        "every session comes back",
        &[ErrorClass::ConnectionLost],
    );
    meet(
        &survival,
        PATIENT,
        |proxy, origin| {
            for step in 0..10 {
                sleep_until(at(origin, BEGIN + 0.1 * f64::from(step)));
                proxy.reset_all().unwrap();
            }
        },
        |story| {
            assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64);
        },
    );
}

#[test]
fn one_direction_closed_and_then_the_other() {
    let survival = network(
        this_test!(),
        "connections closed in one direction, then in the other",
        "sessions notice either; every session comes back",
        &[ErrorClass::ConnectionLost, ErrorClass::ShuttingDown],
    );
    meet(
        &survival,
        PATIENT,
        |proxy, origin| {
            for (direction, seconds) in [(Direction::ToServer, BEGIN), (Direction::ToClient, OVER)] {
                sleep_until(at(origin, seconds));
                proxy.half_close_all(direction).unwrap();
            }
        },
        |story| {
            for (start, end) in [(BEGIN, OVER), (OVER, END)] {
                let lost = story.between(start, end).counted(|of| of.lost);
                assert!(lost > 1, "{lost} sessions notice from {start} s on");
            }
        },
    );
}

#[test]
fn garbage_in_the_stream() {
    let survival = network(
        this_test!(),
        "garbage in the protocol stream: no message, an unknown one, an endless one",
        "the connection is given up, its session comes back",
        &[ErrorClass::ConnectionLost, ErrorClass::StatementTimeout],
    );
    let garbage = |after, bytes: &[u8]| Channel {
        garbage_after: Some(Garbage { after, bytes: bytes.to_vec() }),
        ..Channel::default()
    };
    meet(
        &survival,
        IMPATIENT,
        move |proxy, origin| {
            // What is no message, a message that is none of the protocol's, and one that says it is endless.
            for (step, bytes) in [&[0_u8; 7][..], b"?\0\0\0\x04", b"D\x3f\xff\xff\xff"].iter().enumerate() {
                sleep_until(at(origin, BEGIN + 0.3 * step as f64));
                let to_client = garbage(10, bytes);
                proxy.set(Faults { to_client, ..Faults::default() }).unwrap();
                sleep_until(at(origin, BEGIN + 0.3 * step as f64 + 0.2));
                proxy.set(Faults::default()).unwrap();
            }
        },
        |story| {
            assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64);
        },
    );
}

#[test]
fn a_line_so_slow_that_it_drips() {
    let survival = network(
        this_test!(),
        "a slow-loris server: replies drip, 40 bytes a second",
        "statements end within their time limit; every session comes back",
        &[ErrorClass::StatementTimeout, ErrorClass::ConnectionLost],
    );
    let drip = Channel { rate: NonZeroU64::new(40), ..Channel::default() };
    meet(
        &survival,
        IMPATIENT,
        |proxy, origin| outage(proxy, origin, Faults { to_client: drip.clone(), ..Faults::default() }),
        |_| (),
    );
}

#[test]
fn connections_that_are_cut_in_the_middle_of_a_message() {
    let survival = network(
        this_test!(),
        "connections cut in the middle of a message",
        "no half of a reply is taken for one; every session comes back",
        &[ErrorClass::ConnectionLost],
    );
    let short = Channel { cut_after: Some(1001), ..Channel::default() };
    meet(
        &survival,
        PATIENT,
        |proxy, origin| outage(proxy, origin, Faults { to_client: short.clone(), ..Faults::default() }),
        |story| {
            assert!(story.all().counted(|of| of.lost) >= 1);
        },
    );
}

/// Faults of every kind, one after the other and on top of each other, as a generator of numbers has it.
fn everything(proxy: &Proxy, origin: Nanos) {
    let mut state = 0x5eed_u64;
    let mut draw = |many: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % many
    };
    let mut time = at(origin, BEGIN);
    while time < at(origin, OVER + 0.5) {
        sleep_until(time);
        time += (20 + draw(100)) * MILLISECOND;
        let direction = if draw(2) == 0 { Direction::ToServer } else { Direction::ToClient };
        let mut faults = Faults::default();
        let channel =
            if direction == Direction::ToServer { &mut faults.to_server } else { &mut faults.to_client };
        match draw(10) {
            0 => faults.accept = [Accept::Refuse, Accept::Reset, Accept::Silent][draw(3) as usize],
            1 => channel.black_hole = true,
            2 => channel.hold = true,
            3 => channel.rate = NonZeroU64::new(1 + draw(2000)),
            4 => channel.delay = Some(Law::Exponential { mean: draw(50) * MILLISECOND }),
            5 => channel.cut_after = Some(draw(500)),
            6 => drop(proxy.inject(direction, vec![draw(256) as u8; draw(50) as usize]).unwrap()),
            7 => drop(proxy.half_close_all(direction).unwrap()),
            8 => drop(proxy.reset_all().unwrap()),
            _ => drop(proxy.cut_all().unwrap()),
        }
        proxy.set(faults).unwrap();
    }
    proxy.set(Faults::default()).unwrap();
}

#[test]
fn everything_at_once() {
    let survival = network(
        this_test!(),
        "faults of every kind, one on top of the other, for one and a half seconds",
        "every session comes back",
        &[ErrorClass::ConnectionLost, ErrorClass::StatementTimeout, ErrorClass::ShuttingDown],
    );
    meet(&survival, IMPATIENT, everything, |story| {
        assert!(story.all().counted(|of| of.lost) >= SESSIONS as u64);
    });
}

#[test]
fn a_second_held_is_latency_and_nothing_else() {
    let survival = network(
        this_test!(),
        "everything is held for a second, and then arrives",
        "latency from the intended start shows the second whole; nothing fails",
        &[],
    );
    let hold = Channel { hold: true, ..Channel::default() };
    meet(
        &survival,
        PATIENT,
        |proxy, origin| outage(proxy, origin, Faults { to_server: hold.clone(), ..Faults::default() }),
        |story| {
            assert_nothing_passed(story);
            let all = story.all();
            assert_eq!((all.failed(), all.counted(|of| of.lost)), (0, 0), "{:?}", story.errors);
            let longest = all.latency().max() as f64 / SECOND as f64;
            assert!(longest > 0.9 && longest < 2.0, "{longest} s for a second");
        },
    );
}
