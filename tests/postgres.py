"""A PostgreSQL server of a test's own, where one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["folder_of_postgres", "postgres"]


def folder_of_postgres() -> Path | None:
    """Return the folder of the newest server's programs, or None."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def postgres(programs: Path) -> Iterator[str]:
    """Run a server with an empty database; yield its URI. It listens on a Unix socket only."""
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
            yield f"postgresql:///postgres?host={name}&user=lake"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
