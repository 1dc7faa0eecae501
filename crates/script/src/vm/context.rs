//! What the C functions of a state reach: the state of the session that runs, and what all sessions share.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use nephoscope_drivers::{Command, Isolation, Lexer, Params, Rows, Statement, Want};
use nephoscope_histories::Transaction;
use nephoscope_runtime::clock;

use crate::access::{KeySpace, Picker};
use crate::random::Random;
use crate::sysbench::Laws;
use crate::vm::api;
use crate::vm::loaded::Loaded;
use crate::vm::pulse::Pulse;
use crate::workload::Workload;

/// How a reply is given to Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing.
    Nothing,
    /// The number of rows.
    Affected,
    /// The key of the row that was inserted, or nil.
    Key,
    /// The first row, or nil.
    One,
    /// A list of all rows.
    List,
    /// A list of all results, each a list of its rows.
    Results,
    /// Nothing: the reply is kept for [`Shape::Answers`].
    Kept,
    /// The replies that were kept and not yet given, each a value.
    Answers,
}

/// A call that a C function has left for the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) command: Command,
    pub(crate) want: Want,
    pub(crate) flush: bool,
    pub(crate) shape: Shape,
}

impl Call {
    /// A call of a statement: what is wanted of it, and whether it is waited for.
    #[inline]
    pub(crate) fn new(command: Command, shape: Shape, pipelines: bool) -> Self {
        let want = match shape {
            Shape::Nothing | Shape::Affected => Want::Count,
            Shape::Kept => Want::Kept,
            _ => Want::Rows,
        };
        let rides = matches!(shape, Shape::Nothing | Shape::Kept);
        Self { command, want, flush: !rides || !pipelines, shape }
    }
}

/// The command of a call of a statement that was made while the workload runs: its place is known to the connection only.
pub(crate) const MADE: Command = Command::Execute(usize::MAX);

/// How a function ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As a transaction that has run statements.
    #[default]
    Usual,
    /// It has called `tx:skip()`.
    Skipped,
    /// It is the session's own function, whose result is kept.
    SetUp,
    /// It is a part of `w:load`.
    Part,
}

/// What a transaction has picked, so that a further attempt picks the same, whatever has changed since.
#[derive(Default)]
pub(crate) struct Picks {
    made: Vec<Pick>,
    /// How many of them the present attempt has made, or made again.
    reached: usize,
}

/// How a key is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the access distribution.
    Access,
    /// One that is handed out once.
    Once,
    /// One that is new.
    New,
    /// The number of a loaded row, by the access distribution.
    Row,
    /// From a range, by the access distribution: another range is another way.
    Range {
        /// The smallest key.
        low: i64,
        /// The greatest key.
        high: i64,
    },
}

struct Pick {
    /// From which table (0 for a range), and how.
    of: (usize, Way),
    key: Option<i64>,
    /// The generator after it.
    random: Random,
}

/// How many picks of a transaction are kept; further ones are drawn anew from the same random numbers.
const MOST_PICKS: usize = 4096;

impl Picks {
    /// A transaction begins.
    pub(super) fn forget(&mut self) {
        self.made.clear();
        self.reached = 0;
    }

    /// The transaction begins again.
    pub(super) fn repeat(&mut self) {
        self.reached = 0;
    }

    /// The key that was picked at this place before, or else one that is drawn now.
    #[inline]
    pub(crate) fn pick(
        &mut self,
        of: (usize, Way),
        random: &mut Random,
        draw: impl FnOnce(&mut Random) -> Option<i64>,
    ) -> Option<i64> {
        if let Some(made) = self.made.get(self.reached) {
            if made.of == of {
                self.reached += 1;
                random.clone_from(&made.random);
                return made.key;
            }
            // What it has read has led the attempt another way.
            self.made.truncate(self.reached);
        }
        let key = draw(random);
        if self.reached < MOST_PICKS {
            self.made.push(Pick { of, key, random: random.clone() });
            self.reached += 1;
        }
        key
    }
}

