"""Process messages without duplicate results: the ids of results, and the consumer's settings.

The id of a result contains the position of its input message. So a retry creates results with the
same ids, in any process and at any time.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final, cast

from attrs import frozen

from twinstream.core.deadline import Seconds, seconds
from twinstream.core.log.report import ERROR, WARNING, Report
from twinstream.core.wire.subjects import check_name
from twinstream.core.wire.tokens import base62
from twinstream.errors import BadArgument
from twinstream.models import AckPolicy, ConsumerConfig, Timestamp
from twinstream.records.guarantee_gap import GuaranteeGap
from twinstream.records.publish_request import PublishRequest

__all__ = [
    "InputStream",
    "OwnIds",
    "ProcessReport",
    "Reject",
    "delays",
    "processing_gaps",
    "results_of",
]

_PLACE: Final = "{id}"
# Maximum number of ids that are cached for later messages. They take some tens of megabytes.
_MAX_CACHED: Final = 200_000
# The part of an id after its prefix: sequence and index. Clients may store other ids of any length.
_POSITION: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


class Reject(Exception):
    """An exception with which a handler rejects a message. The message is not delivered again.

    What to do: Look at the dead letter of the message, and correct its sender or the handler.
    """


@frozen(kw_only=True)
class ProcessReport(Report):
    """Reported when a message was not processed: it is retried, or permanently `rejected`."""

    subject: str
    """Subject of the message."""
    seq: int
    """Sequence of the message in its stream."""
    error: Exception
    """What the handler or the write raised."""
    rejected: bool = False
    delay: float = 0.0
    """Seconds until the next attempt."""
    attempt: int = 1
    """The number of deliveries of the message, including this one."""

    log_area = "processing"
    log_limit = "traceback"

    def _level(self) -> int:
        return ERROR if self.rejected else WARNING

    def __str__(self) -> str:
        verdict = "is rejected" if self.rejected else "was not processed, it is tried again"
        return f"message {self.seq} ({self.subject}) {verdict}: {self.error!r}"


@frozen
class InputStream:
    """The stream of the input messages, which is part of the ids of results.

    The ids include the stream's creation time, because the sequences of a re-created stream begin
    with 1 again.
    """

    processor: str
    name: str
    created: Timestamp

    def result_id(self, seq: int, index: int) -> str:
        """Return the id of the result with this index (from 0) of the message at `seq`."""
        return f"{self.prefix}{seq}-{index}"

    @property
    def prefix(self) -> str:
        """The common prefix of the ids of all results."""
        return f"{self.processor}-{self.name}-{base62(self.created.ns)}-"

    def check(self) -> None:
        """Raise `BadArgument` if the processor's name could not be part of a subject."""
        check_name(self.processor, "name")


class OwnIds:
    """A filter for the message ids in a stream of results. It selects the ids of one processor.

    Ids of the processor's results that are in `asked` are always selected. Other ids of its results
    are selected up to a maximum number, so that the caller can cache them for the following input
    messages.
    """

    def __init__(self, stream: InputStream, asked: Container[str | None]) -> None:
        self._prefix: Final = stream.prefix
        self._asked: Final = asked
        self._left = _MAX_CACHED

    def select(self, id: str) -> bool:
        """Return whether to select an id, and count it if it is the id of a result."""
        if not id.startswith(self._prefix):
            return False
        if not _POSITION.fullmatch(id, len(self._prefix)):
            return False
        self._left -= 1
        return self._left >= 0 or id in self._asked

    @property
    def is_whole(self) -> bool:
        """Whether no id of a result was excluded because of the maximum number."""
        return self._left >= 0


def results_of(returned: object, stream: InputStream, seq: int, into: str) -> list[PublishRequest]:
    """Return the results of a handler as messages with ids. `{id}` in a subject becomes the id.

    A handler may return None, a `PublishRequest`, or an iterable of `PublishRequest`. Raises
    `BadArgument` for other values, and for a result with an id or a condition.
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


def processing_gaps(config: ConsumerConfig) -> list[GuaranteeGap]:
    """Return the settings with which a consumer could skip messages or lose its state."""
    gaps: list[GuaranteeGap] = []
    if config.ack_policy is not AckPolicy.EXPLICIT:
        policy = config.ack_policy or AckPolicy.NONE
        because = "messages count as processed too early"
        gaps.append(GuaranteeGap("ack_policy", policy, because, "set ack_policy=explicit"))
    if config.max_deliver is not None and config.max_deliver > 0:
        because = "a message is not delivered again after that many deliveries"
        gaps.append(
            GuaranteeGap(
                "max_deliver",
                config.max_deliver,
                because,
                "set max_deliver=-1, and raise Reject for messages that can never be processed",
            )
        )
    if not config.durable_name:
        because = "the consumer is deleted when no client pulls, and its state is lost"
        gaps.append(GuaranteeGap("durable_name", None, because, "give it a durable_name"))
    if config.mem_storage:
        because = "a restart of its server loses its state"
        gaps.append(GuaranteeGap("mem_storage", True, because, "set mem_storage=False"))
    return gaps


def delays(retry: Seconds | Sequence[Seconds]) -> tuple[float, ...]:
    """Return the seconds before each redelivery. The last value applies to all later ones.

    Raises `BadArgument` for an empty list or an invalid duration.
    """
    steps = retry if isinstance(retry, Sequence) else [retry]
    if not steps:
        raise BadArgument("retry needs at least one delay in seconds")
    return tuple(seconds(step, "retry") for step in steps)
