//! The server behind all connections of one simulated endpoint.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nephoscope_runtime::{Nanos, clock};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::contract::error::ErrorClass;
use crate::sim::data::View;
use crate::sim::plan::{Plan, Window, uniform};

/// How a round trip ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Served,
    Failed(ErrorClass),
    /// Served, and the connection was lost before the reply.
    Unheard,
    /// Served, answered with an error, and the connection closed.
    Late(ErrorClass),
}

/// When something ends that nothing is planned to end.
const NEVER: Nanos = Nanos::MAX / 4;

/// What moves, and what can be planted while the server runs. Times are since the start of the run.
struct State {
    random: Xoshiro256PlusPlus,
    /// When each place of the capacity becomes free; `None` where there is no limit.
    free: Option<BinaryHeap<Reverse<Nanos>>>,
    /// Capacities to come.
    steps: VecDeque<(Nanos, usize)>,
    stalls: Vec<Window>,
    outages: Vec<Window>,
}

impl State {
    fn new(plan: &Plan, random: Xoshiro256PlusPlus) -> Self {
        let steps = plan.capacity.iter().copied().collect();
        Self { random, free: None, steps, stalls: plan.stalls.clone(), outages: plan.outages.clone() }
    }

    /// Takes a place for a round trip that arrives at a time: when its service begins. The place is given back by
    /// [`State::leave`].
    fn enter(&mut self, arrived: Nanos) -> Nanos {
        loop {
            let begins = match &self.free {
                Some(free) => free.peek().map_or(NEVER, |Reverse(free)| arrived.max(*free)),
                None => arrived,
            };
            // A capacity that changes while the round trip waits changes how long it waits.
            let step = self.steps.front().copied().filter(|(at, _)| *at <= begins);
            let Some((at, places)) = step else { return begins };
            self.steps.pop_front();
            self.resize(at, places);
        }
    }

    /// There are so many places from a time on. Who is in service keeps his until he is done.
    fn resize(&mut self, at: Nanos, places: usize) {
        let free = self.free.get_or_insert_default();
        while free.len() > places {
            free.pop();
        }
        while free.len() < places {
            free.push(Reverse(at));
        }
    }

    fn leave(&mut self, ends: Nanos) {
        if let Some(free) = &mut self.free
            && free.pop().is_some()
        {
            free.push(Reverse(ends));
        }
    }

    fn is_out(&self, now: Nanos) -> bool {
        self.outages.iter().any(|outage| outage.contains(now))
    }
}

pub(crate) struct Server {
    plan: Plan,
    /// The zero of the planted windows, on the monotonic clock.
    start: AtomicU64,
    committed: AtomicU64,
    connections: AtomicU64,
    /// Connections that stand.
    standing: AtomicU64,
    state: Mutex<State>,
}

impl Server {
    pub(crate) fn new(plan: Plan) -> Self {
        let state = State::new(&plan, Xoshiro256PlusPlus::seed_from_u64(plan.seed));
        Self {
            plan,
            start: AtomicU64::new(clock::now()),
            committed: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            standing: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How this endpoint sees the data of its name.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            lag: self.plan.lag.as_ref(),
            seed: self.plan.seed,
            stalls: &self.plan.lag_stalls,
            start: self.started(),
        }
    }

    /// Whether the next row that a probe reads is an old one; nothing is drawn where none is planted.
    pub(crate) fn is_old_read(&self) -> bool {
        self.plan.old_reads > 0.0 && uniform(&mut self.state().random) < self.plan.old_reads
    }

    /// The run starts: the planted windows count from `at`, nobody is in service, and what was planted by hand is gone.
    /// Who says it again of the same run changes nothing.
    pub(crate) fn starts(&self, at: Nanos) {
        if self.start.swap(at, Ordering::Relaxed) == at {
            return;
        }
        let mut state = self.state();
        *state = State::new(&self.plan, state.random.clone());
    }

    /// When the run started, on the monotonic clock; before the first run, when the server was made.
    pub(crate) fn started(&self) -> Nanos {
        self.start.load(Ordering::Relaxed)
    }

