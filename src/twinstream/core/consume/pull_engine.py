"""The pull engine: the accounting of pull requests, with no I/O and no clock of its own.

Theory of operation
-------------------
One engine serves one subscription. Its owner tells it facts (messages arrived, a status came, a
message was handed over, the link broke or came back) and asks `poll` what to do now. The answer
is a list of actions: send a pull, report something, finish.

* Every request has its own token in its reply subject, so a status names the request it ends.
  Messages arrive under their stored subject and cannot be attributed; they count against the
  oldest request, and a status with pending headers puts the books right (ADR-37).
* A status without pending headers ends its request with nothing left.
* When no request is open, nothing is outstanding, whatever the sums say: no drift can stall.
* A new link is a new epoch: the server forgot the requests, so all are void.
* Requests that end without a message back off, so that a limit or a message too big for the
  bytes asked can never become a tight loop. An end that means "ask again" is believed once.
* If a request is beyond a limit of the consumer, before any was accepted, a setting is wrong.
  Waiting would never help, so this ends the iteration with the limit's name, unless the owner says
  that somebody will change the setting (`on_refused`). But requests grow from
  a small start, and by bytes they ask for as many messages as there may be: there no more are asked
  for at once than the consumer allows (its max_batch).
* The watchdog compares the silence since the reader last heard anything with two heartbeats. It
  barks only after the owner has waited: an owner that was busy may have kept the reader from
  reading.
* The same trouble is reported once, until something went well again.
* The buffer is bounded by age, too: where the consumer's ack_wait is known, no more is asked for
  than the program can take, at its pace, within half of it. Until a pace is known the buffer is
  small.
* It is also small until the size of messages is known, because a buffer by count is bounded in
  bytes as well. A server holds only so many bytes for one client (64 MiB unless configured
  otherwise) and cuts off a client that reads too slowly; what is under way then is late, or lost if
  the consumer wants no acknowledgements.
* No more requests are open at once than the consumer lets wait (its max_waiting), where that is
  known: a server drops what is above it without a word (from 2.11.5 on).
* A pinned client that pulls nothing for the consumer's priority_timeout loses its pin, however many
  messages it has. So it pulls in time also where there is no need: for one message more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate, islice
from typing import Final

from attrs import frozen

from twinstream.errors import TwinstreamError
from twinstream.core.consume.pull_error import pull_error, refused_limit
from twinstream.core.consume.pull_request import MANY, PullLimits
from twinstream.core.consume.reports import PullWarning
from twinstream.core.wire.status import Kind, Status

__all__ = ["Action", "DropPin", "Finish", "PullEngine", "SendPull"]

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
# A request that lived so long (seconds) was accepted: pulling again after its end is no hurry.
_LONG_LIFE: Final = 1.0
_ASK_AGAIN: Final = {Kind.EXPIRED, Kind.COMPLETED, Kind.INTERRUPTED, Kind.UNPINNED}
# The most bytes in a buffer by count, estimated from the messages that came. A server counts what
# it is just writing as pending until all of it is written, so it may count twice as many.
_MOST_BYTES: Final = 1 << 24
# How many requests to remember that are full by our books. A status may still end one of them, but
# mostly none comes: they must not pile up while there is always another request open.
_REMEMBERED: Final = 64
# With no known pace or size: enough to learn them, few enough to hold for a while.
_SMALL_START: Final = 32


@frozen
class SendPull:
    """Publish a pull request under this token."""

    token: bytes
    batch: int
    max_bytes: int | None


@frozen
class Finish:
    """The pull is over for good."""

    error: TwinstreamError


@frozen
class DropPin:
    """Forget the pin id: another client holds it."""


Action = SendPull | PullWarning | DropPin | Finish


class _Request:
    __slots__ = ("bytes_left", "left", "sent_at", "sent_behind")

    def __init__(self, batch: int, max_bytes: int | None, sent_at: float, arrived: int) -> None:
        self.left = batch
        self.bytes_left = max_bytes
        self.sent_at: Final = sent_at
        # How many messages had arrived before.
        self.sent_behind: Final = arrived

    @property
    def is_full(self) -> bool:
        return self.left == 0 or self.bytes_left == 0


class PullEngine:
    """Keeps a buffer of `limits` filled. See the module's text for the rules."""

    def __init__(self, limits: PullLimits, tokens: Callable[[], bytes], now: float) -> None:
        self._limits: Final = limits
        self._tokens: Final = tokens
        self._requests: dict[bytes, _Request] = {}
        # Full by our books while others were open; a status of theirs may show that they were not.
        self._presumed_full: dict[bytes, _Request] = {}
        self.buffered = 0
        self.buffered_bytes = 0
        self.still_wanted = limits.stop_after
        """Messages that the owner still wants, the buffered ones included; None is no end."""
        start = min(limits.max_messages, _SMALL_START)
        self._by_count: Final = limits.max_bytes is None or limits.max_messages < MANY
        self._by_age = limits.max_messages if limits.max_age is None else start
        self._by_size = limits.max_messages if limits.max_bytes is not None else start
        self._allowed = min(self._by_age, self._by_size)
        self._first = 0
        self._most = min(limits.max_messages, limits.max_batch or limits.max_messages)
        self._size = 0
        self._pace = 0.0
        self._handed_at = 0.0
        self._paused_until = 0.0
        self._pause = _FIRST_PAUSE
        self._pulled_at = now
        self._heard_at = now
        self._arrived = 0
        self._hasty_ends = 0
        self._accepted = False
        self._told = ""
        self._connected = True
        self._stopped = False
        self._actions: list[Action] = []

    # ---- what is outstanding

    @property
    def outstanding(self) -> int:
        """Messages that were asked for and have not arrived."""
        # Out of a copy: others may ask while the owner is at it.
        requests = tuple(self._requests.values())
        return requests[0].left if len(requests) == 1 else sum([each.left for each in requests])

    @property
    def outstanding_bytes(self) -> int:
        """Bytes that were asked for and have not arrived."""
        return sum(request.bytes_left or 0 for request in self._requests.values())

    @property
    def open_requests(self) -> int:
        """Requests that the server has not ended."""
        return len(self._requests)

    # ---- facts

    def arrived(self, count: int, size: int) -> None:
        """Note messages that arrived, `size` bytes in all as the server counts them."""
        self.buffered += count
        self.buffered_bytes += size
        if count:
            self._note_progress()
            self._arrived += count
        some_full = False
        for request in self._requests.values():
            taken = min(count, request.left)
            request.left -= taken
            if request.bytes_left is not None:
                request.bytes_left = max(0, request.bytes_left - size)
                size = 0
            some_full = some_full or request.is_full
            count -= taken
            if count <= 0:
                break
        if some_full:
            self._sort_out_full()

    def note_size(self, size: int) -> None:
        """Note how many bytes one of the messages had that arrived; not for a buffer by bytes."""
        if size == self._size:
            return
        # Up at once, down slowly: the next ones may be as long as those before.
        self._size = max(size, self._size - (self._size >> 3))
        self._by_size = max(1, min(self._limits.max_messages, _MOST_BYTES // max(1, self._size)))
        self._allowed = min(self._by_age, self._by_size)

    def _sort_out_full(self) -> None:
        for token in [token for token, each in self._requests.items() if each.is_full]:
            self._presumed_full[token] = self._requests.pop(token)
            if len(self._presumed_full) > _REMEMBERED:
                del self._presumed_full[next(iter(self._presumed_full))]
        if not self._requests:
            self._presumed_full.clear()

    def _note_progress(self) -> None:
        self._note_life()
        self._pause = _FIRST_PAUSE
        self._paused_until = 0.0
        self._hasty_ends = 0

    def _note_life(self) -> None:
        self._accepted = True
        self._told = ""

    def grant(self, sizes: Iterable[int] = ()) -> int:
        """Return how many messages may be handed over before `due` can turn true.

        `sizes` are those of the buffered messages, in order, where the buffer is bounded by bytes.
        The owner reports them together: asking before each would cost as much as parsing it.
        """
        limits = self._limits
        if limits.pull_every is not None or not self.buffered:
            return 0
        granted = self.buffered
        if self._by_count:
            spare = self.buffered + self.outstanding - self._threshold() - 1
            granted = max(0, min(granted, spare))
        if limits.max_bytes is not None:
            spare = self.buffered_bytes + self.outstanding_bytes - limits.threshold_bytes - 1
            fitting = bisect_right(list(accumulate(islice(sizes, self.buffered))), spare)
            # Both bounds have to be reached until more is due.
            granted = max(granted, fitting) if self._by_count else fitting
        return granted if self.still_wanted is None else min(granted, self.still_wanted)

    def may_pass(self) -> bool:
        """Tell whether the next message may be handed over before this engine is told of it.

        That is so unless `due` would then be true.
        """
        limits = self._limits
        if limits.max_bytes is not None or limits.priority is not None or self.buffered:
            return False
        return self.outstanding - 1 > self._threshold()

    def handed_over(self, size: int, now: float, count: int = 1) -> None:
        """Note messages given to the user, `size` bytes in all."""
        self.buffered -= count
        self.buffered_bytes -= size
        if self._limits.max_age is not None and count:
            self._note_pace(now, count, self._limits.max_age)

    def _note_pace(self, now: float, count: int, max_age: float) -> None:
        if self._handed_at:
            # A moving mean over some eight messages. It includes waiting for messages, so it errs
            # on the side of asking for fewer; with a full stream there are no such waits.
            mean = (now - self._handed_at) / count
            self._pace += (mean - self._pace) * min(1.0, count / 8)
            fitting = int(max_age / self._pace) if self._pace > 0 else self._limits.max_messages
            self._by_age = max(1, min(self._limits.max_messages, fitting))
            self._allowed = min(self._by_age, self._by_size)
        self._handed_at = now

    def heard(self, at: float) -> None:
        """Note when the reader last received anything for the subscription."""
        if at > self._heard_at:
            self._heard_at = at

    def status(self, status: Status, now: float) -> None:
        """Note a status; what follows from it comes out of `poll`."""
        self.heard(now)
        if not status.ends:
            self._note_life()
            return
        request = self._requests.pop(status.token, None)
        if request is None:
            request = self._presumed_full.pop(status.token, None)
        if request is None:
            # The status came late: no request is open under that token any more.
            return
        self._settle(request, status)
        if now - request.sent_at >= _LONG_LIFE:
            self._pause = _FIRST_PAUSE
            self._hasty_ends = 0
        # Only a request that got nothing could turn into a tight loop.
        self._react(status, request.sent_behind == self._arrived, now)

    def _settle(self, request: _Request, status: Status) -> None:
        if status.pending_messages is None or not self._requests:
            return
        # Messages that the books counted for this request belonged to others, or the reverse.
        oldest = next(iter(self._requests.values()))
        oldest.left = max(0, oldest.left + request.left - status.pending_messages)
        if oldest.bytes_left is not None and status.pending_bytes is not None:
            difference = (request.bytes_left or 0) - status.pending_bytes
            oldest.bytes_left = max(0, oldest.bytes_left + difference)
        self._sort_out_full()

    def _react(self, status: Status, fruitless: bool, now: float) -> None:
        match status.kind:
            case Kind.DELETED | Kind.NOT_PULL | Kind.BAD_REQUEST:
                self._finish(pull_error(status, self._limits))
            case Kind.REFUSED if self._learn_most(status.text):
                self._warn(f"the pull ended with {status}; asking for fewer at once", status)
            case Kind.REFUSED if not self._accepted and self._limits.on_refused == "raise":
                self._finish(pull_error(status, self._limits))
            case Kind.REFUSED | Kind.BUSY | Kind.NO_RESPONDERS | Kind.UNKNOWN:
                self._back_off(now)
                self._warn(f"the pull ended with {status}; trying again", status)
            case Kind.TOO_BIG if fruitless:
                self._back_off(now)
                # With messages in the buffer there will be more room once they are handed over.
                if self.buffered == 0:
                    self._warn(f"the pull ended with {status}; trying again", status)
            case Kind.NO_MESSAGES if fruitless:
                self._back_off(now)
            case _:
                pass
        if status.kind is Kind.UNPINNED:
            self._actions.append(DropPin())
        if fruitless and status.kind in _ASK_AGAIN:
            self._accepted = True
            self._hasty_ends += 1
            if self._hasty_ends > 1:
                self._back_off(now)

    def _learn_most(self, refusal: str) -> bool:
        """Learn how many messages a request may ask for; tell whether that mends it."""
        name, allowed = refused_limit(refusal)
        if name != "max_batch" or allowed is None:
            return False
        most = max(1, int(allowed))
        grown = self._accepted and most >= self._first
        if most >= self._most or not (grown or self._limits.max_bytes is not None):
            return False
        self._most = most
        return True

    def _warn(self, text: str, status: Status | None = None) -> None:
        self._actions.append(PullWarning(text, status, again=text == self._told))
        self._told = text

    def lost(self) -> None:
        """Note that the link broke: every request is void, the watchdog rests."""
        self._connected = False
        self._void()

    def restored(self, now: float) -> None:
        """Note a new link: pull at once."""
        self._connected = True
        self._void()
        self._heard_at = now
        self._paused_until = 0.0
        self._hasty_ends = 0

    def _void(self) -> None:
        self._requests.clear()
        self._presumed_full.clear()

    def go_on(self, now: float, at_least: float = 0.0) -> float:
        """Pull again after an end that the owner mends, each time later; return when."""
        self._stopped = False
        self._void()
        self._back_off(now)
        self._paused_until = max(self._paused_until, now + at_least)
        return self._paused_until

    def stop(self) -> None:
        """Pull no more; what is buffered stays to be handed over."""
        self._stopped = True

    # ---- decisions

    def poll(self, now: float, *, watch: bool = True) -> list[Action]:
        """Return what to do now; `watch` when the owner has waited, not worked, until now."""
        if self._paused_until <= now:
            self._paused_until = 0.0
        if self._connected and not self._stopped:
            if watch:
                self._watch(now)
            if self.due(now):
                self._pull(now)
        actions, self._actions = self._actions, []
        return actions

    def put_back(self, actions: Iterable[Action]) -> None:
        """Take back actions that were not done, for example because the owner was cancelled."""
        self._actions = [*actions, *self._actions]

    def wake_at(self) -> float:
        """Return when `poll` must be asked again though nothing happened."""
        if not self._connected or self._stopped:
            return float("inf")
        wake_at = min(self._paused_until or float("inf"), self._keep_pin_at())
        if self._requests:
            wake_at = min(wake_at, self._heard_at + 2 * self._limits.heartbeat)
        return wake_at

    def _keep_pin_at(self) -> float:
        """Return when to pull though there is no need."""
        every = self._limits.pull_every
        if every is None or self._room() <= 0:
            return float("inf")
        return max(self._pulled_at + every, self._paused_until)

    def _watch(self, now: float) -> None:
        if not self._requests or now < self._heard_at + 2 * self._limits.heartbeat:
            return
        silence = 2 * self._limits.heartbeat
        self._void()
        self._heard_at = now
        self._warn(f"nothing heard for {silence:g} s, two heartbeats; pulling anew")

    def due(self, now: float) -> bool:
        """Tell whether `poll` would pull; cheap, asked for every message."""
        limits = self._limits
        keep_pin = limits.pull_every is not None and now >= self._keep_pin_at()
        if not keep_pin and self.buffered > limits.threshold:
            return False
        if not self._connected or self._stopped or now < self._paused_until or self._room() <= 0:
            return False
        if keep_pin:
            return True
        if limits.max_bytes is not None:
            wanted_bytes = self.buffered_bytes + self.outstanding_bytes
            if wanted_bytes > limits.threshold_bytes or wanted_bytes >= limits.max_bytes:
                return False
            if not self._by_count:
                return True
        wanted = self.buffered + self.outstanding
        return wanted <= self._threshold() and wanted < self._allowed

    def _threshold(self) -> int:
        """Return the number of messages, buffered or outstanding, at which more are asked for."""
        threshold = self._limits.threshold
        if self._allowed < self._limits.max_messages:
            return min(threshold, self._allowed // 2)
        return threshold

    def _room(self) -> int:
        """Return how many more messages may be asked for before enough are here or under way."""
        waiting = self._limits.max_waiting
        if waiting is not None and self.open_requests >= waiting:
            return 0
        if self.still_wanted is None:
            return self._limits.max_messages
        return self.still_wanted - self.buffered - self.outstanding

    def _pull(self, now: float) -> None:
        limits = self._limits
        token = self._tokens()
        # One more than fits where it is only to keep the pin.
        batch, max_bytes = limits.max_messages, limits.max_bytes
        if self._by_count:
            batch = max(1, self._allowed - self.buffered - self.outstanding)
        if max_bytes is not None:
            max_bytes -= self.buffered_bytes + self.outstanding_bytes
            batch, max_bytes = (batch, max_bytes) if max_bytes > 0 else (1, None)
        batch = min(batch, self._room(), self._most)
        self._first = self._first or batch
        self._pulled_at = now
        self._requests[token] = _Request(batch, max_bytes, now, self._arrived)
        self._actions.append(SendPull(token, batch, max_bytes))

    def _back_off(self, now: float) -> None:
        self._paused_until = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _finish(self, error: TwinstreamError) -> None:
        self._stopped = True
        self._actions.append(Finish(error))
