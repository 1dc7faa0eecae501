//! Requests on real files: each byte where it belongs, and nothing taken that is not ours.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nephoscope_runtime::Io;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::execute::run::{Execution, Options};
use crate::execute::schedule::{Schedule, Syncs};
use crate::requests::{Columns, Process};

fn request(time_us: i64, segment: u32, offset: u64, bytes: u32, operation: Operation) -> Request {
    Request { time_us, segment, offset, bytes, operation, process: Process::Backend, latency_us: f32::NAN }
}

fn columns(requests: &[Request]) -> Columns {
    let mut columns = Columns::default();
    for request in requests {
        columns.push(request);
    }
    columns
}

fn target(path: &Path, direct: Direct) -> FileTarget {
    FileTarget::new(path.to_owned(), direct, false)
}

/// Executes requests, one at a time, and gives the last record.
fn execute(target: &Arc<FileTarget>, requests: &[Request], io: Io) -> serde_json::Value {
    let columns = columns(requests);
    let layout = Arc::new(Layout::of([&columns]));
    target.prepare(&layout).unwrap();
    let schedule = Schedule::new(&columns, Syncs::Captured, 1.0).unwrap();
    let options = Options { depth: 1, io: Some(io), ..Options::default() };
    let execution = Execution::start(target, &layout, schedule, &options).unwrap();
    std::iter::from_fn(|| execution.next(Duration::from_mins(1))).last().unwrap()
}

fn head(file: &std::fs::File, at: u64) -> (u64, u64) {
    let mut head = [0; 16];
    file.read_exact_at(&mut head, at).unwrap();
    let word = |from: usize| u64::from_le_bytes(head[from..from + 8].try_into().unwrap());
    (word(0), word(8))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_page_that_is_written_is_where_it_belongs_and_no_other_is_touched(
        writes in prop::collection::vec((0..3_u32, 0..60_u64, 1..9_u64), 1..40),
        direct in prop::bool::ANY, uring in prop::bool::ANY,
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("target");
        let direct = if direct { Direct::Auto } else { Direct::Off };
        let target = Arc::new(target(&path, direct));
        // A read at the end of each segment, so that the regions do not depend on what is written.
        let mut requests: Vec<Request> =
            (0..3).map(|segment| request(0, segment, 99 * PAGE, 4096, Operation::Read)).collect();
        for (number, (segment, page, pages)) in writes.iter().enumerate() {
            let bytes = (pages * PAGE) as u32;
            requests.push(request(1 + number as i64, *segment, page * PAGE, bytes, Operation::Write));
        }
        requests.push(request(1000, 0, 0, 0, Operation::Sync));
        let io = if uring && Io::Uring.check().is_ok() { Io::Uring } else { Io::Epoll };
        let end = execute(&target, &requests, io);
        prop_assert_eq!(end["done"].as_u64(), Some(requests.len() as u64));
        // Whoever wrote a page last has left its time there; a page that nobody wrote has the time 0.
        let mut expected = vec![0; 300];
        for (number, (segment, page, pages)) in writes.iter().enumerate() {
            for page in *page..page + pages {
                expected[(u64::from(*segment) * 100 + page) as usize] = 1 + number as u64;
            }
        }
        let file = std::fs::File::open(&path).unwrap();
        for (page, time) in expected.into_iter().enumerate() {
            let at = PAGE + page as u64 * PAGE;
            prop_assert_eq!(head(&file, at), (at, time), "page {}", page);
        }
        prop_assert_eq!(file.metadata().unwrap().len(), PAGE + 300 * PAGE);
    }
}

