//! Scripts of sysbench, as their sessions run them.

use std::collections::BTreeMap;

use crate::support::{Folder, Loaded, Session};
use nephoscope_drivers::Dialect;
use nephoscope_script::{OptionValue, Vm};

const DECLARED: &str = "local w = workload 'probe'\nw:sysbench 'probe'";

fn loaded(script: &str, options: &[(&str, OptionValue)]) -> Result<Loaded, String> {
    let folder = Folder::of_lua(DECLARED)
        .with("probe.lua", script)
        .with("part.lua", "required = (required or 0) + 1\nreturn { value = 7 }");
    let source = folder.source(options, 1.0, Dialect::NONE)?;
    let text = |error: nephoscope_script::ScriptError| error.to_string();
    let keys = source.workload().map_err(text)?.key_spaces(&BTreeMap::new());
    let (vm, workload) = Vm::new(&source, &keys, false).map_err(text)?;
    vm.set_sessions(4);
    Ok(Loaded { vm, workload, keys })
}

/// What a session calls until it has run so many events.
fn calls(session: &mut Session<'_>, events: u32) -> Result<Vec<String>, String> {
    let mut calls = Vec::new();
    if session.script.is_to_set_up() {
        let step = session.script.set_up();
        calls.extend(session.finish(step)?);
    }
    for _ in 0..events {
        calls.extend(session.run("event")?);
    }
    Ok(calls)
}

fn end(session: &mut Session<'_>) -> Vec<String> {
    let step = session.script.wind_up();
    session.finish(step).unwrap()
}

