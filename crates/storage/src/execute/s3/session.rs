//! A session: a connection, and what a request does with objects.

use std::sync::Arc;

use nephoscope_drivers::net::aws;
use nephoscope_drivers::net::http::{self, Method, Response};
use nephoscope_drivers::net::sigv4::Unsigned;
use nephoscope_drivers::{Error, ErrorClass};
use nephoscope_runtime::{Nanos, Runtime};

use super::{Shared, count};
use crate::execute::filling::randomise;
use crate::execute::target::{Failure, Session};
use crate::requests::{Operation, Request};

/// What an object is filled with.
pub(super) fn filling(bytes: usize) -> Vec<u8> {
    let mut filling = vec![0; bytes];
    randomise(&mut filling);
    filling
}

/// Makes requests of objects.
pub(super) struct Caller {
    caller: aws::Caller,
    shared: Arc<Shared>,
}

impl Caller {
    pub(super) fn new(runtime: &Runtime, shared: &Arc<Shared>) -> Self {
        let caller = aws::Caller::new(http::Caller::new(runtime, &shared.endpoint), shared.signer());
        Self { caller, shared: Arc::clone(shared) }
    }

    pub(super) async fn connect(&mut self, deadline: Nanos) -> Result<(), Failure> {
        self.caller.connect(deadline).await.map_err(|error| failure(&error))
    }

    /// Makes a request; one whose connection the server has closed meanwhile is made once more, on a new one. All that
    /// are made here may be.
    pub(super) async fn call(
        &mut self,
        method: Method,
        path: &str,
        range: Option<&str>,
        body: &[u8],
        deadline: Nanos,
    ) -> Result<Response, Failure> {
        let range = range.map(|range| ("Range", range));
        let request = Unsigned { method, path, query: &[], headers: range.as_slice(), body };
        self.caller.call(&request, deadline).await.map_err(|error| failure(&error))
    }

    /// Reads a part of an object into `into`, all of it where that is as long as the object. Whether it was there.
    async fn get(
        &mut self,
        key: &str,
        (from, bytes): (u64, u64),
        into: &mut Vec<u8>,
        deadline: Nanos,
    ) -> Result<bool, Failure> {
        let path = self.shared.path(key);
        let part = (bytes < self.shared.options.object).then(|| format!("bytes={from}-{}", from + bytes - 1));
        let mut response = self.call(Method::Get, &path, part.as_deref(), b"", deadline).await?;
        count(&self.shared.counters.gets);
        match response.status {
            200 | 206 if response.body.len() as u64 == bytes => {
                *into = std::mem::take(&mut response.body);
                Ok(true)
            }
            200 | 206 => Err(Failure::Refused(format!(
                "{key}: {} of {bytes} bytes came; objects of another size lie there",
                response.body.len()
            ))),
            404 => {
                count(&self.shared.counters.absent);
                Ok(false)
            }
            _ => Err(refused(key, &response)),
        }
    }

    pub(super) async fn put(&mut self, key: &str, body: &[u8], deadline: Nanos) -> Result<(), Failure> {
        let path = self.shared.path(key);
        let response = self.call(Method::Put, &path, None, body, deadline).await?;
        count(&self.shared.counters.puts);
        if (200..300).contains(&response.status) { Ok(()) } else { Err(refused(key, &response)) }
    }

    async fn delete(&mut self, key: &str, deadline: Nanos) -> Result<(), Failure> {
        let path = self.shared.path(key);
        let response = self.call(Method::Delete, &path, None, b"", deadline).await?;
        count(&self.shared.counters.deletes);
        match response.status {
            200..=299 | 404 => Ok(()),
            _ => Err(refused(key, &response)),
        }
    }
}

fn failure(error: &Error) -> Failure {
    match error.class() {
        ErrorClass::StatementTimeout => Failure::Timeout(error.message().to_owned()),
        ErrorClass::ConnectionLost => Failure::Broken(error.message().to_owned()),
        _ => Failure::Refused(error.message().to_owned()),
    }
}

