"""Fast ingest: send many messages into one stream that acknowledges groups of messages.

Needs server 2.14 (ADR-50).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Final, Self

from js_async.api.api import Api
from js_async.client.closing import SentWhileRead, warn_of_unseen
from js_async.publish.fast_ingest_window import Entry, Ingest
from js_async.runtime.concurrency import Items, portions
from twinstream.core.publish.fast_ingest import Gaps, Ingested
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import several
from twinstream.errors import PublishFailure
from twinstream.errors.publish_failures import UnreadFailures
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable

__all__ = ["FastIngest"]


class FastIngest(SentWhileRead):
    """An iterator over the outcomes of many messages, in order. Created by `fast_ingest`.

    An outcome is `Ingested`, or a `PublishFailure` with the error. If the iteration was left early,
    the end of a `with` block ends the batch. Failures whose `error` was not read are raised
    as in `PublishMany`. Only one task or thread at a time may use the object.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        gaps: Gaps,
        limits: PublishLimits,
        raise_failures: bool,
    ) -> None:
        super().__init__()
        self._requests: Final = several(requests)
        self._ingest: Final = Ingest(api, stream, gaps, limits)
        # Messages in sending order whose outcome the iterator has not returned yet.
        self._order: Final[deque[Entry]] = deque()
        self._managed = False
        self._closed = False
        self._outcomes: Final = self._run()
        self._unseen: Final = UnreadFailures(raise_failures)
        self._expect_reader("fast_ingest", self._unseen)

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

    def __aiter__(self) -> Items[Ingested | PublishFailure]:
        self._is_read()
        return self._outcomes

    async def __aenter__(self) -> Self:
        self._managed = True
        return self

    async def close(self) -> None:
        """Stop sending, wait for the messages in flight, then raise `PublishFailures`.

        Only failures whose `error` was not read are raised. A second call does not wait again.
        """
        if self._is_parents:
            return
        if not self._closed:
            self._closed = True
            try:
                await self._ingest.flush()
            finally:
                await self._ingest.close()
                self._note_rest()
        self._raise_unread()

    def _note_rest(self) -> None:
        """Collect the failures that the iterator has not returned."""
        for entry in self._order:
            if isinstance(entry.outcome, PublishFailure):
                self._unseen.add(entry.outcome)
        self._order.clear()

    async def _run(self) -> Items[Ingested | PublishFailure]:
        ingest, order = self._ingest, self._order
        await ingest.open()
        try:
            async for portion in portions(self._requests):
                for request in portion:
                    entry = ingest.prepare(request)
                    order.append(entry)
                    if entry.outcome is None:
                        await ingest.send(entry)
                    while order and order[0].outcome is not None:
                        yield self._take(order[0].outcome)
                        if self._closed:
                            return
            await ingest.flush()
            while order and order[0].outcome is not None:
                yield self._take(order[0].outcome)
                if self._closed:
                    return
        except (Exception, GeneratorExit) as error:
            if self._is_inherited:
                # This is a forked process. The object belongs to its parent: report nothing.
                self._closed = True
            # `except` does not catch a cancellation or an interrupt, so they cause no report.
            if not (self._closed or self._managed):
                warn_of_unseen("fast_ingest", len(order))
                self._note_rest()
                self._note_failures(error)
            raise
        else:
            if not self._managed:
                self._raise_unread()
        finally:
            if not self._closed and not (self._managed and order):
                self._closed = True
                await ingest.close()

    def _take(self, outcome: Ingested | PublishFailure) -> Ingested | PublishFailure:
        self._order.popleft()
        if isinstance(outcome, PublishFailure):
            self._unseen.add(outcome)
        return outcome
