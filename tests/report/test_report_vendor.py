"""The vendored chart library is what its README says it is."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

from nephoscope.report.kit import assets

VENDOR = files("nephoscope.report").joinpath("vendor")


def test_the_library_has_the_hash_that_is_written_down() -> None:
    readme = VENDOR.joinpath("README.md").read_text(encoding="utf-8")
    written = re.findall(r"\b[0-9a-f]{64}\b", readme)
    assert written == [hashlib.sha256(VENDOR.joinpath(assets.VENDORED).read_bytes()).hexdigest()]


def test_the_library_is_the_version_that_is_written_down() -> None:
    readme = VENDOR.joinpath("README.md").read_text(encoding="utf-8")
    version = re.search(r"echarts@(\d+\.\d+\.\d+)", readme)
    assert version is not None
    assert f'.version="{version.group(1)}"' in assets.chart_library()


def test_its_licences_come_with_it() -> None:
    names = {entry.name for entry in VENDOR.iterdir()}
    assert {"LICENSE", "NOTICE", "README.md", "licenses"} <= names
    assert "Apache License" in VENDOR.joinpath("LICENSE").read_text(encoding="utf-8")
    assert VENDOR.joinpath("licenses", "LICENSE-d3").is_file()
