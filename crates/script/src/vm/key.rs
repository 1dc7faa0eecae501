//! `tx:key`: the key of the row that a statement has inserted, whichever way the server tells it.

use mlua::ffi;
use nephoscope_drivers::{Command, Reply};

use super::script::{Script, Step};
use super::{Call, MADE, api};
use crate::error::ScriptError;

impl Script {
    /// Pushes the first column of the row that the statement returned, else the key that the server told beside its
    /// rows, or nil where no row was inserted. An error where one was, and nothing is known of its key.
    pub(super) fn push_key(&self, reply: &Reply, call: Option<Call>) -> Result<(), String> {
        let (l, context, shared) = (self.coroutine, &self.context, &self.core.shared);
        let returned = reply.result.filter(|result| context.rows.count(*result) > 0);
        let cell = returned.and_then(|result| context.rows.value(result, 0, 0));
        // SAFETY: a yielded coroutine has room for a few values.
        self.core.unlimited(|| unsafe {
            match (cell, reply.inserted_id) {
                (Some(value), _) => api::push_value(l, shared, value),
                (None, Some(key)) => api::push_whole(l, shared, key.get().into()),
                (None, None) if reply.result.is_some() || reply.affected == 0 => ffi::lua_pushnil(l),
                (None, None) => return Err(self.keyless(call)),
            }
            Ok(())
        })
    }

    #[cold]
    fn keyless(&self, call: Option<Call>) -> String {
        let statements = self.core.shared.statements.borrow();
        let name = match call {
            Some(Call { command: MADE, .. }) => {
                self.context.query.as_ref().map_or("the statement", |statement| statement.name())
            }
            Some(Call { command: Command::Execute(index), .. }) => statements.name(index),
            _ => "the statement",
        };
        format!(
            "tx:key: {name} touched a row, and the server told no key of it; let it end with RETURNING and the key, or \
             let the table generate its keys"
        )
    }

    /// Ends a transaction that waits for a reply with an error at the place where it asked.
    #[cold]
    pub(super) fn refused(&mut self, message: String) -> Step {
        // SAFETY: the coroutine is suspended, and has room for the text of its calls.
        let message = self.core.unlimited(|| unsafe { api::at_call(self.coroutine, message) });
        self.abandon();
        Step::Failed(ScriptError::plain(message))
    }
}
