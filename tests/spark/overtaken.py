"""A command that waits for the answer to a commit, while another machine takes its lock over.

The proxy before the store is in a process of its own. deltalake holds Python's lock while it
changes properties of a table, so a proxy in the process of the command could not answer.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Event, Lock
from typing import Final

from attrs import evolve
from deltalake import DeltaTable

from tests.s3_proxy import Fault, S3Proxy, S3Request
from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.tables.open_sink import open_sink

__all__ = ["Overtaken", "overtaken_at", "versions_of"]

# Seconds for which the command waits for an answer.
_PATIENCE: Final = 120.0

# Seconds for the start and the end of the process.
_BUSY: Final = 60.0

_COMMIT: Final = re.compile(r"/orders/_delta_log/\d+\.json$")


class Overtaken:
    """The pipeline as the command sees it, and its tables after the lock was taken over."""

    def __init__(self, config: PipelineConfig, answers: Connection) -> None:
        self.config: Final = config
        self._answers: Final = answers

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the tables when the next owner of the lock had ended."""
        assert self._answers.poll(_BUSY), "the command made fewer commits"
        found: dict[str, int] = self._answers.recv()
        return found


def versions_of(config: PipelineConfig) -> dict[str, int]:
    """Return the versions of the tables whose names begin with `orders`."""
    assert isinstance(config.path, ObjectFolder)
    options = delta_options(config.path.storage)
    return {
        name: DeltaTable(str(config.path / name), storage_options=options).version()
        for name in open_sink(config).existing("orders")
    }


@contextmanager
def overtaken_at(config: PipelineConfig, number: int) -> Generator[Overtaken]:
    """Let another machine take the lock over before commit `number`, from 1, to `orders` is stored.

    The block works with the pipeline that it gets. The other machine ends before the commit is
    passed on to the server.
    """
    spawn = multiprocessing.get_context("spawn")
    answers, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(config, number, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        assert answers.poll(_BUSY)
        assert isinstance(config.path, ObjectFolder)
        storage = evolve(config.path.storage, endpoint=answers.recv(), timeout=_PATIENCE)
        yield Overtaken(evolve(config, path=evolve(config.path, storage=storage)), answers)
    finally:
        answers.close()
        process.join(_BUSY)
    assert process.exitcode == 0


def _serve(config: PipelineConfig, number: int, answers: Connection) -> None:
    assert isinstance(config.path, ObjectFolder)
    fault = _fault(number, lambda: answers.send(_taken_over(config)))
    with S3Proxy(config.path.storage.endpoint, fault) as proxy:
        answers.send(proxy.url)
        try:
            answers.recv()  # until the other end is closed
        except EOFError:
            pass


def _taken_over(config: PipelineConfig) -> dict[str, int]:
    vacuum(config)
    return versions_of(config)


def _fault(number: int, take_over: Callable[[], None]) -> Callable[[S3Request], Fault]:
    """Return what happens to requests. From the commit on, none renews the lock."""
    late, counting, left = Event(), Lock(), number

    def fault(request: S3Request) -> Fault:
        nonlocal left
        if request.method == "PUT" and _COMMIT.search(request.key):
            with counting:
                left -= 1
                is_now = left == 0
            if is_now:
                late.set()
                take_over()
        is_lock = request.method == "PUT" and request.key.endswith("maintenance.json")
        return "expired" if late.is_set() and is_lock else ""

    return fault
