"""The life of a publisher of many messages: iteration, closing, and unread failures."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from itertools import takewhile
from sys import maxsize
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from js_async.client.closing import SentWhileRead, warn_of_unseen
from js_async.runtime.concurrency import Items, portions
from twinstream.core.deadline import monotonic
from twinstream.core.publish.request import several
from twinstream.errors import PublishFailure
from twinstream.errors.publish_failures import UnreadFailures
from twinstream.records.publish_request import Publishable

__all__ = ["Outcomes", "Sender"]

# Interval at which timeouts and retries are checked while the window is not full (seconds).
_LOOK: Final = 0.5


class Entry(Protocol):
    """A message and, once known, its outcome."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        ...

    @property
    def started(self) -> float:
        """When the message was prepared."""
        ...

    @property
    def outcome(self) -> Any:
        """The outcome, None until it is known."""
        ...


E = TypeVar("E", bound=Entry)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Sender(Protocol[E, T_co]):
    """One kind of acknowledgement: how messages are sent, and how each gets its outcome.

    There are two: a `Pipeline` gets an acknowledgement for each message, and an `Ingest` gets one
    for several messages.
    """

    async def open(self) -> None:
        """Wait for the connection and subscribe to the acknowledgements."""
        ...

    def prepare(self, given: Publishable) -> E:
        """Return the entry of a message; if the message is invalid, its outcome is the error."""
        ...

    def write(self, entry: E) -> bool:
        """Send a message if that needs no waiting. If the result is False, call `send`."""
        ...

    async def send(self, entry: E) -> None:
        """Send a message. A failure becomes its outcome."""
        ...

    async def look(self) -> None:
        """Carry out what is due while the caller waits for no outcome."""
        ...

    async def until(self, entry: E) -> T_co:
        """Wait for the outcome of a message and return it."""
        ...

    async def close(self) -> None:
        """Unsubscribe."""
        ...


class Outcomes(SentWhileRead, Generic[E, T]):
    """An iterator over the outcomes of many messages, in order. The iteration sends them.

    If `window` messages, or `window_bytes` bytes of them, have no outcome, the iterator waits
    before it sends another one.
    """

    # The name of the method that creates the iterator, for warnings.
    _call = ""

    def __init__(
        self,
        sender: Sender[E, T],
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        raise_failures: bool,
        window: int = maxsize,
        window_bytes: int = maxsize,
    ) -> None:
        super().__init__()
        self._requests: Final = several(requests)
        self._sender: Final = sender
        self._window: Final = window
        self._window_bytes: Final = window_bytes
        # Messages in sending order whose outcome the iterator has not returned yet.
        self._order: Final[deque[E]] = deque()
        self._managed = False
        self._closed = False
        self._outcomes: Final = self._run()
        self._unseen: Final = UnreadFailures(raise_failures)
        self._expect_reader(self._call, self._unseen)

    @property
    def in_flight(self) -> int:
        """Number of messages from the oldest one in flight to the last one sent.

        Some of the later messages may have an outcome already.
        """
        done = takewhile(lambda entry: entry.outcome is not None, tuple(self._order))
        return len(self._order) - sum(1 for _ in done)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.in_flight} in flight{', closed' * self._closed}>"

    def __aiter__(self) -> Items[T]:
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
                while self._order:
                    self._note(await self._sender.until(self._order[0]))
                    self._order.popleft()
            finally:
                self._note_rest()
                await self._sender.close()
        self._raise_unread()

    def _note(self, outcome: object) -> None:
        if isinstance(outcome, PublishFailure):
            self._unseen.add(outcome)

    def _note_rest(self) -> None:
        """Collect the failures that the iterator has not returned."""
        for entry in self._order:
            self._note(entry.outcome)
        self._order.clear()

    def _report_early_end(self, error: BaseException) -> None:
        """Warn about messages whose outcome no caller can read, because the iteration ended."""
        if self._is_inherited:
            # This is a forked process. The object belongs to its parent: report nothing.
            self._closed = True
        if not (self._closed or self._managed):
            warn_of_unseen(self._call, len(self._order))
            self._note_rest()
            self._note_failures(error)

    async def _run(self) -> Items[T]:
        """Send the requests with a limited window, and yield their outcomes in order."""
        sender, order, unseen = self._sender, self._order, self._unseen
        window, window_bytes = self._window, self._window_bytes
        outcome: T | None
        # Total size in bytes of the messages in `order`.
        held_bytes = 0
        await sender.open()
        look_at = monotonic() + _LOOK
        try:
            async for portion in portions(self._requests):
                for request in portion:
                    entry = sender.prepare(request)
                    held_bytes += entry.size
                    has_too_many_bytes = held_bytes > window_bytes and bool(order)
                    if len(order) >= window or has_too_many_bytes:
                        # Wait for half of the messages at once, so that the sender wakes up less
                        # often.
                        await sender.until(order[(len(order) - 1) // 2])
                        await sender.until(order[0])
                    order.append(entry)
                    if entry.outcome is None and not sender.write(entry):
                        await sender.send(entry)
                    if entry.started > look_at:
                        # At intervals and not only when the window is full, because a slow producer
                        # may never fill the window.
                        look_at = entry.started + _LOOK
                        await sender.look()
                    # Yield after the send: if the caller stops here, every message taken from the
                    # caller's iterable has been sent.
                    while order and (outcome := order[0].outcome) is not None:
                        held_bytes -= order.popleft().size
                        if isinstance(outcome, PublishFailure):
                            unseen.add(outcome)
                        yield outcome
                        if self._closed:
                            return
            while order:
                outcome = await sender.until(order[0])
                order.popleft()
                self._note(outcome)
                yield outcome
                if self._closed:
                    return
        except (Exception, GeneratorExit) as error:
            # This does not catch a cancellation or an interrupt, so they cause no report.
            self._report_early_end(error)
            raise
        else:
            if not self._managed:
                self._raise_unread()
        finally:
            if not self._closed and not (self._managed and order):
                self._closed = True
                order.clear()
                await sender.close()
