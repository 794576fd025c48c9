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

from collections.abc import Callable, Iterable
from typing import Final

from attrs import frozen

from twinstream.core.consume.buffer_budget import BufferBudget
from twinstream.core.consume.pull_accounting import OpenRequest, OpenRequests
from twinstream.core.consume.pull_error import pull_error, refused_limit
from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.consume.pull_watchdog import Watchdog
from twinstream.core.consume.reports import PullWarning
from twinstream.core.deadline import Backoff
from twinstream.core.wire.single_answers import LoneAnswer, Verdict
from twinstream.core.wire.status import Kind, Status
from twinstream.errors import TwinstreamError

__all__ = ["Action", "DropPin", "Finish", "Probed", "PullEngine", "SendProbe", "SendPull"]

_BACKOFF: Final = Backoff(0.05, 5.0)
# Seconds. A request that lived this long was accepted, so its end causes no back-off.
_LONG_LIFE: Final = 1.0
_RETRYABLE: Final = {Kind.EXPIRED, Kind.COMPLETED, Kind.INTERRUPTED, Kind.UNPINNED}


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


class _Pauses:
    """The pauses between pulls: they grow while requests end without a message."""

    def __init__(self) -> None:
        self.until = 0.0
        """The monotonic time before which no pull is sent, or 0."""
        self._count = 0
        self._hasty_ends = 0

    def note_progress(self) -> None:
        """Record that messages arrived."""
        self._count = 0
        self.until = 0.0
        self._hasty_ends = 0

    def note_long_life(self) -> None:
        """Record the end of a request that was accepted for a while."""
        self._count = 0
        self._hasty_ends = 0

    def restored(self) -> None:
        """Record a reconnect: the next pull needs no pause."""
        self.until = 0.0
        self._hasty_ends = 0

    def back_off(self, now: float) -> None:
        """Begin the next pause, which is longer."""
        self._count += 1
        self.until = now + _BACKOFF.pause(self._count)

    def ended_early(self, now: float) -> None:
        """Record a request that ended soon and without a message. Only the first has no pause."""
        self._hasty_ends += 1
        if self._hasty_ends > 1:
            self.back_off(now)


