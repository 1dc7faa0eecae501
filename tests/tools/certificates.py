"""An authority that signs certificates of servers, by openssl."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nephoscope.systems.machine.account import Account

_CA = """[ca]
default_ca=d
[d]
database={0}/index
new_certs_dir={0}
rand_serial=yes
default_md=sha256
policy=p
unique_subject=no
[p]
commonName=supplied
"""


class Certificates:
    """An authority in a folder."""

    def __init__(self, folder: Path, owner: Account | None = None) -> None:
        self.root = folder / "root.crt"
        self._folder = folder
        self._owner = owner
        (folder / "ca.conf").write_text(_CA.format(folder))
        (folder / "index").touch()
        self._openssl(
            "req -x509 -newkey ec:p256 -noenc -days 30 -subj /CN=root -keyout root.key -out root.crt"
        )

    def _openssl(self, line: str) -> None:
        words = line.replace("ec:p256", "ec -pkeyopt ec_paramgen_curve:P-256").split()
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True)

    def sign(
        self, name: str, names: str, start: str = "20200101000000Z", end: str = "20491231000000Z"
    ) -> None:
        """Make ``name.crt`` and ``name.key`` for alternative names in OpenSSL's words."""
        (self._folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        self._openssl(f"req -newkey ec:p256 -noenc -subj /CN={name} -keyout {name}.key -out {name}.csr")
        self._openssl(
            f"ca -batch -notext -config ca.conf -cert root.crt -keyfile root.key -in {name}.csr"
            f" -startdate {start} -enddate {end} -extfile {name}.ext -out {name}.crt"
        )
        key = self._folder / f"{name}.key"
        key.chmod(0o600)
        if self._owner is not None and self._owner.other:
            shutil.chown(key, self._owner.uid, self._owner.gid)
