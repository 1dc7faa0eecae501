//! What `PostgreSQL`'s server log says of statements, whatever the form of its records.

use std::collections::HashMap;

use super::moment::moment;
use super::shown;
use crate::intake::{Event, Intake};

/// The fields of a record that are read.
#[derive(Debug, Default)]
pub(crate) struct Line<'a> {
    pub(crate) time: &'a str,
    pub(crate) database: &'a str,
    pub(crate) session: &'a str,
    pub(crate) severity: &'a str,
    pub(crate) state: &'a str,
    pub(crate) message: &'a str,
    pub(crate) detail: &'a str,
    pub(crate) context: &'a str,
    pub(crate) query: &'a str,
    pub(crate) backend: &'a str,
}

/// A statement that was logged when it began; its duration may follow.
#[derive(Debug)]
struct Begun {
    database: String,
    time_us: i64,
    text: String,
    detail: String,
}

/// Follows the statements of each session.
#[derive(Debug, Default)]
pub(crate) struct Postgres {
    zone: Option<String>,
    begun: HashMap<String, Begun>,
}

const OTHER: &str = "messages that are no statements";
const STEPS: &str = "steps of statements: parse, bind, fetch, and durations without a text";

/// What a message says.
enum Said<'a> {
    /// A statement, with its duration in microseconds where that is known.
    Statement(Option<i64>, &'a str),
    /// How long the statement took that was logged before.
    Duration(i64),
    Step,
    Other,
}

impl Postgres {
    pub(crate) fn line(&mut self, line: &Line<'_>, intake: &mut Intake) -> Result<(), String> {
        let Some(moment) = moment(line.time) else {
            let allowed = "2026-01-31 23:59:59.123 UTC, as log_timezone = 'UTC' has it";
            return Err(format!("its time is {} (allowed: such as {allowed})", shown(line.time)));
        };
        let zone = self.zone.get_or_insert_with(|| moment.zone.to_owned());
        if zone != moment.zone {
            let (before, now) = (shown(zone), shown(moment.zone));
            return Err(format!(
                "the clock changes from {before} to {now}: record with log_timezone = 'UTC'"
            ));
        }
        if line.session.is_empty() || !matches!(line.backend, "" | "client backend") {
            intake.leave_out(OTHER);
            return Ok(());
        }
        match line.severity {
            "LOG" => self.message(line, moment.micros, intake),
            "ERROR" | "FATAL" | "PANIC" => self.error(line, moment.micros, intake),
            _ => intake.leave_out(OTHER),
        }
        Ok(())
    }

    fn message(&mut self, line: &Line<'_>, time_us: i64, intake: &mut Intake) {
        match said(line.message) {
            Said::Statement(Some(duration), text) => {
                self.give(line.session, None, None, intake);
                give(line, text, time_us - duration, Some(duration), None, intake);
            }
            Said::Statement(None, text) => {
                self.give(line.session, None, None, intake);
                let begun = Begun {
                    database: line.database.to_owned(),
                    time_us,
                    text: text.to_owned(),
                    detail: line.detail.to_owned(),
                };
                self.begun.insert(line.session.to_owned(), begun);
            }
            Said::Duration(duration) => {
                if !self.give(line.session, Some(duration), None, intake) {
                    intake.leave_out(STEPS);
                }
            }
            Said::Step => intake.leave_out(STEPS),
            Said::Other => intake.leave_out(OTHER),
        }
    }

    fn error(&mut self, line: &Line<'_>, time_us: i64, intake: &mut Intake) {
        if line.query.is_empty() {
            return intake.leave_out(OTHER);
        }
        if let Some(begun) = self.begun.get(line.session).filter(|begun| begun.text == line.query) {
            let duration = time_us - begun.time_us;
            self.give(line.session, Some(duration.max(0)), Some(line.state), intake);
            return;
        }
        self.give(line.session, None, None, intake);
        give(line, line.query, time_us, None, Some(line.state), intake);
    }

    /// Gives the statement that a session has begun, if it has.
    fn give(
        &mut self,
        session: &str,
        duration_us: Option<i64>,
        error: Option<&str>,
        intake: &mut Intake,
    ) -> bool {
        let Some(begun) = self.begun.remove(session) else { return false };
        let line = Line { session, database: &begun.database, detail: &begun.detail, ..Line::default() };
        give(&line, &begun.text, begun.time_us, duration_us, error, intake);
        true
    }

