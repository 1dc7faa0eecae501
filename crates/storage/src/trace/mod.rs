//! Block traces that other tools wrote, as requests: a file a format, and one table of formats.

mod alibaba;
mod blkparse;
mod fields;
pub mod fio;
mod intake;
mod msr;
mod reader;
mod spc;
mod strace;
mod tencent;

pub use intake::{Entry, Intake, LONGEST_DAYS, WINDOW};
pub use reader::{Reader, guess};

use crate::Segments;

/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Reads a trace line by line.
pub trait Parser: Send {
    /// Takes a line without its end; what it asks for goes to `target`, now or with a later line.
    ///
    /// # Errors
    ///
    /// If it is no line of this format; the message says what is wrong and what is allowed.
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String>;

    /// Gives what waited for a later line.
    ///
    /// # Errors
    ///
    /// If the trace cannot end so.
    fn end(&mut self, _target: &mut Target<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Where a parser's requests go.
pub struct Target<'a> {
    /// Puts them in order.
    pub intake: &'a mut Intake,
    /// Numbers their segments.
    pub segments: &'a mut Segments,
}

impl Target<'_> {
    fn take(&mut self, name: &str, entry: &Entry) -> Result<(), String> {
        self.intake.take(self.segments, name, entry)
    }
}

/// An option of a format: its name, what it decides, and what it may be, the default first.
#[derive(Debug)]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// What it decides.
    pub about: &'static str,
    /// What it may be; the first is the default.
    pub allowed: &'static [&'static str],
}

/// What was chosen for each option of a format.
#[derive(Clone, Debug, Default)]
pub struct Chosen(Vec<&'static str>);

impl Chosen {
    /// What was chosen for the option at a place in the format's list.
    fn at(&self, place: usize) -> &'static str {
        self.0.get(place).copied().unwrap_or_default()
    }
}

/// A format of traces.
#[derive(Debug)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// What writes it, or where it comes from.
    pub about: &'static str,
    /// Whether a file's first lines tell it from every other format.
    pub certain: bool,
    /// Its options.
    pub choices: &'static [Choice],
    make: fn(&Chosen) -> Box<dyn Parser>,
}

/// Every format.
pub const FORMATS: [&Format; 7] = [
    &blkparse::FORMAT,
    &fio::FORMAT,
    &strace::FORMAT,
    &msr::FORMAT,
    &alibaba::FORMAT,
    &tencent::FORMAT,
    &spc::FORMAT,
];

impl Format {
    /// The format of this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn of(name: &str) -> Result<&'static Self, String> {
        FORMATS.iter().copied().find(|format| format.name == name).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("no trace format `{name}` (allowed: {})", names.join(", "))
        })
    }

    /// A parser with these options, given as names and values.
    ///
    /// # Errors
    ///
    /// If the format has no such option, or the option no such value.
    pub fn parser(&self, options: &[(String, String)]) -> Result<Box<dyn Parser>, String> {
        let mut chosen = Chosen(self.choices.iter().map(|choice| choice.allowed[0]).collect());
        for (name, value) in options {
            let place = self.choices.iter().position(|choice| choice.name == name).ok_or_else(|| {
                let names: Vec<&str> = self.choices.iter().map(|choice| choice.name).collect();
                let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("the format {} has no option `{name}` (allowed: {allowed})", self.name)
            })?;
            let allowed = self.choices[place].allowed;
            chosen.0[place] = allowed
                .iter()
                .find(|known| **known == value.as_str())
                .ok_or_else(|| format!("the option {name} is `{value}` (allowed: {})", allowed.join(", ")))?;
        }
        Ok((self.make)(&chosen))
    }
}

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod tests;
