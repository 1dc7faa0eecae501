"""Cards: the same run has the same card, and whatever is changed in it or in its run is found."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commands import call
from nephoscope.cards import ssh
from nephoscope.cards.card import json_schema, read_card, signed_text, text_of
from nephoscope.cards.making import card_of
from nephoscope.cards.verifying import verify
from nephoscope.store import StoredRun
from nephoscope.store.layout import FILES
from planted_runs import run

if TYPE_CHECKING:
    from collections.abc import Mapping

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is only read; whoever changes it takes a copy."""
    return run(tmp_path_factory.mktemp("cards") / "20260102T030405Z-planted", repetitions=3).folder


@pytest.fixture
def own(planted: Path, tmp_path: Path) -> Path:
    return shutil.copytree(planted, tmp_path / planted.name)


def test_histories_are_of_the_run(own: Path) -> None:
    history = own / "histories" / "0.history"
    history.parent.mkdir()
    history.write_bytes(b"what transactions saw")
    assert call("card", own).code == 0
    listed = [file.name for file in read_card(own / "card.json")[0].files]
    assert "histories/0.history" in listed
    assert listed == sorted(listed)
    assert call("verify", own / "card.json").code == 0
    history.write_bytes(b"what transactions see")
    ended = call("verify", own / "card.json")
    assert ended.code == 1
    assert "histories/0.history: another content" in ended.out + ended.err


def key_of(folder: Path, name: str = "key") -> Path:
    key = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, "-C", name], check=True)
    return key


def test_the_same_run_has_the_same_card_and_it_holds_what_was_planted(planted: Path, tmp_path: Path) -> None:
    first, second = (text_of(card_of(StoredRun(planted))) for _ in range(2))
    assert first == second
    (tmp_path / "card.json").write_text(first, encoding="utf-8")
    card, _ = read_card(tmp_path / "card.json")
    assert text_of(card) == first
    assert set(card.points) == {"SELECT c=2", "SELECT c=8"}
    tps = card.points["SELECT c=8"]["TPS"]
    assert tps.repetitions == 3
    assert tps.value == pytest.approx(1000 * 8 / 10 * 10, rel=0.05)
    assert tps.worst is not None
    assert tps.median is not None
    assert tps.worst < tps.median
    p95 = card.points["SELECT c=8"]["p95"]
    assert p95.worst is not None
    assert p95.median is not None
    assert p95.worst > p95.median
    assert card.scores["P"].repetitions == 3
    assert card.workload.name == "tpcb"
    assert card.absent["O"].startswith("it needs every score")
    # What sha256sum says of the files.
    told = subprocess.run(
        ["sha256sum", *sorted(file.name for file in card.files)],
        cwd=planted,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == "".join(f"{file.sha256}  {file.name}\n" for file in card.files)
    assert card.sha256 == hashlib.sha256(told.encode()).hexdigest()
    assert {file.name for file in card.files} == {
        "study.toml", "manifest.json", "intervals.parquet", "histograms", "events.jsonl", "system.parquet",
        "probes.parquet", "checks.parquet",
    }  # fmt: skip


def test_a_card_is_verified_by_its_run(own: Path) -> None:
    assert call("card", own).code == 0
    ended = call("verify", own / "card.json")
    assert ended.code == 0, ended.out + ended.err
    assert "✓ the 8 files of the run are those of the card" in ended.out
    assert "figures computed anew are those of the card" in ended.out
    # Its report may be written anew, and its folder may be called something else.
    assert call("report", own).code == 0
    moved = own.rename(own.with_name("elsewhere"))
    assert call("verify", moved / "card.json").code == 0
    told = json.loads(call("verify", moved / "card.json", moved, "--json").out)
    assert told["holds"] is True


def changed(card: Mapping[str, Any], *place: str, value: object) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(card))
    inner: Any = made
    for key in place[:-1]:
        inner = inner[int(key)] if isinstance(inner, list) else inner[key]
    inner[place[-1]] = value
    return made


CHANGES: list[tuple[tuple[str, ...], object]] = [
    (("scores", "P", "value"), 1e9),
    (("scores", "P", "ci95"), [1.0, 2.0]),
    (("scores", "P", "worst"), 0.0),
    (("points", "SELECT c=8", "TPS", "median"), 7.0),
    (("points", "SELECT c=8", "p99", "value"), 0.1),
    (("tuning", "tuned"), True),
    (("verdicts",), []),
    (("warnings",), ["it was all a dream"]),
    (("price_book",), "free"),
    (("system", "version"), "PostgreSQL 99"),
    (("study",), "[study]\nname = 'other'\n"),
    (("run", "origin"), "2020-01-01T00:00:00+00:00"),
    (("files", "0", "sha256"), "0" * 64),
    (("sha256",), "0" * 64),
]


