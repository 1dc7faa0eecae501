"""What this machine has to give: cores and memory as its control groups allow them, and storage."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 30
"""Bytes in one of our "GB": cloud price lists mean 2**30."""

_SLASH = Path("/")


@dataclass(frozen=True)
class Machine:
    """The part of a machine that this process may use."""

    cores: float
    """Processors, a fraction where a quota allows only part of one."""
    memory_bytes: int

    @property
    def memory_gb(self) -> float:
        """Memory in units of 2**30 bytes."""
        return self.memory_bytes / GIB


def this_machine(root: Path = _SLASH) -> Machine:
    """Look at the machine, and at the limits of the container or control group that we run in.

    A server tuned for the host's memory inside a container with less is killed under load, so the
    smaller figure counts. ``root`` stands for ``/`` in tests.
    """
    cores = float(len(os.sched_getaffinity(0)))
    memory = _physical_memory(root)
    for folder in _control_groups(root, "cpu"):
        cores = min(cores, _cpu_quota(folder))
    for folder in _control_groups(root, "memory"):
        memory = min(memory, _memory_limit(folder))
    return Machine(cores=cores, memory_bytes=int(memory))


def storage_bytes(folder: Path) -> int:
    """Size in bytes of the file system that holds ``folder``, or will when it is made."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).total


def _physical_memory(root: Path) -> float:
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return float(line.split()[1]) * 1024
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of our control group and of its ancestors: each may hold a limit.

    Inside a container the path that /proc names may not exist below its mount; the mount's own root,
    which the walk ends at, is then the container's group.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    mounts = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2: one hierarchy for all controllers
            yield from _upwards(mounts, path)
        elif controller in controllers.split(","):  # version 1: one hierarchy per controller
            yield from _upwards(mounts / controller, path)


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    folder = mount / path.strip("/")
    yield folder
    while folder != mount:
        folder = folder.parent
        yield folder


def _numbers(*files: Path) -> list[float]:
    """Read the numbers of these files; none where a file is absent, unreadable or says ``max``: no limit."""
    try:
        return [float(word) for file in files for word in file.read_text().split()]
    except (OSError, ValueError):
        return []


def _cpu_quota(folder: Path) -> float:
    for files in ((folder / "cpu.max",), (folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")):
        match _numbers(*files):
            case [quota, period] if quota > 0 and period > 0:
                return quota / period
    return float("inf")


def _memory_limit(folder: Path) -> float:
    limits = _numbers(folder / "memory.max") + _numbers(folder / "memory.limit_in_bytes")
    return min(limits, default=float("inf"))
