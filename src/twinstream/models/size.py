"""The storage size of messages in a stream, by the server's own accounting.

These are the numbers counted by `max_bytes` and a stream's `bytes`. Compression does not change
them; files need a little more for indexes. Replicas multiply the size in a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinstream.models.generated.config.stream import StorageType

FILE_RECORD = 30
"""Length 4, sequence 8, time 8, length of the subject 2, checksum 8."""

FILE_HEADERS = 4
"""Length of the header block, if there is one."""

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
    """Return the bytes of storage that messages need.

    Args:
        subject: The subject of each message.
        payload: Bytes of one payload.
        headers: Bytes of the header block on the wire, 0 for none; see `headers_size`.
        messages: The number of messages.
        storage: `file` or `memory`.
        replicas: The number of replicas.

    Raises:
        ValueError: A number is negative, or `storage` is neither file nor memory.
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

    A name may have several values; each is a separate line.
    """
    if not headers:
        return 0
    block = len(b"NATS/1.0\r\n") + len(b"\r\n")
    for name, given in headers.items():
        values = (given,) if isinstance(given, str) else given
        block += sum(len(name.encode()) + len(value.encode()) + 4 for value in values)
    return block
