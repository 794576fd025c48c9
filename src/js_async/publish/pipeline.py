"""Messages in flight: send them without waiting, and match acknowledgements to messages.

Four measures keep this fast:

- All acknowledgements come to one inbox. A number in the reply subject identifies the message.
- Most acknowledgements are not parsed as JSON. If many arrive together, one regular expression
  finds them all. A single acknowledgement is compared with the previous one, because usually only
  the sequence differs.
- The code that reads the socket stores each outcome in the message's entry.
- Callers that wait for the same message share one signal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from js_async.api.api import Api
from js_async.client.transport import Box
from js_async.publish.diagnose import Diagnosis
from js_async.publish.inflight import InFlight, Outcome, new_engine, under_way
from js_async.publish.verify_stored import prove
from js_async.runtime.concurrency import Lock, Signal
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached
from twinstream.core.on_failure import OnFailure
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.publish_engine import (
    Action,
    Explain,
    Fail,
    Listen,
    Prove,
    PublishEngine,
    Send,
)
from twinstream.core.publish.request import as_request, publish_headers
from twinstream.core.wire.bulk_acks import BulkAcks
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.wire.pub_ack import AckReader
from twinstream.core.wire.status import is_unserved
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import (
    BadAnswer,
    NoResponders,
    OutcomeUnknown,
    PublishFailure,
    TwinstreamError,
)
from twinstream.models import PubAck
from twinstream.records.publish_request import PLAIN, Publishable, PublishRequest

__all__ = ["Pipeline"]

# Maximum number of checked subjects to cache.
_SUBJECTS: Final = 1000


class Pipeline:
    """The messages in flight of one publisher, and the outcome of each.

    `on_done` is called with each message and its outcome before the outcome is visible, often by
    the code that reads the socket. It returns False if it was already called for this message: a
    response and a timeout may come at the same time. The pipeline's owner limits the number of
    messages in flight.
    """

    def __init__(
        self,
        api: Api,
        limits: PublishLimits,
        on_done: Callable[[InFlight, Outcome], bool] | None = None,
    ) -> None:
        self._api: Final = api
        self._transport: Final = api.transport
        self._policy: Final = limits.retry
        self._timeout: Final = limits.timeout
        if api.on_call is not None:
            from js_async.publish.call_reports import telling

            on_done = telling(api.on_call, on_done)
        self._on_done: Final = on_done
        share = limits.retry.patience(limits.timeout, True, 0)
        # An attempt without a response counts as failed after this time (seconds).
        self._share: Final = share
        self._prefix: Final = api.transport.tokens.inbox().encode() + b"."
        # Template of reply subjects; `%d` is replaced by the number of the message.
        self._inbox: Final = self._prefix.replace(b"%", b"%%") + b"%d"
        self._number = 0
        self._waiting: dict[bytes, InFlight] = {}
        # Reply subjects of messages in `_waiting` that cannot be sent before the connection is
        # ready.
        self._unsent: Final[set[bytes]] = set()
        self._to_recover: deque[InFlight] = deque()
        self._subjects: dict[str, bytes] = {}
        self._acks: Final = AckReader()
        self._box: Box | None = None
        self._flagging: Final = Lock()
        self._cutter: BulkAcks | None = None

    @property
    def oldest(self) -> InFlight | None:
        """The message that has been in flight for the longest time, or None."""
        while True:
            try:
                return next(iter(self._waiting.values()), None)
            except RuntimeError:
                # Another thread changed the dict during `next` (free-threaded interpreter).
                continue

    @property
    def is_over(self) -> bool:
        """Whether the connection is closed permanently and no message is in flight."""
        return self._transport.is_closed and not self._waiting

    def under_way(self) -> list[InFlight]:
        """Return all messages in flight, in sending order."""
        return list(self._waiting.values())

    async def open(self) -> None:
        """Wait for the connection, then subscribe to the inbox. Does nothing if already open."""
        if self._box is None:
            await self._transport.ready(Deadline.after(self._timeout))
            self._box = await self._transport.open_mailbox(self._prefix + b"*", sink=self._sink)
            self._cutter = BulkAcks(self._box.sid, self._prefix, self._deliver_all)
            self._transport.cut_acks(self._cutter)
            self._transport.replies.watch(self)

    async def close(self) -> None:
        """Unsubscribe. Messages still in flight get the outcome `OutcomeUnknown`."""
        box = self._box
        if box is not None:
            self._transport.replies.unwatch(self)
            for entry in self.under_way():
                text = f"{entry.request.subject}: closed before it was acknowledged, may be stored"
                self._finish(entry, PublishFailure(entry.request, OutcomeUnknown(text)))
            await self._transport.close_mailbox(box)
            # `_box` is cleared last, so that `close` can be called again after an interrupted call.
            self._box = None

    # ---- sending

    def prepare(self, given: Publishable) -> InFlight:
        """Return the entry of a message; if the message is invalid, its outcome is the error.

        Raises `BadArgument` if `given` is neither a pair nor a `PublishRequest`.
        """
        # A valid `(subject, data)` pair needs no conversion.
        plain = type(given) is tuple and len(given) == 2 and type(given[1]) is bytes
        if not plain:
            given = as_request(given)
            plain = given[2] is None and given[2:] == PLAIN and type(given.data) is bytes
        try:
            headers = b"" if plain else publish_headers(as_request(given))
            try:
                subject = self._subjects.get(given[0]) or self._check(given[0])
            except TypeError:
                # The subject is unhashable, so it is no string: `check_subject` raises.
                subject = check_subject(given[0])
        except TwinstreamError as error:
            # The entry gets a new request without data: the given data may have no length.
            entry = under_way(PublishRequest(str(given[0])), b"", b"", b"", 0.0)
            entry.outcome = PublishFailure(as_request(given), error)
            return entry
        self._number = number = self._number + 1
        return under_way(given, subject, self._inbox % number, headers, monotonic())

    def _check(self, subject: str) -> bytes:
        if len(self._subjects) >= _SUBJECTS:
            self._subjects.clear()
        self._subjects[subject] = encoded = check_subject(subject)
        return encoded

    def expect(self, entry: InFlight) -> None:
        """Count a message as in flight. Called before the message is sent."""
        self._waiting[entry.reply] = entry

    def forget(self, entry: InFlight) -> None:
        """Stop counting a message as in flight, and wake up the callers that wait for it."""
        self._waiting.pop(entry.reply, None)
        if entry.signal is not None:
            entry.signal.set()

    def try_send(self, entry: InFlight) -> bool:
        """Send a message if possible without waiting. If the result is False, call `send`."""
        if HOOKS:
            reached("publish: before send", entry)
        self._waiting[entry.reply] = entry
        return self._transport.write(entry.subject, entry.reply, entry.headers, entry.data)

    async def send(self, entry: InFlight) -> None:
        """Send a message, after waiting for the connection if necessary.

        A failure to send becomes the outcome of the message, possibly after retries.
        """
        with OnFailure(partial(self.forget, entry)):
            self._waiting[entry.reply] = entry
            await self._send(entry)

    async def _send(self, entry: InFlight) -> None:
        try:
            # If the connection is lost during this wait, `note` fails the messages in flight. This
            # message is not sent yet, so `note` must skip it.
            self._unsent.add(entry.reply)
            try:
                await self._transport.ready(Deadline(self._end(entry)))
            finally:
                self._unsent.discard(entry.reply)
            await self._transport.send(entry.subject, entry.reply, entry.headers, entry.data)
        except TwinstreamError as error:
            self._act(entry, self._engine(entry).unsent(error, self._left(entry)))

    # ---- answers

    def _sink(self, _: Box) -> Sink:
        return self._deliver

    def _deliver(self, frame: Frame) -> None:
        entry = self._waiting.get(frame[0])
        # A second response, or a response after the timeout: the message has an outcome already.
        if entry is None:
            return
        # Most acknowledgements differ from the previous one in the sequence only: a fast path.
        guarded = entry.headers and entry.request.expected_stream is not None
        ack = None if guarded else self._acks.like_last(frame)
        if ack is None or entry.outcome is not None:
            self._judge(entry, frame)
            return
        if self._cutter is not None and self._cutter.is_learning:
            self._cutter.learn(frame, self._acks.shape)
        self._finish(entry, ack)

    def _deliver_all(self, replies: list[bytes], acks: list[PubAck]) -> None:
        """Process acknowledgements that were received in one read."""
        waiting = self._waiting
        for reply, ack in zip(replies, acks, strict=True):
            entry = waiting.get(reply)
            if entry is None:
                continue
            # `expected_stream` is sent as a header, so only messages with headers can have it.
            if entry.headers and not self._is_expected(entry, ack):
                continue
            self._finish(entry, ack)

    def _is_expected(self, entry: InFlight, ack: PubAck) -> bool:
        """Return whether an acknowledgement is from the stream that the request expects, if any."""
        expected = entry.request.expected_stream
        if expected in {None, ack.stream}:
            return True
        # Another responder acknowledged the message. The expected stream may still respond.
        text = f"{entry.request.subject}: {ack.stream} is not the expected stream"
        self._engine(entry).stray = BadAnswer(text)
        return False

    def _judge(self, entry: InFlight, frame: Frame) -> None:
        """Parse a response and set the outcome of its message, or handle the failure."""
        request = entry.request
        try:
            if is_unserved(frame):
                raise NoResponders(f"{request.subject}: no responders for this subject")
            ack = self._acks.read(frame, request.subject)
        except BadAnswer as error:
            self._engine(entry).stray = error
        except TwinstreamError as error:
            self._fail(entry, error)
        else:
            if self._is_expected(entry, ack):
                self._finish(entry, ack)

    def _finish(self, entry: InFlight, outcome: Outcome) -> None:
        # A response and a timeout may come at the same time; the first one is the outcome.
        if entry.outcome is None:
            if HOOKS:
                reached("publish: before outcome", entry)
            try:
                if self._on_done is not None and not self._on_done(entry, outcome):
                    return
            except BaseException:
                # An interrupt. If `on_done` has recorded the message, no later call sets its
                # outcome.
                if entry.is_told:
                    entry.outcome = outcome
                    self.forget(entry)
                raise
            entry.outcome = outcome
        self._waiting.pop(entry.reply, None)
        if entry.signal is not None:
            entry.signal.set()

    def note(self, subject: bytes | None, error: TwinstreamError) -> None:
        """Handle messages in flight that get no response; `error` is the reason.

        These are the messages with `subject` (in lower case), or all messages if it is None.
        Messages that were not sent yet are skipped.
        """
        for entry in list(self._waiting.values()):
            if entry.reply in self._unsent:
                continue
            # Compare without case: nats-py converts the server's error text to lower case.
            if subject is None or entry.subject.lower() == subject:
                self._fail(entry, error)

    def deny(self, box: Box, error: TwinstreamError) -> None:
        """Fail all messages in flight if the server refused the subscription to the inbox."""
        if box is self._box:
            self.note(None, error)

    def _look_for_denial(self) -> None:
        """Fail the messages in flight if the server has refused the inbox.

        `deny` may miss messages that were added while it ran.
        """
        box = self._box
        if box is not None and box.error is not None and self._waiting:
            self.note(None, box.error)

    def _engine(self, entry: InFlight) -> PublishEngine:
        """Return the engine of a message; it is created at the first failure."""
        if entry.engine is None:
            is_clustered = bool(self._transport.server_info.cluster)
            entry.engine = new_engine(entry, self._policy, is_clustered)
        return entry.engine

    def _fail(self, entry: InFlight, error: TwinstreamError) -> None:
        """Pass the error of an attempt to the engine, and carry out the engine's action."""
        engine = self._engine(entry)
        if entry.action is None:
            self._act(entry, engine.failed(error, self._left(entry)))
        elif isinstance(error, NoResponders) and isinstance(entry.action, Explain):
            # `_explain` is looking for the reason of a timeout. A late response has now reported
            # that there are no responders.
            engine.error = error

    def _act(self, entry: InFlight, action: Action) -> None:
        """Set the outcome if the action is `Fail`, else queue the message for `recover`."""
        if isinstance(action, Fail):
            self._finish(entry, PublishFailure(entry.request, action.error))
            return
        entry.action = action
        self._to_recover.append(entry)
        if entry.signal is not None:
            entry.signal.set()

    def _end(self, entry: InFlight) -> float:
        return entry.started + self._timeout

    def _left(self, entry: InFlight) -> float:
        return self._end(entry) - monotonic()

    # ---- waiting

    async def until(self, entry: InFlight) -> Outcome:
        """Wait for the outcome of a message and return it.

        A caller that waits also carries out the retries of all other messages.
        """
        while entry.outcome is None:
            # Check the outcome last: an entry gets its outcome before it is removed.
            if entry.reply not in self._waiting and entry.outcome is None:
                # The sender was cancelled or interrupted, so no response is expected.
                text = f"{entry.request.subject}: interrupted during the send, may be stored"
                return PublishFailure(entry.request, OutcomeUnknown(text))
            if self._to_recover:
                await self.recover()
                continue
            self._look_for_denial()
            # Several callers may share the signal. Check the state again after clearing it.
            signal = await self._flag(entry)
            signal.clear()
            # The outcome may have arrived before the signal was created. If another caller has
            # taken the message out of `_to_recover` to retry it, wait for the signal.
            if entry.outcome is not None or (entry.action is not None and self._to_recover):
                signal.set()
            if not await self._transport.wait(signal, Deadline(self._next_look())):
                self.expire()
        return entry.outcome

    async def _flag(self, entry: InFlight) -> Signal:
        """Return the signal that all callers waiting for this message share."""
        async with self._flagging:
            if entry.signal is None:
                if HOOKS:
                    reached("publish: before flag", entry)
                entry.signal = Signal()
            return entry.signal

    def _next_look(self) -> float:
        oldest = self.oldest
        soon = monotonic() + self._share
        if oldest is None or oldest.action is not None:
            return soon
        return min(soon, self._due(oldest))

    def _due(self, entry: InFlight) -> float:
        if self._may_repeat(entry):
            return entry.sent_at + self._share
        return self._policy.last_due(entry.sent_at, self._end(entry))

    def _may_repeat(self, entry: InFlight) -> bool:
        if entry.engine is not None:
            return entry.engine.may_repeat
        return self._policy.retries > 0 and entry.repeatable

    def expire(self) -> None:
        """Let the engine handle each message whose attempt got no response in time."""
        self._look_for_denial()
        now = monotonic()
        for entry in list(self._waiting.values()):
            if entry.action is None and self._due(entry) <= now:
                self._act(entry, self._engine(entry).silent(self._end(entry) - now))

    # ---- recovering

    async def look(self) -> None:
        """Process responses that arrived while the caller did not wait."""
        await self._transport.wait(Signal(), Deadline.after(0))

    async def tend(self) -> None:
        """Carry out due timeouts and retries. Called by owners that do not wait for an outcome."""
        self.expire()
        if self._to_recover:
            await self.recover()

    async def recover(self) -> None:
        """Carry out the pending actions of messages; send retries in the original order."""
        if HOOKS:
            reached("publish: before recovery", self)
        batch: deque[InFlight] = deque()
        with OnFailure(partial(self._put_back, batch)):
            try:
                while self._to_recover:
                    batch.append(self._to_recover.popleft())
            except IndexError:
                # Another thread took the last message from the deque.
                pass
            await self._recover(batch)

    def _put_back(self, batch: deque[InFlight]) -> None:
        for entry in batch:
            if entry.action is not None:
                self._to_recover.append(entry)
                if entry.signal is not None:
                    entry.signal.set()

    async def _recover(self, batch: deque[InFlight]) -> None:
        reasons = Diagnosis(self._api)
        pause = 0.0
        for entry in batch:
            if entry.outcome is not None:
                continue
            action = entry.action
            if isinstance(action, Prove):
                await self._prove(entry, action.refusal)
            elif isinstance(action, Explain):
                await self._explain(entry, action, reasons)
            if isinstance(entry.action, Send | Listen):
                pause = max(pause, entry.action.pause)
        if pause:
            # Responses may arrive during the pause.
            await self._transport.wait(Signal(), Deadline.after(pause))
        while batch:
            await self._repeat(batch[0])
            batch.popleft()

    async def _repeat(self, entry: InFlight) -> None:
        # Clear the action before the send: the response may arrive during the send.
        action, entry.action = entry.action, None
        if isinstance(action, Listen) and entry.outcome is None:
            self._act(entry, action.then)
        # No retry is needed if another caller sent the message or set its outcome, or `close` ran.
        is_waiting = entry.outcome is None and entry.reply in self._waiting
        if not isinstance(action, Send) or not is_waiting:
            return
        engine = self._engine(entry)
        engine.attempts += 1
        entry.sent_at = monotonic()
        if engine.error is not None:
            self._api.log_retry(entry.request.subject, engine.error)
        is_sent = False
        try:
            if not self.try_send(entry):
                await self._send(entry)
            is_sent = True
        finally:
            if not is_sent:
                # The send was interrupted. With its action restored, the next caller retries it.
                engine.attempts -= 1
                entry.action = action
            if entry.outcome is not None:
                self.forget(entry)

    async def _prove(self, entry: InFlight, refusal: TwinstreamError) -> None:
        deadline = Deadline(max(self._end(entry), monotonic() + self._policy.wait))
        try:
            found = await prove(self._api, entry.request, refusal, deadline)
        except TwinstreamError as failure:
            self._finish(entry, PublishFailure(entry.request, failure))
        else:
            self._finish(entry, found)

    async def _explain(self, entry: InFlight, action: Explain, reasons: Diagnosis) -> None:
        """Find out why no stream stored a message, then retry it or set its outcome."""
        deadline = Deadline(self._end(entry))
        why = await reasons.of(entry.request.subject, deadline, silent=action.silent)
        after = self._engine(entry).explained(why, self._left(entry))
        if isinstance(after, Send):
            entry.action = after
        elif entry.outcome is None:
            self._finish(entry, PublishFailure(entry.request, after.error))
