//! The general log of `MariaDB` and `MySQL` as a file (`log_output = FILE`). A statement's further lines stand in it as
//! they are: one that looks like a record's beginning is taken for one.

use nephoscope_drivers::Lexer;

use super::mariadb::{COMMANDS, General};
use super::moment::{days, moment, number, time_of_day};
use super::{Format, Parser, shown, without_end};
use crate::intake::Intake;
use crate::reader::LONGEST;

pub(crate) const FORMAT: Format = Format {
    name: "mariadb-general",
    about: "the general log of MariaDB and MySQL as a file (log_output = FILE); MariaDB's times are whole seconds",
    dialect: "mysql",
    resolution_us: 1_000_000,
    lexer: Lexer::MYSQL,
    is_quoted: false,
    make: || Box::new(File::default()),
    fits: |start| {
        let mut lines = start.lines();
        lines.next().is_some_and(|line| is_banner(line) || head(line).is_some_and(|head| head.time.is_some()))
    },
};

#[derive(Default)]
struct File {
    general: General,
    time_us: Option<i64>,
    is_utc: bool,
    begun: Option<Begun>,
    /// How many lines of a server's banner are still to come.
    banner: u8,
}

/// A command whose lines are still coming.
struct Begun {
    time_us: i64,
    thread: String,
    command: &'static str,
    argument: String,
}

/// What a record begins with.
struct Head<'a> {
    /// Its time, where it has one, and whether that is of UTC.
    time: Option<(i64, bool)>,
    thread: &'a str,
    command: &'static str,
    argument: &'a str,
}

fn is_banner(line: &str) -> bool {
    line.contains(", Version: ") && line.ends_with("started with:")
}

fn head(line: &str) -> Option<Head<'_>> {
    let (time, rest) = match line.strip_prefix("\t\t") {
        Some(rest) => (None, rest),
        None => {
            let (time, rest) = line.split_once('\t')?;
            (Some(time_of(time)?), rest)
        }
    };
    let rest = rest.trim_start_matches(' ');
    let (thread, rest) = rest.split_once(' ')?;
    if thread.is_empty() || !thread.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (command, argument) = rest.split_once('\t')?;
    let command = COMMANDS.iter().find(|known| **known == command)?;
    Some(Head { time, thread, command, argument })
}

/// Reads `260131 23:59:59` or `2026-01-31T23:59:59.123456Z`.
fn time_of(text: &str) -> Option<(i64, bool)> {
    let bytes = text.as_bytes();
    if bytes.get(6) == Some(&b' ') {
        let date = |from: usize| bytes.get(from..from + 2).and_then(number);
        let days = days(2000 + date(0)?, date(2)?, date(4)?)?;
        return Some((days * 86_400_000_000 + time_of_day(bytes.get(7..)?)?, false));
    }
    moment(text).map(|moment| (moment.micros, moment.zone == "UTC"))
}

impl File {
    fn give(&mut self, intake: &mut Intake) -> Result<(), String> {
        match self.begun.take() {
            Some(Begun { time_us, thread, command, argument }) => {
                self.general.command(&thread, time_us, command, &argument, intake)
            }
            None => Ok(()),
        }
    }
}

impl Parser for File {
    fn skipped(&mut self) {
        self.begun = None;
    }

    fn record(&mut self, record: &str, intake: &mut Intake) -> Result<(), String> {
        let line = without_end(record);
        if self.banner > 0 {
            self.banner -= 1;
            return Ok(());
        }
        if is_banner(line) {
            self.banner = 2;
            return self.give(intake);
        }
        if let Some(head) = head(line) {
            self.give(intake)?;
            if let Some((time_us, is_utc)) = head.time {
                (self.time_us, self.is_utc) = (Some(time_us), is_utc);
            }
            let Some(time_us) = self.time_us else {
                // The file was cut before the first time: what it says so far has none.
                intake.leave_out("records before the first time");
                return Ok(());
            };
            let thread = head.thread.to_owned();
            let argument = head.argument.to_owned();
            self.begun = Some(Begun { time_us, thread, command: head.command, argument });
            return Ok(());
        }
        match &mut self.begun {
            Some(begun) if begun.argument.len() + line.len() < LONGEST => {
                begun.argument.push('\n');
                begun.argument.push_str(line);
            }
            Some(_) => {
                self.begun = None;
                intake.leave_out(super::TOO_LONG);
            }
            None if self.time_us.is_some() => {}
            None => {
                return Err(format!(
                    "it is {} (allowed: a time, a thread and a command, such as Query)",
                    shown(line)
                ));
            }
        }
        Ok(())
    }

    fn end(&mut self, intake: &mut Intake) {
        // Commands of the table are known.
        let _ = self.give(intake);
    }

    fn zone(&self) -> &'static str {
        if self.is_utc { "UTC" } else { "" }
    }
}