@pytest.mark.parametrize(("place", "value"), CHANGES, ids=[".".join(place) for place, _ in CHANGES])
def test_whatever_is_changed_in_a_card_is_found(
    planted: Path, tmp_path: Path, place: tuple[str, ...], value: object
) -> None:
    whole = json.loads(text_of(card_of(StoredRun(planted))))
    path = tmp_path / "card.json"
    path.write_text(json.dumps(changed(whole, *place, value=value)))
    ended = call("verify", path, planted)
    assert ended.code == 1, ended.out
    name = "checks.parquet" if place[0] == "files" else ".".join(place)
    assert f"✗ {name}" in ended.out


@pytest.mark.parametrize("name", ["study.toml", "manifest.json", "histograms", "events.jsonl"])
def test_a_changed_file_of_the_run_is_found(own: Path, name: str) -> None:
    assert call("card", own).code == 0
    with (own / name).open("a") as file:
        file.write("\n")
    ended = call("verify", own / "card.json")
    assert ended.code == 1
    assert f"✗ {name}: another content" in ended.out


def test_measured_values_that_were_changed_with_their_hashes_are_found_by_the_figures(own: Path) -> None:
    """Whoever changes the run and the hashes in its card still has to fit every figure."""
    assert call("card", own).code == 0
    card = json.loads((own / "card.json").read_text())
    events = (own / FILES.events).read_text().replace('"concurrency": 8', '"concurrency": 4')
    (own / FILES.events).write_text(events)
    anew = json.loads(text_of(card_of(StoredRun(own))))
    card |= {"files": anew["files"], "sha256": anew["sha256"]}
    (own / "card.json").write_text(json.dumps(card))
    ended = call("verify", own / "card.json")
    assert ended.code == 1
    assert "✗ points.SELECT c=8" in ended.out


@needs_ssh
def test_a_signature_tells_who_has_signed_and_holds_for_this_card_alone(own: Path, tmp_path: Path) -> None:
    key = key_of(tmp_path)
    signers = tmp_path / "signers"
    signers.write_text(f"ada@example.com {key.with_suffix('.pub').read_text()}")
    assert call("card", own, "--key", key).code == 0
    path = own / "card.json"
    text = path.read_text()
    # An Ed25519 signature has no chance in it: the same run and key have the same bytes.
    assert call("card", own, "--key", key).code == 0
    assert path.read_text() == text
    ended = call("verify", path, "--signers", signers)
    assert ended.code == 0, ended.out
    assert "✓ signed by ada@example.com with the key ED25519 SHA256:" in ended.out
    # Without the file of signers it is known that the signature holds, and not whose it is.
    assert "--signers FILE tells whose it is" in call("verify", path).out
    away = tmp_path / "away.json"
    shutil.move(path, away)
    ended = call("verify", away, "--signers", signers)
    assert ended.code == 0
    assert "no run directory: hashes and figures were not checked" in ended.out
    # Everything that it holds is signed.
    card = json.loads(text)
    for place, value in CHANGES:
        path.write_text(json.dumps(changed(card, *place, value=value)))
        read, signed = read_card(path)
        assert verify(read, signed, None, signers).differs, place
    # Spaces and the order of keys are no content.
    path.write_text(json.dumps(card, sort_keys=True))
    assert call("verify", path, "--signers", signers).code == 0


@needs_ssh
def test_other_keys_other_uses_and_no_signature_are_refused(own: Path, tmp_path: Path) -> None:
    mine, theirs = key_of(tmp_path, "mine"), key_of(tmp_path, "theirs")
    signers = tmp_path / "signers"
    signers.write_text(f"ada@example.com {mine.with_suffix('.pub').read_text()}")
    path = own / "card.json"
    assert call("card", own).code == 0
    ended = call("verify", path, "--signers", signers)
    assert (ended.code, "✗ it is not signed" in ended.out) == (1, True)
    assert call("card", own, "--key", theirs).code == 0
    ended = call("verify", path, "--signers", signers)
    assert ended.code == 1
    assert "signed with a key that" in ended.out
    # A signature that was made for something else, such as a commit.
    card, signed = read_card(path)
    other = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-q", "-f", mine, "-n", "git"],
        input=signed, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert not ssh.check(signed, other, signers).holds
    assert not ssh.check(signed, other, None).holds
    path.write_text(text_of(card.model_copy(update={"signature": "no signature"})))
    assert call("verify", path).code == 1


