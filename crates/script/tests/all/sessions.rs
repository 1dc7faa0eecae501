//! What a session keeps for itself, and transactions that have nothing to do.

use std::collections::BTreeMap;

use crate::support::{self, HEAD, Loaded, Session};
use nephoscope_script::Step;

/// A workload whose sessions run a function of their own, with a transaction that notes what it returned.
fn loaded(body: &str) -> Loaded {
    Loaded::new(&format!(
        "{HEAD}w:session(function(tx, pick)\n{body}\nend)
         w:transaction('note', function(tx, pick, mine)
           tx:exec('note', type(mine) == 'table' and mine.home or mine)
         end)
         w:transaction('count', function(tx, pick, mine)
           mine.home = mine.home + 1
           tx:exec('note', mine.home)
         end)"
    ))
    .unwrap()
}

fn set_up(session: &mut Session<'_>) -> Result<Vec<String>, String> {
    assert!(session.script.is_to_set_up());
    let step = session.script.set_up();
    session.finish(step)
}

#[test]
fn what_the_sessions_own_function_returns_is_given_to_each_transaction() {
    for (body, noted) in [
        ("return 7", "7"),
        ("return 'a', 'b'", "'a'"),
        ("", "null"),
        ("return nil, 1", "null"),
        ("return { home = tx.session }", "12"),
        ("return tx.sessions", "40"),
    ] {
        let loaded = loaded(body);
        loaded.vm.set_sessions(40);
        let mut session = loaded.session(1, 12);
        assert!(set_up(&mut session).unwrap().is_empty(), "{body}");
        assert!(!session.script.is_to_set_up());
        for _ in 0..2 {
            assert_eq!(session.run("note").unwrap(), [format!("note({noted})")], "{body}");
        }
        // A coroutine that is made anew knows it, too.
        session.script.begin(0);
        session.script.abandon();
        assert_eq!(session.run("note").unwrap(), [format!("note({noted})")], "{body}");
    }
}

#[test]
fn it_may_ask_the_database_and_ends_as_a_transaction_does() {
    let loaded = loaded(
        "tx:begin()
         local row = tx:one('pair', 1, pick.item())
         tx:commit()
         return row.int",
    );
    let mut session = loaded.session(1, 1);
    let first = set_up(&mut session).unwrap();
    assert_eq!([first[0].as_str(), first[2].as_str()], ["begin", "commit"]);
    assert_eq!(session.run("note").unwrap(), ["note(42)"]);
    // Begun again, it draws the same.
    let mut other = loaded.session(1, 1);
    let step = other.script.set_up();
    assert!(matches!(step, Step::Call { .. }));
    other.script.abandon();
    assert_eq!(set_up(&mut other).unwrap(), first);
}

#[test]
fn each_session_keeps_its_own() {
    let loaded = loaded("return { home = 100 * tx.session }");
    let mut sessions = [loaded.session(1, 1), loaded.session(1, 2)];
    for session in &mut sessions {
        set_up(session).unwrap();
    }
    let counted: Vec<i64> = (0..4).map(|turn| sessions[turn % 2].noted("count")).collect();
    assert_eq!(counted, [101, 201, 102, 202]);
    assert!(
        !Loaded::new(&format!("{HEAD}w:transaction('t', function() end)"))
            .unwrap()
            .session(1, 1)
            .script
            .is_to_set_up()
    );
}

#[test]
fn what_stands_before_the_commit_runs_again_on_a_retry() {
    let loaded = Loaded::new(&format!(
        "{HEAD}w:session(function() return {{ before = 0, behind = 0 }} end)
         w:transaction('t', function(tx, pick, mine)
           tx:begin()
           mine.before = mine.before + 1
           tx:exec('pair', mine.before, mine.behind)
           tx:commit()
           mine.behind = mine.behind + 1
         end)"
    ))
    .unwrap();
    let mut session = loaded.session(1, 1);
    set_up(&mut session).unwrap();
    // The statement of the first attempt fails.
    let step = session.script.begin(0);
    assert!(matches!(step, Step::Call { .. }));
    let step = session.script.resume(nephoscope_drivers::Reply::default());
    assert!(matches!(step, Step::Call { .. }));
    session.script.abandon();
    let step = session.script.retry(0);
    assert_eq!(session.finish(step).unwrap()[1], "pair(2, 0)");
    assert_eq!(session.run("t").unwrap()[1], "pair(3, 1)");
}

#[test]
fn a_transaction_without_anything_to_do_says_so() {
    let loaded = Loaded::new(&format!(
        "{HEAD}w:transaction('t', function(tx, pick)
           tx:tally('skipped', 1)
           if pick.chance(0.5) then return tx:skip() end
           tx:exec('none')
         end)"
    ))
    .unwrap();
    let mut session = loaded.session(1, 1);
    let runs: Vec<_> = (0..200).map(|_| session.run("t").unwrap().remove(0)).collect();
    let skipped = runs.iter().filter(|run| *run == "skipped").count();
    assert!((60..140).contains(&skipped), "{skipped}");
    assert!(runs.iter().all(|run| run == "skipped" || run == "none()"));
}

#[test]
fn a_session_that_is_given_up_after_a_skip_can_go_on() {
    let loaded = Loaded::new(&format!(
        "{HEAD}w:transaction('t', function(tx, pick)
           if tx.session == 1 then tx:skip() error('behind it') end
           tx:exec('note', tx.session)
         end)"
    ))
    .unwrap();
    let error = loaded.session(1, 1).run("t").unwrap_err();
    assert!(error.contains("behind it"), "{error}");
    assert_eq!(loaded.session(1, 2).run("t").unwrap(), ["note(2)"]);
}

#[test]
fn skipping_is_for_transactions() {
    let loaded = loaded("tx:skip()");
    let error = set_up(&mut loaded.session(1, 1)).unwrap_err();
    assert!(error.contains("tx:skip() is for transactions"), "{error}");
}

#[test]
fn an_extended_workload_gives_its_function_or_is_given_another() {
    let shelf = tempfile::TempDir::new().unwrap();
    let write = |folder: &str, lua: &str| {
        let folder = shelf.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("workload.lua"), lua).unwrap();
    };
    let transaction = "w:statement('note', 'SELECT :value')
        w:transaction('t', function(tx, pick, mine) tx:exec('note', mine) end)";
    write("base", &format!("local w = workload 'base'\nw:session(function() return 1 end)\n{transaction}"));
    for (name, more, noted) in [("same", "", 1), ("other", "w:session(function() return 2 end)", 2)] {
        write(name, &format!("local w = workload '{name}'\nw:extends 'base'\n{more}"));
        let folder = shelf.path().join(name);
        let none = nephoscope_drivers::Dialect::NONE;
        let source = nephoscope_script::Source::read(&folder, BTreeMap::new(), 1.0, 1, none).unwrap();
        let (vm, _) = nephoscope_script::Vm::new(&source, &[], false).unwrap();
        let mut script = vm.script(1, 1).unwrap();
        assert!(matches!(script.set_up(), Step::Done { .. }));
        assert!(matches!(script.begin(0), Step::Call { .. }));
        assert_eq!(script.params().iter().map(support::text).collect::<Vec<_>>(), [noted.to_string()]);
    }
}
