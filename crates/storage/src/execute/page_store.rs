//! A page store as a target: writes are appends to a segment's log, sent to every replica and complete when a quorum has
//! acknowledged them; reads see every append that was complete when they began.
//!
//! A replica whose connection breaks is out for the rest of the run: it may lack records, and nobody brings them.

mod session;
mod tracks;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nephoscope_runtime::clock::{self, SECOND};
use nephoscope_runtime::{Nanos, Runtime};

use crate::execute::layout::Layout;
use crate::execute::target::{Failure, Target};
use session::Link;
pub use session::PageStoreSession;
use tracks::Tracks;

/// The longest that making the segments may take.
const PREPARATION: Nanos = 60 * SECOND;

/// A page store.
pub struct PageStoreTarget {
    replicas: Vec<SocketAddr>,
    quorum: usize,
    shared: Arc<Shared>,
}

/// What all sessions know.
#[derive(Default)]
struct Shared {
    tracks: Mutex<Arc<Tracks>>,
    /// Which replicas are out.
    lost: [AtomicBool; 3],
    /// How many sessions there have been: each begins to read at another replica.
    sessions: AtomicU64,
}

impl Shared {
    fn is_lost(&self, replica: usize) -> bool {
        self.lost[replica].load(Ordering::Relaxed)
    }

    fn lose(&self, replica: usize) {
        self.lost[replica].store(true, Ordering::Relaxed);
    }
}

impl PageStoreTarget {
    /// The target of what follows `page-store://`: the replicas' addresses, separated by commas, and perhaps
    /// `?quorum=`, which is more than half of them by default.
    pub fn parse(rest: &str) -> Result<Self, String> {
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let replicas: Vec<SocketAddr> =
            authority.split(',').map(|one| address(one.trim_end_matches('/'))).collect::<Result<_, _>>()?;
        if replicas.len() > 3 {
            return Err(format!("page-store: {} replicas; allowed are 1 to 3", replicas.len()));
        }
        let mut quorum = replicas.len() / 2 + 1;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            quorum = option
                .strip_prefix("quorum=")
                .and_then(|count| count.parse().ok())
                .filter(|count| (1..=replicas.len()).contains(count))
                .ok_or_else(|| {
                    format!("{option}: a page store has the option quorum=1 to {}", replicas.len())
                })?;
        }
        Ok(Self { replicas, quorum, shared: Arc::default() })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    local
        .as_deref()
        .unwrap_or(text)
        .parse()
        .ok()
        .filter(|address: &SocketAddr| address.port() > 0)
        .ok_or_else(|| {
            format!("page-store: {text} is no replica; one is written as 127.0.0.1:7001, several with commas")
        })
}

impl Target for PageStoreTarget {
    type Session = PageStoreSession;

    fn prepare(&self, layout: &Layout) -> Result<(), Failure> {
        let runtime = Runtime::new().map_err(|error| Failure::Broken(error.to_string()))?;
        runtime.block_on(async {
            let deadline = clock::now() + PREPARATION;
            for address in &self.replicas {
                let mut link = Link::connect(&runtime, *address, deadline).await?;
                for segment in layout.segments() {
                    link.create(segment.number).await?;
                }
            }
            Ok(())
        })?;
        let tracks = Arc::new(Tracks::new(layout.segments().len(), self.replicas.len(), self.quorum));
        *self.shared.tracks.lock().unwrap_or_else(PoisonError::into_inner) = tracks;
        self.shared.lost.iter().for_each(|lost| lost.store(false, Ordering::Relaxed));
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let lost: Vec<String> = (0..self.replicas.len())
            .filter(|replica| self.shared.is_lost(*replica))
            .map(|replica| self.replicas[replica].to_string())
            .collect();
        let mut facts =
            vec![("replicas", self.replicas.len().to_string()), ("quorum", self.quorum.to_string())];
        if !lost.is_empty() {
            facts.push(("lost replicas", lost.join(", ")));
        }
        facts
    }

    async fn connect(
        &self,
        runtime: &Runtime,
        layout: &Rc<Layout>,
        deadline: Nanos,
    ) -> Result<Self::Session, Failure> {
        let mut links = Vec::new();
        let mut last = None;
        for (number, address) in self.replicas.iter().enumerate() {
            let connected = if self.shared.is_lost(number) {
                Err(Failure::Broken(format!("{address} is out since its connection broke")))
            } else {
                Link::connect(runtime, *address, deadline).await
            };
            links.push(connected.map_err(|failure| last = Some(failure)).ok());
        }
        if links.iter().flatten().count() < self.quorum {
            return Err(last.unwrap_or_else(|| Failure::Broken("there is no quorum".to_owned())));
        }
        // With those that are left it goes on; those that are not have missed what is written meanwhile.
        (0..links.len())
            .filter(|number| links[*number].is_none())
            .for_each(|number| self.shared.lose(number));
        let tracks = Arc::clone(&self.shared.tracks.lock().unwrap_or_else(PoisonError::into_inner));
        let first = self.shared.sessions.fetch_add(1, Ordering::Relaxed) as usize;
        let shared = (tracks, Arc::clone(&self.shared));
        Ok(PageStoreSession::new(runtime, links, shared, Rc::clone(layout), (self.quorum, first)))
    }
}

#[cfg(test)]
mod tests;
