"""SQLite's SQL about the data of workloads. It has no server: no session sees another, and nothing limits them."""

from nephoscope.dialects.base import Dialect, quoted

# A place in the catalogue may be taken again: what was made there tells it from what comes after it.
_ID = "rowid || ' ' || coalesce(sql, '')"
_OBJECTS = "FROM sqlite_schema AS s WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
_NAME = """'"' || replace(name, '"', '""') || '"'"""

SQLITE = Dialect(
    begin="BEGIN IMMEDIATE",
    # The transaction has taken the file's only lock for writing.
    lock="SELECT 0",
    relations=f"""SELECT type, {_ID}, {_NAME}, name,
  (SELECT json_group_array(c.name) FROM pragma_table_info(s.name) AS c)
{_OBJECTS} AND type IN ('table', 'view') AND name IN ({{names}})""",
    objects=f"SELECT type, {_ID}, {_NAME} {_OBJECTS} AND type IN ('table', 'view', 'trigger')",
    label="SELECT {label}",
    labels="SELECT NULL WHERE {prefix} IS NULL",
    session="SELECT 0",
    room=None,
    isolation=None,
    literal=quoted("'", {"'": "''"}),
    product="SQLite",
    file_url="sqlite://{path}?synchronous=off",
)
