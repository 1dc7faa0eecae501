//! SQLite's C interface (<https://www.sqlite.org/c3ref/intro.html>) behind safe types: all of this driver's unsafe code.
//!
//! A [`Database`] and its [`Prepared`] statements stay on one thread; the database closes with the last of them.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Once;

use libsqlite3_sys as ffi;
use nephoscope_runtime::clock::{self, Nanos};

use crate::contract::interrupt::Interrupt;
use crate::contract::value::Value;

/// After so many steps of SQLite's virtual machine the time limit is looked at: some tens of microseconds.
const STEPS: c_int = 1000;

/// What SQLite said instead of doing something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The extended result code.
    pub(super) code: c_int,
    pub(super) message: String,
}

impl Failure {
    /// The result code without its extension.
    pub(super) fn primary(&self) -> c_int {
        self.code & 0xff
    }

    /// Whether somebody else holds a lock.
    pub(super) fn is_locked(&self) -> bool {
        matches!(self.primary(), ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
    }
}

/// What a transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// No lock: none has begun, or it has not yet read.
    Nothing,
    /// A view of the data.
    View,
    /// The write lock.
    WriteLock,
}

/// When a statement is ended from within.
struct Limit {
    deadline: Cell<Nanos>,
    interrupt: RefCell<Option<Interrupt>>,
}

struct Handle {
    db: NonNull<ffi::sqlite3>,
    /// The progress handler has a pointer to it.
    limit: Box<Limit>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: every statement holds this handle, so none is left; nothing uses the database afterwards.
        unsafe { ffi::sqlite3_close(self.db.as_ptr()) };
    }
}

/// Ends the statement that runs where this returns another value than 0.
unsafe extern "C" fn progress(limit: *mut c_void) -> c_int {
    // SAFETY: the pointer is to the `Limit` that lives as long as the database, on the database's thread.
    let limit = unsafe { &*limit.cast::<Limit>() };
    let interrupted = limit.interrupt.borrow().as_ref().is_some_and(Interrupt::has_struck);
    c_int::from(interrupted || clock::now() >= limit.deadline.get())
}

/// An open database file.
#[derive(Clone)]
pub(super) struct Database(Rc<Handle>);

