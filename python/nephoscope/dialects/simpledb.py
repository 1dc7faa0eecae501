"""SimpleDB's requests about the data of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from nephoscope.dialects.keyed import Ask, Columns, Keyed

_LETTERS = 256
"""How many letters of a record an attribute has: of 4 bytes at most, where a value may have 1024."""


class _SimpleDB:
    """A table is a domain; the records are a domain of their own, each in parts, for a value is short."""

    thing = "domain"

    @staticmethod
    def _answer(ask: Ask, operation: str, **parameters: str) -> list[tuple[str, str]]:
        """Make a request; give the names and texts of the answer's elements."""
        words = urlencode(parameters, quote_via=quote, safe="")
        return [(str(name), text or "") for name, text in ask(f"{operation} {words}")]

    def _domains(self, ask: Ask) -> set[str]:
        names: set[str] = set()
        page: dict[str, str] = {}
        while True:
            answer = self._answer(ask, "ListDomains", **page)
            names.update(text for name, text in answer if name == "DomainName")
            if (token := dict(answer).get("NextToken")) is None:
                return names
            page = {"NextToken": token}

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        if book not in self._domains(ask):
            return None
        answer = self._answer(ask, "GetAttributes", DomainName=book, ItemName=workload, ConsistentRead="true")
        names = [text for name, text in answer if name == "Name"]
        parts = dict(zip(names, [text for name, text in answer if name == "Value"], strict=True))
        if "parts" not in parts:
            return None
        return "".join(parts[f"part{place}"] for place in range(int(parts["parts"])))

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        if book not in self._domains(ask):
            self.make(ask, book, [])
        parts = [text[start : start + _LETTERS] for start in range(0, len(text), _LETTERS)]
        attributes = {"parts": str(len(parts)), **{f"part{place}": part for place, part in enumerate(parts)}}
        form: dict[str, str] = {}
        for number, (name, value) in enumerate(attributes.items(), 1):
            parameters = {"Name": name, "Value": value, "Replace": "true"}
            form |= {f"Attribute.{number}.{key}": word for key, word in parameters.items()}
        self._answer(ask, "PutAttributes", DomainName=book, ItemName=workload, **form)

    def exists(self, ask: Ask, table: str) -> bool:
        return table in self._domains(ask)

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        del columns
        self._answer(ask, "CreateDomain", DomainName=table)

    def drop(self, ask: Ask, table: str) -> None:
        # It ends well where there is none.
        self._answer(ask, "DeleteDomain", DomainName=table)


SIMPLEDB: Keyed = _SimpleDB()
