//! Services of AWS for the time of a test: `DynamoDB` Local, and moto's S3, each on a free port of 127.0.0.1.

use std::path::{Path, PathBuf};

use super::Folder;
use super::running::{Running, free_port};

/// A running server. It is stopped when it is dropped or the tests end.
pub(crate) struct Server {
    _running: Running,
    _folder: Folder,
    pub(crate) port: u16,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Server {
    /// `DynamoDB` Local, in memory, which may not be ready yet. A test that needs it says so, and passes, where Java or
    /// its jars are not.
    pub(crate) fn dynamodb() -> Option<Self> {
        let (java, jars) = (Path::new("/usr/bin/java"), root().join(".jars/dynamodb"));
        if !java.exists() || !jars.exists() {
            eprintln!(
                "skipped: there is no Java in /usr/bin, or no folder .jars/dynamodb, which `make` fetches"
            );
            return None;
        }
        let (folder, port) = (Folder::new(), free_port());
        folder.hand_over();
        let (jars, source) = (jars.join("*"), root().join("tests/tools/DynamoDbOnLoopback.java"));
        let words = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp"].map(str::to_owned);
        let rest = [jars.display().to_string(), source.display().to_string(), port.to_string()];
        let running = Running::start(&folder, "TERM", java, words.into_iter().chain(rest));
        Some(Self { _running: running, _folder: folder, port })
    }

    /// moto, which may not be ready yet. A test that needs it says so, and passes, where it is not.
    pub(crate) fn moto() -> Option<Self> {
        let python = root().join(".venv-moto/bin/python");
        if !python.exists() {
            eprintln!("skipped: moto is not installed: `make .venv-moto/built` installs it");
            return None;
        }
        let (folder, port) = (Folder::new(), free_port());
        let words = ["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()];
        // Its interpreter may be under the home of whoever runs the tests.
        let running = Running::start_as_self(&folder, "TERM", &python, words);
        Some(Self { _running: running, _folder: folder, port })
    }
}
