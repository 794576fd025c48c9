"""Dead letters: copies of messages that could not be processed, in a separate stream.

The server reports each such message by an advisory. A stream captures the advisories, so that no
advisory is lost. For each advisory, the failed message is read and stored as a dead letter. Then
the advisory is acknowledged. The subject of a dead letter is derived from the failure, and the
stream stores only one message on each subject. So it is safe to process an advisory again, for
example after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, Self

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import create_stream
from js_async.background.work import BackgroundWork
from js_async.consume.message import Message
from js_async.consume.messages import Messages
from js_async.consumer import Consumer, made_consumer
from js_async.publish.publish import PublishedMessage
from js_async.runtime.concurrency import Items, Lock
from js_async.runtime.opening import looped
from js_async.stream import Stream
from js_async.workers.letter_collection import LetterCollection
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.deadline import NEVER, Seconds
from twinstream.core.log.events import DeadLettered, NoDeadLetter
from twinstream.core.log.reporter import Reporter
from twinstream.core.publish.retry_pauses import retry_policy
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.header_text import visible
from twinstream.core.workers.dead_letter import (
    DeadLetter,
    Failure,
    Names,
    Part,
    Skip,
    check_complete,
    foreign_names,
    is_copy,
    is_later_message,
    is_letter_of,
    is_of_earlier_stream,
    letter_of_failure,
    read_failure,
    read_letter,
    replay_request,
    second_subject,
    too_large,
)
from twinstream.core.workers.replay_subject import (
    Place,
    PlaceSearch,
    is_reserved,
)
from twinstream.errors import (
    BadArgument,
    JetStreamError,
    MessageExists,
    MessageNotFound,
    StreamNotFound,
    SubjectOverlap,
)
from twinstream.errors.transient import FAILED_REQUEST, LOST_RESPONSE
from twinstream.models import PubAck, RetentionPolicy, StreamConfig, StreamInfo, Timestamp
from twinstream.records.publish_request import PublishRequest

__all__ = ["DeadLetters", "collection_of"]

# Seconds until an advisory that could not be processed is redelivered.
_AGAIN: Final = 1.0
_BATCH: Final = 50


class DeadLetters(BackgroundWork):
    """The dead letters of a stream or of one consumer. Created by `JetStream.dead_letters`.

    Use it in a `with` block to create dead letters in the background, or call `prepare` and
    `collect`. Several processes may do so at the same time.
    """

    # `LetterCollection` reports it.
    _reports_end = False

    def __init__(
        self,
        api: Api,
        names: Names,
        on_report: Callable[[PullReport], None] | None,
    ) -> None:
        super().__init__()
        self._api: Final = api
        self._on_report: Final = on_report
        self._names: Final = names
        self._report: Final[Reporter[PullReport]] = Reporter(
            on_report, area="dead_letters", stream=names.stream
        )
        self._kept: Consumer | None = None
        self._collection: Final = LetterCollection(
            names.stream, self._advisories, self._process, on_report
        )
        self._counting: Final = Lock()
        self.stored = 0
        """Number of dead letters that this object has stored."""
        self.known = 0
        """Number of failures for which a dead letter already existed."""
        self.skipped = 0
        """Number of advisories without a dead letter.

        None is needed, for example if the message expired, or the advisory is not one that a server
        publishes about this stream and consumer.
        """
        self.refused = 0
        """Number of dead letters that `replay` refused to publish."""

    @property
    def names(self) -> Names:
        """The names of the streams and subjects in use."""
        return self._names

    # ---- creating the streams

    async def prepare(self) -> None:
        """Create the stream of dead letters and the stream that captures advisories, if missing.

        Also create the consumer of the advisories. From then on, failures are captured, even if no
        program collects them yet.

        Raises:
            StreamNotFound: The stream whose failures are to be captured does not exist.
            BadArgument: An existing stream with one of these names is unsuitable.
            SubjectOverlap: Another stream captures the advisories.
        """
        names = self._names
        source = await self._api.stream_info(names.stream)
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
        """Return the configuration of a stream. If the stream does not exist, it is created."""
        try:
            return (await self._api.stream_info(config.name or "")).config
        except StreamNotFound:
            return (
                await create_stream(
                    self._api, config.name or "", config, False, self._api.deadline()
                )
            ).config

    async def _keeper(self) -> Consumer:
        name = self._names.failures
        with _noted():
            made = await made_consumer(self._api, name, self._names.keeper_config(), "")
        # Keep the first handle and use it for every fetch.
        self._kept = self._kept or made
        return self._kept

    # ---- creating dead letters

    async def collect(self, *, timeout: Seconds = 1.0) -> int:
        """Process the captured advisories, and return the number of processed advisories.

        Returns when no advisory arrives for `timeout` seconds. If an advisory cannot be processed
        now, a warning is passed to `on_report`, and the server redelivers the advisory after a
        second or later. An advisory whose content contradicts its subject, or names another stream
        or consumer than this object, is forged: it is skipped with a warning, and not redelivered.
        """
        keeper = await self._keeper()
        processed = 0
        while batch := await keeper.fetch(_BATCH, timeout=timeout, wait="first"):
            for advisory in batch:
                processed += await self._process(advisory)
        return processed

    async def _process(self, advisory: Message) -> bool:
        """Create a dead letter and acknowledge the advisory; return False if that failed."""
        found = read_failure(self._names, advisory.subject, advisory.data)
        try:
            if isinstance(found, Skip):
                self._skip(found)
            else:
                await self._keep(found)
        except (*FAILED_REQUEST, BadArgument) as error:
            text = f"no dead letter yet for an advisory: {error}"
            self._report(PullWarning(text), kind=type(error).__name__)
            await self._later(advisory)
            return False
        await advisory.ack()
        return True

    def _skip(self, found: Skip) -> None:
        self.skipped += 1
        if found.is_odd:
            self._report(PullWarning(f"an advisory is skipped: {found.reason}"), kind="odd")
        else:
            self._report.log(NoDeadLetter(found.reason))

    async def _later(self, advisory: Message) -> None:
        try:
            await advisory.nak(_AGAIN)
        except LOST_RESPONSE:
            # The advisory is redelivered after the `ack_wait` of its consumer.
            return

    async def _keep(self, failure: Failure) -> None:
        created, original, gone = await self._original(failure)
        await self._store(failure, created, original, gone)

    async def _original(
        self, failure: Failure
    ) -> tuple[Timestamp | None, StreamMessage | None, str]:
        """Return the creation time of the stream, the failed message, and a text.

        If the stream does not exist, the time is None. If the message does not exist, it is None,
        and the text is the reason. Otherwise the text is empty.
        """
        where = f"message {failure.stream_seq} of stream {failure.stream}"
        stream = Stream(self._api, failure.stream, None)
        try:
            info = await stream.info(confirmed=True)
        except StreamNotFound:
            return None, None, f"{where} is gone with the stream"
        if is_of_earlier_stream(failure, info.created):
            return info.created, None, f"{where} is gone: the stream was re-created"
        try:
            message = await stream.get_message(failure.stream_seq)
        except MessageNotFound:
            return info.created, None, f"{where} is gone: {_why(failure, info)}"
        if is_later_message(failure, message.time):
            return info.created, None, f"{where} is gone: another message has its sequence"
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
                new = await self._insert(letter, failure, original)
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
            visible(failure.consumer),
            failure.stream_seq,
            visible(subject),
            failure.cause,
            by_worker=failure.cause == "rejected",
        )
        self._report.log(event)

    async def _insert(
        self, letter: PublishRequest, failure: Failure, original: StreamMessage | None
    ) -> bool:
        """Store a dead letter. Return False if it already exists.

        Any client may have stored another message on its subject before. Then the letter gets a
        second subject. Raises `MessageExists` if another message occupies that one, too.
        """
        stored = None if original is None else original.time
        second = second_subject(letter, failure, stored)
        try:
            return await self._insert_at(letter.subject, letter, failure, original)
        except MessageExists:
            self._report(
                PullWarning(
                    f"another message has the subject of a dead letter: {letter.subject!r:.400}"
                ),
                kind="occupied",
            )
        return await self._insert_at(second, letter, failure, original)

    async def _insert_at(
        self,
        subject: str,
        letter: PublishRequest,
        failure: Failure,
        original: StreamMessage | None,
    ) -> bool:
        names = self._names
        request = letter._replace(subject=subject, expected_stream=names.letters)
        try:
            ack = await PublishedMessage(self._api, request, retry_policy()).acknowledged()
        except MessageExists:
            try:
                found = await Stream(self._api, names.letters, None).get_last_message(subject)
            except MessageNotFound:
                # The letter was replayed or discarded meanwhile.
                return False
            if not is_letter_of(found, failure, original):
                raise
            return False
        return not ack.duplicate

    async def store(self, message: Message, reason: str) -> None:
        """Store a received message as a dead letter, before it is terminated.

        Work-queue and interest streams remove terminated messages, so the message could not be read
        afterwards. Pass `twinstream.core.workers.dead_letter.stored_reason(reason)` to `term` as
        the reason.
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
            # The time of the failure is not before that of the message, even if the local clock is
            # wrong.
            time=max(stored, Timestamp.of(datetime.now(UTC))),
        )
        info = await self._api.stream_info(about.stream)
        original = StreamMessage(
            stream=about.stream,
            subject=message.subject,
            seq=about.stream_seq,
            time=stored,
            data=message.data,
            headers=message.headers,
        )
        await self._store(failure, info.created, original, "")

    # ---- in the background

    @property
    def _label(self) -> str:
        return f"of {self._names.stream}"

    async def start(self) -> None:
        """Create missing streams, and start to create dead letters in the background.

        Workers with these dead letters do the same while they run.

        Raises:
            BadArgument: The work was started before, or an existing stream is unsuitable.
        """
        await super().start()

    async def _begin(self) -> None:
        await self._collection.join(self._stopping)

    async def _work(self) -> None:
        await self._stopping.sleep(NEVER)
        await self._collection.leave(self._stopping)

    def _is_within(self) -> bool:
        return super()._is_within() or self._collection.is_handler()

    async def _advisories(self) -> Messages:
        """Create missing streams; return the iterator of captured advisories."""
        await self.prepare()
        keeper = await self._keeper()
        return keeper.messages(max_messages=_BATCH, on_deleted="wait", on_report=self._on_report)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- reading, replaying and discarding

    @looped
    async def letters(self, *, timeout: Seconds = 120.0) -> Items[DeadLetter]:
        """Iterate over the current dead letters, the oldest first.

        Messages in the stream that are no dead letters are reported to `on_report` and skipped.
        Raises `RequestTimeout` if there is no progress for `timeout` seconds.
        """
        stream = Stream(self._api, self._names.letters, None)
        with _noted():
            async with stream.read(idle_timeout=timeout) as messages:
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
        """Return the dead letter with sequence `seq` in its stream. Raises `MessageNotFound`."""
        return read_letter(await Stream(self._api, self._names.letters, None).get_message(seq))

    async def replay(self, letter: DeadLetter, *, subject: str | None = None) -> PubAck:
        """Publish the message of a dead letter again, then remove the dead letter.

        The new message is published to the original subject, or to `subject`, so all consumers of
        this subject receive it. If a replay is interrupted and repeated within the duplicate window
        of the stream, the stream stores the message once. If the original message is still in a
        work-queue stream, it is removed, because the stream will not deliver it any more.

        Any client that may publish dead letters can write a subject into one. So without `subject`,
        the message is published only if the stream, or one that it copies from, stores messages
        under the subject of the letter. Subject transforms are undone. With `subject`, the message
        is published there, whatever the letter contains.

        Raises:
            BadArgument: The letter lacks its message, or names another stream or consumer, or its
                subject is refused. `refused` counts it.
            StreamNotFound: The stream does not exist, and `subject` is not given.
            NoResponders, JetStreamError: The message was not stored; see `JetStream.publish`.
        """
        try:
            request = await self._request(letter, subject)
            ack = await self._published(request, letter)
        except BadArgument as error:
            async with self._counting:
                self.refused += 1
            self._report(PullWarning(str(error)), kind="refused")
            raise
        await self._remove_original(letter)
        await self.discard(letter)
        return ack

    async def _request(self, letter: DeadLetter, subject: str | None) -> PublishRequest:
        check_complete(letter)
        if subject is not None:
            return replay_request(letter, subject, None)
        place = await self._place(letter)
        return replay_request(letter, place.subject, place.stream)

    async def _published(self, request: PublishRequest, letter: DeadLetter) -> PubAck:
        try:
            return await PublishedMessage(self._api, request, retry_policy()).acknowledged()
        except BadArgument as error:
            # For example, the message has a header that no client may send.
            raise BadArgument(f"dead letter {letter.seq} cannot be replayed: {error}") from error

    async def _place(self, letter: DeadLetter) -> Place:
        """Return the stream that stores the replayed message, and the subject to publish on."""
        fault = foreign_names(self._names, letter)
        if fault:
            raise self._refusal(letter, f"it names {fault}")
        found = await self._places(letter.subject)
        if not found:
            raise self._refusal(
                letter,
                f"neither stream {self._names.stream} nor a stream that it copies from stores"
                f" messages under the subject {letter.subject!r:.400}",
            )
        if len(found) > 1:
            known = " or ".join(f"{each.subject!r:.400}" for each in found[:2])
            raise self._refusal(letter, f"its message may have been published on {known}")
        [place] = found
        prefixes = (self._api.subjects.prefix, self._api.transport.tokens.inbox_prefix)
        if is_reserved(place.subject, prefixes):
            raise self._refusal(letter, f"its subject {place.subject!r:.400} is reserved")
        return place

    async def _places(self, subject: str) -> list[Place]:
        search = PlaceSearch(self._names.stream, subject)
        while (place := search.next()) is not None:
            try:
                info = await self._api.stream_info(place.stream)
            except StreamNotFound:
                if place.stream == self._names.stream:
                    raise
                # The stream was deleted after its messages were copied.
                continue
            search.enter(place, info.config)
        return search.found

    @staticmethod
    def _refusal(letter: DeadLetter, why: str) -> BadArgument:
        return BadArgument(
            f"dead letter {letter.seq} is not replayed: {why}; to publish it anyway, give the"
            " subject as subject= (--subject of the command)"
        )

    async def _remove_original(self, letter: DeadLetter) -> None:
        """Remove the original message if its stream is a work queue, or else do nothing.

        The work queue will not deliver the message again.
        """
        if letter.cause != "max_deliver" or foreign_names(self._names, letter):
            # A termination has already removed the message.
            return
        try:
            stream = Stream(self._api, self._names.stream, None)
            if (await stream.info()).config.retention != RetentionPolicy.WORKQUEUE:
                return
            if await self._has_original(letter):
                await stream.delete_message(letter.stream_seq)
        except (StreamNotFound, MessageNotFound):
            return

    async def _has_original(self, letter: DeadLetter) -> bool:
        """Return whether the message of a dead letter is still in the stream of this object."""
        if foreign_names(self._names, letter):
            return False
        stream = Stream(self._api, self._names.stream, None)
        try:
            found = await stream.get_message(letter.stream_seq)
        except (StreamNotFound, MessageNotFound):
            return False
        return is_copy(letter, found)

    async def discard(self, letter: DeadLetter | int) -> None:
        """Remove a dead letter. Does nothing if it does not exist.

        A number is the sequence in the stream of dead letters, also of a message that is none.
        """
        seq = letter.seq if isinstance(letter, DeadLetter) else letter
        check_whole(seq, "letter")
        try:
            await Stream(self._api, self._names.letters, None).delete_message(seq)
        except MessageNotFound:
            return

    async def replay_by_reset(self, consumer: str) -> int:
        """Restart a consumer at its first dead letter; return the sequence (server 2.14).

        The consumer receives all messages from this sequence on again, even if they were
        acknowledged. Deliveries are counted from 1. The call starts at the first dead letter whose
        message is still in the stream, with the same subject, time and content. It removes the dead
        letters of the consumer whose message is still in the stream. The other dead letters stay,
        because each is the only copy of its message.

        Raises `BadArgument` if no dead letter of the consumer has its message in the stream.
        """
        letters = [letter async for letter in self.letters() if letter.consumer == consumer]
        present = [letter for letter in letters if await self._has_original(letter)]
        if not present:
            raise BadArgument(
                f"stream {self._names.stream} has the message of no dead letter of consumer"
                f" {consumer}; use replay for the {len(letters)} that it has"
            )
        first = min(letter.stream_seq for letter in present)
        await consumer_admin.reset(self._api, self._names.stream, consumer, first)
        for letter in present:
            await self.discard(letter)
        return first


def collection_of(letters: DeadLetters) -> LetterCollection:
    """Return what creates the dead letters in the background. Workers share it."""
    return letters._collection


@contextmanager
def _noted() -> Generator[None]:
    """Add a note to a `StreamNotFound` error. The note names the method that creates the stream."""
    try:
        yield
    except StreamNotFound as error:
        error.add_note("`prepare` creates the streams of dead letters")
        raise


def _why(failure: Failure, info: StreamInfo) -> str:
    retention = str(info.config.retention)
    if failure.cause == "terminated" and retention != "limits":
        return f"retention {retention} removes terminated messages"
    return "limits, a purge or a delete removed it"
