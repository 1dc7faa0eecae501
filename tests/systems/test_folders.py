from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.machine import account
from nephoscope.systems.machine.folders import FolderLock, cache_folder, is_alive, make_folder, write_file


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEPHOSCOPE_CACHE", "/somewhere/cache")
    assert cache_folder() == Path("/somewhere/cache")
    monkeypatch.setenv("NEPHOSCOPE_CACHE", "here")
    assert cache_folder() == Path.cwd() / "here"


def test_the_cache_is_where_a_users_caches_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEPHOSCOPE_CACHE", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_CACHE_HOME", "/fast/ada")
    assert cache_folder() == Path("/fast/ada/nephoscope")
    for no_path in ("relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", no_path)
        assert cache_folder() == Path("/home/ada/.cache/nephoscope")


def test_roots_cache_is_not_below_its_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEPHOSCOPE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("/", "root", ".cache")))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache_folder() == Path("/var/cache/nephoscope")


def test_a_folder_has_its_mode_whatever_the_umask_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o750)
    umask = os.umask(0o077)
    try:
        make_folder(tmp_path / "old" / "new" / "newest", "x")
    finally:
        os.umask(umask)
    expected = 0o755 if os.geteuid() == 0 else 0o700
    assert stat.S_IMODE((tmp_path / "old" / "new").stat().st_mode) == expected
    assert stat.S_IMODE((tmp_path / "old" / "new" / "newest").stat().st_mode) == expected
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o750


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot use folder .*system\.data can name another"):
        make_folder(tmp_path / "file" / "folder", "system.data")


def test_a_private_file_is_private_from_its_beginning_and_replaces_a_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("untouched")
    (tmp_path / "file").symlink_to(other)
    write_file(tmp_path / "file", "secret", private=True)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert other.read_text() == "untouched"


def test_a_lock_can_be_taken_again_only_when_it_was_given_back(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    with pytest.raises(MeasurementError, match="is not locked"):
        _ = first.descriptor
    first.acquire(0, wait_for_living=False, hint="a hint")
    first.acquire(0, wait_for_living=False, hint="a hint")
    with pytest.raises(MeasurementError, match=rf"{tmp_path} is in use by process {os.getpid()} .*a hint"):
        second.acquire(60, wait_for_living=False, hint="a hint")
    with pytest.raises(MeasurementError, match="is in use"), second.held(0.1, "a hint"):
        pass
    first.release()
    first.release()
    with second.held(0, "a hint"):
        assert second.descriptor


def test_the_lock_of_a_dead_process_is_waited_for(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from nephoscope.systems.machine.folders import FolderLock\n"
        "lock = FolderLock(Path(sys.argv[1]))\n"
        "lock.acquire(0, wait_for_living=False, hint='')\n"
        "if os.fork() == 0:\n"
        "    sys.stdin.read()\n"
    )
    lock = FolderLock(tmp_path)
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE) as process:
        process.wait(30)
        with pytest.raises(MeasurementError, match="still shutting down"):
            lock.acquire(0.2, wait_for_living=False, hint="")
    lock.acquire(30, wait_for_living=False, hint="")
    lock.release()


def test_a_process_that_nobody_waited_for_is_not_alive() -> None:
    with subprocess.Popen(["/bin/true"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process.pid)
    assert is_alive(os.getpid())


def test_root_runs_servers_as_a_user_that_every_system_has(monkeypatch: pytest.MonkeyPatch) -> None:
    users = {"nobody": 65534}

    def getpwnam(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", users[name], 7, "", "/", "/bin/sh"))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", getpwnam)
    assert [found.name for found in account.server_accounts()] == ["nobody"]
    users["postgres"] = 26
    assert [found.uid for found in account.server_accounts()] == [26, 65534]
    users.clear()
    with pytest.raises(MeasurementError, match="as an ordinary user"):
        account.server_accounts()


def test_a_user_that_no_list_knows_runs_servers_as_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 123456)
    assert [(found.name, found.uid) for found in account.server_accounts()] == [("123456", 123456)]
