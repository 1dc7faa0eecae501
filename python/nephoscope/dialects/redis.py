"""Redis's commands about the data of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nephoscope.dialects.keyed import Ask, Columns, Keyed


class _Redis:
    """A row is a hash ``table:key``, and the keys are a sorted set; nothing has to be made."""

    thing = "key"
    _DROP = (
        "local found = redis.call('SCAN', ARGV[1], 'MATCH', KEYS[1] .. ':*', 'COUNT', 1000) "
        "if #found[2] > 0 then redis.call('UNLINK', unpack(found[2])) end return found[1]"
    )
    """Removes some rows of a table, and gives where to go on: rows, too, that an update has made of a deleted one."""

    @staticmethod
    def _words(*words: str) -> str:
        """Write a command as the driver reads it."""

        def quoted(word: str) -> str:
            for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
                word = word.replace(letter, escape)
            return f'"{word}"'

        return " ".join(map(quoted, words))

    def read(self, ask: Ask, book: str, workload: str) -> str | None:
        return ask(self._words("HGET", book, workload))[0][0]

    def write(self, ask: Ask, book: str, workload: str, text: str) -> None:
        ask(self._words("HSET", book, workload, text))

    def exists(self, ask: Ask, table: str) -> bool:
        return ask(self._words("EXISTS", table)) != [["0"]]

    def make(self, ask: Ask, table: str, columns: Columns) -> None:
        del ask, table, columns

    def drop(self, ask: Ask, table: str) -> None:
        place = "0"
        while (place := str(ask(self._words("EVAL", self._DROP, "1", table, place))[0][0])) != "0":
            pass
        ask(self._words("UNLINK", table))


REDIS: Keyed = _Redis()
