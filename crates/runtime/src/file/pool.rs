//! Threads that read and write files for runtimes that wait by epoll.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::fd::{AsRawFd, OwnedFd};

use super::{Aligned, FileOperation};

/// Operations that go on at once, in the whole process; more wait for a thread.
const MOST_THREADS: usize = 64;

#[derive(Default)]
struct Pool {
    waiting: VecDeque<Arc<Job>>,
    threads: usize,
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { waiting: VecDeque::new(), threads: 0, idle: 0 });
static MORE: Condvar = Condvar::new();

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

enum State {
    Waiting { operation: FileOperation, buffer: Aligned },
    Running,
    Ended(io::Result<usize>, Aligned),
}

/// An operation, for a thread to do.
pub(super) struct Job {
    fd: Arc<OwnedFd>,
    state: Mutex<(State, Option<Waker>)>,
}

impl Job {
    pub(super) fn begin(operation: FileOperation, fd: Arc<OwnedFd>, buffer: Aligned) -> Arc<Self> {
        let job = Arc::new(Self { fd, state: Mutex::new((State::Waiting { operation, buffer }, None)) });
        let mut pool = locked(&POOL);
        pool.waiting.push_back(Arc::clone(&job));
        if pool.idle < pool.waiting.len() && pool.threads < MOST_THREADS {
            let spawned = std::thread::Builder::new().name("files".to_owned()).spawn(work);
            pool.threads += usize::from(spawned.is_ok());
            if let (0, Err(error)) = (pool.threads, spawned) {
                pool.waiting.pop_back();
                job.end(Err(error), Aligned::default());
            }
        }
        drop(pool);
        MORE.notify_one();
        job
    }

    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<(io::Result<usize>, Aligned)> {
        let mut state = locked(&self.state);
        match std::mem::replace(&mut state.0, State::Running) {
            State::Ended(result, buffer) => Poll::Ready((result, buffer)),
            going => {
                *state = (going, Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }

    fn end(&self, result: io::Result<usize>, buffer: Aligned) {
        let mut state = locked(&self.state);
        state.0 = State::Ended(result, buffer);
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    fn run(&self) {
        let begun = std::mem::replace(&mut locked(&self.state).0, State::Running);
        if let State::Waiting { operation, mut buffer } = begun {
            let result = execute(operation, self.fd.as_raw_fd(), &mut buffer);
            self.end(result, buffer);
        }
    }
}

/// What a thread of the pool does, for as long as the process lives.
fn work() {
    loop {
        let mut pool = locked(&POOL);
        let job = loop {
            if let Some(job) = pool.waiting.pop_front() {
                break job;
            }
            pool.idle += 1;
            pool = MORE.wait(pool).unwrap_or_else(PoisonError::into_inner);
            pool.idle -= 1;
        };
        drop(pool);
        job.run();
    }
}

fn execute(operation: FileOperation, fd: i32, buffer: &mut Aligned) -> io::Result<usize> {
    let bytes = buffer.bytes_mut();
    loop {
        // SAFETY: the descriptor is open for as long as the job, and `File::run` has checked the buffer's length.
        let done = unsafe {
            match operation {
                FileOperation::Read { at, bytes: count } => {
                    libc::pread64(fd, bytes.as_mut_ptr().cast(), count as usize, at as i64)
                }
                FileOperation::Write { at, bytes: count } => {
                    libc::pwrite64(fd, bytes.as_ptr().cast(), count as usize, at as i64)
                }
                FileOperation::Sync => libc::fdatasync(fd) as isize,
                FileOperation::Discard { at, bytes } => {
                    libc::fallocate64(fd, PUNCH, at as i64, i64::from(bytes)) as isize
                }
            }
        };
        match usize::try_from(done) {
            Ok(done) => return Ok(done),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// How a range is given back.
pub(crate) const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
