"""Processes of Spark that tests start beside their own session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import js_sync
from tests.quick_java import QUICK_JAVA
from tests.soak import LONGEST
from twinstream.spark.session.java import ensure
from twinstream.testing.guard import Guard

ROOT = Path(__file__).parents[2]


def package_folder(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def job_environment(path: str = "") -> dict[str, str]:
    """Return the environment of a job that runs apart: it may import `tests` beside a path."""
    paths = [path or os.environ.get("PYTHONPATH", ""), str(ROOT)]
    return {"PYTHONPATH": os.pathsep.join(each for each in paths if each)}


def connect_path() -> str:
    """What `PYTHONPATH` holds of a program on Spark Connect: this package, and what it needs.

    The packages of Spark Connect stand apart, where no other test finds them.
    """
    source = Path(js_sync.__file__).parents[1]
    return os.pathsep.join((str(source), str(Path(sys.prefix) / "connect")))


class SparkProcess:
    """One Java process of Spark; it is ready when its log says so.

    `ready` is a pattern of that line, and `found` what matched it. It works in `folder`.
    """

    def __init__(
        self, folder: Path, name: str, ready: str, arguments: list[str], **environment: str
    ) -> None:
        self.folder = folder
        self.log = folder / f"{name}.log"
        program = package_folder("pyspark") / "bin" / "spark-class"
        variables = os.environ | {
            "JAVA_HOME": str(ensure()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "PYTHONPATH": "",
            **QUICK_JAVA,
            **environment,
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, *arguments], stdout=log, stderr=log, env=variables, cwd=folder
            )
        self._guard = Guard(self._process.pid, None)
        try:
            self.found = self._await(ready)
        except BaseException:
            self._end()
            raise

    def _await(self, ready: str) -> str:
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            found = re.search(ready, self.log.read_text())
            if found:
                return found[0]
            assert self._process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError(f"not ready in time: {self.log.read_text()[-3000:]}")

    def __enter__(self) -> SparkProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._guard.dismiss()
