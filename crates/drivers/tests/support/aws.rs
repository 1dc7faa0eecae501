//! Systems behind HTTP for the time of a test: `DynamoDB` Local, moto, and `HBase`, each on a free port of 127.0.0.1.

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

    /// `HBase` with its gateway, which may not be ready yet. It takes its time, and so is tested on demand: where its
    /// jars are.
    pub(crate) fn hbase() -> Option<Self> {
        let (java, jars) = (Path::new("/usr/bin/java"), root().join(".jars/hbase"));
        if !java.exists() || !jars.exists() {
            eprintln!(
                "skipped: there is no folder .jars/hbase, which `make .jars/hbase` fetches, or no Java"
            );
            return None;
        }
        let (folder, port) = (Folder::new(), free_port());
        folder.hand_over();
        let (own, source) = (folder.path(""), root().join("tests/tools/HBaseOnLoopback.java"));
        let words = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "--add-opens", "java.base/java.lang=ALL-UNNAMED"];
        let path = format!("{}/*:{}", jars.display(), own.display());
        let rest = ["-cp".to_owned(), path, source.display().to_string(), port.to_string()];
        let own = own.display().to_string();
        let words = words.map(str::to_owned).into_iter().chain(rest).chain([own]);
        Some(Self { _running: Running::start(&folder, "TERM", java, words), _folder: folder, port })
    }

    /// moto, which may not be ready yet. A test that needs it says so, and passes, where it is not.
    pub(crate) fn moto() -> Option<Self> {
        let python = root().join(".venv-moto/bin/python");
        if !python.exists() {
            eprintln!("skipped: moto is not installed: `make .venv-moto/built` installs it");
            return None;
        }
        let (folder, port) = (Folder::new(), free_port());
        let (server, port_of) = (root().join("tests/tools/moto_with_simpledb.py"), port.to_string());
        let words = [&*server.to_string_lossy(), "-H", "127.0.0.1", "-p", &port_of];
        // Its interpreter may be under the home of whoever runs the tests.
        let running = Running::start_as_self(&folder, "TERM", &python, words);
        Some(Self { _running: running, _folder: folder, port })
    }
}
