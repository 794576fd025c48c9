"""What the driver asks the leaders of streams, over one connection, through short troubles."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from twinstream.errors import (
    ConnectionLost,
    JetStreamError,
    MessageNotFound,
    NoResponders,
    RequestTimeout,
)
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_state import StreamState, stored_at, stream_state

if TYPE_CHECKING:
    from js_sync import Connection, JetStream

__all__ = ["Leader"]

_T = TypeVar("_T")


def _never() -> bool:
    return False


class Leader:
    """Asks for the states of the streams of a read.

    The connection is made at the first question and kept. A question that meets a lost link or
    a leader election is repeated as often as ``fetchOffset.numRetries`` says: an error on the
    driver ends a whole streaming query. It is not repeated once ``is_to_end`` says so. Copies in
    other processes connect anew.
    """

    def __init__(self, options: SourceOptions, is_to_end: Callable[[], bool] = _never) -> None:
        self._options = options
        self._is_to_end = is_to_end
        self._connection: Connection | None = None

    def states(self) -> list[StreamState]:
        """Return the state of each stream, in the order of the option."""
        return [self._ask(partial(stream_state, name=name)) for name in self._options.streams]

    def seq_at(self, stream: str, time: datetime) -> int | None:
        """Return the first sequence at or after a time; None when there is none."""
        return self._next(stream, start_time=time)

    def seq_from(self, stream: str, seq: int) -> int | None:
        """Return the first sequence from one on that the read takes; None when there is none."""
        found = [
            self._next(stream, subject, seq=seq) for subject in self._options.subjects or (">",)
        ]
        return min((each for each in found if each is not None), default=None)

    def _next(self, stream: str, subject: str = ">", **start: Any) -> int | None:
        def question(jet: JetStream) -> int | None:
            handle = jet.bind_stream(stream)
            try:
                return handle.get_next_message(subject, headers=False, **start).seq
            except MessageNotFound:
                # "None" may come from a server that does not lead any more.
                handle.info(confirmed=True)
            try:
                return handle.get_next_message(subject, headers=False, **start).seq
            except MessageNotFound:
                return None

        return self._ask(question)

    def time_at(self, stream: str, seq: int) -> str | None:
        """Return when the message with a sequence was stored; None when there is none."""
        return self._ask(partial(stored_at, stream=stream, seq=seq))

    def _ask(self, question: Callable[[JetStream], _T]) -> _T:
        left = self._options.fetch_retries
        while True:
            try:
                return question(self.jet())
            except (ConnectionLost, NoResponders, RequestTimeout):
                if not left or self._is_to_end():
                    raise
            except JetStreamError as error:
                # 503: the cluster has no leader for this just now.
                if error.code != 503 or not left or self._is_to_end():
                    raise
            left -= 1
            time.sleep(self._options.fetch_retry_interval)

    def jet(self) -> JetStream:
        """Return a context on the connection, which is made if need be."""
        settings = self._options.connection
        if self._connection is None or self._connection.is_closed:
            self._connection = settings.connect()
        return self._connection.jetstream(domain=settings.domain, prefix=settings.api_prefix)

    def close(self) -> None:
        """Close the connection; the next question makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> SourceOptions:
        return self._options

    def __setstate__(self, options: SourceOptions) -> None:
        self._options = options
        self._is_to_end = _never
        self._connection = None
