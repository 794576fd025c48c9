"""The program that changes keys while another process watches them.

`python -m tests.bench.key_values.writer URL BUCKET COUNT` connects, prints a line, waits for a
line, and writes a new value to each of the keys. `Writer` starts it.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final, Self

import js_sync
from tests.bench.key_values.run import VALUE, key

__all__ = ["Writer"]


class Writer:
    """A process that changes keys once it is asked to; it is ready when the block is entered."""

    def __init__(self, url: str, bucket: str, count: int) -> None:
        self._command: Final = [sys.executable, "-m", __name__, url, bucket, str(count)]

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise ValueError("the writer did not start")
        return self

    def begin(self) -> None:
        """Let the process write."""
        assert self._process.stdin is not None
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()
        if kind is None and self._process.returncode:
            raise ValueError("the writer failed")


def write(url: str, bucket: str, count: int) -> None:
    """Change the keys when a line arrives."""
    with js_sync.connect(url) as nc:
        jet = nc.jetstream(timeout=60)
        print("ready", flush=True)
        sys.stdin.readline()
        requests = ((f"$KV.{bucket}.{key(number)}", VALUE) for number in range(count))
        for outcome in jet.publish_many(requests):
            if isinstance(outcome, js_sync.PublishFailure):
                raise outcome.error


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]))