@needs_ssh
def test_a_signature_can_be_checked_without_nephoscope(own: Path, tmp_path: Path) -> None:
    """As docs/cards.md says it."""
    key = key_of(tmp_path)
    assert call("card", own, "--key", key).code == 0
    card = json.loads((own / "card.json").read_text())
    (tmp_path / "signature").write_text(card.pop("signature"))
    signed = json.dumps(card, sort_keys=True, separators=(",", ":")) + "\n"
    subprocess.run(
        ["ssh-keygen", "-Y", "check-novalidate", "-n", "nephoscope-card", "-s", tmp_path / "signature"],
        input=signed, text=True, check=True, capture_output=True,
    )  # fmt: skip


def test_without_ssh_keygen_a_message_says_so(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(own))
    (own / "key").write_text("")
    ended = call("card", own, "--key", own / "key")
    assert ended.code == 2
    assert "ssh-keygen is not on the path" in ended.err
    assert not (own / "card.json").exists()


@needs_ssh
def test_wrong_keys_are_refused_before_anything_is_written(own: Path) -> None:
    ended = call("card", own, "--key", own / "none")
    assert (ended.code, "is not a key: No such file" in ended.err) == (2, True)
    (own / "key").write_text("no key")
    (own / "key").chmod(0o600)
    ended = call("card", own, "--key", own / "key")
    assert (ended.code, "it cannot sign" in ended.err) == (2, True)
    assert not (own / "card.json").exists()
    ended = call("verify", own / "manifest.json", "--signers", own / "none")
    assert (ended.code, "is not a file of allowed signers" in ended.err) == (2, True)


def test_a_card_without_a_run_and_a_signature_cannot_be_checked(planted: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    assert call("card", planted, "--out", path).code == 0
    assert not (planted / "card.json").exists()
    ended = call("verify", path)
    assert ended.code == 3
    assert "nothing to check it by" in ended.err


def test_only_whole_runs_have_cards(own: Path) -> None:
    manifest = json.loads((own / "manifest.json").read_text())
    (own / "manifest.json").write_text(json.dumps(manifest | {"status": "failed"}))
    ended = call("card", own)
    assert (ended.code, "its status is failed; a card is of a run that was measured" in ended.err) == (
        2,
        True,
    )


HOSTILE = {
    "not JSON": "{",
    "a list": "[]",
    "a later format": '{"format": 2}',
    "an unknown key": '{"format": 1, "surprise": true}',
    "nested without an end": "[" * 100_000,
    "a number beyond all measure": '{"format": 1e400}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_card_is_refused_in_one_line(planted: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(content)
    for command in (("verify", path, planted), ("board", path, "--out", tmp_path / "board.html")):
        ended = call(*command)
        assert ended.code == 2
        assert str(path) in ended.err
        assert "Traceback" not in ended.err
    assert not (tmp_path / "board.html").exists()


def test_foreign_cards_are_limited_as_other_foreign_files(planted: Path, tmp_path: Path) -> None:
    whole = json.loads(text_of(card_of(StoredRun(planted))))
    path = tmp_path / "card.json"
    for place, value, message in (
        (("scores", "P", "value"), "fast", "scores.P.value"),
        (("files", "0", "name"), "../../etc/passwd", "files.0.name"),
        (("study",), "x" * (2**20 + 1), "a text has more than"),
        (("scores", "P", "repetitions"), 0, "scores.P.repetitions"),
        (("host", "name"), "\ud800", "half of a surrogate pair"),
    ):
        path.write_text(json.dumps(changed(whole, *place, value=value)))
        ended = call("verify", path, planted)
        assert (ended.code, message in ended.err) == (2, True), ended.err
    path.write_bytes(b" " * (4 * 2**20 + 1))
    assert "larger than 4 MiB" in call("verify", path).err
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "it is a device" in call("verify", path).err


def test_a_link_in_a_foreign_run_is_not_followed(own: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (own / "card.json").symlink_to(precious)
    assert call("card", own).code == 0
    assert precious.read_text() == "mine"
    assert not (own / "card.json").is_symlink()


def test_the_schema_in_the_docs_is_that_of_the_card() -> None:
    schema = Path(__file__).parents[2] / "docs" / "card.schema.json"

    assert json.loads(schema.read_text()) == json_schema()


def test_signed_text_is_ascii_with_sorted_keys() -> None:
    assert signed_text({"b": "é", "a": 1.5, "signature": "x"}) == '{"a":1.5,"b":"\\u00e9"}\n'
