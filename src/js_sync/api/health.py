# Generated from src/js_async/api/health.py by codegen/twin.py. Edit that file instead.
"""Asking how streams and consumers fare, at two moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from twinstream.errors import (
    JetStreamError,
    JetStreamOff,
    MessageNotFound,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.core.base.check_arguments import check_kind
from twinstream.core.api.health import Health, Key, Sample, Thresholds, judge, stuck
from twinstream.models import ConsumerInfo, StreamInfo
from js_sync.runtime.concurrency import sleep
from js_sync.client.transport import Transport

if TYPE_CHECKING:
    from js_sync.jetstream import JetStream
    from js_sync.api.listing import Listing

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
    before = _Look(jet, transport).sample(stream)
    sleep(interval)
    now = _Look(jet, transport).sample(stream)
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


class _Look:
    """One look at all streams, or one, and their consumers."""

    def __init__(self, jet: JetStream, transport: Transport) -> None:
        self._jet: Final = jet
        self._transport: Final = transport
        self._streams: Final[dict[str, StreamInfo]] = {}
        self._consumers: Final[dict[Key, ConsumerInfo]] = {}
        self._missing: Final[dict[Key, str]] = {}
        self._offline: Final[dict[Key, str]] = {}

    def sample(self, only: str | None) -> Sample:
        if only is None:
            self._ask_for_streams()
        else:
            self._ask_for_stream(only)
        for name in self._streams:
            self._ask_for_consumers(name)
        return Sample(
            streams=self._streams,
            consumers=self._consumers,
            missing=self._missing,
            offline=self._offline,
        )

    def _ask_for_stream(self, name: str) -> None:
        try:
            self._streams[name] = (self._jet.get_stream(name)).cached_info
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, self._transport):
                raise
            self._missing[name, ""] = str(error)

    def _ask_for_streams(self) -> None:
        listing = self._jet.streams()
        for info in listing:
            self._streams[info.config.name or ""] = info
        self._note_absent(listing, lambda name: (name, ""))

    def _ask_for_consumers(self, stream: str) -> None:
        listing = self._jet.bind_stream(stream).consumers()
        try:
            for consumer in listing:
                self._consumers[stream, consumer.name] = consumer
        except StreamNotFound:
            # Deleted between two questions.
            return
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, self._transport):
                raise
            self._missing[stream, ""] = str(error)
            return
        self._note_absent(listing, lambda name: (stream, name))

    def _note_absent(
        self, listing: Listing[StreamInfo] | Listing[ConsumerInfo], key: Callable[[str], Key]
    ) -> None:
        for name in listing.missing:
            if name not in listing.offline:
                self._missing[key(name)] = ""
        for name, reason in listing.offline.items():
            self._offline[key(name)] = reason


def _is_silence(error: TwinstreamError, transport: Transport) -> bool:
    """Tell whether the servers are there, and nobody among them can tell of what was asked.

    That is part of what is found. Without a link or JetStream there is nothing to judge.
    """
    if isinstance(error, JetStreamError):
        return error.code >= _TROUBLE and not isinstance(error, JetStreamOff)
    return transport.is_connected
