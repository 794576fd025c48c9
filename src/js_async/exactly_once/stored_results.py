"""The search for results of a processing that the output stream already contains.

The search is needed if earlier attempts may be older than the stream's duplicate window. One scan
of the stream serves all redelivered messages. A result that the scan does not find can only have
been stored after the scan began. So the result of the scan is used for half of the duplicate
window: during this time, the server still refuses a duplicate of a later result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from attrs import frozen

from js_async import Message
from js_async.exactly_once.idempotent_writer import IdempotentWriter
from js_async.exactly_once.msg_id_scan import stored_ids
from js_async.runtime.concurrency import Lock
from twinstream.core.deadline import monotonic
from twinstream.core.exactly_once.processing import InputStream, OwnIds
from twinstream.errors import OutcomeUnknown
from twinstream.models import Timestamp
from twinstream.records.publish_request import PublishRequest

__all__ = ["KnownResults"]

# The assumed maximum difference between the clocks of two servers. The scan begins this much before
# the time of the input message.
_SKEW: Final = timedelta(minutes=1)
# A scan fails after this time without progress (seconds).
_LOOK_UP: Final = 30.0


@frozen
class _Look:
    """The result of a scan that began at monotonic time `at`.

    `ids` are the ids of the results that this processing has stored since the time `since`.
    """

    ids: Collection[str]
    since: Timestamp
    at: float


class KnownResults:
    """The results of a processing that the output stream is known to contain.

    `timeout` is the limit of a write in seconds. `now` is the server's current time, or None if it
    is unknown.
    """

    def __init__(
        self,
        writer: IdempotentWriter,
        input: InputStream,
        now: Timestamp | None,
        timeout: float,
    ) -> None:
        self._writer: Final = writer
        self._input: Final = input
        self._timeout: Final = timeout
        self._now: Final = now
        self._started: Final = monotonic()
        self._looking: Final = Lock()
        self._look: _Look | None = None

    async def of(self, message: Message, results: Sequence[PublishRequest]) -> Collection[str]:
        """Return the ids of stored results, including those of `results` that are stored.

        The result is empty for the first delivery of `message`, which has no results yet. It is
        also empty as long as the server refuses duplicates of the results. Raises `OutcomeUnknown`
        if limits removed messages that may have been results.
        """
        if not results or message.metadata.num_delivered == 1:
            return ()
        window = (await self._writer.check()).config.duplicate_window
        half = window.total_seconds() / 2 if window else 0.0
        stored = Timestamp.from_ns(message.metadata.timestamp_ns)
        if self._is_young(stored, half):
            return ()
        since = stored - _SKEW
        async with self._looking:
            # One caller scans. The callers that wait for the lock use the result of this scan.
            look = self._look
            if look is None or since < look.since or monotonic() + self._timeout > look.at + half:
                return await self._scan(since, results)
            return look.ids

    def _is_young(self, stored: Timestamp, half: float) -> bool:
        """Return whether a message is younger than half of the duplicate window.

        If so, its results are younger, too, and the server refuses duplicates of the results.
        """
        if self._now is None:
            return False
        age = (self._now - stored).total_seconds() + monotonic() - self._started + self._timeout
        return age + _SKEW.total_seconds() < half

    async def _scan(self, since: Timestamp, results: Sequence[PublishRequest]) -> Collection[str]:
        # Read the clock before the request. A result that the scan does not find can only have been
        # stored after this moment.
        at = monotonic()
        own = OwnIds(self._input, {result.msg_id for result in results})
        found = await self._look_up(since, own)
        # If there were too many ids, `found` is complete for these `results` only. So it is not
        # used for other messages.
        self._look = _Look(found, since, at) if own.is_whole else None
        return found

    async def _look_up(self, since: Timestamp, own: OwnIds) -> Collection[str]:
        """Return the ids of `own` that the stream has stored since `since`.

        Raises `OutcomeUnknown` if the limits of the stream may have removed some of them.
        """
        stream = self._writer.stream
        state = (await stream.info(confirmed=True)).state
        # Nothing to find: the stream never had a message (`last_seq` counts removed ones, too), or
        # its last message is older than `since`.
        if not state.last_seq or (state.last_ts is not None and state.last_ts < since):
            return ()
        oldest = state.first_ts if state.messages else None
        if state.first_seq > 1 and (oldest is None or oldest > since):
            raise OutcomeUnknown(
                f"{stream.name} has only sequences from {state.first_seq} on, but earlier ones may"
                " have been results of a redelivered message: its limits removed them. Compare by"
                " hand and reject or acknowledge the message, or process by subject"
            )
        read = stream.read(start_time=since, idle_timeout=_LOOK_UP)
        return await stored_ids(read, own.select)
