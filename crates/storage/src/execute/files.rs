//! A file or a block device as a target: each segment is a region of it.
//!
//! Its first page says that it is ours; the regions lie behind it in the order of the segments' numbers. Without the page
//! cache (`O_DIRECT`) a request is widened to whole pages. What is written is random, and each page begins with its place
//! and the time of the request that wrote it.

mod regions;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use nephoscope_runtime::{ALIGNMENT, Aligned, File, FileOperation, Nanos, Runtime};

use crate::execute::filling::randomise;
use crate::execute::layout::Layout;
use crate::execute::target::{Failure, Session, Target};
use crate::requests::{Operation, Request};
pub use regions::PAGE;

/// Whether requests pass by the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// Where the file system allows it.
    Auto,
    /// Always: a target that does not allow it is an error.
    On,
    /// Never.
    Off,
}

/// A target whose regions are filled.
struct Prepared {
    /// Held for as long as the target: two executions would overwrite each other's regions.
    _lock: fs::File,
    /// What all sessions share.
    file: Arc<OwnedFd>,
    /// Whether requests pass by the page cache.
    direct: bool,
}

/// A file or block device.
pub struct FileTarget {
    path: PathBuf,
    direct: Direct,
    /// It may be taken although it holds something that is not ours.
    overwrite: bool,
    prepared: Mutex<Option<Prepared>>,
}

impl FileTarget {
    /// A target at a path.
    #[must_use]
    pub fn new(path: PathBuf, direct: Direct, overwrite: bool) -> Self {
        Self { path, direct, overwrite, prepared: Mutex::default() }
    }

    fn refused(&self, why: impl std::fmt::Display) -> Failure {
        Failure::Refused(format!("{}: {why}", self.path.display()))
    }

    /// Opens it for requests; says whether they pass by the page cache.
    fn open(&self) -> io::Result<(fs::File, bool)> {
        let mut options = fs::File::options();
        options.read(true).write(true);
        if self.direct != Direct::Off {
            let direct = options.clone().custom_flags(libc::O_DIRECT).open(&self.path);
            // EINVAL is the answer of a file system that has no such thing.
            let none = direct.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL));
            if !none || self.direct == Direct::On {
                return direct.map(|file| (file, true));
            }
        }
        options.open(&self.path).map(|file| (file, false))
    }
}

impl Target for FileTarget {
    type Session = FileSession;

    fn prepare(&self, layout: &Layout) -> Result<(), Failure> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        // Prepared before: the lock is its own.
        *prepared = None;
        let lock = regions::prepare(&self.path, layout, self.overwrite).map_err(|why| self.refused(why))?;
        let (file, direct) = self.open().map_err(|error| self.refused(error))?;
        *prepared = Some(Prepared { _lock: lock, file: Arc::new(file.into()), direct });
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let direct = prepared.as_ref().map(|of| ("direct", if of.direct { "on" } else { "off" }.to_owned()));
        [("path", self.path.display().to_string())].into_iter().chain(direct).collect()
    }

    async fn connect(
        &self,
        runtime: &Runtime,
        layout: &Rc<Layout>,
        _deadline: Nanos,
    ) -> Result<FileSession, Failure> {
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let of = prepared.as_ref().ok_or_else(|| self.refused("it is not prepared"))?;
        let file = File::new(runtime, &of.file);
        Ok(FileSession { file, direct: of.direct, layout: Rc::clone(layout), buffer: Aligned::default() })
    }
}

/// Executes requests on a file.
pub struct FileSession {
    file: File,
    direct: bool,
    layout: Rc<Layout>,
    buffer: Aligned,
}

impl FileSession {
    /// Where a request's bytes lie in the file, and how many they are.
    fn place(&self, request: &Request) -> Result<(u64, u32), Failure> {
        let Some(place) = self.layout.place(request.segment) else {
            return Err(Failure::Refused(format!("there is no segment {}", request.segment)));
        };
        let from = PAGE + self.layout.segments()[place].start + request.offset;
        if !self.direct {
            return Ok((from, request.bytes));
        }
        let start = from & !(PAGE - 1);
        let end = (from + u64::from(request.bytes)).next_multiple_of(PAGE);
        let bytes = u32::try_from(end - start)
            .map_err(|_| Failure::Refused(format!("a request of {} bytes is too large", request.bytes)))?;
        Ok((start, bytes))
    }

    /// The session's buffer, with room for so many bytes; random at first.
    fn take_buffer(&mut self, bytes: u32) -> Aligned {
        let wanted = bytes as usize;
        if self.buffer.len() < wanted {
            self.buffer = Aligned::with_bytes(wanted.next_power_of_two().max(ALIGNMENT));
            randomise(self.buffer.bytes_mut());
        }
        std::mem::take(&mut self.buffer)
    }
}

impl Session for FileSession {
    async fn execute(&mut self, request: &Request, _deadline: Nanos) -> Result<(), Failure> {
        let (operation, buffer, wanted) = match request.operation {
            Operation::Sync => (FileOperation::Sync, self.take_buffer(0), 0),
            Operation::Discard => {
                let (at, bytes) = self.place(request)?;
                (FileOperation::Discard { at, bytes }, self.take_buffer(0), 0)
            }
            Operation::Read => {
                let (at, bytes) = self.place(request)?;
                (FileOperation::Read { at, bytes }, self.take_buffer(bytes), bytes)
            }
            Operation::Write => {
                let (at, bytes) = self.place(request)?;
                let mut buffer = self.take_buffer(bytes);
                regions::stamp(&mut buffer.bytes_mut()[..bytes as usize], at, request.time_us as u64);
                (FileOperation::Write { at, bytes }, buffer, bytes)
            }
        };
        let (done, buffer) = self.file.run(operation, buffer).await;
        self.buffer = buffer;
        match done {
            Ok(done) if done == wanted as usize => Ok(()),
            Ok(done) => Err(Failure::Refused(format!("only {done} of {wanted} bytes"))),
            Err(error) => Err(Failure::Refused(error.to_string())),
        }
    }
}
