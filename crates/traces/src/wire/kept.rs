//! What a connection has to be remembered for, and how much memory that takes.

use std::collections::{HashMap, VecDeque};

use super::NOT_UTF8;

/// The bytes are no message of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign;

impl From<nephoscope_drivers::Error> for Foreign {
    fn from(_: nephoscope_drivers::Error) -> Self {
        Self
    }
}

/// A text, or why it is not known.
pub(super) type Text = Result<Box<str>, &'static str>;

/// The text of a message.
pub(super) fn text(bytes: &[u8]) -> Text {
    std::str::from_utf8(bytes).map(Into::into).map_err(|_| NOT_UTF8)
}

pub(super) fn length(text: &Text) -> usize {
    text.as_ref().map_or(0, |text| text.len())
}

/// The body of a message of which some bytes came earlier, and these last.
pub(super) fn body<'a>(earlier: &'a mut Vec<u8>, last: &'a [u8]) -> &'a [u8] {
    if earlier.is_empty() {
        return last;
    }
    earlier.extend_from_slice(last);
    earlier
}

/// Something of a size.
pub(super) trait Sizeable {
    /// About how much memory it takes.
    fn size(&self) -> usize;
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

/// Requests in their order.
#[derive(Debug)]
pub(super) struct Queue<T> {
    of: VecDeque<(T, usize)>,
    pub(super) bytes: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { of: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Sizeable> Queue<T> {
    pub(super) fn push(&mut self, waiting: T) {
        let size = waiting.size();
        self.bytes += size;
        self.of.push_back((waiting, size));
    }

    /// The request that is answered next.
    pub(super) fn front(&mut self) -> Option<&mut T> {
        self.of.front_mut().map(|(waiting, _)| waiting)
    }

    /// The request that was sent last.
    pub(super) fn back(&self) -> Option<&T> {
        self.of.back().map(|(waiting, _)| waiting)
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let (waiting, size) = self.of.pop_front()?;
        self.bytes -= size;
        Some(waiting)
    }
}
