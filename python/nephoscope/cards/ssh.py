"""Signatures by OpenSSH (``ssh-keygen -Y``): users have such keys, and other programs check the same signatures.

The format is SSHSIG (OpenSSH's ``PROTOCOL.sshsig``), the namespace `NAMESPACE`; whose key it is says a file of allowed
signers, as ``git`` and ``ssh-keygen(1)`` have it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nephoscope.errors import InputError
from nephoscope.files import USER_FILE_BYTES, open_regular

NAMESPACE = "nephoscope-card"
"""What the signatures are for: one that was made for something else does not hold."""
_PROGRAM = "ssh-keygen"
_LIMIT_S = 120.0
"""A passphrase is typed within this time."""


@dataclass(frozen=True)
class Signed:
    """The outcome of checking a signature."""

    holds: bool
    said: str
    """Who has signed, or why it does not hold."""


def check_key(key: Path) -> None:
    """Check that a file can be a key, before anything is computed. Raises ``InputError``."""
    _program()
    _check_file(key, "a key")


def check_signers(signers: Path) -> None:
    """Check a file of allowed signers. Raises ``InputError``."""
    _program()
    _check_file(signers, "a file of allowed signers")


def sign(text: str, key: Path) -> str:
    """Sign a text with a private key, or with a public one whose private key an agent holds. Raises ``InputError``."""
    ended = _call(["-Y", "sign", "-q", "-f", str(key.absolute()), "-n", NAMESPACE], text)
    if ended.returncode:
        raise InputError(f"{key}: it cannot sign: {_said(ended)}")
    return ended.stdout


def check(text: str, signature: str, signers: Path | None) -> Signed:
    """Check the signature of a text; with ``signers`` also whose key it is."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-") as folder:
        file = Path(folder) / "signature"
        file.write_text(signature, encoding="utf-8", errors="replace")
        of = ["-n", NAMESPACE, "-s", str(file)]
        if signers is None:
            ended = _call(["-Y", "check-novalidate", *of], text)
            if ended.returncode:
                return Signed(holds=False, said=f"the signature does not hold: {_said(ended)}")
            key = _key_in(ended.stdout)
            return Signed(holds=True, said=f"signed with the key {key}; --signers FILE tells whose it is")
        allowed = ["-f", str(signers.absolute())]
        found = _call(["-Y", "find-principals", *allowed, "-s", str(file)], text)
        names = found.stdout.split("\n")[0].split(",")
        if found.returncode or not names[0]:
            return Signed(
                holds=False, said=f"signed with a key that {signers} does not have, or no signature at all"
            )
        ended = _call(["-Y", "verify", *allowed, "-I", names[0], *of], text)
        if ended.returncode:
            return Signed(holds=False, said=f"the signature does not hold: {_said(ended)}")
        return Signed(holds=True, said=f"signed by {names[0]} with the key {_key_in(ended.stdout)}")


def _key_in(text: str) -> str:
    """Return the kind and the fingerprint of the key in what was printed."""
    return text.strip().rpartition(" with ")[2].replace(" key ", " ", 1)


def _check_file(path: Path, what: str) -> None:
    try:
        with open_regular(path, USER_FILE_BYTES):
            pass
    except OSError as error:
        raise InputError(f"{path} is not {what}: {error.strerror or error}") from None


def _program() -> str:
    found = shutil.which(_PROGRAM)
    if found is None:
        raise InputError(
            f"{_PROGRAM} is not on the path: signatures are OpenSSH's; install its client (openssh-client)"
        )
    return found


def _call(words: list[str], text: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [_program(), *words], input=text, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{_PROGRAM} did not end within {_LIMIT_S:g} s") from None


def _said(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that the program has said."""
    lines = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
    return lines[-1].strip() if lines else f"{_PROGRAM} ended with {ended.returncode}"
