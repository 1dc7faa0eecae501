//! What is planted in a simulated database, read from its URL.

use nephoscope_runtime::clock::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use percent_encoding::percent_decode_str;
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::contract::error::{ConfigError, ErrorClass};

/// The law of a time that is drawn: one round trip's service time, one change's lag. In nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Always the same.
    Constant(Nanos),
    /// Uniform between two bounds.
    Uniform(Nanos, Nanos),
    /// Exponential with a mean.
    Exponential(Nanos),
    /// Log-normal, by its median and the standard deviation of its logarithm.
    LogNormal(Nanos, f64),
    /// One of two times: the second with a probability.
    Bimodal(Nanos, Nanos, f64),
}

impl Law {
    /// Draws one time.
    pub(crate) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Nanos {
        match *self {
            Self::Constant(time) => time,
            Self::Uniform(low, high) => low + (uniform(random) * (high - low) as f64) as Nanos,
            Self::Exponential(mean) => (-(1.0 - uniform(random)).ln() * mean as f64) as Nanos,
            Self::LogNormal(median, sigma) => {
                LogNormal::new((median as f64).ln(), sigma).map_or(median, |law| law.sample(random) as Nanos)
            }
            Self::Bimodal(one, other, share) => {
                if uniform(random) < share {
                    other
                } else {
                    one
                }
            }
        }
    }
}

/// A number in [0, 1).
pub(crate) fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    use rand_core::Rng as _;
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A span of time, relative to the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it begins.
    pub start: Nanos,
    /// When it is over.
    pub end: Nanos,
}

impl Window {
    pub(crate) fn contains(self, time: Nanos) -> bool {
        (self.start..self.end).contains(&time)
    }
}

/// Everything that is planted.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The service time of a round trip.
    pub latency: Law,
    /// How many round trips are served at once, from which time on, in the order of time; the others wait in order of
    /// arrival. The first is from the beginning. Empty: all of them.
    pub capacity: Vec<(Nanos, usize)>,
    /// Windows in which nothing is served: what is in service goes on afterwards. In the order in which they begin.
    pub stalls: Vec<Window>,
    /// Windows that cut every connection and refuse new ones.
    pub outages: Vec<Window>,
    /// Windows in which new connections are refused; those that stand go on.
    pub refusals: Vec<Window>,
    /// How many connections may stand at a time: further ones are refused. `None`: any number.
    pub connections: Option<u64>,
    /// Windows in which every round trip fails with an error of a class.
    pub failures: Vec<(Window, ErrorClass)>,
    /// The probability with which a round trip fails with an error of a class.
    pub errors: Vec<(ErrorClass, f64)>,
    /// The probability with which a round trip is served and its connection lost before the reply: nobody but the
    /// server knows what was done.
    pub replies_lost: f64,
    /// The probability with which a round trip is served, answered with an error of a class, and its connection closed:
    /// as a server does that is shut down between a commit and its answer (57P01).
    pub late_errors: Vec<(ErrorClass, f64)>,
    /// How long after a commit its change is to be seen here: this endpoint is a replica of the database of its name.
    /// `None`: it is the one that takes writes.
    pub lag: Option<Law>,
    /// Windows in which this replica applies nothing: what is due meanwhile is to be seen when they are over. In the
    /// order in which they begin.
    pub lag_stalls: Vec<Window>,
    /// The probability with which a row that a probe reads is as it was before its last change that is to be seen here:
    /// a session that has read the row before sees it go back.
    pub old_reads: f64,
    /// The seed of all draws.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            latency: Law::Constant(MILLISECOND),
            capacity: Vec::new(),
            stalls: Vec::new(),
            outages: Vec::new(),
            refusals: Vec::new(),
            connections: None,
            failures: Vec::new(),
            errors: Vec::new(),
            replies_lost: 0.0,
            late_errors: Vec::new(),
            lag: None,
            lag_stalls: Vec::new(),
            old_reads: 0.0,
            seed: 1,
        }
    }
}

const KEYS: &str = "latency, capacity, stall, outage, refusal, connections, failure, error, late_error, reply_lost, lag, \
                    lag_stall, old_read, seed";

