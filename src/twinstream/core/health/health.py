"""Find problems of streams and consumers by comparing their infos at two times.

This module sends no requests. It reports each problem as a `Finding`: which stream or consumer has
it, how severe it is, the figures, and what to try.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from attrs import field, frozen

from twinstream.core.api.outside_filters import outside_filters
from twinstream.errors import BadArgument
from twinstream.models import (
    AckPolicy,
    ClusterInfo,
    ConsumerInfo,
    StreamInfo,
)
from twinstream.models.codec.settings import Settings

__all__ = [
    "THRESHOLDS",
    "Finding",
    "FindingKind",
    "Health",
    "Key",
    "Sample",
    "Severity",
    "Thresholds",
    "judge",
    "stuck",
]

Severity = Literal["warning", "error"]
FindingKind = Literal[
    "ack_floor_stuck",
    "ack_pending_full",
    "filter_outside",
    "lag_growing",
    "near_limit",
    "no_answer",
    "no_leader",
    "no_pulls",
    "offline",
    "paused",
    "redelivering",
    "replica_behind",
    "replica_offline",
    "source_failing",
]
_ORDER: Final = {"error": 0, "warning": 1}
Key = tuple[str, str]


@frozen(kw_only=True)
class Thresholds(Settings):
    """The thresholds from which a value is reported as a finding.

    Raises `BadArgument` unless each share is above 0 and at most 1.
    """

    full: float = 0.9
    """The share of a limit from which the limit counts as nearly reached; at most 1."""
    redelivered: float = 0.5
    """The share of unacknowledged messages that were delivered more than once; at most 1."""
    redelivered_least: int = 10
    """The number of redelivered messages below which `redelivered` is not applied."""
    replica_lag: int = 1000
    """The number of operations by which a replica may lag behind the leader."""

    def __attrs_post_init__(self) -> None:
        for name in ("full", "redelivered"):
            if not 0 < getattr(self, name) <= 1:
                raise BadArgument(f"{name} must be above 0 and up to 1, got {getattr(self, name)}")


THRESHOLDS: Final = Thresholds()


@frozen(kw_only=True)
class Finding:
    """A problem of a stream or consumer, or a sign of a future problem."""

    kind: FindingKind
    """What was found; the guide on events lists the kinds."""
    severity: Severity
    """How bad it is."""
    stream_name: str
    """Name of the stream."""
    consumer_name: str = ""
    """The name of the consumer, empty if the finding is about the stream itself."""
    figures: Mapping[str, int | float | str] = field(factory=dict[str, "int | float | str"])
    """The measured values, by name."""
    text: str
    """The problem, in one sentence."""
    advice: str
    """What to try."""


@frozen(kw_only=True)
class Sample:
    """The infos of streams and consumers at one time."""

    streams: Mapping[str, StreamInfo]
    consumers: Mapping[Key, ConsumerInfo]
    missing: Mapping[Key, str] = field(factory=dict[Key, str])
    """Streams and consumers for which there was no response, and the reason if it is known.

    A key is the name of a stream and the name of a consumer, which is empty for the stream itself.
    """
    offline: Mapping[Key, str] = field(factory=dict[Key, str])
    """Streams and consumers that the servers store but cannot run, and the reason."""


@frozen(kw_only=True)
class Health:
    """The findings, the most severe first, and the numbers of checked streams and consumers."""

    findings: tuple[Finding, ...]
    """The findings, the most severe first."""
    streams: int
    """Number of checked streams."""
    consumers: int
    """Number of checked consumers."""

    @property
    def is_well(self) -> bool:
        """Whether there is no finding of severity error."""
        return all(each.severity != "error" for each in self.findings)


def judge(
    before: Sample,
    now: Sample,
    seconds: float,
    thresholds: Thresholds,
    subjects: Mapping[Key, str] | None = None,
) -> Health:
    """Return the findings from two samples that were taken `seconds` apart.

    `subjects` are the subjects of the messages at which consumers are stuck (see `stuck`).
    """
    found = list(_unavailable(now))
    for name, info in now.streams.items():
        found += _limits(name, info, thresholds)
        found += _sources(name, info)
        found += _replicas(name, "", info.cluster, thresholds)
    for key, consumer in now.consumers.items():
        then = before.consumers.get(key)
        found += _replicas(*key, consumer.cluster, thresholds)
        found += _current_problems(key, consumer, thresholds)
        found += _filters(key, now.streams.get(key[0]), consumer)
        if then is not None and then.created == consumer.created:
            found += _changes(key, then, consumer, seconds, (subjects or {}).get(key, ""))
    found.sort(key=_rank)
    return Health(findings=tuple(found), streams=len(now.streams), consumers=len(now.consumers))


def _rank(found: Finding) -> tuple[int, str, str, str]:
    return _ORDER[found.severity], found.stream_name, found.consumer_name, found.kind


def stuck(before: Sample, now: Sample) -> Iterator[tuple[Key, int]]:
    """Yield each stuck consumer, and the sequence after its acknowledgement floor.

    A consumer is stuck if the floor is the same in both samples, although messages were pending
    acknowledgement in both.
    """
    for key, consumer in now.consumers.items():
        then = before.consumers.get(key)
        if then is not None and then.created == consumer.created and _is_stuck(then, consumer):
            yield key, _floor(consumer) + 1


def _unavailable(now: Sample) -> Iterator[Finding]:
    """Report the streams and consumers without information, and those that no server can run."""
    for (stream, consumer), reason in now.missing.items():
        yield Finding(
            kind="no_answer", severity="error", stream_name=stream, consumer_name=consumer,
            figures={"reason": reason} if reason else {},
            text=f"no information: {reason}" if reason else "it exists but is silent",
            advice="check for a lost leader or quorum: are all servers of its group up?",
        )  # fmt: skip
    for (stream, consumer), reason in now.offline.items():
        yield Finding(
            kind="offline", severity="error", stream_name=stream, consumer_name=consumer,
            figures={"reason": reason},
            text=f"the servers cannot run it: {reason}",
            advice="upgrade the servers to the version that created it; its data is kept",
        )  # fmt: skip


def _limits(name: str, info: StreamInfo, thresholds: Thresholds) -> Iterator[Finding]:
    """Report the limits of a stream that are reached or nearly reached."""
    config, state = info.config, info.state
    used = {
        "max_bytes": (state.bytes, config.max_bytes),
        "max_msgs": (state.messages, config.max_msgs),
        "max_consumers": (state.consumer_count, config.max_consumers),
    }
    for limit, (value, most) in used.items():
        if most is None or most <= 0 or value < thresholds.full * most:
            continue
        if limit != "max_consumers" and config.discard != "new":
            # A stream that drops its oldest messages is normally near its limit.
            continue
        yield Finding(
            kind="near_limit", severity="error" if value >= most else "warning", stream_name=name,
            figures={"limit": limit, "value": value, "most": most},
            text=f"{limit} is used to {value / most:.0%} ({value:,} of {most:,});"
            " when it is full, new ones are refused",
            advice=f"raise {limit}, or remove what is not needed",
        )  # fmt: skip


def _sources(name: str, info: StreamInfo) -> Iterator[Finding]:
    """Report the sources, or the mirror, from which a stream cannot copy."""
    for source in [info.mirror, *(info.sources or ())]:
        if source is None or source.error is None:
            continue
        reason = source.error.description or "the server gives no reason"
        yield Finding(
            kind="source_failing", severity="error", stream_name=name,
            figures={"source": source.name or "", "reason": reason},
            text=f"it copies nothing from {source.name}: {reason}",
            advice=f"create {source.name} again, or correct the source or mirror of {name}",
        )  # fmt: skip


def _filters(key: Key, stream: StreamInfo | None, info: ConsumerInfo) -> Iterator[Finding]:
    """Report the filters of a consumer that match no subject of its stream."""
    missed = (
        [] if stream is None or info.config is None else outside_filters(stream.config, info.config)
    )
    if missed:
        yield Finding(
            kind="filter_outside", severity="warning", stream_name=key[0], consumer_name=key[1],
            figures={"filters": ", ".join(missed)},
            text=f"the stream captures nothing on {', '.join(missed)}, so no new message matches",
            advice="compare the consumer's filters with the stream's subjects",
        )  # fmt: skip


def _replicas(
    stream: str, consumer: str, cluster: ClusterInfo | None, thresholds: Thresholds
) -> Iterator[Finding]:
    """Report a missing leader, offline replicas, and replicas that are far behind the leader."""
    if cluster is None:
        return
    if cluster.replicas and not cluster.leader:
        yield Finding(
            kind="no_leader", severity="error", stream_name=stream, consumer_name=consumer,
            text="its group has no leader", advice="are most servers of its group up?",
        )  # fmt: skip
    for peer in cluster.replicas or ():
        if peer.offline:
            yield Finding(
                kind="replica_offline", severity="error",
                stream_name=stream, consumer_name=consumer, figures={"server": peer.name},
                text=f"its replica on {peer.name} is offline",
                advice="bring the server back, or remove the peer so that another takes its place",
            )  # fmt: skip
        elif (peer.lag or 0) > thresholds.replica_lag:
            yield Finding(
                kind="replica_behind", severity="warning",
                stream_name=stream, consumer_name=consumer,
                figures={"server": peer.name, "lag": peer.lag or 0},
                text=f"its replica on {peer.name} is {peer.lag:,} operations behind the leader",
                advice="if it does not catch up, check the disk and the network of that server",
            )  # fmt: skip


def _current_problems(key: Key, info: ConsumerInfo, thresholds: Thresholds) -> Iterator[Finding]:
    """Report the problems that the current state of a consumer shows, without an earlier state."""
    stream, consumer = key
    config = info.config
    if config is None:
        return
    pending, unacknowledged = info.num_pending or 0, info.num_ack_pending or 0
    redelivered, max_ack_pending = info.num_redelivered or 0, config.max_ack_pending or 0
    if info.paused and pending:
        yield Finding(
            kind="paused", severity="warning", stream_name=stream, consumer_name=consumer,
            figures={"pending": pending},
            text=f"it is paused, and {_waiting(pending)}",
            advice="resume it when the reason for the pause no longer applies",
        )  # fmt: skip
    redelivers_often = (
        redelivered >= thresholds.redelivered_least
        and redelivered >= thresholds.redelivered * unacknowledged
    )
    if redelivers_often:
        yield Finding(
            kind="redelivering", severity="warning", stream_name=stream, consumer_name=consumer,
            figures={"redelivered": redelivered, "unacknowledged": unacknowledged},
            text=f"{redelivered:,} of {unacknowledged:,} unacknowledged messages were delivered"
            " before",
            advice="handlers fail, or take longer than ack_wait; set max_deliver and store failed"
            " messages as dead letters",
        )  # fmt: skip
    requires_acks = config.ack_policy != AckPolicy.NONE
    if requires_acks and pending and 0 < max_ack_pending <= unacknowledged:
        yield Finding(
            kind="ack_pending_full", severity="error", stream_name=stream, consumer_name=consumer,
            figures={"unacknowledged": unacknowledged, "max_ack_pending": max_ack_pending},
            text=f"{unacknowledged:,} messages are unacknowledged, which is the maximum:"
            f" {pending:,} others wait",
            advice="acknowledge processed messages; add workers, or raise max_ack_pending",
        )  # fmt: skip


def _waiting(pending: int) -> str:
    return "1 message waits" if pending == 1 else f"{pending:,} messages wait"


def _changes(
    key: Key, then: ConsumerInfo, now: ConsumerInfo, seconds: float, subject: str
) -> Iterator[Finding]:
    """Report the problems that two states of a consumer show, `seconds` apart.

    `subject` is the subject of the first message that is not acknowledged, or "".
    """
    stream, consumer = key
    pending, grown = now.num_pending or 0, (now.num_pending or 0) - (then.num_pending or 0)
    delivered = _delivered(now) - _delivered(then)
    is_pull = now.config is not None and now.config.deliver_subject is None
    # A client that pulls has an open request, or received messages since `then`.
    silent = is_pull and not now.num_waiting and not then.num_waiting and not delivered
    if pending and silent and not now.paused:
        yield Finding(
            kind="no_pulls", severity="error", stream_name=stream, consumer_name=consumer,
            figures={"pending": pending},
            text=f"{_waiting(pending)}, and no client pulls",
            advice="are its workers running, and connected to this account and domain?",
        )  # fmt: skip
    elif grown > 0 and not now.paused:
        yield Finding(
            kind="lag_growing", severity="warning", stream_name=stream, consumer_name=consumer,
            figures={"pending": pending, "grown": grown, "seconds": seconds},
            text=f"{_waiting(pending)}, {grown:,} more than {seconds:g} s ago",
            advice="add workers, or make handlers faster",
        )  # fmt: skip
    if _is_stuck(then, now):
        seq, at = _floor(now) + 1, f" ({subject})" if subject else ""
        yield Finding(
            kind="ack_floor_stuck", severity="error" if not delivered else "warning",
            stream_name=stream, consumer_name=consumer,
            figures={"seq": seq, "subject": subject, "unacknowledged": now.num_ack_pending or 0},
            text=f"nothing is acknowledged above sequence {seq - 1:,}; the next one is"
            f" {seq:,}{at}, {now.num_ack_pending:,} are unacknowledged",
            advice="check that message and the handler that processes it; terminate it if it can"
            " never succeed",
        )  # fmt: skip


def _is_stuck(then: ConsumerInfo, now: ConsumerInfo) -> bool:
    unacknowledged = min(now.num_ack_pending or 0, then.num_ack_pending or 0)
    return unacknowledged > 0 and _floor(now) == _floor(then)


def _floor(info: ConsumerInfo) -> int:
    return info.ack_floor.stream_seq if info.ack_floor is not None else 0


def _delivered(info: ConsumerInfo) -> int:
    return info.delivered.consumer_seq if info.delivered is not None else 0
