//! What the fuzz target in `fuzz/` calls; the tests replay its seeds.

use crate::page_store::protocol::{Frame, Reply, Request, frame};
use crate::page_store::segment::{Change, Segment};

/// The most bytes that a read gives here: the target is about numbers that make no sense, not about memory.
const MOST_READ: u32 = 1 << 16;

/// What a client or a replica sends. The requests of segment logs are done on a segment.
///
/// # Panics
/// If a message that is read is another one when it is written, or a read gives other than the bytes it was asked for.
pub fn messages(data: &[u8]) {
    let (mut rest, mut segment) = (data, Segment::new(512));
    while let Ok(Frame::Whole { kind, id, fields, size }) = frame(rest) {
        let mut again = Vec::new();
        if let Ok(request) = Request::read(kind, fields) {
            request.write(id, &mut again);
            handle(&mut segment, &request);
        } else if let Ok(reply) = Reply::read(kind, fields) {
            reply.write(id, &mut again);
        }
        assert!(again.is_empty() || again == rest[..size], "{again:?} of {:?}", &rest[..size]);
        rest = &rest[size..];
    }
}

fn handle(segment: &mut Segment, request: &Request<'_>) {
    let (lsn, offset, change) = match *request {
        Request::Append { lsn, offset, data, .. } => (lsn, offset, Change::Bytes(data.into())),
        Request::Erase { lsn, offset, bytes, .. } => (lsn, offset, Change::Zeros(bytes)),
        Request::Read { lsn, offset, bytes, .. } => {
            let (bytes, mut out) = (bytes.min(MOST_READ), Vec::new());
            if let Ok(Some(_)) = segment.read(lsn, offset, bytes, &mut out) {
                assert_eq!(out.len(), bytes as usize);
            }
            return;
        }
        _ => return,
    };
    let mut long = Vec::new();
    // What cannot be is refused.
    let _ = segment.append(lsn, offset, change, (4, &mut long));
    for page in long {
        segment.consolidate(page, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_seeds_are_replayed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/page_store");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!seeds.is_empty());
        for seed in &seeds {
            super::messages(&std::fs::read(seed).unwrap());
        }
    }
}
