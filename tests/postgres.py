"""A PostgreSQL server of a test's own, where one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

__all__ = ["Postgres", "folder_of_postgres", "postgres"]


@frozen
class Postgres:
    """A running server, whose socket is in `folder`."""

    programs: Path
    folder: str

    @property
    def uri(self) -> str:
        return f"postgresql:///postgres?host={self.folder}&user=lake"

    def query(self, statements: str) -> str:
        """Return what `psql` prints: a line for each row, with bars between values."""
        command = [self.programs / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [*command, "-d", self.uri, "-c", statements],
            check=True, stdout=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
        return done.stdout.strip()


def folder_of_postgres() -> Path | None:
    """Return the folder of the newest server's programs, or None."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def postgres(programs: Path) -> Generator[Postgres]:
    """Run a server with an empty database. It listens on a Unix socket only."""
    # PostgreSQL refuses to run as root, so another user must be able to enter the folder.
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        if user is not None:
            shutil.chown(name, user)
        data = f"{name}/data"

        def run(*command: str) -> None:
            subprocess.run(
                [str(programs / command[0]), *command[1:]],
                check=True, user=user, cwd=name, stdout=subprocess.DEVNULL, timeout=120,
            )  # fmt: skip

        run("initdb", "-D", data, "-U", "lake", "--no-sync")
        settings = f"-c listen_addresses= -c fsync=off -k {name}"
        run("pg_ctl", "-D", data, "-w", "-t", "100", "-l", f"{name}/log", "-o", settings, "start")
        try:
            yield Postgres(programs, name)
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
