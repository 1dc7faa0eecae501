"""Every built-in workload and dialect: how small a workload is tested, and what a dialect cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nephoscope.study.packaged import packaged_workloads

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKLOADS = packaged_workloads()
PRODUCTS = {"postgres": "PostgreSQL", "mysql": "MariaDB", "sqlite": "SQLite"}
"""By dialect, the product that the test runs."""

KEYED = {
    "redis": "Redis",
    "cassandra": "Cassandra",
    "dynamodb": "DynamoDB",
    "s3": "S3",
    "simpledb": "SimpleDB",
    "hbase": "HBase",
    "mongodb": "MongoDB",
}
"""The same of systems without SQL, which have tests of their own."""
VERBS = {"ycsb"}
"""The workloads that say nothing in SQL."""

SMALL: Mapping[str, Mapping[str, Any]] = {
    "auctionmark": {"scale": 0.01},
    "chbenchmark": {"scale": 1, "options": {"items": 10000, "customers": 10}},
    "epinions": {"scale": 0.2},
    "isolation": {"options": {"keys": 4}},
    "jpab": {"scale": 0.05},
    "noop": {},
    "resourcestresser": {"scale": 1},
    "sales": {"scale": 0.002},
    "seats": {"scale": 0.01},
    "sibench": {"scale": 1},
    "smallbank": {"scale": 0.02, "options": {"hotspot": 100}},
    "sysbench": {"scale": 0.2, "prewarm": True, "options": {"tables": 2, "range_size": 10}},
    "tatp": {"scale": 0.01},
    "tpcb": {"scale": 1},
    "tpcc": {"scale": 2, "options": {"items": 10000, "customers": 30}},
    "twitter": {"scale": 1},
    "voter": {},
    "wikipedia": {"scale": 0.1, "options": {"text_length": 500}},
    "ycsb": {"scale": 1, "options": {"field_length_distribution": "zipfian"}},
}
"""The table ``[workload]`` of a study that loads within seconds."""

CANNOT: Mapping[tuple[str, str], str] = {}
"""Why a workload does not run in a dialect."""


def cells() -> str:
    """Make the table of workloads and dialects, for docs/built-in-workloads.md."""
    rows = [
        f"| [`{workload}`](#{workload}) | "
        + " | ".join(
            [CANNOT.get((workload, dialect), "yes") for dialect in PRODUCTS]
            + ["yes" if workload in VERBS else "needs SQL" for _ in KEYED]
        )
        + " |\n"
        for workload in WORKLOADS
    ]
    products = [*PRODUCTS.values(), *KEYED.values()]
    return f"| workload | {' | '.join(products)} |\n|{'---|' * (1 + len(products))}\n{''.join(rows)}"
