"""Dead letters: messages that nobody could work on, kept in a stream of their own.

A stream captures the advisories of given-up messages, so that none is missed. For each the message
is read, stored as a dead letter, and only then the advisory is acknowledged. The subject of a dead
letter is made of what failed, and holds one message: whoever is killed in between, or does it
twice, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from js_async.api import consumer_admin as _control
from js_async.api.api import Api
from js_async.runtime.concurrency import Lock, Task, spawn
from js_async.runtime.concurrency import Stream as Generated
from js_async.client.closing import WorksBeside
from js_async.client.owned import Owned
from js_async.consumer import Consumer
from js_async.consume.message import Message
from js_async.consume.messages import Messages
from twinstream.core.workers.dead_letter import (
    DeadLetter,
    Failure,
    Names,
    Part,
    Skip,
    is_later_message,
    is_of_earlier_stream,
    letter_of_failure,
    read_failure,
    read_letter,
    replay_request,
    too_large,
)
from twinstream.core.deadline import Deadline, Seconds
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    JetStreamError,
    MessageExists,
    MessageNotFound,
    NoResponders,
    RequestTimeout,
    StreamNotFound,
    SubjectOverlap,
)
from twinstream.core.log.events import DeadLettered, NoDeadLetter
from twinstream.core.publish.request import PublishRequest
from twinstream.core.log.reporter import Reporter
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.read.stream_message import StreamMessage
from twinstream.models import PubAck, RetentionPolicy, StreamConfig, StreamInfo, Timestamp

if TYPE_CHECKING:
    from js_async.jetstream import JetStream

__all__ = ["DeadLetters"]

_TRANSIENT: Final = (NoResponders, RequestTimeout, ConnectionLost, JetStreamError)
# Seconds until a failure that could not be dealt with is tried again.
_AGAIN: Final = 1.0
_BATCH: Final = 50


class DeadLetters(Owned, WorksBeside):
    """The dead letters of a stream or of one consumer; made by `JetStream.dead_letters`.

    Use it in a `with` block to make dead letters beside other work, or call `prepare` and
    `collect`. Several processes may do so at once.
    """

    _area = "dead_letters"

    def __init__(
        self,
        jet: JetStream,
        api: Api,
        names: Names,
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        super().__init__()
        self._jet: Final = jet
        self._api: Final = api
        self._names: Final = names
        self._on_report: Final = on_report
        self._report: Final[Reporter[PullReport]] = Reporter(
            on_report, area="dead_letters", stream=names.stream
        )
        self._kept: Consumer | None = None
        self._messages: Messages | None = None
        self._task: Task | None = None
        self._users = 0
        self._turns: Final = Lock()
        self._counting: Final = Lock()
        self.stored = 0
        """Dead letters that this object stored."""
        self.known = 0
        """Failures whose dead letter was there already."""
        self.skipped = 0
        """Advisories that make no dead letter: the server took the message away, say."""

    @property
    def names(self) -> Names:
        """The streams and subjects in use."""
        return self._names

    # ---- making the streams

    async def prepare(self) -> None:
        """Make what is missing: the stream of dead letters, and the one that captures advisories.

        Failures are captured from now on. Raises `StreamNotFound`, `BadArgument` when a stream of
        that name cannot serve, `SubjectOverlap` when another one captures the advisories.
        """
        names = self._names
        source = await self._jet.get_stream(names.stream)
        replicas = source.config.num_replicas
        letters = await self._made(names.letters_config(replicas))
        names.check_letters(letters)
        try:
            failures = await self._made(names.failures_config(replicas))
        except SubjectOverlap as error:
            raise SubjectOverlap(
                f"{error.description}: another stream captures the advisories of {names.stream};"
                f" give its name as failures=",
                code=error.code,
                err_code=error.err_code,
                subject=error.subject,
            ) from error
        uncovered = set(names.advisories()) - set(failures.subjects or ())
        if uncovered and failures.subjects != ["$JS.EVENT.ADVISORY.>"]:
            raise BadArgument(
                f"stream {names.failures} does not capture {', '.join(sorted(uncovered))}"
            )
        await self._keeper()

    async def _made(self, config: StreamConfig) -> StreamConfig:
        """Return the configuration of a stream, which is made when it is not there."""
        try:
            return (await self._jet.get_stream(config.name or "")).config
        except StreamNotFound:
            return (await self._jet.create_stream(config)).config

    async def _keeper(self) -> Consumer:
        name = self._names.failures
        with _noted():
            made = await self._jet.create_or_update_consumer(name, self._names.keeper_config())
        # The same each time: it keeps its inbox for the next fetch, for as long as the connection.
        self._kept = self._kept or made
        return self._kept

    # ---- making dead letters

    async def collect(self, *, timeout: Seconds = 1.0) -> int:
        """Deal with all failures captured so far; return how many advisories that were.

        It ends when none came for `timeout` seconds. What could not be dealt with now is told to
        `on_report`, and comes again after a second or later.
        """
        keeper = await self._keeper()
        dealt_with = 0
        while batch := await keeper.fetch(_BATCH, timeout=timeout, wait="first"):
            for advisory in batch:
                dealt_with += await self._deal_with(advisory)
        return dealt_with

    async def _deal_with(self, advisory: Message) -> bool:
        """Make a dead letter, then acknowledge the advisory; tell whether that was done."""
        found = read_failure(advisory.data)
        try:
            if isinstance(found, Skip):
                self.skipped += 1
                self._report.log(NoDeadLetter(found.reason))
            else:
                await self._keep(found)
        except _TRANSIENT as error:
            text = f"no dead letter yet for an advisory: {error}"
            self._report(PullWarning(text), kind=type(error).__name__)
            await self._later(advisory)
            return False
        await advisory.ack()
        return True

    async def _later(self, advisory: Message) -> None:
        try:
            await advisory.nak(_AGAIN)
        except (ConnectionLost, RequestTimeout):
            # It comes again by itself then, after the ack_wait of its consumer.
            return

    async def _keep(self, failure: Failure) -> None:
        created, original, gone = await self._original(failure)
        await self._store(failure, created, original, gone)

    async def _original(
        self, failure: Failure
    ) -> tuple[Timestamp | None, StreamMessage | None, str]:
        """Return when the stream was made, the message, or why that is gone."""
        where = f"message {failure.stream_seq} of stream {failure.stream}"
        stream = self._jet.bind_stream(failure.stream)
        try:
            info = await stream.info(confirmed=True)
        except StreamNotFound:
            return None, None, f"{where} is gone with the stream"
        if is_of_earlier_stream(failure, info.created):
            return info.created, None, f"{where} is gone: the stream was made anew"
        try:
            message = await stream.get_message(failure.stream_seq)
        except MessageNotFound:
            return info.created, None, f"{where} is gone: {_why(failure, info)}"
        if is_later_message(failure, message.time):
            return info.created, None, f"{where} is gone: another one has its place"
        return info.created, message, ""

    async def _store(
        self,
        failure: Failure,
        created: Timestamp | None,
        original: StreamMessage | None,
        gone: str,
    ) -> None:
        without: frozenset[Part] = frozenset()
        while True:
            letter = letter_of_failure(self._names, failure, created, original, gone, without)
            try:
                new = await self._insert(letter)
                break
            except (BadArgument, JetStreamError) as error:
                part = too_large(error, without) if original is not None else None
                if part is None:
                    raise
                without = without.union([part])
                left_out = " and ".join(sorted(without))
                gone = f"the message is too large to be copied with its {left_out}: {error}"
        async with self._counting:
            if new:
                self.stored += 1
            else:
                self.known += 1
        if new:
            self._log(failure, "" if original is None else original.subject)

    def _log(self, failure: Failure, subject: str) -> None:
        event = DeadLettered(
            failure.stream,
            failure.consumer,
            failure.stream_seq,
            subject,
            failure.cause,
            by_worker=failure.cause == "rejected",
        )
        self._report.log(event)

    async def _insert(self, letter: PublishRequest) -> bool:
        """Store a dead letter; False when it is there already."""
        try:
            ack = await self._jet.publish(
                letter.subject,
                letter.data,
                headers=letter.headers,
                msg_id=letter.msg_id,
                expected_stream=self._names.letters,
            )
        except MessageExists:
            return False
        return not ack.duplicate

    async def store(self, message: Message, reason: str) -> None:
        """Store a message at hand as a dead letter, before it is terminated.

        A termination removes the message from work-queue and interest streams, so that nobody
        could read it afterwards. Say `twinstream.core.workers.dead_letter.stored_reason(reason)` in the term.
        """
        about = message.metadata
        stored = Timestamp.from_ns(about.timestamp_ns)
        failure = Failure(
            stream=about.stream,
            consumer=about.consumer,
            stream_seq=about.stream_seq,
            deliveries=about.num_delivered,
            cause="rejected",
            reason=reason,
            # Not before the message, however wrong the clock is here.
            time=max(stored, Timestamp.of(datetime.now(UTC))),
        )
        info = await self._jet.bind_stream(about.stream).info()
        original = StreamMessage(
            stream=about.stream,
            subject=message.subject,
            seq=about.stream_seq,
            time=stored,
            data=message.data,
            headers=message.headers,
        )
        await self._store(failure, info.created, original, "")

    # ---- beside other work

    async def start(self) -> None:
        """Make what is missing, and make dead letters beside the caller from now on.

        May be called again, by a second worker say: the work goes on until each has called `close`.
        """
        self._note_begun()
        async with self._turns:
            if not self._users:
                await self._begin()
            self._users += 1

    async def _begin(self) -> None:
        await self.prepare()
        keeper = await self._keeper()
        self._messages = keeper.messages(
            max_messages=_BATCH, on_deleted="wait", on_report=self._on_report
        )
        self._task = spawn(self._run, "twinstream-dead-letters")

    async def _run(self) -> None:
        messages = self._messages
        if messages is None:
            return
        try:
            async for advisory in messages:
                await self._deal_with(advisory)
        except Exception as error:
            self._keep_error(error, f"{self._names.stream}: the making of dead letters")

    async def close(self, timeout: Seconds = 30.0) -> None:
        """Stop making dead letters, unless others have begun it, too.

        Raises what ended the work, if anything did, and `RequestTimeout` when the end takes longer
        than `timeout` seconds.
        """
        async with self._turns:
            self._users = max(0, self._users - 1)
            if self._users:
                return
            if self._messages is not None:
                await self._messages.close()
        await self._join(timeout)

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Return when the work has ended, by `close` or an error, which is raised here.

        Raises `RequestTimeout` after `timeout` seconds; the work goes on then. Raises
        `NotStarted`.
        """
        self._require_begun(f"{self._names.stream}: the making of dead letters")
        await self._join(timeout)

    async def _join(self, timeout: Seconds | None) -> None:
        if self._task is not None and not await self._task.join(Deadline.after(timeout)):
            raise RequestTimeout("dead letters are still being made")
        self._raise_kept()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._is_parents:
            await self.close()

    # ---- looking at them, and what to do with them

    async def letters(self, *, timeout: Seconds = 120.0) -> Generated[DeadLetter]:
        """Iterate over the dead letters there are now, the oldest first.

        What somebody else put among them is told to `on_report` and passed over. Raises
        `RequestTimeout` when there was no progress for `timeout` seconds.
        """
        stream = self._jet.bind_stream(self._names.letters)
        with _noted():
            async with stream.read(timeout=timeout) as messages:
                async for message in messages:
                    letter = self._read(message)
                    if letter is not None:
                        yield letter

    def _read(self, message: StreamMessage) -> DeadLetter | None:
        try:
            return read_letter(message)
        except BadArgument as error:
            self._report(PullWarning(str(error)))
            return None

    async def get(self, seq: int) -> DeadLetter:
        """Return one dead letter by its own sequence. Raises `MessageNotFound`."""
        return read_letter(await self._jet.bind_stream(self._names.letters).get_message(seq))

    async def replay(self, letter: DeadLetter, *, subject: str | None = None) -> PubAck:
        """Publish the message of a dead letter anew, then remove the letter.

        It goes where it came from, or to `subject`, as a new message, to all consumers there.
        A replay that was cut short and is done again within the duplicate window of the stream
        stores it once. A work queue still holds a message that has no deliveries left: that one is
        removed. Raises `BadArgument` for a letter whose message was gone, and what publishing
        raises.
        """
        request = replay_request(letter, subject)
        ack = await self._jet.publish(
            request.subject, request.data, headers=request.headers, msg_id=request.msg_id
        )
        await self._remove_original(letter)
        await self.discard(letter)
        return ack

    async def _remove_original(self, letter: DeadLetter) -> None:
        """Take out of a work queue what it holds for ever: nobody is given it any more."""
        if letter.cause != "max_deliver":
            # A termination removed it.
            return
        try:
            stream = await self._jet.get_stream(letter.stream)
            if stream.config.retention != RetentionPolicy.WORKQUEUE:
                return
            found = await stream.get_message(letter.stream_seq)
            if found.subject == letter.subject and found.time == letter.stored_at:
                await stream.delete_message(letter.stream_seq)
        except (StreamNotFound, MessageNotFound):
            return

    async def discard(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that is gone already is fine."""
        try:
            await self._jet.bind_stream(self._names.letters).delete_message(letter.seq)
        except MessageNotFound:
            return

    async def replay_by_reset(self, consumer: str) -> int:
        """Have a consumer start again at its first dead letter; return that sequence (2.14).

        It gets everything from there on anew, also what it acknowledged, with deliveries counted
        from 1, and only those messages that its stream still holds. Its dead letters are removed.
        Raises `BadArgument` when none can come again.
        """
        found = [letter async for letter in self.letters() if letter.consumer == consumer]
        there = [letter.stream_seq for letter in found if not letter.gone]
        if not there:
            raise BadArgument(f"no dead letter of consumer {consumer} has its message")
        await _control.reset(self._api, self._names.stream, consumer, min(there))
        for letter in found:
            if not letter.gone:
                await self.discard(letter)
        return min(there)


@contextmanager
def _noted() -> Generator[None]:
    """Add to a missing stream what makes it."""
    try:
        yield
    except StreamNotFound as error:
        error.add_note("`prepare` makes the streams of dead letters")
        raise


def _why(failure: Failure, info: StreamInfo) -> str:
    retention = str(info.config.retention)
    if failure.cause == "terminated" and retention != "limits":
        return f"retention {retention} removes what is terminated"
    return "limits, a purge or a delete took it away"
