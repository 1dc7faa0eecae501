//! A set-up connection that asks one question after the other, and waits for each answer.

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos};

use crate::contract::driver::Settings;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::interrupt::Interrupt;
use crate::net::channel::Channel;
use crate::net::reach::is_time_out;

/// What a blocking connection needs beside its channel: a runtime of its own, a time limit, and an end to its waits.
pub(crate) struct Asking {
    pub(crate) runtime: Runtime,
    pub(crate) interrupt: Interrupt,
    /// The longest that a question may take, its answer included.
    pub(crate) answer_timeout: Nanos,
    /// Whether a question was given up: its answer may still come, and would be taken for that of the next.
    is_given_up: bool,
}

impl Asking {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let (interrupt, answer_timeout) = (settings.interrupt.clone(), settings.answer_timeout);
        Ok(Self { runtime: Runtime::new()?, interrupt, answer_timeout, is_given_up: false })
    }

    /// Asks a question on a channel and waits for the outcome.
    pub(crate) fn ask<L, T>(
        &mut self,
        link: &mut L,
        channel: impl FnOnce(&mut L) -> &mut Channel,
        question: impl AsyncFnOnce(&mut L) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.is_given_up {
            return Err(Error::connection_lost("an answer on this connection was given up"));
        }
        channel(link).set_deadline(clock::now().saturating_add(self.answer_timeout));
        let found = self.runtime.block_on(self.interrupt.or(question(link)));
        let left = |error: &Error| is_time_out(error) || error.class() == ErrorClass::ConnectionLost;
        self.is_given_up = self.interrupt.has_struck() || found.as_ref().is_err_and(left);
        found
    }
}
