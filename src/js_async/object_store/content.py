"""Remove the content of a replaced or deleted object, unless another object needs it."""

from __future__ import annotations

from typing import Final

from js_async.object_store.infos import ObjectPlace
from js_async.runtime.concurrency import TimedLock
from twinstream.core.deadline import Deadline
from twinstream.core.log.events import ContentKept, ContentLeft
from twinstream.core.log.logger import Log
from twinstream.core.object_store.claims import Claims, claimed
from twinstream.core.object_store.names import object_name_of
from twinstream.core.read.direct_get import last_request, next_request
from twinstream.errors import MessageNotFound, RequestTimeout, TwinstreamError
from twinstream.models import ObjectInfo

__all__ = ["OldContent"]

_LOG: Final = Log("object")
# Seconds to wait for another call that reads the metadata of all objects.
_PATIENCE: Final = 120.0


class OldContent:
    """Removes contents of one store. A content that another object needs is kept.

    The first removal reads the metadata of all objects, the others only what was stored since. In a
    store with more objects than `Claims.most`, contents are left for `ObjectStore.sweep`.
    """

    def __init__(self, place: ObjectPlace, claims: Claims | None = None) -> None:
        self._place: Final = place
        self._claims: Final = claims or Claims()
        self._reading: Final = TimedLock()

    async def try_to_remove(self, info: ObjectInfo, deadline: Deadline | None = None) -> None:
        """Do the same as `remove`, but log a failure instead of raising it."""
        try:
            await self.remove(info, deadline=deadline)
        except TwinstreamError as error:
            _LOG(ContentLeft(info.name, self._place.bucket, info.nuid or "", error))

    async def remove(
        self, info: ObjectInfo, since: int | None = None, deadline: Deadline | None = None
    ) -> None:
        """Remove the content that an object had, according to its former metadata.

        Chunks are stored before the metadata that names them, so later chunks are not removed. If
        there are chunks after the sequence `since`, by default the revision of the metadata, the
        whole content is kept. Without a deadline, each request has the timeout of the context.
        """
        place, nuid = self._place, info.nuid
        if not nuid:
            return
        place = place.until(deadline)
        reason = await self._reason_to_keep(place, nuid) or await self._growth(
            place, nuid, since or info.revision
        )
        if reason:
            _LOG(ContentKept(info.name, place.bucket, nuid, reason))
        else:
            await place.remove_content(nuid, info.revision)

    async def _reason_to_keep(self, place: ObjectPlace, nuid: str) -> str:
        """Return why the content must stay, or an empty text if no object needs it.

        Raises `RequestTimeout` if another call does not finish its read of the metadata in time.
        """
        has_turn = await self._reading.acquire(place.deadline or Deadline.after(_PATIENCE))
        try:
            if not has_turn:
                raise RequestTimeout("the descriptions of the store are being read")
            await self._read(place)
            if self._claims.is_full:
                most = self._claims.most
                return f"the store has more than {most:,} objects, so only sweep() removes it"
            name = await self._needed_by(place, nuid)
            return "" if name is None else f"object {name!r} has the same content"
        finally:
            self._reading.release(has_turn)

    async def _growth(self, place: ObjectPlace, nuid: str, since: int | None) -> str:
        """Return why a content with chunks after a sequence is kept, "" if there are none.

        An upload stores its metadata last, so metadata before a chunk is that of another client,
        which has seen the NUID of an upload that may still be running.
        """
        if not since:
            return ""
        request = next_request(place.subjects.chunks(nuid), since + 1)
        try:
            await place.message(request)
        except MessageNotFound:
            return ""
        return "it has chunks that were stored later, so an upload may still be storing it"

    async def _read(self, place: ObjectPlace) -> None:
        """Read what was stored since the last call."""
        claims = self._claims
        info = await place.stream.info(confirmed=True, timeout=place.left)
        last_seq = info.state.last_seq
        claims.begin(info.created, last_seq)
        if claims.is_full or claims.next_seq > last_seq:
            return
        read = place.stream.read(claims.next_seq, last_seq + 1, subjects=place.subjects.all_infos)
        async with read:
            async for message in read:
                claims.add(message)
                place.check_time()  # If this raises an error, the next call reads on.
                if claims.is_full:
                    return

    async def _needed_by(self, place: ObjectPlace, nuid: str) -> str | None:
        """Return the name of an object whose current metadata names the NUID, or None."""
        for subject in self._claims.of(nuid):
            try:
                message = await place.message(last_request(subject))
            except MessageNotFound:
                self._claims.drop(subject)
                continue
            if claimed(message.data) == nuid:
                return object_name_of(subject)
        return None
