//! One connection to a service.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};

use nephoscope_runtime::{Nanos, Runtime};

use crate::contract::error::Error;
use crate::net::channel::{Channel, closed};
use crate::net::http::endpoint::Endpoint;
use crate::net::http::request::{Method, Request};
use crate::net::http::response::{Limits, Reader, Response};

/// How often is read until others have their turn.
const UNINTERRUPTED: u32 = 256;

/// A connection over which one request after the other is made, plain or under TLS.
pub struct Client {
    channel: Channel,
    reader: Reader,
    usable: bool,
}

impl Client {
    /// Connects to a service, within the deadline.
    pub async fn connect(
        runtime: &Runtime,
        endpoint: &Endpoint,
        limits: Limits,
        deadline: Nanos,
    ) -> Result<Self, Error> {
        let channel = endpoint.connect(runtime, deadline).await?;
        Ok(Self { channel, reader: Reader::new(limits), usable: true })
    }

    /// Whether another request can be made. Says no as well where the server has meanwhile closed the connection, as
    /// servers do with those that nobody uses.
    pub fn is_usable(&mut self) -> bool {
        // Nothing is due: anything that arrives now, the end among it, is none of ours.
        self.usable = self.usable
            && self.channel.inbox().bytes().is_empty()
            && self.channel.poll_fill(&mut Context::from_waker(Waker::noop())).is_pending();
        self.usable
    }

    /// Makes a request and waits for the response, within the deadline. A status of failure is a response too.
    ///
    /// After an error the connection cannot be used any more. [`Error::outcome_unknown`] says whether the server may
    /// have done what was asked.
    pub async fn exchange(&mut self, request: &Request<'_>, deadline: Nanos) -> Result<Response, Error> {
        request.write(self.out())?;
        self.wait(request.method, deadline).await
    }

    /// The same for a request that has been written to what is sent next.
    pub(crate) async fn wait(&mut self, method: Method, deadline: Nanos) -> Result<Response, Error> {
        self.channel.set_deadline(deadline);
        self.begin(method);
        poll_fn(|cx| self.poll_response(cx)).await?;
        Ok(self.reader.take_response())
    }

    /// What is sent next.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.channel.out()
    }

    /// Where it runs.
    pub(crate) fn runtime(&self) -> &Runtime {
        self.channel.runtime()
    }

    /// Sets the time at which a wait ends.
    pub(crate) fn set_deadline(&mut self, deadline: Nanos) {
        self.channel.set_deadline(deadline);
    }

    /// A request of this method has been written to what is sent next.
    pub(crate) fn begin(&mut self, method: Method) {
        self.reader.begin(method);
        // Whoever gives up halfway leaves a response on its way.
        self.usable = false;
    }

    /// The response that has been waited for.
    pub(crate) fn response(&self) -> &Response {
        self.reader.response()
    }

    /// Sends the request, and completes when its response is whole. A wait that has timed out may be taken up again.
    pub(crate) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        for _ in 0..UNINTERRUPTED {
            // What has been answered is read even if not all could be sent: a server may refuse a long body early.
            let sent = match self.channel.poll_flush(cx) {
                Poll::Ready(sent) => sent,
                Poll::Pending => Ok(()),
            };
            match self.reader.feed(self.channel.inbox()) {
                Ok(false) => {}
                Ok(true) => {
                    self.usable = self.response().keep_alive && self.channel.out().is_empty();
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            match self.channel.poll_fill(cx) {
                Poll::Ready(Ok(0)) if self.reader.end() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(closed().into())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => match sent {
                    Ok(()) => return Poll::Pending,
                    Err(error) => return Poll::Ready(Err(error.into())),
                },
            }
        }
        // A server that sends faster than it is read never makes this side wait, where the time limit would be seen.
        if self.channel.is_late() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