    pub(crate) fn end(&mut self, intake: &mut Intake) {
        let mut left: Vec<(String, i64)> =
            self.begun.iter().map(|(session, begun)| (session.clone(), begun.time_us)).collect();
        left.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        for (session, _) in left {
            self.give(&session, None, None, intake);
        }
    }

    pub(crate) fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or_default()
    }
}

fn give(
    line: &Line<'_>,
    text: &str,
    time_us: i64,
    duration_us: Option<i64>,
    error: Option<&str>,
    intake: &mut Intake,
) {
    let given = line.detail.strip_prefix("parameters: ").or_else(|| line.detail.strip_prefix("Parameters: "));
    let in_context = || line.context.split_once("with parameters: ").map(|(_, given)| given);
    let beside = if given.is_none() { line.detail } else { "" };
    intake.take(Event {
        session: line.session,
        database: line.database,
        time_us,
        duration_us,
        rows: None,
        text,
        bound: given.or_else(in_context).map_or_else(Vec::new, bound),
        beside,
        error,
    });
}

fn said(message: &str) -> Said<'_> {
    let (duration, rest) = match message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms")) {
        Some((duration, rest)) => match micros(duration) {
            Some(micros) if rest.is_empty() => return Said::Duration(micros),
            Some(micros) => (Some(micros), rest.trim_start()),
            None => return Said::Other,
        },
        None => (None, message),
    };
    if let Some(text) = rest.strip_prefix("statement: ") {
        return Said::Statement(duration, text);
    }
    match rest.split_once(": ") {
        Some((step, text)) => match step.split_once(' ') {
            Some(("execute", name)) if !name.starts_with("fetch from ") => Said::Statement(duration, text),
            Some(("execute" | "parse" | "bind", _)) => Said::Step,
            _ => Said::Other,
        },
        None => Said::Other,
    }
}

/// Milliseconds with three digits behind the point, as microseconds.
fn micros(text: &str) -> Option<i64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 13 || rest.len() > 3 || !digits(whole) || !digits(rest) {
        return None;
    }
    let fraction =
        if rest.is_empty() { 0 } else { rest.parse::<i64>().ok()? * 10_i64.pow(3 - rest.len() as u32) };
    Some(whole.parse::<i64>().ok()? * 1000 + fraction)
}

/// Reads `$1 = 'it''s', $2 = NULL` as values; what follows them does not count.
fn bound(given: &str) -> Vec<Option<String>> {
    let (mut found, mut rest) = (Vec::new(), given);
    while let Some((_, value)) = rest.strip_prefix('$').and_then(|rest| rest.split_once(" = ")) {
        let after = if let Some(quoted) = value.strip_prefix('\'') {
            let Some((value, after)) = quoted_value(quoted) else { return found };
            found.push(Some(value));
            after
        } else if let Some(after) = value.strip_prefix("NULL") {
            found.push(None);
            after
        } else {
            return found;
        };
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return found,
        }
    }
    found
}

fn quoted_value(quoted: &str) -> Option<(String, &str)> {
    let mut from = 0;
    loop {
        let end = from + quoted[from..].find('\'')?;
        if !quoted[end + 1..].starts_with('\'') {
            return Some((quoted[..end].replace("''", "'"), &quoted[end + 1..]));
        }
        from = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_values_are_read_as_they_were_given() {
        let given = "$1 = '5', $2 = NULL, $3 = 'it''s, $4 = ''x''\n', $4 = ''";
        let expected = ["5", "it's, $4 = 'x'\n", ""].map(|value| Some(value.to_owned()));
        let [first, third, fourth] = expected;
        assert_eq!(bound(given), [first, None, third, fourth]);
        assert_eq!(bound("$1 = 'a"), []);
        assert_eq!(bound(""), []);
    }

    #[test]
    fn durations_are_microseconds() {
        assert_eq!(micros("0.120"), Some(120));
        assert_eq!(micros("1234.5"), Some(1_234_500));
        assert_eq!(micros("7"), Some(7000));
        assert_eq!([micros(""), micros("1,5"), micros("-1")], [None; 3]);
    }
}
