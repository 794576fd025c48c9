"""Fast ingest: a sequence of batches into one stream, and the outcome of each message.

If a batch ends early, the messages that the server certainly did not store are sent in the next
batch, in the same order. The client also commits a batch when no messages are sent for a while. It
does so because the server acknowledges the last messages of a batch only at its end, and because
the server drops idle batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from js_async.api.api import Api
from js_async.client.transport import Box
from js_async.publish.diagnose import reason
from js_async.runtime.concurrency import Lock, Signal, Task, sleep, spawn
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.publish.fast_ingest import (
    FastBatch,
    Fate,
    Gaps,
    Ingested,
    check_headers,
    check_stream,
    interval_for,
)
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import as_request, publish_headers
from twinstream.core.wire.protocol import Frame, Sink
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import (
    BadArgument,
    JetStreamError,
    NoResponders,
    OutcomeUnknown,
    PermissionDenied,
    PublishFailure,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable, PublishRequest

__all__ = ["Entry", "Ingest"]

_SINCE: Final = (2, 14, 0)
# Commit an idle batch after this time (seconds). The server would drop it after 10 seconds.
_QUIET: Final = 1.0
_LOOK: Final = 0.25
# A request without a response is repeated after the timeout divided by this number.
_SHARES: Final = 4


class Entry:
    """A message and, once known, its outcome."""

    __slots__ = ("headers", "may_be_stored", "number", "outcome", "request", "size", "subject")

    def __init__(self, request: PublishRequest, subject: bytes, headers: bytes) -> None:
        self.request = request
        self.subject = subject
        self.headers = headers
        self.size = len(request.data) + len(headers) + len(subject)
        self.number = 0
        self.outcome: Ingested | PublishFailure | None = None
        # Whether an earlier batch with an unknown outcome contained the message.
        self.may_be_stored = False

    @property
    def is_repeatable(self) -> bool:
        """Whether the message can be sent again after an unknown outcome.

        The message needs an id, so that it is not stored twice. It must also have no expectation
        about the last message. Otherwise, if the first attempt stored the message, the server could
        refuse the retry.
        """
        request = self.request
        return request.msg_id is not None and request == request._replace(
            expected_last_seq=None,
            expected_last_msg_id=None,
            expected_last_subject_seq=None,
            expected_last_subject_seq_subject=None,
        )


class Ingest:
    """The messages that are sent into one stream, and the outcome of each.

    The caller's task or thread sends. A background task or thread ends batches that are idle.
    """

    def __init__(self, api: Api, stream: str, gaps: Gaps, limits: PublishLimits) -> None:
        self._api: Final = api
        self._transport: Final = api.transport
        self._stream: Final = stream
        self._gaps: Final = gaps
        self._limits: Final = limits
        self._inbox: Final = api.transport.tokens.inbox().encode()
        self._batch = self._new_batch()
        # `_flight`: messages sent in the current batch. `_backlog`: messages to be sent, for the
        # first time or again.
        self._flight: deque[Entry] = deque()
        self._backlog: deque[Entry] = deque()
        self._bytes = 0
        # The subject of the batch's first message. Pings and the commit are sent to this subject.
        self._subject = b""
        self._sent_at = 0.0
        self._stuck_since: float | None = None
        # Number of successive batches in which no message got a known outcome.
        self._barren = 0
        # Whether a message got a known outcome since the last `_renew`.
        self._moved = False
        self._signal: Final = Signal()
        # The lock keeps messages in the order of their numbers, because a wrong order would end the
        # batch. A sender also holds the lock while the connection blocks. Only `_keep` can then
        # wait for the lock, because only one caller may use a `FastIngest`.
        self._lock: Final = Lock()
        self._ended: Final = Signal()
        self._box: Box | None = None
        self._keeper: Task | None = None
        self.last_ack: PubAck | None = None

    def _new_batch(self) -> FastBatch:
        interval = interval_for(self._limits.window)
        name = self._transport.tokens.name()
        return FastBatch(self._inbox, name, self._stream, interval, self._gaps)

    # ---- opening and closing

    async def open(self) -> None:
        """Check the server and the stream, then subscribe to the inbox of the batches.

        Raises:
            Unsupported: The server is older than 2.14.
            BadArgument: The stream does not allow fast ingest.
            StreamNotFound: The stream does not exist.
        """
        deadline = Deadline.after(self._limits.timeout)
        await self._transport.ready(deadline)
        self._api.require(_SINCE, "fast ingest")
        check_stream((await self._api.stream_info(self._stream, deadline)).config)
        self._box = await self._transport.open_mailbox(self._inbox + b".>", sink=self._sink)
        self._transport.replies.watch(self)
        self._keeper = spawn(self._keep, "twinstream-fast-ingest")

    async def close(self) -> None:
        """Unsubscribe. Messages that are still in flight stay without an outcome."""
        self._ended.set()
        box, self._box = self._box, None
        if box is not None:
            self._transport.replies.unwatch(self)
            await self._transport.close_mailbox(box)

    # ---- interface for `FastIngest`

    def prepare(self, given: Publishable) -> Entry:
        """Return the entry of a message; if the message is invalid, its outcome is the error.

        Raises `BadArgument` if `given` is neither a pair nor a `PublishRequest`.
        """
        request = as_request(given)
        try:
            headers = publish_headers(request)
            check_headers(headers)
            return Entry(request, check_subject(request.subject), headers)
        except TwinstreamError as error:
            # The entry gets a new request without data: the given data may have no length.
            entry = Entry(PublishRequest(str(request.subject)), b"", b"")
            entry.outcome = PublishFailure(request, error)
            return entry

    async def send(self, entry: Entry) -> None:
        """Send a message when the batch can take another message.

        A failure to send becomes the outcome of the message.
        """
        async with self._lock:
            self._bytes += entry.size
            self._backlog.append(entry)
            await self._pump()

    async def flush(self) -> None:
        """Wait until every message has an outcome."""
        async with self._lock:
            await self._flush()

    async def _flush(self) -> None:
        while self._flight or self._backlog:
            await self._pump()
            if self._flight:
                await self._commit()
                await self._renew()

    async def _keep(self) -> None:
        """Commit the current batch when no message was sent for `_QUIET` seconds."""
        while not await self._ended.sleep(Deadline.after(_LOOK)):
            if self._flight and monotonic() - self._sent_at >= _QUIET:
                async with self._lock:
                    if monotonic() - self._sent_at >= _QUIET:
                        await self._flush()

    # ---- sending

    async def _pump(self) -> None:
        while self._backlog:
            batch = self._batch
            self._settle()
            if batch.is_over:
                await self._renew()
            elif batch.is_broken or (self._flight and self._bytes > self._limits.window_bytes):
                # The batch cannot continue, or `window_bytes` is used up. The server sends the next
                # acknowledgement after a number of messages, and these may not fit into the window.
                # After a commit it acknowledges at once.
                await self._commit()
            elif batch.has_room:
                await self._put(batch, self._backlog[0])
            elif self._is_stuck():
                # After an election, the leader may answer pings and still wait for messages that
                # were lost. The commit ends the leader's wait, and the response to the commit shows
                # how many messages were stored.
                await self._commit()
            else:
                await self._wait(batch, batch.ping_reply)

    def _is_stuck(self) -> bool:
        since = self._stuck_since
        return since is not None and monotonic() - since >= self._limits.timeout / 2

    async def _put(self, batch: FastBatch, entry: Entry) -> None:
        headers = entry.headers
        if not batch.sent:
            # Without this header, another stream with the subject could open the batch.
            stream = entry.request.expected_stream or self._stream
            headers = publish_headers(entry.request._replace(expected_stream=stream))
            self._subject = entry.subject
        self._sent_at = monotonic()
        # Append the entry before the write, because the server's refusal may arrive before the
        # write returns.
        entry.number = batch.sent + 1
        self._flight.append(entry)
        is_known = False
        try:
            await self._write(entry.subject, batch.next_reply(), headers, entry.request.data)
            is_known = True
        except TwinstreamError as error:
            is_known = True
            self._flight.pop()
            if not isinstance(error, BadArgument):
                batch.fail(error)
            # A message that is too large (`BadArgument`) gets no number, and the batch continues.
            self._backlog.popleft()
            self._conclude(entry, self._failure(entry, error))
            return
        finally:
            if not is_known:
                self._flight.pop()
                batch.fail(OutcomeUnknown("sending was cancelled"))
        self._backlog.popleft()
        self._stuck_since = None
        batch.sent += 1

    async def _write(self, subject: bytes, reply: bytes, headers: bytes, data: bytes) -> None:
        transport = self._transport
        if not transport.write(subject, reply, headers, data):
            await transport.ready(Deadline.after(self._limits.timeout))
            await transport.send(subject, reply, headers, data)

    async def _commit(self) -> None:
        """End the batch. Return when the server has confirmed the end, or the batch has failed."""
        batch = self._batch
        self._stuck_since = None
        if not batch.is_over:
            await self._nudge(batch, batch.commit_reply())
        while not batch.is_over:
            await self._wait(batch, batch.commit_reply)

    async def _nudge(self, batch: FastBatch, reply: bytes) -> None:
        try:
            await self._write(self._subject, reply, b"", b"")
        except TwinstreamError as error:
            batch.fail(error)

    async def _wait(self, batch: FastBatch, reply: Callable[[], bytes]) -> None:
        """Wait until a message arrives from the server; after the timeout, fail the batch.

        If the server is silent for a quarter of the timeout, request a response: send an empty
        message with the reply subject `reply()`.
        """
        patience = self._limits.timeout
        began = monotonic() if self._stuck_since is None else self._stuck_since
        self._stuck_since = began
        passed = batch.passed
        box = self._box
        if box is not None and box.error is not None:
            # The subscription was refused before this batch began, or before `_box` was assigned,
            # so `deny` did not fail this batch.
            batch.fail(box.error)
        try:
            if not batch.is_over:
                await self._transport.wait(self._signal, Deadline.after(patience / _SHARES))
        except TwinstreamError as error:
            batch.fail(error)
        came = self._signal.is_set()
        self._signal.clear()
        if batch.passed != passed:
            self._stuck_since = None
        elif batch.is_over:
            return
        elif monotonic() - began >= patience:
            heard = f"; another responder answered {batch.stray!r}" if batch.stray else ""
            batch.fail(
                RequestTimeout(f"{self._stream}: no acknowledgement of the batch in time{heard}")
            )
        elif came:
            return
        elif batch.vanished is not None:
            batch.fail(batch.vanished)
        else:
            await self._nudge(batch, reply())

    # ---- answers

    def _sink(self, _: Box) -> Sink:
        return self._deliver

    def _deliver(self, frame: Frame) -> None:
        self._batch.take(frame)
        self._signal.set()

    def note(self, subject: bytes | None, error: TwinstreamError) -> None:
        """Record that messages get no response; `error` is the reason.

        These are the messages with `subject` (in lower case), or all messages if it is None.
        """
        batch = self._batch
        if subject is None:
            batch.fail(error)
        else:
            # Compare without case: nats-py converts the server's error text to lower case.
            for entry in list(self._flight):
                if entry.subject.lower() == subject:
                    batch.refused[entry.number] = error
                    if entry.number == 1:
                        batch.fail(error)
        self._signal.set()

    def deny(self, box: Box, error: TwinstreamError) -> None:
        """Fail the batch if the server refused the subscription to the inbox."""
        if box is self._box:
            self.note(None, error)

    # ---- outcomes

    def _settle(self) -> None:
        """Set the outcomes of the messages that the server has processed, in sending order.

        Stop at the first message that must be sent again.
        """
        batch, flight = self._batch, self._flight
        while flight and flight[0].number <= batch.passed:
            if not self._judge(batch, flight[0]):
                # The batch has failed, and `_renew` will send the message again.
                return
            flight.popleft()

    async def _renew(self) -> None:
        """Start a new batch, and put the messages that must be sent again at the backlog's front.

        If the last batch gave no message an outcome, pause. After too many such batches in a row,
        call `_give_up`.
        """
        batch, self._batch = self._batch, self._new_batch()
        again = [entry for entry in self._flight if not self._judge(batch, entry)]
        self._flight.clear()
        self._backlog.extendleft(reversed(again))
        self._stuck_since = None
        if batch.ack is not None:
            self.last_ack = batch.ack
        moved, self._moved = self._moved, False
        self._barren = 0 if moved or not batch.sent else self._barren + 1
        if self._barren > self._limits.retry.retries:
            await self._give_up(batch)
        elif self._barren:
            await sleep(self._limits.retry.wait)

    async def _give_up(self, batch: FastBatch) -> None:
        """Fail the first message of the backlog, or the whole backlog if the batch timed out."""
        silent = isinstance(batch.trouble, RequestTimeout)
        refusal = batch.refused.get(1) or batch.trouble
        for _ in range(len(self._backlog) if silent else min(1, len(self._backlog))):
            entry = self._backlog.popleft()
            error = refusal or RequestTimeout("the server lost it each time; it is not stored")
            if isinstance(error, NoResponders):
                deadline = Deadline.after(self._limits.timeout)
                error = await reason(self._api, entry.request.subject, deadline)
            self._conclude(entry, self._failure(entry, error))
        # These failures do not count as progress, so `_barren` is not reset. The next batch gets
        # only one attempt. If it succeeds, the remaining messages are sent as usual.
        self._moved = False

    def _judge(self, batch: FastBatch, entry: Entry) -> bool:
        """Set the outcome of a message. Return False if it has none and must be sent again."""
        fate = batch.fate(entry.number)
        if fate is Fate.UNKNOWN:
            if entry.is_repeatable:
                entry.may_be_stored = True
                return False
            self._conclude(entry, self._unknown(entry, batch.trouble))
        elif fate is Fate.AGAIN:
            return False
        elif fate is Fate.REFUSED:
            self._conclude(entry, self._failure(entry, batch.refused[entry.number]))
        elif fate is Fate.LOST:
            error = NoResponders(f"{entry.request.subject}: the server did not get the message")
            self._conclude(entry, self._failure(entry, error))
        else:
            certain = fate is Fate.STORED
            self._conclude(entry, Ingested(self._stream, batch.id, entry.number, certain))
        return True

    def _failure(self, entry: Entry, error: TwinstreamError) -> PublishFailure:
        if entry.may_be_stored and isinstance(
            error, JetStreamError | NoResponders | PermissionDenied
        ):
            return self._unknown(entry, error)
        return PublishFailure(entry.request, error)

    def _unknown(self, entry: Entry, error: TwinstreamError | None) -> PublishFailure:
        unknown = OutcomeUnknown(
            f"{entry.request.subject}: the batch ended before it was acknowledged, so it may be"
            f" stored: {error}"
        )
        unknown.__cause__ = error
        return PublishFailure(entry.request, unknown)

    def _conclude(self, entry: Entry, outcome: Ingested | PublishFailure) -> None:
        entry.outcome = outcome
        self._bytes -= entry.size
        unknown = isinstance(outcome, PublishFailure) and isinstance(outcome.error, OutcomeUnknown)
        self._moved = self._moved or not unknown
