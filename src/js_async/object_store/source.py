"""Sources of an object's content: bytes, a binary file, or an iterable of bytes."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from inspect import iscoroutinefunction
from pathlib import PurePath
from typing import Any, Final, Protocol, cast

from js_async.runtime.concurrency import Items, aside, portions
from twinstream.errors import BadArgument

__all__ = ["ObjectSource", "Readable", "pieces", "size_of"]

# Bytes per read. Each read of a file switches threads, which costs little at this size.
_PIECE: Final = 1 << 20


class Readable(Protocol):
    """A binary file, or another object with its `read` method."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes. The result is empty at the end."""
        ...


ObjectSource = bytes | bytearray | memoryview | Readable | Iterable[bytes] | AsyncIterable[bytes]
"""The content of an object: bytes, a binary file, or an iterable of bytes."""


_Several = Iterable[bytes] | AsyncIterable[bytes]


def size_of(source: ObjectSource) -> int | None:
    """Return the size of a source in bytes, or None if it is unknown."""
    return memoryview(source).nbytes if isinstance(source, bytes | bytearray | memoryview) else None


async def pieces(source: ObjectSource) -> Items[memoryview]:
    """Iterate over the content of a source in pieces of at most 1 MiB.

    A slow file does not block other tasks or threads. Raises `BadArgument` if the source is not an
    `ObjectSource`, or if its content is not bytes.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        whole = _view(source)
        for at in range(0, len(whole), _PIECE):
            yield whole[at : at + _PIECE]
        return
    if isinstance(source, str):
        raise BadArgument(
            "the content of an object is bytes, got a text: encode it, or pass the path of a file"
            " to put_file"
        )
    read = getattr(source, "read", None)
    # An object whose `read` does not return bytes directly is used as an iterable.
    if callable(read) and not iscoroutinefunction(read):
        while True:
            data = await aside(lambda: cast("Readable", source).read(_PIECE))
            if not data:
                _view(data)
                return
            yield _view(data)
    async for portion in portions(_several(source)):
        for item in portion:
            whole = _view(item)
            for at in range(0, len(whole), _PIECE):
                yield whole[at : at + _PIECE]


def _several(source: Any) -> _Several:
    if isinstance(source, Iterable | AsyncIterable):
        return source  # pyright: ignore[reportUnknownVariableType]
    instead = "; pass the path of a file to put_file" if isinstance(source, PurePath) else ""
    raise BadArgument(
        "an object is put from bytes, a binary file or an iterable of bytes, got"
        f" {type(source).__name__}{instead}"
    )


def _view(data: object) -> memoryview:
    kind, is_text = type(data).__name__, isinstance(data, str)
    if isinstance(data, bytes | bytearray | memoryview):
        view = memoryview(cast("bytes", data))
        if view.contiguous:
            return view.cast("B")
    hint = ": open the file in binary mode, or encode the text" if is_text else ""
    raise BadArgument(f"the content of an object must come as bytes, got {kind}{hint}")
