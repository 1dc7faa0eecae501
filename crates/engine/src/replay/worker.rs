//! A thread with some of the recorded sessions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::Poll;

use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};
use nephoscope_runtime::{Runtime, mailbox};

use crate::replay::session::{Queue, Session};
use crate::replay::{Message, Planned, Replayed, Shared};
use crate::waits::Event;

/// How often results are handed over.
const HAND_OVER: Nanos = 50 * MILLISECOND;

/// What the sessions of one thread share.
pub(crate) struct Worker {
    pub(crate) runtime: Runtime,
    pub(crate) shared: Arc<Shared>,
    /// Time 0 is set.
    pub(crate) begun: Event,
    results: RefCell<Vec<Replayed>>,
}

impl Worker {
    pub(crate) fn report(&self, result: Replayed) {
        self.results.borrow_mut().push(result);
    }
}

/// Runs a thread to its end.
pub(crate) fn run(
    shared: &Arc<Shared>,
    mut inbox: mailbox::Receiver<Message>,
    results: &Sender<Vec<Replayed>>,
) {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return shared.fail(&format!("no runtime for the replay: {error}")),
    };
    let worker = Rc::new(Worker {
        runtime: runtime.clone(),
        shared: Arc::clone(shared),
        begun: Event::default(),
        results: RefCell::default(),
    });
    runtime.block_on(life(&worker, &mut inbox, results));
    // Tasks hold the runtime, and it them.
    runtime.shut_down();
    hand_over(&worker, results);
}

async fn life(worker: &Rc<Worker>, inbox: &mut mailbox::Receiver<Message>, results: &Sender<Vec<Replayed>>) {
    let mut queues: HashMap<u32, Rc<Queue>> = HashMap::new();
    let mut ending = false;
    while !(ending && worker.runtime.tasks() == 0) {
        let mut sleep = pin!(worker.runtime.sleep_until(clock::now() + HAND_OVER));
        let message = poll_fn(|cx| match inbox.poll_receive(cx) {
            Poll::Ready(message) => Poll::Ready(Some(message)),
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
        });
        match message.await {
            Some(Some(Message::Feed(statements))) => dispatch(worker, &mut queues, statements),
            Some(Some(Message::Begin)) => worker.begun.happen(),
            Some(Some(Message::End)) => {
                ending = true;
                for (_, queue) in queues.drain() {
                    queue.close();
                }
            }
            // Whoever started it is gone, or wants it to end.
            Some(Some(Message::Stop) | None) => return,
            None => {}
        }
        if let Some(why) = worker.runtime.failure() {
            return worker.shared.fail(&why.to_string());
        }
        hand_over(worker, results);
    }
}

/// Gives statements to their sessions, and makes those that are new.
fn dispatch(worker: &Rc<Worker>, queues: &mut HashMap<u32, Rc<Queue>>, statements: Vec<Planned>) {
    for planned in statements {
        let (number, is_last) = (planned.session, planned.ends_session);
        let queue = queues.entry(number).or_insert_with(|| {
            let queue = Rc::<Queue>::default();
            worker.runtime.spawn(Session::new(worker, &queue).run());
            queue
        });
        queue.push(planned);
        if is_last {
            queue.close();
            queues.remove(&number);
        }
    }
}

fn hand_over(worker: &Worker, results: &Sender<Vec<Replayed>>) {
    let found = std::mem::take(&mut *worker.results.borrow_mut());
    if !found.is_empty() {
        // Nobody listens any more if the replay was given up.
        let _ = results.send(found);
    }
}