/// The state of one session that the C functions reach.
pub(crate) struct Context {
    /// The session's number within its tenant, counted from 1.
    pub(crate) session: u64,
    /// Its index in `Shared::contexts`.
    pub(super) slot: usize,
    /// The number of the transaction; rows of earlier ones are refused.
    pub(crate) transaction: u64,
    /// Which one it is: its index in the workload.
    pub(super) index: usize,
    pub(crate) attempt: u32,
    pub(crate) params: Params,
    pub(crate) rows: Rows,
    pub(crate) random: Random,
    /// The generator as it was when the transaction began, for its retries.
    pub(super) random_at_start: Random,
    pub(crate) picks: Picks,
    pub(crate) call: Option<Call>,
    /// The statement of a call of [`MADE`].
    pub(crate) query: Option<Rc<Statement>>,
    /// How many replies are to be kept, and how many of them were given.
    pub(crate) sent: usize,
    pub(crate) received: usize,
    /// Whether what has no result rides with the next that is waited for.
    pub(crate) pipelines: bool,
    pub(crate) aborted: bool,
    pub(crate) ending: Ending,
    /// Whether it is between `tx:begin()` and its end.
    pub(crate) within: bool,
    /// Wall-clock seconds since 1970 as the transaction sees them, once it has looked.
    pub(crate) now: Option<f64>,
    /// What to add to the tallies when the transaction has committed.
    pub(crate) tallies: Vec<(usize, f64)>,
    /// Keys that will be there when the transaction has committed: table and key.
    pub(crate) arrivals: Vec<(usize, i64)>,
    /// What it has done and seen, for a history.
    pub(crate) observed: Transaction,
    /// The registry's reference to the list of row objects of this session, and how many it holds and uses.
    pub(super) row_pool: c_int,
    pub(super) pooled: usize,
    pub(super) used: usize,
}

impl Context {
    pub(super) fn new(seed: u64, session: u64) -> Self {
        Self {
            session,
            slot: 0,
            transaction: 0,
            index: 0,
            attempt: 0,
            params: Params::default(),
            rows: Rows::default(),
            random: Random::new(seed, session),
            random_at_start: Random::new(seed, session),
            picks: Picks::default(),
            call: None,
            query: None,
            sent: 0,
            received: 0,
            pipelines: false,
            aborted: false,
            ending: Ending::Usual,
            within: false,
            now: None,
            tallies: Vec::with_capacity(8),
            arrivals: Vec::with_capacity(8),
            observed: Transaction::default(),
            row_pool: mlua::ffi::LUA_NOREF,
            pooled: 0,
            used: 0,
        }
    }
}