impl Database {
    /// Has SQLite keep no account of its memory: each thread would wait for the others at each allocation
    /// (<https://www.sqlite.org/c3ref/c_config_covering_index_scan.html>, `SQLITE_CONFIG_MEMSTATUS`).
    fn configure() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the option takes one int. Where SQLite is in use already, it refuses and goes on as it is.
            unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int) };
        });
    }

    /// Opens a file; `flags` are those of `sqlite3_open_v2`. Nothing is read yet.
    pub(super) fn open(path: &CStr, flags: c_int) -> Result<Self, Failure> {
        Self::configure();
        let mut db = ptr::null_mut();
        let flags = flags | ffi::SQLITE_OPEN_NOMUTEX | ffi::SQLITE_OPEN_EXRESCODE;
        // SAFETY: the path ends with a zero byte, and `db` is a place for the handle.
        let code = unsafe { ffi::sqlite3_open_v2(path.as_ptr(), &raw mut db, flags, ptr::null()) };
        let Some(db) = NonNull::new(db) else {
            return Err(Failure { code: ffi::SQLITE_NOMEM, message: "out of memory".to_owned() });
        };
        let limit = Box::new(Limit { deadline: Cell::new(Nanos::MAX), interrupt: RefCell::default() });
        let database = Self(Rc::new(Handle { db, limit }));
        database.check(code)?;
        let limit = (&raw const *database.0.limit).cast_mut().cast();
        // SAFETY: the handler and the limit live as long as the handle. A wait of SQLite's own would block the thread.
        unsafe {
            ffi::sqlite3_progress_handler(db.as_ptr(), STEPS, Some(progress), limit);
            ffi::sqlite3_busy_timeout(db.as_ptr(), 0);
        }
        Ok(database)
    }

    fn as_ptr(&self) -> *mut ffi::sqlite3 {
        self.0.db.as_ptr()
    }

    /// Statements that still run at this time end with `SQLITE_INTERRUPT`.
    pub(super) fn set_deadline(&self, deadline: Nanos) {
        self.0.limit.deadline.set(deadline);
    }

    /// Statements that run when it strikes end with `SQLITE_INTERRUPT`.
    pub(super) fn set_interrupt(&self, interrupt: Interrupt) {
        *self.0.limit.interrupt.borrow_mut() = Some(interrupt);
    }

    /// Prepares the first statement of `sql`; also how many bytes it takes. A text without a statement gives none.
    pub(super) fn prepare(&self, sql: &[u8], keep: bool) -> Result<(Option<Prepared>, usize), Failure> {
        let (mut statement, mut tail) = (ptr::null_mut(), ptr::null());
        let Ok(size) = c_int::try_from(sql.len()) else {
            let message = "the SQL text is longer than SQLite takes".to_owned();
            return Err(Failure { code: ffi::SQLITE_TOOBIG, message });
        };
        let flags = if keep { ffi::SQLITE_PREPARE_PERSISTENT } else { 0 };
        let text = sql.as_ptr().cast::<c_char>();
        // SAFETY: the text has `size` bytes; the two places are for what is found. The tail points into the text.
        let (code, used) = unsafe {
            let places = (&raw mut statement, &raw mut tail);
            let code = ffi::sqlite3_prepare_v3(self.as_ptr(), text, size, flags, places.0, places.1);
            let used = if tail.is_null() { sql.len() } else { tail.offset_from(text) as usize };
            (code, used)
        };
        self.check(code)?;
        let prepared =
            NonNull::new(statement).map(|statement| Prepared { statement, database: self.clone() });
        Ok((prepared, used))
    }

    /// Whether a transaction was begun and has not ended.
    pub(super) fn is_in_transaction(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_get_autocommit(self.as_ptr()) == 0 }
    }

    /// What this connection holds of the database.
    pub(super) fn holds(&self) -> Holds {
        // SAFETY: the handle is open; without a name the state of all its files is asked for.
        match unsafe { ffi::sqlite3_txn_state(self.as_ptr(), ptr::null()) } {
            ffi::SQLITE_TXN_WRITE => Holds::WriteLock,
            ffi::SQLITE_TXN_READ => Holds::View,
            _ => Holds::Nothing,
        }
    }

    /// How many rows the last INSERT, UPDATE or DELETE touched.
    pub(super) fn changes(&self) -> u64 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_changes64(self.as_ptr()) }.unsigned_abs()
    }

    /// The key of the row that was inserted last, into a table with row numbers.
    pub(super) fn last_inserted(&self) -> i64 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_last_insert_rowid(self.as_ptr()) }
    }

    /// Sets what [`Database::last_inserted`] and SQL's `last_insert_rowid()` give until the next row is inserted.
    pub(super) fn set_last_inserted(&self, key: i64) {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_set_last_insert_rowid(self.as_ptr(), key) }
    }

    /// How many rows were touched since the database was opened, by triggers and foreign keys, too.
    pub(super) fn total_changes(&self) -> i64 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_total_changes64(self.as_ptr()) }
    }

    fn check(&self, code: c_int) -> Result<(), Failure> {
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.failure(code)) }
    }

    /// What a result code means, in SQLite's words.
    #[cold]
    fn failure(&self, code: c_int) -> Failure {
        // SAFETY: the handle is open; the message is a text with a zero byte at its end, valid until the next call.
        let message = unsafe {
            let text = ffi::sqlite3_errmsg(self.as_ptr());
            if text.is_null() { "unknown error".into() } else { CStr::from_ptr(text).to_string_lossy() }
        };
        Failure { code, message: message.into_owned() }
    }
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Row,
    Done,
}

/// A prepared statement.
pub(super) struct Prepared {
    statement: NonNull<ffi::sqlite3_stmt>,
    /// Keeps the database open.
    database: Database,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement belongs to this value, and the database is open.
        unsafe { ffi::sqlite3_finalize(self.as_ptr()) };
    }
}

impl Prepared {
    fn as_ptr(&self) -> *mut ffi::sqlite3_stmt {
        self.statement.as_ptr()
    }

    /// The names of its columns.
    pub(super) fn column_names(&self) -> Vec<String> {
        let name = |column| {
            // SAFETY: the column is one of the statement's; the name ends with a zero byte.
            unsafe {
                let name = ffi::sqlite3_column_name(self.as_ptr(), column);
                if name.is_null() { "?".into() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
            }
        };
        (0..self.column_count() as c_int).map(name).collect()
    }

    /// How many columns its result has; it may change with the schema.
    pub(super) fn column_count(&self) -> usize {
        // SAFETY: the statement is a valid one.
        unsafe { ffi::sqlite3_column_count(self.as_ptr()) as usize }
    }

    /// Whether it leaves the database's file as it is.
    pub(super) fn is_read_only(&self) -> bool {
        // SAFETY: the statement is a valid one.
        unsafe { ffi::sqlite3_stmt_readonly(self.as_ptr()) != 0 }
    }

    /// Begins a run of the statement.
    pub(super) fn run(&mut self) -> Run<'_> {
        Run(self)
    }
}

