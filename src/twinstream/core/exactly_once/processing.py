"""Processing without duplicates: identities of results, and requirements on the consumer.

A result's identity names the input message, so that a retry of the processing makes the same
identities, in any process and at any time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final, cast

from twinstream.core.deadline import Seconds, seconds
from twinstream.core.error_details.guarantee_gap import Hole
from twinstream.core.publish.request import PublishRequest
from twinstream.core.wire.subjects import check_name
from twinstream.core.wire.tokens import base62
from twinstream.errors import BadArgument
from twinstream.models import AckPolicy, ConsumerConfig, Timestamp
from twinstream.models.records import frozen

__all__ = [
    "InputStream",
    "OwnIds",
    "ProcessReport",
    "Reject",
    "delays",
    "processing_holes",
    "results_of",
]

_PLACE: Final = "{id}"
# Maximum of identities cached for later messages: some tens of megabytes.
_MAX_CACHED: Final = 200_000


class Reject(Exception):
    """Raised by a handler to reject a message, with the reason: it is not delivered again."""


@frozen(kw_only=True)
class ProcessReport:
    """A message that was not processed: it is retried later, or permanently `rejected`."""

    subject: str
    seq: int
    error: Exception
    rejected: bool = False
    delay: float = 0.0
    """Seconds until the next attempt."""
    attempt: int = 1
    """The number of deliveries of the message, including this one."""

    def __str__(self) -> str:
        verdict = "rejected" if self.rejected else f"again in {self.delay:g} s"
        return f"sequence {self.seq} ({self.subject}) {verdict}: {self.error}"


@frozen
class InputStream:
    """The stream that messages come from, as part of the identity of results.

    The identity includes `created`, because a stream that was deleted and re-created counts from 1
    again.
    """

    processor: str
    name: str
    created: Timestamp

    def result_id(self, seq: int, index: int) -> str:
        """Return the identity of the `index`-th result of the message at `seq`."""
        return f"{self.prefix}{seq}-{index}"

    @property
    def prefix(self) -> str:
        """The common prefix of the identities of all results."""
        return f"{self.processor}-{self.name}-{base62(self.created.ns)}-"

    def check(self) -> None:
        """Raise `BadArgument` if identities could not be part of a subject."""
        check_name(self.processor, "name")


class OwnIds:
    """A filter for the identities in a stream: those in `asked`, and other results.

    The others are kept up to a maximum, for use with the following messages.
    """

    def __init__(self, stream: InputStream, asked: Container[str | None]) -> None:
        self._prefix: Final = stream.prefix
        self._asked: Final = asked
        self._left = _MAX_CACHED

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str) or not id.startswith(self._prefix):
            return False
        self._left -= 1
        return self._left >= 0 or id in self._asked

    @property
    def is_whole(self) -> bool:
        """Whether none was omitted."""
        return self._left >= 0


def results_of(returned: object, stream: InputStream, seq: int, into: str) -> list[PublishRequest]:
    """Return the results of a handler as messages with identities; replaces `{id}` in subjects.

    Raises `BadArgument` for anything else, and for results with conditions of their own.
    """
    if returned is None:
        return []
    if isinstance(returned, PublishRequest):
        returned = [returned]
    if not isinstance(returned, Iterable):
        raise BadArgument(_wanted(returned))
    results: list[PublishRequest] = []
    for index, result in enumerate(cast("Iterable[object]", returned)):
        if not isinstance(result, PublishRequest):
            raise BadArgument(_wanted(result))
        results.append(_identified(result, stream.result_id(seq, index), into))
    return results


def _wanted(value: object) -> str:
    return (
        f"a handler must return None or one or several PublishRequests, got {type(value).__name__}"
    )


def _identified(result: PublishRequest, id: str, into: str) -> PublishRequest:
    plain = result._replace(headers=None, ttl=None)
    if plain != PublishRequest(subject=result.subject, data=result.data):
        raise BadArgument(
            f"{result.subject}: a result may have subject, data, headers and ttl only; identity and"
            " conditions are set when it is stored"
        )
    subject = result.subject.replace(_PLACE, id)
    return result._replace(subject=subject, msg_id=id, expected_stream=into)


def processing_holes(config: ConsumerConfig) -> list[Hole]:
    """Return why a consumer could lose messages, or count them as processed too early."""
    holes: list[Hole] = []
    if config.ack_policy is not AckPolicy.EXPLICIT:
        policy = config.ack_policy or AckPolicy.NONE
        because = "messages count as processed too early"
        holes.append(Hole("ack_policy", policy, because, "set ack_policy=explicit"))
    if config.max_deliver is not None and config.max_deliver > 0:
        because = "a message is not delivered again after that many deliveries"
        holes.append(
            Hole(
                "max_deliver",
                config.max_deliver,
                because,
                "set max_deliver=-1, and raise Reject for messages that can never be processed",
            )
        )
    if not config.durable_name:
        because = "the consumer is deleted when no client pulls, and its state is lost"
        holes.append(Hole("durable_name", None, because, "give it a durable_name"))
    if config.mem_storage:
        because = "a restart of its server loses its state"
        holes.append(Hole("mem_storage", True, because, "set mem_storage=False"))
    return holes


def delays(retry: Seconds | Sequence[Seconds]) -> tuple[float, ...]:
    """Return the seconds before each further delivery; the last value is used for the rest."""
    steps = retry if isinstance(retry, Sequence) else [retry]
    if not steps:
        raise BadArgument("retry needs at least one delay in seconds")
    return tuple(seconds(step, "retry") for step in steps)
