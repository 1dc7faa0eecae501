//! Names of hosts, looked up without stopping the load.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos, SECOND};

/// How long an answer is used again. After a fail-over a name may lead elsewhere within seconds.
const FRESH: Nanos = SECOND;

type Answer = Result<Vec<IpAddr>, String>;

#[derive(Default)]
struct Entry {
    answer: Option<(Nanos, Answer)>,
    /// Tasks, perhaps on several threads, that wait for the answer on its way.
    waiting: Option<Vec<Waker>>,
}

/// Looks names up on a thread of their own: the system's resolver blocks, sometimes for seconds.
#[derive(Clone, Default)]
pub(crate) struct Resolver(Arc<Mutex<HashMap<String, Entry>>>);

impl Resolver {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses of a name, in the order in which the system gives them; the error says why there is none.
    pub(crate) async fn resolve(&self, runtime: &Runtime, name: &str, deadline: Nanos) -> Answer {
        let asked = clock::now();
        let mut limit = std::pin::pin!(runtime.sleep_until(deadline));
        poll_fn(|cx| {
            let mut entries = self.entries();
            let entry = entries.entry(name.to_owned()).or_default();
            if let Some((at, answer)) = &entry.answer
                && *at + FRESH > asked
            {
                return Poll::Ready(answer.clone());
            }
            if limit.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err("the name was not resolved within the time limit".to_owned()));
            }
            match &mut entry.waiting {
                Some(waiting) => waiting.push(cx.waker().clone()),
                None => {
                    entry.waiting = Some(vec![cx.waker().clone()]);
                    self.look_up(name);
                }
            }
            Poll::Pending
        })
        .await
    }

    fn look_up(&self, name: &str) {
        let (entries, name) = (Arc::clone(&self.0), name.to_owned());
        let task = move || {
            let answer = match (name.as_str(), 0).to_socket_addrs() {
                Ok(addresses) => {
                    let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
                    addresses.dedup();
                    Ok(addresses)
                }
                Err(error) => Err(error.to_string()),
            };
            let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = entries.entry(name).or_default();
            entry.answer = Some((clock::now(), answer));
            for waker in entry.waiting.take().into_iter().flatten() {
                waker.wake();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("resolve".to_owned()).spawn(task) {
            tracing::warn!(%error, "no thread to resolve a name");
        }
    }
}
