"""The metadata of objects, as the caller passes it and as it is stored.

Source: ADR-20. Clients write metadata in different forms, and this module accepts all of them. The
timestamp of the message replaces `mtime`, because nats.go writes the year 1 and nats-py writes an
empty text for deleted objects. The links of nats.js have no `nuid`, and their `bucket` is the
bucket of their target. Digests may use either alphabet of base64, with or without padding, and
their prefix may be in upper or lower case.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

from attrs import field, frozen

from twinstream.core.arguments.check_arguments import check_kind, check_whole
from twinstream.core.object_store.names import (
    check_nuid,
    check_object_name,
    is_info_subject,
    object_name_of,
)
from twinstream.core.read.stream_message import StreamMessage
from twinstream.core.wire.headers import check_mapping, encode_headers, header_pairs
from twinstream.core.wire.response import read_json, write_json
from twinstream.errors import BadArgument, InvalidObjectInfo
from twinstream.models import (
    DecodeError,
    ObjectInfo,
    ObjectOptions,
    Timestamp,
    decode,
    encode,
    evolve,
)
from twinstream.records.headers import HeaderValues

__all__ = [
    "ObjectMeta",
    "digest_bytes",
    "digest_text",
    "info_bytes",
    "is_link",
    "listed_info",
    "new_info",
    "object_headers",
    "object_meta",
    "read_info",
]

_SHA_256: Final = "sha-256="
# A hash of 256 bits in hexadecimal digits.
_HEX: Final = re.compile(r"[0-9A-Fa-f]{64}")
# The stored values of these members are ignored: the message itself has this information, and
# `error` is what `listed_info` returns for metadata that cannot be read.
_OUR_OWN: Final = ("mtime", "revision", "bucket", "error")
# Metadata has numbers of at most 64 bits.
_BEHIND_64_BITS: Final = 1 << 64


def _chunk_size(value: int | None) -> int | None:
    return None if value is None else check_whole(value, "chunk_size")


def _texts(value: Mapping[str, str] | None) -> dict[str, str] | None:
    if value is None:
        return None
    check_kind(value, Mapping, "metadata", "a mapping of texts")
    given = dict(value)
    for word in (*given, *given.values()):
        check_kind(word, str, "each key and value of metadata", "a text")
    return given


def object_headers(value: HeaderValues | None) -> dict[str, list[str]] | None:
    """Return headers with a list of values for each name; raises `BadArgument` for invalid ones."""
    if value is None:
        return None
    check_mapping(value)
    # This call validates the headers. Its result is not needed.
    encode_headers(value)
    found: dict[str, list[str]] = {}
    for name, each in header_pairs(value):
        found.setdefault(name, []).append(each)
    return found


@frozen
class ObjectMeta:
    """The caller's metadata for a new object."""

    name: str = field(converter=check_object_name)
    """The name of the object, which must not be empty."""
    description: str | None = field(default=None, kw_only=True)
    """Free text."""
    headers: dict[str, list[str]] | None = field(
        default=None, kw_only=True, converter=object_headers
    )
    """The headers of the object, with one or more values for each name."""
    metadata: dict[str, str] | None = field(default=None, kw_only=True, converter=_texts)
    """Free keys and values."""
    chunk_size: int | None = field(default=None, kw_only=True, converter=_chunk_size)
    """Maximum size of a chunk in bytes. The default is 128 KiB."""


def object_meta(given: str | ObjectMeta) -> ObjectMeta:
    """Return `given` if it is an `ObjectMeta`, else an `ObjectMeta` with this name."""
    return given if isinstance(given, ObjectMeta) else ObjectMeta(given)


def new_info(
    meta: ObjectMeta, bucket: str, nuid: str, *, chunk_size: int, size: int, chunks: int, sha: bytes
) -> ObjectInfo:
    """Return the metadata of an object with new content; `sha` is the hash of the content."""
    return ObjectInfo(
        name=meta.name,
        description=meta.description,
        headers=meta.headers,
        metadata=meta.metadata,
        options=ObjectOptions(max_chunk_size=chunk_size),
        bucket=bucket,
        nuid=nuid,
        size=size,
        chunks=chunks,
        digest=digest_text(sha),
    )


