//! What the fuzz target in `fuzz/` calls; the tests replay its seeds.

use std::path::Path;

use super::record::Paths;
use super::source::{Source, Summary};

/// The file of records of one process: it is refused, or as many records come, in order of time, as it has calls.
///
/// # Panics
/// If they do not.
pub fn records(data: &[u8]) {
    let path = Path::new("1-0-0.io");
    let Ok(summary) = Summary::of(data, path) else { return };
    let Ok(Some(mut source)) = Source::new(data, path, summary) else {
        assert_eq!(summary, Summary::default());
        return;
    };
    let (mut paths, mut calls, mut latest) = (Paths::default(), 0, 0);
    loop {
        match source.next(&mut paths) {
            Ok(Some(record)) => {
                assert!(record.time_ns >= latest, "{} after {latest}", record.time_ns);
                assert!(paths.get(record.file).is_some());
                latest = record.time_ns;
                calls += 1;
            }
            Ok(None) => break,
            // A call of a file or a caller without a name: only the second reading looks for those.
            Err(_) => return,
        }
    }
    assert_eq!(calls, summary.calls);
}
