"""The seeds of the Python fuzz targets, and what fuzzing has found, in every test run."""

from __future__ import annotations

from pathlib import Path

import fuzz_targets
import pytest

CORPUS = Path(__file__).parent.parent.parent / "fuzz" / "corpus"
SEEDS = [
    pytest.param(getattr(fuzz_targets, target), seed, id=f"{target}-{seed.name}")
    for target in ("study", "run_directory", "card")
    for seed in sorted((CORPUS / target).iterdir())
]


@pytest.mark.parametrize(("target", "seed"), SEEDS)
def test_a_seed_holds(target: fuzz_targets.Target, seed: Path, tmp_path: Path) -> None:
    target(tmp_path, seed.read_bytes())


def test_a_broken_promise_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = CORPUS / "run_directory" / "killed"
    monkeypatch.setattr(fuzz_targets, "seal", lambda run: (run / "events.jsonl").unlink())
    with pytest.raises(AssertionError):
        fuzz_targets.run_directory(tmp_path, seed.read_bytes())
