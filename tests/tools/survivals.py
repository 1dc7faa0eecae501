"""The table of what is survived in docs/reliability.md, made of what the tests have put on record.

A test that has passed leaves a record in ``target/survivals``: those of Rust by ``Survival::record``, those of Python
by the marker ``survives``. A test that is skipped says that nothing was proved here. ``--check`` changes nothing and
fails where the table is not exactly what the last tests have recorded.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "target" / "survivals"
PAGE = ROOT / "docs" / "reliability.md"

PARTS = {
    "network": "The network",
    "server": "The server",
    "start": "Connections at the start",
    "actions": "Actions on the system",
    "tool": "The tool and its machine",
    "input": "Wrong input",
}
"""What may fail, in the order of the page, with its heading."""

_PLACE = re.compile(r"(<!-- survivals -->\n).*?(<!-- end of survivals -->)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Survival:
    """A fault, and what was proved of a run that meets it."""

    part: str
    fault: str
    promise: str
    on: str
    test: str
    """Its name, without parameters."""
    errors: tuple[str, ...] = ()
    """Classes of the errors that are counted: the first is met, the others may be."""
    proved: bool = True
    """False where this machine lacks what the test needs."""

    def __post_init__(self) -> None:
        """Refuse a part that the page does not have."""
        if self.part not in PARTS:
            raise ValueError(f"{self.test}: part {self.part!r} is none of {', '.join(PARTS)}")


def record(survival: Survival, name: str) -> None:
    """Put on record what a test has proved; ``name`` is the test's own."""
    folder = RECORDS / "python"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '.', name)[-200:]}.json"
    path.write_text(json.dumps(asdict(survival)) + "\n", encoding="utf-8")


def recorded() -> list[Survival]:
    """Read every record, in the order of the page."""
    found = []
    for path in RECORDS.glob("*/*.json"):
        facts = json.loads(path.read_text(encoding="utf-8"))
        found.append(Survival(**{**facts, "errors": tuple(facts["errors"])}))
    parts = list(PARTS)
    return sorted(found, key=lambda one: (parts.index(one.part), one.fault, one.test))


def tables(survivals: list[Survival]) -> str:
    """Write a table for each part; what several cases of one test have proved stands there once."""
    text = ""
    for part, heading in PARTS.items():
        of_part = [one for one in survivals if one.part == part]
        columns = ["fault", "what happens", "errors", "on", "test"]
        if not any(one.errors for one in of_part):
            columns.remove("errors")
        if rows := dict.fromkeys(_row(one, columns) for one in of_part):
            head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
            text += f"\n### {heading}\n\n{head}" + "".join(rows)
    return text + "\n"


def _row(one: Survival, columns: list[str]) -> str:
    met, perhaps = one.errors[:1], one.errors[1:]
    errors = ", ".join(f"`{name}`" for name in met) or "–"  # noqa: RUF001 - a dash for what is absent
    errors += f" (perhaps {', '.join(f'`{name}`' for name in perhaps)})" if perhaps else ""
    cells = {
        "fault": one.fault,
        "what happens": one.promise,
        "errors": errors,
        "on": one.on,
        "test": f"`{one.test}`",
    }
    return "| " + " | ".join(cells[column].replace("|", "\\|") for column in columns) + " |\n"


def main() -> None:
    """Write the tables, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something would change")
    only_check = parser.parse_args().check
    survivals = recorded()
    if not {"rust", "python"} <= {path.name for path in RECORDS.glob("*")}:
        sys.exit("nothing is on record: the tests of Rust and of Python leave it, run them first")
    old = PAGE.read_text(encoding="utf-8")
    if not _PLACE.search(old):
        sys.exit(f"{PAGE.name} has no place for the tables")
    new = _PLACE.sub(lambda found: found[1] + tables(survivals) + found[2], old)
    for one in survivals:
        if not one.proved:
            sys.stderr.write(f"not proved on this machine: {one.fault} ({one.test} was skipped)\n")
    if only_check and new != old:
        sys.exit(f"{PAGE.name} does not say what the tests have proved: run make survivals")
    if new != old:
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
