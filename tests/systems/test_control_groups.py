"""Control groups: found in made-up trees of both versions, and real ones that limit real processes and go with them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from groups_lab import needs_groups, place, use_of
from postgres_lab import wait_for, wait_until_gone

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.machine import control_group, control_groups, group_guard
from nephoscope.systems.machine.account import server_accounts
from nephoscope.systems.machine.control_group import ControlGroup, groups_of
from nephoscope.systems.machine.control_groups import Place, find_place
from nephoscope.systems.machine.group_guard import clear, members
from nephoscope.systems.machine.supervised import Order, SupervisedProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.alone

SPIN = (
    "import os\n"
    "for _ in range(3): os.fork()\n"  # eight, so that one processor's time is no limit
    "while True: pass\n"
)


# --- where they can be made


def machine(root: Path, mounts: dict[str, str], own: dict[str, str]) -> Path:
    """Make up a machine: what is mounted where, and which groups a process is in, by controller."""
    lines = ["20 1 8:1 / / rw - ext4 /dev/sda rw"]
    for number, (point, what) in enumerate(mounts.items(), start=30):
        kind, of_root, options, controllers = what.split()
        (root / point.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (root / point.lstrip("/") / "cgroup.procs").write_text("1\n")
        escaped = point.replace(" ", r"\040")
        lines.append(
            f"{number} 1 0:{number} {of_root} {escaped} {options},relatime shared:1 - {kind} {kind} {controllers}"
        )
    process = root / "proc/self"
    process.mkdir(parents=True)
    (process / "mountinfo").write_text("\n".join(lines) + "\n")
    (process / "cgroup").write_text("".join(f"1:{name}:{path}\n" for name, path in own.items()))
    return root


def group(folder: Path, gives_on: str = "", has: str = "cpu io", inside: str = "") -> Path:
    """Make up a group of version 2 that is not its hierarchy's own root."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "cgroup.procs": inside,
        "cgroup.controllers": has,
        "cgroup.subtree_control": gives_on,
        "cgroup.type": "domain",
    }.items():
        (folder / name).write_text(text)
    return folder


def test_version_1_with_a_hierarchy_for_each_controller(tmp_path: Path) -> None:
    mounts = {
        "/c/cpu": "cgroup / rw rw,cpu",
        "/c/use d": "cgroup / rw rw,cpuacct",
        "/c/m": "cgroup / rw rw,memory",
    }
    root = machine(tmp_path, mounts, {"cpu": "/jobs/mine", "cpuacct": "/", "memory": "/other"})
    (root / "c/cpu/jobs/mine").mkdir(parents=True)
    (root / "c/cpu/jobs/mine/cgroup.procs").touch()
    found = find_place(root)
    assert found == Place(is_unified=False, quota=root / "c/cpu/jobs/mine", use=root / "c/use d")
    assert found.folders("x") == (root / "c/cpu/jobs/mine/x", root / "c/use d/x")


def test_version_1_with_both_controllers_in_one_hierarchy_of_a_container(tmp_path: Path) -> None:
    root = machine(
        tmp_path, {"/c/cpu,cpuacct": "cgroup /docker/abc rw rw,cpu,cpuacct"}, {"cpu,cpuacct": "/docker/abc"}
    )
    found = find_place(root)
    assert found.quota == found.use == root / "c/cpu,cpuacct"
    assert found.folders("x") == (root / "c/cpu,cpuacct/x",)


def test_version_1_counts_where_version_2_is_mounted_without_the_controller(tmp_path: Path) -> None:
    mounts = {"/c/unified": "cgroup2 / rw rw", "/c/both": "cgroup / rw rw,cpu,cpuacct"}
    root = machine(tmp_path, mounts, {"": "/", "cpu,cpuacct": "/"})
    group(root / "c/unified", has="")
    assert not find_place(root).is_unified


