from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from docs_pages import PAGES, Block, blocks, name, prose
from page_shell import NOT_RUN, SHELLS, steps_of, steps_on

from nephoscope import registry
from nephoscope.cli.app import app
from nephoscope.measuring.preparing import prepare
from nephoscope.scoring.given import read_figures
from nephoscope.scoring.given_scores import score_systems
from nephoscope.scoring.prices import load_price_book
from nephoscope.storage.generating import read_course
from nephoscope.study.packaged import find_study, packaged_workloads
from nephoscope.study.reading import read_study
from nephoscope.study.references import references_of

HERE = Path(__file__).parent
BLOCKS = [block for page in PAGES for block in blocks(page)]
SHELL = [block for block in BLOCKS if block.language in SHELLS]
TOML = [block for block in BLOCKS if block.language == "toml"]


# Where the commands of a page are given to a shell, as they stand.
RUN_BY = {
    "README.md": "test_docs_first_study.py",
    "docs/bisect.md": "test_docs_records.py",
    "docs/cards.md": "test_docs_records.py",
    "docs/coming-from.md": "test_docs_coming_from.py",
    "docs/duet.md": "test_docs_duet.py",
    "docs/extending.md": "test_docs_extending.py",
    "docs/first-study.md": "test_docs_first_study.py",
    "docs/gate.md": "test_docs_gate.py",
    "docs/history.md": "test_docs_records.py",
    "docs/report.md": "test_docs_stored.py",
    "docs/score.md": "test_docs_stored.py",
    **{
        f"docs/storage/{page}.md": "test_docs_storage.py"
        for page in ("README", "describe", "execute", "generate", "models", "trace")
    },
    "docs/tutorial-workload.md": "test_docs_tutorial.py",
}


def commands(block: Block) -> list[str]:
    """The commands of a block: behind prompts in a console, every line in a script."""
    text = block.text.replace("\\\n", " ")
    lines = text.splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in lines if re.search(r"\bnephoscope (?!=)", line)]


def arguments(command: str) -> list[str] | None:
    """What is given to nephoscope, by the shell's rules; None if it is not called."""
    # What a command prints in the place of words is here two runs.
    words = shlex.split(re.sub(r"\$\([^)]*\)", "runs/A runs/B", command).replace(";", " ; "), comments=True)
    for at, word in enumerate(words):
        if word.rpartition("/")[2] == "nephoscope":
            rest = words[at + 1 :]
            ends = [place for place, other in enumerate(rest) if other in ("|", ">", "&&", ";", "2>&1")]
            return rest[: min(ends, default=len(rest))]
    return None


def parse(given: list[str]) -> None:
    """Let the real parser read a command line, without running it."""
    group: Any = typer.main.get_command(app)
    with group.make_context("nephoscope", list(given)) as context:
        rest = [*context._protected_args, *context.args]
        if rest:
            word, command, rest = group.resolve_command(context, rest)
            command.make_context(word, rest, parent=context).close()


def refused(given: list[str]) -> str | None:
    try:
        parse(given)
    except typer.Exit:  # it was asked for help
        return None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return str(error.format_message())
    return None


def test_commands_in_blocks_are_understood() -> None:
    faults, seen = [], 0
    for block in SHELL:
        for command in commands(block):
            given = arguments(command)
            if given is None:
                continue
            seen += 1
            if message := refused(given):
                faults.append(f"{block}: {command}: {message}")
    assert not faults, "\n".join(faults)
    assert seen > 15


def test_every_command_is_run_by_a_test_or_has_a_reason_why_not() -> None:
    pages = {name(page) for page in PAGES if steps_on(page)}
    assert pages == set(RUN_BY), "commands that no test runs, or a test for a page without any"
    for page, test in RUN_BY.items():
        assert page.rpartition("/")[2] in (HERE / test).read_text(), f"{test} does not name {page}"
    seen = {step.bare for block in SHELL for step in steps_of(block)}
    assert set(NOT_RUN) <= seen, "there is no such command any more"
    # A command without its language would be looked at by nobody.
    plain = [
        str(block) for block in BLOCKS if not block.language and re.search(r"^\$ ", block.text, re.MULTILINE)
    ]
    assert not plain, "these are consoles: write ```console"


def test_commands_in_sentences_are_understood() -> None:
    faults, seen = [], 0
    for page in PAGES:
        for code in re.findall(r"`(?:\.venv/bin/)?(nephoscope [^`]+)`", prose(page)):
            seen += 1
            given = [word for word in shlex.split(code)[1:] if word != "…"]
            # What a sentence names need not be whole.
            message = refused(given)
            if message and not message.startswith("Missing argument"):
                faults.append(f"{name(page)}: {code}: {message}")
    assert not faults, "\n".join(faults)
    assert seen > 5


@pytest.mark.parametrize(
    "given", ["fly", "run mine.toml --fast", "report", "compare runs/A", "load --threads few x"]
)
def test_a_wrong_command_is_seen(given: str) -> None:
    assert refused(shlex.split(given))


@pytest.mark.parametrize("block", TOML, ids=str)
def test_toml_is_valid(block: Block, tmp_path: Path) -> None:
    if block.page.name == "extending.md":  # by what its own package adds: test_docs_extending.py
        return
    tables = tomllib.loads(block.text)
    file = tmp_path / "block.toml"
    file.write_text(block.text)
    if "per_hour" in tables:
        load_price_book(file)
    elif "measure" in tables:
        study = read_study(file)
        if study.workload.name in packaged_workloads():
            prepare(study, registry.load("systems", study.system.provider).dialect_url)
    elif isinstance(tables.get("system"), list):
        score_systems(*read_figures(file))
    elif "part" in tables:
        assert read_course(file).parts()
    elif set(tables) == {"reference"}:  # a part of an experiment's study
        faults: list[str] = []
        assert references_of(tables["reference"], faults)
        assert faults == []
    elif set(tables) == {"system"}:  # a part of a study
        settings = registry.load("systems", tables["system"]["provider"]).settings_type
        settings.model_validate(tables["system"])
    else:
        pytest.fail(
            "what is it? a study has [[measure]], a price book [per_hour], figures [[system]], a course [[part]]"
        )


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "json"], ids=str)
def test_json_is_valid(block: Block) -> None:
    json.loads(block.text)


def test_overrides_of_the_pages_are_valid(tmp_path: Path) -> None:
    study = next(block for block in TOML if 'name = "nightly"' in block.text)
    file = tmp_path / "study.toml"
    file.write_text(study.text)
    known = [block for block in SHELL if block.page.parent.name == "docs"]
    given = [arguments(command) or [] for block in known for command in commands(block)]
    given += [
        shlex.split(found)
        for page in PAGES
        if page.parent.name == "docs"
        for found in re.findall(r"`(?:nephoscope run \S+ )?(--set [^`]+)`", prose(page))
    ]
    overrides = [[words[at + 1] for at, word in enumerate(words) if word == "--set"] for words in given]
    assert sum(map(len, overrides)) > 5
    for words, together in zip(given, overrides, strict=True):
        # Another provider takes other keys than this study's system has: then the study that is named has to take it.
        if any(override.startswith("system.provider=") for override in together):
            read_study(find_study(words[1]), together)
            continue
        for override in together:
            read_study(file, [override])