/// One run of a statement, which is reset at its end. The parameters that were given are forgotten then, so that texts
/// may be lent to it for so long (`'a`).
pub(super) struct Run<'a>(&'a mut Prepared);

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // SAFETY: the statement is a valid one; no pointer to a parameter is left after this.
        unsafe {
            ffi::sqlite3_reset(self.0.as_ptr());
            ffi::sqlite3_clear_bindings(self.0.as_ptr());
        }
    }
}

impl<'a> Run<'a> {
    /// Gives a parameter, counted from 0, a value of SQLite's own kinds: null, integer, float, text, bytes. Texts and
    /// bytes are lent.
    #[inline]
    pub(super) fn bind(&mut self, place: usize, value: Value<'a>) -> Result<(), Failure> {
        self.bind_as(place, value, ffi::SQLITE_STATIC())
    }

    /// The same with texts and bytes copied.
    pub(super) fn bind_copy(&mut self, place: usize, value: Value<'_>) -> Result<(), Failure> {
        self.bind_as(place, value, ffi::SQLITE_TRANSIENT())
    }

    #[inline]
    fn bind_as(
        &mut self,
        place: usize,
        value: Value<'_>,
        keep: ffi::sqlite3_destructor_type,
    ) -> Result<(), Failure> {
        let (statement, number) = (self.0.as_ptr(), place as c_int + 1);
        // SAFETY: the statement is a valid one. A lent text lives for 'a, and the end of the run forgets it; a copied
        // one is SQLite's. A pointer that is not null comes with its length, also where that is 0.
        let code = unsafe {
            match value {
                Value::Int(value) => ffi::sqlite3_bind_int64(statement, number, value),
                Value::Float(value) => ffi::sqlite3_bind_double(statement, number, value),
                Value::Text(text) => {
                    let (bytes, size) = (text.as_ptr().cast(), text.len() as u64);
                    ffi::sqlite3_bind_text64(statement, number, bytes, size, keep, ffi::SQLITE_UTF8 as u8)
                }
                Value::Bytes(bytes) => {
                    let (bytes, size) = (bytes.as_ptr().cast(), bytes.len() as u64);
                    ffi::sqlite3_bind_blob64(statement, number, bytes, size, keep)
                }
                _ => ffi::sqlite3_bind_null(statement, number),
            }
        };
        self.0.database.check(code)
    }

    /// Goes on to the next row, or to the end.
    #[inline]
    pub(super) fn step(&mut self) -> Result<Step, Failure> {
        // SAFETY: the statement is a valid one.
        match unsafe { ffi::sqlite3_step(self.0.as_ptr()) } {
            ffi::SQLITE_ROW => Ok(Step::Row),
            ffi::SQLITE_DONE => Ok(Step::Done),
            code => Err(self.0.database.failure(code)),
        }
    }

    /// Runs the statement again, with the parameters that it has.
    pub(super) fn again(&mut self) {
        // SAFETY: the statement is a valid one.
        unsafe { ffi::sqlite3_reset(self.0.as_ptr()) };
    }

    /// How many columns the result has now.
    pub(super) fn column_count(&self) -> usize {
        self.0.column_count()
    }

    /// The names of the result's columns as they are now.
    pub(super) fn column_names(&self) -> Vec<String> {
        self.0.column_names()
    }

    /// A cell of the present row, in its storage class.
    #[inline]
    pub(super) fn cell(&self, column: usize) -> Value<'_> {
        let (statement, column) = (self.0.as_ptr(), column as c_int);
        // SAFETY: the statement is a valid one; for a column that it has not, SQLite gives null. Text and bytes stay
        // where they are until the next step, which needs this run as its own; their length is asked for after them.
        unsafe {
            match ffi::sqlite3_column_type(statement, column) {
                ffi::SQLITE_INTEGER => Value::Int(ffi::sqlite3_column_int64(statement, column)),
                ffi::SQLITE_FLOAT => Value::Float(ffi::sqlite3_column_double(statement, column)),
                ffi::SQLITE_TEXT => {
                    let text = ffi::sqlite3_column_text(statement, column);
                    Value::Text(bytes(text, ffi::sqlite3_column_bytes(statement, column)))
                }
                ffi::SQLITE_BLOB => {
                    let blob = ffi::sqlite3_column_blob(statement, column).cast();
                    Value::Bytes(bytes(blob, ffi::sqlite3_column_bytes(statement, column)))
                }
                _ => Value::Null,
            }
        }
    }
}

/// The bytes at a pointer, which is null where there are none.
///
/// # Safety
/// The pointer is null or to `size` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const u8, size: c_int) -> &'a [u8] {
    match usize::try_from(size) {
        // SAFETY: as the caller says.
        Ok(size) if !start.is_null() => unsafe { std::slice::from_raw_parts(start, size) },
        _ => &[],
    }
}
