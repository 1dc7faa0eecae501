"""Where control groups for processor time can be made, in version 1 and in version 2; or what is missing for that.

Of version 1 two controllers are needed, ``cpu`` for the quota and ``cpuacct`` for the use, each of which may have a
hierarchy of its own. Version 2 has one hierarchy; there a group limits its processes only where the group above gives
the controller ``cpu`` on to those in it. (Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.)
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from nephoscope.errors import InputError

_SLASH = Path("/")
_SEPARATE, _UNIFIED = "cgroup", "cgroup2"
"""The types of file systems of version 1 and of version 2."""


@dataclass(frozen=True)
class Place:
    """Where a control group can be made."""

    is_unified: bool
    """Whether it is of version 2, which has one hierarchy for all controllers."""
    quota: Path
    """The group in which it is made for its quota."""
    use: Path
    """The group in which it is made for what it uses: the same one, or its like in another hierarchy."""

    def folders(self, name: str) -> tuple[Path, ...]:
        """List the folders of a group of this name, that of the quota first."""
        return tuple(dict.fromkeys((self.quota / name, self.use / name)))


@dataclass(frozen=True)
class _Mount:
    type: str
    root: str
    """Which part of the hierarchy is mounted."""
    folder: Path
    is_read_only: bool
    controllers: frozenset[str]


def find_place(root: Path = _SLASH) -> Place:
    """Find where control groups for processor time can be made; nothing is touched. ``root`` is ``/`` but in tests.

    Raises:
        InputError: they cannot be; it says what is missing.

    """
    mounts = _mounts(root)
    first = [_with_controller(mounts, controller) for controller in ("cpu", "cpuacct")]
    if first[0] is not None:
        if first[1] is None:
            raise _missing(
                "control groups of version 1 are mounted with the controller cpu and without cpuacct"
            )
        quota, use = (_own_group(root, mount) for mount in first if mount is not None)
        for mount, group in zip(first, (quota, use), strict=True):
            _check_writable(mount, group)
        return Place(is_unified=False, quota=quota, use=use)
    for mount in mounts:
        if mount.type == _UNIFIED and "cpu" in _words(mount.folder / "cgroup.controllers"):
            group = _giving_on(mount, _own_group(root, mount))
            return Place(is_unified=True, quota=group, use=group)
    raise _missing(
        "no control groups with the controller cpu are mounted" if mounts else "no control groups are mounted"
    )


def give_on(group: Path) -> None:
    """See that a group of version 2 gives the controller cpu on. Raises ``OSError``."""
    if "cpu" not in _words(group / "cgroup.subtree_control"):
        (group / "cgroup.subtree_control").write_text("+cpu")


def _mounts(root: Path) -> list[_Mount]:
    """Read /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    try:
        lines = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError as error:
        raise _missing(f"/proc/self/mountinfo cannot be read ({error.strerror})") from error
    found = []
    for line in lines:
        before, _, after = line.partition(" - ")
        words, (kind, _, of_all) = before.split(), after.split()[:3]
        if kind in {_SEPARATE, _UNIFIED}:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
            options, controllers = set(words[5].split(",")), frozenset(of_all.split(","))
            is_read_only = "ro" in options | controllers
            found.append(_Mount(kind, words[3], root / point.lstrip("/"), is_read_only, controllers))
    return found


def _with_controller(mounts: list[_Mount], controller: str) -> _Mount | None:
    matching = (mount for mount in mounts if mount.type == _SEPARATE and controller in mount.controllers)
    return next(matching, None)


def _own_group(root: Path, mount: _Mount) -> Path:
    """Find the folder of the group that this process is in; in a container that may be the mount's own."""
    path = ""
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, controllers, name = line.split(":", 2)
        named = frozenset(controllers.split(",")) if controllers else frozenset[str]()
        # Version 2 names no controllers there.
        if (named <= mount.controllers) if named else mount.type == _UNIFIED:
            path = name
    within = path.removeprefix(mount.root.rstrip("/")) if path.startswith(mount.root) else ""
    folder = mount.folder / within.strip("/")
    return folder if folder.is_dir() else mount.folder


def _check_writable(mount: _Mount | None, group: Path) -> None:
    if mount is not None and mount.is_read_only:
        raise _missing(f"control groups are mounted read-only at {mount.folder}")
    if not _may_write(group):
        raise _missing(f"user {os.geteuid()} may not make control groups in {group}")


def _giving_on(mount: _Mount, own: Path) -> Path:
    """Find the nearest group, from our own upwards, that gives the controller on, or can be told to."""
    if mount.is_read_only:
        raise _missing(f"control groups are mounted read-only at {mount.folder}")
    group, writable = own, False
    while True:
        if _may_write(group):
            writable = True
            if "cpu" in _words(group / "cgroup.subtree_control"):
                return group
            # Where processes are, none can be given on; the hierarchy's own root, which has no type, is free to.
            is_free = not _words(group / "cgroup.procs") or not (group / "cgroup.type").exists()
            if is_free and "cpu" in _words(group / "cgroup.controllers"):
                return group
        if group == mount.folder:
            break
        group = group.parent
    if not writable:
        raise _missing(f"user {os.geteuid()} may not make control groups in {own}, nor in those above it")
    raise _missing(
        f"no control group from {own} upwards gives its controller cpu on (cgroup.subtree_control)"
    )


def _may_write(group: Path) -> bool:
    return os.access(group, os.W_OK | os.X_OK) and os.access(group / "cgroup.procs", os.W_OK)


def _words(file: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return file.read_text().split()
    return []


def _missing(what: str) -> InputError:
    return InputError(
        f"processor time is limited by control groups, and {what}; "
        "run as root where control groups are writable, or be given one (systemd-run --user -p Delegate=cpu)"
    )
