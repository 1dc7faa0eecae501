//! The file of the table `mysql.general_log`, `general_log.CSV` (`log_output = TABLE`).

use nephoscope_drivers::Lexer;

use super::csv::{Escapes, fields};
use super::mariadb::General;
use super::moment::moment;
use super::{Format, Parser, shown, without_end};
use crate::intake::Intake;

pub(crate) const FORMAT: Format = Format {
    name: "mariadb-general-table",
    about: "the general log of MariaDB and MySQL as a table (log_output = TABLE): the file general_log.CSV",
    dialect: "mysql",
    resolution_us: 1,
    lexer: Lexer::MYSQL,
    is_quoted: false,
    make: || Box::new(Table::default()),
    fits: |start| {
        let time = start.strip_prefix('"').and_then(|rest| rest.split('"').next());
        time.and_then(moment).is_some()
    },
};

#[derive(Default)]
struct Table(General);

impl Parser for Table {
    fn record(&mut self, record: &str, intake: &mut Intake) -> Result<(), String> {
        let record = without_end(record);
        if record.is_empty() {
            return Ok(());
        }
        let found = fields(record, Escapes::Backslash)?;
        let [time, _, thread, _, command, argument] = found.as_slice() else {
            return Err(format!(
                "it has {} columns (allowed: 6, event_time, user_host, thread_id, server_id, command_type, argument)",
                found.len()
            ));
        };
        let Some(moment) = moment(time) else {
            return Err(format!("its time is {} (allowed: such as 2026-01-31 23:59:59.123456)", shown(time)));
        };
        self.0.command(thread, moment.micros, command, argument, intake)
    }

    fn end(&mut self, _intake: &mut Intake) {}

    fn zone(&self) -> &'static str {
        ""
    }
}