    /// Plants capacities, stalls and outages whose times count from `now`. What is in service already ends as it would
    /// have.
    pub(crate) fn plant(&self, planted: &Plan, now: Nanos) {
        let now = self.since_start(now);
        let later = |window: &Window| Window { start: now + window.start, end: now + window.end };
        let mut state = self.state();
        for (at, places) in &planted.capacity {
            let place = state.steps.partition_point(|(other, _)| *other <= now + at);
            state.steps.insert(place, (now + at, *places));
        }
        state.stalls.extend(planted.stalls.iter().map(later));
        state.stalls.sort_by_key(|stall| stall.start);
        state.outages.extend(planted.outages.iter().map(later));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn committed(&self) {
        self.committed.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a connection, or says why not. One that was taken is given back by [`Server::leave`].
    pub(crate) fn enter(&self, now: Nanos) -> Result<(), String> {
        if let Some(why) = self.refuses(now) {
            return Err(why.to_owned());
        }
        let most = self.plan.connections.unwrap_or(u64::MAX);
        let place = |standing| (standing < most).then_some(standing + 1);
        if self.standing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, place).is_err() {
            return Err(format!("too many connections (planted limit of {most})"));
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn leave(&self) {
        self.standing.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many connections were made, whether they still stand or not.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn commits(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    fn since_start(&self, time: Nanos) -> Nanos {
        time.saturating_sub(self.start.load(Ordering::Relaxed))
    }

    pub(crate) fn is_out(&self, now: Nanos) -> bool {
        self.state().is_out(self.since_start(now))
    }

    /// Why a connection is not taken, if it is not.
    fn refuses(&self, now: Nanos) -> Option<&'static str> {
        if self.is_out(now) {
            return Some("connection refused (planted outage)");
        }
        let now = self.since_start(now);
        let refused = self.plan.refusals.iter().any(|refusal| refusal.contains(now));
        refused.then_some("connection refused (planted refusal)")
    }

    /// Serves a round trip that arrives at `now` on a connection made at `connected`: how and when it ends.
    pub(crate) fn serve(&self, now: Nanos, connected: Nanos) -> (Outcome, Nanos) {
        let start = self.start.load(Ordering::Relaxed);
        let connected = self.since_start(connected);
        let arrived = self.since_start(now);
        let mut state = self.state();
        // A connection does not outlive an outage.
        if state.outages.iter().any(|outage| connected < outage.start && outage.start <= arrived) {
            return (Outcome::Failed(ErrorClass::ConnectionLost), now);
        }
        let service = self.plan.latency.draw(&mut state.random);
        let begins = state.enter(arrived);
        let ends = work(&state.stalls, begins, service);
        state.leave(ends);
        let outcome = self.outcome(ends, &mut state.random);
        if let Some(outage) = state.outages.iter().find(|outage| (arrived..ends).contains(&outage.start)) {
            return (Outcome::Failed(ErrorClass::ConnectionLost), start + outage.start);
        }
        (outcome, start + ends)
    }

    fn outcome(&self, at: Nanos, random: &mut Xoshiro256PlusPlus) -> Outcome {
        if let Some(class) = self.fails(at, random) {
            return Outcome::Failed(class);
        }
        if let Some(class) = drawn(&self.plan.late_errors, random) {
            return Outcome::Late(class);
        }
        let unheard = self.plan.replies_lost > 0.0 && uniform(random) < self.plan.replies_lost;
        if unheard { Outcome::Unheard } else { Outcome::Served }
    }

    fn fails(&self, at: Nanos, random: &mut Xoshiro256PlusPlus) -> Option<ErrorClass> {
        if let Some((_, class)) = self.plan.failures.iter().find(|(window, _)| window.contains(at)) {
            return Some(*class);
        }
        drawn(&self.plan.errors, random)
    }
}

/// Which of several classes it is, each with its probability; nothing is drawn where there is none.
fn drawn(errors: &[(ErrorClass, f64)], random: &mut Xoshiro256PlusPlus) -> Option<ErrorClass> {
    if errors.is_empty() {
        return None;
    }
    let mut draw = uniform(random);
    errors.iter().find_map(|(class, probability)| {
        draw -= probability;
        (draw < 0.0).then_some(*class)
    })
}

/// When work that takes `service` and begins at `begins` is done: no work is done in a stall.
fn work(stalls: &[Window], begins: Nanos, service: Nanos) -> Nanos {
    let (mut now, mut left) = (begins, service);
    for stall in stalls {
        if stall.end <= now {
            continue;
        }
        if now < stall.start {
            let worked = left.min(stall.start - now);
            now += worked;
            left -= worked;
            if left == 0 {
                break;
            }
        }
        now = now.max(stall.end);
    }
    now + left
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_runtime::clock::{MILLISECOND, SECOND};

    fn server(query: &str) -> Server {
        let server = Server::new(Plan::parse(&format!("sim://?{query}")).unwrap());
        server.starts(1000 * SECOND);
        server
    }

    fn ends(server: &Server, at: Nanos) -> (Outcome, Nanos) {
        let (outcome, ends) = server.serve(1000 * SECOND + at, 1000 * SECOND);
        (outcome, ends - 1000 * SECOND)
    }

    #[test]
    fn the_queue_before_two_places_is_first_come_first_served() {
        let server = server("latency=constant(10ms)&capacity=2");
        let times: Vec<Nanos> = (0..5).map(|_| ends(&server, 0).1 / MILLISECOND).collect();
        assert_eq!(times, [10, 10, 20, 20, 30]);
    }

    #[test]
    fn a_capacity_that_changes_changes_how_long_who_waits_has_to_wait() {
        let server = server("latency=constant(10ms)&capacity=1,25ms:3,100ms:1");
        let times: Vec<Nanos> = (0..6).map(|_| ends(&server, 0).1 / MILLISECOND).collect();
        // One at a time; at 25 ms two places more, while the third is in service until 30 ms.
        assert_eq!(times, [10, 20, 30, 35, 35, 40]);
        let times: Vec<Nanos> = (0..5).map(|_| ends(&server, 95 * MILLISECOND).1 / MILLISECOND).collect();
        // Three are in service when two places go: who comes next waits for the last of them.
        assert_eq!(times, [105, 105, 105, 115, 125]);
    }

    #[test]
    fn a_server_without_places_stands_still_until_it_has_some() {
        let server = server("latency=constant(10ms)&capacity=2,1s:0,3s:1");
        assert_eq!(ends(&server, 990 * MILLISECOND).1, SECOND);
        assert_eq!(ends(&server, 1500 * MILLISECOND).1, 3010 * MILLISECOND);
        assert_eq!(ends(&server, 1600 * MILLISECOND).1, 3020 * MILLISECOND);
        let forever = self::server("capacity=1,1s:0");
        assert!(ends(&forever, 2 * SECOND).1 > 1_000_000_000 * SECOND);
    }

    #[test]
    fn what_is_planted_by_hand_counts_from_now() {
        let server = server("latency=constant(10ms)&capacity=1,60s:5");
        let plant = |query: &str, at: Nanos| {
            server.plant(&Plan::parse(&format!("sim://?{query}")).unwrap(), 1000 * SECOND + at);
        };
        assert_eq!((ends(&server, 0).1, ends(&server, 0).1), (10 * MILLISECOND, 20 * MILLISECOND));
        plant("capacity=2", SECOND);
        let two = (ends(&server, SECOND).1, ends(&server, SECOND).1);
        assert_eq!(two, (1010 * MILLISECOND, 1010 * MILLISECOND));
        plant("stall=0s+500ms", 2 * SECOND);
        assert_eq!(ends(&server, 2 * SECOND).1, 2510 * MILLISECOND);
        plant("outage=1s+1s", 3 * SECOND);
        assert!(server.refuses(1003 * SECOND).is_none() && server.refuses(1004 * SECOND).is_some());
        assert_eq!(ends(&server, 5 * SECOND).0, Outcome::Failed(ErrorClass::ConnectionLost));
        server.starts(2000 * SECOND);
        assert!(server.refuses(2004 * SECOND).is_none(), "a run starts with the plan alone");
    }

    #[test]
    fn a_run_begins_with_every_place_free() {
        let server = server("latency=constant(10ms)&capacity=1");
        assert_eq!(ends(&server, 5 * SECOND).1, 5010 * MILLISECOND);
        server.starts(2000 * SECOND);
        assert_eq!(server.serve(2000 * SECOND, 2000 * SECOND).1, 2000 * SECOND + 10 * MILLISECOND);
    }

    #[test]
    fn a_stall_holds_up_what_is_in_service_and_what_arrives() {
        let server = server("latency=constant(10ms)&stall=1s+2s&stall=4s+1s");
        assert_eq!(ends(&server, 995 * MILLISECOND).1, 3005 * MILLISECOND);
        assert_eq!(ends(&server, 2 * SECOND).1, 3010 * MILLISECOND);
        assert_eq!(ends(&server, 3995 * MILLISECOND).1, 5005 * MILLISECOND);
        assert_eq!(ends(&server, 6 * SECOND).1, 6010 * MILLISECOND);
        assert_eq!(ends(&server, 990 * MILLISECOND).1, 1000 * MILLISECOND);
    }

    #[test]
    fn an_outage_cuts_what_is_in_flight_and_old_connections() {
        let server = server("latency=constant(10ms)&outage=1s+500ms");
        let lost = Outcome::Failed(ErrorClass::ConnectionLost);
        assert_eq!(ends(&server, 980 * MILLISECOND), (Outcome::Served, 990 * MILLISECOND));
        assert_eq!(ends(&server, 995 * MILLISECOND), (lost, SECOND));
        assert_eq!(ends(&server, 1200 * MILLISECOND).0, lost);
        assert_eq!(ends(&server, 2 * SECOND).0, lost);
        assert!(server.is_out(1001 * SECOND) && !server.is_out(1000 * SECOND + 1500 * MILLISECOND));
        let (outcome, _) = server.serve(1002 * SECOND, 1000 * SECOND + 1600 * MILLISECOND);
        assert_eq!(outcome, Outcome::Served);
    }

    #[test]
    fn a_refusal_leaves_connections_that_stand_alone() {
        let server = server("latency=constant(10ms)&refusal=1s+500ms");
        let refused = |at: Nanos| server.refuses(1000 * SECOND + at).is_some();
        assert!(!refused(SECOND - 1) && refused(SECOND) && !refused(1500 * MILLISECOND));
        assert_eq!(ends(&server, 1200 * MILLISECOND), (Outcome::Served, 1210 * MILLISECOND));
    }

    #[test]
    fn beyond_the_limit_a_connection_is_refused_until_one_is_given_back() {
        let server = server("connections=2");
        let enter = || server.enter(1000 * SECOND);
        assert_eq!((enter(), enter()), (Ok(()), Ok(())));
        assert_eq!(enter(), Err("too many connections (planted limit of 2)".to_owned()));
        server.leave();
        assert_eq!((enter(), server.connections()), (Ok(()), 3));
    }

    #[test]
    fn replies_are_lost_at_their_rate() {
        let server = server("reply_lost=0.1");
        let lost = (0..20_000).filter(|_| ends(&server, 0).0 == Outcome::Unheard).count();
        assert!((lost as f64 / 20_000.0 - 0.1).abs() < 0.01, "{lost}");
    }

    #[test]
    fn errors_come_at_their_rate_and_windows_always() {
        let server = server("error=deadlock:0.1&error=serialization:0.2&failure=1s+1s:read_only");
        let outcomes: Vec<Outcome> = (0..20_000).map(|_| ends(&server, 0).0).collect();
        let share = |class| {
            outcomes.iter().filter(|outcome| **outcome == Outcome::Failed(class)).count() as f64 / 20_000.0
        };
        assert!((share(ErrorClass::Deadlock) - 0.1).abs() < 0.01);
        assert!((share(ErrorClass::Serialization) - 0.2).abs() < 0.01);
        assert_eq!(ends(&server, 1500 * MILLISECOND).0, Outcome::Failed(ErrorClass::ReadOnly));
    }
}
