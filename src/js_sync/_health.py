# Generated from src/js_async/_health.py by codegen/twin.py. Edit that file instead.
"""Asking how streams and consumers fare, at two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from js_core.errors import (
    JetStreamError,
    JetStreamOff,
    MessageNotFound,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from js_core.given import check_kind
from js_core.health import Health, Key, Sample, Thresholds, judge, stuck
from js_models import ConsumerInfo, StreamInfo
from js_sync._io import sleep
from js_sync._transport import Transport

if TYPE_CHECKING:
    from js_sync.jetstream import JetStream

__all__ = ["health"]

# Of the server's own troubles; below are those of who asks.
_TROUBLE: Final = 500


def health(
    jet: JetStream,
    transport: Transport,
    stream: str | None,
    interval: float,
    thresholds: Thresholds,
) -> Health:
    """Return the findings about all streams, or one, and their consumers."""
    check_kind(thresholds, Thresholds, "thresholds", "a Thresholds, as Thresholds(full=0.8)")
    before = _sample(jet, transport, stream)
    sleep(interval)
    now = _sample(jet, transport, stream)
    subjects: dict[Key, str] = {}
    for key, seq in stuck(before, now):
        try:
            subjects[key] = (jet.bind_stream(key[0]).get_message(seq)).subject
        except (MessageNotFound, StreamNotFound):
            # Deleted meanwhile, or never one of this consumer's: the sequence alone is told.
            continue
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, transport):
                raise
    return judge(before, now, interval, thresholds, subjects)


def _sample(jet: JetStream, transport: Transport, only: str | None) -> Sample:
    streams: dict[str, StreamInfo] = {}
    consumers: dict[Key, ConsumerInfo] = {}
    missing: dict[Key, str] = {}
    offline: dict[Key, str] = {}
    if only is not None:
        try:
            streams[only] = (jet.get_stream(only)).cached_info
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, transport):
                raise
            missing[only, ""] = str(error)
    else:
        listing = jet.streams()
        for info in listing:
            streams[info.config.name or ""] = info
        missing |= {(name, ""): "" for name in listing.missing if name not in listing.offline}
        offline |= {(name, ""): reason for name, reason in listing.offline.items()}
    for name in streams:
        of_stream = jet.bind_stream(name).consumers()
        try:
            for consumer in of_stream:
                consumers[name, consumer.name] = consumer
        except StreamNotFound:
            # Deleted between two questions.
            continue
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, transport):
                raise
            missing[name, ""] = str(error)
            continue
        absent = (each for each in of_stream.missing if each not in of_stream.offline)
        missing |= {(name, each): "" for each in absent}
        offline |= {(name, each): reason for each, reason in of_stream.offline.items()}
    return Sample(streams=streams, consumers=consumers, missing=missing, offline=offline)


def _is_silence(error: TwinstreamError, transport: Transport) -> bool:
    """Tell whether the servers are there, and nobody among them can tell of what was asked.

    That is part of what is found. Without a link or JetStream there is nothing to judge.
    """
    if isinstance(error, JetStreamError):
        return error.code >= _TROUBLE and not isinstance(error, JetStreamOff)
    return transport.is_connected
