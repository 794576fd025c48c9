"""The storage size of messages in a stream, as the server counts it.

The server compares this size with `max_bytes`, and reports it as `bytes` in the state of a stream.
Compression does not change it. The files on disk are a little larger because of their indexes. In a
cluster, each replica needs this size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinstream.models.generated.config.stream import StorageType

FILE_RECORD = 30
"""The bytes of a message in a file, without subject, headers and payload.

They are: length 4, sequence 8, time 8, length of the subject 2, checksum 8.
"""

FILE_HEADERS = 4
"""The additional bytes of a message with headers in a file: the length of the header block."""

MEMORY_RECORD = 16
"""The bytes of a message in memory without subject, headers and payload: sequence 8, time 8."""


def storage_size(
    subject: str,
    payload: int,
    *,
    headers: int = 0,
    messages: int = 1,
    storage: str = StorageType.FILE,
    replicas: int = 1,
) -> int:
    """Return the storage size of messages of equal size on all replicas together, in bytes.

    Args:
        subject: The subject of each message.
        payload: The size of one payload in bytes.
        headers: The size of the header block of one message in bytes, as `headers_size` returns
            it; 0 for no headers.
        messages: The number of messages.
        storage: `file` or `memory`.
        replicas: The number of replicas.

    Raises:
        ValueError: A number is negative, `replicas` is below 1, or `storage` is neither `file` nor
            `memory`.
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
    """Return the size of a message's header block in bytes; 0 for no headers.

    A name may have several values; each value is a separate line of the block.

    Args:
        headers: The headers, with one value or several values for a name.
    """
    if not headers:
        return 0
    block = len(b"NATS/1.0\r\n") + len(b"\r\n")
    for name, given in headers.items():
        values = (given,) if isinstance(given, str) else given
        block += sum(len(name.encode()) + len(value.encode()) + 4 for value in values)
    return block
