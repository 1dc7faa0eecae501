"""PostgreSQL's SQL about the data of workloads."""

from nephoscope.dialects.base import Dialect, quoted
from nephoscope.dialects.shares import Share, in_path, in_search_path

_KINDS = """CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
    WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' ELSE 'table' END"""
_NAME = "pg_catalog.format('%I.%I', n.nspname, c.relname)"

# Limits of roles and databases are not those of superusers, to whom nothing is reserved either. What is reserved for
# roles since version 16 is in a setting that older servers do not have.
_ROOM = """WITH me AS (SELECT rolname, rolsuper, rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = session_user),
others AS (SELECT usename, datname FROM pg_catalog.pg_stat_activity
  WHERE datid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()),
kept AS (SELECT CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::int
  + CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = 'pg_use_reserved_connections'
      AND pg_catalog.pg_has_role(session_user, r.oid, 'USAGE')) THEN 0
    ELSE coalesce(current_setting('reserved_connections', true)::int, 0) END END AS places FROM me)
SELECT 'max_connections is ' || current_setting('max_connections')
    || CASE WHEN places > 0 THEN ', of which ' || places || ' are reserved' ELSE '' END,
  current_setting('max_connections')::int - places, (SELECT count(*) FROM others) FROM kept
UNION ALL SELECT pg_catalog.format('the role %I has a limit of %s connections', rolname, rolconnlimit), rolconnlimit,
  (SELECT count(*) FROM others WHERE usename = rolname) FROM me WHERE rolconnlimit >= 0 AND NOT rolsuper
UNION ALL SELECT pg_catalog.format('the database %I has a limit of %s connections', d.datname, datconnlimit),
  datconnlimit, (SELECT count(*) FROM others o WHERE o.datname = d.datname)
FROM pg_catalog.pg_database d, me WHERE d.datname = current_database() AND datconnlimit >= 0 AND NOT rolsuper"""

POSTGRES = Dialect(
    begin="BEGIN ISOLATION LEVEL REPEATABLE READ",
    lock="LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE",
    # information_schema hides what the role may not touch.
    relations=f"""SELECT {_KINDS}, c.oid, {_NAME}, c.relname,
  (SELECT coalesce(pg_catalog.json_agg(a.attname), '[]') FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname IN ({{names}}) AND n.nspname = ANY (pg_catalog.current_schemas(true))
ORDER BY pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)""",
    # From 16384 on an id is no part of the system. A sequence of a column goes with its table.
    objects=f"""SELECT {_KINDS}, c.oid, {_NAME}
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid >= 16384 AND c.relpersistence <> 't' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
  AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')))
UNION ALL SELECT 'function', oid, oid::pg_catalog.regprocedure::text FROM pg_catalog.pg_proc WHERE oid >= 16384
UNION ALL SELECT 'schema', oid, pg_catalog.quote_ident(nspname) FROM pg_catalog.pg_namespace WHERE oid >= 16384
UNION ALL SELECT 'type', oid, pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type
WHERE oid >= 16384 AND typtype IN ('d', 'e', 'r')""",
    label="SET application_name = {label}",
    # A role sees the names of others' sessions, too, if nothing else of them.
    labels="SELECT DISTINCT application_name FROM pg_catalog.pg_stat_activity"
    " WHERE application_name LIKE {prefix} || '%'",
    session="SELECT pg_catalog.pg_backend_pid()",
    room=_ROOM,
    isolation="SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}",
    # In E'' a backslash means the same whatever standard_conforming_strings says.
    literal=quoted("E'", {"'": "''", "\\": "\\\\"}),
    product="PostgreSQL",
    schemes=("postgresql", "postgres"),
    setting="SELECT current_setting({name}, true)",
    shares={
        "schema": Share(
            there="SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname IN ({names})",
            make="CREATE SCHEMA {name}",
            url=in_search_path,
        ),
        "database": Share(
            there="SELECT datname FROM pg_catalog.pg_database WHERE datname IN ({names})",
            make="CREATE DATABASE {name}",
            url=in_path("dbname"),
        ),
    },
)
