//! Which transactions have ended, across all threads.

use std::collections::HashMap;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use crate::lock::lock;

#[derive(Default)]
struct State {
    /// A bit for each transaction.
    ended: Vec<u64>,
    waiting: HashMap<u32, Vec<Waker>>,
}

impl State {
    fn has_ended(&self, transaction: u32) -> bool {
        let (word, bit) = (transaction as usize / 64, transaction % 64);
        self.ended.get(word).is_some_and(|bits| bits >> bit & 1 == 1)
    }
}

/// The transactions that have ended, and who waits for others.
#[derive(Default)]
pub(crate) struct Commits(Mutex<State>);

impl Commits {
    /// Notes the end of a transaction, however it came.
    pub(crate) fn end(&self, transaction: u32) {
        let mut state = lock(&self.0);
        let word = transaction as usize / 64;
        if state.ended.len() <= word {
            state.ended.resize(word + 1, 0);
        }
        state.ended[word] |= 1 << (transaction % 64);
        let woken = state.waiting.remove(&transaction).unwrap_or_default();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Whether all of some transactions have ended; who asks is woken when the first that has not does so.
    pub(crate) fn poll_ended(&self, transactions: &[u32], cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        let Some(open) = transactions.iter().copied().find(|of| !state.has_ended(*of)) else {
            return Poll::Ready(());
        };
        let waiting = state.waiting.entry(open).or_default();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_have_to_end_in_any_order() {
        let commits = Commits::default();
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(commits.poll_ended(&[], &cx), Poll::Ready(()));
        assert_eq!(commits.poll_ended(&[3, 200], &cx), Poll::Pending);
        commits.end(200);
        assert_eq!(commits.poll_ended(&[3, 200], &cx), Poll::Pending);
        commits.end(3);
        assert_eq!(commits.poll_ended(&[3, 200], &cx), Poll::Ready(()));
        assert_eq!(commits.poll_ended(&[2], &cx), Poll::Pending);
    }
}
