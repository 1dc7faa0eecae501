"""The inputs of a run's figures as the run keeps them: its workload and its price books."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.dialects import ANY_URL
from nephoscope.errors import InputError
from nephoscope.scoring.prices import PriceBook, built_in_price_book
from nephoscope.study.packaged import packaged_workload
from nephoscope.study.workload import KeptWorkload, Workload

if TYPE_CHECKING:
    from nephoscope.store import StoredRun
    from nephoscope.study.reading import WorkloadTable
    from nephoscope.study.workload import DescribedWorkload


def price_book_of(run: StoredRun, key: str, name: str) -> PriceBook:
    """Return a price book as the run keeps it; of an older run one that comes with nephoscope, and no other file."""
    if (kept := run.inputs) is None:
        return built_in_price_book(name)
    if (book := kept["prices"].get(key)) is None:
        raise InputError(f"{run.folder}: the run keeps no prices for cost.{key} of its study")
    return PriceBook.model_validate(book)


def workload_of(run: StoredRun, table: WorkloadTable) -> DescribedWorkload:
    """Return the workload as the run keeps it; of an older run one that comes with nephoscope, and no other file."""
    if (kept := run.inputs) is not None:
        return KeptWorkload(kept["workload"])
    if (folder := packaged_workload(table.name)) is None:
        raise InputError(
            f"{run.folder} was written when runs did not keep what their workload is, and {table.name!r} does not"
            " come with nephoscope: there are no scores, points and verdicts"
        )
    endpoints = run.manifest.get("system", {}).get("endpoints", {}).get("rw") or ["noop://"]
    url = _any_url_of(endpoints[0])
    workload = Workload(folder, table.scale, table.data_seed, dict(table.options), url)
    _ = workload.description
    return workload


def _any_url_of(url: str) -> str:
    """Return a URL of the same dialect; it names no endpoint."""
    scheme = url.partition(":")[0]
    # Runs that do not keep their workload are older than the other dialects.
    return f"{scheme}://" if scheme in {"sim", "noop"} else ANY_URL
