//! Servers' processes for the time of a test.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::{Folder, Identity, run};

/// The user that servers run as where the tests run as root, which `PostgreSQL` refuses.
const USER: &str = "nobody";

/// Stops a server when the standard input ends, and removes its folder: also when the tests are killed, or
/// end while a server that all of them share still runs. A line of input says that the server was told to stop, and
/// is to be started again.
const STOP_AT_END_OF_INPUT: &str = r#"
"$@" & server=$!
while read _; do wait $server; "$@" & server=$!; done
kill -$NEPHOSCOPE_SIGNAL $server; wait $server; rm -rf "$NEPHOSCOPE_FOLDER""#;

impl Folder {
    /// Copies a certificate, its key and the file of an authority into the folder, by these names.
    pub(crate) fn take(&self, (identity, authority): (&Identity, &Path), names: [&str; 3]) {
        for (from, name) in [&*identity.certificate, &identity.key, authority].into_iter().zip(names) {
            fs::copy(from, self.path(name)).unwrap();
        }
    }

    /// Gives the folder and what it holds to the user that servers run as.
    pub(crate) fn hand_over(&self) {
        if is_root() {
            run(Command::new("chown").arg("-R").arg(USER).arg(self.path("")));
        }
    }
}

/// A server's process. It is stopped, and its folder removed, when it is dropped or the tests end.
pub(crate) struct Running {
    process: Child,
    input: Option<ChildStdin>,
}

impl Running {
    /// Starts a program in its folder; the folder's file `log` has what it writes. It ends by this signal.
    pub(crate) fn start(
        folder: &Folder,
        signal: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        Self::by(as_user(Path::new("sh")), folder, signal, program, arguments)
    }

    /// The same as the user of the tests: for a program that another one cannot reach.
    pub(crate) fn start_as_self(
        folder: &Folder,
        signal: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        Self::by(Command::new("sh"), folder, signal, program, arguments)
    }

    fn by(
        mut shell: Command,
        folder: &Folder,
        signal: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let log = fs::File::create(folder.path("log")).unwrap();
        let mut process = shell
            .env("NEPHOSCOPE_FOLDER", folder.path(""))
            .env("NEPHOSCOPE_SIGNAL", signal)
            .args(["-c", STOP_AT_END_OF_INPUT, "sh"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        Self { process, input }
    }

    /// Starts the program again, which was told to stop.
    pub(crate) fn again(&self) {
        self.input.as_ref().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

/// A command of the user that servers run as, in a folder that it may enter.
pub(crate) fn as_user(program: &Path) -> Command {
    let mut command = Command::new(if is_root() { Path::new("runuser") } else { program });
    if is_root() {
        command.args(["-u", USER, "--"]).arg(program);
    }
    command.current_dir("/");
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
