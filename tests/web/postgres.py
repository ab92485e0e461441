"""Debian's own PostgreSQL server, for tests: on a folder and a socket of its own, as a user that is not root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
WHY_NOT = "PostgreSQL's server is not installed in /usr/lib/postgresql (scripts/debian_packages.sh does it)"


class Server:
    """A server in a folder. `url` names its data base."""

    def __init__(self, folder: Path):
        self.folder, self.programs = folder, PROGRAMS[-1]
        # initdb refuses root; the Debian package brings a user
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        if self.user:
            shutil.chown(folder, "postgres", "postgres")
        self._run(
            "initdb",
            "--pgdata",
            str(folder / "data"),
            "--auth=trust",
            "--username=tonnage",
            "--no-instructions",
            "--no-sync",
        )
        self.url = f"postgresql://tonnage@/postgres?host={folder}"

    def start(self) -> None:
        settings = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        self._run(
            "pg_ctl",
            "--pgdata",
            str(self.folder / "data"),
            "--wait",
            "--timeout=300",
            "-o",
            settings,
            "-l",
            str(self.folder / "log"),
            "start",
        )

    def stop(self, how: str = "fast") -> None:
        """`immediate` is a crash: nothing is written any more."""
        self._run("pg_ctl", "--pgdata", str(self.folder / "data"), "--wait", "-m", how, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self.user, str(self.programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )


@contextmanager
def server() -> Iterator[Server]:
    """A new one, in a short path: a socket's name has at most 107 bytes. In memory, where nobody else keeps the disk
    busy: that processes die is what is tested, and what they wrote is then as safe there.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="tonnage-pg-", dir=memory if os.access(memory, os.W_OK) else "/tmp"
    ) as name:
        made = Server(Path(name))
        made.start()
        try:
            yield made
        finally:
            made.stop("immediate")
