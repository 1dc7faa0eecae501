//! Who waits on a thread for the locks of a file.
//!
//! A file's locks belong to processes and connections that know nothing of each other, so a wait is a pause and another
//! try. What this thread's own sessions release is known at once, and wakes the one that has waited longest.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};
use std::task::Waker;

thread_local! {
    static LINES: RefCell<BTreeMap<Box<str>, Weak<Line>>> = const { RefCell::new(BTreeMap::new()) };
}

/// The sessions of one thread on one file, and those of them that wait for a lock, in the order in which they came.
#[derive(Default)]
pub(super) struct Line {
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    issued: Cell<u64>,
}

impl Line {
    /// The line of a file on this thread.
    pub(super) fn of(path: &str) -> Rc<Self> {
        LINES.with_borrow_mut(|lines| {
            if let Some(line) = lines.get(path).and_then(Weak::upgrade) {
                return line;
            }
            lines.retain(|_, line| line.strong_count() > 0);
            let line = Rc::default();
            lines.insert(path.into(), Rc::downgrade(&line));
            line
        })
    }

    /// Whether there are other sessions than the one that asks.
    pub(super) fn is_shared(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) > 1
    }

    /// A lock was released: whoever has waited longest tries again. Says whether anybody waits.
    pub(super) fn released(&self) -> bool {
        let waiting = self.waiting.borrow();
        waiting.front().inspect(|(_, waker)| waker.wake_by_ref()).is_some()
    }
}

/// A place in the line, given up when it is dropped.
pub(super) struct Place {
    line: Rc<Line>,
    number: u64,
}

impl Place {
    /// The place behind all others.
    pub(super) fn last(line: &Rc<Line>, waker: &Waker) -> Self {
        let number = line.issued.get() + 1;
        line.issued.set(number);
        line.waiting.borrow_mut().push_back((number, waker.clone()));
        Self { line: Rc::clone(line), number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.line.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_release_wakes_the_one_that_has_waited_longest() {
        let line = Line::of("one");
        assert!(!line.is_shared() && !line.released());
        assert!(Rc::ptr_eq(&line, &Line::of("one")) && !Rc::ptr_eq(&line, &Line::of("other")));
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let mut places = counts.clone().map(|count| Some(Place::last(&line, &Waker::from(count))));
        let told = || counts.clone().map(|count| count.0.load(Ordering::Relaxed));
        assert!(line.released());
        assert_eq!(told(), [1, 0]);
        places[0] = None;
        assert!(line.released());
        assert_eq!(told(), [1, 1]);
        places[1] = None;
        assert!(!line.released());
    }
}
