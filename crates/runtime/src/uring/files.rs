//! Operations on files of a ring. Each belongs to the ring's table until the kernel has ended it, and its buffer with it.

use std::io;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};
use rustix::fd::{AsRawFd, OwnedFd};

use super::source::{FILE, tag};
use super::{Uring, push};
use crate::file::{Aligned, FileOperation, PUNCH};
use crate::reactor::store;

/// An operation that the kernel may not have ended.
pub(super) struct Operation {
    /// Open until the kernel is done with it.
    _fd: Arc<OwnedFd>,
    buffer: Aligned,
    waker: Option<Waker>,
    result: Option<i32>,
    /// Nobody waits for it any more.
    left: bool,
}

impl Operation {
    /// Whether the kernel may still use its buffer.
    pub(super) fn is_going_on(&self) -> bool {
        self.result.is_none()
    }
}

impl Uring {
    /// Queues an operation; its number is for [`Uring::poll_file`] or [`Uring::leave_file`], one of which must follow.
    pub(crate) fn begin_file(
        &mut self,
        operation: FileOperation,
        fd: Arc<OwnedFd>,
        mut buffer: Aligned,
    ) -> usize {
        let entry = entry(operation, Fd(fd.as_raw_fd()), &mut buffer);
        let number = self.files.insert(Operation { _fd: fd, buffer, waker: None, result: None, left: false });
        // SAFETY: buffer and descriptor are in the table until the operation has ended, and `drop` leaves them there if
        // it does not; the pages of a buffer do not move with it.
        unsafe { push(&mut self.ring, &mut self.waiting, &entry.user_data(tag(FILE, number))) };
        number
    }

    /// Completes when the operation has ended; its number is another's then.
    pub(crate) fn poll_file(
        &mut self,
        number: usize,
        cx: &Context<'_>,
    ) -> Poll<(io::Result<usize>, Aligned)> {
        let failure = self.failure();
        let operation = &mut self.files[number];
        if let Some(result) = operation.result {
            let buffer = self.files.remove(number).buffer;
            let done = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
            return Poll::Ready((done, buffer));
        }
        if let Some(error) = failure {
            // The kernel may still write into the buffer, so it stays where it is.
            operation.left = true;
            return Poll::Ready((Err(error), Aligned::default()));
        }
        store(&mut operation.waker, cx);
        Poll::Pending
    }

    /// Nobody waits for an operation any more.
    pub(crate) fn leave_file(&mut self, number: usize) {
        let operation = &mut self.files[number];
        if operation.result.is_some() {
            self.files.remove(number);
        } else {
            operation.left = true;
        }
    }

    /// Wakes all who wait for files, as nothing will end any more.
    pub(super) fn wake_files(&mut self) {
        for (_, operation) in &mut self.files {
            if let Some(waker) = operation.waker.take() {
                waker.wake();
            }
        }
    }
}

/// Notes how an operation has ended; `true` if nobody waits for it.
pub(super) fn ended(operation: &mut Operation, result: i32) -> bool {
    operation.result = Some(result);
    if let Some(waker) = mem::take(&mut operation.waker) {
        waker.wake();
    }
    operation.left
}

fn entry(operation: FileOperation, fd: Fd, buffer: &mut Aligned) -> squeue::Entry {
    let memory = buffer.bytes_mut().as_mut_ptr();
    match operation {
        FileOperation::Read { at, bytes } => opcode::Read::new(fd, memory, bytes).offset(at).build(),
        FileOperation::Write { at, bytes } => opcode::Write::new(fd, memory, bytes).offset(at).build(),
        FileOperation::Sync => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
        FileOperation::Discard { at, bytes } => {
            opcode::Fallocate::new(fd, bytes.into()).offset(at).mode(PUNCH).build()
        }
    }
}
