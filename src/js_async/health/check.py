"""The health check of streams and consumers, which compares two samples of their state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from js_async import JetStream
from js_async.extension import api_of
from js_async.runtime.concurrency import sleep
from twinstream.core.arguments.check_arguments import check_kind
from twinstream.core.deadline import Deadline, Seconds, finite_seconds, seconds
from twinstream.core.health.health import (
    THRESHOLDS,
    Health,
    Key,
    Sample,
    Thresholds,
    judge,
    stuck,
)
from twinstream.errors import (
    BadArgument,
    JetStreamError,
    JetStreamNotEnabled,
    MessageNotFound,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.models import ConsumerInfo, StreamInfo

__all__ = ["check_health"]

# JetStream errors with this code or a higher one are problems of the server; lower codes are errors
# of the request.
_TROUBLE: Final = 500


async def check_health(
    jet: JetStream,
    *,
    stream_name: str | None = None,
    interval: Seconds = 2.0,
    thresholds: Thresholds | None = None,
    timeout: Seconds | None = None,
) -> Health:
    """Return findings about the health of streams and their consumers.

    A stream or consumer that does not respond is a finding, too. Raises `StreamNotFound` if
    `stream_name` does not exist.

    Args:
        jet: The JetStream context. Each request has its timeout.
        stream_name: Check only this stream. The default is all streams.
        interval: Seconds between the two samples that are compared.
        thresholds: Thresholds of the findings. The default is `Thresholds()`.
        timeout: Seconds for the whole check, more than `interval`. Then the call raises
            `RequestTimeout`. By default, only each request has a timeout.
    """
    pause = finite_seconds(interval, "interval")
    chosen = THRESHOLDS if thresholds is None else thresholds
    check_kind(chosen, Thresholds, "thresholds", "a Thresholds, as Thresholds(full=0.8)")
    if timeout is not None and seconds(timeout) <= pause:
        raise BadArgument(f"timeout must be above the interval of {pause:g} s, got {timeout!r}")
    deadline = Deadline.after(timeout)
    before = await _Look(jet, deadline).sample(stream_name)
    await sleep(min(pause, deadline.remaining()))
    look = _Look(jet, deadline)
    now = await look.sample(stream_name)
    subjects: dict[Key, str] = {}
    for key, seq in stuck(before, now):
        subject = await look.subject_of(key[0], seq)
        if subject is not None:
            subjects[key] = subject
    return judge(before, now, pause, chosen, subjects)


class _Look:
    """The collector of one `Sample`: the state of one stream or all streams, and consumers."""

    def __init__(self, jet: JetStream, deadline: Deadline) -> None:
        self._jet: Final = jet
        self._api: Final = api_of(jet)
        self._deadline: Final = deadline
        self._streams: Final[dict[str, StreamInfo]] = {}
        self._consumers: Final[dict[Key, ConsumerInfo]] = {}
        self._missing: Final[dict[Key, str]] = {}
        self._offline: Final[dict[Key, str]] = {}

    async def sample(self, only: str | None) -> Sample:
        """Request the states of all streams, or of the stream `only`, and of their consumers."""
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

    async def subject_of(self, name: str, seq: int) -> str | None:
        """Return the subject of a message, or None if the message cannot be read."""
        try:
            stream = self._jet.bind_stream(name)
            return (await stream.get_message(seq, timeout=self._remaining())).subject
        except (MessageNotFound, StreamNotFound):
            return None
        except (RequestTimeout, JetStreamError) as error:
            self._check_silence(error)
            return None

    def _remaining(self) -> float:
        """Return the seconds for the next request. Raises `RequestTimeout` if there are none."""
        if self._deadline.expired():
            raise RequestTimeout("the health check is incomplete: its timeout has passed")
        return min(self._api.timeout, self._deadline.remaining())

    async def _ask_for_stream(self, name: str) -> None:
        try:
            stream = self._jet.bind_stream(name)
            self._streams[name] = await stream.info(timeout=self._remaining())
        except (RequestTimeout, JetStreamError) as error:
            self._check_silence(error)
            self._missing[name, ""] = str(error)

    async def _ask_for_streams(self) -> None:
        listing = self._jet.streams(timeout=self._remaining())
        async for info in listing:
            self._streams[info.config.name or ""] = info
        self._note_absent(listing.missing, listing.offline, lambda name: (name, ""))

    async def _ask_for_consumers(self, stream: str) -> None:
        """Request the states of a stream's consumers. Note those that did not respond."""
        listing = self._jet.bind_stream(stream).consumers(timeout=self._remaining())
        try:
            async for consumer in listing:
                self._consumers[stream, consumer.name] = consumer
        except StreamNotFound:
            # The stream was deleted after the list of streams was requested.
            return
        except (RequestTimeout, JetStreamError) as error:
            self._check_silence(error)
            self._missing[stream, ""] = str(error)
            return
        self._note_absent(listing.missing, listing.offline, lambda name: (stream, name))

    def _note_absent(
        self, missing: Sequence[str], offline: Mapping[str, str], key: Callable[[str], Key]
    ) -> None:
        for name in missing:
            if name not in offline:
                self._missing[key(name)] = ""
        for name, reason in offline.items():
            self._offline[key(name)] = reason

    def _check_silence(self, error: TwinstreamError) -> None:
        """Raise an error unless it means that the servers cannot answer the request.

        Only such an error is a finding of the health check. Others are raised, for example if the
        client is not connected, JetStream is off, or the timeout of the check has passed.
        """
        if isinstance(error, JetStreamError):
            is_silence = error.code >= _TROUBLE and not isinstance(error, JetStreamNotEnabled)
        else:
            is_silence = self._api.transport.is_connected and not self._deadline.expired()
        if not is_silence:
            raise error
