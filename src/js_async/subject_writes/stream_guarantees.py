"""The lookup of streams, with checks whether their settings make a guarantee possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from js_async.api.api import Api
from js_async.api.stream_lookup import holding
from js_async.stream import Stream, known_info
from twinstream.core.deadline import Deadline
from twinstream.core.wire.subject_match import matcher
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import NoStream, UnsuitableSettings
from twinstream.models import StreamConfig, StreamInfo
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = ["StreamGuarantees"]


class StreamGuarantees:
    """A cache of the streams that were looked up. It is cleared after each reconnect."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._known: dict[str, Stream] = {}
        self._epoch = 0

    async def of(
        self, subject: str, name: str | None = None, deadline: Deadline | None = None
    ) -> Stream:
        """Return the stream called `name`, or without a name the stream that has the subject.

        Raises `StreamNotFound` if the name is unknown, and `NoStream` if no stream has the subject.
        """
        literal = check_subject(subject)
        return await self._of(literal, name, deadline)

    async def named(
        self, name: str, promise: str, gaps_of: Callable[[StreamConfig], list[GuaranteeGap]]
    ) -> StreamInfo:
        """Return the info of the stream called `name`.

        `gaps_of` returns the settings that break a guarantee. If there are any, the call raises
        `UnsuitableSettings`. `promise` describes the guarantee in the error.
        """
        return known_info(self._checked(await self._of(b"", name), promise, gaps_of))

    async def _of(
        self, literal: bytes, name: str | None, deadline: Deadline | None = None
    ) -> Stream:
        if self._epoch != self._api.transport.epoch:
            self._epoch = self._api.transport.epoch
            self._known.clear()
        known = self._known.get(name) if name is not None else self._find(literal)
        if known is not None:
            return known
        if name is None:
            name = await self._stream_with(literal.decode(), deadline)
        info = await self._api.stream_info(name, deadline)
        found = self._known[name] = Stream(self._api, name, info)
        return found

    async def check(
        self,
        subject: str,
        name: str | None,
        promise: str,
        gaps_of: Callable[[StreamConfig], list[GuaranteeGap]],
        deadline: Deadline,
    ) -> Stream:
        """Return the stream as `of` does, and check its settings as `named` does."""
        return self._checked(await self.of(subject, name, deadline), promise, gaps_of)

    def _checked(
        self, stream: Stream, promise: str, gaps_of: Callable[[StreamConfig], list[GuaranteeGap]]
    ) -> Stream:
        gaps = gaps_of(known_info(stream).config)
        if gaps:
            # The user may correct the settings, so the next call must request them again.
            self.forget(stream.name)
            raise UnsuitableSettings(stream.name, promise, tuple(gaps))
        return stream

    def forget(self, name: str) -> None:
        """Remove a stream from the cache, because its settings may have changed."""
        self._known.pop(name, None)

    def _find(self, subject: bytes) -> Stream | None:
        # Iterate over a copy, because another thread may add a stream meanwhile.
        for stream in list(self._known.values()):
            matches = matcher(known_info(stream).config.subjects or [stream.name])
            if matches is None or matches(subject):
                return stream
        return None

    async def _stream_with(self, subject: str, deadline: Deadline | None) -> str:
        names = await holding(self._api, subject, deadline)
        if not names:
            raise NoStream(f"{subject}: no stream has this subject")
        return names[0]
