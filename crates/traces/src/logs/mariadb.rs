//! What the general log of `MariaDB` and `MySQL` says of statements, whatever the form of its records.

use std::collections::HashMap;

use super::shown;
use crate::intake::{Event, Intake};

/// The commands of a client, as the log names them.
pub(crate) const COMMANDS: &[&str] = &[
    "Binlog Dump",
    "Binlog Dump GTID",
    "Change user",
    "Close stmt",
    "Connect",
    "Connect Out",
    "Create DB",
    "Daemon",
    "Debug",
    "Delayed insert",
    "Drop DB",
    "Error",
    "Execute",
    "Fetch",
    "Field List",
    "Init DB",
    "Kill",
    "Long Data",
    "Ping",
    "Prepare",
    "Processlist",
    "Query",
    "Quit",
    "Refresh",
    "Register Slave",
    "Reset Connection",
    "Reset connection",
    "Reset stmt",
    "Set option",
    "Shutdown",
    "Sleep",
    "Slave_IO",
    "Slave_SQL",
    "Slave_worker",
    "Statistics",
    "Table Dump",
    "Time",
    "Bulk_execute",
    "Bulk Execute",
];

/// Follows the sessions of a general log.
#[derive(Debug, Default)]
pub(crate) struct General {
    /// The database that each thread uses.
    databases: HashMap<String, String>,
}

impl General {
    /// Takes a command of a thread.
    pub(crate) fn command(
        &mut self,
        thread: &str,
        time_us: i64,
        command: &str,
        argument: &str,
        intake: &mut Intake,
    ) -> Result<(), String> {
        match command {
            "Connect" | "Change user" => {
                intake.end_session(thread);
                // user@host on DATABASE using Socket
                let database = argument.rsplit_once(" on ").map_or("", |(_, rest)| rest);
                let database = database.split(" using ").next().unwrap_or_default().trim();
                self.databases.insert(thread.to_owned(), database.to_owned());
            }
            "Init DB" => {
                self.databases.insert(thread.to_owned(), argument.to_owned());
            }
            "Quit" => {
                intake.end_session(thread);
                self.databases.remove(thread);
            }
            "Query" if begins(argument, "execute ") && !begins(argument, "execute immediate") => {
                intake.leave_out("EXECUTE statements, whose executions are records of their own");
            }
            "Query" | "Execute" => {
                let database = self.databases.get(thread).map_or("", String::as_str);
                let event = Event { session: thread, database, time_us, text: argument, ..Event::default() };
                intake.take(event);
                if let Some(name) = used_database(argument) {
                    self.databases.insert(thread.to_owned(), name.to_owned());
                }
            }
            known if COMMANDS.contains(&known) => intake.leave_out("commands that run no statement"),
            other => {
                return Err(format!(
                    "the command is {} (allowed: such as Query, Execute, Connect)",
                    shown(other)
                ));
            }
        }
        Ok(())
    }
}

/// The database that a statement changes to.
pub(crate) fn used_database(statement: &str) -> Option<&str> {
    begins(statement, "use ").then(|| statement[4..].trim().trim_end_matches(';').trim_matches('`'))
}

fn begins(argument: &str, words: &str) -> bool {
    argument.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
}
