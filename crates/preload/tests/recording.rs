//! Programs whose I/O is known are run with the library, and the reader has to find just that.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_env = "gnu"))]
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use nephoscope_storage::Operation::{self, Read as Reads, Sync as Syncs, Write as Writes};
use nephoscope_storage::Process;
use nephoscope_storage::capture::Recording;
use support::Lab;

const THREADS: u64 = 4;
const EACH: u64 = 20_000;
const MANY: u64 = 30_000;

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
    fn _exit(code: i32) -> !;
    fn dup2(fd: i32, to: i32) -> i32;
    fn fork() -> i32;
    fn getenv(name: *const std::ffi::c_char) -> *mut std::ffi::c_char;
    fn kill(pid: i32, signal: i32) -> i32;
    fn strlen(text: *const std::ffi::c_char) -> usize;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn writev(fd: i32, from: *const [usize; 2], count: i32) -> isize;
    fn pwritev(fd: i32, from: *const [usize; 2], count: i32, offset: i64) -> isize;
}

fn data() -> PathBuf {
    std::env::var_os(support::DATA).unwrap().into()
}

fn opened(path: PathBuf) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// What is run with the library; by itself it does nothing.
#[test]
fn recorded() {
    match std::env::var(support::PLAYED).as_deref() {
        Ok("calls") => calls(),
        Ok("descriptors") => descriptors(),
        Ok("fork") => forks(),
        Ok("errno") => keeps_errno(),
        Ok("title") => overwrites_its_environment(),
        Ok("threads") => threads(),
        Ok("killed") => is_killed(),
        Ok("many") => many(),
        Ok("renamed") => renames(),
        _ => {}
    }
}

/// Operation, path, offset and bytes of each record.
fn seen(lab: &Lab) -> Vec<(Operation, String, u64, u32)> {
    let (records, paths) = lab.found();
    let path = |file| paths.get(file).unwrap().to_owned();
    records.iter().map(|found| (found.operation, path(found.file), found.offset, found.bytes)).collect()
}

fn calls() {
    let mut file = opened(data().join("a"));
    file.write_all_at(&[1; 100], 8192).unwrap();
    file.read_exact_at(&mut [0; 50], 8200).unwrap();
    file.write_all(&[2; 30]).unwrap();
    file.read_exact(&mut [0; 20]).unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    let parts = [[b"one".as_ptr() as usize, 3], [b"four".as_ptr() as usize, 4]];
    // SAFETY: two parts, each there.
    unsafe {
        assert_eq!(writev(file.as_raw_fd(), parts.as_ptr(), 2), 7);
        assert_eq!(pwritev(file.as_raw_fd(), parts.as_ptr(), 2, 4096), 7);
    }
    assert!(file.read_at(&mut [0; 8], 1 << 40).unwrap() == 0);
    std::fs::create_dir_all(data().join("base/5")).unwrap();
    let long = data().join("base/5").join("x".repeat(100));
    opened(long).write_all_at(b"abc", 1).unwrap();
}

#[test]
fn every_call_is_recorded_as_it_was_made() {
    let lab = Lab::new("calls");
    assert!(lab.run("calls").status.success());
    let a = || "a".to_owned();
    let expected = [
        (Writes, a(), 8192, 100),
        (Reads, a(), 8200, 50),
        (Writes, a(), 0, 30),
        (Reads, a(), 30, 20),
        (Syncs, a(), 0, 0),
        (Syncs, a(), 0, 0),
        (Writes, a(), 50, 7),
        (Writes, a(), 4096, 7),
        (Reads, a(), 1 << 40, 0),
        (Writes, format!("base/5/{}", "x".repeat(100)), 1, 3),
    ];
    assert_eq!(seen(&lab), expected);
    let (records, _) = lab.found();
    assert!(records.iter().all(|record| record.process == Process::Other && record.latency_ns > 0));
    assert!(records.windows(2).all(|pair| pair[0].time_ns + pair[0].latency_ns <= pair[1].time_ns));
}

fn descriptors() {
    let outside = opened(data().parent().unwrap().join("outside"));
    let inside = opened(data().join("in"));
    inside.write_all_at(b"1", 0).unwrap();
    outside.write_all_at(b"12", 0).unwrap();
    let number = inside.as_raw_fd();
    drop(inside);
    let other = opened(data().parent().unwrap().join("other"));
    assert_eq!(other.as_raw_fd(), number, "the number is used again");
    other.write_all_at(b"123", 0).unwrap();
    let inside = opened(data().join("in"));
    // SAFETY: both are open.
    unsafe { dup2(inside.as_raw_fd(), number) };
    other.write_all_at(b"1234", 0).unwrap();
    // A folder whose name begins as that of the data.
    let beside = data().with_file_name("data-of-others");
    std::fs::create_dir_all(&beside).unwrap();
    opened(beside.join("x")).write_all_at(b"12345", 0).unwrap();
}

#[test]
fn a_descriptor_is_forgotten_when_it_is_another_files() {
    let lab = Lab::new("descriptors");
    assert!(lab.run("descriptors").status.success());
    assert_eq!(seen(&lab), [(Writes, "in".to_owned(), 0, 1), (Writes, "in".to_owned(), 0, 4)]);
}

fn forks() {
    let file = opened(data().join("a"));
    file.write_all_at(&[1; 10], 0).unwrap();
    // SAFETY: the child makes system calls only, and ends.
    unsafe {
        let child = fork();
        if child == 0 {
            let written = file.write_at(&[2; 20], 100);
            _exit(i32::from(written.is_err()));
        }
        let mut status = 1;
        waitpid(child, &raw mut status, 0);
        assert_eq!(status, 0);
    }
    file.write_all_at(&[3; 30], 200).unwrap();
}

