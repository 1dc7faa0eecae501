"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperCommand

from nephoscope.cli.consoles import ERR
from nephoscope.errors import InputError
from nephoscope.visible import visible

if TYPE_CHECKING:
    from nephoscope.study.borrowed import Given
    from nephoscope.study.reading import Study

StudyArgument = Annotated[
    str | None,
    typer.Argument(
        help="A study's file, or the name of one that comes with nephoscope. It comes before another tool's file."
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The system, in place of the table system of the study."),
]
PgbenchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pgbench",
        metavar="FILE[@WEIGHT]",
        help="Run a script of pgbench, or tpcb-like, simple-update, select-only; pgbench's options follow.",
    ),
]
SqlOption = Annotated[
    list[str] | None,
    typer.Option("--sql", metavar="FILE", help="Run a file of SQL; -c, -T and -R may follow, as of pgbench."),
]
SysbenchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sysbench",
        metavar="SCRIPT",
        help="Run a Lua script of sysbench; its options and commands follow: --tables=4 prepare.",
    ),
]
YcsbOption = Annotated[
    list[str] | None,
    typer.Option("--ycsb", metavar="FILE", help="Run YCSB by its property file; YCSB's options follow."),
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
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="HOST:PORT",
        help="Serve the run's own figures there while it goes on, for Prometheus; a PORT is one of this machine alone.",
    ),
]
OtlpOption = Annotated[
    str | None,
    typer.Option(
        "--otlp",
        metavar="URL",
        help="Send the run's own figures to a receiver of OpenTelemetry, by OTLP over HTTP.",
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Leave out what a whole run in --out has measured.")
]
RunArgument = Annotated[Path, typer.Argument(help="A run directory, such as runs/latest.")]
SummaryOption = Annotated[
    Literal["nephoscope", "sysbench"],
    typer.Option(
        "--summary", help="In which form figures are printed: our own, or that of sysbench's output."
    ),
]
FormatOption = Annotated[
    Literal["table", "markdown"],
    typer.Option("--format", help="How to print: for a terminal, or for an issue or a wiki."),
]

_TOOLS = ("pgbench", "sql", "sysbench", "ycsb")
"""The tools whose own options may follow the option of their name."""

_THEIRS = "nephoscope.theirs"
"""Where the context of a command keeps another tool's words."""


class ToolCommand(TyperCommand):
    """A command that takes another tool's words behind its file: ``run --pgbench reads.sql -c 8 -T 60``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Take out what is not ours of the words behind the option of a tool."""
        flags = {
            name: bool(getattr(option, "is_flag", False))
            for option in self.get_params(ctx)
            for name in option.opts
            if name.startswith("--")
        }
        opening = _OPENING & flags.keys()
        at = next((at for at, word in enumerate(args) if word.partition("=")[0] in opening), len(args))
        ours, theirs = args[:at], []
        left = args[at:]
        while left:
            word = left.pop(0)
            name, equals, _ = word.partition("=")
            if name not in flags:
                theirs.append(word)
                continue
            ours.append(word)
            if not flags[name] and not equals and left:
                ours.append(left.pop(0))
        ctx.meta[_THEIRS] = theirs
        return super().parse_args(ctx, ours)


_OPENING = frozenset(f"--{tool}" for tool in _TOOLS)


def study_of(
    name: str | None,
    settings: list[str] | None,
    io: str | None = None,
    given: Given | None = None,
) -> Study:
    """Read a study with what options set. Raises ``InputError``."""
    from nephoscope.study.packaged import find_study  # noqa: PLC0415
    from nephoscope.study.reading import read_study  # noqa: PLC0415

    for note in given.notes if given is not None else ():
        ERR.print(visible(note))
    overrides = [*(settings or ()), *([f"load.io={io}"] if io else ())]
    return read_study(None if name is None else find_study(name), overrides, name, given)


def given_by(context: typer.Context, study: str | None, url: str | None, **tools: list[str] | None) -> Given:
    """Gather what a command line says of the system and of other tools' files; ``tools`` are those that it may name.

    Raises ``InputError``, also where there is neither a study nor a file.
    """
    from nephoscope.study.borrowed import Given  # noqa: PLC0415

    chosen = {tool: files for tool, files in tools.items() if files}
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(f'--{tool}' for tool in chosen)} exclude each other")
    if study is None and not chosen:
        known = ", ".join(f"--{tool}" for tool in tools)
        raise InputError(f"a study is missing, or another tool's file by one of {known}")
    tool, files = next(iter(chosen.items()), (None, []))
    return Given(url, tool, files, context.meta.get(_THEIRS, ()))
