"""Atomic batches: messages that a stream stores all together or not at all (ADR-50)."""

from __future__ import annotations

import warnings
from collections import deque
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from attrs import frozen

from js_async.api.api import Api
from js_async.client.closable import Closable
from js_async.client.requests import Answer
from js_async.publish.batch_outcome import BatchTrace
from js_async.runtime.concurrency import BlockHint, Forks, Signal
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.core.on_failure import AsyncOnError
from twinstream.core.publish.atomic_batch import (
    BatchSheet,
    read_batch_ack,
    read_staged,
)
from twinstream.core.server_faults.final_reply import (
    SECOND_RESPONSE,
    STEPPING_DOWN,
    is_behind,
    is_doubtful_commit,
)
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import (
    AtomicBatchFailed,
    AtomicBatchUnknown,
    BadArgument,
    ConnectionLost,
    InvalidResponse,
    JetStreamError,
    NoResponders,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models import PubAck
from twinstream.models.error_codes import BATCH_INCOMPLETE
from twinstream.records.atomic_outcome import AtomicOutcome
from twinstream.records.headers import HeaderValues
from twinstream.records.publish_request import PublishRequest, Ttl

if TYPE_CHECKING:
    from twinstream.core.observe.operation import Operation, OperationKind

__all__ = ["AtomicBatch"]

_SINCE_END_OF_BATCH: Final = (2, 14, 0)


@frozen
class _Part:
    subject: str
    headers: bytes
    data: bytes


class AtomicBatch(Closable, BlockHint):
    """A batch of messages that a stream stores all together or not at all.

    Created by `JetStream.atomic_batch`. The end of the block commits the batch. If an exception
    leaves the block, the stream stores nothing::

        async with jet.atomic_batch() as batch:
            await batch.add("orders.1", b"...")
            await batch.add("orders.2", b"...")
        print(batch.ack.seq)

    Any failure before the commit closes the batch, and the stream stores nothing. If the block
    catches the failure and continues, the end of the block raises `AtomicBatchFailed`. To retry,
    create a new batch. `outcome` and `reason` describe the result. Only one task or thread at a
    time may use a batch.
    """

    def __init__(
        self, api: Api, batch_id: str | None, max_messages: int, timeout: Seconds | None
    ) -> None:
        super().__init__()
        name = api.transport.tokens.name() if batch_id is None else batch_id
        self._api: Final = api
        self._sheet: Final = BatchSheet(name, max_messages)
        self._timeout: Final = None if timeout is None else seconds(timeout)
        self._signal: Final = Signal()
        self._staged: Final[deque[tuple[str, Answer]]] = deque()
        # Servers before 2.14 need a stored message for the commit, so the last message is held
        # back.
        self._held: _Part | None = None
        self._subject = ""
        self._sent = 0
        self._sent_at = 0.0
        self._reason = ""
        self._wanted = False
        self._ack: PubAck | None = None
        self._forks: Final = Forks.count
        self._outcome = AtomicOutcome.OPEN

    def __del__(self) -> None:
        # If `__init__` raised, the attribute does not exist.
        is_open = getattr(self, "_outcome", None) is AtomicOutcome.OPEN
        if is_open and len(self) and self._forks == Forks.count:
            warnings.warn(
                f"atomic batch {self.id} was dropped without commit, none of its {len(self)}"
                " messages is stored; use it in a `with` block, or call commit or abandon",
                RuntimeWarning,
                stacklevel=2,
            )

    @property
    def id(self) -> str:
        """The batch id. Every stored message has it in the header `Nats-Batch-Id`."""
        return self._sheet.id

    @property
    def outcome(self) -> AtomicOutcome:
        """The state of the batch while it is open, and its result afterwards."""
        return self._outcome

    @property
    def reason(self) -> str:
        """Why the batch was not committed. Empty if the batch is open or committed."""
        return self._reason

    @property
    def ack(self) -> PubAck:
        """The acknowledgement: `seq` is that of the last message, `count` the number of messages.

        Raises `AtomicBatchFailed` if the batch is not committed.
        """
        if self._ack is None:
            raise self._failed("there is no acknowledgement")
        return self._ack

    def __len__(self) -> int:
        return self._sheet.count

    def __repr__(self) -> str:
        return f"<AtomicBatch {self.id}, {len(self)} messages, {self._outcome.value}>"

    # ---- adding

    async def add(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expected_stream: str | None = None,
        expected_last_seq: int | None = None,
        expected_last_subject_seq: int | None = None,
        expected_last_subject_seq_subject: str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        """Add a message to the batch.

        The first call returns when the server has accepted the message. Later calls return when the
        message is written to the connection. With a server before 2.14, the next `add` or the
        commit sends the message. All messages must be for the same stream. The server checks
        expectations at the commit, against the state before the batch. If the stream knows a
        `msg_id` already, the server refuses the whole batch (server 2.12.1).

        Args:
            subject: Subject, as in `JetStream.publish`, like all further arguments.
            data: Payload.
            headers: Headers.
            msg_id: Id for deduplication.
            expected_stream: Name of the stream that must store the message.
            expected_last_seq: Expected last sequence of the stream; at the first message only.
            expected_last_subject_seq: Expected last sequence of a subject that the batch has not
                written yet: the message's own, or `expected_last_subject_seq_subject`.
            expected_last_subject_seq_subject: Subject or filter of that expectation.
            ttl: Time to live.

        Raises:
            Unsupported: The server is older than 2.12.
            BadArgument: An argument is invalid.
            AtomicBatchFailed: The batch is closed.
            JetStreamError: The server refused an earlier message.
        """
        self._need_open()
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=headers,
            msg_id=msg_id,
            expected_stream=expected_stream,
            expected_last_seq=expected_last_seq,
            expected_last_subject_seq=expected_last_subject_seq,
            expected_last_subject_seq_subject=expected_last_subject_seq_subject,
            ttl=ttl,
        )
        async with AsyncOnError(self._give_up):
            await self._add(request)

    async def _add(self, request: PublishRequest) -> None:
        """Add a message to the batch.

        The last message must carry the commit. So the newest message stays here until the next one
        arrives, unless the commit is a message of its own.
        """
        deadline = self._api.deadline(self._timeout)
        check_subject(request.subject)
        await self._api.transport.ready(deadline)
        if self._api.transport.observers is not None:
            from twinstream.core.observe.publish_context import with_context

            request = with_context(self._api.transport.observers, request, "atomic_batch")
        part = _Part(request.subject, self._sheet.add(request), request.data)
        server = self._api.transport.server_info
        self._sheet.check_server(server.version_numbers, server.version)
        self._read_responses()
        if self._ends_apart():
            await self._send(part)
        else:
            held, self._held = self._held, part
            if held is not None:
                await self._send(held)

    def _ends_apart(self) -> bool:
        """Return whether the server accepts a commit message that it does not store (2.14)."""
        return self._api.transport.server_info.version_numbers >= _SINCE_END_OF_BATCH

    async def _send(self, part: _Part) -> None:
        """Send a message of the batch. Only the first one waits for its response."""
        transport = self._api.transport
        self._subject = part.subject
        self._sent += 1
        self._sent_at = monotonic()
        if self._sent == 1:
            # Wait for the first response. It shows whether the stream supports batches, and whether
            # the server has capacity for another batch.
            deadline = self._api.deadline(self._timeout)
            with self._instrumented(part):
                # The stream may be new. Without responders, no server has received the message.
                frame = await self._api.ask(part.subject, part.headers, part.data, deadline)
                read_staged(frame, part.subject)
            return
        subject = check_subject(part.subject)
        answer = await transport.replies.send(
            subject, part.headers, part.data, self._api.deadline(), signal=self._signal
        )
        self._staged.append((part.subject, answer))

    def _read_responses(self) -> None:
        """Read the responses that have arrived, and raise the error if one is a refusal."""
        while self._staged and self._staged[0][1].is_here():
            subject, answer = self._staged.popleft()
            read_staged(answer.take(subject), subject)

    # ---- ending

    async def commit(self, *, timeout: Seconds | None = None) -> PubAck:
        """Commit the batch and return the acknowledgement.

        The call sends the commit once. If no response comes within `timeout` seconds, or the
        connection breaks, the call closes the batch on the server and reads the stream to find out
        whether the batch is stored. This takes at most `timeout` seconds more.

        Raises:
            BadArgument: The batch is empty.
            JetStreamError: The server refused the batch (`WrongLastSequence` and so on). Nothing is
                stored.
            AtomicBatchFailed: Nothing is stored.
            AtomicBatchUnknown: It could not be determined whether the batch is stored.
        """
        self._need_open()
        if not self._sheet.count:
            raise BadArgument("the batch is empty, there is nothing to commit")
        deadline = self._api.deadline(timeout if timeout is not None else self._timeout)
        async with AsyncOnError(self._give_up):
            await self._api.transport.ready(deadline)
            self._read_responses()
            part = self._last()
        # If the commit is cancelled or interrupted from here on, the outcome stays `UNKNOWN`.
        self._outcome = AtomicOutcome.UNKNOWN
        self._reason = "the commit was sent and no response was read"
        began = monotonic()
        try:
            ack = await self._finish(part, deadline, began)
        except (RequestTimeout, ConnectionLost, InvalidResponse) as error:
            more = self._api.deadline(timeout if timeout is not None else self._timeout)
            ack = await self._find_out(error, began, more)
        finally:
            self._forget_staged()
        self._ack = ack
        self._close(AtomicOutcome.COMMITTED, "")
        return ack

    async def _finish(self, part: _Part, deadline: Deadline, began: float) -> PubAck:
        """Send the commit; return the acknowledgement or raise the refusal."""
        try:
            with self._instrumented(part, "publish", len(self)) as call:
                ask = self._api.transport.ask
                frame = await ask(part.subject, part.headers, part.data, deadline)
                ack = read_batch_ack(frame, part.subject, self._sheet)
                if call is not None:
                    call.stream_name, call.seq = ack.stream, ack.seq
                return ack
        except (JetStreamError, NoResponders, BadArgument, PermissionDenied) as error:
            refusal = self._refusal_before() or error
            if self._may_be_stored(refusal):
                trace = BatchTrace(self._api, self._sheet, self._subject, began)
                is_late = is_behind(refusal, self._sheet.expected)
                patience = STEPPING_DOWN if is_late else SECOND_RESPONSE
                found = await trace.find(deadline.earlier(monotonic() + patience))
                if found is not None:
                    return found
                # Leaders often refuse a batch because of a write in flight.
                if is_late and not trace.is_missing:
                    raise self._unconfirmed(refusal, trace) from refusal
            self._close(AtomicOutcome.REFUSED, self._explained(refusal))
            if refusal is error:
                raise
            raise refusal from error

    def _instrumented(
        self, part: _Part, kind: OperationKind = "request", count: int | None = None
    ) -> AbstractContextManager[Operation | None]:
        """Return the context in which observers and the log see the request for `part`."""
        size = len(part.headers) + len(part.data)
        return self._api.instrumented("atomic_batch", part.subject, size, kind=kind, count=count)

    def _refusal_before(self) -> TwinstreamError | None:
        """Return the server's refusal of an earlier message, or None.

        Such a refusal may arrive while the commit is in flight. The commit then fails, too, but its
        response does not contain the reason.
        """
        try:
            self._read_responses()
        except (JetStreamError, NoResponders, PermissionDenied) as error:
            return error
        except TwinstreamError:
            # Not a refusal by the server.
            return None
        return None

    def _last(self) -> _Part:
        if self._held is None:
            return _Part(self._subject, self._sheet.commit_after(), b"")
        held, self._held = self._held, None
        self._subject = held.subject
        return _Part(held.subject, self._sheet.commit_with(held.headers), held.data)

    def _may_be_stored(self, refusal: TwinstreamError) -> bool:
        """Return whether another replica may have stored the batch that a replica refused."""
        is_clustered = bool(self._api.transport.server_info.cluster)
        return is_clustered and is_doubtful_commit(refusal, self._sheet.expected)

    async def _find_out(self, error: TwinstreamError, began: float, deadline: Deadline) -> PubAck:
        trace = BatchTrace(self._api, self._sheet, self._subject, began)
        ack = await trace.find(deadline)
        if ack is not None:
            return ack
        raise self._unconfirmed(error, trace) from error

    def _unconfirmed(self, error: TwinstreamError, trace: BatchTrace) -> AtomicBatchFailed:
        """Close a batch that the search did not find, and return the error to raise."""
        outcome = AtomicOutcome.ABANDONED if trace.is_absent else AtomicOutcome.UNKNOWN
        self._close(outcome, f"{error}; {trace.found}")
        return self._failed("it was not confirmed")

    async def abandon(self) -> None:
        """Discard the batch: the stream stores nothing.

        The server drops its messages at once, or after 10 idle seconds if it is not reachable now.

        Raises `AtomicBatchFailed` if the batch is closed.
        """
        if self._is_parents:
            return
        self._need_open()
        self._wanted = True
        self._close(AtomicOutcome.ABANDONED, "it was abandoned")
        await self._drop_on_server()

    async def _give_up(self, error: BaseException) -> None:
        refused = isinstance(error, JetStreamError | BadArgument)
        outcome = AtomicOutcome.REFUSED if refused else AtomicOutcome.ABANDONED
        self._close(outcome, self._explained(error))
        if not isinstance(error, JetStreamError):
            await self._drop_on_server()

    async def _drop_on_server(self) -> None:
        """Ask the server to drop the batch now, if connected.

        Otherwise it would count towards the limit of open batches until it expires.
        """
        transport = self._api.transport
        if self._sent and transport.is_connected:
            subject = check_subject(self._subject)
            try:
                await transport.send(subject, b"", self._sheet.drop(), b"")
            except TwinstreamError:
                pass  # the server drops it by itself after 10 seconds

    def _close(self, outcome: AtomicOutcome, reason: str) -> None:
        self._outcome, self._reason = outcome, reason
        self._forget_staged()

    def _forget_staged(self) -> None:
        while self._staged:
            self._api.transport.replies.forget(self._staged.popleft()[1])

    def _explained(self, error: BaseException) -> str:
        text = str(error) or type(error).__name__
        idle = monotonic() - self._sent_at if self._sent else 0.0
        if isinstance(error, JetStreamError) and error.err_code == BATCH_INCOMPLETE:
            text += f"; the last message was sent {idle:.1f} s before, servers wait 10 s"
        return text

    def _need_open(self) -> None:
        if self._outcome is not AtomicOutcome.OPEN:
            raise self._failed("it accepts no more messages")

    def _failed(self, what: str) -> AtomicBatchFailed:
        because = f" ({self._reason})" if self._reason else ""
        text = f"atomic batch {self.id} is {self._outcome.value}{because}: {what}"
        unknown = self._outcome is AtomicOutcome.UNKNOWN
        kind = AtomicBatchUnknown if unknown else AtomicBatchFailed
        return kind(text, self._outcome, self._reason)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit the batch at the end of the block, or abandon it after an error of the block."""
        if self._is_parents:
            return
        if self._outcome is AtomicOutcome.OPEN:
            if error is not None:
                await self._give_up(error)
            elif self._sheet.count:
                await self.commit()
            else:
                self._wanted = True
                self._close(AtomicOutcome.ABANDONED, "no message was added")
        else:
            has_failed = self._ack is None and not self._wanted
            # Do not replace an error of the block.
            if has_failed and error is None:
                raise self._failed("the block continued after that failure")