impl Plan {
    /// Reads `sim://?latency=exponential(2ms)&capacity=8&stall=5s+2s&outage=10s+500ms&refusal=12s+1s&connections=97&
    /// failure=3s+1s:read_only&error=deadlock:0.01&late_error=shutting_down:0.01&reply_lost=0.001&lag=constant(5ms)&
    /// lag_stall=5s+1s&old_read=0.01&seed=7`. Windows are start and length; `stall`, `outage`, `refusal`, `failure`, `error`,
    /// `late_error` and `lag_stall` may be given several times. `capacity=4,10s:8,30s:0` changes with the time since the
    /// start of the run; 0 is a server that stands still.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        let mut plan = Self::default();
        let query = url.split_once('?').map_or("", |(_, query)| query);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            plan.set(key, &value).map_err(|allowed| {
                ConfigError(format!("url: sim's {key} cannot be {value:?}; allowed is {allowed}"))
            })?;
        }
        plan.stalls.sort_by_key(|stall| stall.start);
        plan.lag_stalls.sort_by_key(|stall| stall.start);
        Ok(plan)
    }

    /// Sets one key; the error says what is allowed.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        const WINDOW: &str = "start+length, such as 5s+200ms";
        const CLASS: &str = "start+length:class, such as 5s+1s:read_only";
        const ERROR: &str = "class:probability, such as deadlock:0.01";
        const LAW: &str =
            "constant(1ms), uniform(1ms,2ms), exponential(1ms), lognormal(1ms,0.5) or bimodal(1ms,9ms,0.1)";
        match key {
            "latency" => self.latency = law(value).ok_or(LAW)?,
            "lag" => self.lag = Some(law(value).ok_or(LAW)?),
            "capacity" => {
                self.capacity =
                    steps(value).ok_or("a whole number above 0, or steps such as 4,10s:8,30s:0")?;
            }
            "stall" => self.stalls.push(window(value).ok_or(WINDOW)?),
            "lag_stall" => self.lag_stalls.push(window(value).ok_or(WINDOW)?),
            "outage" => self.outages.push(window(value).ok_or(WINDOW)?),
            "refusal" => self.refusals.push(window(value).ok_or(WINDOW)?),
            "connections" => {
                let most = value.parse().ok().filter(|most| *most > 0);
                self.connections = Some(most.ok_or("a whole number above 0")?);
            }
            "failure" => {
                let (span, class) = value.rsplit_once(':').ok_or(CLASS)?;
                self.failures.push((window(span).ok_or(CLASS)?, class_of(class)?));
            }
            "error" | "late_error" => {
                let (class, probability) = value.split_once(':').ok_or(ERROR)?;
                let errors = if key == "error" { &mut self.errors } else { &mut self.late_errors };
                errors.push((class_of(class)?, share(probability).ok_or(ERROR)?));
            }
            "reply_lost" => self.replies_lost = share(value).ok_or("a probability, such as 0.001")?,
            "old_read" => self.old_reads = share(value).ok_or("a probability, such as 0.001")?,
            "seed" => self.seed = value.parse().map_err(|_| "a whole number")?,
            _ => return Err(format!("one of the keys {KEYS}")),
        }
        Ok(())
    }
}

fn class_of(name: &str) -> Result<ErrorClass, String> {
    ErrorClass::from_name(name)
        .ok_or_else(|| format!("one of the classes {}", ErrorClass::ALL.map(ErrorClass::name).join(", ")))
}

fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

fn law(text: &str) -> Option<Law> {
    let (name, rest) = text.split_once('(')?;
    let arguments = rest.strip_suffix(')')?;
    let (first, second) = arguments.split_once(',').map_or((arguments, None), |(a, b)| (a, Some(b)));
    match (name, duration(first)?, second) {
        ("constant", time, None) => Some(Law::Constant(time)),
        ("exponential", mean, None) => Some(Law::Exponential(mean)),
        ("uniform", low, Some(high)) => {
            duration(high).filter(|high| *high >= low).map(|high| Law::Uniform(low, high))
        }
        ("lognormal", median, Some(sigma)) => {
            let sigma = sigma.trim().parse().ok().filter(|sigma: &f64| (0.0..10.0).contains(sigma))?;
            (median > 0).then_some(Law::LogNormal(median, sigma))
        }
        ("bimodal", one, Some(rest)) => {
            let (other, probability) = rest.split_once(',')?;
            Some(Law::Bimodal(one, duration(other)?, share(probability.trim())?))
        }
        _ => None,
    }
}

/// Reads `4,10s:8,30s:0`: times ascend, and where there is one number alone it is above 0.
fn steps(text: &str) -> Option<Vec<(Nanos, usize)>> {
    let mut steps: Vec<(Nanos, usize)> = Vec::new();
    for (place, part) in text.split(',').enumerate() {
        let (time, capacity) = match part.split_once(':') {
            Some((time, capacity)) if place > 0 => (duration(time)?, capacity),
            None if place == 0 => (0, part),
            _ => return None,
        };
        if steps.last().is_some_and(|(before, _)| *before >= time) {
            return None;
        }
        steps.push((time, capacity.parse().ok()?));
    }
    (steps != [(0, 0)]).then_some(steps)
}

