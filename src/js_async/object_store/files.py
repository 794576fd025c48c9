"""Write the content of an object to a file.

The content is written to a temporary file, which gets its final name after the content was
verified.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from js_async.object_store.chunk_index import chunk_index
from js_async.object_store.infos import ObjectPlace
from js_async.object_store.reader import ObjectReader, next_portion, restart
from js_async.runtime.concurrency import whole
from twinstream.core.object_store.chunks import Content, ObjectProgress, StoredChunk, resumed_at
from twinstream.core.on_failure import OnFailure
from twinstream.disk.safe_files import create_private, open_regular, sync, temporary_stem
from twinstream.errors import DigestMismatch
from twinstream.models import ObjectInfo

__all__ = ["get_file"]

_PIECE: Final = 1 << 20
# The prefix of temporary files that no later call continues.
_ONCE: Final = "once-"
_PLAIN_NUID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
# The end of the name of a temporary file. Those of other programs are unlikely to be so long.
_LEFTOVER: Final = re.compile(r"[A-Za-z0-9_-]{20,85}\.part")


async def get_file(
    place: ObjectPlace,
    info: ObjectInfo,
    path: Path,
    *,
    resume: bool,
    timeout: float,
    on_progress: Callable[[ObjectProgress], None] | None,
) -> ObjectInfo:
    """Write the content of an object to a file and return the object's metadata.

    The file at `path` is replaced by the complete content, or stays as it is. With `resume`, a
    failed call keeps its temporary file, and the next call continues this file. If the complete
    file does not match the digest, the object is read again from its beginning. Temporary files
    that killed calls have left for the same `path` are removed.
    """
    path = await whole(lambda: _target(path))
    token = _part_token(info.nuid) if resume else f"{_ONCE}{place.api.transport.tokens.name()}"
    stem = temporary_stem(path)
    part = path.with_name(f"{stem}.{token}.part")
    leftovers = await whole(lambda: _leftovers(path))
    once = f"{stem}.{_ONCE}"
    await whole(lambda: _remove([each for each in leftovers if each.name.startswith(once)]))
    content, seq, files, is_kept = None, 1, ExitStack(), resume
    try:
        # The stack also gets the file if the call is cancelled while the file is opened.
        file = await whole(lambda: files.enter_context(_open_locked(part)))
        if resume and await whole(lambda: file.tell() > 0):
            index, content = await chunk_index(place, info), Content(info)
            seq = await whole(lambda: _resume(part, index, content))
        async with ObjectReader(place, info, timeout, on_progress, content, seq) as reader:
            await _write(reader, file)
            await whole(lambda: _sync(file))
        await whole(lambda: _move(part, path))
        is_kept = True
    except BlockingIOError:
        # Another call writes the file, so this call must not remove it.
        is_kept = True
        raise
    except DigestMismatch:
        # A call that continues the file could never succeed.
        is_kept = False
        raise
    finally:
        await whole(lambda: _close(files, None if is_kept else part))
    await whole(lambda: _remove(leftovers))
    return reader.info


async def _write(reader: ObjectReader, file: BinaryIO) -> None:
    """Append the pieces of a reader to a file. Write it again if its content must be read again."""
    while True:
        try:
            while portion := await next_portion(reader):
                await whole(partial(file.writelines, portion))
        except DigestMismatch:
            if not await restart(reader):
                raise
            await whole(lambda: _clear(file))
        else:
            return


def _clear(file: BinaryIO) -> None:
    file.seek(0)
    file.truncate()


def _close(files: ExitStack, unwanted: Path | None) -> None:
    # Remove the file before its lock is released, so that no other call uses it.
    with files:
        if unwanted is not None:
            unwanted.unlink(missing_ok=True)


def _part_token(nuid: str | None) -> str:
    """Return a name for the temporary file of a content; a NUID may contain slashes."""
    nuid = nuid or ""
    if _PLAIN_NUID.fullmatch(nuid):
        return nuid
    return hashlib.sha256(nuid.encode()).hexdigest()


def _target(path: Path) -> Path:
    """Return the path of the file that will be replaced or created.

    A symbolic link is resolved, because a rename would replace the link itself. Raises `OSError`
    for a folder, and for a device or FIFO, which a rename would replace as well.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a regular file")
    return target


def _open_locked(part: Path) -> BinaryIO:
    """Open the temporary file at its end, or create it; lock it until it is closed.

    Raises `BlockingIOError` if another call has locked it.
    """
    while True:
        file = _unlock(part)
        with OnFailure(file.close):
            if not _is_locked(file):
                raise BlockingIOError(errno.EAGAIN, "another call is writing this file", str(part))
            # A call that removes leftovers may have removed the file before it was locked.
            if part.exists() and os.path.samestat(os.fstat(file.fileno()), part.stat()):
                return file
        file.close()


def _unlock(part: Path) -> BinaryIO:
    if part.exists():
        # Raises `OSError` for a FIFO, a device or a folder.
        open_regular(part).close()
        return open(part, "ab")
    return create_private(part)


def _is_locked(file: BinaryIO) -> bool:
    """Lock a file; return False if another process or call has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # The file system has no locks.
        pass
    return True


def _leftovers(path: Path) -> list[Path]:
    """Return the temporary files of other calls with this target, which may have been killed.

    The folder may contain many files, so a call lists it once.
    """
    start = f"{temporary_stem(path)}."
    names = (name for name in os.listdir(path.parent) if name.startswith(start))
    return [path.with_name(name) for name in names if _LEFTOVER.fullmatch(name, len(start))]


def _remove(leftovers: list[Path]) -> None:
    """Remove temporary files of killed calls: files that no call has locked.

    A file that cannot be locked or removed stays.
    """
    for each in leftovers:
        with suppress(OSError), open_regular(each) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            each.unlink()


def _resume(part: Path, index: list[StoredChunk], content: Content) -> int:
    """Truncate the temporary file of an earlier call to whole chunks; add these to `content`.

    Returns the sequence of the next chunk, or 1 if the file has all chunks.
    """
    with open_regular(part) as file:
        count, size = resumed_at(index, os.fstat(file.fileno()).st_size)
        remaining = size
        while remaining and (piece := file.read(min(remaining, _PIECE))):
            content.resume(piece)
            remaining -= len(piece)
    os.truncate(part, size)
    content.resumed(count)
    return index[count].seq if count < len(index) else 1


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _move(part: Path, path: Path) -> None:
    os.replace(part, path)
    sync([path.parent])
