//! Files and block devices, by io_uring and by threads.

use std::fs;
use std::io::{Read as _, Seek as _, Write as _};

use super::*;
use crate::reactor::Io;

/// A file of its own for a test, gone from its folder already.
fn file(content: &[u8]) -> fs::File {
    let path = std::env::temp_dir().join(format!("nephoscope-file-{}-{:p}", std::process::id(), content));
    let mut file =
        fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.write_all(content).unwrap();
    file
}

fn each_io(test: impl Fn(&Runtime)) {
    for io in [Io::Epoll, Io::Uring] {
        // A kernel that forbids io_uring has threads alone.
        if let Ok(runtime) = Runtime::with_io(io) {
            test(&runtime);
        }
    }
}

#[test]
fn bytes_are_written_and_read_where_they_belong() {
    each_io(|runtime| {
        let mut plain = file(&[1; 16384]);
        let file = File::new(runtime, &Arc::new(plain.try_clone().unwrap().into()));
        runtime.block_on(async {
            let mut buffer = Aligned::with_bytes(4096);
            buffer.bytes_mut().fill(7);
            let (written, buffer) = file.run(FileOperation::Write { at: 4096, bytes: 100 }, buffer).await;
            assert_eq!(written.unwrap(), 100);
            let (synced, buffer) = file.run(FileOperation::Sync, buffer).await;
            assert_eq!(synced.unwrap(), 0);
            let (read, buffer) = file.run(FileOperation::Read { at: 4000, bytes: 300 }, buffer).await;
            assert_eq!(read.unwrap(), 300);
            assert_eq!(buffer.bytes()[..300], [[1; 96].as_slice(), &[7; 100], &[1; 104]].concat());
        });
        let mut all = Vec::new();
        plain.rewind().unwrap();
        plain.read_to_end(&mut all).unwrap();
        assert_eq!(all, [[1; 4096].as_slice(), &[7; 100], &[1; 12188]].concat());
    });
}

#[test]
fn the_end_of_a_file_and_errors_are_told() {
    each_io(|runtime| {
        let plain = file(&[1; 100]);
        let read_only = fs::File::open("/dev/null").unwrap();
        let (file, null) =
            (File::new(runtime, &Arc::new(plain.into())), File::new(runtime, &Arc::new(read_only.into())));
        runtime.block_on(async {
            let (read, buffer) =
                file.run(FileOperation::Read { at: 60, bytes: 4096 }, Aligned::with_bytes(4096)).await;
            assert_eq!(read.unwrap(), 40);
            let (written, _) = null.run(FileOperation::Write { at: 0, bytes: 1 }, buffer).await;
            assert_eq!(written.unwrap_err().raw_os_error(), Some(libc::EBADF));
        });
    });
}

#[test]
fn many_at_once_end_and_dropped_ones_do_no_harm() {
    each_io(|runtime| {
        let file = File::new(runtime, &Arc::new(file(&vec![3; 1 << 20]).into()));
        runtime.block_on(async {
            for round in 0..5_u64 {
                let going: Vec<Transfer> = (0..200)
                    .map(|number| {
                        let at = (number * 37 + round) % 255 * 4096;
                        file.run(FileOperation::Read { at, bytes: 4096 }, Aligned::with_bytes(4096))
                    })
                    .collect();
                for (number, transfer) in going.into_iter().enumerate() {
                    if number % 3 == 0 {
                        drop(transfer);
                    } else {
                        let (read, buffer) = transfer.await;
                        assert_eq!(read.unwrap(), 4096);
                        assert!(buffer.bytes().iter().all(|byte| *byte == 3));
                    }
                }
            }
        });
    });
}
