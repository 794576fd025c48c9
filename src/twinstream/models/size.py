"""How much room messages take in a stream, by the server's own accounting.

These are the numbers that ``max_bytes`` and a stream's ``bytes`` count. Compression does not change
them; files need a little more for indexes. Replicas multiply what a cluster holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinstream.models.generated.config.stream import StorageType

FILE_RECORD = 30
"""Length 4, sequence 8, time 8, length of the subject 2, checksum 8."""

FILE_HEADERS = 4
"""Length of the header block, where there is one."""

MEMORY_RECORD = 16
"""Sequence 8 and time 8."""


def storage_size(
    subject: str,
    payload: int,
    *,
    headers: int = 0,
    messages: int = 1,
    storage: str = StorageType.FILE,
    replicas: int = 1,
) -> int:
    """Return the bytes that messages take.

    ``payload`` is the size of one payload in bytes, ``headers`` the size of its header block on the
    wire, 0 for none. Raises ``ValueError`` for negative numbers and for storage other than file and
    memory.
    """
    for name, number in (("payload", payload), ("headers", headers), ("messages", messages)):
        if number < 0:
            raise ValueError(f"{name} must not be negative, got {number}")
    if replicas < 1:
        raise ValueError(f"replicas must be at least 1, got {replicas}")
    size = len(subject.encode()) + headers + payload
    if storage == StorageType.FILE:
        size += FILE_RECORD + (FILE_HEADERS if headers else 0)
    elif storage == StorageType.MEMORY:
        size += MEMORY_RECORD
    else:
        raise ValueError(f"storage must be file or memory, got {storage!r}")
    return size * messages * replicas


def headers_size(headers: Mapping[str, str | Iterable[str]]) -> int:
    """Return the bytes of a header block on the wire, 0 for no headers.

    A name may have several values; each takes a line of its own.
    """
    if not headers:
        return 0
    block = len(b"NATS/1.0\r\n") + len(b"\r\n")
    for name, given in headers.items():
        values = (given,) if isinstance(given, str) else given
        block += sum(len(name.encode()) + len(value.encode()) + 4 for value in values)
    return block