def info_bytes(info: ObjectInfo, now: datetime) -> bytes:
    """Return an object's metadata as JSON. `now` becomes its `mtime`, which some clients read."""
    return write_json(encode(evolve(info, mtime=Timestamp.of(now), revision=None)))


def is_link(info: ObjectInfo) -> bool:
    """Return whether `info` is a link to an object or a store; False for a deleted link."""
    return info.options is not None and info.options.link is not None and not info.deleted


def read_info(message: StreamMessage, bucket: str) -> ObjectInfo:
    """Return the metadata in a message of a bucket. Raises `InvalidObjectInfo` if it is invalid.

    The name is that in the subject, by which the object is found.
    """
    name = object_name_of(message.subject)
    try:
        loaded = read_json(message.data)
        if not isinstance(loaded, dict):
            raise ValueError("it is no JSON object")
        if not is_info_subject(message.subject):
            raise ValueError("its subject is not that of an object's name")
        info = decode(_members(cast("dict[str, Any]", loaded)), ObjectInfo)
        _check_nuid(info)
        _check_numbers(info)
    except (DecodeError, ValueError) as error:
        raise InvalidObjectInfo(
            f"{bucket}: the description of {name!r} at sequence {message.seq} cannot be read:"
            f" {error}"
        ) from error
    return evolve(info, name=name, bucket=bucket, mtime=message.time, revision=message.seq)


def _check_nuid(info: ObjectInfo) -> None:
    """Raise `ValueError` for a NUID that is missing, or that would match content of other objects.

    Links and deleted objects need no NUID.
    """
    if info.nuid:
        check_nuid(info.nuid)
    elif info.chunks and not info.deleted:
        raise ValueError("it has no nuid, by which its content is found")


def _check_numbers(info: ObjectInfo) -> None:
    chunk_size = None if info.options is None else info.options.max_chunk_size
    numbers = {"size": info.size, "chunks": info.chunks, "options.max_chunk_size": chunk_size}
    for member, number in numbers.items():
        if number is not None and not 0 <= number < _BEHIND_64_BITS:
            raise ValueError(f"{member} is negative or has more than 64 bits")


def _members(loaded: dict[str, Any]) -> dict[str, Any]:
    """Return the members of an object's info, without those that this client computes."""
    members = {name: value for name, value in loaded.items() if name not in _OUR_OWN}
    headers: object = members.get("headers")
    if isinstance(headers, dict):
        # Some applications with nats-py write a string instead of a list of strings.
        pairs = cast("dict[str, Any]", headers).items()
        members["headers"] = {
            name: [value] if isinstance(value, str) else value for name, value in pairs
        }
    return members


def listed_info(message: StreamMessage, bucket: str) -> ObjectInfo:
    """Return the metadata in a message.

    If the metadata is invalid, return metadata that has only the name and, in `unknown`, the text
    of the error under `error`.
    """
    try:
        return read_info(message, bucket)
    except InvalidObjectInfo as error:
        return ObjectInfo(
            name=object_name_of(message.subject),
            bucket=bucket,
            mtime=message.time,
            revision=message.seq,
            unknown={"error": str(error)},
        )


def digest_text(sha: bytes) -> str:
    """Return a hash in the form of the digest in the metadata."""
    return f"SHA-256={urlsafe_b64encode(sha).decode()}"


def digest_bytes(text: str) -> bytes:
    """Return the hash in a digest, which may have any of the forms that clients write.

    Raises `BadArgument` for another algorithm or invalid base64.
    """
    if not isinstance(text, str) or text[: len(_SHA_256)].lower() != _SHA_256:
        raise BadArgument(f"digest {text!r} is not one of SHA-256, such as {_SHA_256.upper()}…")
    if _HEX.fullmatch(text, len(_SHA_256)):
        # In base64, a hash has 43 characters.
        return bytes.fromhex(text[len(_SHA_256) :])
    encoded = text[len(_SHA_256) :].rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError as error:
        raise BadArgument(f"digest {text!r} is not base64: {error}") from error