/// What a first session calls for one event.
fn run(script: &str) -> Result<Vec<String>, String> {
    let loaded = loaded(script, &[])?;
    calls(&mut loaded.session(1, 1), 1)
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

#[test]
fn prepared_statements_have_their_parameters_and_transactions_their_borders() {
    let called = run(r#"
        function event()
          local con = sysbench.sql.driver():connect()
          local one = con:prepare("SELECT '?' -- why?\n, c FROM t WHERE id = ? AND c <> ?")
          local id, c = one:bind_create(sysbench.sql.type.INT), one:bind_create(sysbench.sql.type.CHAR, 3)
          one:bind_param(id, c)
          con:query("begin")
          id:set(-7.9) c:set("abcde")
          one:execute()
          id:set(nil)
          one:execute()
          con:query("COMMIT;")
        end"#);
    let sql = "SELECT '?' -- why?\n, c FROM t WHERE id = :p1 AND c <> :p2";
    let rows = |values: &str| format!("{sql}({values}) rows");
    assert_eq!(
        called.unwrap(),
        ["begin", &rows("-7, 'abc'"), &rows("null, 'abc'"), "commit"].map(str::to_owned)
    );
}

#[test]
fn results_are_lists_of_texts() {
    let called = run(r#"
        function event()
          local con = sysbench.sql.driver():connect()
          local rs = con:query("SELECT 1")
          local last
          for row = 1, rs.nrows do last = rs:fetch_row() end
          con:query(("SELECT %d, %d, %s, %s"):format(rs.nrows, rs.nfields, tostring(rs:fetch_row()), type(last[1])))
          con:query("SELECT " .. tostring(#{ con:query_row("SELECT 2") } > 0))
        end"#);
    let called = called.unwrap();
    assert!(called[1].starts_with("SELECT 2, ") && called[1].contains(", nil, string() rows"), "{called:?}");
    assert_eq!(called.last().unwrap(), "SELECT true() rows");
}

#[test]
fn each_session_has_global_variables_of_its_own() {
    let loaded = loaded(
        r#"
        local part = require("part")
        require("part")
        count = 0
        function thread_init(id) con = sysbench.sql.driver():connect() start = id * 100 end
        function event(id)
          count = count + 1
          con:query(("SELECT %d, %d, %d, %d, %d"):format(start, count, id, sysbench.opt.threads, part.value + required))
        end"#,
        &[],
    )
    .unwrap();
    let (mut one, mut two) = (loaded.session(1, 1), loaded.session(1, 3));
    assert_eq!(calls(&mut one, 2).unwrap(), ["SELECT 0, 1, 0, 4, 8() rows", "SELECT 0, 2, 0, 4, 8() rows"]);
    assert_eq!(calls(&mut two, 1).unwrap(), ["SELECT 200, 1, 2, 4, 8() rows"]);
    assert_eq!(calls(&mut one, 1).unwrap(), ["SELECT 0, 3, 0, 4, 8() rows"]);
}

#[test]
fn bulk_inserts_are_sent_together_and_the_rest_at_the_end() {
    let loaded = loaded(
        r#"
        function thread_init()
          con = sysbench.sql.driver():connect()
          con:bulk_insert_init("INSERT INTO t VALUES")
        end
        function event() con:bulk_insert_next("(1)") end
        function thread_done() con:bulk_insert_done() end"#,
        &[],
    )
    .unwrap();
    let mut session = loaded.session(1, 1);
    assert_eq!(calls(&mut session, 3).unwrap(), Vec::<String>::new(), "an event need not ask for anything");
    assert_eq!(end(&mut session), ["INSERT INTO t VALUES (1),(1),(1)() rows"]);
}

#[test]
fn options_have_the_type_of_their_default() {
    let script = r#"
        sysbench.cmdline.options = {
          ["table-size"] = { "rows", 100 }, engine = { "engine", "innodb" }, skip = { "skip", false }, name = { "name" },
          list = { "list", { "a", "b" } },
        }
        assert(sysbench.opt == nil, "options are known once the script has run")
        function event()
          local opt = sysbench.opt
          sysbench.sql.driver():connect():query(("SELECT %d, '%s', %s, '%s', '%s'"):format(
            opt.table_size + 1, opt.engine, tostring(opt.skip), opt.name, table.concat(opt.list, "|")))
        end"#;
    assert_eq!(run(script).unwrap(), ["SELECT 101, 'innodb', false, '', 'a|b'() rows"]);
    let given = [
        ("table_size", text("5")),
        ("engine", OptionValue::Number(7.0)),
        ("skip", text("on")),
        ("list", text("c")),
    ];
    let loaded = loaded(script, &given).unwrap();
    assert_eq!(calls(&mut loaded.session(1, 1), 1).unwrap(), ["SELECT 6, '7', true, '', 'c'() rows"]);
    for (option, value, message) in [
        ("tabels", "4", "has no option \"tabels\"; they are"),
        ("table_size", "many", "option table_size: the study says \"many\"; allowed is a number"),
        ("skip", "perhaps", "option skip: the study says \"perhaps\"; allowed is true or false"),
        ("rand_type", "normal", "rand_type is \"normal\"; laws are special, uniform"),
        ("rand_pareto_h", "2", "rand_pareto_h is 2; it must be from"),
        ("command", "warm", "probe.lua has no command warm; it has run"),
    ] {
        let error = refused(script, &[(option, text(value))]);
        assert!(error.contains(message), "{option}: {error}");
    }
}

fn refused(script: &str, options: &[(&str, OptionValue)]) -> String {
    loaded(script, options).err().unwrap()
}

#[test]
fn the_functions_that_draw_keep_their_bounds() {
    let called = run(r#"
        function event()
          local rand = sysbench.rand
          local seen = {}
          for _ = 1, 1000 do
            for _, law in ipairs { "default", "uniform", "gaussian", "special", "pareto", "zipfian" } do
              local value = rand[law](3, 9)
              assert(value >= 3 and value <= 9 and value % 1 == 0, law)
            end
            local unique = rand.unique()
            assert(not seen[unique] and unique >= 0 and unique < 2 ^ 32)
            seen[unique] = true
            assert(sb_rand(1, 2) <= 2 and rand.uniform_double() < 1 and rand.uniform_uint64() >= 0)
          end
          assert(rand.string('##-@@'):match('^%d%d%-%l%l$'))
          assert(os.time() > 1e9)
          sysbench.sql.driver():connect():query("SELECT 1")
        end"#);
    assert_eq!(called.unwrap(), ["SELECT 1() rows"]);
}

#[test]
fn the_older_functions_are_there() {
    let called = run(r#"
        function thread_init() db_connect() end
        function event()
          db_query("SELECT 1")
          local values = { 1 }
          local statement = db_prepare("SELECT ?")
          db_bind_param(statement, values)
          values[1] = 5
          db_store_results(db_execute(statement))
          db_bulk_insert_init("INSERT INTO t VALUES")
          db_bulk_insert_next("(1)")
          db_bulk_insert_done()
        end"#);
    assert_eq!(called.unwrap(), ["SELECT 1() rows", "SELECT :p1(5) rows", "INSERT INTO t VALUES (1)() rows"]);
}

#[test]
fn a_mistake_is_told_with_the_scripts_line() {
    let event = "function event() end\n";
    for (script, message) in [
        ("function event()\n  nothing()\nend", "probe.lua:2: attempt to call global 'nothing' (a nil value)"),
        (
            "function event()\n  sysbench.rand.uniform(1)\nend",
            "probe.lua:2: the greatest number must be a number",
        ),
        ("function event()\n  error('no table')\nend", "probe.lua:2: no table"),
        (
            "function thread_init()\n  local a = nil + 1\nend\nfunction event() end",
            "probe.lua:2: attempt to perform",
        ),
        (
            "function event()\n  local con = sysbench.sql.driver():connect()\n  con:prepare('SELECT ?'):bind_param()\nend",
            "probe.lua:3: bind_param: the statement has 1 parameters; 0 are given",
        ),
        (
            "function event()\n  sysbench.sql.driver():connect():prepare('SELECT ?'):execute()\nend",
            "probe.lua:2: the statement's parameters are not bound",
        ),
        ("function event()\n  os.execute('true')\nend", "probe.lua:2: attempt to call field 'execute'"),
        ("function event( end", "probe.lua:1: <name> or '...' expected"),
        ("local a = 1", "probe.lua has no function event"),
        (
            &format!("{event}function thread_run() end"),
            "probe.lua: thread_run of a script's own is not called",
        ),
        (
            &format!("{event}require('nowhere')"),
            "probe.lua:2: require \"nowhere\": nowhere.lua: No such file",
        ),
        (&format!("{event}require('../part')"), "named without .lua"),
        (
            &format!("{event}function sysbench.hooks.sql_error_ignorable() end"),
            "probe.lua:2: sysbench.hooks.sql_error_ignorable is not called here",
        ),
    ] {
        let error = run(script).unwrap_err();
        assert!(error.contains(message), "{script}: {error}");
    }
}

#[test]
fn commands_are_parts_of_a_load() {
    let script = r#"
        sysbench.cmdline.options = { tables = { "tables", 3 } }
        sysbench.cmdline.commands = { fill = { function()
          local con = sysbench.sql.driver():connect()
          for at = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
            con:query("CREATE TABLE t" .. at)
          end
        end, sysbench.cmdline.PARALLEL_COMMAND } }
        function cleanup() sysbench.sql.driver():connect():query("DROP TABLE t1") end
        function event() end"#;
    let loaded = loaded(script, &[("command", text("fill")), ("threads", OptionValue::Number(2.0))]).unwrap();
    assert_eq!(loaded.workload.load_parts, Some(2));
    let made = [1, 2].map(|part| {
        let mut session = loaded.session(1, part.into());
        let step = session.script.begin_part(part, 2);
        session.finish(step).unwrap()
    });
    assert_eq!(made[0], ["CREATE TABLE t1() rows", "CREATE TABLE t3() rows"]);
    assert_eq!(made[1], ["CREATE TABLE t2() rows"]);
    let loaded = self::loaded(script, &[("command", text("cleanup")), ("threads", OptionValue::Number(2.0))]);
    assert_eq!(loaded.unwrap().workload.load_parts, Some(1));
}
