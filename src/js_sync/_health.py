# Generated from src/js_async/_health.py by codegen/twin.py. Edit that file instead.
"""Asking how streams and consumers fare, at two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_core.errors import JetStreamError, MessageNotFound, StreamNotFound
from js_core.health import Health, Sample, Thresholds, judge, stuck
from js_models import ConsumerInfo, StreamInfo
from js_sync._io import sleep

if TYPE_CHECKING:
    from js_sync.jetstream import JetStream

__all__ = ["health"]


def health(jet: JetStream, stream: str | None, interval: float, thresholds: Thresholds) -> Health:
    """Return the findings about all streams, or one, and their consumers."""
    before = _sample(jet, stream)
    sleep(interval)
    now = _sample(jet, stream)
    subjects: dict[tuple[str, str], str] = {}
    for key, seq in stuck(before, now):
        try:
            subjects[key] = (jet.bind_stream(key[0]).get_message(seq)).subject
        except (MessageNotFound, StreamNotFound):
            # Deleted meanwhile, or never one of this consumer's: the sequence alone is told.
            continue
    return judge(before, now, interval, thresholds, subjects)


def _sample(jet: JetStream, only: str | None) -> Sample:
    streams: dict[str, StreamInfo] = {}
    consumers: dict[tuple[str, str], ConsumerInfo] = {}
    missing: list[tuple[str, str]] = []
    offline: dict[tuple[str, str], str] = {}
    if only is not None:
        streams[only] = (jet.get_stream(only)).cached_info
    else:
        listing = jet.streams()
        for info in listing:
            streams[info.config.name or ""] = info
        missing += [(name, "") for name in listing.missing if name not in listing.offline]
        offline |= {(name, ""): reason for name, reason in listing.offline.items()}
    for name in streams:
        of_stream = jet.bind_stream(name).consumers()
        try:
            for consumer in of_stream:
                consumers[name, consumer.name] = consumer
        except StreamNotFound:
            # Deleted between two questions.
            continue
        except JetStreamError:
            missing.append((name, ""))
            continue
        missing += [(name, each) for each in of_stream.missing if each not in of_stream.offline]
        offline |= {(name, each): reason for each, reason in of_stream.offline.items()}
    return Sample(streams=streams, consumers=consumers, missing=tuple(missing), offline=offline)
