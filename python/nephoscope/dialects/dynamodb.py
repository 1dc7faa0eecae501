"""DynamoDB's requests about the data of workloads."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from nephoscope.errors import MeasurementError

if TYPE_CHECKING:
    from nephoscope.dialects.keyed import Ask, Columns, Keyed

_PATIENCE_S = 600.0
"""How long a table may take to be made or removed."""
_PAUSE_S = 0.2


class _DynamoDB:
    """A table with a partition key, made with capacity on demand; the records are a table of their own."""

    thing = "table"
    _KEY = "workload"

    @staticmethod
    def _answer(ask: Ask, operation: str, **body: Any) -> dict[str, Any]:  # noqa: ANN401 - what JSON can hold
        answer = json.loads(ask(f"{operation} {json.dumps(body)}")[0][0] or "{}")
        return dict(answer)

    def _tables(self, ask: Ask) -> set[str]:
        names: set[str] = set()
        page: dict[str, Any] = {}
        while True:
            answer = self._answer(ask, "ListTables", **page)
            names.update(answer["TableNames"])
            if (last := answer.get("LastEvaluatedTableName")) is None:
                return names
            page = {"ExclusiveStartTableName": last}

    def _wait(self, ask: Ask, table: str, *, there: bool) -> None:
        """Wait until a table can be used, or is gone. Raises ``MeasurementError``."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            status = None
            if table in self._tables(ask):
                status = self._answer(ask, "DescribeTable", TableName=table)["Table"]["TableStatus"]
            if (status == "ACTIVE") if there else (status is None):
                return
            time.sleep(_PAUSE_S)
        raise MeasurementError(f"DynamoDB: the table {table} is {status} after {_PATIENCE_S:.0f} s")

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        if book not in self._tables(ask):
            return None
        key = {self._KEY: {"S": workload}}
        answer = self._answer(ask, "GetItem", TableName=book, Key=key, ConsistentRead=True)
        return str(answer["Item"]["record"]["S"]) if "Item" in answer else None

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        if book not in self._tables(ask):
            self.make(ask, book, [(self._KEY, "text")])
        item = {self._KEY: {"S": workload}, "record": {"S": text}}
        self._answer(ask, "PutItem", TableName=book, Item=item)

    def exists(self, ask: Ask, table: str) -> bool:
        return table in self._tables(ask)

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        key = columns[0][0]
        self._answer(
            ask,
            "CreateTable",
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        )
        self._wait(ask, table, there=True)

    def drop(self, ask: Ask, table: str) -> None:
        if self.exists(ask, table):
            self._answer(ask, "DeleteTable", TableName=table)
            self._wait(ask, table, there=False)


DYNAMODB: Keyed = _DynamoDB()
