"""Processing without doubles: the identities of results, and what the consumer must promise.

A result's identity says which input it comes from, so that a repeat of the work makes the same
identities, in whichever process and however much later.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final, cast

from attrs import frozen

from twinstream.core.deadline import Seconds, seconds
from twinstream.errors import BadArgument
from twinstream.core.error_details.guarantee_gap import Hole
from twinstream.core.publish.request import PublishRequest
from twinstream.core.wire.subjects import check_name
from twinstream.core.wire.tokens import base62
from twinstream.models import AckPolicy, ConsumerConfig, Timestamp

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
# Identities that are kept for later messages: some tens of megabytes.
_MOST: Final = 200_000


class Reject(Exception):
    """Raise it out of a handler: the message must not come again, for the reason given."""


@frozen(kw_only=True)
class ProcessReport:
    """A message that was not done: worked on again later, or `rejected` for good."""

    subject: str
    seq: int
    error: Exception
    rejected: bool = False
    delay: float = 0.0
    """Seconds until it is worked on again."""
    attempt: int = 1
    """How often the message was delivered, this time included."""

    def __str__(self) -> str:
        verdict = "rejected" if self.rejected else f"again in {self.delay:g} s"
        return f"sequence {self.seq} ({self.subject}) {verdict}: {self.error}"


@frozen
class InputStream:
    """The stream that messages come from, as results name it.

    `created` is part of it: a stream that was deleted and made anew counts from 1 again.
    """

    processor: str
    name: str
    created: Timestamp

    def result_id(self, seq: int, index: int) -> str:
        """Return the identity of a result: the `index`-th of the message at `seq`."""
        return f"{self.prefix}{seq}-{index}"

    @property
    def prefix(self) -> str:
        """What the identities of all results begin with."""
        return f"{self.processor}-{self.name}-{base62(self.created.ns)}-"

    def check(self) -> None:
        """Raise `BadArgument` when identities could not be part of a subject."""
        check_name(self.processor, "name")


class OwnIds:
    """What to keep of the identities in a stream: those asked for, and other results.

    The others are kept up to a number, to be at hand for the messages behind this one.
    """

    def __init__(self, stream: InputStream, asked: Container[str | None]) -> None:
        self._prefix: Final = stream.prefix
        self._asked: Final = asked
        self._left = _MOST

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str) or not id.startswith(self._prefix):
            return False
        self._left -= 1
        return self._left >= 0 or id in self._asked

    @property
    def is_whole(self) -> bool:
        """Whether none was left out."""
        return self._left >= 0


def results_of(returned: object, stream: InputStream, seq: int, into: str) -> list[PublishRequest]:
    """Return what a handler returned as messages with identities; `{id}` in subjects is filled in.

    Raises `BadArgument` for anything else, and for results with promises of their own.
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
        f"a handler returns None, a PublishRequest or several of them, got {type(value).__name__}"
    )


def _identified(result: PublishRequest, id: str, into: str) -> PublishRequest:
    plain = result._replace(headers=None, ttl=None)
    if plain != PublishRequest(subject=result.subject, data=result.data):
        raise BadArgument(
            f"{result.subject}: a result has subject, data, headers and ttl only; its identity and"
            " conditions are set when it is stored"
        )
    subject = result.subject.replace(_PLACE, id)
    return result._replace(subject=subject, msg_id=id, expected_stream=into)


def processing_holes(config: ConsumerConfig) -> list[Hole]:
    """Return why a consumer could lose messages, or let them count as done too early."""
    holes: list[Hole] = []
    if config.ack_policy is not AckPolicy.EXPLICIT:
        policy = config.ack_policy or AckPolicy.NONE
        because = "messages count as done that are not"
        holes.append(Hole("ack_policy", policy, because, "set ack_policy=explicit"))
    if config.max_deliver is not None and config.max_deliver > 0:
        because = "a message is given up after that many deliveries"
        holes.append(
            Hole(
                "max_deliver",
                config.max_deliver,
                because,
                "set max_deliver=-1, and raise Reject for what can never be done",
            )
        )
    if not config.durable_name:
        because = "the consumer vanishes when nobody pulls, with what it knows to be done"
        holes.append(Hole("durable_name", None, because, "give it a durable_name"))
    if config.mem_storage:
        because = "a restart of its server forgets what is done"
        holes.append(Hole("mem_storage", True, because, "set mem_storage=False"))
    return holes


def delays(retry: Seconds | Sequence[Seconds]) -> tuple[float, ...]:
    """Return the seconds before each further delivery; the last one goes for the rest."""
    steps = retry if isinstance(retry, Sequence) else [retry]
    if not steps:
        raise BadArgument("retry needs a delay in seconds, or several")
    return tuple(seconds(step, "retry") for step in steps)
