//! Requests whose replies have not come.

use std::sync::Arc;

use super::statement::{Portal, Statement};
use crate::wire::kept::{Name, Queue, Sizeable, Text, length};

impl Sizeable for Arc<Statement> {
    fn size(&self) -> usize {
        Statement::size(self)
    }
}

impl Sizeable for Portal {
    fn size(&self) -> usize {
        Portal::size(self)
    }
}

/// A request whose reply has not come.
#[derive(Debug)]
pub(super) enum Waiting {
    Parse {
        name: Name,
        statement: Arc<Statement>,
        at: i64,
    },
    Bind {
        portal: Name,
        statement: Name,
        values: Result<Box<[u8]>, &'static str>,
        at: i64,
    },
    DescribeStatement(Name),
    DescribePortal,
    CloseStatement(Name),
    ClosePortal(Name),
    Execute {
        portal: Name,
        at: i64,
        copies: bool,
    },
    Query {
        text: Text,
        at: i64,
        error: Option<Box<str>>,
        commands: u32,
        rows: Option<u64>,
    },
    Function,
    /// The end of a batch; and the beginning of the connection, which ends in the same way.
    Sync,
    /// The data of a COPY: nothing answers it by itself.
    Copied,
}

impl Sizeable for Waiting {
    fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Parse { name, statement, .. } => name.len() + statement.size(),
                Self::Bind { portal, statement, values, .. } => {
                    portal.len() + statement.len() + values.as_ref().map_or(0, |values| values.len())
                }
                Self::DescribeStatement(name) | Self::CloseStatement(name) | Self::ClosePortal(name) => {
                    name.len()
                }
                Self::Execute { portal, .. } => portal.len(),
                Self::Query { text, .. } => length(text),
                Self::DescribePortal | Self::Function | Self::Sync | Self::Copied => 0,
            }
    }
}

impl Queue<Waiting> {
    /// Notes data of a COPY, which no request has to wait for.
    pub(super) fn push_copied(&mut self) {
        if !matches!(self.back(), None | Some(Waiting::Copied)) {
            self.push(Waiting::Copied);
        }
    }

    /// The request that is answered next.
    pub(super) fn next(&mut self) -> Option<&mut Waiting> {
        while let Some(Waiting::Copied) = self.front() {
            self.pop();
        }
        self.front()
    }

    /// Forgets what a server has read while it took the data of a COPY, and so passed over: what stands before the data,
    /// or all where none has come.
    pub(super) fn drop_before_copied(&mut self) {
        while let Some(waiting) = self.front() {
            if matches!(waiting, Waiting::Copied) {
                return;
            }
            self.pop();
        }
    }

    /// Forgets what a server passes over after an error: all up to the next Sync. Gives whether that has come.
    pub(super) fn drop_to_sync(&mut self) -> bool {
        loop {
            match self.next() {
                None => return false,
                Some(Waiting::Sync) => return true,
                Some(_) => self.pop(),
            };
        }
    }
}
