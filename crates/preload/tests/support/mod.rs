//! Runs this test program once more, with the library before it, as somebody whose I/O is recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use nephoscope_storage::capture::{Paths, Record, Recording};

pub(crate) const PLAYED: &str = "PLAYED";
pub(crate) const DATA: &str = "NEPHOSCOPE_IO_DATA";
pub(crate) const RECORDS: &str = "NEPHOSCOPE_IO_RECORDS";

/// The library, made as `crates/bindings/build.rs` makes it.
fn library() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("preload-{}.so", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
        let mut compiler = Command::new("rustc");
        compiler.current_dir(env!("CARGO_MANIFEST_DIR"));
        compiler.args(["--edition=2024", "--crate-name=nephoscope_preload", "--crate-type=cdylib"]);
        compiler.args(["-Copt-level=3", "-Cpanic=abort"]).arg(source).arg("-o").arg(&made);
        assert!(compiler.status().unwrap().success());
        made
    })
}

/// A folder with the data and the records of one play.
pub(crate) struct Lab {
    pub(crate) root: PathBuf,
}

impl Lab {
    pub(crate) fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        for folder in ["data", "records"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        Self { root: root.canonicalize().unwrap() }
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    /// Runs the test `recorded` with a play.
    pub(crate) fn run(&self, play: &str) -> Output {
        self.command(play, &std::env::current_exe().unwrap().to_string_lossy()).output().unwrap()
    }

    /// A command whose program, or what that starts, is recorded while it runs a play.
    pub(crate) fn command(&self, play: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        if !program.ends_with("sh") {
            command.args(["--exact", "recorded", "--test-threads=1"]);
        }
        command.env("LD_PRELOAD", library()).env(PLAYED, play);
        command.env(DATA, self.root.join("data")).env(RECORDS, self.records());
        command
    }

    /// What has been recorded, in order, with paths.
    pub(crate) fn found(&self) -> (Vec<Record>, Paths) {
        let recording = Recording::open(&self.records()).unwrap();
        let mut records = recording.records(0, u64::MAX);
        let all = records.by_ref().map(Result::unwrap).collect();
        (all, records.into_paths())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
