"""A fetch without a time limit: one round after the other, as requests expire."""

from __future__ import annotations

from typing import Final, Protocol

from js_async.consume.message import Message
from js_async.runtime.concurrency import sleep
from twinstream.core.consume.batch import Batch, BatchEnd
from twinstream.core.consume.fetch import frame_size
from twinstream.core.error_details.transient import LOST_RESPONSE
from twinstream.errors import PullError, TwinstreamError

__all__ = ["ROUND", "fetch_rounds"]

ROUND: Final = 30.0
"""Length of one round in seconds, unless the consumer allows less."""

# Pause after a round that ended early without a message (seconds).
_PAUSE: Final = 0.1


class Round(Protocol):
    """Fetches up to the given number of messages and bytes."""

    async def __call__(self, most: int, most_bytes: int | None, /) -> Batch[Message]: ...


async def fetch_rounds(
    fetch: Round, max_messages: int, max_bytes: int | None, *, full: bool, pinned: bool
) -> Batch[Message]:
    """Fetch until a round ends by itself or, unless `full`, has messages.

    Raises the error of a round, unless earlier rounds had messages.
    """
    messages: list[Message] = []
    left = max_bytes
    while True:
        try:
            batch = await fetch(max_messages - len(messages), left)
        except LOST_RESPONSE:
            # Disconnected, and the round has waited for the connection.
            continue
        except TwinstreamError as error:
            if not messages:
                raise
            # A plain PullError means that a message does not fit into the bytes left.

            fits = left is None or type(error) is not PullError
            end = BatchEnd.INTERRUPTED if fits else BatchEnd.BYTES_FILLED
            return Batch(messages, end, str(error))
        messages += batch
        if left is not None:
            left -= sum(frame_size(message._frame, pinned=pinned) for message in batch)
        goes_on = batch.reason in {BatchEnd.EXPIRED, BatchEnd.INTERRUPTED}
        if not goes_on or (messages and not full) or (left is not None and left <= 0):
            return Batch(messages, batch.reason, batch.detail)
        if batch.reason is BatchEnd.INTERRUPTED and not batch:
            await sleep(_PAUSE)
