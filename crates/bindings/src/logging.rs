//! From `tracing` to Python's `logging`, under the name `nephoscope.engine`.
//!
//! Whoever logs never takes Python's lock: a worker would wait for it in the path of a transaction, and for ever where
//! the thread that holds the lock waits for the worker. Lines go into a bounded queue, and the thread of Python's that
//! calls the engine next writes them. Below the level that the logger had when it was last asked, none is made.

use std::fmt::{self, Write as _};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// How many lines may wait for a reader; what comes beyond is counted and dropped.
const CAPACITY: usize = 4096;
/// `logging.DEBUG`, `INFO`, `WARNING`, `ERROR`.
const LEVELS: [u8; 4] = [10, 20, 30, 40];
const WARNING: u8 = LEVELS[2];

/// The least level of which lines are made: Python's own default, until its logger is asked.
static LEAST: AtomicU8 = AtomicU8::new(WARNING);
/// What a signal's handler raised while lines were written that could not raise it, and in which thread.
static RAISED: Mutex<Option<(ThreadId, PyErr)>> = Mutex::new(None);
static QUEUE: AtomicPtr<Queue> = AtomicPtr::new(ptr::null_mut());

struct Line {
    level: u8,
    text: String,
}

struct Queue {
    /// A process that was forked may have been so in the midst of a line, and has a queue of its own.
    process: u32,
    lines: SyncSender<Line>,
    reader: Mutex<Receiver<Line>>,
    dropped: AtomicU64,
}

/// The queue of this process. None is ever freed: a thread may still write into it.
fn queue() -> &'static Queue {
    let process = std::process::id();
    let seen = QUEUE.load(Ordering::Acquire);
    // SAFETY: what is stored here is a leaked box.
    if let Some(queue) = unsafe { seen.as_ref() }.filter(|queue| queue.process == process) {
        return queue;
    }
    let (lines, reader) = sync_channel(CAPACITY);
    let new = Queue { process, lines, reader: Mutex::new(reader), dropped: AtomicU64::new(0) };
    let new = Box::into_raw(Box::new(new));
    match QUEUE.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above.
        Ok(_) => unsafe { &*new },
        Err(other) => {
            // SAFETY: nobody else has seen the new one, and the other is a leaked box.
            unsafe {
                drop(Box::from_raw(new));
                &*other
            }
        }
    }
}

/// Writes the lines that wait, and asks the logger for its level. Raises what a signal's handler raises meanwhile.
pub(crate) fn attend(py: Python<'_>) -> PyResult<()> {
    let own = |raised: &mut (ThreadId, PyErr)| raised.0 == thread::current().id();
    // Another thread would take what ends the program for a failure of its own.
    if let Some((_, raised)) = RAISED.lock().unwrap_or_else(PoisonError::into_inner).take_if(own) {
        return Err(raised);
    }
    match write(py) {
        // A log that cannot be written must not end a run.
        Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
        _ => Ok(()),
    }
}

/// As [`attend`], where nothing can be raised: the thread's next call of the engine raises it.
pub(crate) fn attend_later(py: Python<'_>) {
    raise_later(attend(py));
}

/// Keeps what was raised for the thread's next call of the engine.
pub(crate) fn raise_later(outcome: PyResult<()>) {
    if let Err(raised) = outcome {
        *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = Some((thread::current().id(), raised));
    }
}

fn write(py: Python<'_>) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("nephoscope.engine",))?;
    let queue = queue();
    // Taken first: writing a line may let other threads have Python's lock, and they must not wait for the reader's.
    let reader = queue.reader.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<Line> = reader.try_iter().take(CAPACITY).collect();
    drop(reader);
    for line in lines {
        logger.call_method1("log", (line.level, "%s", line.text))?;
    }
    let dropped = queue.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        let text = "%d lines of the log were dropped: they came faster than they could be written";
        logger.call_method1("log", (WARNING, text, dropped))?;
    }
    let mut least = u8::MAX;
    for level in LEVELS.into_iter().rev() {
        if logger.call_method1("isEnabledFor", (level,))?.extract()? {
            least = level;
        }
    }
    LEAST.store(least, Ordering::Relaxed);
    Ok(())
}

/// Puts events into the queue.
struct ToPython;

pub(crate) fn install() {
    // A second import in one process finds it installed.
    let _ = tracing::subscriber::set_global_default(ToPython);
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // Writing into a text cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{separator}{value:?}"),
            name => write!(self.0, "{separator}{name}={value:?}"),
        };
    }
}

fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => LEVELS[3],
        Level::WARN => WARNING,
        Level::INFO => LEVELS[1],
        _ => LEVELS[0],
    }
}

impl Subscriber for ToPython {
    /// The level may change while the process runs.
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let level = *metadata.level();
        level <= Level::DEBUG
            && number(level) >= LEAST.load(Ordering::Relaxed)
            && (metadata.target().starts_with("nephoscope") || metadata.target() == "workload")
    }

    fn new_span(&self, _attributes: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let (queue, level) = (queue(), number(*event.metadata().level()));
        if queue.lines.try_send(Line { level, text: text.0 }).is_err() {
            queue.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}
