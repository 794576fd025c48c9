"""Messages in flight: send them without waiting, and match acknowledgements to messages.

Four measures keep this fast:

- All acknowledgements come to one inbox. A number in the reply subject identifies the message.
- Most acknowledgements are not parsed as JSON; see `twinstream.core.wire.fast`.
- The code that reads the socket stores each outcome in the message's entry.
- Callers that wait for the same message share one signal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.publish.ack_inbox import AckInbox
from js_async.publish.diagnose import Diagnosis
from js_async.publish.inflight import InFlight, Outcome, new_engine
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
from twinstream.core.wire.fast import AckReader, BulkAcks
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.subjects import known_subject
from twinstream.errors import (
    InvalidResponse,
    NoResponders,
    OutcomeUnknown,
    PublishFailure,
    TwinstreamError,
)
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable, PublishRequest

if TYPE_CHECKING:
    from js_async.publish.observed_messages import ObservedMessages

__all__ = ["Pipeline"]


class Pipeline:
    """The messages in flight of one publisher, and the outcome of each.

    `on_done` is called with each message and its outcome before the outcome is visible, often by
    the code that reads the socket. It returns False if it was already called for this message: a
    response and a timeout may come at the same time. The pipeline's owner limits the number of
    messages in flight. `name` is the call that sends the messages, for observers.
    """

    def __init__(
        self,
        api: Api,
        limits: PublishLimits,
        on_done: Callable[[InFlight, Outcome], bool] | None = None,
        name: str = "publish",
    ) -> None:
        self._api: Final = api
        self._transport: Final = api.transport
        self.limits: Final = limits
        self._observed: ObservedMessages | None = None
        if api.transport.call_observers is not None:
            from js_async.publish.observed_messages import ObservedMessages

            self._observed = ObservedMessages(
                api.transport.call_observers, name, lambda: len(self._waiting), on_done
            )
            on_done = self._observed.done
        self._on_done: Final = on_done
        # An attempt without a response counts as failed after this time (seconds).
        self._share: Final = limits.retry.patience(limits.timeout, True, 0)
        self._inbox: Final = AckInbox(api.transport, b".*", self._deliver, self.note)
        # Template of reply subjects; `%d` is replaced by the number of the message.
        self._reply: Final = self._inbox.name.replace(b"%", b"%%") + b".%d"
        self._number = 0
        self._waiting: dict[bytes, InFlight] = {}
        # Reply subjects of messages in `_waiting` that cannot be sent before the connection is
        # ready.
        self._unsent: Final[set[bytes]] = set()
        self._to_recover: deque[InFlight] = deque()
        self._acks: AckReader | BulkAcks = AckReader()
        self._flagging: Final = Lock()

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

    def in_flight(self) -> list[InFlight]:
        """Return all messages in flight, in sending order."""
        return list(self._waiting.values())

    async def open(self) -> None:
        """Wait for the connection, then subscribe to the inbox. Does nothing if already open."""
        if not self._inbox.is_open:
            await self._transport.ready(Deadline.after(self.limits.timeout))
            box = await self._inbox.open()
            self._acks = acks = BulkAcks(box.sid, self._inbox.name + b".", self._deliver_all)
            self._transport.cut_acks(acks)

    async def close(self) -> None:
        """Unsubscribe. Messages still in flight get the outcome `OutcomeUnknown`."""
        if self._inbox.is_open:
            for entry in self.in_flight():
                text = f"{entry.request.subject}: closed before it was acknowledged, may be stored"
                self._finish(entry, PublishFailure(entry.request, OutcomeUnknown(text)))
            await self._inbox.close()

    # ---- sending

    def prepare(self, given: Publishable) -> InFlight:
        """Return the entry of a message; if the message is invalid, its outcome is the error.

        Raises `BadArgument` if `given` is neither a pair nor a `PublishRequest`.
        """
        # A valid `(subject, data)` pair needs no conversion and has no headers.
        is_pair = type(given) is tuple and len(given) == 2 and type(given[1]) is bytes
        request = None if is_pair and type(given[0]) is str else as_request(given)
        try:
            headers = b"" if request is None else publish_headers(request)
            subject = known_subject(given[0])
        except TwinstreamError as error:
            request = as_request(given)
            # The entry gets a new request without data: the given data may have no length.
            entry = InFlight(PublishRequest(str(request.subject)), b"", b"", b"", 0.0)
            entry.outcome = PublishFailure(request, error)
            return entry
        self._number = number = self._number + 1
        entry = InFlight(given, subject, self._reply % number, headers, monotonic())
        return entry if self._observed is None else self._observed.begun(entry)

    def expect(self, entry: InFlight) -> None:
        """Count a message as in flight. Called before the message is sent."""
        self._waiting[entry.reply] = entry

    def forget(self, entry: InFlight) -> None:
        """Stop counting a message as in flight, and wake up the callers that wait for it."""
        self._waiting.pop(entry.reply, None)
        if self._observed is not None and entry.outcome is None:
            self._observed.forget(entry)
        if entry.signal is not None:
            entry.signal.set()

    def write(self, entry: InFlight) -> bool:
        """Send a message if that needs no waiting. If the result is False, call `send`."""
        if HOOKS:
            reached("publish: before send", entry)
        if entry.outcome is not None:
            # The connection was lost after `expect`, which has failed the message: do not send it.
            return True
        self._waiting[entry.reply] = entry
        return self._transport.write(entry.subject, entry.reply, entry.headers, entry.data)

    async def send(self, entry: InFlight) -> None:
        """Send a message, after waiting for the connection if necessary.

        A failure to send becomes the outcome of the message, possibly after retries. If the first
        attempt is cancelled or interrupted, the message is forgotten.
        """
        transport, reply = self._transport, entry.reply
        with OnFailure(partial(self._interrupted, entry)):
            self._waiting[reply] = entry
            try:
                # If the connection is lost during this wait, `note` fails the messages in flight.
                # This message is not sent yet, so `note` must skip it.
                self._unsent.add(reply)
                try:
                    await transport.ready(Deadline(self._end(entry)))
                finally:
                    self._unsent.discard(reply)
                if entry.outcome is not None:
                    # As in `write`: `note` has failed it before it was in `_unsent`.
                    self.forget(entry)
                    return
                await transport.send(entry.subject, reply, entry.headers, entry.data)
            except TwinstreamError as error:
                self._act(entry, self._engine(entry).unsent(error, self._left(entry)))

    def _interrupted(self, entry: InFlight) -> None:
        # The next caller repeats an interrupted retry.
        if entry.attempts == 1:
            self.forget(entry)

    # ---- answers

    def _deliver(self, frame: Frame) -> None:
        """Parse a response and set the outcome of its message, or handle the failure."""
        entry = self._waiting.get(frame[0])
        # A second response, or a response after the timeout: the message has an outcome already.
        if entry is None:
            return
        try:
            ack = self._acks.read(frame, entry.given[0])
        except InvalidResponse as error:
            self._engine(entry).stray = error
        except TwinstreamError as error:
            self._fail(entry, error)
        else:
            if not entry.headers or self._is_expected(entry, ack):
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
        self._engine(entry).stray = InvalidResponse(text)
        return False

    def _finish(self, entry: InFlight, outcome: Outcome) -> None:
        """Set the outcome of a message and wake the callers that wait for it.

        The message stays open if `on_done` returns false.
        """
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
                if entry.is_recorded:
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

    def _look_for_denial(self) -> None:
        """Fail the messages in flight if the server has refused the inbox; see `AckInbox.error`."""
        error = self._inbox.error
        if error is not None and self._waiting:
            self.note(None, error)

    def _engine(self, entry: InFlight) -> PublishEngine:
        """Return the engine of a message; it is created at the first failure."""
        if entry.engine is None:
            is_clustered = bool(self._transport.server_info.cluster)
            entry.engine = new_engine(entry, self.limits.retry, is_clustered)
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
        return entry.started + self.limits.timeout

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
        return self.limits.retry.last_due(entry.sent_at, self._end(entry))

    def _may_repeat(self, entry: InFlight) -> bool:
        if entry.engine is not None:
            return entry.engine.may_repeat
        return self.limits.retry.retries > 0 and entry.repeatable

    def expire(self) -> None:
        """Let the engine handle each message whose attempt got no response in time."""
        self._look_for_denial()
        now = monotonic()
        for entry in list(self._waiting.values()):
            if entry.action is None and self._due(entry) <= now:
                self._act(entry, self._engine(entry).silent(self._end(entry) - now))

    # ---- recovering

    async def look(self) -> None:
        """Process responses that arrived while the caller did not wait, then do what is due."""
        await self._transport.wait(Signal(), Deadline.after(0))
        await self.tend()

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
        """Resolve the failed messages of a batch: look up or explain them, pause, send again."""
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
        """Send a message again, unless it has its outcome by now."""
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
            if not self.write(entry):
                await self.send(entry)
            is_sent = True
        finally:
            if not is_sent:
                # The send was interrupted. With its action restored, the next caller retries it.
                engine.attempts -= 1
                entry.action = action
            if entry.outcome is not None:
                self.forget(entry)

    async def _prove(self, entry: InFlight, refusal: TwinstreamError) -> None:
        from js_async.publish.verify_stored import prove

        deadline = Deadline(max(self._end(entry), monotonic() + self.limits.retry.wait))
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
