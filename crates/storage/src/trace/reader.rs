//! Reads a trace from a file or a pipe, a batch at a time.

use std::io::Read;
use std::path::Path;

use super::{FORMATS, Format, Intake, LONGEST_LINE, Parser, Target, WINDOW};
use crate::{Columns, Segments};
use nephoscope_traces::Lines;

/// How many lines are looked at to tell the format, and among how many they are looked for: those with nothing on them
/// do not count. A wrong line further down is the reader's to report.
const LOOKED_AT: usize = 2;
const AMONG: u64 = 64;

/// A trace that is being read.
pub struct Reader {
    path: String,
    lines: Lines,
    parser: Box<dyn Parser>,
    intake: Intake,
    ended: bool,
}

impl Reader {
    /// Opens a trace.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or the format has no such option.
    pub fn open(path: &Path, format: &Format, options: &[(String, String)]) -> Result<Self, String> {
        let path_shown = path.display().to_string();
        let lines = Lines::open(path, LONGEST_LINE).map_err(|why| format!("{path_shown}: {why}"))?;
        Self::of(path_shown, lines, format, options)
    }

    /// Reads a trace from any source; messages call it `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or the format has no such option.
    pub fn new(
        path: &str,
        source: impl Read + Send + 'static,
        format: &Format,
        options: &[(String, String)],
    ) -> Result<Self, String> {
        let lines = Lines::new(source, LONGEST_LINE).map_err(|why| format!("{path}: {why}"))?;
        Self::of(path.to_owned(), lines, format, options)
    }

    fn of(path: String, lines: Lines, format: &Format, options: &[(String, String)]) -> Result<Self, String> {
        Ok(Self { path, lines, parser: format.parser(options)?, intake: Intake::default(), ended: false })
    }

    /// The next requests, at least [`WINDOW`] of them unless the trace ends; `None` behind the last.
    ///
    /// # Errors
    ///
    /// If a line is not as the format has it; the message begins with the path and the line's number.
    pub fn next(&mut self, segments: &mut Segments) -> Result<Option<Columns>, String> {
        let target = &mut Target { intake: &mut self.intake, segments };
        while !self.ended && target.intake.waiting() < WINDOW {
            let read = match self.lines.next() {
                Ok(Some(line)) => take(self.parser.as_mut(), line, target),
                Ok(None) => {
                    self.ended = true;
                    self.parser.end(target).map_err(|why| format!("{}: {why}", self.path))?;
                    target.intake.end();
                    Ok(())
                }
                Err(why) => Err(why),
            };
            read.map_err(|why| format!("{}: line {}: {why}", self.path, self.lines.number))?;
        }
        Ok(target.intake.ready())
    }

    /// What has come of it so far: how much was taken, and what was left out.
    #[must_use]
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// How many lines were read.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines.number
    }
}

fn take(parser: &mut dyn Parser, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
    if line.trim_ascii().is_empty() { Ok(()) } else { parser.line(line, target) }
}

/// The format of a file, if its first lines belong to one format alone.
///
/// # Errors
///
/// If the file cannot be read.
pub fn guess(path: &Path) -> Result<Option<&'static Format>, String> {
    let mut lines = Lines::open(path, LONGEST_LINE).map_err(|why| format!("{}: {why}", path.display()))?;
    let mut first = Vec::new();
    while first.len() < LOOKED_AT && lines.number < AMONG {
        match lines.next() {
            Ok(Some(line)) if line.trim_ascii().is_empty() => {}
            Ok(Some(line)) => first.push(line.to_vec()),
            _ => break,
        }
    }
    Ok(of_lines(&first))
}

fn of_lines(lines: &[Vec<u8>]) -> Option<&'static Format> {
    let mut fitting =
        FORMATS.iter().copied().filter(|format| format.certain && !lines.is_empty() && reads(format, lines));
    fitting.next().filter(|_| fitting.next().is_none())
}

fn reads(format: &Format, lines: &[Vec<u8>]) -> bool {
    let Ok(mut parser) = format.parser(&[]) else { return false };
    let Ok(mut segments) = Segments::new(1 << 24) else { return false };
    let target = &mut Target { intake: &mut Intake::default(), segments: &mut segments };
    lines.iter().all(|line| parser.line(line, target).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::EXAMPLES;

    #[test]
    fn the_first_lines_tell_the_format() {
        for (name, text, _) in EXAMPLES {
            let lines: Vec<_> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            let certain = Format::of(name).unwrap().certain.then_some(*name);
            assert_eq!(of_lines(&lines).map(|format| format.name), certain, "{name}");
        }
        assert!(of_lines(&[]).is_none());
        for text in ["1,2,3,0,5", "time,offset,bytes", "CPU0 (sda):"] {
            assert!(of_lines(&[text.as_bytes().to_vec()]).is_none(), "{text}");
        }
    }
}
