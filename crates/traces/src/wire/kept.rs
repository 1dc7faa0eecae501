//! What a connection has to be remembered for, and how much memory that takes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::statement::{Portal, Statement, Text, length};

/// Something of a size.
pub(super) trait Sizeable {
    /// About how much memory it takes.
    fn size(&self) -> usize;
}

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

/// A name in the protocol: bytes, and nothing for what has no name.
pub(super) type Name = Box<[u8]>;

/// What has names.
#[derive(Debug)]
pub(super) struct Named<T> {
    of: HashMap<Name, (T, usize)>,
    pub(super) bytes: usize,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { of: HashMap::new(), bytes: 0 }
    }
}

impl<T: Sizeable> Named<T> {
    pub(super) fn get(&self, name: &[u8]) -> Option<&T> {
        self.of.get(name).map(|(found, _)| found)
    }

    pub(super) fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        self.of.get_mut(name).map(|(found, _)| found)
    }

    pub(super) fn insert(&mut self, name: Name, of: T) {
        self.remove(&name);
        let size = of.size() + name.len();
        self.bytes += size;
        self.of.insert(name, (of, size));
    }

    /// Something of this name has grown.
    pub(super) fn measure(&mut self, name: &[u8]) {
        if let Some((of, size)) = self.of.get_mut(name) {
            let now = of.size() + name.len();
            self.bytes = self.bytes + now - *size;
            *size = now;
        }
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some((_, size)) = self.of.remove(name) {
            self.bytes -= size;
        }
    }

    pub(super) fn clear(&mut self) {
        self.of.clear();
        self.bytes = 0;
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

/// Requests in their order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    of: VecDeque<(Waiting, usize)>,
    pub(super) bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: Waiting) {
        let size = waiting.size();
        self.bytes += size;
        self.of.push_back((waiting, size));
    }

    /// Notes data of a COPY, which no request has to wait for.
    pub(super) fn push_copied(&mut self) {
        if !matches!(self.of.back(), None | Some((Waiting::Copied, _))) {
            self.push(Waiting::Copied);
        }
    }

    /// The request that is answered next.
    pub(super) fn front(&mut self) -> Option<&mut Waiting> {
        while let Some((Waiting::Copied, _)) = self.of.front() {
            self.pop();
        }
        self.of.front_mut().map(|(waiting, _)| waiting)
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let (waiting, size) = self.of.pop_front()?;
        self.bytes -= size;
        Some(waiting)
    }

    /// Forgets what a server has read while it took the data of a COPY, and so passed over: what stands before the data,
    /// or all where none has come.
    pub(super) fn drop_before_copied(&mut self) {
        while let Some((waiting, _)) = self.of.front() {
            if matches!(waiting, Waiting::Copied) {
                return;
            }
            self.pop();
        }
    }

    /// Forgets what a server passes over after an error: all up to the next Sync. Gives whether that has come.
    pub(super) fn drop_to_sync(&mut self) -> bool {
        loop {
            match self.front() {
                None => return false,
                Some(Waiting::Sync) => return true,
                Some(_) => self.pop(),
            };
        }
    }
}
