"""The pull engine: accounting of pull requests, without I/O and without a clock.

Theory of operation
-------------------
One engine serves one subscription. Its owner reports events (messages arrived, a status arrived,
the caller received a message, the connection was lost or restored) and calls `poll`, which returns
a list of actions: send a pull, pass on a report, forget the pin, finish.

* Every request has its own token in its reply subject, so a status identifies the request it ends.
  Messages arrive under their stored subject, so the engine does not know to which request they
  belong. It counts them for the oldest request, and a status with pending headers corrects this
  accounting (ADR-37).
* A status without pending headers ends its request and does not change the accounting of others.
* When no request is open, nothing is outstanding, so an accounting error cannot stall the engine.
* When the connection is lost, all requests are void, because the server drops them.
* Requests that end without a message cause a back-off, so that a limit, or a message too big for
  the requested bytes, never leads to a tight loop. After a status that means "retry", the first
  retry has no back-off.
* If the very first request exceeds a limit of the consumer, a setting is wrong. Waiting would not
  help, so the iteration ends with an error that names the limit, unless the owner expects the
  setting to be changed (`on_refused`). There are two exceptions, in which the engine adopts the
  number of messages that the consumer allows for one request (max_batch). One is a later request,
  because requests grow from a small start. The other is a request with a byte limit, because its
  number of messages is not the caller's choice.
* The watchdog voids all requests if the reader received nothing for two heartbeats. It acts only
  when the owner was waiting before, because a busy owner may have kept the reader from reading.
* If a problem is reported again before there was progress, the report is marked as `again`.
* The buffer is also limited by age. If the consumer's ack_wait is known, the engine requests no
  more messages than the application can process, at its pace, within half of the ack_wait. The
  buffer is small until the pace is known.
* If the caller limits the buffer by count only, the engine also limits its bytes, by the size of
  recent messages. The buffer is small until this size is known. The reason is that a server queues
  a limited number of bytes for one client (64 MiB unless configured otherwise) and disconnects a
  client that reads too slowly. Messages in flight are then late, or lost if the consumer uses no
  acknowledgements.
* If the consumer's max_waiting is known, the engine opens no more requests than that at once. A
  server drops requests above max_waiting without a reply.
* A request is open, not more responses arrived than requests were sent, and the last response came
  after the last request. If nothing follows for a moment, the engine sends a probe
  (`twinstream.core.wire.single_answers`). If only one response to each probe arrives, the iteration
  ends with an error that names the reason. Requests without heartbeats are not probed.
* A pinned client that sends no pull within the consumer's priority_timeout loses its pin, however
  many messages it has. So the engine pulls in time even if the buffer is full, for one more
  message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate, islice
from typing import Final

from twinstream.core.consume.pull_error import pull_error, refused_limit
from twinstream.core.consume.pull_request import MANY, PullLimits
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import Backoff
from twinstream.core.wire.single_answers import QUIET, LoneAnswer, Verdict
from twinstream.core.wire.status import Kind, Status
from twinstream.errors import TwinstreamError
from twinstream.models.codec.records import frozen

__all__ = ["Action", "DropPin", "Finish", "Probed", "PullEngine", "SendProbe", "SendPull"]

_BACKOFF: Final = Backoff(0.05, 5.0)
# Seconds. A request that lived this long was accepted, so its end causes no back-off.
_LONG_LIFE: Final = 1.0
_RETRYABLE: Final = {Kind.EXPIRED, Kind.COMPLETED, Kind.INTERRUPTED, Kind.UNPINNED}
# Limit in bytes of a buffer that the caller limits by count only. A server counts the data it is
# writing as pending until all of it is written, so it may count twice as many bytes.
_MOST_BYTES: Final = 1 << 24
# Maximum number of remembered requests that are complete by the accounting. A late status may still
# correct the accounting of such a request. Usually no status arrives, so without a limit these
# requests would accumulate.
_REMEMBERED: Final = 64
# Messages in a buffer until pace and size are known: enough to measure both, but few enough to stay
# in the buffer for a while.
_SMALL_START: Final = 32


@frozen
class SendPull:
    """The action to publish a pull request whose reply subject ends with `token`."""

    token: bytes
    batch: int
    max_bytes: int | None


@frozen
class SendProbe:
    """The action to publish a probe whose reply subject ends with `token`."""

    token: bytes


@frozen
class Probed:
    """The action to use the result of the probes. With SINGLE, the iteration ends."""

    verdict: Verdict


@frozen
class Finish:
    """The action to end the iteration with `error`: pulling cannot continue."""

    error: TwinstreamError


@frozen
class DropPin:
    """The action to forget the pin id, because another client holds the pin."""


Action = SendPull | SendProbe | Probed | PullWarning | DropPin | Finish


class _Request:
    __slots__ = ("bytes_left", "left", "sent_at", "sent_behind")

    def __init__(self, batch: int, max_bytes: int | None, sent_at: float, arrived: int) -> None:
        self.left = batch
        self.bytes_left = max_bytes
        self.sent_at: Final = sent_at
        # The number of messages that had arrived before the request was sent.
        self.sent_behind: Final = arrived

    @property
    def is_full(self) -> bool:
        return self.left == 0 or self.bytes_left == 0


class PullEngine:
    """The state machine that keeps a buffer filled. The module docstring explains its rules."""

    def __init__(self, limits: PullLimits, tokens: Callable[[], bytes], now: float) -> None:
        self._limits: Final = limits
        self._tokens: Final = tokens
        self._requests: dict[bytes, _Request] = {}
        # Requests that are complete by the accounting, which a late status may still correct.
        self._presumed_full: dict[bytes, _Request] = {}
        self.buffered = 0
        self.buffered_bytes = 0
        self.still_wanted = limits.stop_after
        """Messages that the owner still wants, including buffered ones; None means no limit."""
        start = min(limits.max_messages, _SMALL_START)
        self._by_count: Final = limits.max_bytes is None or limits.max_messages < MANY
        self._by_age = limits.max_messages if limits.max_age is None else start
        self._by_size = limits.max_messages if limits.max_bytes is not None else start
        self._allowed = min(self._by_age, self._by_size)
        self._first = 0
        self._max_batch = min(limits.max_messages, limits.max_batch or limits.max_messages)
        self._size = 0
        self._pace = 0.0
        self._handed_at = 0.0
        self._paused_until = 0.0
        self._pauses = 0
        self._pulled_at = now
        self._heard_at = now
        self._arrived = 0
        self._hasty_ends = 0
        self._accepted = False
        self._last_warning = ""
        self._connected = True
        self._stopped = False
        self._actions: list[Action] = []
        self._pulls = 0
        self._statuses = 0
        # The number of statuses that did not end their request, and the number of such statuses and
        # of messages at the last pull.
        self._beats = 0
        self._before_pull = 0
        self.lone: Final = LoneAnswer()
        """The probes that find out whether several responses to a request arrive."""
        self._probe_token = b""
        if limits.heartbeat == float("inf"):
            self.lone.give_up()

    # ---- outstanding messages

    @property
    def outstanding(self) -> int:
        """Messages that were requested and have not arrived."""
        # A copy, because another thread may read this while the owner changes the requests.
        requests = tuple(self._requests.values())
        return requests[0].left if len(requests) == 1 else sum([each.left for each in requests])

    @property
    def outstanding_bytes(self) -> int:
        """Bytes that were requested and have not arrived."""
        return sum(request.bytes_left or 0 for request in self._requests.values())

    @property
    def open_requests(self) -> int:
        """Number of requests that no status has ended and that are incomplete by the accounting."""
        return len(self._requests)

    # ---- events

    def arrived(self, count: int, size: int) -> None:
        """Record messages that arrived; `size` is their total in bytes as counted by the server."""
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
        """Record the size of an arrived message. A buffer limited by bytes does not need this."""
        if size == self._size:
            return
        # The size grows at once but shrinks slowly, since later messages may be long again.
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
        self._pauses = 0
        self._paused_until = 0.0
        self._hasty_ends = 0

    def _note_life(self) -> None:
        self._accepted = True
        self._last_warning = ""

    def grant(self, sizes: Iterable[int] = ()) -> int:
        """Return how many messages the caller may receive before `due` can become true.

        `sizes` are the sizes of the buffered messages, in order, if the buffer is limited by bytes.
        The owner reports these messages with one call of `handed_over`, because a call for each
        would cost as much as parsing it.
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
            # A pull is due only when both thresholds are reached.
            granted = max(granted, fitting) if self._by_count else fitting
        return granted if self.still_wanted is None else min(granted, self.still_wanted)

    def may_pass(self) -> bool:
        """Return whether the owner may hand over the next message before it calls `arrived`.

        The buffer must be empty and limited by count only, and no pull may become due.
        """
        limits = self._limits
        if limits.max_bytes is not None or limits.priority is not None or self.buffered:
            return False
        return self.outstanding - 1 > self._threshold()

    def handed_over(self, size: int, now: float, count: int = 1) -> None:
        """Record that the caller received `count` messages, with `size` bytes in total."""
        self.buffered -= count
        self.buffered_bytes -= size
        if self._limits.max_age is not None and count:
            self._note_pace(now, count, self._limits.max_age)

    def _note_pace(self, now: float, count: int, max_age: float) -> None:
        if self._handed_at:
            # A moving average over about eight messages, in seconds per message. It includes the
            # time that the caller waited for messages, so `fitting` may be too low. While the
            # stream has more messages, the caller does not wait.
            mean = (now - self._handed_at) / count
            self._pace += (mean - self._pace) * min(1.0, count / 8)
            fitting = int(max_age / self._pace) if self._pace > 0 else self._limits.max_messages
            self._by_age = max(1, min(self._limits.max_messages, fitting))
            self._allowed = min(self._by_age, self._by_size)
        self._handed_at = now

    def probing(self) -> None:
        """Record that the owner sends a pull request whose messages the engine does not count."""
        self._pulls += 1

    def heard(self, at: float) -> None:
        """Record the time at which the reader last received anything for the subscription."""
        if at > self._heard_at:
            self._heard_at = at

    def status(self, status: Status, now: float) -> None:
        """Record a status; `poll` returns the resulting actions."""
        self.heard(now)
        self._statuses += 1
        self._beats += not status.ends
        if status.ends and status.token == self._probe_token:
            self.lone.refused(self._surplus)
        if not status.ends:
            self._note_life()
            return
        request = self._requests.pop(status.token, None)
        if request is None:
            request = self._presumed_full.pop(status.token, None)
        if request is None:
            # The status is late. The request with its token has already ended.
            return
        self._settle(request, status)
        if now - request.sent_at >= _LONG_LIFE:
            self._pauses = 0
            self._hasty_ends = 0
        # The second argument is true if no message arrived since the request was sent. Only such
        # requests could lead to a tight loop.
        self._react(status, request.sent_behind == self._arrived, now)

    def probe_failed(self, now: float) -> None:
        """Record that a probe had no responders, and pull again after a pause.

        The consumer was deleted or has no leader, so the server may never reply to the open
        requests. The reply to the next pull shows the reason.
        """
        if self._requests:
            self._void()
            self._back_off(now)

    def _settle(self, request: _Request, status: Status) -> None:
        if status.pending_messages is None or not self._requests:
            return
        # If fewer messages are pending than `request.left`, the difference was counted for the
        # oldest request by mistake. If more are pending, the reverse happened.
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
            case Kind.REFUSED if self._adopt_max_batch(status.text):
                self._warn(f"the pull ended with {status}; requesting fewer at once", status)
            case Kind.REFUSED if not self._accepted and self._limits.on_refused == "raise":
                self._finish(pull_error(status, self._limits))
            case Kind.REFUSED | Kind.BUSY | Kind.NO_RESPONDERS | Kind.UNKNOWN:
                self._back_off(now)
                self._warn(f"the pull ended with {status}; retrying", status)
            case Kind.TOO_BIG if fruitless:
                self._back_off(now)
                # While messages are buffered, this is no problem. After the caller has received
                # them, the next request asks for more bytes.
                if self.buffered == 0:
                    self._warn(f"the pull ended with {status}; retrying", status)
            case Kind.NO_MESSAGES if fruitless:
                self._back_off(now)
            case _:
                pass
        if status.kind is Kind.UNPINNED:
            self._actions.append(DropPin())
        if fruitless and status.kind in _RETRYABLE:
            self._accepted = True
            self._hasty_ends += 1
            if self._hasty_ends > 1:
                self._back_off(now)

    def _adopt_max_batch(self, refusal: str) -> bool:
        """Adopt the max_batch in the text of a refusal, in the two cases of the module docstring.

        Return whether it was adopted.
        """
        name, allowed = refused_limit(refusal)
        if name != "max_batch" or allowed is None:
            return False
        most = max(1, int(allowed))
        grown = self._accepted and most >= self._first
        if most >= self._max_batch or not (grown or self._limits.max_bytes is not None):
            return False
        self._max_batch = most
        return True

    def _warn(self, text: str, status: Status | None = None) -> None:
        self._actions.append(PullWarning(text, status, again=text == self._last_warning))
        self._last_warning = text

    def lost(self) -> None:
        """Record that the connection was lost. All requests are void, and the watchdog stops."""
        self._connected = False
        self.lone.give_up()
        self._void()

    def restored(self, now: float) -> None:
        """Record a reconnect. The next `poll` pulls immediately."""
        self._connected = True
        self.lone.give_up()
        self._void()
        self._heard_at = now
        self._paused_until = 0.0
        self._hasty_ends = 0

    def _void(self) -> None:
        self._requests.clear()
        self._presumed_full.clear()

    def go_on(self, now: float, at_least: float = 0.0) -> float:
        """Resume pulling after at least `at_least` seconds; return the time at which it resumes."""
        self._stopped = False
        self._void()
        self._back_off(now)
        self._paused_until = max(self._paused_until, now + at_least)
        return self._paused_until

    @property
    def is_stopped(self) -> bool:
        """Whether no more pulls may be sent, not even those that `poll` has returned."""
        return self._stopped

    def stop(self) -> None:
        """Stop pulling. The caller can still receive buffered messages."""
        self._stopped = True

    # ---- decisions

    def poll(self, now: float, *, watch: bool = True) -> list[Action]:
        """Return the actions to take. If `watch` is true, the watchdog may act.

        Pass true only if the owner was waiting before the call.
        """
        if self._paused_until <= now:
            self._paused_until = 0.0
        if self._connected and not self._stopped:
            if watch:
                self._watch(now)
                if not self.lone.is_over and now >= self._doubt_at():
                    self._doubt(now)
            if self.due(now):
                self._pull(now)
        actions, self._actions = self._actions, []
        return actions

    def put_back(self, actions: Iterable[Action]) -> None:
        """Queue actions again that the owner did not carry out, for example when cancelled."""
        self._actions = [*actions, *self._actions]

    def wake_at(self) -> float:
        """Return the time at which `poll` must be called again even without an event."""
        if not self._connected or self._stopped:
            return float("inf")
        wake_at = min(self._paused_until or float("inf"), self._keep_pin_at())
        if self._requests:
            wake_at = min(wake_at, self._heard_at + 2 * self._limits.heartbeat)
            if not self.lone.is_over:
                wake_at = min(wake_at, self._doubt_at())
        return wake_at

    @property
    def is_lone(self) -> bool:
        """Whether responses arrived, but none of the requests got several for certain."""
        return self._surplus <= 0 and self._arrived + self._beats > self._before_pull

    @property
    def _surplus(self) -> int:
        return self._arrived + self._statuses - self._pulls

    def _doubt_at(self) -> float:
        """Return when to send a probe or to judge its result; infinity if there is no reason."""
        if not self._requests:
            return float("inf")
        if self.lone.is_probing:
            return self.lone.due_at(self._surplus, self._heard_at)
        return self._heard_at + QUIET if self.is_lone else float("inf")

    def _doubt(self, now: float) -> None:
        verdict: Verdict | None = Verdict.AGAIN
        if self.lone.is_probing:
            verdict = self.lone.judge(self._surplus, self._heard_at, now)
        if verdict is Verdict.AGAIN:
            self._pulls += 1
            self.lone.sent(self._surplus, now)
            self._probe_token = self._tokens()
            self._actions.append(SendProbe(self._probe_token))
        elif verdict is not None:
            self._actions.append(Probed(verdict))

    def _keep_pin_at(self) -> float:
        """Return the time of the next pull that keeps the pin; infinity if there is none."""
        every = self._limits.pull_every
        if every is None or self._capacity() <= 0:
            return float("inf")
        return max(self._pulled_at + every, self._paused_until)

    def _watch(self, now: float) -> None:
        if not self._requests or now < self._heard_at + 2 * self._limits.heartbeat:
            return
        silence = 2 * self._limits.heartbeat
        self._void()
        self._heard_at = now
        self._warn(f"nothing received for {silence:g} s, two heartbeats; pulling again")

    def due(self, now: float) -> bool:
        """Return whether `poll` would pull. This is fast, since it is called for every message."""
        limits = self._limits
        keep_pin = limits.pull_every is not None and now >= self._keep_pin_at()
        if not keep_pin and self.buffered > limits.threshold:
            return False
        if (
            not self._connected
            or self._stopped
            or now < self._paused_until
            or self._capacity() <= 0
        ):
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
        """Return the largest number of buffered and outstanding messages at which a pull is due."""
        threshold = self._limits.threshold
        if self._allowed < self._limits.max_messages:
            return min(threshold, self._allowed // 2)
        return threshold

    def _capacity(self) -> int:
        """Return how many more messages may be requested."""
        waiting = self._limits.max_waiting
        if waiting is not None and self.open_requests >= waiting:
            return 0
        if self.still_wanted is None:
            return self._limits.max_messages
        return self.still_wanted - self.buffered - self.outstanding

    def _pull(self, now: float) -> None:
        limits = self._limits
        token = self._tokens()
        # A pull that only keeps the pin requests one message more than fits.
        batch, max_bytes = limits.max_messages, limits.max_bytes
        if self._by_count:
            batch = max(1, self._allowed - self.buffered - self.outstanding)
        if max_bytes is not None:
            max_bytes -= self.buffered_bytes + self.outstanding_bytes
            batch, max_bytes = (batch, max_bytes) if max_bytes > 0 else (1, None)
        batch = min(batch, self._capacity(), self._max_batch)
        self._first = self._first or batch
        self._pulled_at = now
        self._pulls += 1
        self._before_pull = self._arrived + self._beats
        self._requests[token] = _Request(batch, max_bytes, now, self._arrived)
        self._actions.append(SendPull(token, batch, max_bytes))

    def _back_off(self, now: float) -> None:
        self._pauses += 1
        self._paused_until = now + _BACKOFF.pause(self._pauses)

    def _finish(self, error: TwinstreamError) -> None:
        self._stopped = True
        self._actions.append(Finish(error))
