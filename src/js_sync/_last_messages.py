# Generated from src/js_async/_last_messages.py by codegen/twin.py. Edit that file instead.
"""The last message of each subject of a stream, by a short-lived consumer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from js_core.batch import BatchEnd
from js_core.errors import ConnectionLost, ConsumerNotFound, RequestTimeout
from js_core.stream_message import StreamMessage
from js_models import ConsumerConfig, Timestamp
from js_sync._api import Api
from js_sync._io import Stream as Generated
from js_sync.message import Message
from js_sync.stream import Stream

__all__ = ["last_messages"]

_PAGE: Final = 500
_IDLE: Final = timedelta(minutes=1)


def last_messages(
    api: Api, stream: Stream, subjects: str | Sequence[str]
) -> Generated[StreamMessage]:
    """Iterate over the last message of each subject that matches any of the filters.

    Raises `ConnectionLost` when reading broke off.
    """
    config = ConsumerConfig(
        name=api.transport.tokens.name(),
        filter_subjects=[subjects] if isinstance(subjects, str) else list(subjects),
        deliver_policy="last_per_subject",
        ack_policy="none",
        mem_storage=True,
        num_replicas=1,
        inactive_threshold=_IDLE,
    )
    consumer = stream.create_consumer(config)
    try:
        more = True
        while more:
            batch = consumer.fetch(_PAGE, wait="none")
            for message in batch:
                yield _stored(stream.name, message)
            if batch.reason in {BatchEnd.INTERRUPTED, BatchEnd.DELETED}:
                raise ConnectionLost(f"{stream.name}: reading broke off ({batch.detail})")
            more = bool(batch) and batch[-1].metadata.num_pending > 0
    finally:
        try:
            consumer.delete()
        except (ConsumerNotFound, ConnectionLost, RequestTimeout):
            pass  # it goes by itself when idle


def _stored(stream: str, message: Message) -> StreamMessage:
    return StreamMessage(
        stream=stream,
        subject=message.subject,
        seq=message.metadata.stream_seq,
        time=Timestamp.from_ns(message.metadata.timestamp_ns),
        data=message.data,
        headers=message.headers,
    )
