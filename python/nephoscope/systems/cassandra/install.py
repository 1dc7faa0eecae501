"""Where Java and Cassandra's jars are: those of this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nephoscope.errors import InputError, MeasurementError
from nephoscope.systems.cluster.product import Install

_JAR = "cassandra-all-"
FILES = Path(__file__).parent
"""What every node is started with: options of Java, settings, how it writes its log."""


def jars_folder() -> Path:
    """Tell where the jars are: in ``CASSANDRA_JARS``, else the folder of this tool's own tests."""
    given = os.environ.get("CASSANDRA_JARS")
    return Path(given) if given else FILES.parents[3] / ".jars" / "cassandra"


def is_installed() -> bool:
    """Whether there are Java and jars, as far as that is seen without starting anything."""
    return shutil.which("java") is not None and any(jars_folder().glob(f"{_JAR}*.jar"))


def find_install(version: str | None) -> Install:
    """Find Java and the jars; of a series, where that is given.

    Raises:
        MeasurementError: something is missing.
        InputError: the jars are of another series.

    """
    java = shutil.which("java")
    if java is None:
        raise MeasurementError("Cassandra needs Java: Debian and Ubuntu have it in openjdk-17-jdk-headless")
    jars = jars_folder()
    found = sorted(jars.glob(f"{_JAR}*.jar"))
    if not found:
        raise MeasurementError(
            f"Cassandra's jars are missing in {jars}: CASSANDRA_JARS names a folder with cassandra-all and what it "
            "needs from Maven Central (requirements/cassandra.xml)"
        )
    installed = found[-1].stem.removeprefix(_JAR)
    if version is not None and not installed.startswith(f"{version}."):
        raise InputError(
            f"system.version is {version}, and {jars} has Cassandra {installed}: leave system.version out"
        )
    return Install(folders=(Path(java).parent, jars), server_version=installed, package_version=installed)
