"""Fast ingest: a sequence of batches into one stream, and the outcome of each message.

If a batch ends early, the messages that the server certainly did not store are sent in the next
batch, in the same order. The client also commits a batch when no messages are sent for a while. It
does so because the server acknowledges the last messages of a batch only at its end, and because
the server drops idle batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from js_async import PublishFailure, PublishRequest
from js_async.extension import AckInbox, Api, SubjectWrites
from js_async.runtime.concurrency import Lock, Signal, Task, sleep, spawn
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.publish.fast_ingest import (
    FastBatch,
    Gaps,
    Ingested,
    check_headers,
    check_stream,
    interval_for,
)
from twinstream.core.publish.fast_messages import FastMessage, Unsettled
from twinstream.core.publish.limits import PublishLimits
from twinstream.core.publish.request import as_request, publish_headers
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import (
    BadArgument,
    NoResponders,
    OutcomeUnknown,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import PubAck
from twinstream.records.publish_request import Publishable

__all__ = ["Ingest"]

_SINCE: Final = (2, 14, 0)
# Commit an idle batch after this time (seconds). The server would drop it after 10 seconds.
_QUIET: Final = 1.0
_LOOK: Final = 0.25
# A request without a response is repeated after the timeout divided by this number.
_SHARES: Final = 4


class Ingest:
    """The messages that are sent into one stream, and the outcome of each.

    The caller's task or thread sends. A background task or thread ends batches that are idle.
    """

    def __init__(self, api: Api, stream: str, gaps: Gaps, limits: PublishLimits) -> None:
        self._api: Final = api
        self._limits: Final = limits
        self._inbox: Final = AckInbox(api.transport, b".>", self._deliver, self.note)
        interval = interval_for(limits.window)
        self._new_batch: Final[Callable[[], FastBatch]] = lambda: FastBatch(
            self._inbox.name, api.transport.tokens.name(), stream, interval, gaps
        )
        self._batch = self._new_batch()
        self._messages: Final = Unsettled()
        # When the last message was sent, and since when the server has not confirmed any more.
        self._sent_at = 0.0
        self._stuck_since: float | None = None
        # Number of successive batches in which no message got a known outcome.
        self._barren = 0
        self._signal: Final = Signal()
        # The lock keeps messages in the order of their numbers, because a wrong order would end the
        # batch. A sender also holds the lock while the connection blocks. Then only
        # `_commit_when_quiet` can wait for the lock, because only one caller may use a
        # `FastIngest`.
        self._lock: Final = Lock()
        self._ended: Final = Signal()
        self._keeper: Task | None = None
        self.last_ack: PubAck | None = None

    # ---- opening and closing

    async def open(self) -> None:
        """Check the server and the stream, then subscribe to the inbox of the batches.

        Raises:
            Unsupported: The server is older than 2.14.
            BadArgument: The stream does not allow fast ingest.
            StreamNotFound: The stream does not exist.
        """
        deadline = Deadline.after(self._limits.timeout)
        stream = self._batch.stream
        check_stream(await self._api.config_of(stream, _SINCE, "fast ingest", deadline))
        await self._inbox.open()
        self._keeper = spawn(self._commit_when_quiet, "twinstream-fast-ingest")

    async def close(self) -> None:
        """Unsubscribe. Messages that are still in flight stay without an outcome."""
        self._ended.set()
        await self._inbox.close()

    def _observed(self, request: PublishRequest) -> PublishRequest:
        """Return a message with the headers that observers add."""
        from twinstream.core.observe.publish_context import with_context

        observers = self._api.transport.observers
        return request if observers is None else with_context(observers, request, "fast_ingest")

    # ---- the interface of a `Sender`

    def prepare(self, given: Publishable) -> FastMessage:
        """Return the entry of a message; if the message is invalid, its outcome is the error.

        Raises `BadArgument` if `given` is neither a pair nor a `PublishRequest`.
        """
        request = as_request(given)
        if self._api.transport.observers is not None:
            request = self._observed(request)
        try:
            headers = publish_headers(request)
            check_headers(headers)
            return FastMessage(request, check_subject(request.subject), headers)
        except TwinstreamError as error:
            # The entry gets a new request without data: the given data may have no length.
            entry = FastMessage(PublishRequest(str(request.subject)), b"", b"")
            entry.outcome = PublishFailure(request, error)
            return entry

    def write(self, entry: FastMessage) -> bool:
        """Return False: each message may have to wait for the server's acknowledgement."""
        return False

    async def send(self, entry: FastMessage) -> None:
        """Send a message when the batch can take another message.

        A failure to send becomes the outcome of the message.
        """
        async with self._lock:
            self._messages.add(entry)
            await self._send_backlog()

    async def look(self) -> None:
        """Do nothing: `_commit_when_quiet` ends idle batches."""

    async def until(self, entry: FastMessage) -> Ingested | PublishFailure:
        """Wait until every message has an outcome, and return that of `entry`."""
        if entry.outcome is None:
            async with self._lock:
                await self._flush()
        if entry.outcome is None:
            text = f"{entry.request.subject}: interrupted during the send, may be stored"
            return PublishFailure(entry.request, OutcomeUnknown(text))
        return entry.outcome

    async def _flush(self) -> None:
        messages = self._messages
        while messages.in_flight or messages.backlog:
            await self._send_backlog()
            if messages.in_flight:
                await self._commit()
                await self._renew()

    async def _commit_when_quiet(self) -> None:
        """Commit the current batch when no message was sent for `_QUIET` seconds."""
        while not await self._ended.sleep(Deadline.after(_LOOK)):
            if self._messages.in_flight and monotonic() - self._sent_at >= _QUIET:
                async with self._lock:
                    if monotonic() - self._sent_at >= _QUIET:
                        await self._flush()

    # ---- sending

    async def _send_backlog(self) -> None:
        """Send the queued messages in batches until the queue is empty."""
        messages = self._messages
        while messages.backlog:
            batch = self._batch
            messages.settle(batch)
            if batch.is_over:
                await self._renew()
            elif batch.is_broken or (
                messages.in_flight and messages.size > self._limits.window_bytes
            ):
                # The batch cannot continue, or `window_bytes` is used up. The server sends the next
                # acknowledgement after a number of messages, and these may not fit into the window.
                # After a commit it acknowledges at once.
                await self._commit()
            elif batch.has_room:
                await self._send_message(batch, messages.backlog[0])
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

    async def _send_message(self, batch: FastBatch, entry: FastMessage) -> None:
        """Send the first message of the queue as the next message of a batch.

        A message that is too large fails alone. After any other failed send, the batch fails.
        """
        headers, messages = entry.headers, self._messages
        if not batch.sent:
            # Without this header, another stream with the subject could open the batch.
            stream = entry.request.expected_stream or batch.stream
            headers = publish_headers(entry.request._replace(expected_stream=stream))
            batch.subject = entry.subject
        self._sent_at = monotonic()
        # Append the entry before the write, because the server's refusal may arrive before the
        # write returns.
        entry.number = batch.sent + 1
        messages.in_flight.append(entry)
        is_known = False
        try:
            await self._write(entry.subject, batch.next_reply(), headers, entry.request.data)
            is_known = True
        except TwinstreamError as error:
            is_known = True
            messages.in_flight.pop()
            if not isinstance(error, BadArgument):
                batch.fail(error)
            # A message that is too large (`BadArgument`) gets no number, and the batch continues.
            messages.backlog.popleft()
            messages.conclude(entry, entry.failure(error))
            return
        finally:
            if not is_known:
                messages.in_flight.pop()
                batch.fail(OutcomeUnknown("sending was cancelled"))
        messages.backlog.popleft()
        self._stuck_since = None
        batch.sent += 1

    async def _write(self, subject: bytes, reply: bytes, headers: bytes, data: bytes) -> None:
        transport = self._api.transport
        if not transport.write(subject, reply, headers, data):
            await transport.ready(Deadline.after(self._limits.timeout))
            await transport.send(subject, reply, headers, data)

    async def _commit(self) -> None:
        """End the batch. Return when the server has confirmed the end, or the batch has failed."""
        batch = self._batch
        self._stuck_since = None
        if not batch.is_over:
            await self._request_response(batch, batch.commit_reply())
        while not batch.is_over:
            await self._wait(batch, batch.commit_reply)

    async def _request_response(self, batch: FastBatch, reply: bytes) -> None:
        try:
            await self._write(batch.subject, reply, b"", b"")
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
        if self._inbox.error is not None:
            # The subscription was refused before this batch began, so `note` did not fail it.
            batch.fail(self._inbox.error)
        try:
            if not batch.is_over:
                await self._api.transport.wait(self._signal, Deadline.after(patience / _SHARES))
        except TwinstreamError as error:
            batch.fail(error)
        has_arrived = self._signal.is_set()
        self._signal.clear()
        if batch.passed != passed:
            self._stuck_since = None
        elif batch.is_over:
            return
        elif monotonic() - began >= patience:
            heard = f"; another responder answered {batch.stray!r}" if batch.stray else ""
            batch.fail(
                RequestTimeout(f"{batch.stream}: no acknowledgement of the batch in time{heard}")
            )
        elif has_arrived:
            return
        elif batch.vanished is not None:
            batch.fail(batch.vanished)
        else:
            await self._request_response(batch, reply())

    # ---- answers

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
            for entry in list(self._messages.in_flight):
                if entry.subject.lower() == subject:
                    batch.refused[entry.number] = error
                    if entry.number == 1:
                        batch.fail(error)
        self._signal.set()

    # ---- the next batch

    async def _renew(self) -> None:
        """Start a new batch, and put the messages that must be sent again at the backlog's front.

        If the last batch gave no message an outcome, pause. After too many such batches in a row,
        call `_give_up`.
        """
        batch, self._batch = self._batch, self._new_batch()
        messages = self._messages
        messages.end(batch)
        self._stuck_since = None
        if batch.ack is not None:
            self.last_ack = batch.ack
        moved, messages.has_progress = messages.has_progress, False
        self._barren = 0 if moved or not batch.sent else self._barren + 1
        if self._barren > self._limits.retry.retries:
            await self._give_up(batch)
        elif self._barren:
            await sleep(self._limits.retry.wait)

    async def _give_up(self, batch: FastBatch) -> None:
        """Fail the first message of the backlog, or the whole backlog if the batch timed out."""
        messages, backlog = self._messages, self._messages.backlog
        silent = isinstance(batch.trouble, RequestTimeout)
        refusal = batch.refused.get(1) or batch.trouble
        for _ in range(len(backlog) if silent else min(1, len(backlog))):
            entry = backlog.popleft()
            error = refusal or RequestTimeout("the server lost it each time; it is not stored")
            if isinstance(error, NoResponders):
                deadline = Deadline.after(self._limits.timeout)
                error = await SubjectWrites(self._api).explain(entry.request.subject, deadline)
            messages.conclude(entry, entry.failure(error))
        # These failures do not count as progress, so `_barren` is not reset. The next batch gets
        # only one attempt. If it succeeds, the remaining messages are sent as usual.
        messages.has_progress = False
