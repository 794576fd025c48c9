"""The check that an outbox sends events only within the duplicate window of its stream.

The stream may have stored an event although the response was lost. If the relay sends the event
again within the duplicate window, the server refuses the duplicate. The relay uses only the first
half of the window.

An earlier attempt may be older than half of the window after a restart, after a long outage, or
with a long queue. Then the relay scans the stream for the pending events. The scan begins after the
floor, a sequence of the stream: no message up to the floor is one of the pending events. Events
that the scan finds are removed from the outbox. An event that the scan does not find can only have
been stored after the scan began, so its window begins with the scan.
"""

from __future__ import annotations

from typing import Final

from js_async import Stream, StreamInfo
from js_async.exactly_once.msg_id_scan import stored_ids
from js_async.outbox.store_calls import StoreCalls
from twinstream.core.deadline import monotonic
from twinstream.core.exactly_once.outbox import OutboxEvent
from twinstream.errors import OutcomeUnknown

__all__ = ["OutboxWindow"]

# A scan fails after this time without progress (seconds).
_PATIENCE: Final = 30.0


class OutboxWindow:
    """Decides which events may be sent now.

    `info` is the info of the stream, and `timeout` the limit of an attempt in seconds.
    """

    def __init__(self, store: StoreCalls, stream: Stream, info: StreamInfo, timeout: float) -> None:
        self._store: Final = store
        self._stream: Final = stream
        self._timeout: Final = timeout
        window = info.config.duplicate_window
        self._half: Final = window.total_seconds() / 2 if window else 0.0
        # The key under which the outbox stores the floor. It includes the creation time, because a
        # re-created stream has other sequences.
        self._key: Final = f"{stream.name}@{info.created}"
        # When the last scan began, and the highest number of an event that it looked for.
        self._looked_at = 0.0
        self._last_number = 0
        # By number: when each event with a number above `_last_number` was sent for the first time.
        self._first_sent: dict[int, float] = {}
        self.found = 0
        """The number of events that scans found in the stream."""

    def may_send(self, events: list[OutboxEvent]) -> bool:
        """Return whether the server refuses duplicates of all `events` during an attempt.

        If the result is False, the caller must call `look` before it sends the events. The method
        also records the current time for each event that is sent for the first time.
        """
        now = monotonic()
        for event in events:
            if event.number <= self._last_number:
                since = self._looked_at
            else:
                since = self._first_sent.setdefault(event.number, now)
            if now + self._timeout > since + self._half:
                return False
        return True

    def forget(self, numbers: list[int]) -> None:
        """Forget when the events with these numbers were sent, because they are done."""
        for number in numbers:
            self._first_sent.pop(number, None)

    async def look(self) -> None:
        """Scan the stream, and remove from the outbox the events that the stream contains.

        Raises `OutcomeUnknown` if limits have removed messages that must be scanned.
        """
        ids = await self._store.call(lambda store: store.pending_ids())
        floor = await self._store.call(lambda store: store.floor(self._key))
        # Read the clock before the request. An event that the scan does not find can only have been
        # stored after this moment.
        now = monotonic()
        info = await self._stream.info(confirmed=True)
        last = info.state.last_seq
        if floor is None:
            # The relay sets the floor before it sends the first event. Without a floor, no event
            # was sent to this stream.
            floor = last
        elif not 0 <= floor <= last:
            # The stream has lost its end, or the file is damaged: search all that there is.
            floor = max(0, info.state.first_seq - 1)
        if info.state.first_seq > floor + 1 and last > floor:
            raise OutcomeUnknown(
                f"{self._stream.name} has only sequences from {info.state.first_seq} on, but those"
                f" from {floor + 1} on may contain events of the outbox: its limits removed them"
                " while the relay was away. Compare by hand, or let the outbox write by subject"
            )
        if last > floor:
            read = self._stream.read(floor + 1, last + 1, idle_timeout=_PATIENCE)
            found = await stored_ids(read, ids.__contains__)
            numbers = [ids[id] for id in found]
            await self._store.call(lambda store: store.done(numbers))
            self.found += len(found)
        await self._store.call(lambda store: store.set_floor(self._key, last))
        self._looked_at = now
        self._first_sent.clear()
        self._last_number = max(ids.values(), default=0)
