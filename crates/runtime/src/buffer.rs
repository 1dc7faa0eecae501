//! The receive buffer of a stream.

/// Bytes that have arrived and are not yet used up, in one contiguous piece.
///
/// The buffer grows to hold the largest message and keeps that size; it never shrinks, so a session in its
/// stride allocates nothing.
#[derive(Debug)]
pub struct Inbox {
    data: Vec<u8>,
    start: usize,
    end: usize,
}

/// Large enough for the replies of ordinary transactions, small enough for thousands of sessions.
const INITIAL: usize = 4096;
/// The longest message that room is made for on its word.
const BELIEVED: usize = 1 << 20;

impl Default for Inbox {
    fn default() -> Self {
        Self { data: vec![0; INITIAL], start: 0, end: 0 }
    }
}

impl Inbox {
    /// The bytes that wait to be used.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    /// Gives up the first `count` bytes.
    ///
    /// # Panics
    /// If fewer bytes than that are waiting.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "more bytes consumed than there are");
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Free room behind the waiting bytes, at least `INITIAL / 2` bytes of it.
    pub fn room(&mut self) -> &mut [u8] {
        if self.data.len() - self.end < INITIAL / 2 {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.data.len() - self.end < INITIAL / 2 {
                self.data.resize(self.data.len() * 2, 0);
            }
        }
        &mut self.data[self.end..]
    }

    /// Makes room so that a message of `total` bytes, whose beginning is already here, fits in one piece. If it is
    /// very long, the room grows with what arrives: the length may be rubbish.
    pub fn expect(&mut self, total: usize) {
        let total = total.min(BELIEVED);
        if self.data.len() - self.start < total {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.data.len() < total {
                self.data.resize(total, 0);
            }
        }
    }

    /// Says that `count` bytes were written to the start of [`Inbox::room`].
    ///
    /// # Panics
    /// If the room was smaller than that.
    pub fn filled(&mut self, count: usize) {
        assert!(count <= self.data.len() - self.end, "more bytes filled than there was room for");
        self.end += count;
    }

    /// Adds `bytes` behind what waits: what a ring has received, or a TLS layer has decrypted.
    pub fn extend(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// Forgets every byte.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_out_in_the_order_they_went_in(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..9000), 0usize..9000), 1..20)
        ) {
            let (mut inbox, mut model) = (Inbox::default(), Vec::new());
            for (piece, take) in pieces {
                inbox.extend(&piece);
                model.extend_from_slice(&piece);
                prop_assert_eq!(inbox.bytes(), &model[..]);
                let take = take.min(model.len());
                inbox.consume(take);
                model.drain(..take);
                prop_assert_eq!(inbox.bytes(), &model[..]);
            }
        }
    }

    #[test]
    fn a_length_that_is_rubbish_costs_no_memory() {
        let mut inbox = Inbox::default();
        inbox.extend(b"D\x3f\xff\xff\xff");
        inbox.expect(0x4000_0000);
        assert!(inbox.data.len() <= BELIEVED);
        inbox.extend(&vec![3; 3 * BELIEVED]);
        assert_eq!(inbox.bytes().len(), 5 + 3 * BELIEVED);
    }

    #[test]
    fn a_long_message_fits_in_one_piece() {
        let mut inbox = Inbox::default();
        inbox.extend(&[1; 4000]);
        inbox.consume(3990);
        inbox.expect(100_000);
        inbox.extend(&vec![2; 99_990]);
        assert_eq!(inbox.bytes().len(), 100_000);
    }
}
