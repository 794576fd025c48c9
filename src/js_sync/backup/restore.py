# Generated from src/js_async/backup/restore.py by codegen/twin.py. Edit that file instead.
"""Bringing a stream back from a folder: chunks of the archive, some of them under way at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from attrs import frozen

from twinstream.core.wire.response import read_answer
from twinstream.core.backup.backup import DATA_FILE, Backup, TransferProgress
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.errors import (
    BadAnswer,
    BadArgument,
    ConnectionLost,
    NoResponders,
    RequestTimeout,
    StreamNotFound,
    TwinstreamError,
)
from twinstream.core.log.logger import Log
from twinstream.core.log.events import Restored
from twinstream.core.wire.protocol import Frame
from twinstream.core.backup.s2_frames import S2Frames
from twinstream.core.wire.subjects import check_subject
from twinstream.core.base.check_callbacks import check_told
from twinstream.models import DecodeError, StreamConfig, StreamCreateResponse, decode, encode
from js_sync.api.api import Api
from js_sync.backup.files import read_backup, verify
from js_sync.runtime.concurrency import Signal, aside, sleep
from js_sync.client.requests import Answer
from js_sync.backup.disk import open_regular

__all__ = ["restore"]

_LOG: Final = Log()

#: Bytes under way: enough for a link of some milliseconds at the speed of a disk.
_WINDOW: Final = 4 * 1024 * 1024

#: Seconds for which the first chunk is sent again while nobody takes it, and between two tries.
_PATIENCE: Final = 2.0
_PAUSE: Final = 0.05


@frozen
class _Wish:
    """The choices of a restore; sizes in bytes, the timeout in seconds."""

    chunk_size: int
    timeout: float
    on_progress: Callable[[TransferProgress], None] | None


def restore(
    api: Api,
    path: str | Path,
    config: StreamConfig | None,
    chunk_size: int,
    timeout: Seconds,
    on_progress: Callable[[TransferProgress], None] | None,
) -> StreamCreateResponse:
    """Bring a stream back and return the server's description of it."""
    check_told(on_progress, "on_progress")
    began = monotonic()
    limit = api.transport.server_info.max_payload
    wish = _Wish(min(chunk_size, limit), seconds(timeout), on_progress)
    if chunk_size < 1024:
        raise BadArgument(f"chunk_size must be 1,024 bytes at least, got {chunk_size}")
    backup = aside(lambda: read_backup(path))
    members = backup.members if config is None else {**backup.members, "config": encode(config)}
    config = config or backup.config
    if config.name != backup.stream:
        raise BadArgument(
            f"the backup is of {backup.stream}, not {config.name}: the server brings a stream"
            " back under its own name only; restore it, then mirror or source it"
        )
    aside(lambda: verify(backup))
    request = {name: members[name] for name in ("config", "state")}

    subject = api.subjects.stream("RESTORE", backup.stream)

    def sending(answer: dict[str, Any]) -> _Sending:
        return _Sending(api, backup, wish, str(answer["deliver_subject"]))

    def undo(what: tuple[dict[str, Any], BaseException]) -> None:
        answer, cut = what
        sending(answer).give_up(cut)

    try:
        # Only the answer tells a stream that is half made from one that was there before.
        answer = api.call_through(subject, request, undo)
    except (RequestTimeout, ConnectionLost) as error:
        error.add_note(
            f"the server may have begun: if {backup.stream} was not there before, delete what is"
            " there now, and restore anew"
        )
        raise
    made = sending(answer).run()
    _LOG(Restored(backup.stream, backup.size, monotonic() - began))
    return made