#[test]
fn odd_sizes_are_widened_to_pages_only_where_the_cache_is_passed_by() {
    let folder = TempDir::new().unwrap();
    for (direct, io) in [(Direct::Auto, Io::Epoll), (Direct::Off, Io::Epoll)] {
        let path = folder.path().join(format!("{direct:?}"));
        let target = Arc::new(target(&path, direct));
        let layout = Layout::of([&columns(&[request(0, 7, 16384, 4096, Operation::Read)])]);
        target.prepare(&layout).unwrap();
        let before = std::fs::read(&path).unwrap();
        let cached = !target.open().unwrap().1;
        let requests = [request(1, 7, 5000, 100, Operation::Write), request(2, 7, 20479, 1, Operation::Read)];
        assert_eq!(execute(&target, &requests, io)["done"], 2);
        let after = std::fs::read(&path).unwrap();
        let changed: Vec<usize> = (0..after.len()).filter(|at| after[*at] != before[*at]).collect();
        let page = 4096 + 4096;
        let within = if cached { page + 904..page + 1004 } else { page..page + 4096 };
        assert!(
            changed.iter().all(|at| within.contains(at)) && !changed.is_empty(),
            "{direct:?}: {changed:?}"
        );
    }
}

#[test]
fn a_discarded_range_reads_as_zeros() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("target");
    let target = Arc::new(target(&path, Direct::Off));
    let requests = [
        request(0, 1, 0, 16384, Operation::Read),
        request(1, 1, 4096, 8192, Operation::Discard),
        request(2, 1, 0, 16384, Operation::Read),
    ];
    let end = execute(&target, &requests, Io::Epoll);
    // A file system without holes refuses, and that is counted.
    if end["done"] == 3 {
        let content = std::fs::read(&path).unwrap();
        assert!(content[8192..16384].iter().all(|byte| *byte == 0));
        assert!(content[4096..8192].iter().any(|byte| *byte != 0) && content.len() == 20480);
    } else {
        assert_eq!((&end["done"], &end["failed"]), (&2.into(), &1.into()));
    }
}

#[test]
fn what_is_not_ours_is_left_alone_until_told() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, b"somebody's thesis").unwrap();
    let layout = Layout::of([&columns(&[request(0, 1, 0, 4096, Operation::Read)])]);
    let said = target(&path, Direct::Auto).prepare(&layout).unwrap_err().to_string();
    assert!(said.contains("precious: a file whose content is not ours; --overwrite takes it"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody's thesis");
    FileTarget::new(path.clone(), Direct::Auto, true).prepare(&layout).unwrap();
    // Ours now: nobody has to tell any more.
    target(&path, Direct::Auto).prepare(&layout).unwrap();
    let said = target(Path::new("/dev/null"), Direct::Off).prepare(&layout).unwrap_err().to_string();
    assert_eq!(said, "/dev/null: it is neither a file nor a block device");
    let said = target(&folder.path().join("no/such"), Direct::Off).prepare(&layout).unwrap_err().to_string();
    assert!(said.ends_with("No such file or directory (os error 2)"), "{said}");
}

#[test]
fn what_is_filled_stays_and_what_is_larger_is_filled_up() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("target");
    let of = |bytes| Layout::of([&columns(&[request(0, 1, 0, bytes, Operation::Read)])]);
    target(&path, Direct::Off).prepare(&of(8192)).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    file.write_all_at(b"kept", PAGE + 100).unwrap();
    target(&path, Direct::Off).prepare(&of(3 << 20)).unwrap();
    let mut kept = [0; 4];
    file.read_exact_at(&mut kept, PAGE + 100).unwrap();
    assert_eq!((&kept, file.metadata().unwrap().len()), (b"kept", PAGE + (3 << 20)));
    assert_eq!(head(&file, PAGE + (3 << 20) - PAGE), (3 << 20, 0));
}

#[test]
fn one_execution_at_a_time_and_none_that_finds_no_room() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("target");
    let layout = Layout::of([&columns(&[request(0, 1, 0, 4096, Operation::Read)])]);
    let first = target(&path, Direct::Off);
    first.prepare(&layout).unwrap();
    let said = target(&path, Direct::Off).prepare(&layout).unwrap_err().to_string();
    assert!(said.ends_with("another process executes requests on it"), "{said}");
    drop(first);
    let huge = Layout::of([&columns(&[request(0, 1, u64::MAX - 10, 4096, Operation::Read)])]);
    let path = folder.path().join("large");
    let said = target(&path, Direct::Off).prepare(&huge).unwrap_err().to_string();
    assert!(said.contains("and there is room for"), "{said}");
    assert!(!path.exists());
}
