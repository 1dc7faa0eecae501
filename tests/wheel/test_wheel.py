"""The package as users get it: a wheel in an empty environment, away from the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sample_studies import phases, sim_study, write_study

CHECKOUT = Path(__file__).parents[2]
UNREACHABLE = ("NewConnectionError", "ConnectionError", "ReadTimeoutError", "name resolution")

pytestmark = [pytest.mark.wheel, pytest.mark.long]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that knows nothing of this environment; return what it prints."""
    known = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    # What the index and its certificates are is the machine's affair.
    known |= {
        key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "REQUESTS_"))
    }
    known |= {key: value for key, value in os.environ.items() if key.lower().endswith("_proxy")}
    done = subprocess.run(command, cwd=cwd, env=known, capture_output=True, text=True, check=False)
    if done.returncode != 0 and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel; where the extension module has been built already that takes seconds."""
    out = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    command: list[str | Path] = [maturin, "build", "--release", "--locked", "--quiet", "--out", out]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_what_the_repository_has(wheel: Path) -> None:
    listed = subprocess.check_output(["git", "ls-files"], cwd=CHECKOUT, text=True).splitlines()
    wanted = {name.removeprefix("python/") for name in listed if name.startswith("python/nephoscope/")}
    folders = ("price_books", "services", "studies", "workloads")
    links = {f"nephoscope/{folder}" for folder in folders}
    wanted |= {f"nephoscope/{name}" for name in listed if name.split("/")[0] in folders}
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert not wanted - links - names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".part", ".orig"))]


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an environment of its own."""
    made = tmp_path_factory.mktemp("installed") / "environment"
    run(sys.executable, "-m", "venv", made, cwd=made.parent)
    pip: list[str | Path] = [made / "bin" / "pip", "install", "--quiet"]
    requirements = CHECKOUT / "requirements" / "run.txt"
    run(*pip, "--no-compile", "--require-hashes", "-r", requirements, cwd=made.parent)
    run(*pip, "--no-deps", wheel, cwd=made.parent)
    return made


def test_the_wheel_works_in_an_empty_environment(wheel: Path, environment: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = environment / "bin" / "nephoscope"
    version = wheel.name.split("-")[1]
    assert run(program, "--version", cwd=elsewhere) == f"nephoscope {version}\n"
    described = run(program, "workloads", "sales", cwd=elsewhere)
    assert str(environment.resolve()) in described
    assert "T2: marks an order as paid and credits its customer" in described
    study = write_study(elsewhere, sim_study(phases({"concurrency": 4, "duration": "500ms"})))
    told = run(program, "run", study, cwd=elsewhere)
    assert "report: runs/" in told
    assert "</html>" in (elsewhere / "runs" / "latest" / "report.html").read_text()
    listed = run(program, "systems", cwd=elsewhere)
    assert "embedded-postgres" in listed
    assert "throughput" in listed


def test_the_storage_tier_works_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    program = environment / "bin" / "nephoscope"
    grid = ("measure.0.rates=[20]", "measure.0.replicates=1", "measure.0.duration=2s")
    sets = [word for setting in grid for word in ("--set", setting)]
    run(program, "storage", "capture", "capture-small", *sets, "--out", "corpus", cwd=tmp_path)
    run(program, "storage", "describe", "corpus", "--run", "0", "--html", "corpus.html", cwd=tmp_path)
    assert "</html>" in (tmp_path / "corpus.html").read_text()
    target = f"file://{tmp_path / 'target'}"
    run(program, "storage", "run", "corpus:0", "poisson", "--target", target, cwd=tmp_path)
    assert "</html>" in (tmp_path / "runs" / "latest" / "report.html").read_text()


def test_servers_load_the_recorder_wherever_the_wheel_can_be_installed(
    wheel: Path, environment: Path
) -> None:
    script = "import sys; from nephoscope import _engine; sys.stdout.buffer.write(_engine.storage_preload())"
    library = subprocess.check_output([environment / "bin" / "python", "-c", script])
    needed = {tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    tag = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    assert tag is not None, f"{wheel.name} says not which C library it needs"
    assert (2, 2) < max(needed) <= tuple(map(int, tag.groups()))
