"""Subject transforms and partitions, computed with the server's rules.

Source: `subject_transform.go` of nats-server. Lengths and positions are in bytes, as in the server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from twinstream.models.names.subjects import is_contained, is_literal_subject
from twinstream.models.names.transform_rules import TokenFunction, token_function, transform_fault
from twinstream.models.version import NO_PARTITIONS_SINCE, Version, parse_version

__all__ = ["partition", "transform_subject"]

_OFFSET_BASIS: Final = 0x811C9DC5
_PRIME: Final = 0x01000193


def partition(key: str | Sequence[str], partitions: int) -> int:
    """Return the partition of a key, as the server's `partition` function computes it.

    The hash is 32-bit FNV-1a.

    Args:
        key: A whole subject, as `{{partition(n)}}` of server 2.12 hashes it. Or a sequence of
            tokens, which are hashed without dots between them, as `{{partition(n,1,2)}}` hashes
            the tokens of these wildcards.
        partitions: The number of partitions.

    Raises:
        ValueError: `partitions` is below 1.
    """
    if partitions < 1:
        raise ValueError(f"partitions must be at least 1, got {partitions}")
    text = key if isinstance(key, str) else "".join(key)
    return _hash(text.encode()) % partitions


def _hash(key: bytes) -> int:
    found = _OFFSET_BASIS
    for byte in key:
        found = ((found ^ byte) * _PRIME) & 0xFFFFFFFF
    return found


def transform_subject(
    source: str, destination: str, subject: str, *, server: str | None = None
) -> str | None:
    """Return the subject to which a stream's transform changes `subject`.

    Return None if the source of the transform does not match `subject`.

    Args:
        source: The source filter of the transform; empty means all subjects.
        destination: The destination of the transform.
        subject: A subject without wildcards.
        server: The server version whose rules apply; None means the newest known.

    Raises:
        ValueError: The server refuses the transform, `subject` is invalid or has wildcards, or the
            transform uses `random`, whose result only the server knows.
    """
    source = source or ">"
    version = parse_version(server)
    fault = transform_fault(source, destination, version)
    if fault:
        raise ValueError(f"{destination}: {fault}")
    if not is_literal_subject(subject):
        raise ValueError(f"cannot publish to {subject!r}")
    if not is_contained(subject, source):
        return None
    if not destination:
        return subject
    sources, targets = source.split("."), destination.split(".")
    raw = [token.encode() for token in subject.split(".")]
    transformed = [_token(target, sources, raw, version) for target in targets if target != ">"]
    if targets[-1] == ">":
        transformed += raw[len(sources) - 1 :]
    return b".".join(transformed).decode("utf-8", "surrogateescape")


def _token(target: str, sources: list[str], tokens: list[bytes], version: Version) -> bytes:
    """Return the token that a token of a transform's destination produces.

    Raises `ValueError` if only the server knows the token, or if the server would crash.
    """
    function = token_function(target, version)
    if function is None:
        return target.encode()
    if function.name == "random":
        raise ValueError(f"{target}: the server chooses the number at random")
    places = [place for place, token in enumerate(sources) if token == "*"]
    # An index below 1 means the first token, as in the server.
    indexes = function.indexes if places or sources[-1] == ">" else ()
    chosen = [tokens[places[index - 1] if index > 0 else 0] for index in indexes]
    if function.name == "partition":
        key = b"".join(chosen) if chosen else b".".join(tokens)
        count = function.number % 2**32  # the server uses the low 32 bits
        if not count and version < NO_PARTITIONS_SINCE:
            raise ValueError(f"{target}: there are 0 partitions, which crash servers before 2.12")
        return str(_hash(key) % count if count else 0).encode()
    return _MAKERS[function.name](chosen[0], function)


def _wildcard(token: bytes, _: TokenFunction) -> bytes:
    return token


def _fits(token: bytes, function: TokenFunction) -> bool:
    return 0 < function.number < len(token)


def _split_from_left(token: bytes, function: TokenFunction) -> bytes:
    place = function.number
    return token[:place] + b"." + token[place:] if _fits(token, function) else token


def _split_from_right(token: bytes, function: TokenFunction) -> bytes:
    place = len(token) - function.number
    return token[:place] + b"." + token[place:] if _fits(token, function) else token


def _slice_from_left(token: bytes, function: TokenFunction) -> bytes:
    return _sliced(token, function.number, 0) if _fits(token, function) else token


def _slice_from_right(token: bytes, function: TokenFunction) -> bytes:
    if not _fits(token, function):
        return token
    return _sliced(token, function.number, len(token) % function.number)


def _sliced(token: bytes, size: int, first: int) -> bytes:
    starts = range(first, len(token), size)
    head = [token[:first]] if first else []
    return b".".join(head + [token[start : start + size] for start in starts])


def _split(token: bytes, function: TokenFunction) -> bytes:
    """Return a token split at the separator, with dots between parts that are not empty."""
    text, separator = token.decode(), function.separator
    parts = text.split(separator) if separator else list(text)
    result = ""
    for number, part in enumerate(parts):
        result += part
        leads = number == 0 and not part
        if number < len(parts) - 1 and parts[number + 1] and not leads:
            result += "."
    return result.encode()


def _left(token: bytes, function: TokenFunction) -> bytes:
    return token[: function.number] if _fits(token, function) else token


def _right(token: bytes, function: TokenFunction) -> bytes:
    return token[-function.number :] if _fits(token, function) else token


_MAKERS: Final[dict[str, Callable[[bytes, TokenFunction], bytes]]] = {
    "wildcard": _wildcard,
    "splitfromleft": _split_from_left,
    "splitfromright": _split_from_right,
    "slicefromleft": _slice_from_left,
    "slicefromright": _slice_from_right,
    "split": _split,
    "left": _left,
    "right": _right,
}
