"""Send requests to the leaders of streams, on one connection and with retries."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from twinstream.core.read.read_request import SnapshotRequest
from twinstream.core.read.snapshot import LastSeqs, Latest
from twinstream.errors import MessageNotFound, TwinstreamError
from twinstream.errors.transient import is_transient
from twinstream.spark.client.retry import through
from twinstream.spark.errors import OptionError
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_state import StreamState, stored_at, stream_state

if TYPE_CHECKING:
    from js_sync import Connection, JetStream
    from twinstream.core.read.page import StoredPage

__all__ = ["Leader"]

_T = TypeVar("_T")


def _never() -> bool:
    return False


class Leader:
    """A client that requests states and messages of the streams of a read from their leaders.

    The first request opens the connection, which stays open until `close`. A request is retried
    after a transient error, such as a lost connection or a leader election, because an error on the
    driver ends a whole streaming query. `last_seqs` and `last_messages` retry for up to
    `fetchTimeoutMs`. The other requests are retried up to `fetchOffset.numRetries` times, and
    not after `is_to_end` has returned true. A copy made by pickle opens its own connection.
    """

    def __init__(self, options: SourceOptions, is_to_end: Callable[[], bool] = _never) -> None:
        self._options = options
        self._is_to_end = is_to_end
        self._connection: Connection | None = None

    def states(self) -> list[StreamState]:
        """Return the state of each stream, in the order of the option `stream`.

        Streams that a pattern selects are in the order of their names. Raises `OptionError` if a
        stream does not exist or the pattern selects none.
        """
        options = self._options
        names = options.streams if options.pattern is None else self._matching(options.pattern)
        return [
            self.retried(partial(stream_state, name=name, bucket=options.bucket)) for name in names
        ]

    def _matching(self, pattern: str) -> list[str]:
        names = self.retried(lambda jet: list(jet.stream_names()))
        found = sorted(name for name in names if re.fullmatch(pattern, name))
        if not found:
            raise OptionError(
                "subscribePattern",
                f"{pattern!r} matches none of the {len(names)} streams; it is a regular expression"
                " for whole names",
            )
        return found

    def seq_at(self, stream: str, time: datetime) -> int | None:
        """Return the sequence of the first message that was stored at or after a time.

        The filters do not apply. Return `None` if there is no such message.
        """
        return self._next_seq(stream, start_time=time)

    def seq_from(self, stream: str, seq: int) -> int | None:
        """Return the sequence of the first message at or after `seq` that the filters match.

        Return `None` if there is no such message.
        """
        found = [
            self._next_seq(stream, subject, seq=seq) for subject in self._options.subjects or (">",)
        ]
        return min((each for each in found if each is not None), default=None)

    def last_seqs(self, stream: str) -> tuple[int, dict[bytes, int]]:
        """Take a snapshot; return its sequence, and the sequence of each subject's last message.

        The dictionary has the subjects that the filters match. Only messages up to the sequence of
        the snapshot are considered.
        """
        from js_sync.read.snapshot import collect

        subjects, timeout = self._options.subjects, self._options.fetch_timeout
        request = SnapshotRequest(subjects=subjects, timeout=timeout)

        def collected() -> tuple[int, dict[bytes, int]]:
            latest = LastSeqs()
            return collect(self.jet()._api, stream, request, latest), latest.by_subject

        return through(collected, timeout)

    def last_messages(self, stream: str, subjects: Sequence[str]) -> StoredPage:
        """Return the last message of each subject, in the order of their sequences."""
        from js_sync.read.snapshot import collect

        timeout = self._options.fetch_timeout
        request = SnapshotRequest(subjects=tuple(subjects), timeout=timeout)

        def collected() -> StoredPage:
            latest = Latest()
            collect(self.jet()._api, stream, request, latest)
            return latest.page(stream)

        return through(collected, timeout)

    def _next_seq(self, stream: str, subject: str = ">", **start: Any) -> int | None:
        """Return the sequence of the first message of `subject` at or after the start.

        `start` is `seq` or `start_time`. Return `None` if there is no such message.
        """

        def request(jet: JetStream) -> int | None:
            handle = jet.bind_stream(stream)
            try:
                return handle.get_next_message(subject, headers=False, **start).seq
            except MessageNotFound:
                # The replica that responded may lack the message. Wait for a response that is
                # certainly the leader's, then repeat the request.
                handle.info(confirmed=True)
            try:
                return handle.get_next_message(subject, headers=False, **start).seq
            except MessageNotFound:
                return None

        return self.retried(request)

    def time_at(self, stream: str, seq: int) -> str | None:
        """Return when the message `seq` was stored (RFC 3339), or `None` if there is none."""
        return self.retried(partial(stored_at, stream=stream, seq=seq))

    def retried(self, request: Callable[[JetStream], _T]) -> _T:
        """Return the result of `request`, which is repeated after transient errors."""
        retries_left = self._options.fetch_retries
        while True:
            try:
                return request(self.jet())
            except TwinstreamError as error:
                if not is_transient(error) or not retries_left or self._is_to_end():
                    raise
            retries_left -= 1
            time.sleep(self._options.fetch_retry_interval)

    def jet(self) -> JetStream:
        """Return a JetStream context on the connection. Open the connection if necessary."""
        settings = self._options.connection
        if self._connection is None or self._connection.is_closed:
            self._connection = settings.connect()
        return self._connection.jetstream(domain=settings.domain, prefix=settings.api_prefix)

    def close(self) -> None:
        """Close the connection. The next request opens a new one."""
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
