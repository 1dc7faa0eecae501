//! An object store that speaks S3's protocol, as a target. A segment is objects of one size: the object of an offset is
//! `PREFIX/SEGMENT/NUMBER`.
//!
//! An object is written whole or not at all. So a write of a part of one reads the object, changes the part and writes
//! it all, as whoever keeps pages in such a store has to; meanwhile others that write the object wait. A read is a ranged
//! one. An object that was never written reads as nothing, at once. What is written is durable: a sync does nothing. A
//! discard removes the objects that it covers whole.

mod locks;
mod session;
mod url;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nephoscope_drivers::net::aws::credentials;
use nephoscope_drivers::net::http::{Endpoint, Method};
use nephoscope_drivers::net::sigv4::{Credentials, Signer};
use nephoscope_runtime::clock::{self, SECOND};
use nephoscope_runtime::{Nanos, Runtime};

use crate::execute::layout::Layout;
use crate::execute::target::{Failure, Target};
use locks::Locks;
use session::Caller;
pub use session::S3Session;
use url::Options;

/// The longest that one request of a preparation may take.
const PATIENCE: Nanos = 60 * SECOND;
/// How many objects are written at once before a run.
const FILLED_AT_ONCE: usize = 16;

/// A bucket, and a prefix in it.
pub struct S3Target {
    shared: Arc<Shared>,
}

/// What all sessions know.
struct Shared {
    options: Options,
    endpoint: Arc<Endpoint>,
    credentials: Credentials,
    locks: Locks,
    counters: Counters,
}

/// Requests that were answered, by their kinds.
#[derive(Default)]
struct Counters {
    gets: AtomicU64,
    puts: AtomicU64,
    deletes: AtomicU64,
    /// Writes that had to read the object before.
    rewritten: AtomicU64,
    /// Reads of objects that were never written.
    absent: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Shared {
    fn signer(&self) -> Signer {
        Signer::new(self.credentials.clone(), &self.options.region, "s3")
    }

    /// The path of a key.
    fn path(&self, key: &str) -> String {
        if self.options.by_host { format!("/{key}") } else { format!("/{}/{key}", self.options.bucket) }
    }

    /// The key of an object. The numbers have a width, so that a listing has them in order.
    fn key(&self, segment: u32, object: u64) -> String {
        let prefix = &self.options.prefix;
        let slash = if prefix.is_empty() { "" } else { "/" };
        format!("{prefix}{slash}{segment:010}/{object:012}")
    }
}

impl S3Target {
    /// The target of what follows `s3://`; credentials, region and endpoint are in the environment as AWS's own tools
    /// know them, where the URL does not say. Nothing secret is in a message.
    pub fn parse(rest: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let options = Options::parse(rest, environment)?;
        let endpoint = Endpoint::parse(&options.endpoint, environment).map_err(|error| error.to_string())?;
        let endpoint = if options.by_host {
            endpoint.with_prefix(&options.bucket).map_err(|error| error.to_string())?
        } else {
            endpoint
        };
        let credentials = credentials(environment, None).map_err(|error| error.to_string())?;
        let (locks, counters) = (Locks::default(), Counters::default());
        let endpoint = Arc::new(endpoint);
        Ok(Self { shared: Arc::new(Shared { options, endpoint, credentials, locks, counters }) })
    }

    /// Whether the bucket is there, and ours.
    async fn check(&self, runtime: &Runtime) -> Result<(), Failure> {
        let bucket = &self.shared.options.bucket;
        let mut caller = Caller::new(runtime, &self.shared);
        let root = self.shared.path("");
        let root = if self.shared.options.by_host { "/" } else { root.trim_end_matches('/') };
        let response = caller.call(Method::Head, root, None, b"", clock::now() + PATIENCE).await?;
        match response.status {
            200..=299 => Ok(()),
            404 => Err(Failure::Refused(format!("s3://{bucket}: there is no such bucket; make it first"))),
            301 | 307 | 400 => {
                let region = response.headers.get("x-amz-bucket-region").unwrap_or("another one");
                Err(Failure::Refused(format!(
                    "s3://{bucket}: the region is not {}; it is {region}",
                    self.shared.options.region
                )))
            }
            403 => Err(Failure::Refused(format!("s3://{bucket}: the credentials may not use this bucket"))),
            status => Err(Failure::Refused(format!("s3://{bucket}: status {status}"))),
        }
    }
}

/// What is left to be written before a run, shared by those who write.
struct Filling {
    segments: Vec<(u32, u64)>,
    next: Cell<(usize, u64)>,
    failure: Cell<Option<Failure>>,
}

impl Filling {
    /// The next object.
    fn take(&self) -> Option<(u32, u64)> {
        let (mut place, mut object) = self.next.get();
        while self.segments.get(place)?.1 <= object {
            (place, object) = (place + 1, 0);
        }
        self.next.set((place, object + 1));
        Some((self.segments[place].0, object))
    }
}

async fn fill(runtime: Runtime, shared: Arc<Shared>, left: Rc<Filling>) {
    let mut caller = Caller::new(&runtime, &shared);
    let body = session::filling(shared.options.object as usize);
    while let Some((segment, object)) = left.take() {
        let key = shared.key(segment, object);
        if let Err(failure) = caller.put(&key, &body, clock::now() + PATIENCE).await {
            left.failure.set(Some(failure));
            left.next.set((usize::MAX, 0));
        }
    }
}

impl Target for S3Target {
    type Session = S3Session;

    fn prepare(&self, layout: &Layout) -> Result<(), Failure> {
        let runtime = Runtime::new().map_err(|error| Failure::Broken(error.to_string()))?;
        runtime.block_on(self.check(&runtime))?;
        if !self.shared.options.fill {
            return Ok(());
        }
        let objects = |bytes: u64| bytes.div_ceil(self.shared.options.object);
        let segments =
            layout.segments().iter().map(|segment| (segment.number, objects(segment.bytes))).collect();
        let left = Rc::new(Filling { segments, next: Cell::default(), failure: Cell::default() });
        for _ in 0..FILLED_AT_ONCE {
            runtime.spawn(fill(runtime.clone(), Arc::clone(&self.shared), Rc::clone(&left)));
        }
        runtime.block_on(async {
            while runtime.tasks() > 0 {
                runtime.sleep_until(clock::now() + clock::MILLISECOND).await;
            }
        });
        left.failure.take().map_or(Ok(()), Err)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (options, counters) = (&self.shared.options, &self.shared.counters);
        let shown = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        vec![
            ("endpoint", self.shared.endpoint.to_string()),
            ("bucket", options.bucket.clone()),
            ("bytes of an object", options.object.to_string()),
            ("GET requests", shown(&counters.gets)),
            ("PUT requests", shown(&counters.puts)),
            ("DELETE requests", shown(&counters.deletes)),
            ("objects read to be written", shown(&counters.rewritten)),
            ("objects that were absent", shown(&counters.absent)),
        ]
    }

    async fn connect(
        &self,
        runtime: &Runtime,
        _layout: &Rc<Layout>,
        deadline: Nanos,
    ) -> Result<Self::Session, Failure> {
        let mut caller = Caller::new(runtime, &self.shared);
        caller.connect(deadline).await?;
        Ok(S3Session::new(caller, Arc::clone(&self.shared)))
    }
}

#[cfg(test)]
mod tests;
