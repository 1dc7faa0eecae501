"""What each dialect of SQL says in its own way about the data of workloads: catalogue, transactions, sessions.

Each database that stores data has an entry in ``DIALECTS``; all that follows from it is the same for every database.
"""

from collections.abc import Mapping

from nephoscope.dialects.base import Dialect, ImplicitCommit
from nephoscope.dialects.cassandra import CASSANDRA
from nephoscope.dialects.dynamodb import DYNAMODB
from nephoscope.dialects.hbase import HBASE
from nephoscope.dialects.keyed import Keyed
from nephoscope.dialects.mongodb import MONGODB
from nephoscope.dialects.mysql import MYSQL
from nephoscope.dialects.postgres import POSTGRES
from nephoscope.dialects.redis import REDIS
from nephoscope.dialects.s3 import S3
from nephoscope.dialects.simpledb import SIMPLEDB
from nephoscope.dialects.sqlite import SQLITE
from nephoscope.errors import InputError

__all__ = [
    "ANY_URL",
    "DIALECTS",
    "KEYED",
    "Dialect",
    "ImplicitCommit",
    "Keyed",
    "dialect_of",
    "url_without_database",
]

DIALECTS: Mapping[str, Dialect] = {"postgres": POSTGRES, "mysql": MYSQL, "sqlite": SQLITE}
"""By the name that the engine gives a dialect; ``none`` is that of drivers behind which there is no database."""

KEYED: Mapping[str, Keyed] = {
    "redis": REDIS,
    "cassandra": CASSANDRA,
    "dynamodb": DYNAMODB,
    "s3": S3,
    "simpledb": SIMPLEDB,
    "hbase": HBASE,
    "mongodb": MONGODB,
}
"""The same of systems without SQL."""

ANY_URL = "postgresql://reader@localhost/none"
"""A URL that names no endpoint: for whoever asks for a dialect alone, and is told of no other."""


def url_without_database(dialect: str) -> str:
    """Give a URL whose driver takes the statements of a dialect and answers without a database.

    Raises ``InputError``.
    """
    if dialect not in DIALECTS:
        raise InputError(f"there is no dialect {dialect!r}; dialects are {', '.join(DIALECTS)}")
    return f"noop://?dialect={dialect}"


def dialect_of(url: str) -> Dialect | None:
    """Tell the dialect of the server behind a URL; None where its settings cannot be asked for."""
    scheme = url.partition("://")[0]
    return next((dialect for dialect in DIALECTS.values() if scheme in dialect.schemes), None)