fn window(text: &str) -> Option<Window> {
    // In a query a plus sign may have been read as the space that it once stood for.
    let (start, length) = text.split_once(['+', ' '])?;
    let start = duration(start)?;
    Some(Window { start, end: start.checked_add(duration(length)?)? })
}

/// Reads `250us`, `1.5ms`, `2s`.
fn duration(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let unit = text.find(|next: char| !next.is_ascii_digit() && next != '.')?;
    let number: f64 = text[..unit].parse().ok()?;
    let unit = match &text[unit..] {
        "ns" => 1,
        "us" | "µs" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        _ => return None,
    };
    (number < 1e9).then_some((number * unit as f64) as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_says_everything() {
        let plan = Plan::parse(
            "sim://x?latency=lognormal(2ms,0.5)&capacity=8&stall=9s%2B1s&stall=5s+2s&outage=10s+500ms\
             &failure=3s+1s:read_only&refusal=12s+1s&connections=97&error=deadlock:0.01&reply_lost=0.001&seed=7\
             &lag=bimodal(1ms,20ms,0.25)&late_error=shutting_down:0.02&lag_stall=6s+1s&lag_stall=2s+1s\
             &old_read=0.02",
        )
        .unwrap();
        assert_eq!(plan.latency, Law::LogNormal(2 * MILLISECOND, 0.5));
        assert_eq!(plan.capacity, [(0, 8)]);
        assert_eq!(plan.stalls[0], Window { start: 5 * SECOND, end: 7 * SECOND });
        assert_eq!(plan.stalls.len(), 2);
        assert_eq!(plan.outages[0], Window { start: 10 * SECOND, end: 10 * SECOND + 500 * MILLISECOND });
        assert_eq!(plan.refusals, [Window { start: 12 * SECOND, end: 13 * SECOND }]);
        assert_eq!(plan.connections, Some(97));
        assert_eq!(plan.replies_lost, 0.001);
        assert_eq!(plan.failures[0].1, ErrorClass::ReadOnly);
        assert_eq!(plan.errors, [(ErrorClass::Deadlock, 0.01)]);
        assert_eq!(plan.late_errors, [(ErrorClass::ShuttingDown, 0.02)]);
        assert_eq!(plan.lag, Some(Law::Bimodal(MILLISECOND, 20 * MILLISECOND, 0.25)));
        assert_eq!(plan.lag_stalls.iter().map(|stall| stall.start / SECOND).collect::<Vec<_>>(), [2, 6]);
        assert_eq!(plan.old_reads, 0.02);
        assert_eq!(plan.seed, 7);
    }

    #[test]
    fn of_two_times_each_comes_at_its_rate() {
        use rand_core::SeedableRng as _;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let law = Law::Bimodal(1, 9, 0.25);
        let drawn: Vec<Nanos> = (0..20_000).map(|_| law.draw(&mut random)).collect();
        let others = drawn.iter().filter(|time| **time == 9).count();
        assert!(drawn.iter().all(|time| [1, 9].contains(time)));
        assert!((others as f64 / 20_000.0 - 0.25).abs() < 0.02, "{others}");
    }

    #[test]
    fn a_capacity_may_change_with_time() {
        let plan = Plan::parse("sim://?capacity=4,1500ms:0,30s:8").unwrap();
        assert_eq!(plan.capacity, [(0, 4), (1500 * MILLISECOND, 0), (30 * SECOND, 8)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (query, allowed) in [
            ("latency=fast", "constant(1ms)"),
            ("latency=uniform(2ms,1ms)", "uniform(1ms,2ms)"),
            ("lag=bimodal(1ms,2ms)", "bimodal(1ms,9ms,0.1)"),
            ("capacity=0", "a whole number above 0"),
            ("capacity=4,9s:1,8s:2", "steps such as"),
            ("capacity=2s:4", "steps such as"),
            ("stall=5", "start+length"),
            ("connections=0", "a whole number above 0"),
            ("lag_stall=5", "start+length"),
            ("error=deadlock:2", "class:probability"),
            ("reply_lost=-1", "a probability"),
            ("old_read=2", "a probability"),
            ("error=oops:0.1", "serialization, deadlock"),
            ("speed=9", "one of the keys latency"),
        ] {
            let error = Plan::parse(&format!("sim://?{query}")).unwrap_err().to_string();
            assert!(error.contains(allowed), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_url_breaks_it(url in "sim://[ -~]{0,60}") {
            let _ = Plan::parse(&url);
        }
    }
}
