"""The example studies of docs/examples: each is a study, and says the same as the page that tells of it."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest
from docs_pages import ROOT, prose

from nephoscope.errors import InputError
from nephoscope.measuring.preparing import any_url, prepare
from nephoscope.settings.actions import Action
from nephoscope.study.packaged import find_study
from nephoscope.study.reading import make_study, read_study
from nephoscope.systems.hooks import Hooks
from nephoscope.systems.url import Url, UrlSettings

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "docs" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.toml"))
PAGE = ROOT / "docs" / "systems.md"
URLS = {
    "CLUSTER_RW_URL": "postgresql://bench@rw.example.com/bench",
    "CLUSTER_RO_URL": "postgresql://bench@ro.example.com/bench",
}
SPARE = {"CLUSTER_SPARE": "pg3", "CLUSTER_SPARE_URL": "postgresql://bench@new.example.com/bench"}
NOT_RUN = "the project's tests read this study, and do not run it"


def settings(example: Path) -> UrlSettings:
    study = read_study(example)
    assert isinstance(study.system, UrlSettings)
    return study.system


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_study(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, url in URLS.items():
        monkeypatch.setenv(name, url)
    study = make_study(tomllib.loads(example.read_text()), example.name)
    assert study.study.name == example.stem
    assert any_url(study) == URLS["CLUSTER_RW_URL"]
    _, evaluators = prepare(study, any_url(study))
    assert {evaluator.name for evaluator in evaluators} >= {"failover", "lag"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_what_an_example_measures_its_hooks_can_do(example: Path) -> None:
    can = {action.value for action in Hooks(settings(example).hooks).actions()}
    of_fault = {"promote": {"promote"}, "node-loss": {"kill"}, "restart": {"restart"}}
    faults = [getattr(entry, "fault", None) for entry in read_study(example).measure]
    for fault in filter(None, faults):
        assert of_fault[fault] <= can


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_hooks_of_an_example_are_shell(example: Path) -> None:
    hooks = settings(example).hooks.model_dump(exclude={"timeout"}, exclude_none=True)
    assert {"promote", "kill", "restart", "allocation"} <= hooks.keys()
    for name, command in hooks.items():
        checked = subprocess.run(
            ["/bin/sh", "-n", "-c", command], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, f"{name}: {checked.stderr}"


# What the command lines would print of a node that has come.
STAND_INS = {
    "aws": 'case "$*" in *Endpoint*) echo new.example.com ;; *create*) echo creating ;; esac',
    "kubectl": 'case "$*" in *podIP*) echo pod-3 new.example.com ;; *get*) echo 2 ;; *) echo patched ;; esac',
    "patronictl": r"printf 'Cluster\tMember\tHost\tRole\tState\nlab\tpg3\thost\tReplica\tstreaming\n'",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_where_a_node_is_that_it_has_added(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, script in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    for name, value in (URLS | SPARE | {"CLUSTER": "lab", "NAMESPACE": "lab", "CLUSTER_SSH": "true"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    hooks = settings(example).hooks.model_copy(update={"allocation": None})
    system = Url(settings(example).model_copy(update={"hooks": hooks}))
    system.start()
    added = system.act(Action.ADD_NODE)
    assert added.node
    assert system.endpoints("ro") == (URLS["CLUSTER_RO_URL"], "postgresql://bench@new.example.com/bench")
    system.act(Action.REMOVE_NODE, node=added.node)
    assert system.endpoints("ro") == (URLS["CLUSTER_RO_URL"],)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_names_the_variables_that_it_needs(example: Path) -> None:
    text = example.read_text()
    head = text.partition("[study]")[0]
    used = set(re.findall(r"\$\{?((?:CLUSTER|NAMESPACE|AWS|PATRONI)\w*)", text.partition("[study]")[2]))
    assert {"CLUSTER_RW_URL", "CLUSTER_RO_URL"} <= used
    for name in used:
        assert name in head, name


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_and_the_example_say_whether_it_is_run(example: Path) -> None:
    (row,) = (line for line in prose(PAGE).splitlines() if f"(examples/{example.name})" in line)
    is_run = "tests run this study" in example.read_text().replace("\n# ", " ")
    assert is_run == (example.stem == "patroni")
    assert (NOT_RUN in example.read_text().replace("\n# ", " ")) == (not is_run)
    assert ("written from" in row) == (not is_run)


def test_there_are_the_examples_that_the_page_names() -> None:
    named = re.findall(r"\(examples/(\S+?\.toml)\)", prose(PAGE))
    assert sorted(named) == [example.name for example in EXAMPLES]
    with pytest.raises(InputError, match="no such study"):
        find_study("patroni")
