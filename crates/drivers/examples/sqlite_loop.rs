//! The bare loop over SQLite's C interface, with prepared statements: what any client in this process has to pay.
//! There are no retries, no times and no workload.
//!
//! `sqlite_loop SECONDS FILE SCALE select|tpcb PRAGMA…` runs pgbench's select-only or TPC-B-like script on pgbench's
//! tables, and prints how many transactions it has committed. A `PRAGMA` is `name=value`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::ffi::{CStr, CString, c_int};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;

type Failure = Box<dyn Error>;

const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;
const MOST: u64 = 5_000;

/// An open file; the process ends before it would have to be closed.
struct Database(*mut ffi::sqlite3);

impl Database {
    fn open(file: &str) -> Result<Self, Failure> {
        let (mut handle, file) = (null_mut(), CString::new(file)?);
        // SAFETY: nothing of SQLite has run before; the pointers are valid for the call.
        let code = unsafe {
            // No counters of memory, as in the driver.
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
            ffi::sqlite3_open_v2(file.as_ptr(), &raw mut handle, ffi::SQLITE_OPEN_READWRITE, null())
        };
        let database = Self(handle);
        database.check(code, ffi::SQLITE_OK).map(|()| database)
    }

    fn check(&self, code: c_int, wanted: c_int) -> Result<(), Failure> {
        if code == wanted {
            return Ok(());
        }
        // SAFETY: the connection is open, or null, of which SQLite says that it is out of memory.
        let said = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(self.0)) };
        Err(said.to_string_lossy().into())
    }

    fn prepare(&self, sql: &str) -> Result<Statement<'_>, Failure> {
        let (mut handle, sql) = (null_mut(), CString::new(sql)?);
        // SAFETY: the connection is open, and the text ends with a zero.
        let code = unsafe { ffi::sqlite3_prepare_v2(self.0, sql.as_ptr(), -1, &raw mut handle, null_mut()) };
        self.check(code, ffi::SQLITE_OK)?;
        Ok(Statement { database: self, handle })
    }
}

/// A prepared statement; the process ends before it would have to be freed.
struct Statement<'a> {
    database: &'a Database,
    handle: *mut ffi::sqlite3_stmt,
}

impl Statement<'_> {
    /// Runs the statement with whole numbers as its parameters; gives the first cell of its last row, or 0.
    fn run(&self, values: &[i64]) -> Result<i64, Failure> {
        for (at, value) in (1..).zip(values) {
            // SAFETY: the statement is prepared, and not being stepped through.
            let code = unsafe { ffi::sqlite3_bind_int64(self.handle, at, *value) };
            self.database.check(code, ffi::SQLITE_OK)?;
        }
        let mut found = 0;
        // SAFETY: the statement is prepared; a column is read where there is a row.
        unsafe {
            let mut code = ffi::sqlite3_step(self.handle);
            while code == ffi::SQLITE_ROW {
                found = ffi::sqlite3_column_int64(self.handle, 0);
                code = ffi::sqlite3_step(self.handle);
            }
            self.database.check(code, ffi::SQLITE_DONE)?;
            self.database.check(ffi::sqlite3_reset(self.handle), ffi::SQLITE_OK)?;
        }
        Ok(found)
    }
}

struct Draw(u64);

impl Draw {
    /// A number from 1 to `most`.
    fn up_to(&mut self, most: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most) as i64 + 1
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, file, scale, script, pragmas @ ..] = &arguments[..] else {
        return Err("usage: sqlite_loop SECONDS FILE SCALE select|tpcb PRAGMA…".into());
    };
    let (time, scale): (_, u64) = (Duration::from_secs_f64(seconds.parse()?), scale.parse()?);
    let database = Database::open(file)?;
    for pragma in pragmas {
        database.prepare(&format!("PRAGMA {pragma}"))?.run(&[])?;
    }
    let committed = match script.as_str() {
        "select" => select(&database, time, scale)?,
        "tpcb" => tpcb(&database, time, scale)?,
        other => return Err(format!("no such script: {other}").into()),
    };
    println!("{committed}");
    Ok(())
}

fn select(database: &Database, time: Duration, scale: u64) -> Result<u64, Failure> {
    let balance = database.prepare("SELECT abalance FROM pgbench_accounts WHERE aid = ?1")?;
    let (mut draw, mut committed, begun) = (Draw(1), 0, Instant::now());
    while begun.elapsed() < time {
        balance.run(&[draw.up_to(ACCOUNTS * scale)])?;
        committed += 1;
    }
    Ok(committed)
}

fn tpcb(database: &Database, time: Duration, scale: u64) -> Result<u64, Failure> {
    let (begin, commit) = (database.prepare("BEGIN IMMEDIATE")?, database.prepare("COMMIT")?);
    let account = database.prepare("UPDATE pgbench_accounts SET abalance = abalance + ?1 WHERE aid = ?2")?;
    let balance = database.prepare("SELECT abalance FROM pgbench_accounts WHERE aid = ?1")?;
    let teller = database.prepare("UPDATE pgbench_tellers SET tbalance = tbalance + ?1 WHERE tid = ?2")?;
    let branch = database.prepare("UPDATE pgbench_branches SET bbalance = bbalance + ?1 WHERE bid = ?2")?;
    let history = database.prepare(
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?1, ?2, ?3, ?4, CURRENT_TIMESTAMP)",
    )?;
    let (mut draw, mut committed, begun) = (Draw(1), 0, Instant::now());
    while begun.elapsed() < time {
        let [aid, bid, tid] = [ACCOUNTS, 1, TELLERS].map(|each| draw.up_to(each * scale));
        let delta = draw.up_to(2 * MOST + 1) - MOST as i64 - 1;
        begin.run(&[])?;
        account.run(&[delta, aid])?;
        balance.run(&[aid])?;
        teller.run(&[delta, tid])?;
        branch.run(&[delta, bid])?;
        history.run(&[tid, bid, aid, delta])?;
        commit.run(&[])?;
        committed += 1;
    }
    Ok(committed)
}