def test_version_2_takes_the_nearest_group_that_gives_the_controller_on(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/c": "cgroup2 / rw rw"}, {"": "/user/shell"})
    group(root / "c", gives_on="cpu")
    group(root / "c/user", gives_on="cpu memory", inside="")
    group(root / "c/user/shell", inside="4711")
    assert find_place(root) == Place(is_unified=True, quota=root / "c/user", use=root / "c/user")
    (root / "c/user/cgroup.subtree_control").write_text("")
    (root / "c/user/cgroup.procs").write_text("12")
    assert find_place(root).quota == root / "c", "what has processes cannot give anything on"


def test_version_2_tells_a_group_without_processes_to_give_the_controller_on(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/c": "cgroup2 / rw rw"}, {"": "/user/shell"})
    group(root / "c", gives_on="cpu")
    user = group(root / "c/user")
    group(user / "shell", inside="4711")
    assert find_place(root).quota == user
    control_groups.give_on(user)
    assert (user / "cgroup.subtree_control").read_text() == "+cpu"


def test_version_2_s_own_root_may_give_it_on_in_spite_of_its_processes(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/c": "cgroup2 / rw rw"}, {"": "/"})
    (group(root / "c", inside="1 2 3") / "cgroup.type").unlink()
    assert find_place(root).quota == root / "c"


MISSING = {
    "no control groups are mounted": ({}, {}),
    "no control groups with the controller cpu are mounted": ({"/c/m": "cgroup / rw rw,memory"}, {}),
    "mounted with the controller cpu and without cpuacct": ({"/c/cpu": "cgroup / rw rw,cpu"}, {}),
    "mounted read-only at {root}/c/cpu": ({"/c/cpu": "cgroup / ro rw,cpu,cpuacct"}, {}),
    "mounted read-only at {root}/c/use": (
        {"/c/cpu": "cgroup / rw rw,cpu", "/c/use": "cgroup / rw ro,cpuacct"},
        {},
    ),
    "mounted read-only at {root}/c;": ({"/c": "cgroup2 / ro rw"}, {"": "/"}),
    "no control group from {root}/c upwards gives its controller cpu on": (
        {"/c": "cgroup2 / rw rw"},
        {"": "/"},
    ),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_told(tmp_path: Path, what: str) -> None:
    root = machine(tmp_path, *MISSING[what])
    if any("cgroup2" in mount for mount in MISSING[what][0].values()):
        group(root / "c", inside="1")
    with pytest.raises(InputError, match=re.escape(what.format(root=root))):
        find_place(root)


@pytest.mark.parametrize("version", [1, 2])
def test_a_user_who_may_not_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    kind = "cgroup2 / rw rw" if version == 2 else "cgroup / rw rw,cpu,cpuacct"
    root = machine(tmp_path, {"/c": kind}, {"": "/", "cpu,cpuacct": "/"})
    if version == 2:
        group(root / "c", gives_on="cpu")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match=f"user {os.geteuid()} may not make control groups in {root}/c"):
        find_place(root)


# --- version 2 as files


@pytest.fixture
def unified(tmp_path: Path) -> ControlGroup:
    one = ControlGroup(Place(is_unified=True, quota=tmp_path, use=tmp_path), Path("/some/folder"))
    [folder] = one.folders
    folder.mkdir()
    (folder / "cpu.max").write_text("max 100000")
    (folder / "cpu.stat").write_text("usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n")
    return one


def test_version_2_takes_its_quota_and_tells_its_use(unified: ControlGroup) -> None:
    limit = unified.folders[0] / "cpu.max"
    unified.set_quota(0.25)
    assert limit.read_text() == "25000 100000"
    unified.set_quota(0.0001)
    assert limit.read_text() == "1000 100000", "the kernel takes no less"
    unified.lift()
    assert limit.read_text() == "max"
    assert unified.used_ns() == 2_500_000


def test_a_group_that_has_gone_is_an_error(unified: ControlGroup) -> None:
    for file in unified.folders[0].iterdir():
        file.unlink()
    unified.folders[0].rmdir()
    with pytest.raises(MeasurementError, match="takes no quota: No such file"):
        unified.set_quota(1)
    with pytest.raises(MeasurementError, match="does not tell its use"):
        unified.used_ns()


def test_each_group_has_a_name_that_tells_whose_it_is() -> None:
    where = Place(is_unified=True, quota=Path("/c"), use=Path("/c"))
    names = [ControlGroup(where, Path(folder)).folders[0].name for folder in ("/a", "/b", "/a")]
    assert len(set(names)) == 3
    assert all(re.fullmatch("nephoscope-[0-9a-f]{12}-[0-9a-f]{8}", name) for name in names)
    assert [name[:23] == names[0][:23] for name in names] == [True, False, True]


# --- real ones


class Spinning:
    """Processes in a group of their own that take all the time they get, as the user that servers run as."""

    def __init__(self, owner: Path, where: Place) -> None:
        self.group = ControlGroup(where, owner)
        self.output = os.open(os.devnull, os.O_WRONLY)
        order = Order(
            command=(_python(), "-I", "-S", "-c", SPIN),
            account=server_accounts()[0],
            stages=((signal.SIGTERM, 1.0),),
            orphaned=signal.SIGKILL,
            entrances=self.group.entrances(),
        )
        self.process = SupervisedProcess(order)
        self.process.start(self.output)
        wait_for(lambda: len(members(self.group.folders[0])) == 8)

    def close(self) -> None:
        self.process.end()
        self.group.remove()
        os.close(self.output)


def _python() -> str:
    """Find a Python that every user can execute."""
    return next(str(file) for file in map(Path, ("/usr/bin/python3", sys.executable)) if file.exists())


@pytest.fixture
def spinning(tmp_path: Path) -> Iterator[Spinning]:
    one = Spinning(tmp_path, place())
    try:
        yield one
    finally:
        one.close()


@needs_groups
def test_a_quota_limits_and_follows_changes(spinning: Spinning) -> None:
    for vcores in (0.2, 0.05, 0.4):
        spinning.group.set_quota(vcores)
        time.sleep(0.2)
        # A group may have the rest of a period's time in the next, and others are on this machine as well.
        assert use_of(spinning.group, 1.0) < 1.15 * vcores + 0.01
    spinning.group.set_quota(0.1)
    time.sleep(0.2)
    assert use_of(spinning.group, 1.0) > 0.05, "it does run"


@needs_groups
def test_the_command_is_in_the_group_and_its_supervisor_is_not(spinning: Spinning) -> None:
    inside = set(members(spinning.group.folders[0]))
    assert spinning.process.pid in inside
    assert spinning.process._supervisor is not None
    assert not {os.getpid(), spinning.process._supervisor.pid} & inside
    for folder in spinning.group.folders:
        assert set(members(folder)) == inside


def test_a_command_that_may_not_go_into_its_group_is_not_run(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as output, (tmp_path / "file").open("rb") as no_entrance:
        order = Order(
            command=("/bin/true",),
            account=server_accounts()[0],
            stages=(),
            orphaned=signal.SIGKILL,
            entrances=(no_entrance.fileno(),),
        )
        process = SupervisedProcess(order)
        with pytest.raises(MeasurementError, match="cannot put /bin/true into its control group as user"):
            process.start(output.fileno())
        process.end()


@needs_groups
def test_a_group_is_removed_with_what_is_left_in_it(spinning: Spinning) -> None:
    inside = members(spinning.group.folders[0])
    spinning.group.set_quota(0.02)
    assert clear(spinning.group.folders, 0.0)
    assert not [folder for folder in spinning.group.folders if folder.exists()]
    wait_until_gone(inside)


@needs_groups
def test_what_an_earlier_run_has_left_is_replaced(tmp_path: Path) -> None:
    left = ControlGroup(place(), tmp_path)
    for folder in left.folders:
        folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        for folder in left.folders:
            (folder / "cgroup.procs").write_text(str(process.pid))
        again = ControlGroup(place(), tmp_path)
        try:
            assert groups_of(place(), tmp_path) == [left.folders]
            again.entrances()
            assert groups_of(place(), tmp_path) == [again.folders]
            assert process.wait(10) == -signal.SIGKILL
            assert members(again.folders[0]) == []
        finally:
            again.remove()
    assert groups_of(place(), tmp_path) == []


@needs_groups
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_group_does_not_outlive_who_made_it(tmp_path: Path, number: signal.Signals) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from nephoscope.systems.machine.control_group import ControlGroup\n"
        "from nephoscope.systems.machine.control_groups import find_place\n"
        "one = ControlGroup(find_place(), Path(sys.argv[1])); one.entrances()\n"
        "print(*one.folders, flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folders = [Path(word) for word in process.stdout.readline().split()]
        assert folders
        assert all(folder.is_dir() for folder in folders)
        process.send_signal(number)
    wait_for(lambda: not any(folder.exists() for folder in folders))


@needs_groups
def test_a_guard_that_was_killed_is_not_needed_to_remove_a_group(tmp_path: Path) -> None:
    one = ControlGroup(place(), tmp_path)
    one.entrances()
    assert one._guard is not None
    one._guard.kill()
    one.remove()
    assert not [folder for folder in one.folders if folder.exists()]
    one.remove()


@needs_groups
def test_what_cannot_be_made_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    where = replace(place(), use=Path("/proc/self"))
    one = ControlGroup(where, tmp_path)
    with pytest.raises(InputError, match="cannot make a control group"):
        one.entrances()
    one.remove()
    assert not one.folders[0].exists()


def test_a_real_group_of_version_2_is_entered_and_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel counts the use there in any case; a quota needs the controller, which version 1 may have."""
    points = [mount.folder for mount in control_groups._mounts(Path("/")) if mount.type == "cgroup2"]
    if not points or not os.access(points[0], os.W_OK):
        pytest.skip("no control groups of version 2 that can be written to")
    monkeypatch.setattr(control_group, "give_on", lambda _: None)
    one = Spinning(tmp_path, Place(is_unified=True, quota=points[0], use=points[0]))
    try:
        assert use_of(one.group, 0.5) > 0.05
    finally:
        one.close()
    assert not one.group.folders[0].exists()


def test_a_guard_lifts_the_quota_of_either_version(tmp_path: Path) -> None:
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        (tmp_path / name).write_text("1000")
    group_guard.lift([tmp_path, tmp_path / "gone"])
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {"cpu.max": "max", "cpu.cfs_quota_us": "-1"}
