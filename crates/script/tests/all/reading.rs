//! A workload file that has no end is given up: by its time limit, whatever it catches, or by whoever waits.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Folder, HEAD, SQL};
use nephoscope_datagen::{LoadOptions, load};
use nephoscope_drivers::{Dialect, Settings, open};
use nephoscope_script::{Source, Workload};

const LIMIT: Duration = Duration::from_millis(300);

fn source(lua: &str) -> Source {
    let lua = format!("{HEAD}{lua}\nw:transaction(\"t\", function() end)");
    Folder::new(&lua, SQL).source(&[], 1.0, Dialect::NONE).unwrap().within(LIMIT)
}

fn refused(read: Result<Workload, impl ToString>) -> String {
    read.map(|_| ()).map_err(|error| error.to_string()).unwrap_err()
}

/// A pattern that matches in more ways than there is time for.
const BOMB: &str = "((\"a\"):rep(40)):find((\"a*\"):rep(30) .. \"b\")";

#[test]
fn a_loop_is_ended_whatever_it_catches() {
    for lua in [
        "local x = 0\nwhile true do\nx = x + 1\nend",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(error, \"again\") end",
        "pcall(pcall, function() while true do pcall(function() while true do end end) end end)",
        "while true do pcall(string.rep, \"x\", 1e9) end",
        "while true do pcall(string.rep, \"x\", 1e6) end",
        "while true do local ok = pcall(table.sort, { 2, 1 }, function() while true do pcall(error) end end) end",
        "local _ = (\"abc\"):gsub(\".\", function() while true do pcall(function() end) end end)",
        "w:table(\"u\", { rows = function() while true do pcall(function() end) end end, columns = {} })",
    ] {
        let error = refused(source(lua).workload());
        assert!(error.starts_with("workload.lua:"), "{lua}: {error}");
        assert!(
            error.ends_with("the file has run for 0.3 s without an end; is this a loop?"),
            "{lua}: {error}"
        );
    }
}

#[test]
fn a_function_of_the_library_that_does_not_return_is_left_behind() {
    for lua in [
        BOMB,
        "pcall(function() local _ = ((\"a\"):rep(40)):gsub((\"a-\"):rep(30) .. \"b\", \"\") end)",
        "xpcall(function() while true do end end, function() while true do end end)",
    ] {
        let begun = Instant::now();
        let error = refused(source(&format!("local _ = {lua}")).workload());
        assert_eq!(
            error,
            "workload.lua: the file has run for 0.3 s without an end, and is within a function of Lua's library, \
             or a handler of errors, that cannot be interrupted; is this a pattern that matches in too many ways?"
        );
        assert!(begun.elapsed() < Duration::from_secs(30), "{lua}");
    }
}

#[test]
fn whoever_waits_may_give_up() {
    for lua in ["while true do pcall(function() end) end".to_owned(), format!("local _ = {BOMB}")] {
        let (begun, mut asked) = (Instant::now(), 0);
        let patient = source(&lua).within(Duration::from_hours(1));
        let mut give_up = || {
            asked += 1;
            asked == 3
        };
        assert_eq!(refused(patient.workload_unless(&mut give_up)), "interrupted while the workload was read");
        assert!((Duration::from_millis(150)..Duration::from_secs(20)).contains(&begun.elapsed()), "{lua}");
    }
}

#[test]
fn a_column_that_has_no_end_ends_its_load() {
    let column =
        "derive(\"integer\", { \"u_id\" }, function(row) while true do pcall(function() end) end end)";
    let lua = format!(
        "w:table(\"u\", {{ rows = 3, columns = {{ {{ \"u_id\", serial() }}, {{ \"u_x\", {column} }} }} }})"
    );
    let workload = source(&lua).workload().unwrap();
    let driver = open("sim://?latency=constant(1ms)", &Settings::default()).unwrap();
    let options = LoadOptions { threads: 1, ..LoadOptions::default() };
    let error = load(&workload.dataset, &options, &|| driver.admin(), &mut |_| ()).unwrap_err();
    assert!(error.message().contains("the function of a column has run for 0.3 s without an end"), "{error}");
}

#[test]
fn only_regular_files_of_some_size_are_read() {
    let read =
        |folder: &Path| Source::read(folder, [].into(), 1.0, 7, Dialect::NONE).map(|_| ()).unwrap_err();
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("workload.lua")).unwrap();
    assert!(read(folder.path()).to_string().ends_with("workload.lua: it is no regular file"));
    let endless = tempfile::TempDir::new().unwrap();
    std::os::unix::fs::symlink("/dev/zero", endless.path().join("workload.lua")).unwrap();
    assert!(read(endless.path()).to_string().ends_with("workload.lua: it is no regular file"));
    let large = tempfile::TempDir::new().unwrap();
    let mut file = std::fs::File::create(large.path().join("workload.lua")).unwrap();
    file.write_all(&vec![b' '; (16 << 20) + 1]).unwrap();
    assert!(read(large.path()).to_string().ends_with("workload.lua: it is longer than 16 MiB"));
}
