//! `PostgreSQL`'s jsonlog, since version 15 (manual, section 20.8.5 "Using JSON-Format Log Output").

use std::borrow::Cow;

use nephoscope_drivers::Lexer;
use serde::Deserialize;

use super::postgres::{Line, Postgres};
use super::{Format, Parser};
use crate::intake::Intake;

pub(crate) const FORMAT: Format = Format {
    name: "postgresql-json",
    about: "PostgreSQL's jsonlog (log_destination = 'jsonlog')",
    dialect: "postgres",
    resolution_us: 1000,
    lexer: Lexer::POSTGRES,
    is_quoted: false,
    make: || Box::new(Json::default()),
    fits: |start| {
        start.starts_with('{') && start.split('\n').next().is_some_and(|line| line.contains("\"timestamp\""))
    },
};

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    dbname: Cow<'a, str>,
    #[serde(borrow, default)]
    session_id: Cow<'a, str>,
    #[serde(borrow, default)]
    error_severity: Cow<'a, str>,
    #[serde(borrow, default)]
    state_code: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
    #[serde(borrow, default)]
    context: Cow<'a, str>,
    #[serde(borrow, default)]
    statement: Cow<'a, str>,
    #[serde(borrow, default)]
    backend_type: Cow<'a, str>,
}

#[derive(Default)]
struct Json(Postgres);

impl Parser for Json {
    fn record(&mut self, record: &str, intake: &mut Intake) -> Result<(), String> {
        if record.trim().is_empty() {
            return Ok(());
        }
        // The error itself may hold a value of the record.
        let found: Record<'_> = serde_json::from_str(record).map_err(|error| {
            format!("column {}: it is no JSON object as jsonlog has them, a line each", error.column())
        })?;
        self.0.line(
            &Line {
                time: &found.timestamp,
                database: &found.dbname,
                session: &found.session_id,
                severity: &found.error_severity,
                state: &found.state_code,
                message: &found.message,
                detail: &found.detail,
                context: &found.context,
                query: &found.statement,
                backend: &found.backend_type,
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
