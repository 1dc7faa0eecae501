//! What a thread has had of the processors.

use crate::clock::{self, Nanos};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What a thread had of the processors in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// How long it ran.
    pub cpu: Nanos,
    /// How long it was ready to run and others had the processors; `None` where the kernel keeps no account of it.
    pub waited: Option<Nanos>,
}

/// Measures the use of the processors by the thread that has made it, which alone may ask.
#[derive(Debug)]
pub struct ThreadMeter {
    statistics: Option<File>,
    last: ThreadUse,
}

impl ThreadMeter {
    /// Begins to count now, for the calling thread.
    #[must_use]
    pub fn of_this_thread() -> Self {
        // Opened here, so that it stays this thread's: <https://docs.kernel.org/scheduler/sched-stats.html>.
        let statistics = File::open("/proc/thread-self/schedstat").ok().filter(|_| !clock::is_simulated());
        let last = used(statistics.as_ref());
        Self { statistics, last }
    }

    /// What the thread has used since it was last asked.
    pub fn lap(&mut self) -> ThreadUse {
        let now = used(self.statistics.as_ref());
        let last = std::mem::replace(&mut self.last, now);
        let waited = now.waited.zip(last.waited).map(|(now, last)| now.saturating_sub(last));
        ThreadUse { cpu: now.cpu.saturating_sub(last.cpu), waited }
    }
}

fn used(statistics: Option<&File>) -> ThreadUse {
    ThreadUse { cpu: clock::thread_cpu(), waited: statistics.and_then(waited) }
}

/// The second of three numbers: the time that was spent ready and not running, in nanoseconds.
fn waited(statistics: &File) -> Option<Nanos> {
    let mut text = [0; 80];
    let length = statistics.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn statistics(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn the_wait_is_the_second_of_what_the_kernel_tells() {
        assert_eq!(waited(&statistics("123456789012 3500000000 42\n")), Some(3_500_000_000));
        assert_eq!(
            waited(&statistics("18446744073709551615 18446744073709551615 18446744073709551615\n")),
            Some(u64::MAX)
        );
        for text in ["", "12", "12 x 3\n", "\u{fffd} \u{fffd}"] {
            assert_eq!(waited(&statistics(text)), None, "{text:?}");
        }
    }

    #[test]
    fn a_lap_has_what_came_since_the_last() {
        let mut meter = ThreadMeter { statistics: Some(statistics("1 500 1\n")), last: ThreadUse::default() };
        meter.last.waited = Some(200);
        assert_eq!(meter.lap().waited, Some(300));
        assert_eq!(meter.lap().waited, Some(0));
        meter.statistics = None;
        assert_eq!(meter.lap().waited, None, "a kernel that tells nothing is no error");
    }

    #[test]
    fn threads_that_share_a_processor_run_and_wait() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let threads = 2 * std::thread::available_parallelism().unwrap().get();
        let busy = || {
            let mut meter = ThreadMeter::of_this_thread();
            let until = clock::now() + 100_000_000;
            while clock::now() < until {}
            meter.lap()
        };
        let used: Vec<ThreadUse> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(busy)).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(used.iter().all(|one| one.cpu > 0));
        assert!(used.iter().any(|one| one.waited.unwrap() > 10_000_000), "{used:?}");
    }
}
