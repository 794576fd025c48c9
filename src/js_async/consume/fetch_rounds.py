"""A fetch without a time limit. It runs in rounds: each round sends one pull request."""

from __future__ import annotations

from typing import Any, Final, Protocol

from js_async.consume.message import Message, frame_of
from js_async.runtime.concurrency import sleep
from twinstream.core.consume.batch import Batch, BatchEnd
from twinstream.core.consume.fetch import frame_size
from twinstream.errors import PullError, TwinstreamError
from twinstream.errors.transient import LOST_RESPONSE

__all__ = ["ROUND", "fetch_rounds"]

ROUND: Final = 30.0
"""The length of one round in seconds, unless the consumer's `max_expires` is shorter."""

# The pause after a round that was interrupted and has no messages (seconds).
_PAUSE: Final = 0.1


class Round(Protocol):
    """A function that fetches at most the given number of messages and bytes."""

    async def __call__(self, most: int, most_bytes: int | None, /) -> Batch[Message[Any]]: ...


async def fetch_rounds(
    fetch: Round, max_messages: int, max_bytes: int | None, *, full: bool, pinned: bool
) -> Batch[Message[Any]]:
    """Fetch in rounds, and return all their messages as one batch.

    With `full` the call ends when the batch is complete, otherwise after the first round with
    messages. A round that ends for a reason other than `EXPIRED` or `INTERRUPTED` is the last one.

    If the connection is lost, another round follows. If a round fails for another reason, the call
    returns the messages of earlier rounds. If these rounds had no messages, it raises the error.
    `pinned` is passed to `frame_size`.
    """
    messages: list[Message[Any]] = []
    bytes_left = max_bytes
    while True:
        try:
            batch = await fetch(max_messages - len(messages), bytes_left)
        except LOST_RESPONSE:
            # The connection is lost. No pause is needed: the next round waits for the reconnect.
            continue
        except TwinstreamError as error:
            if not messages:
                raise
            # A plain `PullError` means that the next message exceeds the remaining bytes.
            fits = bytes_left is None or type(error) is not PullError
            end = BatchEnd.INTERRUPTED if fits else BatchEnd.BYTES_FILLED
            return Batch(messages, end, str(error))
        messages += batch
        if bytes_left is not None:
            bytes_left -= sum(frame_size(frame_of(message), pinned=pinned) for message in batch)
        may_go_on = batch.reason in {BatchEnd.EXPIRED, BatchEnd.INTERRUPTED}
        has_enough = bool(messages) and not full
        has_no_bytes_left = bytes_left is not None and bytes_left <= 0
        if not may_go_on or has_enough or has_no_bytes_left:
            return Batch(messages, batch.reason, batch.detail)
        if batch.reason is BatchEnd.INTERRUPTED and not batch:
            await sleep(_PAUSE)
