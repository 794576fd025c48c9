"""Filters of consumers that match no subject of their stream, for example because of a typo."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, StreamConfig

__all__ = ["outside_filters"]


def outside_filters(stream: StreamConfig, consumer: ConsumerConfig) -> list[str]:
    """Return the filters of a consumer that match no subject of its stream.

    If the stream copies or transforms messages, its subjects do not decide which it has.
    """
    if stream.mirror or stream.sources or stream.subject_transform or not stream.subjects:
        return []
    one = consumer.filter_subject
    filters = consumer.filter_subjects or ([one] if one else [])
    if all(each in stream.subjects for each in filters):
        return []
    # Few programs need the comparison, which is a large module.
    from twinstream.models.names.overlaps import first_related
    from twinstream.models.names.subjects import can_meet

    met = first_related(filters, stream.subjects, can_meet)
    return [each for index, each in enumerate(filters) if index not in met]
