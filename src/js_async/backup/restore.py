"""The restore of a stream from a backup folder.

The client sends the archive in chunks, several of them in flight at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from attrs import frozen

from js_async import JetStream, Stream
from js_async.backup.files import read_backup, verify
from js_async.extension import Answer, Api, api_of
from js_async.runtime.concurrency import Handler, Signal, aside, sleep
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.backup.backup import DATA_FILE, Backup, TransferProgress
from twinstream.core.backup.s2_frames import S2Frames
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.core.log.events import Restored
from twinstream.core.log.logger import Log
from twinstream.core.on_failure import AsyncOnError
from twinstream.core.server_faults.delays import SPREADING_LONGEST
from twinstream.core.server_faults.repeats import LATE_FAILURE, is_late_failure
from twinstream.core.server_faults.table import PARTIAL_RESTORE
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.response import read_answer, read_api_answer
from twinstream.core.wire.subjects import check_subject
from twinstream.disk.safe_files import open_regular
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    InvalidResponse,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.errors.transient import LOST_RESPONSE
from twinstream.models import (
    DecodeError,
    StreamConfig,
    StreamCreateResponse,
    StreamDeleteResponse,
    decode,
    encode,
)
from twinstream.models.error_codes import STREAM_NAME_EXISTS_RESTORE

__all__ = ["restore_stream"]

_LOG: Final = Log()

# The maximum number of bytes in flight. With a round trip of some milliseconds, this is enough to
# send at the speed of a disk.
_WINDOW: Final = 4 * 1024 * 1024

# The pause between requests for a restore (seconds).
_PAUSE: Final = 0.05

# What to do if the outcome is unknown, as the end of a message.
_UNKNOWN: Final = "the stream's info tells whether the server completed it"

# A part of the server's error if the stream has messages that this restore did not store.
_FOUND_MESSAGES: Final = "expected sequence does not match"


@frozen
class _Wish:
    """The options of a restore; sizes in bytes, the timeout in seconds."""

    chunk_size: int
    idle_timeout: float
    on_progress: Callable[[TransferProgress], None] | None


async def restore_stream(
    jet: JetStream,
    path: str | Path,
    *,
    config: StreamConfig | None = None,
    chunk_size: int = 128 * 1024,
    idle_timeout: Seconds = 3600.0,
    on_progress: Callable[[TransferProgress], None] | None = None,
) -> Stream:
    """Restore a stream from a backup, and return its handle. The stream keeps its name.

    The call verifies the backup before it sends anything.

    Args:
        jet: The JetStream context.
        path: Folder of the backup.
        config: Configuration instead of that of the backup, for example with other replicas or
            placement.
        chunk_size: Size of one chunk of the transfer in bytes.
        idle_timeout: Seconds without progress after which the restore fails. The time in which the
            server completes the stream after the transfer counts as such.
        on_progress: Callback that receives the progress.

    Raises:
        StreamExists: The stream exists already.
        BadArgument: The backup is damaged, or an argument is invalid.
        ConnectionLost: The connection broke during the transfer.
        NoResponders: The server that restored the stream was lost.
        JetStreamError: The server refused the restore.
    """
    check_callback(on_progress, "on_progress")
    api, began = api_of(jet), monotonic()
    limit = api.transport.server_info.max_payload
    wish = _Wish(min(chunk_size, limit), seconds(idle_timeout, "idle_timeout"), on_progress)
    if chunk_size < 1024:
        raise BadArgument(f"chunk_size must be 1,024 bytes at least, got {chunk_size}")
    backup = await aside(lambda: read_backup(path))
    members = backup.members if config is None else {**backup.members, "config": encode(config)}
    config = config or backup.config
    if config.name != backup.stream_name:
        raise BadArgument(
            f"the backup is of {backup.stream_name}, not {config.name}: the server restores a"
            " stream under its own name only; restore it, then mirror or source it"
        )
    await aside(lambda: verify(backup))
    request = {name: members[name] for name in ("config", "state")}

    def sending(answer: dict[str, Any]) -> _Sending:
        return _Sending(api, backup, wish, _deliver_subject(answer, backup.stream_name))

    async def undo(what: tuple[dict[str, Any], BaseException]) -> None:
        answer, cut = what
        await sending(answer).give_up(cut)

    answer = await _request_restore(api, backup.stream_name, request, undo)
    made = await sending(answer).run()
    _LOG(Restored(backup.stream_name, backup.size, monotonic() - began))
    return Stream(api, made.config.name or "", made)


def _deliver_subject(answer: dict[str, Any], stream: str) -> str:
    found: object = answer.get("deliver_subject")
    if not isinstance(found, str) or not found:
        raise InvalidResponse(
            f"restore of {stream}: the response does not say where to send the chunks"
        )
    return found


async def _request_restore(
    api: Api,
    stream: str,
    request: dict[str, Any],
    undo: Handler[tuple[dict[str, Any], BaseException]],
) -> dict[str, Any]:
    """Ask the server to restore `stream`, and return its response.

    If the call is interrupted, `undo` deletes the incomplete stream. `undo` is only called after a
    response, which proves that the stream did not exist before.

    The request is repeated if the response is the failure of an earlier restore.
    """
    subject = api.subjects.stream("RESTORE", stream)
    patience, late = Deadline.after(LATE_FAILURE), False
    while True:
        try:
            return await api.call_through(subject, request, undo)
        except LOST_RESPONSE as error:
            error.add_note(
                f"the server may have begun: if {stream} did not exist before, delete the present"
                " one, and restore again"
            )
            raise
        except JetStreamError as error:
            passes = is_late_failure(error, again=late)
            late = late or passes
            if not passes or patience.expired():
                if late:
                    error.add_note(
                        f"an earlier restore failed late; {stream} may be reserved for it"
                    )
                raise
        await sleep(_PAUSE)


class _Sending:
    """The sender of the chunks of one restore."""

    def __init__(self, api: Api, backup: Backup, wish: _Wish, subject: str) -> None:
        self._api: Final = api
        self._backup: Final = backup
        self._wish: Final = wish
        self._subject: Final = subject
        self._in_flight: Final[deque[tuple[Answer, bytes]]] = deque()
        self._signal: Final = Signal()
        self._frames: Final = S2Frames()
        self._sent = 0
        self._is_complete = False

    async def run(self) -> StreamCreateResponse:
        """Send all chunks, and return the stream's info when the server has restored the stream."""
        try:
            async with AsyncOnError(self._cut_short):
                await self._send_all()
                members = await self._complete()
        except (ConnectionLost, NoResponders) as error:
            raise await self._lost(error) from error
        try:
            made = decode(members, StreamCreateResponse)
        except DecodeError as error:
            raise InvalidResponse(f"{self._subject}: {error}") from error
        if made.state.last_seq < self._backup.state.last_seq:
            raise InvalidResponse(
                f"restore of {self._backup.stream_name}: the stream ends at sequence"
                f" {made.state.last_seq}, the backup at {self._backup.state.last_seq}"
            )
        return made

    async def _complete(self) -> dict[str, Any]:
        """End the complete transfer, and return the server's response."""
        self._is_complete = True
        deadline = Deadline.after(self._wish.idle_timeout)
        end = await self._api.transport.ask(self._subject, b"", b"", deadline)
        return read_api_answer(_payload(end), self._subject)

    async def _cut_short(self, error: BaseException) -> None:
        if isinstance(error, ConnectionLost | NoResponders):
            return  # `_lost` handles these.
        if self._is_complete and not isinstance(error, JetStreamError):
            error.add_note(f"the server may complete {self._backup.stream_name}: {_UNKNOWN}")
            return
        await self.give_up(error)
        if isinstance(error, JetStreamError) and _FOUND_MESSAGES in str(error):
            error.add_note(
                f"if a restore of {self._backup.stream_name} was just interrupted, the server"
                " may have found its messages; restore again"
            )

    async def _lost(self, error: ConnectionLost | NoResponders) -> ConnectionLost | NoResponders:
        """Return the error to raise after the connection, or the restoring server, was lost."""
        if self._is_complete and isinstance(error, ConnectionLost):
            then = _UNKNOWN
        elif await self.give_up(error):
            then = "the partial stream is removed; restore again"
        else:
            then = "see the note"
        what = "connection broke" if isinstance(error, ConnectionLost) else "server was lost"
        lost = type(error)(
            f"the {what} in the middle of the restore of {self._backup.stream_name}, after"
            f" {self._sent:,} of {self._backup.size:,} bytes; {then}"
        )
        for note in getattr(error, "__notes__", ()):
            lost.add_note(note)
        return lost

    async def give_up(self, error: BaseException) -> bool:
        """End the transfer, and delete the incomplete stream. Return whether nothing is left.

        A stream of another client is not deleted. If something may be left, a note is added to
        `error`.
        """
        api, stream = self._api, self._backup.stream_name
        try:
            await api.transport.ready(api.deadline())
            refusal = await self._end_transfer(error)
            if isinstance(error, JetStreamError):
                refusal = error
            if refusal is not None and refusal.err_code == STREAM_NAME_EXISTS_RESTORE:
                # Another client created the stream before the server did.
                return True
            is_partial = PARTIAL_RESTORE.affects(api.transport.server_info.version_numbers)
            if await self._is_foreign(is_partial, refusal):
                error.add_note(
                    f"a stream {stream} exists that may belong to another client, or contains"
                    " messages that are not of the backup; it is not deleted"
                )
                return False
            if is_partial or not refusal:
                await api.call(api.subjects.stream("DELETE", stream), None, StreamDeleteResponse)
        except StreamNotFound:
            return True
        except TwinstreamError as trouble:
            error.add_note(f"a part of {stream} may be left on the server, delete it: {trouble}")
            return False
        return True

    async def _end_transfer(self, error: BaseException) -> JetStreamError | None:
        """Send an empty message, after which the server no longer waits for chunks.

        Return the error with which the server responds. None means that it has restored the stream,
        or that it no longer listens.
        """
        # After a refusal, or after other chunks, the server has ended the transfer if it no longer
        # listens. Before the first chunk, it may not listen yet.
        is_known = self._sent > 0 or isinstance(error, (JetStreamError, NoResponders))
        patience = 0.0 if is_known else SPREADING_LONGEST
        try:
            response = _payload(await self._send_chunk(b"", self._api.timeout, patience))
            if response:
                read_answer(response, self._subject)
        except NoResponders:
            return None
        except JetStreamError as refusal:
            return refusal
        return None

    async def _is_foreign(self, is_partial: bool, refusal: JetStreamError | None) -> bool:
        """Return whether a stream of this name exists that must not be deleted.

        Messages keep their times in a restore. So all messages of the incomplete stream are stored
        no later than the last message of the backup; later messages are from publishers.
        """
        try:
            state = (await self._api.stream_info(self._backup.stream_name)).state
        except (StreamNotFound, RequestTimeout):
            # A cluster keeps the name for the restore until DELETE.
            return False
        if not is_partial and (refusal is not None or not state.messages):
            # The server creates the stream at the end, and leaves nothing after an error.
            return True
        last, limit = state.last_ts, self._backup.state.last_ts
        return state.messages > 0 and (last is None or limit is None or last > limit)

    async def _send_all(self) -> None:
        try:
            # The file is not opened in another thread. If the call was cancelled while that thread
            # opened the file, the file would stay open.
            with open_regular(self._backup.path / DATA_FILE) as file:
                await self._send_chunks(file)
        finally:
            for answer, _ in self._in_flight:
                self._api.transport.replies.forget(answer)

    async def _send_chunks(self, file: BinaryIO) -> None:
        """Send the archive in chunks, with a limited number of chunks in flight.

        The first chunk is sent alone, and repeated while the server has no subscription for it.
        """
        window = max(1, _WINDOW // self._wish.chunk_size)
        subject = check_subject(self._subject)
        replies = self._api.transport.replies
        for chunk in await aside(lambda: self._read(file, 1)):
            frame = await self._send_chunk(chunk, self._wish.idle_timeout, SPREADING_LONGEST)
            self._count_chunk(_payload(frame), chunk)
        while True:
            # Read many chunks at a time: switching to a thread takes longer than reading a chunk.
            chunks = await aside(lambda: self._read(file, window // 2 + 1))
            for chunk in chunks:
                while len(self._in_flight) >= window:
                    await self._wait_for_oldest()
                deadline = self._api.deadline()
                answer = await replies.send(subject, b"", chunk, deadline, signal=self._signal)
                self._in_flight.append((answer, chunk))
            if not chunks:
                break
        while self._in_flight:
            await self._wait_for_oldest()

    async def _send_chunk(self, chunk: bytes, timeout: float, patience: float) -> Frame:
        """Send a chunk and return the response. Repeat it while there are no responders.

        The repeats end after `patience` seconds.
        """
        deadline = self._api.deadline(timeout)
        return await self._api.ask(self._subject, b"", chunk, deadline, spreading=patience)

    def _read(self, file: BinaryIO, count: int) -> list[bytes]:
        pieces = (file.read(self._wish.chunk_size) for _ in range(count))
        return [piece for piece in pieces if piece]

    async def _wait_for_oldest(self) -> None:
        """Wait for the server's response to the oldest chunk in flight, and count the chunk."""
        answer, chunk = self._in_flight[0]
        replies = self._api.transport.replies
        await replies.wait(answer, self._api.deadline(self._wish.idle_timeout))
        self._in_flight.popleft()
        try:
            response = _payload(answer.take(self._subject))
        finally:
            replies.forget(answer)
        self._count_chunk(response, chunk)

    def _count_chunk(self, response: bytes, chunk: bytes) -> None:
        """Count a chunk that the server has received, and report progress.

        `response` is the payload of the server's response: empty, or the error to raise.
        """
        if response:
            read_answer(response, self._subject)
            raise InvalidResponse(f"{self._subject}: not the receipt of a chunk: {response[:80]!r}")
        self._sent += len(chunk)
        self._frames.feed(chunk)
        if self._wish.on_progress is not None:
            progress = TransferProgress(
                transferred=self._sent,
                size=self._backup.size,
                unpacked=self._frames.unpacked,
                expected=self._backup.state.bytes,
            )
            self._wish.on_progress(progress)


def _payload(frame: Frame) -> bytes:
    return frame[3][frame[2] : -2]