class _Sending:
    """The chunks on their way to the server."""

    def __init__(self, api: Api, backup: Backup, wish: _Wish, subject: str) -> None:
        self._api: Final = api
        self._backup: Final = backup
        self._wish: Final = wish
        self._subject: Final = subject
        self._under_way: Final[deque[tuple[Answer, bytes]]] = deque()
        self._signal: Final = Signal()
        self._frames: Final = S2Frames()
        self._sent = 0

    def run(self) -> StreamCreateResponse:
        """Return when the server has put the stream together."""
        try:
            self._send_all()
        except BaseException as error:
            self.give_up(error)
            if isinstance(error, ConnectionLost):
                raise self._lost("what had arrived is removed; restore anew") from error
            raise
        try:
            end = self._api.transport.ask(
                self._subject, b"", b"", Deadline.after(self._wish.timeout)
            )
        except ConnectionLost as error:
            raise self._lost("whether the server completed it, the stream's info tells") from error
        members = read_answer(_payload(end), self._subject)
        try:
            made = decode(members, StreamCreateResponse)
        except DecodeError as error:
            raise BadAnswer(f"{self._subject}: {error}") from error
        if made.state.last_seq < self._backup.state.last_seq:
            raise BadAnswer(
                f"restore of {self._backup.stream}: the stream ends at sequence"
                f" {made.state.last_seq}, the backup at {self._backup.state.last_seq}"
            )
        return made

    def _lost(self, then: str) -> ConnectionLost:
        return ConnectionLost(
            f"the link broke in the middle of the restore of {self._backup.stream}, after"
            f" {self._sent:,} of {self._backup.size:,} bytes; {then}"
        )

    def give_up(self, error: BaseException) -> None:
        """Remove what the server made so far: since 2.15 that is a stream, with a part of it all.

        It is ours, for the server refuses to restore where a stream is.
        """
        api, stream = self._api, self._backup.stream
        try:
            api.transport.ready(api.deadline())
            try:
                # An end that comes too soon: the server stops waiting for more.
                api.transport.ask(self._subject, b"", b"", api.deadline())
            except NoResponders:
                pass  # it stopped by itself
            api.call_raw(api.subjects.stream("DELETE", stream), None)
        except StreamNotFound:
            return
        except TwinstreamError as trouble:
            error.add_note(f"a part of {stream} may be left on the server, delete it: {trouble}")

    def _send_all(self) -> None:
        try:
            # Not aside: nobody would close what a thread opens for a task that is cancelled.
            with open_regular(self._backup.path / DATA_FILE) as file:
                self._send_chunks(file)
        finally:
            for answer, _ in self._under_way:
                self._api.transport.replies.forget(answer)

    def _send_chunks(self, file: BinaryIO) -> None:
        window = max(1, _WINDOW // self._wish.chunk_size)
        subject = check_subject(self._subject)
        replies = self._api.transport.replies
        for chunk in aside(lambda: self._read(file, 1)):
            self._knock(chunk)
        while True:
            # Many chunks at a time: going aside costs more than reading one.
            chunks = aside(lambda: self._read(file, window // 2 + 1))
            for chunk in chunks:
                while len(self._under_way) >= window:
                    self._settle()
                answer = replies.send(subject, b"", chunk, self._signal)
                self._under_way.append((answer, chunk))
            if not chunks:
                break
        while self._under_way:
            self._settle()

    def _knock(self, chunk: bytes) -> None:
        """Send the first chunk, again until somebody takes it.

        In a cluster the word of where to send it may be here before all nodes know of the
        subscription there (seen once on 2.15.1, with a node 0.1 s away).
        """
        patience = Deadline.after(_PATIENCE)
        while True:
            deadline = self._api.deadline(self._wish.timeout)
            try:
                frame = self._api.transport.ask(self._subject, b"", chunk, deadline)
            except NoResponders:
                if patience.expired():
                    raise
                sleep(_PAUSE)
                continue
            self._take_note(_payload(frame), chunk)
            return

    def _read(self, file: BinaryIO, count: int) -> list[bytes]:
        pieces = (file.read(self._wish.chunk_size) for _ in range(count))
        return [piece for piece in pieces if piece]

    def _settle(self) -> None:
        """Wait for the server's word on the oldest chunk."""
        answer, chunk = self._under_way[0]
        replies = self._api.transport.replies
        replies.wait(answer, self._api.deadline(self._wish.timeout))
        self._under_way.popleft()
        try:
            word = _payload(answer.take(self._subject))
        finally:
            replies.forget(answer)
        self._take_note(word, chunk)

    def _take_note(self, word: bytes, chunk: bytes) -> None:
        """Count a chunk that the server has, or raise what it said of it."""
        if word:
            read_answer(word, self._subject)
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
