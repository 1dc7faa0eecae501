"""The SQL of MySQL, MariaDB and what speaks their protocol, about the data of workloads.

A database is what PostgreSQL calls a schema; statements look for tables in that of the URL alone. The catalogue has no
id of a table that survives replication, so a table's comment tells it from another that takes its name.
"""

from nephoscope.dialects.base import Dialect, ImplicitCommit
from nephoscope.dialects.shares import Share, in_path

_QUOTED = "concat('`', replace({name}, '`', '``'), '`')"
_KIND = "CASE table_type WHEN 'BASE TABLE' THEN 'table' WHEN 'SYSTEM VERSIONED' THEN 'table' ELSE lower(table_type) END"
_ID = """concat(t.table_name, ' ', CASE t.table_type WHEN 'VIEW' THEN coalesce((SELECT md5(v.view_definition)
    FROM information_schema.views AS v WHERE v.table_schema = t.table_schema AND v.table_name = t.table_name), '')
  ELSE t.table_comment END)"""
_TABLES = "FROM information_schema.tables AS t WHERE t.table_schema = database()"
_NAME = _QUOTED.format(name="t.table_name")

# MySQL has them in another schema than MariaDB; each reads the comment that is meant for it.
_SCHEMA = "/*M! information_schema. *//*!80000 performance_schema. */"
# TiDB's default of both limits is 0: none.
_ROOM = f"""SELECT concat('max_connections is ', @@max_connections), @@max_connections,
  CAST((SELECT variable_value FROM {_SCHEMA}global_status
    WHERE upper(variable_name) = 'THREADS_CONNECTED') AS unsigned) - 1
  FROM dual WHERE @@max_connections > 0
UNION ALL SELECT concat('max_user_connections is ', @@max_user_connections), @@max_user_connections,
  (SELECT count(*) - 1 FROM information_schema.processlist
   WHERE user = substring_index(session_user(), '@', 1)) FROM dual WHERE @@max_user_connections > 0"""


def _by_bytes(text: str) -> str:
    """Write a text by its bytes: what a backslash means depends on the server's settings."""
    return f"_utf8mb4 x'{text.encode().hex()}'"


MYSQL = Dialect(
    begin="START TRANSACTION WITH CONSISTENT SNAPSHOT",
    lock="SELECT workload FROM {table} FOR UPDATE",
    relations=f"""SELECT {_KIND}, {_ID}, {_NAME}, t.table_name,
  (SELECT json_arrayagg(c.column_name) FROM information_schema.columns AS c
   WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name)
{_TABLES} AND t.table_name IN ({{names}})""",
    objects=f"""SELECT {_KIND}, {_ID}, {_NAME} {_TABLES}
UNION ALL SELECT lower(routine_type), concat(routine_name, ' ', coalesce(md5(routine_definition), '')),
  {_QUOTED.format(name="routine_name")} FROM information_schema.routines WHERE routine_schema = database()
UNION ALL SELECT 'event', concat(event_name, ' ', coalesce(md5(event_definition), '')),
  {_QUOTED.format(name="event_name")} FROM information_schema.events WHERE event_schema = database()""",
    # A lock by name lives as long as its session, and everybody may ask who holds it.
    label="SELECT get_lock({label}, 0)",
    labels="SELECT label FROM ({known}) AS known WHERE is_used_lock(label) IS NOT NULL",
    session="SELECT connection_id()",
    room=_ROOM,
    isolation="SET SESSION TRANSACTION ISOLATION LEVEL {level}",
    literal=_by_bytes,
    product="MySQL",
    schemes=("mysql", "mariadb"),
    setting=f"SELECT variable_value FROM {_SCHEMA}global_variables WHERE lower(variable_name) = lower({{name}})",
    shares={
        "database": Share(
            there="SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ({names})",
            make="CREATE DATABASE {name}",
            url=in_path("database"),
        )
    },
    text="mediumtext",
    implicit=ImplicitCommit(
        take="SELECT get_lock(concat('nephoscope ', md5(coalesce(database(), ''))), {seconds})",
        give="SELECT release_lock(concat('nephoscope ', md5(coalesce(database(), ''))))",
        mark="ALTER TABLE {name} COMMENT = '{mark}'",
        drop="SET foreign_key_checks = 0; DROP {kind} {name}; SET foreign_key_checks = DEFAULT",
    ),
)
