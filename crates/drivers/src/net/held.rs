//! Requests that wait for the answers to others before they are sent.

use std::collections::VecDeque;

/// Requests in the order in which they were queued, each as its bytes and what its machine knows of it.
pub(crate) struct Held<T> {
    /// Where the bytes of each end.
    steps: VecDeque<(T, usize)>,
    bytes: Vec<u8>,
    /// How many of the bytes were sent.
    sent: usize,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { steps: VecDeque::new(), bytes: Vec::new(), sent: 0 }
    }
}

impl<T> Held<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The one that is sent next.
    pub(crate) fn first(&self) -> Option<&T> {
        self.steps.front().map(|(step, _)| step)
    }

    /// Adds one: `write` writes it, and gives what is known of it. Where that fails there is none.
    pub(crate) fn put<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<T, E>) -> Result<(), E> {
        let start = self.bytes.len();
        let step = write(&mut self.bytes).inspect_err(|_| self.bytes.truncate(start))?;
        self.steps.push_back((step, self.bytes.len()));
        Ok(())
    }

    /// Writes the first one behind `out`, and gives what is known of it.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) -> Option<T> {
        let (step, end) = self.steps.pop_front()?;
        out.extend_from_slice(&self.bytes[self.sent..end]);
        self.sent = end;
        if self.steps.is_empty() {
            self.bytes.clear();
            self.sent = 0;
        }
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_in_their_order_and_what_could_not_be_written_never_does() {
        let (mut held, mut out) = (Held::default(), Vec::new());
        let put = |held: &mut Held<u8>, bytes: &[u8], found| {
            held.put(|out| {
                out.extend_from_slice(bytes);
                found
            })
        };
        assert_eq!(put(&mut held, b"one", Ok(1)), Ok(()));
        assert_eq!(put(&mut held, b"half", Err("misfit")), Err("misfit"));
        assert_eq!(put(&mut held, b"three", Ok(3)), Ok(()));
        assert_eq!((held.len(), held.first()), (2, Some(&1)));
        assert_eq!((held.send(&mut out), out.as_slice()), (Some(1), &b"one"[..]));
        assert_eq!(put(&mut held, b"four", Ok(4)), Ok(()));
        assert_eq!((held.send(&mut out), held.send(&mut out), held.send(&mut out)), (Some(3), Some(4), None));
        assert!(held.is_empty() && held.bytes.is_empty() && out == b"onethreefour");
    }
}
