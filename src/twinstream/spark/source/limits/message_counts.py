"""Count the messages of a range that the filters match, and find ranges with so many messages.

A stream has fewer messages than sequences if filters apply or messages were removed. The server
counts the messages from a sequence on, in two ways:

- the response to a direct get has the number of messages after its own;
- a new consumer has the number of messages that it will deliver.

The numbers are exact for the replica that reports them, which may lag. So they limit a batch, and
no range of a read depends on them to be complete.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from twinstream.core.read.direct_get import EVERYTHING, from_direct, next_request, payload_of
from twinstream.core.read.page import direct_tail, is_from
from twinstream.core.wire.subject_match import crossing
from twinstream.errors import JetStreamError, MessageNotFound, NoResponders, PermissionDenied
from twinstream.errors.transient import FAILED_REQUEST
from twinstream.models import ConsumerConfig
from twinstream.spark.source.plan import read_way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from js_sync import JetStream
    from twinstream.spark.source.driver_client import Leader
    from twinstream.spark.source.options import SourceOptions
    from twinstream.spark.source.stream_state import StreamState

__all__ = ["MessageCounts"]

# A range of `end_of` lacks at most this part of the messages that it may have. So it is found with
# few requests, of which each may take the server some milliseconds.
_SLACK: Final = 10


class MessageCounts:
    """Numbers of messages of a read's streams. `leader` sends the requests."""

    def __init__(self, options: SourceOptions, leader: Leader) -> None:
        self._options = options
        self._leader = leader

    def count(self, state: StreamState, low: int, high: int) -> int:
        """Return the number of messages in `[low, high)`."""
        if self._is_dense(state):
            return max(0, high - max(low, state.first))
        # A message that is stored between the two requests counts, so the number is never too low.
        behind = self._count_from(state, high)
        return max(0, self._count_from(state, low) - behind)

    def end_of(self, state: StreamState, low: int, high: int, most: int, count: int) -> int:
        """Return the end of a range from `low` on that has at most `most` messages, but nearly so.

        `[low, high)` has `count` messages, which is more than `most`. The range has at least one
        sequence.
        """
        if self._is_dense(state):
            return max(low, state.first) + most
        slack = most // _SLACK
        found, beyond = low, high
        # The first guess is right if the messages are evenly distributed.
        at = low + (high - low) * (most - slack // 2) // count
        while beyond - found > 1:
            at = min(max(at, found + 1), beyond - 1)
            fits = count - self.count(state, at, high)
            if fits > most:
                beyond = at
            else:
                found = at
                if fits >= most - slack:
                    break
            at = (found + beyond) // 2
        return max(found, low + 1)

    def start_of_last(self, state: StreamState, wanted: int) -> int:
        """Return the sequence of the first of the last `wanted` messages.

        If there are fewer messages, return the first sequence of the stream.
        """
        if self._is_dense(state):
            return max(state.first, state.next - wanted)
        found, beyond = state.first, state.next
        while beyond - found > 1:
            at = (found + beyond) // 2
            if self._count_from(state, at) < wanted:
                beyond = at
            else:
                found = at
        return found

    def _is_dense(self, state: StreamState) -> bool:
        """Return whether each sequence has a message that the read returns."""
        is_filtered = self._options.subjects not in {(), (EVERYTHING,)}
        return not is_filtered and state.messages == state.next - state.first

    def _count_from(self, state: StreamState, seq: int) -> int:
        return self._leader.retried(lambda jet: self._request_count(jet, state, seq))

    def _request_count(self, jet: JetStream, state: StreamState, seq: int) -> int:
        """Request the number of messages from `seq` on that the filters match.

        Direct get needs a request for each filter, and a consumer counts for several filters. If
        the server refuses the consumer, direct get is used, unless the read must use a consumer.
        """
        subjects = self._options.subjects or (EVERYTHING,)
        way = read_way(self._options, state)
        if way == "direct" or (way == "either" and len(subjects) == 1):
            found = [_by_direct_get(jet, state.name, subject, seq) for subject in subjects]
            # A mirror may have other messages than the stream.
            if way == "direct" or all(is_own for _, is_own in found):
                return sum(count for count, _ in found)
        try:
            return sum(
                _by_consumer(jet, state.name, part, seq) for part in _filters_by_consumer(subjects)
            )
        except NoResponders:
            raise  # no server responded, which is no refusal of the consumer
        except (JetStreamError, PermissionDenied):
            if way == "consumer":
                raise
            # The stream accepts no more consumers, or the user may not create them.
            return sum(_by_direct_get(jet, state.name, each, seq)[0] for each in subjects)


def _filters_by_consumer(subjects: Sequence[str]) -> list[Sequence[str]]:
    """Return the filters of each consumer.

    Servers before 2.12.5 refuse a consumer with overlapping filters. With a consumer for each
    filter, messages that several filters match are counted several times.
    """
    return [(each,) for each in subjects] if crossing(subjects) else [subjects]


def _by_direct_get(jet: JetStream, stream: str, subject: str, seq: int) -> tuple[int, bool]:
    """Return the number of messages of `subject` from `seq` on, and whether the stream answered.

    Otherwise a mirror answered.
    """
    api = jet._api
    to = api.subjects.direct_get(stream)
    body = payload_of({**next_request(subject, seq), "batch": 1})
    frame = api.transport.ask(to, b"", body, api.deadline())
    try:
        from_direct(frame, to)
    except MessageNotFound:
        return 0, True
    _, _, header_size, answer = frame
    found = direct_tail(answer, header_size)
    assert found is not None
    # The server reports how many messages follow the one in the response.
    behind = found[4].split()[1] if found[4] else b"0"
    return int(behind) + 1, is_from(found, stream.encode())


def _by_consumer(jet: JetStream, stream: str, subjects: Sequence[str], seq: int) -> int:
    """Return the number of messages from `seq` on that the filters match."""
    config = ConsumerConfig(
        description="count",
        deliver_policy="by_start_sequence",
        opt_start_seq=seq,
        ack_policy="none",
        mem_storage=True,
        num_replicas=1,
        filter_subjects=[*subjects],
    )
    consumer = jet.create_consumer(stream, config)
    try:
        info = consumer.cached_info or consumer.info()
        return info.num_pending or 0
    finally:
        # The server deletes it after five idle seconds.
        with suppress(*FAILED_REQUEST):
            consumer.delete()