class PullEngine:
    """The state machine that keeps a buffer filled. The module docstring explains its rules.

    It decides with the accounting of its requests, the budget of the buffer, and the watchdog.
    """

    def __init__(self, limits: PullLimits, tokens: Callable[[], bytes], now: float) -> None:
        self._limits: Final = limits
        self._tokens: Final = tokens
        self.requests: Final = OpenRequests()
        """The accounting of the requests."""
        self.budget: Final = BufferBudget(limits)
        """The contents and limits of the buffer."""
        self._watchdog: Final = Watchdog(limits.heartbeat, now)
        self.still_wanted = limits.stop_after
        """Messages that the owner still wants, including buffered ones; None means no limit."""
        self._first = 0
        self._max_batch = min(limits.max_messages, limits.max_batch or limits.max_messages)
        self._pauses: Final = _Pauses()
        self._pulled_at = now
        self._accepted = False
        self._last_warning = ""
        self._connected = True
        self._stopped = False
        self._actions: list[Action] = []

    @property
    def lone(self) -> LoneAnswer:
        """The probes that find out whether several responses to a request arrive."""
        return self._watchdog.lone

    # ---- events

    def arrived(self, count: int, size: int) -> None:
        """Record messages that arrived; `size` is their total in bytes as counted by the server."""
        self.budget.buffered += count
        self.budget.buffered_bytes += size
        if count:
            self._note_life()
            self._pauses.note_progress()
            self._watchdog.arrived += count
        self.requests.arrived(count, size)

    def note_size(self, size: int) -> None:
        """Record the size of an arrived message. A buffer limited by bytes does not need this."""
        self.budget.note_size(size)

    def _note_life(self) -> None:
        self._accepted = True
        self._last_warning = ""

    def grant(self, sizes: Iterable[int] = ()) -> int:
        """Return how many messages the caller may receive before `due` can become true.

        `sizes` are the sizes of the buffered messages, in order, if the buffer is limited by bytes.
        The owner reports these messages with one call of `handed_over`, because a call for each
        would cost as much as parsing it.
        """
        if self._limits.pull_every is not None or not self.budget.buffered:
            return 0
        # Without a limit by bytes, the sum of the outstanding bytes would be computed in vain.
        by_bytes = self._limits.max_bytes is not None
        missing = self.requests.outstanding_bytes if by_bytes else 0
        granted = self.budget.grant(self.requests.outstanding, missing, sizes)
        return granted if self.still_wanted is None else min(granted, self.still_wanted)

    def may_pass(self) -> bool:
        """Return whether the owner may hand over the next message before it calls `arrived`.

        The buffer must be empty and limited by count only, and no pull may become due.
        """
        limits = self._limits
        if limits.max_bytes is not None or limits.priority is not None or self.budget.buffered:
            return False
        return self.budget.may_pass(self.requests.outstanding)

    def handed_over(self, size: int, now: float, count: int = 1) -> None:
        """Record that the caller received `count` messages, with `size` bytes in total."""
        self.budget.handed_over(size, now, count)

    def note_wanted(self, count: int) -> None:
        """Record that the caller received `count` of the messages that it still wants."""
        if self.still_wanted is not None:
            self.still_wanted -= count

    def probing(self) -> None:
        """Record that the owner sends a pull request whose messages the engine does not count."""
        self._watchdog.pulls += 1

    def note_response(self, at: float) -> None:
        """Record the time at which the reader last received anything for the subscription."""
        self._watchdog.note_response(at)

    def status(self, status: Status, now: float) -> None:
        """Record a status; `poll` returns the resulting actions."""
        self._watchdog.status(status, now)
        if not status.ends:
            self._note_life()
            return
        request = self.requests.end(status)
        if request is None:
            # The status is late. The request with its token has already ended.
            return
        if now - request.sent_at >= _LONG_LIFE:
            self._pauses.note_long_life()
        # Only a request that ended without messages could lead to a tight loop.
        without_messages = request.sent_behind == self._watchdog.arrived
        self._react(status, without_messages, now)

    def probe_failed(self, now: float) -> None:
        """Record that a probe had no responders, and pull again after a pause.

        The consumer was deleted or has no leader, so the server may never reply to the open
        requests. The reply to the next pull shows the reason.
        """
        if self.requests.open:
            self.requests.void()
            self._pauses.back_off(now)

    def _react(self, status: Status, without_messages: bool, now: float) -> None:
        """Process a status that ended a request: finish, or retry, in most cases after a pause.

        `without_messages` is true if no message arrived after the request was sent.
        """
        match status.kind:
            case Kind.DELETED | Kind.NOT_PULL | Kind.BAD_REQUEST:
                self._finish(pull_error(status, self._limits))
            case Kind.REFUSED if self._adopt_max_batch(status.text):
                self._warn(f"the pull ended with {status}; requesting fewer at once", status)
            case Kind.REFUSED if not self._accepted and self._limits.on_refused == "raise":
                self._finish(pull_error(status, self._limits))
            case Kind.REFUSED | Kind.BUSY | Kind.NO_RESPONDERS | Kind.UNKNOWN:
                self._pauses.back_off(now)
                self._warn(f"the pull ended with {status}; retrying", status)
            case Kind.TOO_BIG if without_messages:
                self._pauses.back_off(now)
                # While messages are buffered, this is no problem. After the caller has received
                # them, the next request asks for more bytes.
                if self.budget.buffered == 0:
                    self._warn(f"the pull ended with {status}; retrying", status)
            case Kind.NO_MESSAGES if without_messages:
                self._pauses.back_off(now)
            case _:
                pass
        if status.kind is Kind.UNPINNED:
            self._actions.append(DropPin())
        if without_messages and status.kind in _RETRYABLE:
            # The server accepted the request, otherwise it would have refused it at once.
            self._accepted = True
            self._pauses.ended_early(now)

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
        self._watchdog.lone.give_up()
        self.requests.void()

    def restored(self, now: float) -> None:
        """Record a reconnect. The next `poll` pulls immediately."""
        self._connected = True
        self._watchdog.lone.give_up()
        self.requests.void()
        self._watchdog.heard_at = now
        self._pauses.restored()

    def go_on(self, now: float, at_least: float = 0.0) -> float:
        """Resume pulling after at least `at_least` seconds; return the time at which it resumes."""
        self._stopped = False
        self.requests.void()
        self._pauses.back_off(now)
        self._pauses.until = max(self._pauses.until, now + at_least)
        return self._pauses.until

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
        if self._pauses.until <= now:
            self._pauses.until = 0.0
        if self._connected and not self._stopped:
            if watch and self.requests.open:
                self._watch(now)
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
        wake_at = min(self._pauses.until or float("inf"), self._keep_pin_at())
        return min(wake_at, self._watchdog.wake_at()) if self.requests.open else wake_at

    @property
    def is_lone(self) -> bool:
        """Whether responses arrived, but none of the requests got several for certain."""
        return self._watchdog.is_lone

    def _watch(self, now: float) -> None:
        """Void the requests after silence, and send or judge a probe if it is time for it."""
        watchdog = self._watchdog
        if watchdog.is_silent(now):
            self.requests.void()
            watchdog.heard_at = now
            text = f"nothing received for {watchdog.silence:g} s, two heartbeats; pulling again"
            self._warn(text)
        elif not watchdog.lone.is_over and now >= watchdog.doubt_at():
            verdict = watchdog.judge(now)
            if verdict is Verdict.AGAIN:
                token = self._tokens()
                watchdog.probed(token, now)
                self._actions.append(SendProbe(token))
            elif verdict is not None:
                self._actions.append(Probed(verdict))

    def _keep_pin_at(self) -> float:
        """Return the time of the next pull that keeps the pin; infinity if there is none."""
        every = self._limits.pull_every
        if every is None or self._capacity() <= 0:
            return float("inf")
        return max(self._pulled_at + every, self._pauses.until)

    def due(self, now: float) -> bool:
        """Return whether `poll` would pull. This is fast, since it is called for every message."""
        limits = self._limits
        keep_pin = limits.pull_every is not None and now >= self._keep_pin_at()
        if not keep_pin and self.budget.buffered > limits.threshold:
            return False
        if (
            not self._connected
            or self._stopped
            or now < self._pauses.until
            or self._capacity() <= 0
        ):
            return False
        if keep_pin:
            return True
        missing = self.requests.outstanding_bytes if limits.max_bytes is not None else 0
        return self.budget.is_low(self.requests.outstanding, missing)

    def _capacity(self) -> int:
        """Return how many more messages may be requested."""
        waiting = self._limits.max_waiting
        if waiting is not None and len(self.requests.open) >= waiting:
            return 0
        if self.still_wanted is None:
            return self._limits.max_messages
        return self.still_wanted - self.budget.buffered - self.requests.outstanding

    def _pull(self, now: float) -> None:
        token, requests = self._tokens(), self.requests
        batch, max_bytes = self.budget.room(requests.outstanding, requests.outstanding_bytes)
        batch = min(batch, self._capacity(), self._max_batch)
        self._first = self._first or batch
        self._pulled_at = now
        self._watchdog.pulled()
        requests.open[token] = OpenRequest(batch, max_bytes, now, self._watchdog.arrived)
        self._actions.append(SendPull(token, batch, max_bytes))

    def _finish(self, error: TwinstreamError) -> None:
        self._stopped = True
        self._actions.append(Finish(error))
