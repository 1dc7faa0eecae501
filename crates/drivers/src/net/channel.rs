//! A stream, plain or under TLS, behind one pair of buffers.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::task::{Context, Poll, ready};

use nephoscope_runtime::{Inbox, Nanos, Runtime, Stream, Yield};
use rustls::ClientConnection;

/// A connection to a server: what is put into [`Channel::out`] leaves, encrypted or not, and what arrives is in
/// [`Channel::inbox`].
pub(crate) enum Channel {
    Plain(Stream),
    Tls(Box<Tls>),
}

/// A TLS session between the plain buffers and the stream's.
pub(crate) struct Tls {
    stream: Stream,
    session: ClientConnection,
    out: Vec<u8>,
    /// How much of `out` the session has taken.
    taken: usize,
    inbox: Inbox,
}

impl Channel {
    /// Encrypts the stream: performs the handshake within the stream's deadline.
    pub(crate) async fn encrypt(stream: Stream, session: ClientConnection) -> io::Result<Self> {
        let mut tls = Tls { stream, session, out: Vec::new(), taken: 0, inbox: Inbox::default() };
        while tls.session.is_handshaking() {
            poll_fn(|cx| tls.poll_send(cx)).await?;
            if tls.session.is_handshaking() && poll_fn(|cx| tls.poll_receive(cx)).await? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server ended the TLS handshake",
                ));
            }
        }
        poll_fn(|cx| tls.poll_send(cx)).await?;
        Ok(Self::Tls(Box::new(tls)))
    }

    /// Looks at the TLS session; `None` without TLS.
    pub(crate) fn session(&self) -> Option<&ClientConnection> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => Some(&tls.session),
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// The bytes to be sent.
    #[inline]
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Plain(stream) => &mut stream.out,
            Self::Tls(tls) => &mut tls.out,
        }
    }

    /// The bytes received.
    #[inline]
    pub(crate) fn inbox(&mut self) -> &mut Inbox {
        match self {
            Self::Plain(stream) => &mut stream.inbox,
            Self::Tls(tls) => &mut tls.inbox,
        }
    }

    /// The bytes received, and those to be sent.
    #[inline]
    pub(crate) fn buffers(&mut self) -> (&mut Inbox, &mut Vec<u8>) {
        match self {
            Self::Plain(stream) => (&mut stream.inbox, &mut stream.out),
            Self::Tls(tls) => (&mut tls.inbox, &mut tls.out),
        }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        match self {
            Self::Plain(stream) => stream.runtime(),
            Self::Tls(tls) => tls.stream.runtime(),
        }
    }

    pub(crate) fn set_deadline(&mut self, deadline: Nanos) {
        match self {
            Self::Plain(stream) => stream.set_deadline(deadline),
            Self::Tls(tls) => tls.stream.set_deadline(deadline),
        }
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_late(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_late(),
            Self::Tls(tls) => tls.stream.is_late(),
        }
    }

    /// Sends what is in [`Channel::out`]; complete when it is empty.
    #[inline]
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_flush(cx),
            Self::Tls(tls) => tls.poll_flush(cx),
        }
    }

    /// Reads once; completes with the number of bytes, 0 at the end of the stream.
    #[inline]
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => stream.poll_fill(cx),
            Self::Tls(tls) => loop {
                match tls.session.reader().read(tls.inbox.room()) {
                    Ok(count) => {
                        tls.inbox.filled(count);
                        return Poll::Ready(Ok(count));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // Many servers close without the closing alert; the protocol above knows what is whole.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                    Err(error) => return Poll::Ready(Err(error)),
                }
                // Reading may have made TLS want to answer (a key update). Where that has to wait, reading goes on:
                // the other side may be waiting to be read itself.
                if let Poll::Ready(Err(error)) = tls.poll_send(cx) {
                    return Poll::Ready(Err(error));
                }
                if ready!(tls.poll_receive(cx))? == 0 {
                    return Poll::Ready(Ok(0));
                }
            },
        }
    }

    /// Sends what is in [`Channel::out`].
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Reads at least one byte; the end of the stream is an error. Ends at the deadline, and leaves others their turn,
    /// even if the server never stops sending.
    pub(crate) async fn fill(&mut self) -> io::Result<()> {
        Yield::default().await;
        if self.is_late() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match poll_fn(|cx| self.poll_fill(cx)).await? {
            0 => Err(closed()),
            _ => Ok(()),
        }
    }
}

/// The server closed the connection where an answer was due.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

impl Tls {
    /// Sends `out`. The session takes only so much at a time, so that what waits encrypted stays bounded.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.taken < self.out.len() {
            self.taken += self.session.writer().write(&self.out[self.taken..])?;
            ready!(self.poll_send(cx))?;
        }
        self.out.clear();
        self.taken = 0;
        self.poll_send(cx)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.stream.out)?;
        }
        self.stream.poll_flush(cx)
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.stream.inbox.bytes().is_empty() {
            let count = ready!(self.stream.poll_fill(cx))?;
            if count == 0 {
                return Poll::Ready(Ok(0));
            }
        }
        let mut bytes = self.stream.inbox.bytes();
        let count = self.session.read_tls(&mut bytes)?;
        self.stream.inbox.consume(count);
        if let Err(error) = self.session.process_new_packets() {
            // The alert that says why is worth sending; that it may not arrive changes nothing.
            let _ = self.poll_send(cx);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(count))
    }
}
