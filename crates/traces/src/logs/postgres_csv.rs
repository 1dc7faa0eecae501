//! `PostgreSQL`'s csvlog (manual, section 20.8.4 "Using CSV-Format Log Output").

use std::borrow::Cow;

use nephoscope_drivers::Lexer;

use super::csv::{Escapes, fields};
use super::moment::moment;
use super::postgres::{Line, Postgres};
use super::{Format, Parser, without_end};
use crate::intake::Intake;

pub(crate) const FORMAT: Format = Format {
    name: "postgresql-csv",
    about: "PostgreSQL's csvlog (log_destination = 'csvlog')",
    dialect: "postgres",
    resolution_us: 1000,
    lexer: Lexer::POSTGRES,
    is_quoted: true,
    make: || Box::new(Csv::default()),
    fits: |start| {
        let record = start.split('\n').next().unwrap_or_default();
        moment(record.split(',').next().unwrap_or_default()).is_some() && record.matches(',').count() >= 5
    },
};

/// The numbers of columns: up to version 12, 13, and 14 or later.
const COLUMNS: [usize; 3] = [23, 24, 26];

#[derive(Default)]
struct Csv(Postgres);

impl Parser for Csv {
    fn begins(&self, line: &str) -> bool {
        (FORMAT.fits)(line)
    }

    fn record(&mut self, record: &str, intake: &mut Intake) -> Result<(), String> {
        let record = without_end(record);
        if record.is_empty() {
            return Ok(());
        }
        let found = fields(record, Escapes::Doubled)?;
        if !COLUMNS.contains(&found.len()) {
            return Err(format!(
                "it has {} columns (allowed: 26, 24 or 23, as csvlog has them)",
                found.len()
            ));
        }
        let at = |column: usize| found.get(column).map_or("", Cow::as_ref);
        self.0.line(
            &Line {
                time: at(0),
                database: at(2),
                session: at(5),
                severity: at(11),
                state: at(12),
                message: at(13),
                detail: at(14),
                context: at(18),
                query: at(19),
                backend: at(23),
            },
            intake,
        )
    }

    fn end(&mut self, intake: &mut Intake) {
        self.0.end(intake);
    }

    fn zone(&self) -> &str {
        self.0.zone()
    }
}
