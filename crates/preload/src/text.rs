//! A short text without memory of its own: nothing is allocated here.

/// A text that is cut off where it grows too long.
pub(crate) struct Text {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Text {
    pub(crate) const MOST: usize = 4200;

    pub(crate) const fn new() -> Self {
        Self { bytes: [0; Self::MOST], length: 0 }
    }

    pub(crate) fn push(&mut self, more: &[u8]) {
        let room = more.len().min(Self::MOST - self.length);
        self.bytes[self.length..self.length + room].copy_from_slice(&more[..room]);
        self.length += room;
    }

    /// Ends it with a zero, for the C library.
    pub(crate) fn end(&mut self) {
        self.length = self.length.min(Self::MOST - 1);
        self.push(b"\0");
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl core::fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> core::fmt::Result {
        self.push(more.as_bytes());
        Ok(())
    }
}
