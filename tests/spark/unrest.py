"""A cluster whose streams change their leaders while Spark works on them."""

from __future__ import annotations

import random
import threading
from typing import Final, Self

import js_sync
from js_sync import Stream
from twinstream.errors import TwinstreamError

__all__ = ["Unrest"]


class Unrest:
    """Lets the leaders of streams step down, one after the other, `most` times at most.

    Peace comes by itself in the end: on a machine that needs longer for a piece of work than lies
    between two changes, nothing would ever be finished otherwise. `changes` counts the times
    that another server led afterwards.
    """

    def __init__(self, url: str, *streams: str, most: int, seed: int) -> None:
        self.changes = 0
        self._url: Final = url
        self._streams: Final = streams
        self._most: Final = most
        self._dice: Final = random.Random(seed)
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, name="unrest")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        """Whether there will be no more changes."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        with js_sync.connect(self._url, connect_timeout=60) as nc:
            jet = nc.jetstream()
            streams = [jet.bind_stream(name) for name in self._streams]
            while self.changes < self._most and not self._stop.is_set():
                self.changes += _change(self._dice.choice(streams))
                self._stop.wait(self._dice.uniform(0.05, 0.4))


def _change(stream: Stream) -> bool:
    """Let the leader step down; tell whether another one leads now."""
    try:
        before = _leader(stream)
        stream.replicas.step_down()
        # The old one answers for a moment until the new one is known.
        for _ in range(50):
            if _leader(stream) not in {before, None}:
                return True
    except TwinstreamError:
        pass  # a leader that steps down may do so without an answer, and then nobody leads
    return False


def _leader(stream: Stream) -> str | None:
    cluster = stream.info().cluster
    return cluster.leader if cluster is not None else None
