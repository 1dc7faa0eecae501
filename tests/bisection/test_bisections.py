"""Bisections as they are run: over commits and URLs, on systems whose change is planted, interrupted, wrong."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.experiments.bisection.folder import FILES
from planted_runs import run
from sample_studies import sim_study, throughput, write_study

if TYPE_CHECKING:
    from pathlib import Path

SLOW_FROM = 3
VERSIONS = 5


def git(repository: Path, *words: str) -> str:
    told = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", repository, *told, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose file says how long a transaction takes; the fourth commit doubles it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(VERSIONS):
        latency = "80ms" if number >= SLOW_FROM else "40ms"
        (folder / "latency").write_text(f"{latency} {number}\n")
        git(folder, "add", "latency")
        git(folder, "commit", "-q", "-m", f"change {number}")
    return folder


def brief(**measured: Any) -> dict[str, Any]:
    return sim_study(throughput(warmup="50ms", duration="400ms", **measured), load={"interval": "50ms"})


COMMAND = (
    'echo "$NEPHOSCOPE_VERSION" >> ready.log; '
    'latency=$(git -C repository show "$NEPHOSCOPE_VERSION:latency" | cut -d" " -f1); '
    'echo "sim://?latency=constant($latency)"'
)


@pytest.mark.alone
def test_the_commit_that_doubled_a_latency_is_found(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = write_study(tmp_path, brief(concurrency=[16]))
    words = (
        "bisect",
        study,
        "--good",
        "HEAD~4",
        "--bad",
        "HEAD",
        "--repository",
        repository,
        "--command",
        COMMAND,
        "--response",
        "p50_ms",
    )
    ended = call(*words, "--out", tmp_path / "out", "--least", "10%", "--most", "4")
    # Four runs are too few, and the same command goes on with what is missing.
    assert (ended.code, "it is open after 4 runs" in ended.err) == (3, True), ended.err
    ended = call(*words, "--out", tmp_path / "out", "--least", "10%", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out.splitlines()[-1])
    assert told["answer"] == "changed"
    assert told["changed"] == [git(repository, "rev-parse", f"HEAD~{VERSIONS - 1 - SLOW_FROM}")]
    assert 0.3 < told["interval"][0] < told["relative"] < told["interval"][1]
    # A version that is ready already is not made ready again; ends come in pairs.
    assert len((tmp_path / "ready.log").read_text().splitlines()) < told["runs"]
    assert json.loads((tmp_path / "out" / FILES.results).read_text())["changed"] == told["changed"]
    # An answer needs no more runs.
    runs = sorted((tmp_path / "out" / "runs").iterdir())
    ended = call(*words, "--out", tmp_path / "out", "--least", "10%")
    assert ended.code == 0
    assert f"change {SLOW_FROM} changed p50_ms by +" in ended.out
    assert sorted((tmp_path / "out" / "runs").iterdir()) == runs


def plant(folder: Path, places: list[int], slow_from: int) -> None:
    """Plant the runs of a bisection, in their order."""
    for number, place in enumerate(places):
        tps = 800 if place >= slow_from else 1000
        run(
            folder / "runs" / f"2026010{1 + number // 10}T00000{number % 10}Z-planted-v{place:04d}",
            tps=tps,
            noise=0.003,
            repetitions=1,
            levels=(4,),
            manifest={"study": f"planted-v{place:04d}"},
        )


def urls(tmp_path: Path, number: int = 4) -> Path:
    file = tmp_path / "versions.txt"
    file.write_text(
        "# the good one first\n"
        + "".join(f"sim://?latency=constant({at}ms)\n" for at in range(1, number + 1))
    )
    return file


def test_versions_may_be_urls_and_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, brief()), tmp_path / "out"
    words = ("bisect", study, "--versions", urls(tmp_path), "--out", out, "--most", "4")
    # The plan is kept before anything is measured; the runs of an earlier command are planted.
    assert call(*words, "--command", "exit 1").code == 1
    assert (out / FILES.plan).is_file()
    assert not list((out / "runs").iterdir())
    plant(out, [0, 3, 3, 0, 0, 3, 1, 2, 2, 1], 2)
    ended = call(*words, "--command", "exit 1")
    assert ended.code == 0, ended.err
    assert "sim://?latency=constant(3ms) changed tps by -20" in ended.out
    assert "(10 runs)" in ended.out


def test_a_version_that_cannot_be_made_ready_is_skipped(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, brief()), tmp_path / "out"
    command = 'case "$NEPHOSCOPE_VERSION" in *2ms*|*3ms*) echo broken >&2; exit 1;; esac'
    words = ("bisect", study, "--versions", urls(tmp_path), "--out", out, "--command", command, "--most", "6")
    assert call(*words, "--command", "exit 1").code == 1
    plan = json.loads((out / FILES.plan).read_text())
    (out / FILES.plan).write_text(json.dumps(plan | {"command": command}))
    plant(out, [0, 3, 3, 0, 0, 3], 2)
    # Both between the ends are skipped: then one of three versions has changed it.
    ended = call(*words[:-1], "8")
    assert ended.code == 0, ended.out + ended.err
    assert "skipped, as it cannot be made ready: the command --command ended with exit code 1" in ended.err
    assert "one of 3 (sim://?latency=constant(2ms) … sim://?latency=constant(4ms))" in ended.out
    assert json.loads((out / FILES.plan).read_text())["skipped"] == [2, 1]


def test_where_nothing_changed_it_says_so(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, brief()), tmp_path / "out"
    words = (
        "bisect",
        study,
        "--versions",
        urls(tmp_path),
        "--out",
        out,
        "--command",
        "exit 1",
        "--least",
        "10%",
    )
    assert call(*words).code == 1
    plant(out, [0, 3, 3, 0, 0, 3, 3, 0], 9)
    ended = call(*words)
    assert ended.code == 3
    assert "tps did not change by 10 % or more from the good to the bad version" in ended.err


def test_another_question_needs_another_folder(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, brief()), tmp_path / "out"
    words = ("bisect", study, "--versions", urls(tmp_path), "--out", out, "--command", "exit 1")
    assert call(*words).code == 1
    ended = call(*words, "--response", "p95_ms")
    assert (ended.code, "holds another bisection: its response is another one" in ended.err) == (2, True)
    ended = call(*words, "--out", tmp_path)
    assert (ended.code, "is not empty, and no bisection's folder" in ended.err) == (2, True)


def test_no_password_is_kept(tmp_path: Path) -> None:
    tables = brief()
    study, out = write_study(tmp_path, tables), tmp_path / "out"
    file = tmp_path / "versions.txt"
    file.write_text(
        "postgresql://bench:hunter2@127.0.0.1:1/one\npostgresql://bench:hunter2@127.0.0.1:1/two\n"
    )
    ended = call("bisect", study, "--versions", file, "--out", out)
    assert ended.code == 1
    kept = [path for path in out.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if "hunter2" in path.read_text(errors="replace")]
    assert "hunter2" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "which versions? --good COMMIT and --bad COMMIT of a git repository, or --versions FILE"),
        (("--good", "HEAD", "--bad", "HEAD"), "--command is missing"),
        (
            ("--good", "nothing", "--bad", "HEAD", "--command", "true"),
            "--good nothing: there is no such commit",
        ),
        (
            ("--good", "HEAD", "--bad", "HEAD~1", "--command", "true"),
            "--good HEAD is no ancestor of --bad HEAD~1",
        ),
        (("--versions", "none.txt"), "none.txt: No such file"),
        (("--versions", "one.txt"), "1 versions to bisect; allowed: 2 to 10,000"),
        (("--versions", "twice.txt"), "a stands there twice; allowed: each version once"),
        (("--versions", "names.txt"), "a is no URL: --command makes the system ready at such a version"),
        (("--versions", "names.txt", "--good", "HEAD"), "--versions and --good, --bad exclude each other"),
        (("--versions", "names.txt", "--command", "true", "--response", "speed"), "'speed' is no response"),
        (("--versions", "names.txt", "--command", "true", "--least", "0%"), "--least 0%"),
        (("--versions", "names.txt", "--command", "true", "--timeout", "soon"), "--timeout soon"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_touched(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("a\n")
    (tmp_path / "twice.txt").write_text("a\na\n")
    (tmp_path / "names.txt").write_text("a\nb\n")
    study = write_study(tmp_path, brief())
    ended = call("bisect", study, "--repository", repository, "--out", tmp_path / "out", *words)
    assert (ended.code, complaint in ended.err) == (2, True), ended.err
    assert not (tmp_path / "out").exists()
