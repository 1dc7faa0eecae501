//! The one clock of every measurement: `CLOCK_MONOTONIC`, in nanoseconds.

use std::io;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds: a point on the monotonic clock or a length of time, as the name says.
pub type Nanos = u64;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

fn read(id: ClockId) -> Nanos {
    let time = clock_gettime(id);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// Now, on the monotonic clock.
#[must_use]
pub fn now() -> Nanos {
    #[cfg(feature = "simulated-time")]
    if let Some(now) = crate::simulation::now() {
        return now;
    }
    read(ClockId::Monotonic)
}

/// Now, on the wall clock: nanoseconds since 1970 in UTC. For labels and for data, never for a measurement.
#[must_use]
pub fn wall() -> Nanos {
    #[cfg(feature = "simulated-time")]
    if let Some(now) = crate::simulation::now() {
        return now;
    }
    read(ClockId::Realtime)
}

/// Time since the machine was started: unlike [`now`], it goes on while the machine is suspended.
#[must_use]
pub fn since_boot() -> Nanos {
    read(ClockId::Boottime)
}

/// Processor time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu() -> Nanos {
    if is_simulated() { 0 } else { read(ClockId::ThreadCPUTime) }
}

/// Whether the calling thread's clock is one that a test moves: what a processor does takes no time then.
#[must_use]
pub(crate) fn is_simulated() -> bool {
    #[cfg(feature = "simulated-time")]
    return crate::simulation::now().is_some();
    #[cfg(not(feature = "simulated-time"))]
    false
}

/// The processor time of a thread, to be read from other threads as well.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    /// The calling thread's.
    pub fn of_this_thread() -> io::Result<Self> {
        let mut id = 0;
        // SAFETY: a thread that asks is alive, and `id` is its own.
        match unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) } {
            0 => Ok(Self(id)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Processor time that the thread has used, in nanoseconds; `None` once it has ended.
    #[must_use]
    pub fn read(self) -> Option<Nanos> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is there to be written; a clock that is gone is an error.
        let read = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        (read == 0).then(|| time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos)
    }
}

/// Processor time that the whole process has used, in nanoseconds.
#[must_use]
pub fn process_cpu() -> Nanos {
    read(ClockId::ProcessCPUTime)
}
