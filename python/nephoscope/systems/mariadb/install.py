"""Where MariaDB's programs are: those of this machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nephoscope.systems.cluster.product import Install
from nephoscope.systems.machine.programs import find_program, said_version

if TYPE_CHECKING:
    from nephoscope.systems.machine.account import Account

_VERSION = re.compile(r"Ver\s+(([^\s-]+)\S*)")
_WHERE = "Debian and Ubuntu have it in mariadb-server and mariadb-client"
NEEDED = ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump")


def find_install(version: str | None, account: Account) -> Install:
    """Find the machine's MariaDB for ``account``; of the series ``version``, where that is given.

    Raises:
        MeasurementError: a program is missing or does not work here.
        InputError: it is of another series.

    """
    programs = {name: find_program(name, "MariaDB", _WHERE) for name in NEEDED}
    said = said_version(programs["mariadbd"], ["--no-defaults", "--version"], _VERSION, account)
    folders = tuple(dict.fromkeys(program.parent for program in programs.values()))
    install = Install(folders=folders, server_version=said[2], package_version=said[1])
    install.check_series(version, "MariaDB")
    return install
