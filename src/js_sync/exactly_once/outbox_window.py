# Generated from src/js_async/exactly_once/outbox_window.py by codegen/twin.py. Edit that file instead.
"""Keeps an outbox within the duplicate window of its stream.

An event may be sent as long as every attempt that could have been stored is known to lie within
half of the window. When that is no longer so (after a restart, a long outage, or with a long queue)
the stream is looked through from where it was last known to hold nothing of what waits, the floor;
what it holds is done, and the time starts anew for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinstream.core.deadline import monotonic
from twinstream.errors import OutcomeUnknown
from twinstream.core.exactly_once.outbox import OutboxEvent
from js_sync.exactly_once.msg_id_scan import stored_ids
from js_sync.exactly_once.outbox_store_calls import StoreCalls

if TYPE_CHECKING:
    from js_sync.jetstream import JetStream
    from js_sync.stream import Stream

__all__ = ["OutboxWindow"]

# How long looking through the stream may go without progress (seconds).
_PATIENCE: Final = 30.0


class OutboxWindow:
    """Which events may be sent now; `timeout` in seconds is what an attempt may take."""

    def __init__(self, jet: JetStream, store: StoreCalls, stream: Stream, timeout: float) -> None:
        self._jet: Final = jet
        self._store: Final = store
        self._stream: Final = stream
        self._timeout: Final = timeout
        window = stream.config.duplicate_window
        self._half: Final = window.total_seconds() / 2 if window else 0.0
        # A stream that was deleted and made anew has other sequences.
        self._key: Final = f"{stream.name}@{stream.cached_info.created}"
        self._looked_at = 0.0
        self._last_number = 0
        self._first_sent: dict[int, float] = {}
        self.found = 0
        """How many events were found stored."""

    def may_send(self, events: list[OutboxEvent]) -> bool:
        """Tell whether a repeat of each event is refused; notes that they are sent now."""
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
        """Note that events are done."""
        for number in numbers:
            self._first_sent.pop(number, None)

    def look(self) -> None:
        """Look through the stream and take out of the outbox what it holds.

        Raises `OutcomeUnknown` when the stream has lost messages that have to be looked at.
        """
        ids = self._store.call(lambda store: store.pending_ids())
        floor = self._store.call(lambda store: store.floor(self._key))
        # Taken before the question: what the answer does not show may have been stored since then.
        now = monotonic()
        info = self._stream.info(confirmed=True)
        last = info.state.last_seq
        if floor is None:
            # The floor is kept before anything is sent, so nothing was sent to this stream yet.
            floor = last
        if info.state.first_seq > floor + 1 and last > floor:
            raise OutcomeUnknown(
                f"{self._stream.name} holds sequences from {info.state.first_seq} only, but those"
                f" from {floor + 1} may hold events of the outbox: its limits let them go while the"
                " relay was away. Compare by hand, or let the outbox write by subject"
            )
        found = stored_ids(self._jet, self._stream, floor + 1, last + 1, ids.keys(), _PATIENCE)
        if found:
            numbers = [ids[id] for id in found]
            self._store.call(lambda store: store.done(numbers))
            self.found += len(found)
        self._store.call(lambda store: store.set_floor(self._key, last))
        self._looked_at = now
        self._first_sent.clear()
        self._last_number = max(ids.values(), default=0)
