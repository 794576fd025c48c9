"""The backup of a stream into a folder.

The server sends the backup in chunks. It pauses while too many bytes are not acknowledged (the
window). The client acknowledges a chunk after writing it. So no more than one window is in memory,
even if the disk is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from attrs import frozen

from js_async import JetStream
from js_async.backup.files import BackupWriter, read_backup
from js_async.extension import Api, api_of
from js_async.runtime.concurrency import Signal, aside, whole
from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.backup.backup import Backup, SnapshotChunks, TransferProgress
from twinstream.core.client.mailbox import Mailbox
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.core.log.events import BackedUp
from twinstream.core.log.logger import Log
from twinstream.disk.local_path import local_path
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    InvalidResponse,
    RequestTimeout,
)

__all__ = ["backup_stream"]

_LOG: Final = Log()
_WINDOW_SINCE: Final = (2, 12, 5)


@frozen(kw_only=True)
class _Wish:
    """The options of a backup; sizes in bytes, the timeout in seconds."""

    target: Path
    consumers: bool
    check: bool
    overwrite: bool
    chunk_size: int
    window_size: int | None
    idle_timeout: float
    on_progress: Callable[[TransferProgress], None] | None


async def backup_stream(
    jet: JetStream,
    stream_name: str,
    path: str | Path,
    *,
    consumers: bool = True,
    check: bool = False,
    overwrite: bool = False,
    chunk_size: int = 128 * 1024,
    window_size: int | None = None,
    idle_timeout: Seconds = 60.0,
    on_progress: Callable[[TransferProgress], None] | None = None,
) -> Backup:
    """Copy the current state of a stream into a folder, and return it as a `Backup`.

    If the call fails, the folder is left as it was. The `nats` command can restore the folder,
    too.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
        path: Folder for the backup. It must be new or empty unless `overwrite` is set.
        consumers: Include the consumers and their state.
        check: Let the server verify all messages first, which may take long.
        overwrite: Replace an existing backup in the folder.
        chunk_size: Size of one chunk of the transfer in bytes.
        window_size: Maximum number of bytes in flight (server 2.12.5).
        idle_timeout: Seconds without data after which the backup fails. With `check`, this also
            limits the time in which the server verifies the messages.
        on_progress: Callback that receives the progress.

    Raises:
        ConnectionLost: The connection broke during the transfer.
        RequestTimeout: No data arrived for `idle_timeout` seconds.
        BadArgument: An argument is invalid.
        JetStreamError: The server refused the backup. Servers before 2.15 refuse it for memory
            streams.
        OSError: Writing to disk failed.
    """
    wish = _Wish(
        target=local_path(path),
        consumers=consumers,
        check=check,
        overwrite=overwrite,
        chunk_size=chunk_size,
        window_size=window_size,
        idle_timeout=seconds(idle_timeout, "idle_timeout"),
        on_progress=on_progress,
    )
    check_callback(on_progress, "on_progress")
    return await _back_up(api_of(jet), jet.bind_stream(stream_name).name, wish)


async def _back_up(api: Api, stream: str, wish: _Wish) -> Backup:
    """Receive the backup into the folder and return it. A failed backup leaves no files."""
    began = monotonic()
    writer = BackupWriter(wish.target, overwrite=wish.overwrite)
    request = _request(api, wish)
    box = await api.transport.open_mailbox(request["deliver_subject"].encode())
    try:
        # `whole` waits for the thread even if the call is cancelled. Otherwise the thread could
        # still write into the folder while `discard` removes it.
        await whole(writer.open)
        await api.transport.ready(api.deadline())
        epoch = api.transport.epoch
        # With `check`, the server reads the whole stream before it responds.
        target = api.subjects.stream("SNAPSHOT", stream)
        members = await api.call_raw(target, request, Deadline.after(wish.idle_timeout))
        _check(members, target)
        await _Receiving(api, stream, wish, writer, box, epoch, members).run()
        await whole(lambda: writer.finish({name: members[name] for name in ("config", "state")}))
        made = await aside(lambda: read_backup(wish.target))
        _LOG(BackedUp(stream, made.size, monotonic() - began))
        return made
    finally:
        try:
            await whole(writer.discard)
        finally:
            await api.transport.close_mailbox(box)


def _check(members: dict[str, Any], subject: str) -> None:
    """Raise `InvalidResponse` for a response that does not describe the stream."""
    config, state = members.get("config"), members.get("state")
    size: object = (
        cast("dict[str, object]", state).get("bytes") if isinstance(state, dict) else None
    )
    if not isinstance(config, dict) or type(size) is not int:
        raise InvalidResponse(f"{subject}: the response lacks the stream's config or state")


def _request(api: Api, wish: _Wish) -> dict[str, Any]:
    """Return the snapshot request. Raises `BadArgument` for a size below 1,024 bytes."""
    for name, size in (("chunk_size", wish.chunk_size), ("window_size", wish.window_size)):
        if size is not None and size < 1024:
            raise BadArgument(f"{name} must be 1,024 bytes at least, got {size}")
    request: dict[str, Any] = {
        "deliver_subject": api.transport.tokens.inbox(),
        "no_consumers": not wish.consumers,
        "chunk_size": min(wish.chunk_size, api.transport.server_info.max_payload),
    }
    if wish.check:
        request["jsck"] = True
    if wish.window_size is not None:
        api.require(_WINDOW_SINCE, "a backup's window_size")
        request["window_size"] = wish.window_size
    return request


class _Receiving:
    """The receiver of the chunks of one backup. It writes them into the folder."""

    def __init__(
        self,
        api: Api,
        stream: str,
        wish: _Wish,
        writer: BackupWriter,
        box: Mailbox[Signal],
        epoch: int,
        members: dict[str, Any],
    ) -> None:
        self._api: Final = api
        self._stream: Final = stream
        self._wish: Final = wish
        self._writer: Final = writer
        self._box: Final = box
        self._epoch: Final = epoch
        self._expected: Final = int(members["state"]["bytes"])
        self._chunks: Final = SnapshotChunks(stream)

    async def run(self) -> None:
        """Receive and write all chunks."""
        while not self._chunks.ended:
            frames = self._box.take_all()
            data = [chunk for chunk in map(self._chunks.take, frames) if chunk]
            if data:
                await whole(lambda data=data: self._writer.write(data))  # type: ignore[misc]
                self._report()
            for frame in frames:
                if frame[1]:
                    await self._api.transport.send(frame[1], b"", b"", b"")
            if not self._chunks.ended:
                await self._wait()

    async def _wait(self) -> None:
        """Wait for the next chunk.

        Raises an error if the connection breaks, even if it is restored meanwhile: the server does
        not repeat chunks that it sent to a lost connection.
        """
        transport = self._api.transport
        is_set = await transport.wait(self._box.signal, Deadline.after(self._wish.idle_timeout))
        where = f"backup of {self._stream} after {self._chunks.size:,} bytes; nothing was kept"
        self._box.check()
        if transport.is_closed:
            raise transport.closed_error()
        if transport.epoch != self._epoch or not transport.is_connected:
            raise ConnectionLost(f"the connection broke in the middle of the {where}, start again")
        if not is_set:
            raise RequestTimeout(
                f"received nothing for {self._wish.idle_timeout:g} s in the {where}"
            )

    def _report(self) -> None:
        if self._wish.on_progress is not None:
            progress = TransferProgress(
                transferred=self._chunks.size,
                size=None,
                unpacked=self._chunks.unpacked,
                expected=self._expected,
            )
            self._wish.on_progress(progress)
