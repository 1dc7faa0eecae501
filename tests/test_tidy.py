"""The project's own order: short functions and files, one name for each concept, nothing of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FUNCTION_LINES = 60
FILE_LINES = 450

# What is longer than that, with its length. A ratchet: numbers may fall and entries go; nothing else.
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}

# The words of the design, and what would be second names for them, in code and in prose.
SECOND_NAMES = {
    "study": r"scenario|experiment file",
    "system": r"\bsut\b|system_under_test|target database",
    "session": r"\bvirtual users?\b|\bvusers?\b|\bvus?\b",
    "transaction": r"\btxns?\b|\btrx\b|\bxacts?\b",
    "schedule": r"load plan|arrival plan",
    "workload": r"benchmark file|test script",
    "evaluator": r"analy[sz]er",
    "provider": r"provisioner",
    "role": r"\breader endpoint\b|\bwriter endpoint\b",
    "run directory": r"result(s)? directory|output directory",
    "price book": r"price list file|pricing file",
}
# Names of others: a view of PostgreSQL, a setting of InnoDB, a word of a paper or of a peer, a field of adya, Elle's.
FOREIGN = re.compile(
    r"xact_commit|xact_rollback|pg_current_xact|log.at.trx.commit|cloud price lists|vuset vu|txns: transactions"
    r'|:f :txn|"txn"',
    re.IGNORECASE,
)


@cache
def tracked() -> list[Path]:
    """List the project's own text files."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    files = [ROOT / name for name in names]
    return [file for file in files if file.is_file() and "vendor" not in file.parts]


def of(*suffixes: str) -> list[Path]:
    return [file for file in tracked() if file.suffix in suffixes]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def rust_functions(text: str) -> list[tuple[str, int]]:
    """Find functions and their lengths by their indentation, which rustfmt guarantees."""
    found = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        start = re.match(
            r"(\s*)(?:pub(?:\([a-z]+\))? )?(?:const |async |unsafe |extern \"[^\"]+\" )*fn (\w+)", line
        )
        if start and not line.rstrip().endswith(";"):
            end = next((k for k in range(at, len(lines)) if lines[k] == f"{start[1]}}}"), at)
            found.append((start[2], end - at + 1))
    return found


def python_functions(text: str) -> list[tuple[str, int]]:
    """Find functions and their lengths, docstrings not counted."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            documented = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
            found.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - documented))
    return found


def test_functions_fit_a_screen() -> None:
    lengths: dict[str, int] = {}
    for file in of(".rs", ".py"):
        functions = rust_functions if file.suffix == ".rs" else python_functions
        for function, lines in functions(file.read_text()):
            if lines > FUNCTION_LINES:
                key = f"{name(file)}:{function}"
                lengths[key] = max(lines, lengths.get(key, 0))
    grown = {key: lines for key, lines in lengths.items() if lines > LONG_FUNCTIONS.get(key, 0)}
    assert not grown, f"longer than {FUNCTION_LINES} lines, or than they were"
    gone = {key: lines for key, lines in LONG_FUNCTIONS.items() if lines > lengths.get(key, 0)}
    assert not gone, "these have become shorter: lower LONG_FUNCTIONS to what they are"


def test_files_fit_one_idea() -> None:
    lengths = {
        name(file): len(file.read_text().splitlines()) for file in of(".rs", ".py", ".js", ".css", ".lua")
    }
    long = {key: lines for key, lines in lengths.items() if lines > max(FILE_LINES, LONG_FILES.get(key, 0))}
    assert not long, f"longer than {FILE_LINES} lines, or than they were"


def test_only_tests_are_built_with_a_clock_that_can_be_moved() -> None:
    movable = {
        f"{name(file)}: {dependency}"
        for file in of(".toml")
        for dependency, said in tomllib.loads(file.read_text()).get("dependencies", {}).items()
        if "simulated-time" in str(said)
    }
    assert not movable, "features of [dev-dependencies] reach tests and nothing else"


@pytest.mark.parametrize("word", SECOND_NAMES)
def test_a_concept_has_one_name(word: str) -> None:
    pattern = re.compile(SECOND_NAMES[word], re.IGNORECASE)
    found = []
    for file in of(".rs", ".py", ".lua", ".toml", ".md", ".sql", ".j2"):
        if file == Path(__file__):
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if (hit := pattern.search(line)) and not FOREIGN.search(line):
                found.append(f"{name(file)}:{number}: {hit[0]} (the word is {word})")
    assert not found, "\n".join(found)


def test_nothing_names_a_machine_or_how_work_is_organised() -> None:
    pattern = re.compile(
        r"(?<![\w.])/(work|farm|root)/|artifactory|\bsubagent\b|\bhelper session", re.IGNORECASE
    )
    found = []
    for file in tracked():
        if file == Path(__file__) or file.suffix in {".lock", ".png"}:
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{name(file)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


def test_every_module_says_what_it_is() -> None:
    silent = [name(file) for file in of(".rs") if not file.read_text().startswith(("//!", "#!"))]
    assert not silent