/// What the server says of a request that it refused: the code of S3's error, if there is one.
fn refused(key: &str, response: &Response) -> Failure {
    let body = String::from_utf8_lossy(&response.body);
    let code =
        body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code);
    let plain = |code: &&str| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let code = code.filter(plain).map_or_else(String::new, |code| format!(" ({code})"));
    Failure::Refused(format!("{key}: status {}{code}", response.status))
}

/// A session of an object store.
pub struct S3Session {
    caller: Caller,
    shared: Arc<Shared>,
    /// What is written.
    filling: Vec<u8>,
    /// What was read.
    read: Vec<u8>,
}

/// A part of an object: its number, where the part begins, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    object: u64,
    from: u64,
    bytes: u64,
}

/// The parts of objects that a range covers.
fn parts(offset: u64, bytes: u64, object: u64) -> impl Iterator<Item = Part> {
    let end = offset + bytes;
    let last = if bytes == 0 { offset / object } else { end.div_ceil(object) };
    (offset / object..last).map(move |number| {
        let start = number * object;
        let (from, to) = (offset.max(start), end.min(start + object));
        Part { object: number, from: from - start, bytes: to - from }
    })
}

impl S3Session {
    pub(super) fn new(caller: Caller, shared: Arc<Shared>) -> Self {
        let filling = filling(shared.options.object as usize);
        Self { caller, shared, filling, read: Vec::new() }
    }

    async fn write(&mut self, segment: u32, part: Part, deadline: Nanos) -> Result<(), Failure> {
        let key = self.shared.key(segment, part.object);
        let size = self.shared.options.object;
        let shared = Arc::clone(&self.shared);
        let _alone = shared.locks.take((segment, part.object)).await;
        if part.bytes == size {
            return self.caller.put(&key, &self.filling, deadline).await;
        }
        let there = self.caller.get(&key, (0, size), &mut self.read, deadline).await?;
        if !there {
            self.read.clear();
            self.read.resize(size as usize, 0);
        }
        count(&self.shared.counters.rewritten);
        let changed = part.from as usize..(part.from + part.bytes) as usize;
        self.read[changed.clone()].copy_from_slice(&self.filling[changed]);
        self.caller.put(&key, &self.read, deadline).await
    }
}

impl Session for S3Session {
    /// A request that covers several objects handles one after the other.
    async fn execute(&mut self, request: &Request, deadline: Nanos) -> Result<(), Failure> {
        let size = self.shared.options.object;
        let Some(_) = request.offset.checked_add(u64::from(request.bytes)) else {
            return Err(Failure::Refused("a request that ends beyond all bounds".to_owned()));
        };
        for part in parts(request.offset, u64::from(request.bytes), size) {
            let key = self.shared.key(request.segment, part.object);
            match request.operation {
                Operation::Read => {
                    self.caller.get(&key, (part.from, part.bytes), &mut self.read, deadline).await?;
                }
                Operation::Write => self.write(request.segment, part, deadline).await?,
                Operation::Discard if part.bytes == size => self.caller.delete(&key, deadline).await?,
                Operation::Discard | Operation::Sync => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_parts_of_objects() {
        let of = |offset, bytes| -> Vec<(u64, u64, u64)> {
            parts(offset, bytes, 100).map(|part| (part.object, part.from, part.bytes)).collect()
        };
        assert_eq!(of(0, 100), [(0, 0, 100)]);
        assert_eq!(of(250, 20), [(2, 50, 20)]);
        assert_eq!(of(250, 200), [(2, 50, 50), (3, 0, 100), (4, 0, 50)]);
        assert_eq!((of(99, 0), of(100, 0)), (vec![], vec![]));
    }

    #[test]
    fn a_refusal_has_the_code_of_s3() {
        let said = |body: &str| {
            let response = Response { status: 503, body: body.into(), ..Response::default() };
            refused("k", &response).to_string()
        };
        assert_eq!(said("<Error><Code>SlowDown</Code></Error>"), "k: status 503 (SlowDown)");
        assert_eq!(said("<Code>\x1b[31m</Code>"), "k: status 503");
        assert_eq!(said(""), "k: status 503");
    }
}
