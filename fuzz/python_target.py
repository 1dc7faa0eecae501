"""Fuzzes a Python target: ``python_target.py TARGET`` and then libFuzzer's arguments."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fuzzing"))
with atheris.instrument_imports(include=["fuzz_targets", "json", "nephoscope", "tomllib"]):
    import fuzz_targets

TARGETS = {
    "study": fuzz_targets.study,
    "run_directory": fuzz_targets.run_directory,
    "card": fuzz_targets.card,
}


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    target = TARGETS[sys.argv.pop(1)]
    # Not within a `with`: libFuzzer leaves by exit().
    folder = Path(tempfile.mkdtemp(prefix="nephoscope-fuzz-"))
    atheris.Setup(sys.argv, lambda data: target(folder, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
