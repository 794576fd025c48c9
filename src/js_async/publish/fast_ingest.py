"""Fast ingest: send many messages into one stream that acknowledges groups of messages.

Needs server 2.14 (ADR-50).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Final

from js_async.publish.fast_ingest_window import Ingest
from js_async.publish.outcomes import Outcomes
from twinstream.core.publish.fast_ingest import Ingested
from twinstream.core.publish.fast_messages import FastMessage
from twinstream.errors import PublishFailure
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable

__all__ = ["FastIngest"]


class FastIngest(Outcomes[FastMessage, Ingested | PublishFailure]):
    """An iterator over the outcomes of many messages, in order. Created by `fast_ingest`.

    An outcome is `Ingested`, or a `PublishFailure` with the error. If the iteration was left early,
    the end of a `with` block ends the batch. Failures whose `error` was not read are raised
    as in `PublishMany`. Only one task or thread at a time may use the object.
    """

    _call = "fast_ingest"

    def __init__(
        self,
        ingest: Ingest,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        raise_failures: bool,
    ) -> None:
        # `Ingest.send` waits until the server has acknowledged enough messages.
        super().__init__(ingest, requests, raise_failures)
        self._ingest: Final = ingest

    @property
    def under_way(self) -> int:
        """Number of messages whose outcome the iterator has not returned yet."""
        return len(self._order)

    @property
    def last_ack(self) -> PubAck | None:
        """The acknowledgement of the last acknowledged batch, or None before the first one.

        Its `seq` is the sequence of the batch's last stored message. A batch also ends if no
        message is sent for a second.
        """
        return self._ingest.last_ack
