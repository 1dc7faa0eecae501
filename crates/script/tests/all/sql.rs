//! SQL beside its use: statements and schema of the Lua file, by option, scale and dialect.

use crate::support::Folder;
use nephoscope_drivers::{Dialect, Statement, mysql, postgres};
use nephoscope_script::{OptionValue, Workload};

/// A workload of Lua alone: its tables, statements and schema depend on an option, the scale and the dialect.
const TABLES: &str = r#"local w = workload "tables"
local tables = w:option("tables", "integer", 1, "how many")
for number = 1, tables do
  local name = "t" .. number
  w:table(name, { rows = 10 * w.scale, columns = { { "id", serial() } } })
  w:schema("create", "CREATE TABLE " .. name .. " (id " .. (w.dialect == "mysql" and "int" or "bigint") .. "); -- " .. name)
  w:schema("drop", "DROP TABLE IF EXISTS " .. name .. ";")
  w:statement("find_" .. number, "SELECT id FROM " .. name .. " WHERE id = :id;\n")
end
w:statement("broken", "SELECT 1 WHERE 1 = 2")
w:invariant("broken", "holds")
w:transaction("find", { read_only = true }, function(tx, pick)
  tx:one("find_" .. tables, pick.t1() * w.scale)
end)
"#;

fn read(folder: &Folder, tables: f64, scale: f64, dialect: &'static Dialect) -> Workload {
    let options = [("tables", OptionValue::Number(tables))];
    folder.source(&options, scale, dialect).unwrap().workload().unwrap()
}

fn texts(statements: &[Statement]) -> Vec<(&str, String)> {
    statements.iter().map(|statement| (statement.name(), statement.text())).collect()
}

#[test]
fn tables_statements_and_schema_follow_options_scale_and_dialect() {
    let folder = Folder::of_lua(TABLES);
    let workload = read(&folder, 2.0, 3.0, postgres::DIALECT);
    assert_eq!(workload.tables.iter().map(|table| table.rows).collect::<Vec<_>>(), [30, 30]);
    let find = |name: &str| format!("SELECT id FROM {name} WHERE id = :id");
    assert_eq!(texts(&workload.statements), [("find_1", find("t1")), ("find_2", find("t2"))]);
    assert_eq!(workload.statements[0].params(), ["id"]);
    assert_eq!(texts(&workload.checks), [("broken", "SELECT 1 WHERE 1 = 2".to_owned())]);
    let create = "CREATE TABLE t1 (id bigint); -- t1\n;\nCREATE TABLE t2 (id bigint); -- t2";
    assert_eq!(workload.schema.create, create, "a comment does not hide the semicolon");
    assert_eq!(workload.schema.drop, "DROP TABLE IF EXISTS t1;\nDROP TABLE IF EXISTS t2");
    let workload = read(&folder, 1.0, 1.0, mysql::DIALECT);
    assert_eq!(workload.schema.create, "CREATE TABLE t1 (id int); -- t1");
}

#[test]
fn what_the_lua_file_declares_is_there_for_has_and_for_dialects_that_lack_it() {
    let lua = r#"local w = workload "probe"
        if not w:has("hint") then w:statement("hint", "SELECT 2") end
        assert(w:has("hint") and not w:has("none"))
        w:transaction("t", function(tx) tx:one("hint") end)"#;
    let folder = Folder::of_lua(lua).with("statements.mysql.sql", "-- name: hint\nSELECT 1");
    for (dialect, text) in [(mysql::DIALECT, "SELECT 1"), (postgres::DIALECT, "SELECT 2")] {
        let workload = folder.source(&[], 1.0, dialect).unwrap().workload().unwrap();
        assert_eq!(texts(&workload.statements), [("hint", text.to_owned())], "{}", dialect.name);
    }
}

#[test]
fn a_section_of_the_schema_is_in_the_file_or_in_lua() {
    let lua = r#"local w = workload "probe"
        w:schema("keys", "ANALYZE")
        w:schema("create", "CREATE TABLE u (a int)")
        w:transaction("t", function() end)"#;
    let said = |schema: &str| {
        let workload = Folder::of_lua(lua).with("schema.sql", schema).workload(&[]);
        workload.map(|workload| workload.schema.create)
    };
    assert_eq!(said("-- name: drop\nDROP TABLE u").unwrap(), "CREATE TABLE u (a int)");
    assert_eq!(
        said("-- name: create\nCREATE TABLE u (b int)").unwrap_err(),
        "workload.lua:3: the section create is in schema.sql as well; it may be there or here, not in both"
    );
}

#[test]
fn options_that_are_not_of_the_data_are_told_apart() {
    let lua = r#"local w = workload "probe"
        w:option("rows", "integer", 5, "how many")
        w:option("batch", "integer", 5, "at a time", { data = false })
        w:option("more", "integer", 5, nil, {})
        w:transaction("t", function() end)"#;
    let workload = Folder::of_lua(lua).workload(&[("batch", OptionValue::Number(7.0))]).unwrap();
    assert_eq!(workload.options.iter().map(|option| option.data).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(workload.options[1].value, OptionValue::Number(7.0));
}
