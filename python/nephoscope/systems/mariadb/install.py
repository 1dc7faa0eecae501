"""Where MariaDB's programs are: those of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.cluster.product import Install
from nephoscope.systems.machine.programs import find_program

if TYPE_CHECKING:
    from nephoscope.systems.machine.account import Account

_WHERE = "Debian and Ubuntu have it in mariadb-server and mariadb-client"
NEEDED = ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump")


def find_install(version: str | None, account: Account) -> Install:
    """Find the machine's MariaDB for ``account``; of the series ``version``, where that is given.

    Raises:
        MeasurementError: a program is missing or does not work here.
        InputError: it is of another series.

    """
    programs = {name: find_program(name, "MariaDB", _WHERE) for name in NEEDED}
    folders = tuple(dict.fromkeys(program.parent for program in programs.values()))
    program = programs["mariadbd"]
    try:
        answer = account.run([program, "--no-defaults", "--version"])
    except OSError as error:
        raise MeasurementError(
            f"cannot execute {program} as user {account.name}: {error.strerror}"
        ) from error
    words = answer.stdout.partition("Ver ")[2].split()
    if answer.returncode != 0 or not words:
        raise MeasurementError(f"{program} does not work on this machine: {answer.stdout.strip()}")
    install = Install(folders=folders, server_version=words[0].partition("-")[0], package_version=words[0])
    if version is not None and series(install) != version:
        raise InputError(
            f"system.version is {version}, and this machine has MariaDB {install.server_version}: "
            f"leave system.version out, or install MariaDB {version}"
        )
    return install


def series(install: Install) -> str:
    """Tell the series of a version, within which databases fit: ``10.11`` of ``10.11.4``."""
    return ".".join(install.server_version.split(".")[:2])
