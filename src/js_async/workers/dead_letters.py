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

from js_async import Consumer, JetStream, Message, Messages, Stream
from js_async.extension import BackgroundWork, api_of
from js_async.runtime.concurrency import Items, Lock
from js_async.runtime.opening import looped
from js_async.workers.letter_collection import LetterCollection
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.consume.reports import PullReport, PullWarning
from twinstream.core.deadline import NEVER, Deadline, Seconds
from twinstream.core.log.events import DeadLettered, NoDeadLetter
from twinstream.core.log.reporter import Reporter
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
    RequestTimeout,
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
# Seconds without progress after which `replay_by_reset` stops to read the letters.
_LISTING: Final = 120.0


class DeadLetters(BackgroundWork):
    """The dead letters of a stream or of one of its consumers.

    Use it in a `with` block to create dead letters in the background, or call `create` and
    `collect`. Several processes may do so at the same time. The constructor sends no request.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        consumer_name: Only messages of this consumer. The default names below then contain
            `STREAM-CONSUMER` instead of `STREAM`.
        letters_stream_name: Stream for the dead letters. The default is `STREAM-dead`.
        failures_stream_name: Stream that stores the advisories. The default is `STREAM-failures`.
        prefix: Subject prefix of the dead letters. The default is `dead.STREAM`.
        on_report: Callback that receives reports.

    Raises:
        BadArgument: A name is invalid.
    """

    # `LetterCollection` reports it.
    _reports_end = False

    def __init__(
        self,
        jet: JetStream,
        stream_name: str,
        *,
        consumer_name: str | None = None,
        letters_stream_name: str | None = None,
        failures_stream_name: str | None = None,
        prefix: str | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> None:
        super().__init__()
        self._api: Final = api_of(jet)
        self._jet: Final = jet
        names = Names.of(
            stream_name, consumer_name, letters_stream_name, failures_stream_name, prefix
        )
        self._letters: Final = jet.bind_stream(names.letters)
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
    def letters_stream_name(self) -> str:
        """The name of the stream of dead letters."""
        return self._names.letters

    @property
    def failures_stream_name(self) -> str:
        """The name of the stream that captures the advisories until they are processed."""
        return self._names.failures

    # ---- creating the streams

    async def create(self, *, timeout: Seconds | None = None) -> None:
        """Create the stream of dead letters and the stream that captures advisories, if missing.

        Also create the consumer of the advisories. From then on, failures are captured, even if no
        program collects them yet.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            StreamNotFound: The stream whose failures are to be captured does not exist.
            BadArgument: An existing stream with one of these names is unsuitable.
            SubjectOverlap: Another stream captures the advisories.
        """
        names, deadline = self._names, self._api.deadline(timeout)
        source = await self._jet.get_stream(names.stream, timeout=deadline.remaining())
        replicas = (await _config(source, deadline)).num_replicas
        letters = await self._made(names.letters_config(replicas), deadline)
        names.check_letters(letters)
        try:
            failures = await self._made(names.failures_config(replicas), deadline)
        except SubjectOverlap as error:
            raise SubjectOverlap(
                f"{error.description}: another stream captures the advisories of {names.stream};"
                f" give its name as failures_stream_name=",
                code=error.code,
                err_code=error.err_code,
                subject=error.subject,
            ) from error
        uncovered = set(names.advisories()) - set(failures.subjects or ())
        if uncovered and failures.subjects != ["$JS.EVENT.ADVISORY.>"]:
            raise BadArgument(
                f"stream {names.failures} does not capture {', '.join(sorted(uncovered))}"
            )
        await self._keeper(deadline)

    async def _made(self, config: StreamConfig, deadline: Deadline) -> StreamConfig:
        """Return the configuration of a stream. If the stream does not exist, it is created."""
        name = config.name or ""
        try:
            stream = await self._jet.get_stream(name, timeout=deadline.remaining())
        except StreamNotFound:
            stream = await self._jet.create_stream(config, timeout=deadline.remaining())
        return await _config(stream, deadline)

    async def _keeper(self, deadline: Deadline) -> Consumer:
        name = self._names.failures
        with _advised():
            made = await self._jet.create_or_update_consumer(
                name, self._names.keeper_config(), timeout=deadline.remaining()
            )
        # Keep the first handle and use it for every fetch.
        self._kept = self._kept or made
        return self._kept

    # ---- creating dead letters

    async def collect(self, *, idle_timeout: Seconds = 1.0) -> int:
        """Process the captured advisories, and return the number of processed advisories.

        Returns when no advisory arrives for `idle_timeout` seconds. If an advisory cannot be
        processed now, a warning is passed to `on_report`, and the server redelivers the advisory
        after a second or later. An advisory whose content contradicts its subject, or names another
        stream or consumer than this object, is forged: it is skipped with a warning, and not
        redelivered.
        """
        keeper = await self._keeper(self._api.deadline())
        processed = 0
        while batch := await keeper.fetch(_BATCH, timeout=idle_timeout, wait="first"):
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
                await self._store_failure(found)
        except (*FAILED_REQUEST, BadArgument) as error:
            text = f"no dead letter yet for an advisory: {error}"
            self._report(PullWarning(text), kind=type(error).__name__)
            await self._return_later(advisory)
            return False
        await advisory.ack()
        return True

    def _skip(self, found: Skip) -> None:
        self.skipped += 1
        if found.is_odd:
            self._report(PullWarning(f"an advisory is skipped: {found.reason}"), kind="odd")
        else:
            self._report.log(NoDeadLetter(found.reason))

    async def _return_later(self, advisory: Message) -> None:
        try:
            await advisory.nak(_AGAIN)
        except LOST_RESPONSE:
            # The advisory is redelivered after the `ack_wait` of its consumer.
            return

    async def _store_failure(self, failure: Failure) -> None:
        created, original, why_missing = await self._original(failure)
        await self._store(failure, created, original, why_missing, NEVER)

    async def _original(
        self, failure: Failure
    ) -> tuple[Timestamp | None, StreamMessage | None, str]:
        """Return the creation time of the stream, the failed message, and a text.

        If the stream does not exist, the time is None. If the message does not exist, it is None,
        and the text is the reason. Otherwise the text is empty.
        """
        where = f"message {failure.stream_seq} of stream {failure.stream}"
        stream = self._jet.bind_stream(failure.stream)
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
        why_missing: str,
        deadline: Deadline,
    ) -> None:
        """Store a letter, and count it as stored or as known.

        If the letter is too large, leave out parts of the original message, one after the other.
        """
        without: frozenset[Part] = frozenset()
        while True:
            letter = letter_of_failure(
                self._names, failure, created, original, why_missing, without
            )
            try:
                new = await self._insert(letter, failure, original, deadline)
                break
            except (BadArgument, JetStreamError) as error:
                part = too_large(error, without) if original is not None else None
                if part is None:
                    raise
                without = without.union([part])
                left_out = " and ".join(sorted(without))
                why_missing = f"the message is too large to be copied with its {left_out}: {error}"
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
        if self._api.transport.observers is not None:
            self._api.transport.observers.note(event)

    async def _insert(
        self,
        letter: PublishRequest,
        failure: Failure,
        original: StreamMessage | None,
        deadline: Deadline,
    ) -> bool:
        """Store a dead letter. Return False if it already exists.

        Any client may have stored another message on its subject before. Then the letter gets a
        second subject. Raises `MessageExists` if another message occupies that one, too.
        """
        stored = None if original is None else original.time
        second = second_subject(letter, failure, stored)
        try:
            return await self._insert_at(letter.subject, letter, failure, original, deadline)
        except MessageExists:
            self._report(
                PullWarning(
                    f"another message has the subject of a dead letter: {letter.subject!r:.400}"
                ),
                kind="occupied",
            )
        return await self._insert_at(second, letter, failure, original, deadline)

    async def _insert_at(
        self,
        subject: str,
        letter: PublishRequest,
        failure: Failure,
        original: StreamMessage | None,
        deadline: Deadline,
    ) -> bool:
        """Store a letter if `subject` has no message. Return False if it has this letter already.

        Raises `MessageExists` if the subject has another message.
        """
        request = letter._replace(subject=subject, expected_stream=self._names.letters)
        try:
            ack = await self._publish(request, deadline)
        except MessageExists:
            try:
                found = await self._letters.get_last_message(subject, timeout=self._rest(deadline))
            except MessageNotFound:
                # The letter was replayed or discarded meanwhile.
                return False
            if not is_letter_of(found, failure, original):
                raise
            return False
        return not ack.duplicate

    async def _publish(self, request: PublishRequest, deadline: Deadline) -> PubAck:
        if deadline.expired():
            raise RequestTimeout("no time is left to publish the message")
        return await self._jet.publish(
            request.subject,
            request.data,
            headers=request.headers,
            msg_id=request.msg_id,
            expected_stream=request.expected_stream,
            timeout=None if deadline is NEVER else deadline.remaining(),
        )

    def _rest(self, deadline: Deadline) -> float:
        """Return the seconds for one of several requests that have a deadline together."""
        return min(self._api.timeout, deadline.remaining())

    async def store(self, message: Message, reason: str, *, timeout: Seconds | None = None) -> None:
        """Store a received message as a dead letter, before it is terminated.

        Work-queue and interest streams remove terminated messages, so the message could not be read
        afterwards. Pass `twinstream.core.workers.dead_letter.stored_reason(reason)` to `term` as
        the reason.

        Args:
            message: The message.
            reason: Why it could not be processed.
            timeout: Seconds for the whole call. By default, only each request has the timeout of
                the JetStream context.
        """
        deadline = Deadline.after(timeout)
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
        stream = self._jet.bind_stream(about.stream)
        info = await stream.info(timeout=self._rest(deadline))
        original = StreamMessage(
            stream_name=about.stream,
            subject=message.subject,
            seq=about.stream_seq,
            time=stored,
            data=message.data,
            headers=message.headers,
        )
        await self._store(failure, info.created, original, "", deadline)

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
        try:
            await self._stopping.sleep(NEVER)
        finally:
            await self._collection.leave(self._stopping)

    def _is_within(self) -> bool:
        return super()._is_within() or self._collection.is_handler()

    async def _advisories(self) -> Messages:
        """Create missing streams; return the iterator of captured advisories."""
        await self.create()
        keeper = await self._keeper(self._api.deadline())
        return keeper.messages(max_messages=_BATCH, on_deleted="wait", on_report=self._on_report)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ---- reading, replaying and discarding

    @looped
    async def letters(self, *, idle_timeout: Seconds = 120.0) -> Items[DeadLetter]:
        """Iterate over the current dead letters, the oldest first.

        Messages in the stream that are no dead letters are reported to `on_report` and skipped.
        Raises `RequestTimeout` if there is no progress for `idle_timeout` seconds.
        """
        with _advised():
            async with self._letters.read(idle_timeout=idle_timeout) as messages:
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

    async def get(self, seq: int, *, timeout: Seconds | None = None) -> DeadLetter:
        """Return the dead letter with sequence `seq` in its stream. Raises `MessageNotFound`.

        Args:
            seq: The sequence.
            timeout: Seconds; the default is that of the JetStream context.
        """
        return read_letter(await self._letters.get_message(seq, timeout=timeout))

    async def replay(
        self,
        letter: DeadLetter,
        *,
        subject: str | None = None,
        timeout: Seconds | None = None,
    ) -> PubAck:
        """Publish the message of a dead letter again, then remove the dead letter.

        The new message is published to the original subject, or to `subject`, so all consumers of
        this subject receive it. If a replay is interrupted and repeated within the duplicate window
        of the stream, the stream stores the message once. If the original message is still in a
        work-queue stream, it is removed, because the stream will not deliver it any more.

        Any client that may publish dead letters can write a subject into one. So without `subject`,
        the message is published only if the stream, or one that it copies from, stores messages
        under the subject of the letter. Subject transforms are undone. With `subject`, the message
        is published there, whatever the letter contains.

        Args:
            letter: The dead letter.
            subject: Where to publish the message instead of its original subject.
            timeout: Seconds for the whole call. By default, only each request has the timeout of
                the JetStream context.

        Raises:
            BadArgument: The letter lacks its message, or names another stream or consumer, or its
                subject is refused. `refused` counts it.
            StreamNotFound: The stream does not exist, and `subject` is not given.
            NoResponders, JetStreamError: The message was not stored; see `JetStream.publish`.
        """
        if not isinstance(letter, DeadLetter):
            raise BadArgument(f"replay takes a dead letter, which get(seq) returns; got {letter!r}")
        deadline = Deadline.after(timeout)
        try:
            request = await self._request(letter, subject, deadline)
            ack = await self._published(request, letter, deadline)
        except BadArgument as error:
            async with self._counting:
                self.refused += 1
            self._report(PullWarning(str(error)), kind="refused")
            raise
        await self._remove_original(letter, deadline)
        await self.discard(letter, timeout=self._rest(deadline))
        return ack

    async def _request(
        self, letter: DeadLetter, subject: str | None, deadline: Deadline
    ) -> PublishRequest:
        check_complete(letter)
        if subject is not None:
            return replay_request(letter, subject, None)
        place = await self._find_target(letter, deadline)
        return replay_request(letter, place.subject, place.stream)

    async def _published(
        self, request: PublishRequest, letter: DeadLetter, deadline: Deadline
    ) -> PubAck:
        try:
            return await self._publish(request, deadline)
        except BadArgument as error:
            # For example, the message has a header that no client may send.
            raise BadArgument(f"dead letter {letter.seq} cannot be replayed: {error}") from error

    async def _find_target(self, letter: DeadLetter, deadline: Deadline) -> Place:
        """Return the stream that stores the replayed message, and the subject to publish on."""
        fault = foreign_names(self._names, letter)
        if fault:
            raise self._refusal(letter, f"it names {fault}")
        found = await self._find_targets(letter.subject, deadline)
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
        prefixes = (self._jet.prefix, self._api.transport.tokens.inbox_prefix)
        if is_reserved(place.subject, prefixes):
            raise self._refusal(letter, f"its subject {place.subject!r:.400} is reserved")
        return place

    async def _find_targets(self, subject: str, deadline: Deadline) -> list[Place]:
        """Return where a message may have been published that the stream stores as `subject`."""
        search = PlaceSearch(self._names.stream, subject)
        while (place := search.next()) is not None:
            try:
                stream = self._jet.bind_stream(place.stream)
                info = await stream.info(timeout=self._rest(deadline))
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

    async def _remove_original(self, letter: DeadLetter, deadline: Deadline) -> None:
        """Remove the original message if its stream is a work queue, or else do nothing.

        The work queue will not deliver the message again.
        """
        if letter.cause != "max_deliver" or foreign_names(self._names, letter):
            # A termination has already removed the message.
            return
        try:
            stream = self._jet.bind_stream(self._names.stream)
            info = await stream.info(timeout=self._rest(deadline))
            if info.config.retention != RetentionPolicy.WORKQUEUE:
                return
            if await self._has_original(letter, deadline):
                await stream.delete_message(letter.stream_seq, timeout=self._rest(deadline))
        except (StreamNotFound, MessageNotFound):
            return

    async def _has_original(self, letter: DeadLetter, deadline: Deadline) -> bool:
        """Return whether the message of a dead letter is still in the stream of this object."""
        if foreign_names(self._names, letter):
            return False
        stream = self._jet.bind_stream(self._names.stream)
        try:
            found = await stream.get_message(letter.stream_seq, timeout=self._rest(deadline))
        except (StreamNotFound, MessageNotFound):
            return False
        return is_copy(letter, found)

    async def discard(self, letter: DeadLetter | int, *, timeout: Seconds | None = None) -> None:
        """Remove a dead letter. Does nothing if it does not exist.

        A number is the sequence in the stream of dead letters, also of a message that is none.

        Args:
            letter: The dead letter, or its sequence.
            timeout: Seconds; the default is that of the JetStream context.
        """
        seq = letter.seq if isinstance(letter, DeadLetter) else letter
        check_whole(seq, "letter")
        try:
            await self._letters.delete_message(seq, timeout=timeout)
        except MessageNotFound:
            return

    async def replay_by_reset(self, consumer_name: str, *, timeout: Seconds | None = None) -> int:
        """Restart a consumer at its first dead letter; return the sequence (server 2.14).

        The consumer receives all messages from this sequence on again, even if they were
        acknowledged. Deliveries are counted from 1. The call starts at the first dead letter whose
        message is still in the stream, with the same subject, time and content. It removes the dead
        letters of the consumer whose message is still in the stream. The other dead letters stay,
        because each is the only copy of its message.

        Raises `BadArgument` if no dead letter of the consumer has its message in the stream.

        Args:
            consumer_name: Name of the consumer.
            timeout: Seconds for the whole call. By default, only each request has the timeout of
                the JetStream context.
        """
        deadline = Deadline.after(timeout)
        found = self.letters(idle_timeout=min(_LISTING, deadline.remaining()))
        letters = [letter async for letter in found if letter.consumer_name == consumer_name]
        present = [letter for letter in letters if await self._has_original(letter, deadline)]
        if not present:
            raise BadArgument(
                f"stream {self._names.stream} has the message of no dead letter of consumer"
                f" {consumer_name}; use replay for the {len(letters)} that it has"
            )
        first = min(letter.stream_seq for letter in present)
        consumer = self._jet.bind_consumer(self._names.stream, consumer_name)
        await consumer.reset(first, timeout=self._rest(deadline))
        for letter in present:
            await self.discard(letter, timeout=self._rest(deadline))
        return first


def collection_of(letters: DeadLetters) -> LetterCollection:
    """Return what creates the dead letters in the background. Workers share it."""
    return letters._collection


@contextmanager
def _advised() -> Generator[None]:
    """Add the name of the method that creates the stream to a `StreamNotFound` error."""
    try:
        yield
    except StreamNotFound as error:
        error.add_advice("`create` creates the streams of dead letters")
        raise


async def _config(stream: Stream, deadline: Deadline) -> StreamConfig:
    """Return the known configuration of a stream."""
    info = stream.cached_info or await stream.info(timeout=deadline.remaining())
    return info.config


def _why(failure: Failure, info: StreamInfo) -> str:
    retention = str(info.config.retention)
    if failure.cause == "terminated" and retention != "limits":
        return f"retention {retention} removes terminated messages"
    return "limits, a purge or a delete removed it"
