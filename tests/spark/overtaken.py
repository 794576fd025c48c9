"""A command that waits for the answer to a commit, while another machine takes its lock over."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

from attrs import evolve
from deltalake import DeltaTable

from tests.proxy_process import proxy_process
from tests.s3_proxy import Fault, S3Request
from tests.soak import LONGEST
from tests.spark.drivers import with_lease
from twinstream.lake.objects.client import delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.tables.open_sink import open_sink

__all__ = ["Overtaken", "overtaken_at", "versions_of"]

_COMMIT: Final = re.compile(r"/orders/_delta_log/\d+\.json$")


class Overtaken:
    """The pipeline as the command sees it, and its tables after the lock was taken over."""

    def __init__(self, config: PipelineConfig, found: Connection) -> None:
        self.config: Final = config
        self._found: Final = found

    @property
    def is_over(self) -> bool:
        """Whether the other machine has taken the lock over, and has ended."""
        return self._found.poll(0)

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the tables when the next owner of the lock had ended."""
        found: dict[str, int] = self._found.recv()
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
    assert isinstance(config.path, ObjectFolder)
    storage = config.path.storage
    found, theirs = multiprocessing.Pipe(duplex=False)
    overtaking = _Overtaking(config, number, theirs)
    with proxy_process([storage.endpoint], overtaking, LONGEST) as (url,):
        slow = evolve(storage, endpoint=url, timeout=LONGEST)
        asleep = with_lease(evolve(config, path=evolve(config.path, storage=slow)))
        yield Overtaken(asleep, found)


class _Overtaking:
    """What happens to requests. From the commit on, none renews the lock."""

    def __init__(self, config: PipelineConfig, number: int, found: Connection) -> None:
        self._config: Final = config
        self._left = number
        self._found: Final = found

    def __call__(self, request: S3Request) -> Fault:
        if request.method != "PUT":
            return ""
        if _COMMIT.search(request.key):
            self._left -= 1
            if self._left == 0:
                vacuum(self._config)
                self._found.send(versions_of(self._config))
        is_late = self._left <= 0
        return "expired" if is_late and request.key.endswith("maintenance.json") else ""
