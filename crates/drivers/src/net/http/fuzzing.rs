//! What the fuzz target in `fuzz/` calls; the tests replay its seeds.

use nephoscope_runtime::Inbox;

use crate::net::http::{Limits, Method, Reader, Response};

const LIMITS: Limits = Limits { head: 2048, body: 2048 };

/// What a server sends: the first byte says how the rest is cut, and whether a HEAD is answered.
///
/// # Panics
/// If what is read depends on how the bytes are cut, or is longer than the limit.
pub fn response(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let method = if how & 1 == 1 { Method::Head } else { Method::Get };
    let whole = read(bytes, method, bytes.len().max(1));
    let pieces = read(bytes, method, usize::from(how >> 1) + 1);
    assert_eq!(whole, pieces);
    if let Ok(Some(response)) = whole {
        assert!(response.body.len() <= LIMITS.body && (200..600).contains(&response.status));
    }
}

/// The first response; the error's words.
fn read(bytes: &[u8], method: Method, piece: usize) -> Result<Option<Response>, String> {
    let (mut reader, mut inbox) = (Reader::new(LIMITS), Inbox::default());
    reader.begin(method);
    for piece in bytes.chunks(piece) {
        inbox.extend(piece);
        if let Some(response) = reader.feed(&mut inbox).map_err(|error| error.message().to_owned())? {
            return Ok(Some(response));
        }
    }
    Ok(reader.end())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_seeds_are_replayed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/http");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!seeds.is_empty());
        for seed in &seeds {
            super::response(&std::fs::read(seed).unwrap());
        }
    }
}
