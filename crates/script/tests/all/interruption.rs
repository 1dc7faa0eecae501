//! A transaction without an end is ended from another thread, whatever it catches, and the session goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{HEAD, Loaded, Session};
use nephoscope_script::Watch;

const LIMIT: Duration = Duration::from_millis(1500);

/// Runs a transaction that another thread interrupts as often as it is found running; the outcome, and how often.
fn interrupted(
    loaded: &Loaded,
    session: &mut Session<'_>,
    transaction: &str,
) -> (Result<Vec<String>, String>, u32) {
    let (watch, over) = (loaded.vm.watch(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| interrupt_until(&watch, &over));
        let outcome = session.run(transaction);
        over.store(true, Ordering::Relaxed);
        (outcome, helper.join().unwrap())
    })
}

fn interrupt_until(watch: &Watch, over: &AtomicBool) -> u32 {
    let mut met = 0;
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        let Some(running) = watch.running() else { continue };
        met += u32::from(watch.interrupt(running.number, LIMIT) == Some(running));
    }
    met
}

/// The message of a transaction whose body has no end.
fn ended(functions: &str, body: &str) -> String {
    let lua = format!(
        "{HEAD}{functions}\nw:transaction(\"fine\", function(tx) for i = 1, 1000 do tx:queue(\"none\") end end)\n\
         w:transaction(\"t\", function(tx, pick)\n{body}\nend)"
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    assert_eq!(session.run("fine").unwrap().len(), 1000);
    let (outcome, met) = interrupted(&loaded, &mut session, "t");
    let message = outcome.unwrap_err();
    assert!(met > 0, "{body}");
    assert!(message.contains("has run for 1.5 s without an end; is this a loop?"), "{body}: {message}");
    // No hook is left behind, and neither is what the loop has held.
    assert_eq!(session.run("fine").unwrap().len(), 1000, "{body}");
    message
}

#[test]
fn a_loop_is_ended_with_its_function_and_line() {
    let message = ended("local function helper()\n  while true do end\nend", "helper()");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(
        lines,
        [
            "workload.lua:5: the transaction has run for 1.5 s without an end; is this a loop?",
            "  in workload.lua:5: in upvalue 'helper'",
            "  in workload.lua:9: in function <workload.lua:8>",
        ]
    );
}

#[test]
fn nothing_of_the_workloads_own_catches_it() {
    for body in [
        "while true do end",
        "for i = 1, math.huge do end",
        "while true do pcall(function() while true do end end) end",
        "pcall(function() while true do pcall(function() while true do end end) end end)",
        "while true do pcall(error, \"again\") end",
        "xpcall(function() while true do end end, function() while true do end end)",
        "while true do local s = (\"x\"):rep(100) .. 1 end",
        "local t = setmetatable({}, { __index = function() while true do end end }) return t.x",
        "local t = setmetatable({}, { __add = function(a, b) return pcall(function() while true do end end) end }) \
         while true do local _ = t + 1 end",
        "return pcall(pcall, function() while true do end end)",
    ] {
        ended("", body);
    }
}

#[test]
fn a_loop_below_a_function_of_the_library_is_ended() {
    for body in [
        "table.sort({ 2, 1, 3 }, function() while true do end end)",
        "pcall(table.sort, { 2, 1, 3 }, function() while true do end end) tx:exec(\"none\")",
        "while true do pcall(table.sort, { 2, 1 }, function() while true do pcall(function() end) end end) end",
        "(\"abc\"):gsub(\".\", function() while true do pcall(string.gsub, \"x\", \".\", function() end) end end)",
        "while true do pcall(tx.exec, tx, \"nothing\") end",
    ] {
        ended("", body);
    }
}

#[test]
fn an_error_whose_text_has_no_end_is_ended() {
    ended("", "error(setmetatable({}, { __tostring = function() while true do end end }))");
    ended("", "error(setmetatable({}, { __tostring = function() while true do pcall(error) end end }))");
}

#[test]
fn statements_without_an_end_are_ended() {
    ended("", "while true do tx:queue(\"none\") tx:queue(\"note\", 1) end");
}

#[test]
fn what_has_ended_meanwhile_is_left_alone() {
    let lua = format!(
        "{HEAD}w:transaction(\"t\", function(tx) local x = 0 for i = 1, 20000 do x = x + i end \
         tx:exec(\"note\", x) end)"
    );
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    let (watch, over) = (loaded.vm.watch(), AtomicBool::new(false));
    let met = std::thread::scope(|scope| {
        let helper = scope.spawn(|| {
            let mut met = 0;
            while !over.load(Ordering::Relaxed) {
                let Some(running) = watch.running() else { continue };
                // The transaction before the last: whoever is met by the signal is somebody else.
                met += u32::from(watch.interrupt(running.number - 1, LIMIT).is_some());
            }
            met
        });
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500) {
            assert_eq!(session.run("t").unwrap(), ["note(200010000)"]);
        }
        over.store(true, Ordering::Relaxed);
        helper.join().unwrap()
    });
    assert!(met > 0);
    // A state that is gone is not found, and does no harm.
    drop(session);
    drop(loaded);
    assert_eq!(watch.running(), None);
}

#[test]
fn a_transaction_that_is_met_and_ends_does_not_harm_the_next() {
    // Each is interrupted at once: some are met in their last instructions, and the hook finds the next.
    let lua =
        format!("{HEAD}w:transaction(\"t\", function(tx) tx:queue(\"none\") for i = 1, 300 do end end)");
    let loaded = Loaded::new(&lua).unwrap();
    let mut session = loaded.session(1, 1);
    let (watch, over) = (loaded.vm.watch(), AtomicBool::new(false));
    let (met, failed) = std::thread::scope(|scope| {
        let helper = scope.spawn(|| interrupt_until(&watch, &over));
        let begun = Instant::now();
        let mut failed = 0;
        while begun.elapsed() < Duration::from_millis(700) {
            failed += u32::from(session.run("t").is_err());
        }
        over.store(true, Ordering::Relaxed);
        (helper.join().unwrap(), failed)
    });
    assert!(failed <= met, "{failed} failed and {met} were interrupted");
    assert!(session.run("t").is_ok());
}
