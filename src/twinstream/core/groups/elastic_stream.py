"""The stream of an elastic group, a work queue whose subjects begin with a partition number."""

from __future__ import annotations

from typing import Final

from twinstream.core.groups.names import GroupNames
from twinstream.errors import UnsuitableSettings
from twinstream.models import (
    DiscardPolicy,
    ElasticGroupConfig,
    PartitioningFilter,
    RetentionPolicy,
    StreamConfig,
    StreamSource,
    SubjectTransform,
)
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "WHOLE_SUBJECT_SINCE",
    "destination",
    "group_stream",
    "is_of_group",
    "only_copies",
    "uses_whole_subject",
]

WHOLE_SUBJECT_SINCE: Final = (2, 12, 0)
"""The first server version that can partition by the whole subject.

Server 2.11 refuses such a transform (error 10146).
"""

_EVERYTHING: Final = PartitioningFilter(filter=">")


def uses_whole_subject(config: ElasticGroupConfig) -> bool:
    """Return whether a filter determines the partition from the whole subject."""
    return not all(each.partitioning_wildcards for each in _filters(config))


def _filters(config: ElasticGroupConfig) -> list[PartitioningFilter]:
    return config.partitioning_filters or [_EVERYTHING]


def destination(given: PartitioningFilter, partitions: int) -> str:
    """Return the destination of the subject transform for a filter."""
    tokens = given.filter.split(".")
    stars = 0
    for place, token in enumerate(tokens):
        if token == "*":
            stars += 1
            tokens[place] = f"{{{{Wildcard({stars})}}}}"
    numbers = ",".join(map(str, (partitions, *(given.partitioning_wildcards or ()))))
    return ".".join([f"{{{{Partition({numbers})}}}}", *tokens])


def is_of_group(names: GroupNames, found: StreamConfig) -> bool:
    """Return whether a stream copies the stream of a group, as the group's own stream does.

    Any client may have stored a group, so its name may lead to another stream.
    """
    sources = [each.name for each in found.sources or ()]
    return (
        sources == [names.stream]
        and not found.subjects
        and found.retention is RetentionPolicy.WORKQUEUE
    )


def group_stream(
    names: GroupNames, config: ElasticGroupConfig, source: StreamConfig
) -> StreamConfig:
    """Return the configuration of the group's stream, which copies from `source`.

    The server removes a message when a member acknowledges it. While the stream is full, the server
    copies no more messages.
    """
    transforms = [
        SubjectTransform(src=each.filter, dest=destination(each, config.max_members))
        for each in _filters(config)
    ]
    return StreamConfig(
        name=names.source,
        retention=RetentionPolicy.WORKQUEUE,
        storage=source.storage,
        num_replicas=source.num_replicas,
        max_msgs=config.max_buffered_msg or -1,
        max_bytes=config.max_buffered_bytes or -1,
        discard=DiscardPolicy.NEW,
        allow_direct=True,
        sources=[StreamSource(name=names.stream, subject_transforms=transforms)],
    )


def only_copies(names: GroupNames, count: int, retention: str | None) -> UnsuitableSettings:
    """Return the error for a deletion that would lose `count` messages.

    `retention` is that of the original stream; None if the stream does not exist any more.
    """
    messages = "1 message" if count == 1 else f"{count} messages"
    instead = (
        f"before the deletion, let the members process them, or purge {names.source} to lose them"
    )
    if retention is None:
        gap = GuaranteeGap(
            "its state", "deleted", f"the only copies are in {names.source}", instead
        )
    else:
        why = f"it removes messages that {names.source} has copied"
        gap = GuaranteeGap("retention", retention, why, instead)
    what = f"that it keeps {messages} that consumer group {names.group} has not processed"
    return UnsuitableSettings(names.stream, what, (gap,))
