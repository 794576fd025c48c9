"""Fast ingest: send many messages into one stream that acknowledges groups of messages.

Needs server 2.14 (ADR-50).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Final

from js_async import JetStream, PublishFailure
from js_async.extension import Outcomes, api_of
from js_async.fast_ingest.ingest import Ingest
from twinstream.core.deadline import Seconds
from twinstream.core.publish.fast_ingest import Gaps, Ingested, check_gaps
from twinstream.core.publish.fast_messages import FastMessage
from twinstream.core.publish.limits import INGEST_WINDOW, WINDOW_BYTES, limits_of
from twinstream.core.wire.subjects import check_name
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable

__all__ = ["FastIngest"]


class FastIngest(Outcomes[FastMessage, Ingested | PublishFailure]):
    """An iterator that publishes messages to a stream with `allow_batched`, in order.

    The server acknowledges several messages with one response (server 2.14). The iterator yields
    the outcome of each message, in order. An outcome is `Ingested`, which has no sequence because
    the server reports none, or a `PublishFailure`.

    With `gaps="fail"`, the messages after a failed message are sent again, in order. After
    `timeout` seconds without a response, or a lost connection, messages with a `msg_id` and without
    an expectation are sent again. All other unacknowledged messages fail with `OutcomeUnknown`. The
    connection's `on_call` gets no report of these messages.

    The constructor sends no request. If the iteration was left early, the end of a `with` block
    ends the batch. Failures whose `error` was not read are raised as in `PublishMany`. Only one
    task or thread at a time may use the object.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        requests: Messages, as in `JetStream.publish_many`.
        gaps: "fail" or "ok". With "ok", the server continues after a failed or lost message, and
            `Ingested` does not mean that the message is stored.
        window: Maximum number of messages in flight.
        window_bytes: Maximum number of bytes in flight.
        timeout: Seconds without a response.
        retries: As in `JetStream.publish`.
        retry_wait: As in `JetStream.publish`.
        raise_failures: As in `JetStream.publish_many`.

    Raises:
        Unsupported: The server is older than 2.14. The iteration raises this and the following
            errors.
        BadArgument: The stream does not have `allow_batched`.
        StreamNotFound: The stream does not exist.
    """

    _call = "FastIngest"

    def __init__(
        self,
        jet: JetStream,
        stream_name: str,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        *,
        gaps: Gaps = "fail",
        window: int = INGEST_WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> None:
        api = api_of(jet)
        limits = limits_of(api.timeout, window, timeout, window_bytes, retries, retry_wait)
        ingest = Ingest(api, check_name(stream_name, "stream"), check_gaps(gaps), limits)
        # `Ingest.send` waits until the server has acknowledged enough messages.
        super().__init__(ingest, requests, raise_failures)
        self._ingest: Final = ingest

    @property
    def in_flight(self) -> int:
        """Number of messages whose outcome the iterator has not returned yet."""
        return len(self._order)

    @property
    def last_ack(self) -> PubAck | None:
        """The acknowledgement of the last acknowledged batch, or None before the first one.

        Its `seq` is the sequence of the batch's last stored message. A batch also ends if no
        message is sent for a second.
        """
        return self._ingest.last_ack
