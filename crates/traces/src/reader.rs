//! Reads logs from files or a pipe, one after the other as one trace, a batch at a time.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::batch::Batch;
use crate::intake::{Intake, WINDOW};
use crate::lines::{End, Lines};
use crate::logs::{FORMATS, Format, Parser, TOO_LONG};
use crate::mask::Mask;

/// The longest record, in bytes; a longer one is left out.
pub(crate) const LONGEST: usize = 8 << 20;
const CUT: &str = "records that are cut off at the end of a file";
/// So much of a file is looked at to tell its format.
const LOOKED_AT: usize = 64 * 1024;

/// How logs are read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether every value is replaced: see [`Mask`].
    pub mask: bool,
    /// The one database whose statements are taken; all if left out.
    pub database: Option<String>,
}

/// Logs that are being read.
pub struct Reader {
    format: &'static Format,
    path: String,
    lines: Option<Lines>,
    later: VecDeque<PathBuf>,
    parser: Box<dyn Parser>,
    intake: Intake,
    record: Vec<u8>,
    records: u64,
    /// Whether the rest of a record that was too long is still to be passed over.
    is_behind_long: bool,
    ended: bool,
}

impl Reader {
    /// Opens logs of one format, which are parts of one log in their order.
    ///
    /// # Errors
    ///
    /// If the first cannot be opened.
    pub fn open(paths: Vec<PathBuf>, format: &'static Format, options: &Options) -> Result<Self, String> {
        let mut reader = Self::of(format, options)?;
        reader.later = paths.into();
        reader.next_file()?;
        Ok(reader)
    }

    /// Reads a log from any source; messages call it `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn new(
        path: &str,
        source: impl Read + Send + 'static,
        format: &'static Format,
        options: &Options,
    ) -> Result<Self, String> {
        let mut reader = Self::of(format, options)?;
        path.clone_into(&mut reader.path);
        reader.lines = Some(Lines::new(source, LONGEST).map_err(|why| format!("{path}: {why}"))?);
        Ok(reader)
    }

    fn of(format: &'static Format, options: &Options) -> Result<Self, String> {
        let mask = if options.mask { Some(Mask::new()?) } else { None };
        Ok(Self {
            format,
            path: String::new(),
            lines: None,
            later: VecDeque::new(),
            parser: (format.make)(),
            intake: Intake::new(format.lexer, mask, options.database.clone()),
            record: Vec::new(),
            records: 0,
            is_behind_long: false,
            ended: false,
        })
    }

    fn next_file(&mut self) -> Result<(), String> {
        self.lines = None;
        if let Some(path) = self.later.pop_front() {
            self.path = path.display().to_string();
            self.lines = Some(Lines::open(&path, LONGEST).map_err(|why| format!("{}: {why}", self.path))?);
        }
        Ok(())
    }

    /// The next statements, in the order of their beginnings as far as a window of them tells; `None` behind the last.
    ///
    /// # Errors
    ///
    /// If a record is not as the format has it; the message begins with the path and the number of the record's line.
    #[expect(clippy::should_implement_trait, reason = "behind an error there is nothing")]
    pub fn next(&mut self) -> Result<Option<Batch>, String> {
        while !self.ended && self.intake.waiting() < WINDOW {
            if self.lines.is_none() {
                self.ended = true;
                self.parser.end(&mut self.intake);
                self.intake.end();
                break;
            }
            self.read_record()?;
        }
        Ok(self.intake.ready())
    }

    fn read_record(&mut self) -> Result<(), String> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        let (record, mut number) = (&mut self.record, lines.number + 1);
        record.clear();
        let (mut quotes, mut ended) = (0, None);
        loop {
            let from = record.len();
            let read =
                lines.read(record).map_err(|why| format!("{}: line {}: {why}", self.path, lines.number))?;
            ended = read.or(ended);
            match read {
                Some(End::Beyond) => break,
                None if from == 0 => return self.next_file(),
                None => {
                    self.intake.leave_out(CUT);
                    return Ok(());
                }
                Some(_) => {}
            }
            if self.is_behind_long {
                if !self.parser.begins(&String::from_utf8_lossy(record)) {
                    record.clear();
                    continue;
                }
                (self.is_behind_long, number) = (false, lines.number);
            }
            if self.format.is_quoted {
                quotes += record[from..].split(|byte| *byte == b'"').count() - 1;
            }
            if quotes % 2 == 0 {
                break;
            }
        }
        if ended == Some(End::Beyond) {
            self.intake.leave_out(TOO_LONG);
            self.parser.skipped();
            self.is_behind_long = true;
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(record) else {
            self.intake.leave_out("records that are not UTF-8");
            self.parser.skipped();
            return Ok(());
        };
        match self.parser.record(text, &mut self.intake) {
            // A server that is still writing, or was killed, has written a part of it.
            Err(_) if ended == Some(End::File) && self.records > 0 => self.intake.leave_out(CUT),
            Err(why) => return Err(format!("{}: line {number}: {why}", self.path)),
            Ok(()) => {}
        }
        self.records += 1;
        Ok(())
    }

    /// What was left out so far: why, and how often.
    #[must_use]
    pub fn left_out(&self) -> &BTreeMap<&'static str, u64> {
        self.intake.left_out()
    }

    /// How many records were read.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The time zone of the log's clock: `UTC`, an abbreviation as the log has it, or nothing where it does not say.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.parser.zone()
    }
}

/// The format of a file, if its first line belongs to one format alone.
///
/// # Errors
///
/// If the file cannot be read.
pub fn guess(path: &Path) -> Result<Option<&'static Format>, String> {
    let shown = |why: String| format!("{}: {why}", path.display());
    let mut lines = Lines::open(path, LOOKED_AT).map_err(shown)?;
    let mut line = Vec::new();
    while line.trim_ascii().is_empty() {
        line.clear();
        if lines.read(&mut line).map_err(shown)?.is_none() {
            return Ok(None);
        }
    }
    Ok(of_start(&String::from_utf8_lossy(&line)))
}

fn of_start(start: &str) -> Option<&'static Format> {
    let start = start.trim_end_matches(['\r', '\n']);
    let mut fitting = FORMATS.iter().copied().filter(|format| (format.fits)(start));
    fitting.next().filter(|_| fitting.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::EXAMPLES;

    #[test]
    fn the_first_line_tells_the_format() {
        for (name, text, _) in EXAMPLES {
            let start = text.lines().next().unwrap();
            assert_eq!(of_start(start).map(|format| format.name), Some(*name));
        }
        for start in ["", "a,b", "{}", "2026-01-31 23:59:59 UTC", "SELECT 1"] {
            assert!(of_start(start).is_none(), "{start}");
        }
    }
}
