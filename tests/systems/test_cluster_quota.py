"""Nodes of a cluster that are kept to their vCores, and do not take them from each other."""

from __future__ import annotations

import os
import threading
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from groups_lab import needs_groups, use_of
from pydantic import ValidationError

from nephoscope import _engine
from nephoscope.errors import InputError
from nephoscope.settings.actions import Action
from nephoscope.settings.resources import Resources
from nephoscope.study.reading import make_study
from nephoscope.systems.machine.group_guard import members
from nephoscope.systems.postgres.embedded import EmbeddedPostgresSettings
from sample_studies import sim_study, throughput

if TYPE_CHECKING:
    from postgres_lab import Lab
    from products import Words

    from nephoscope.systems.cluster.embedded import EmbeddedCluster

pytestmark = pytest.mark.alone

VCORES = 0.2
GIVEN = Resources(nodes=2, vcores=VCORES, memory_gb=1, storage_gb=10)


def keep_busy(url: str, sql: str, ended: threading.Event) -> None:
    admin = _engine.Admin(url)
    while not ended.is_set():
        admin.query(sql)
    admin.close()


def uses(provider: EmbeddedCluster, sql: str, urls: tuple[str, ...]) -> list[float]:
    """How many processors' time each node uses while each is kept busy."""
    ended = threading.Event()
    threads = [threading.Thread(target=keep_busy, args=(url, sql, ended)) for url in urls]
    for thread in threads:
        thread.start()
    try:
        threading.Event().wait(0.5)
        return [use_of(group, 1.5) for group in provider._quotas._groups.values()]
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)


@needs_groups
def test_every_node_is_kept_to_its_vcores(full_lab: Lab, words: Words) -> None:
    with full_lab.provider(replicas=1, cpu_quota="required", resources=GIVEN) as provider:
        system = provider.start()
        assert system.facts["cpu_quota"] == VCORES
        groups = list(provider._quotas._groups.values())
        assert len(groups) == 2
        folders = [folder for group in groups for folder in group.folders]
        assert all(members(folder) for folder in folders), "each has its processes"
        for used in uses(provider, words.spin, (*system.rw, *system.ro)):
            # The one that is not being looked at is busy as well: both have theirs at once.
            assert 0.05 < used < 1.3 * VCORES
        provider.act(Action.RESIZE, resources=GIVEN.model_copy(update={"vcores": 2 * VCORES}))
        assert max(uses(provider, words.spin, (*system.rw, *system.ro))) > 1.2 * VCORES
        provider.act(Action.ADD_NODE)
        assert len(provider._quotas._groups) == 3
        new = list(provider._quotas._groups.values())[-1]
        assert members(new.folders[0])
        folders += new.folders
    assert not any(folder.exists() for folder in folders), "nothing is left behind"


def test_where_it_is_not_permitted_that_is_told(ready_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with (
        ready_lab.provider(cpu_quota="required") as provider,
        pytest.raises(InputError, match=r"^system\.cpu_quota: processor time is limited by control groups"),
    ):
        provider.start()
    with ready_lab.provider(cpu_quota="if-permitted") as provider:
        monkeypatch.undo()
        monkeypatch.setattr("nephoscope.systems.cluster.quota.find_place", _refused)
        facts = provider.start().facts
        assert facts["no_cpu_quota"] == "not here"
        assert "cpu_quota" not in facts


def _refused() -> None:
    raise InputError("not here")


def test_a_quota_has_a_least() -> None:
    with pytest.raises(ValidationError, match=r"a quota is of 0\.1 vCores at least; it is 0\.05"):
        EmbeddedPostgresSettings(
            cpu_quota="required", resources=Resources(vcores=0.05, memory_gb=1, storage_gb=1)
        )


@pytest.mark.parametrize(
    "system",
    [{"provider": "embedded-postgres", "replicas": 2}, {"provider": "embedded-cassandra", "nodes": 3}],
)
def test_a_stored_study_says_how_many_nodes_there_are(system: dict[str, Any]) -> None:
    share = {"vcores": 0.5, "memory_gb": 1, "storage_gb": 10}
    tables = sim_study(throughput())
    tables["workload"] = {"name": "ycsb"}
    tables["measure"][0]["mixes"] = ["A"]
    tables["system"] = {**system, "resources": share}
    study = make_study(tables, "first")
    assert study.system.resources == Resources.model_validate({**share, "nodes": 3})
    assert make_study(tomllib.loads(study.to_toml()), "second") == study
    tables["system"]["resources"] = {**share, "nodes": 2}
    with pytest.raises(InputError, match=r"resources\.nodes is 2, and the system has 3"):
        make_study(tables, "wrong")