#[test]
fn a_child_has_a_file_of_its_own() {
    let lab = Lab::new("fork");
    assert!(lab.run("fork").status.success());
    let a = || "a".to_owned();
    assert_eq!(seen(&lab), [(Writes, a(), 0, 10), (Writes, a(), 100, 20), (Writes, a(), 200, 30)]);
    assert_eq!(Recording::open(&lab.records()).unwrap().processes(), 2);
}

fn keeps_errno() {
    let file = File::create(data().join("a")).unwrap();
    // SAFETY: the thread's own error number.
    unsafe { *__errno_location() = 77 };
    assert_eq!(file.write_at(&[1; 10], 0).unwrap(), 10);
    // SAFETY: as above.
    assert_eq!(unsafe { *__errno_location() }, 77);
    // It is open for writing alone.
    assert_eq!(file.read_at(&mut [0; 10], 0).unwrap_err().raw_os_error(), Some(9));
}

#[test]
fn error_numbers_are_kept_and_what_failed_is_not_recorded() {
    let lab = Lab::new("errno");
    assert!(lab.run("errno").status.success());
    assert_eq!(seen(&lab), [(Writes, "a".to_owned(), 0, 10)]);
}

fn overwrites_its_environment() {
    let path = data().join("a");
    for name in [c"NEPHOSCOPE_IO_RECORDS", c"NEPHOSCOPE_IO_DATA"] {
        // SAFETY: the program's own environment; nobody else looks at it.
        unsafe {
            let value = getenv(name.as_ptr());
            value.write_bytes(b'#', strlen(value));
        }
    }
    opened(path).write_all_at(&[1; 10], 0).unwrap();
}

#[test]
fn a_process_title_over_the_environment_changes_nothing() {
    let lab = Lab::new("title");
    assert!(lab.run("title").status.success());
    assert_eq!(seen(&lab), [(Writes, "a".to_owned(), 0, 10)]);
}

fn threads() {
    let file = opened(data().join("a"));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let file = &file;
            scope.spawn(move || {
                for at in 0..EACH {
                    assert_eq!(file.write_at(&[1], thread * EACH + at).unwrap(), 1);
                }
            });
        }
    });
}

#[test]
fn threads_lose_nothing_while_the_file_grows() {
    let lab = Lab::new("threads");
    assert!(lab.run("threads").status.success());
    let (records, _) = lab.found();
    assert!(records.is_sorted_by_key(|record| record.time_ns));
    let mut offsets: Vec<u64> = records.iter().map(|record| record.offset).collect();
    offsets.sort_unstable();
    assert!(offsets.into_iter().eq(0..THREADS * EACH));
}

fn is_killed() {
    many();
    // SAFETY: a signal to ourselves.
    unsafe { kill(std::process::id() as i32, 9) };
}

fn many() {
    let file = opened(data().join("a"));
    for at in 0..MANY {
        assert_eq!(file.write_at(&[1], at).unwrap(), 1);
    }
}

#[test]
fn a_killed_process_leaves_all_its_records() {
    let lab = Lab::new("killed");
    assert_eq!(lab.run("killed").status.signal(), Some(9));
    let recording = Recording::open(&lab.records()).unwrap();
    assert_eq!((recording.calls(), recording.lost(), recording.unfinished()), (MANY, 0, 0));
    assert_eq!(lab.found().0.len() as u64, MANY);
}

fn renames() {
    let file = opened(data().join("a"));
    file.write_all_at(b"1", 0).unwrap();
    std::fs::rename(data().join("a"), data().join("b")).unwrap();
    file.write_all_at(b"12", 0).unwrap();
}

#[test]
fn a_renamed_file_has_its_new_name() {
    let lab = Lab::new("renamed");
    assert!(lab.run("renamed").status.success());
    assert_eq!(seen(&lab), [(Writes, "a".to_owned(), 0, 1), (Writes, "b".to_owned(), 0, 2)]);
}

#[test]
fn a_folder_that_is_not_there_ends_the_recording_and_not_the_program() {
    let lab = Lab::new("nowhere");
    std::fs::remove_dir(lab.records()).unwrap();
    let output = lab.run("many");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("records no more of its I/O: error 2").count(), 1, "{said}");
}

/// Only root may mount the small file system that this takes.
#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let lab = Lab::new("full");
    let mut shell = lab.command("many", "/bin/sh");
    let script = r#"set -e
        mkdir small; LD_PRELOAD= mount -t tmpfs -o size=200k none small 2>/dev/null || exit 3
        NEPHOSCOPE_IO_RECORDS=$PWD/small "$0" --exact recorded --test-threads=1; LD_PRELOAD= cp small/* records/"#;
    shell.args(["-c", script]).arg(std::env::current_exe().unwrap()).current_dir(&lab.root);
    let mut apart = std::process::Command::new("unshare");
    apart.arg("--mount").arg(shell.get_program()).args(shell.get_args()).current_dir(&lab.root);
    apart.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(output) = apart.output() else { return };
    if output.status.code() == Some(3) || String::from_utf8_lossy(&output.stderr).contains("not permitted") {
        println!("nothing can be mounted here");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let recording = Recording::open(&lab.records()).unwrap();
    assert!(recording.calls() > 1000);
    assert_eq!(recording.calls() + recording.lost(), MANY);
    assert_eq!(recording.ended().iter().map(|(_, error)| *error).collect::<Vec<_>>(), [28]);
}
