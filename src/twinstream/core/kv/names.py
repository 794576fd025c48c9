"""Names of buckets and keys, and the subjects that stand for keys.

Source: ADR-6, ADR-8. The server itself takes any subject for a key, so what is read is never
judged by these rules, only what is written or asked for.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from twinstream.core.kv.errors import InvalidKey
from twinstream.errors import BadArgument
from twinstream.models import StreamConfig
from twinstream.models.buckets.streams import KEY_VALUE_PREFIX

__all__ = [
    "PREFIX",
    "KeySubjects",
    "bucket_of",
    "check_bucket",
    "check_filter_of_keys",
    "check_key",
    "check_revision",
    "stream_of",
    "written_behind",
]

PREFIX: Final = KEY_VALUE_PREFIX
"""What the names of the streams of buckets begin with."""

_DEFAULT_API: Final = "$JS.API"
_BUCKET: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY: Final = re.compile(r"[A-Za-z0-9/_=-]+(?:\.[A-Za-z0-9/_=-]+)*")
_NOT_IN_KEY: Final = re.compile(r"[^A-Za-z0-9/_=.-]")
# 255 bytes are the server's limit for the name of a stream.
_LONGEST_BUCKET: Final = 255 - len(PREFIX)


def check_bucket(bucket: str) -> str:
    """Return the name of a bucket, or raise `InvalidKey`."""
    if not isinstance(bucket, str) or not _BUCKET.fullmatch(bucket):
        raise InvalidKey(
            f"bucket name {bucket!r}: one or more of the characters A-Z a-z 0-9 _ - are allowed"
        )
    if len(bucket) > _LONGEST_BUCKET:
        raise InvalidKey(f"bucket name {bucket[:20]!r}… is longer than {_LONGEST_BUCKET}")
    return bucket


def stream_of(bucket: str) -> str:
    """Return the name of the stream of a bucket; raises `InvalidKey`."""
    return PREFIX + check_bucket(bucket)


def bucket_of(stream: str) -> str:
    """Return the name of the bucket of a stream."""
    return stream.removeprefix(PREFIX)


def check_key(key: str) -> str:
    """Return a key, or raise `InvalidKey` that says what is wrong with it."""
    if isinstance(key, str) and _KEY.fullmatch(key):
        return key
    raise InvalidKey(f"key {key!r} {_fault(key)}")


def check_filter_of_keys(pattern: str) -> str:
    """Return a filter of keys, wildcards allowed as whole tokens, or raise `InvalidKey`."""
    if not isinstance(pattern, str) or not pattern:
        raise InvalidKey(f"filter {pattern!r} {_fault(pattern)}")
    tokens = pattern.split(".")
    for number, token in enumerate(tokens, 1):
        if token == "*" or (token == ">" and number == len(tokens)):
            continue
        if token == ">":
            raise InvalidKey(f"filter {pattern!r}: '>' may only be the last token")
        if "*" in token or ">" in token:
            raise InvalidKey(
                f"filter {pattern!r}: a wildcard is a whole token between dots; {token!r} would"
                " match nothing but itself"
            )
        if not _KEY.fullmatch(token):
            raise InvalidKey(f"filter {pattern!r} {_fault(pattern)}")
    return pattern


def _fault(key: object) -> str:
    if not isinstance(key, str):
        return "is no text"
    if not key:
        return "is empty"
    found = _NOT_IN_KEY.search(key.replace("*", "").replace(">", "")) or _NOT_IN_KEY.search(key)
    if found:
        return (
            f"holds {found.group()!r}; allowed are the characters A-Z a-z 0-9 - / _ = and dots"
            " between them. A key codec makes other keys possible"
        )
    return "begins or ends with a dot, or has two in a row"


@frozen
class KeySubjects:
    """Where the keys of a bucket are: which subjects hold them, and where writes go."""

    stored: str
    """What stored subjects begin with: `$KV.BUCKET.`, of the origin's bucket for a mirror."""
    written: str
    """What subjects of writes begin with: as `stored`, behind the API prefix if there is one."""
    origin: str | None = None
    """The stream that writes go to, where it is another one: this bucket is a mirror."""
    origin_api: str | None = None
    """The API prefix by which the origin is reached, where it is another one."""

    @classmethod
    def of(cls, config: StreamConfig, api_prefix: str) -> KeySubjects:
        """Return the subjects of the bucket that a stream holds."""
        mirror = config.mirror
        if mirror is None:
            stored = f"$KV.{bucket_of(config.name or '')}."
            return cls(stored, written_behind(api_prefix, stored))
        origin = mirror.name or ""
        stored = written = f"$KV.{bucket_of(origin)}."
        for transform in mirror.subject_transforms or ():
            if transform.dest and transform.dest.endswith(".>"):
                stored = transform.dest[:-1]
        external = mirror.external.api if mirror.external is not None else None
        return cls(stored, written_behind(external or api_prefix, written), origin, external)

    def key(self, subject: str) -> str:
        """Return the key that a stored subject stands for."""
        return subject.removeprefix(self.stored)


def written_behind(api_prefix: str, subject: str) -> str:
    """Return the subject that a key is written to by way of an API prefix."""
    # The server maps what comes behind the prefix of a domain to the plain subject.
    return subject if api_prefix == _DEFAULT_API else f"{api_prefix}.{subject}"


def check_revision(revision: object, *, instead: str = "") -> int:
    """Return a revision, or raise `BadArgument`; `instead` is added to the error."""
    if isinstance(revision, bool) or not isinstance(revision, int) or revision < 1:
        raise BadArgument(f"a revision is a whole number from 1 up, got {revision!r}{instead}")
    return revision
