//! Files and block devices, read and written beside sockets and timers: by the runtime's own io_uring, or by threads
//! where it waits by epoll, which knows no files.

mod buffer;
mod pool;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::fd::OwnedFd;

use crate::executor::Runtime;
use crate::reactor::Reactor;
pub use buffer::{ALIGNMENT, Aligned};
use pool::Job;
pub(crate) use pool::PUNCH;

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// Reads so many bytes into the buffer.
    Read {
        /// Where the first is in the file.
        at: u64,
        /// How many.
        bytes: u32,
    },
    /// Writes so many bytes of the buffer.
    Write {
        /// Where the first goes in the file.
        at: u64,
        /// How many.
        bytes: u32,
    },
    /// Makes durable what was written, and as much of the file's description as is needed to find it (fdatasync).
    Sync,
    /// Gives a range back: it reads as zeros then, and the file keeps its size.
    Discard {
        /// Where it begins.
        at: u64,
        /// How many bytes.
        bytes: u32,
    },
}

/// A file that is read and written at given places.
pub struct File {
    runtime: Runtime,
    fd: Arc<OwnedFd>,
}

impl File {
    /// Takes a file or block device that was opened; several may share it.
    #[must_use]
    pub fn new(runtime: &Runtime, fd: &Arc<OwnedFd>) -> Self {
        Self { runtime: runtime.clone(), fd: Arc::clone(fd) }
    }

    /// Starts an operation with a buffer, which comes back with its outcome: how many bytes were read or written, which
    /// may be fewer than asked for.
    ///
    /// The operation goes on if the future is dropped; the buffer is freed when the kernel has let go of it.
    ///
    /// # Panics
    /// If the buffer is too small for it.
    #[must_use]
    pub fn run(&self, operation: FileOperation, buffer: Aligned) -> Transfer {
        let bytes = match operation {
            FileOperation::Read { bytes, .. } | FileOperation::Write { bytes, .. } => bytes as usize,
            FileOperation::Sync | FileOperation::Discard { .. } => 0,
        };
        assert!(bytes <= buffer.len(), "a buffer of {} bytes for {bytes}", buffer.len());
        let going = match &mut *self.runtime.reactor() {
            Reactor::Uring(uring) => Going::Ring(uring.begin_file(operation, Arc::clone(&self.fd), buffer)),
            Reactor::Epoll(_) => Going::Threads(Job::begin(operation, Arc::clone(&self.fd), buffer)),
        };
        Transfer { runtime: self.runtime.clone(), going: Some(going) }
    }
}

enum Going {
    Ring(usize),
    Threads(Arc<Job>),
}

/// An operation on a file that is going on.
pub struct Transfer {
    runtime: Runtime,
    /// `None` when it has ended.
    going: Option<Going>,
}

impl Future for Transfer {
    type Output = (io::Result<usize>, Aligned);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let ended = match (&this.going, &mut *this.runtime.reactor()) {
            (Some(Going::Ring(number)), Reactor::Uring(uring)) => uring.poll_file(*number, cx),
            (Some(Going::Threads(job)), _) => job.poll(cx),
            _ => return Poll::Pending,
        };
        if ended.is_ready() {
            this.going = None;
        }
        ended
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(Going::Ring(number)) = self.going
            && let Reactor::Uring(uring) = &mut *self.runtime.reactor()
        {
            uring.leave_file(number);
        }
    }
}

#[cfg(test)]
mod tests;
