"""Two ways to store each message only once, even if several clients repeat it.

- By subject: each message has a unique subject. The stream always refuses a second message with
  this subject.
- By id: the stream refuses a second message with the same id within its duplicate window. To repeat
  a message after the window, the caller must first check whether the stream contains the id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from js_async import JetStream, PublishFailure, Stream
from js_async.extension import SubjectWrites, api_of
from twinstream.core.exactly_once.conditional_write import AlreadyThere, Refusal, Stored, judge
from twinstream.core.exactly_once.guarantees import identity_gaps, insert_gaps
from twinstream.core.wire.pub_ack import is_of
from twinstream.core.wire.subject_match import matcher
from twinstream.errors import (
    BadArgument,
    RequestTimeout,
    SubjectTaken,
    TwinstreamError,
)
from twinstream.models import StreamConfig, StreamInfo
from twinstream.records.guarantee_gap import GuaranteeGap
from twinstream.records.header_names import MSG_ID
from twinstream.records.publish_request import PublishRequest

__all__ = ["By", "ByIdentity", "BySubject", "IdempotentWriter", "Written", "once_writer"]

By = Literal["subject", "id"]
"""What identifies a message: "subject" (each message has a unique one) or "id" (the message id)."""

Written = Stored | TwinstreamError
"""The outcome for one message: where it is stored, or the error."""

_WINDOW: Final = 500


class IdempotentWriter:
    """The base class of writers that store each message once, in one stream.

    All messages must have a message id. `promise` describes the guarantee that a message is stored
    once. `gaps_of` returns the settings that break this guarantee.
    """

    def __init__(
        self,
        jet: JetStream,
        stream_name: str,
        timeout: float,
        promise: str,
        gaps_of: Callable[[StreamConfig], list[GuaranteeGap]],
    ) -> None:
        self.stream: Final[Stream] = jet.bind_stream(stream_name)
        """The stream in which the messages are stored."""
        self._writes: Final = SubjectWrites(api_of(jet))
        self._timeout: Final = timeout
        self._promise: Final = promise
        self._gaps_of: Final = gaps_of
        self._subjects: list[str] = [">"]
        self._domain: str | None = None

    async def check(self) -> StreamInfo:
        """Return the info of the stream, which is requested after each reconnect.

        Raises `UnsuitableSettings` if the settings of the stream break the guarantee.
        """
        streams = self._writes.streams
        info = await streams.named(self.stream.name, self._promise, self._gaps_of)
        self._subjects = info.config.subjects or [self.stream.name]
        self._domain = info.domain
        return info

    async def write(self, requests: Sequence[PublishRequest]) -> list[Written]:
        """Store messages and return the outcome of each. They may be stored in any order."""
        unmatched = await self._without_subject(requests)
        results: dict[int, Written] = {}
        sent: list[int] = []
        for number, request in enumerate(requests):
            if number not in unmatched:
                sent.append(number)
            else:
                results[number] = BadArgument(
                    f"{request.subject}: stream {request.expected_stream} has no such subject"
                )
        published = [requests[number] for number in sent]
        outcomes = self._writes.publish_each(published, _WINDOW, self._timeout)
        numbers = iter(sent)
        async for outcome in outcomes:
            if isinstance(outcome, PublishFailure):
                results[next(numbers)] = outcome.error
            elif not is_of(outcome, self.stream.name, self._domain):
                results[next(numbers)] = RequestTimeout(
                    f"{outcome.stream} in domain {outcome.domain or 'unset'} acknowledged before"
                    f" {self.stream.name} in domain {self._domain or 'unset'}: both have the"
                    " subject"
                )
            else:
                repeated = bool(outcome.duplicate)
                stored = Stored(stream_name=outcome.stream, seq=outcome.seq, repeated=repeated)
                results[next(numbers)] = stored
        return [results[number] for number in range(len(requests))]

    async def _without_subject(self, requests: Sequence[PublishRequest]) -> set[int]:
        """Return the indexes of the messages whose subjects the stream does not have."""
        found = self._mismatches(requests)
        if not found:
            return found
        # The subject may have been added to the stream after the stream was looked up.
        self._writes.streams.forget(self.stream.name)
        await self.check()
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


class ByIdentity(IdempotentWriter):
    """A writer that identifies messages by the header `Nats-Msg-Id`.

    The caller may repeat a message within the stream's duplicate window. Later, it must first check
    whether the stream contains the message.
    """

    def __init__(self, jet: JetStream, stream_name: str, timeout: float) -> None:
        promise = "that a message is stored once by its identity"
        super().__init__(
            jet, stream_name, timeout, promise, lambda config: identity_gaps(config, timeout)
        )


class BySubject(IdempotentWriter):
    """A writer that identifies messages by their unique subject: it inserts each of them."""

    def __init__(self, jet: JetStream, stream_name: str, timeout: float) -> None:
        promise = "that a message is stored once by its subject"
        super().__init__(jet, stream_name, timeout, promise, insert_gaps)

    async def write(self, requests: Sequence[PublishRequest]) -> list[Written]:
        """Insert messages and return the outcome of each. They may be stored in any order."""
        first = [request._replace(expected_last_subject_seq=0) for request in requests]
        results = await super().write(first)
        return [
            result
            if isinstance(result, Stored) and not result.repeated
            else await self._insert_again(request, result)
            for request, result in zip(requests, results, strict=True)
        ]

    async def _insert_again(self, request: PublishRequest, result: Written) -> Written:
        """Determine the outcome of a message whose first attempt was not acknowledged as new.

        An error that means that the message is not stored is returned unchanged. Otherwise the
        response was lost, or it reports a duplicate or another message of the subject. Then this
        method inserts the message again. The insert returns the existing message, if there is one.
        """
        if isinstance(result, TwinstreamError) and judge(result) in {
            Refusal.FINAL,
            Refusal.PASSING,
        }:
            return result
        try:
            outcome = await self._writes.insert(
                request, check=True, lasting=None, timeout=self._timeout
            )
        except TwinstreamError as error:
            return error
        if isinstance(outcome, Stored):
            return outcome
        return _stored_before(request, outcome)


def _stored_before(request: PublishRequest, found: AlreadyThere) -> Written:
    if found.message is None:
        # A message with this id was stored, and was removed later.
        return Stored(stream_name=found.stream_name, seq=found.seq, repeated=True)
    holder = found.message.headers.get(MSG_ID) or "none"
    return SubjectTaken(
        f"{request.subject}: sequence {found.seq} of {found.stream_name} has it, with the id"
        f" {holder}; this message's id is {request.msg_id}. Give each message a unique subject"
    )


def once_writer(jet: JetStream, stream_name: str, by: By, timeout: float) -> IdempotentWriter:
    """Return the writer for a stream that identifies messages by `by`.

    `timeout` is the limit of one attempt in seconds. Raises `BadArgument` for another `by`.
    """
    if by == "subject":
        return BySubject(jet, stream_name, timeout)
    if by == "id":
        return ByIdentity(jet, stream_name, timeout)
    raise BadArgument(f"by must be 'subject' or 'id', got {by!r}")
