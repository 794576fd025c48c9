"""The names and subjects of object stores.

A store is the stream `OBJ_<bucket>`. It stores the content of objects as chunks on
`$O.<bucket>.C.<nuid>`, and the metadata of each object on `$O.<bucket>.M.<name in base64>`.

Source: ADR-20. Clients encode names in the URL-safe alphabet of base64, but nats.java uses the
standard alphabet. If the two encodings of a name differ, the metadata may be under either subject.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from attrs import field, frozen

from twinstream.core.wire.subjects import check_filter
from twinstream.errors import BadArgument
from twinstream.models.buckets.streams import OBJECT_STORE_PREFIX

__all__ = [
    "ObjectSubjects",
    "bucket_of",
    "check_bucket",
    "check_nuid",
    "check_object_name",
    "is_info_subject",
    "object_name_of",
    "stream_of",
]

_BUCKET: Final = re.compile(r"[A-Za-z0-9_-]+")
# A NUID is part of the subject of a purge and may be from another client, so it must not contain
# wildcards.
_NUID: Final = re.compile(r"[A-Za-z0-9_=+/-]+")
_LONGEST_BUCKET: Final = 200


def check_bucket(bucket: object) -> str:
    """Return the name of a bucket. Raises `BadArgument` if it is invalid."""
    if not isinstance(bucket, str) or not _BUCKET.fullmatch(bucket):
        raise BadArgument(
            f"a bucket name consists of letters, digits, underscores and hyphens, got {bucket!r}"
        )
    if len(bucket) > _LONGEST_BUCKET:
        raise BadArgument(f"bucket {bucket[:20]}… is longer than {_LONGEST_BUCKET} characters")
    return bucket


def check_object_name(name: object) -> str:
    """Return an object's name. Raises `BadArgument` if it is empty, too long or not a string."""
    if not isinstance(name, str) or not name:
        raise BadArgument(f"an object needs a name, a text that is not empty, got {name!r}")
    try:
        encoded = _url_safe(name)
    except UnicodeEncodeError as error:
        raise BadArgument(f"object name {name!r} is not valid Unicode") from error
    try:
        check_filter(encoded)
    except BadArgument:
        raise BadArgument(
            f"object name {name[:20]!r}… is too long: it has {len(name.encode())} bytes, about"
            " 2,200 fit into a subject"
        ) from None
    return name


def check_nuid(nuid: str | None) -> str:
    """Return the NUID, the unique name of an object's content. Raises `BadArgument` if invalid."""
    if not nuid or not _NUID.fullmatch(nuid):
        raise BadArgument(f"{nuid!r} is not a valid NUID of an object's content")
    return nuid


def stream_of(bucket: str) -> str:
    """Return the name of a bucket's stream. Raises `BadArgument` for an invalid bucket name."""
    return f"{OBJECT_STORE_PREFIX}{check_bucket(bucket)}"


def bucket_of(stream: str | None) -> str | None:
    """Return the bucket of a stream, None if the name is not that of an object store."""
    if stream is None or not stream.startswith(OBJECT_STORE_PREFIX):
        return None
    bucket = stream[len(OBJECT_STORE_PREFIX) :]
    return bucket if _BUCKET.fullmatch(bucket) else None


def object_name_of(subject: str) -> str:
    """Return the object's name in a subject of metadata.

    If the subject is not that of a name, return its end after `$O.<bucket>.M.`.
    """
    token = subject.split(".", 3)[-1]
    return token if (name := _decoded(token)) is None else name


def is_info_subject(subject: str) -> bool:
    """Return whether a subject is one that a client uses for the metadata of an object."""
    return _decoded(subject.split(".", 3)[-1]) is not None


def _decoded(token: str) -> str | None:
    """Return the name in a token, None if no client encodes a name in this way."""
    # Clients use one of two alphabets of base64.
    text = token.replace("+", "-").replace("/", "_")
    try:
        name = urlsafe_b64decode(text).decode()
    except ValueError:
        return None
    # The decoder skips characters outside of the alphabet.
    return name if name and _url_safe(name) == text else None


def _url_safe(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode()


@frozen
class ObjectSubjects:
    """The subjects of one bucket."""

    bucket: str = field(converter=check_bucket)

    @property
    def all(self) -> list[str]:
        """The subjects of the bucket's stream."""
        return [self.all_chunks, self.all_infos]

    @property
    def all_chunks(self) -> str:
        """A filter that matches the content of all objects."""
        return f"$O.{self.bucket}.C.>"

    @property
    def all_infos(self) -> str:
        """A filter that matches the metadata of all objects."""
        return f"$O.{self.bucket}.M.>"

    def chunks(self, nuid: str | None) -> str:
        """Return the subject of an object's content; raises `BadArgument` for an invalid NUID."""
        return f"$O.{self.bucket}.C.{check_nuid(nuid)}"

    def info(self, name: str) -> str:
        """Return the subject of an object's metadata. Raises `BadArgument` for an invalid name."""
        return f"$O.{self.bucket}.M.{_url_safe(check_object_name(name))}"

    def literal_info(self, token: str) -> str | None:
        """Return the subject that ends with a token which encodes no name, None if it does."""
        subject = f"$O.{self.bucket}.M.{token}"
        try:
            check_filter(subject)
        except BadArgument:
            return None
        tokens = token.split(".")
        has_wildcard = "*" in tokens or ">" in tokens
        return None if has_wildcard or is_info_subject(subject) else subject

    def other_info(self, name: str) -> str | None:
        """Return the subject that nats.java uses for the metadata, None if it is the same."""
        standard = b64encode(check_object_name(name).encode()).decode()
        return None if standard == _url_safe(name) else f"$O.{self.bucket}.M.{standard}"
