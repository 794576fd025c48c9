# Generated from src/js_async/exactly_once/idempotent_writer.py by codegen/twin.py. Edit that file instead.
"""Two ways to store messages once, whoever repeats them and whenever.

By subject, where each message has a subject of its own: the stream refuses a second one for ever.
By identity: the stream's duplicate window refuses a second one, and beyond the window what was
stored is looked up first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from twinstream.errors import BadArgument, RequestTimeout, SubjectTaken, TwinstreamError
from twinstream.core.wire.header_names import MSG_ID
from twinstream.core.error_details.guarantee_gap import Hole
from twinstream.core.exactly_once.guarantees import identity_holes, insert_holes
from twinstream.core.wire.pub_ack import is_of
from twinstream.core.publish.request import PublishFailure, PublishRequest
from twinstream.core.wire.subject_match import matcher
from twinstream.core.exactly_once.conditional_write import AlreadyThere, Refusal, Stored, judge
from twinstream.models import StreamConfig

if TYPE_CHECKING:
    from js_sync.exactly_once.stream_guarantees import PromisedStreams
    from js_sync.jetstream import JetStream
    from js_sync.stream import Stream

__all__ = ["By", "ByIdentity", "BySubject", "OnceWriter", "Written", "once_writer"]

By = Literal["subject", "id"]
"""What makes a message known: a subject of its own, or its identity."""

Written = Stored | TwinstreamError
"""What came of a message."""

_WINDOW: Final = 500


class OnceWriter:
    """Stores messages that carry an identity, each once, in a stream that promises it."""

    def __init__(
        self,
        jet: JetStream,
        streams: PromisedStreams,
        stream: str,
        timeout: float,
        promise: str,
        holes_of: Callable[[StreamConfig], list[Hole]],
    ) -> None:
        self._jet: Final = jet
        self._streams: Final = streams
        self._stream: Final = stream
        self._timeout: Final = timeout
        self._promise: Final = promise
        self._holes_of: Final = holes_of
        self._subjects: list[str] = [">"]
        self._domain: str | None = None

    def check(self) -> Stream:
        """Return the stream; raises `NotPromised` when its settings let doubles through."""
        stream = self._streams.named(self._stream, self._promise, self._holes_of)
        self._subjects = stream.config.subjects or [stream.name]
        self._domain = stream.cached_info.domain
        return stream

    def write(self, requests: Sequence[PublishRequest]) -> list[Written]:
        """Store messages that may be under way together, and return what came of each."""
        strangers = self._strangers(requests)
        results: dict[int, Written] = {}
        sent: list[int] = []
        for number, request in enumerate(requests):
            if number not in strangers:
                sent.append(number)
            else:
                results[number] = BadArgument(
                    f"{request.subject}: stream {request.expected_stream} has no such subject"
                )
        published = [requests[number] for number in sent]
        outcomes = self._jet.publish_many(published, window=_WINDOW, timeout=self._timeout)
        numbers = iter(sent)
        for outcome in outcomes:
            if isinstance(outcome, PublishFailure):
                results[next(numbers)] = outcome.error
            elif not is_of(outcome, self._stream, self._domain):
                results[next(numbers)] = RequestTimeout(
                    f"{outcome.stream} in domain {outcome.domain or 'unset'} acknowledged before"
                    f" {self._stream} in domain {self._domain or 'unset'}: both have the subject"
                )
            else:
                repeated = bool(outcome.duplicate)
                stored = Stored(stream=outcome.stream, seq=outcome.seq, repeated=repeated)
                results[next(numbers)] = stored
        return [results[number] for number in range(len(requests))]

    def _strangers(self, requests: Sequence[PublishRequest]) -> set[int]:
        """Return the places of the messages whose subjects the stream does not have."""
        found = self._mismatches(requests)
        if not found:
            return found
        # The stream may have got the subject since it was asked for.
        self._streams.forget(self._stream)
        self.check()
        return self._mismatches(requests)

    def _mismatches(self, requests: Sequence[PublishRequest]) -> set[int]:
        matches = matcher(self._subjects)
        if matches is None:
            return set()
        return {
            number
            for number, request in enumerate(requests)
            if not matches(request.subject.encode())
        }


class ByIdentity(OnceWriter):
    """Publishes with `Nats-Msg-Id`; whoever uses it keeps within the window, or looks up."""

    def __init__(
        self, jet: JetStream, streams: PromisedStreams, stream: str, timeout: float
    ) -> None:
        promise = "that a message is stored once by its identity"
        super().__init__(
            jet, streams, stream, timeout, promise, lambda config: identity_holes(config, timeout)
        )


class BySubject(OnceWriter):
    """Inserts: each message has a subject of its own."""

    def __init__(
        self, jet: JetStream, streams: PromisedStreams, stream: str, timeout: float
    ) -> None:
        promise = "that a message is stored once by its subject"
        super().__init__(jet, streams, stream, timeout, promise, insert_holes)

    def write(self, requests: Sequence[PublishRequest]) -> list[Written]:
        """Store messages that may be under way together, and return what came of each."""
        first = [request._replace(expected_last_subject_seq=0) for request in requests]
        results = super().write(first)
        return [
            result
            if isinstance(result, Stored) and not result.repeated
            else self._look(request, result)
            for request, result in zip(requests, results, strict=True)
        ]

    def _look(self, request: PublishRequest, result: Written) -> Written:
        """Find out what a refusal or a lost answer means; insert does that."""
        if isinstance(result, TwinstreamError) and judge(result) in {
            Refusal.FINAL,
            Refusal.PASSING,
        }:
            return result
        try:
            outcome = self._jet.insert(
                request.subject,
                request.data,
                headers=request.headers,
                msg_id=request.msg_id,
                stream=request.expected_stream,
                timeout=self._timeout,
            )
        except TwinstreamError as error:
            return error
        if isinstance(outcome, Stored):
            return outcome
        return _stored_before(request, outcome)


def _stored_before(request: PublishRequest, found: AlreadyThere) -> Written:
    if found.message is None:
        # Stored under this very identity, and removed by somebody since.
        return Stored(stream=found.stream, seq=found.seq, repeated=True)
    holder = found.message.headers.get(MSG_ID) or "none"
    return SubjectTaken(
        f"{request.subject}: sequence {found.seq} of {found.stream} holds it, with the identity"
        f" {holder}; this message's is {request.msg_id}. Give each message a subject of its own"
    )


def once_writer(
    jet: JetStream, streams: PromisedStreams, stream: str, by: By, timeout: float
) -> OnceWriter:
    """Return the writer for one stream; an attempt may take `timeout` seconds."""
    if by == "subject":
        return BySubject(jet, streams, stream, timeout)
    if by == "id":
        return ByIdentity(jet, streams, stream, timeout)
    raise BadArgument(f"by must be 'subject' or 'id', got {by!r}")
