//! fio's I/O log, versions 2 and 3 (`--write_iolog`, `--read_iolog`), read and written.

use std::io::Write;

use super::fields::{show, text, unsigned, words};
use super::{Choice, Entry, Format, Parser, Target};
use crate::Operation;

pub(super) const FORMAT: Format = Format {
    name: "fio",
    about: "fio's I/O log, version 2 or 3 (--write_iolog)",
    certain: true,
    choices: &[Choice {
        name: "unit",
        about: "what version 3 counts its times in: fio writes microseconds, its manual said milliseconds",
        allowed: &["us", "ms"],
    }],
    make: |chosen| {
        Box::new(Fio { version: None, unit_us: if chosen.at(0) == "ms" { 1000 } else { 1 }, time_us: 0 })
    },
};

const HEADER: &[u8] = b"fio version ";

struct Fio {
    version: Option<u8>,
    unit_us: u64,
    /// Of version 2: all waits so far.
    time_us: i64,
}

impl Parser for Fio {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        let Some(version) = self.version else { return self.header(line) };
        let (mut found, mut count) = words::<6>(line);
        if version == 3 {
            self.time_us = time(found[0], self.unit_us)?;
            found.rotate_left(1);
            count = count.saturating_sub(1);
        }
        let [file, action, ..] = found;
        match (action, count) {
            (b"add" | b"open" | b"close", 2) => Ok(()),
            (b"wait", 3 | 4) if version == 2 => {
                let waited = time(found[2], 1)?;
                self.time_us = self.time_us.checked_add(waited).ok_or("all waits add up to too much")?;
                Ok(())
            }
            (_, 2 | 4) => target.take(text(file, "the file")?, &self.entry(action, &found, count)?),
            _ => Err(format!("{} is no line of version {version} (allowed: {})", show(line), form(version))),
        }
    }
}

impl Fio {
    fn header(&mut self, line: &[u8]) -> Result<(), String> {
        match line.strip_prefix(HEADER).map(<[u8]>::trim_ascii) {
            Some(b"2 iolog") => self.version = Some(2),
            Some(b"3 iolog") => self.version = Some(3),
            _ => return Err(format!("{} (allowed: fio version 2 iolog, fio version 3 iolog)", show(line))),
        }
        Ok(())
    }

    fn entry(&self, action: &[u8], found: &[&[u8]; 6], count: usize) -> Result<Entry, String> {
        let operation = match action {
            b"read" => Operation::Read,
            b"write" => Operation::Write,
            b"sync" | b"datasync" => Operation::Sync,
            b"trim" => Operation::Discard,
            _ => return Err(format!("the action is {} (allowed: {ACTIONS})", show(action))),
        };
        let (mut offset, mut bytes) = (0, 0);
        if operation != Operation::Sync {
            if count != 4 {
                return Err("an offset and a length are missing".to_owned());
            }
            (offset, bytes) = (unsigned(found[2], "the offset")?, unsigned(found[3], "the length")?);
        }
        Ok(Entry { time_us: self.time_us, offset, bytes, operation, latency_us: f32::NAN })
    }
}

const ACTIONS: &str = "read, write, sync, datasync, trim, add, open, close; in version 2 wait";

fn form(version: u8) -> &'static str {
    if version == 3 { "TIME FILE ACTION [OFFSET LENGTH]" } else { "FILE ACTION [OFFSET LENGTH]" }
}

fn time(field: &[u8], unit_us: u64) -> Result<i64, String> {
    let time = unsigned(field, "the time")?;
    let micros = time.checked_mul(unit_us).and_then(|micros| i64::try_from(micros).ok());
    micros.ok_or_else(|| format!("the time is {time}, which is too late"))
}

/// Writes the beginning of a log of version 3 about these files, which fio opens before the first request.
///
/// # Errors
///
/// If `out` does not take it.
pub fn write_header(out: &mut dyn Write, files: &[&str]) -> std::io::Result<()> {
    writeln!(out, "fio version 3 iolog")?;
    for action in ["add", "open"] {
        for file in files {
            writeln!(out, "0 {file} {action}")?;
        }
    }
    Ok(())
}

/// Writes a request as a line of version 3: its time in microseconds, the file, and the offset from its beginning.
///
/// # Errors
///
/// If `out` does not take it.
pub fn write_request(out: &mut dyn Write, file: &str, entry: &Entry) -> std::io::Result<()> {
    let action = match entry.operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Sync => "sync",
        Operation::Discard => "trim",
    };
    writeln!(out, "{} {file} {action} {} {}", entry.time_us, entry.offset, entry.bytes)
}
