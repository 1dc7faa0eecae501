//! A replica's file: the requests that change something, as the protocol writes them; a checksum stands in the place of
//! their identifier. A file that ends within a message (the server was killed) is cut there.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::page_store::protocol::{Frame, Request, frame};

/// How much is read at once.
const PIECE: usize = 1 << 20;

/// A file that is written behind.
pub(crate) struct Log {
    file: File,
    /// Whether a record is durable before it is acknowledged.
    sync: bool,
    buffer: Vec<u8>,
    one: Vec<u8>,
}

impl Log {
    /// Opens or creates a file, and hands every request in it to `replay`.
    pub(crate) fn open(path: &Path, sync: bool, replay: &mut dyn FnMut(&Request<'_>)) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let whole = replay_all(&mut file, replay)?;
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        Ok(Self { file, sync, buffer: Vec::new(), one: Vec::new() })
    }

    /// Adds a request; it is in the file after [`Log::persist`].
    pub(crate) fn add(&mut self, request: &Request<'_>) {
        self.one.clear();
        request.write(0, &mut self.one);
        let sum = checksum(&self.one);
        self.one[5..9].copy_from_slice(&sum.to_le_bytes());
        self.buffer.extend_from_slice(&self.one);
    }

    /// Writes what was added, durably where that was asked for.
    pub(crate) fn persist(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }
}

/// Gives how many bytes hold whole messages.
fn replay_all(file: &mut File, replay: &mut dyn FnMut(&Request<'_>)) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(PIECE, file);
    let (mut bytes, mut whole, mut start) = (Vec::new(), 0, 0);
    loop {
        while let Some(size) = replay_one(&bytes[start..], replay) {
            start += size;
            whole += size as u64;
        }
        bytes.drain(..start);
        start = 0;
        if (&mut reader).take(PIECE as u64).read_to_end(&mut bytes)? == 0 {
            return Ok(whole);
        }
    }
}

/// Replays the message at the start; gives its size. `None` where it is not whole.
fn replay_one(bytes: &[u8], replay: &mut dyn FnMut(&Request<'_>)) -> Option<usize> {
    let Ok(Frame::Whole { kind, id, fields, size }) = frame(bytes) else { return None };
    let mut one = bytes[..size].to_vec();
    one[5..9].fill(0);
    let request = Request::read(kind, fields).ok().filter(|_| checksum(&one) == id)?;
    replay(&request);
    Some(size)
}

/// FNV-1a of 32 bits: it finds what was torn, and nobody means harm.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(path: &Path) -> Vec<String> {
        let mut found = Vec::new();
        Log::open(path, false, &mut |request| found.push(format!("{request:?}"))).unwrap();
        found
    }

    #[test]
    fn what_was_added_is_replayed_up_to_where_it_was_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replica");
        let mut log = Log::open(&path, true, &mut |_| panic!("there is nothing yet")).unwrap();
        let data = vec![7; 3 << 20];
        let requests = [
            Request::Create { segment: 4 },
            Request::Append { segment: 4, lsn: 1, offset: 9, data: &data },
            Request::Erase { segment: 4, lsn: 2, offset: 9, bytes: 3 },
        ];
        for request in &requests {
            log.add(request);
            log.persist().unwrap();
        }
        drop(log);
        let expected: Vec<String> = requests.iter().map(|request| format!("{request:?}")).collect();
        assert_eq!(replayed(&path), expected);
        // Torn within the last one, and then written behind what is whole.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        let mut log = Log::open(&path, false, &mut |_| ()).unwrap();
        log.add(&requests[0]);
        log.persist().unwrap();
        assert_eq!(replayed(&path), [&expected[..2], &expected[..1]].concat());
        // A byte that has changed ends what is believed.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(replayed(&path), expected[..1]);
    }
}
