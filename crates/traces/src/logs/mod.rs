//! Logs of servers: a file a format, and one table of formats.

mod csv;
mod mariadb;
mod mariadb_file;
mod mariadb_table;
mod moment;
mod postgres;
mod postgres_csv;
mod postgres_json;

use nephoscope_drivers::Lexer;

use crate::intake::Intake;
pub(crate) use mariadb::used_database;

/// Reads the records of a log.
pub(crate) trait Parser: Send {
    /// Whether a line begins a record, as far as that can be seen: asked behind a record that was too long.
    fn begins(&self, _line: &str) -> bool {
        true
    }

    /// A line was too long, and is not given.
    fn skipped(&mut self) {}

    /// Takes a record, with the end of its line; what it says goes to `intake`, now or with a later record.
    ///
    /// # Errors
    ///
    /// If it is none of this format; the message says what is wrong and what is allowed.
    fn record(&mut self, record: &str, intake: &mut Intake) -> Result<(), String>;

    /// Gives what waited for a later record.
    fn end(&mut self, intake: &mut Intake);

    /// The time zone of the log's clock, where the log says it; see [`moment::Moment`].
    fn zone(&self) -> &str;
}

/// A format of logs.
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// What writes it.
    pub about: &'static str,
    /// The dialect of its statements.
    pub dialect: &'static str,
    /// How fine its times are, in microseconds.
    pub resolution_us: u64,
    pub(crate) lexer: Lexer,
    /// Whether a line's end may stand within quotes, and is no end of the record there.
    pub(crate) is_quoted: bool,
    pub(crate) make: fn() -> Box<dyn Parser>,
    /// Whether a file that begins so is one.
    pub(crate) fits: fn(&str) -> bool,
}

/// Every format.
pub const FORMATS: [&Format; 4] =
    [&postgres_csv::FORMAT, &postgres_json::FORMAT, &mariadb_file::FORMAT, &mariadb_table::FORMAT];

impl Format {
    /// How its statements are read.
    #[must_use]
    pub fn lexer(&self) -> Lexer {
        self.lexer
    }

    /// The format of this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn of(name: &str) -> Result<&'static Self, String> {
        FORMATS.iter().copied().find(|format| format.name == name).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("no format `{name}` (allowed: {})", names.join(", "))
        })
    }
}

/// Why a record is left out that is longer than [`crate::reader::LONGEST`].
pub(crate) const TOO_LONG: &str = "records longer than 8 MiB";

/// A text in a message: short, and without what could command a terminal.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("`{}`", short.escape_debug())
}

/// A record without the end of its line.
fn without_end(record: &str) -> &str {
    let record = record.strip_suffix('\n').unwrap_or(record);
    record.strip_suffix('\r').unwrap_or(record)
}
