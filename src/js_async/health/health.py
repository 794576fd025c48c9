"""The health check of streams and consumers, which compares two samples of their state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from js_async.api.api import Api
from js_async.api.pager import ConsumerInfos, StreamInfos
from js_async.client.transport import Transport
from js_async.runtime.concurrency import sleep
from js_async.stream import Stream
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.health.health import Health, Key, Sample, Thresholds, judge, stuck
from twinstream.errors import (
    JetStreamError,
    JetStreamOff,
    MessageNotFound,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.models import ConsumerInfo, StreamInfo

if TYPE_CHECKING:
    from js_async.api.listing import Listing

__all__ = ["health"]

# JetStream errors with this code or a higher one are problems of the server; lower codes are errors
# of the request.
_TROUBLE: Final = 500


async def health(
    api: Api,
    stream: str | None,
    interval: float,
    thresholds: Thresholds,
) -> Health:
    """Take two samples, `interval` seconds apart, and return the findings.

    The findings cover one stream, or all streams if `stream` is None, and their consumers.
    """
    check_kind(thresholds, Thresholds, "thresholds", "a Thresholds, as Thresholds(full=0.8)")
    before = await _Look(api).sample(stream)
    await sleep(interval)
    now = await _Look(api).sample(stream)
    subjects: dict[Key, str] = {}
    for key, seq in stuck(before, now):
        try:
            subjects[key] = (await Stream(api, key[0], None).get_message(seq)).subject
        except (MessageNotFound, StreamNotFound):
            # The message or the stream was deleted: report only the sequence of the message.
            continue
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, api.transport):
                raise
    return judge(before, now, interval, thresholds, subjects)


class _Look:
    """The collector of one `Sample`: the state of one stream or all streams, and consumers."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._transport: Final = api.transport
        self._streams: Final[dict[str, StreamInfo]] = {}
        self._consumers: Final[dict[Key, ConsumerInfo]] = {}
        self._missing: Final[dict[Key, str]] = {}
        self._offline: Final[dict[Key, str]] = {}

    async def sample(self, only: str | None) -> Sample:
        if only is None:
            await self._ask_for_streams()
        else:
            await self._ask_for_stream(only)
        for name in self._streams:
            await self._ask_for_consumers(name)
        return Sample(
            streams=self._streams,
            consumers=self._consumers,
            missing=self._missing,
            offline=self._offline,
        )

    async def _ask_for_stream(self, name: str) -> None:
        try:
            self._streams[name] = await self._api.stream_info(name)
        except (RequestTimeout, JetStreamError) as error:
            if not _is_silence(error, self._transport):
                raise
            self._missing[name, ""] = str(error)

    async def _ask_for_streams(self) -> None:
        listing = StreamInfos(self._api, None)
        async for info in listing:
            self._streams[info.config.name or ""] = info
        self._note_absent(listing, lambda name: (name, ""))

    async def _ask_for_consumers(self, stream: str) -> None:
        listing = ConsumerInfos(self._api, stream, None)
        try:
            async for consumer in listing:
                self._consumers[stream, consumer.name] = consumer
        except StreamNotFound:
            # The stream was deleted after the list of streams was requested.
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
    """Return whether an error means that the servers are reachable but cannot answer the request.

    Such an error is a finding of the health check. Other errors are raised, for example if the
    client is not connected or JetStream is off.
    """
    if isinstance(error, JetStreamError):
        return error.code >= _TROUBLE and not isinstance(error, JetStreamOff)
    return transport.is_connected
