"""Write the content of an object to a file.

The content is written to a temporary file, which gets its final name after the content was
verified.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from js_async.backup.disk import create_private, open_regular, sync
from js_async.object_store.infos import ObjectPlace
from js_async.object_store.reader import ObjectReader, chunk_index
from js_async.runtime.concurrency import whole
from twinstream.core.object_store.chunks import Content, ObjectProgress, StoredChunk, resumed_at
from twinstream.core.object_store.errors import DigestMismatch
from twinstream.models import ObjectInfo

__all__ = ["get_file"]

_PIECE: Final = 1 << 20


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
    failed call keeps its temporary file, and the next call continues this file.
    """
    path = await whole(lambda: _target(path))
    token = info.nuid if resume else place.api.transport.tokens.name()
    part = path.with_name(f".{path.name}.{token}.part")
    content, seq = None, 1
    try:
        if resume and await whole(part.exists):
            index, content = await chunk_index(place, info), Content(info)
            seq = await whole(lambda: _resumed(part, index, content))
        async with ObjectReader(place, info, timeout, on_progress, content, seq) as reader:
            file = await whole(lambda: _opened(part))
            try:
                while portion := await reader._portion():
                    await whole(partial(file.writelines, portion))
                await whole(lambda: _synced(file))
            finally:
                await whole(file.close)
        await whole(lambda: _moved(part, path))
    except BaseException as error:
        # A file with wrong content is removed even with `resume`, because a call that continues it
        # could never succeed.
        if not resume or isinstance(error, DigestMismatch):
            await whole(lambda: part.unlink(missing_ok=True))
        raise
    return reader.info


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


def _opened(part: Path) -> BinaryIO:
    if part.exists():
        # `_resumed` has verified that this is a regular file.
        return open(part, "ab")
    return create_private(part)


def _resumed(part: Path, index: list[StoredChunk], content: Content) -> int:
    """Truncate the temporary file of an earlier call to whole chunks; add these to `content`.

    Returns the sequence of the next chunk, or 1 if the file has all chunks.
    """
    with open_regular(part) as file:
        count, size = resumed_at(index, os.fstat(file.fileno()).st_size)
        left = size
        while left and (piece := file.read(min(left, _PIECE))):
            content.resume(piece)
            left -= len(piece)
    os.truncate(part, size)
    content.resumed(count)
    return index[count].seq if count < len(index) else 1


def _synced(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _moved(part: Path, path: Path) -> None:
    os.replace(part, path)
    sync([path.parent])
