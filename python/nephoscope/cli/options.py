"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from nephoscope.study.reading import Study

StudyArgument = Annotated[
    str, typer.Argument(help="A study's file, or the name of one that comes with nephoscope.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the study, such as workload.scale=10."),
]
IoOption = Annotated[
    str | None,
    typer.Option("--io", metavar="auto|uring|epoll", help="How threads wait for sockets: the key load.io."),
]
OutOption = Annotated[Path, typer.Option("--out", help="The folder that run directories are made in.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON for machines.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Leave out what a whole run in --out has measured.")
]
RunArgument = Annotated[Path, typer.Argument(help="A run directory, such as runs/latest.")]
FormatOption = Annotated[
    Literal["table", "markdown"],
    typer.Option("--format", help="How to print: for a terminal, or for an issue or a wiki."),
]


def study_of(name: str, settings: list[str] | None, io: str | None = None) -> Study:
    """Read a study with what options set. Raises ``InputError``."""
    from nephoscope.study.packaged import find_study  # noqa: PLC0415
    from nephoscope.study.reading import read_study  # noqa: PLC0415

    return read_study(find_study(name), [*(settings or ()), *([f"load.io={io}"] if io else ())], name)
