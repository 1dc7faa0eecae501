//! Running a workload's file: on a thread of its own, under a watch.
//!
//! The file describes, which takes milliseconds. One that goes on is ended by a hook after [`LONGEST`] of processor
//! time, whatever it catches. A function of Lua's library that does not return, as `string.find` with a pattern that
//! matches in too many ways, meets no hook, and neither does a handler of errors that a hook has called: that thread is
//! left behind, detached. It holds nothing that others wait for, and ends with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nephoscope_runtime::clock::ThreadClock;

use crate::define::Patience;
use crate::define::Source;
use crate::error::ScriptError;
use crate::vm::sandbox;
use crate::workload::Workload;

/// How often the one who waits looks at the clock, and asks whether to give up.
const LOOK: Duration = Duration::from_millis(100);
/// How much more processor time than allowed is left to the hook.
const GRACE: Duration = Duration::from_millis(500);

enum News {
    Begun(ThreadClock),
    Read(Box<Result<Workload, ScriptError>>),
}

/// Runs the file of a source and gives what it declares; `give_up` is asked ten times a second.
pub(crate) fn read(source: &Source, give_up: &mut dyn FnMut() -> bool) -> Result<Workload, ScriptError> {
    let stop = Arc::new(AtomicBool::new(false));
    let patience = (source.limit + source.limit / 10 + GRACE).as_nanos() as u64;
    let (telling, news) = channel();
    let reader = (source.clone(), Arc::clone(&stop));
    let no_thread = |error| ScriptError::plain(format!("no thread to read a workload: {error}"));
    let spawned = std::thread::Builder::new().name("workload".to_owned());
    spawned.spawn(move || tell(&reader.0, reader.1, &telling)).map_err(no_thread)?;
    let mut clock = None;
    loop {
        match news.recv_timeout(LOOK) {
            Ok(News::Read(read)) => return *read,
            Ok(News::Begun(begun)) => clock = Some(begun),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(source.error("its reader died; standard error says why"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let used = clock.and_then(ThreadClock::read).unwrap_or(0);
        let stuck = used > patience;
        if stuck || give_up() {
            stop.store(true, Ordering::Relaxed);
            return Err(if stuck { source.error(&stuck_message(source.limit)) } else { interrupted() });
        }
    }
}

fn tell(source: &Source, stop: Arc<AtomicBool>, telling: &Sender<News>) {
    // Nobody listens any more where the file was given up.
    if let Ok(clock) = ThreadClock::of_this_thread() {
        let _ = telling.send(News::Begun(clock));
    }
    let patience = Patience { limit: source.limit, stop };
    let run = |lua| source.run(&lua, patience).map(|(workload, _)| workload);
    let _ = telling.send(News::Read(Box::new(sandbox::state().and_then(run))));
}

fn interrupted() -> ScriptError {
    ScriptError::plain("interrupted while the workload was read")
}

fn stuck_message(limit: Duration) -> String {
    let seconds = limit.as_secs_f64();
    format!(
        "the file has run for {seconds} s without an end, and is within a function of Lua's library, or a handler of \
         errors, that cannot be interrupted; is this a pattern that matches in too many ways?"
    )
}