thread_local! {
    /// What the functions of the state share whose coroutine runs on this thread: nearer at hand than their upvalue.
    static RUNNING: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// What the C functions of one state share.
pub(crate) struct Shared {
    /// The session that runs. Atomic, as is the next, because a signal's handler reads them.
    pub(crate) current: AtomicPtr<Context>,
    /// The session whose error is being put into words, which may run Lua of the workload's.
    pub(super) describing: AtomicPtr<Context>,
    pub(super) pulse: Arc<Pulse>,
    /// What was said when a transaction without an end was interrupted.
    pub(super) interruption: RefCell<Option<String>>,
    /// What panicked below Lua.
    pub(crate) panicked: Cell<Option<String>>,
    pub(crate) integers: Cell<api::Integers>,
    pub(crate) queries: Cell<api::Queries>,
    pub(crate) seen: api::Seen,
    pub(crate) lists: RefCell<api::Lists>,
    /// How SQL is read that is made while the workload runs.
    pub(crate) lexer: Lexer,
    pub(super) contexts: RefCell<Vec<*const Context>>,
    pub(crate) statements: RefCell<api::Names>,
    pub(crate) verbs: RefCell<api::Verbs>,
    pub(crate) tally_names: RefCell<Vec<String>>,
    pub(crate) tables: Vec<(String, Arc<KeySpace>)>,
    pub(crate) pickers: RefCell<Vec<Picker>>,
    pub(crate) loaded: Loaded,
    /// Whether the load pipelines, and which transactions do so themselves.
    pub(crate) pipeline: bool,
    pub(super) pipelined: Vec<bool>,
    /// How a script of sysbench draws, and how many unique numbers were drawn.
    pub(crate) laws: Laws,
    pub(crate) unique: Arc<AtomicU64>,
    /// How many sessions the phase has at most.
    pub(crate) sessions: Cell<u64>,
    /// In which level transactions begin that say none of their own; the session's where there is none.
    pub(crate) isolation: Cell<Option<Isolation>>,
    pub(super) transactions_begun: Cell<u64>,
}

impl Shared {
    /// What the functions of a state share before any session is there.
    pub(super) fn new(
        workload: &Workload,
        keys: &[(String, Arc<KeySpace>)],
        lexer: Lexer,
        pipeline: bool,
    ) -> Self {
        Self {
            current: AtomicPtr::default(),
            describing: AtomicPtr::default(),
            pulse: Arc::new(Pulse::new()),
            interruption: RefCell::default(),
            panicked: Cell::default(),
            integers: Cell::new(api::Integers::NONE),
            queries: Cell::new(api::Queries::NONE),
            seen: api::Seen::default(),
            lexer,
            lists: RefCell::new(api::Lists::new(&workload.with_lists)),
            contexts: RefCell::default(),
            statements: RefCell::new(api::Names::new(&workload.statements, &workload.with_lists)),
            verbs: RefCell::new(api::Verbs::new(&workload.statements)),
            tally_names: RefCell::default(),
            tables: keys.to_vec(),
            pickers: RefCell::new(keys.iter().map(|_| Picker::new()).collect()),
            loaded: Loaded::new(&workload.dataset),
            pipeline,
            pipelined: workload.transactions.iter().map(|of| of.pipeline).collect(),
            laws: Laws::DEFAULT,
            unique: Arc::default(),
            sessions: Cell::new(0),
            isolation: Cell::new(None),
            transactions_begun: Cell::new(0),
        }
    }

    /// Lets `run` resume the coroutine of a session.
    #[inline]
    pub(super) fn while_running<R>(&self, context: *mut Context, run: impl FnOnce() -> R) -> R {
        RUNNING.with(|running| {
            self.current.store(context, Ordering::Relaxed);
            running.set(self);
            let result = run();
            running.set(ptr::null());
            self.current.store(ptr::null_mut(), Ordering::Relaxed);
            result
        })
    }

    /// Those of the state that runs a coroutine on this thread, or null.
    #[inline]
    pub(crate) fn of_running() -> *const Self {
        RUNNING.get()
    }

    /// The session for which Lua runs now, or null.
    pub(super) fn running(&self) -> *mut Context {
        let current = self.current.load(Ordering::Relaxed);
        if current.is_null() { self.describing.load(Ordering::Relaxed) } else { current }
    }

    /// The session whose row it is, if that session still runs the transaction that read it.
    pub(crate) fn context_of(&self, row: &RowObject) -> Option<&Context> {
        let context = *self.contexts.borrow().get(row.slot)?;
        if context.is_null() {
            return None;
        }
        // SAFETY: scripts replace their pointer by null when they are dropped, and the box does not move.
        let context = unsafe { &*context };
        (context.transaction == row.transaction).then_some(context)
    }
}

/// What a row in Lua points at. The objects are used again by later transactions of the session.
#[repr(C)]
pub(crate) struct RowObject {
    pub(super) slot: usize,
    pub(super) transaction: u64,
    pub(crate) result: u32,
    pub(crate) row: u32,
}

/// The wall clock as a script sees it: seconds since 1970, to the microsecond.
pub(crate) fn wall_seconds() -> f64 {
    (clock::wall() / 1000) as f64 / 1e6
}
