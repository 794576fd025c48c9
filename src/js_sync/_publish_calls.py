# Generated from src/js_async/_publish_calls.py by codegen/twin.py. Edit that file instead.
"""The calls of a JetStream context that publish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from twinstream.core.deadline import Seconds, seconds
from twinstream.core.publish.fast_ingest import INTERVALS, MAX_INTERVAL, Gaps, check_gaps
from twinstream.core.wire.headers import HeaderValues
from twinstream.core.base.nats_py_names import hint_keywords
from twinstream.core.publish.request import Publishable, Rollup, request_of
from twinstream.core.publish.limits import WINDOW, WINDOW_BYTES, PublishLimits
from twinstream.core.publish.retry import retry_policy
from twinstream.core.wire.subjects import check_name
from twinstream.core.publish.ttl import Ttl
from twinstream.models import PubAck
from js_sync.api.api import Api, ApiCalls
from js_sync.publish.publish import publish
from js_sync.publish.publish_many import PublishMany
from js_sync.publish.publisher import Publisher

if TYPE_CHECKING:
    from js_sync.publish.fast_ingest import FastIngest

__all__ = ["PublishCalls"]


class PublishCalls(ApiCalls):
    """The part of a JetStream context that publishes."""

    @hint_keywords
    def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expected_stream: str | None = None,
        expected_last_seq: int | None = None,
        expected_last_msg_id: str | None = None,
        expected_last_subject_seq: int | None = None,
        expected_last_subject_seq_subject: str | None = None,
        rollup: Rollup | None = None,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
    ) -> PubAck:
        """Store a message and return the stream's acknowledgement.

        `msg_id` makes a repeat within the stream's duplicate window harmless: its acknowledgement
        has `duplicate` set and the first one's sequence. An id that is empty, or begins or ends
        with blanks, is refused: the server would take it for another one. The `expected_…`
        arguments are conditions under which alone the message is stored; the last sequence of the
        subject may be that of another one, or of a filter (`expected_last_subject_seq_subject`).
        `rollup` removes what the subject (`"sub"`) or the stream (`"all"`) held before; `ttl` is
        the message's life in whole seconds, or `"never"` to keep it beyond the stream's `max_age`;
        a stream with `subject_delete_marker_ttl` raises a shorter one to that (all 2.11).

        When nobody takes the message it is sent again up to `retries` times, `retry_wait` seconds
        apart; by default twice, and until the timeout where its stream has no leader now. After a
        time-out or a broken link that happens only where a `msg_id` or an expectation keeps it
        from being stored twice. `timeout` in seconds spans everything.

        Raises `NoStream`, `NoLeader`, `JetStreamOff` or another `NoResponders` when no stream took
        it; `WrongLastSequence`, `WrongLastMessageId`, `WrongStream`, `StoreRefused`,
        `MessageExists` or another `JetStreamError`; `PermissionDenied`, `BadArgument`;
        `RequestTimeout`, `ConnectionLost`, `ConnectionClosed`, `BadAnswer` or `OutcomeUnknown`
        when it may be stored and may be not.
        """
        request = request_of(
            (
                subject,
                data,
                headers,
                msg_id,
                expected_stream,
                expected_last_seq,
                expected_last_msg_id,
                expected_last_subject_seq,
                expected_last_subject_seq_subject,
                rollup,
                ttl,
            )
        )
        return publish(self._api, request, retry_policy(retries, retry_wait), timeout)

    def publish_many(
        self,
        requests: Iterable[Publishable],
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> PublishMany:
        """Publish without waiting for each acknowledgement; iterate over the outcomes in order.

        A message is a `PublishRequest`, or a pair of subject and data where that is all there is.
        At most `window` messages and `window_bytes` bytes are under way. `timeout` in seconds is
        for each message. An outcome is the acknowledgement or a `PublishFailure` with the error.
        Messages are sent again as by `publish`, which may change their order.

        Failures whose `error` the program did not read raise `PublishFailures`: at the end of the
        `with` block or at `close`, without either at the end of the iteration. With
        `raise_failures=False` the program alone looks after them.
        """
        limits = _limits(self._api, window, window_bytes, timeout, retries, retry_wait)
        return PublishMany(self._api, requests, limits, raise_failures)

    def publisher(
        self,
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> Publisher:
        """Return a publisher that sends one by one and waits only when its window is full.

        The arguments are those of `publish_many`.
        """
        limits = _limits(self._api, window, window_bytes, timeout, retries, retry_wait)
        return Publisher(self._api, limits, raise_failures)

    def fast_ingest(
        self,
        stream: str,
        requests: Iterable[Publishable],
        *,
        gaps: Gaps = "fail",
        window: int = INTERVALS * MAX_INTERVAL,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> FastIngest:
        """Publish into a stream with `allow_batched`, acknowledged in intervals (server 2.14).

        Messages are given as to `publish_many`. Iterate over the outcomes, in order: `Ingested`,
        which has no sequence as none is told, or a `PublishFailure`. At most `window` messages and
        `window_bytes` bytes are under way.

        After a message that fails, those behind it are sent again, in their order. With
        `gaps="ok"` the stream goes on behind one that failed or got lost, and `Ingested` says
        only that the server is past a message. After `timeout` seconds without an answer, or a
        broken link, what is not acknowledged fails with `OutcomeUnknown`, unless it has a `msg_id`
        and no condition: then it is sent again. The connection's `on_call` is not told of these
        messages, as they are not acknowledged one by one.

        Iterating raises `Unsupported` before server 2.14, `BadArgument` where the stream does not
        allow it, `StreamNotFound`.
        """
        from js_sync.publish.fast_ingest import FastIngest

        limits = _limits(self._api, window, window_bytes, timeout, retries, retry_wait)
        name = check_name(stream, "stream")
        return FastIngest(self._api, name, requests, check_gaps(gaps), limits, raise_failures)


def _limits(
    api: Api,
    window: int,
    window_bytes: int,
    timeout: Seconds | None,
    retries: int | None,
    retry_wait: Seconds,
) -> PublishLimits:
    return PublishLimits(
        window=window,
        window_bytes=window_bytes,
        timeout=api.timeout if timeout is None else seconds(timeout),
        retry=retry_policy(retries, retry_wait),
    )
