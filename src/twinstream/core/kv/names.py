"""Validate the names of buckets and keys, and build the subjects of keys.

Source: ADR-6, ADR-8. The server accepts any subject as a key, so a bucket may contain keys that
    break the rules. The rules apply only to keys that the caller passes, not to keys that are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from twinstream.core.read.mirrored import (
    destinations,
    first_tokens,
    is_read_only_copy,
    origin_subject,
)
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import BadArgument, InvalidKey, NotABucket
from twinstream.models import StreamConfig, StreamSource
from twinstream.models.buckets.streams import KEY_VALUE_PREFIX

__all__ = [
    "PREFIX",
    "KeySubjects",
    "bucket_of",
    "check_bucket",
    "check_filter_of_keys",
    "check_key",
    "check_revision",
    "check_stored_key",
    "stream_of",
    "written_behind",
]

PREFIX: Final = KEY_VALUE_PREFIX
"""The prefix of the stream names of buckets."""

_DEFAULT_API: Final = "$JS.API"
_BUCKET: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY: Final = re.compile(r"[A-Za-z0-9/_=-]+(?:\.[A-Za-z0-9/_=-]+)*")
_NOT_IN_KEY: Final = re.compile(r"[^A-Za-z0-9/_=.-]")
# The server limits stream names to 255 bytes.
_LONGEST_BUCKET: Final = 255 - len(PREFIX)


def check_bucket(bucket: str) -> str:
    """Return the name of a bucket. Raises `InvalidKey` if it is invalid."""
    if not isinstance(bucket, str) or not _BUCKET.fullmatch(bucket):
        raise InvalidKey(
            f"bucket name {bucket!r}: one or more of the characters A-Z a-z 0-9 _ - are allowed"
        )
    if len(bucket) > _LONGEST_BUCKET:
        raise InvalidKey(f"bucket name {bucket[:20]!r}… is longer than {_LONGEST_BUCKET}")
    return bucket


def stream_of(bucket: str) -> str:
    """Return the name of a bucket's stream. Raises `InvalidKey` for an invalid bucket name."""
    return PREFIX + check_bucket(bucket)


def bucket_of(stream: str) -> str:
    """Return the name of the bucket in a stream."""
    return stream.removeprefix(PREFIX)


def check_key(key: str) -> str:
    """Return a key. Raises `InvalidKey` with the reason if it is invalid."""
    if isinstance(key, str) and _KEY.fullmatch(key):
        return key
    raise InvalidKey(f"key {key!r} {_fault(key)}")


def check_stored_key(key: str) -> str:
    """Return a key that another client may have stored. Raises `InvalidKey` if no key can be it.

    Any subject without wildcards is the key of a stored message.
    """
    if isinstance(key, str) and (_KEY.fullmatch(key) or _is_literal(key)):
        return key
    raise InvalidKey(f"key {key!r} {_fault(key)}")


def _is_literal(text: str) -> bool:
    if "*" in text or ">" in text:
        # The caller means a wildcard, although the server takes `a*` literally.
        return False
    try:
        check_subject(f"$KV.{text}")
    except BadArgument:
        return False
    return True


def check_filter_of_keys(pattern: str) -> str:
    """Return a filter of keys, which may have wildcards. Raises `InvalidKey` if it is invalid."""
    if isinstance(pattern, str) and _KEY.fullmatch(pattern):
        return pattern
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
                f"filter {pattern!r}: a wildcard must be a whole token between dots; {token!r}"
                " would only match itself"
            )
        if not _is_literal(token):
            raise InvalidKey(f"filter {pattern!r} {_fault(pattern)}")
    return pattern


def _fault(key: object) -> str:
    """Return what makes `key` invalid, in words that continue "the key ..."."""
    if not isinstance(key, str):
        several = isinstance(key, list | tuple | set | frozenset)
        return "is not a string" + ("; this call takes one key" if several else "")
    if not key:
        return "is empty"
    # A wildcard is reported only if the key contains no other forbidden character.
    found = _NOT_IN_KEY.search(key.replace("*", "").replace(">", "")) or _NOT_IN_KEY.search(key)
    if found and found.group() in "*>":
        return (
            f"contains {found.group()!r}, but this call takes one key: get_many(keys) returns the"
            " entries of many keys, and watch(keys, history=True) their revisions"
        )
    if found:
        return (
            f"contains {found.group()!r}; allowed are the characters A-Z a-z 0-9 - / _ = and dots"
            " between them. A key codec supports other keys, and get_key_value(...,"
            " validate_keys=False) opens a bucket for subjects against the rules"
        )
    return "begins or ends with a dot, or contains two dots in a row"


@frozen
class KeySubjects:
    """The subjects of a bucket's keys, for reads and for writes."""

    stored: str
    """The prefix of stored subjects, `$KV.<bucket>.`. A mirror usually has its origin's."""
    written: str
    """The prefix of the subjects for writes. An API prefix other than `$JS.API` is part of it.

    `to_write` returns the whole subject. It differs if a mirror transforms or selects subjects.
    """
    origin: str | None = None
    """The stream to which writes are published, if this bucket is its mirror; else None."""
    origin_api: str | None = None
    """The API prefix for requests to the origin, if it differs from this bucket's; else None."""
    routes: tuple[StreamSource, ...] = ()
    """The mirrors from this bucket to the origin, if one of them transforms or selects subjects."""
    refusal: str | None = None
    """Why keys cannot be written; None if they can."""

    @classmethod
    def of(
        cls, config: StreamConfig, api_prefix: str, origins: Sequence[StreamConfig] = ()
    ) -> KeySubjects:
        """Return the subjects of the bucket whose stream has the configuration `config`.

        `api_prefix` is that of the client's API subjects. `origins` are the streams that a mirror
        copies, the nearest one first. Raises `NotABucket` if the keys of a mirror have no common
        prefix.
        """
        chain = (config, *origins)
        mirrors = [each.mirror for each in chain if each.mirror is not None]
        # The first stream of the chain that is not a mirror; None if `origins` does not reach it.
        last = chain[len(mirrors)] if len(chain) > len(mirrors) else None
        if not mirrors:
            own = f"$KV.{bucket_of(config.name or '')}."
            return cls(own, written_behind(api_prefix, own), refusal=_refusal(config, own))
        origin = mirrors[-1].name or ""
        written = f"$KV.{bucket_of(origin)}."
        stored: str | None = written if origin.startswith(PREFIX) else None
        # From the origin to this bucket, each transform replaces the prefix of stored subjects.
        for mirror in reversed(mirrors):
            if mirror.subject_transforms:
                stored = first_tokens(destinations(mirror), 2)
        if stored is None or not stored.startswith("$KV."):
            raise NotABucket(
                f"stream {config.name} mirrors {mirrors[0].name} in such a way that its keys have"
                " no common prefix $KV.<bucket>.; read it as a stream"
            )
        external = None
        for mirror in mirrors:
            if mirror.external is not None and mirror.external.api:
                external = mirror.external.api
        changes = any(each.subject_transforms or each.filter_subject for each in mirrors)
        return cls(
            stored,
            written_behind(external or api_prefix, written),
            origin,
            external,
            tuple(mirrors) if changes else (),
            None if last is None else _refusal(last, written),
        )

    def key(self, subject: str) -> str:
        """Return the key of a stored subject."""
        return subject.removeprefix(self.stored)

    def at_origin(self, key: str) -> str:
        """Return the subject of a key in the stream to which it is written.

        Raises `BadArgument` if the key cannot be written through this bucket.
        """
        if self.refusal is not None:
            raise BadArgument(self.refusal)
        subject = self.stored + key
        for mirror in self.routes:
            found = origin_subject(mirror, subject)
            if found is None:
                raise BadArgument(
                    f"key {key!r} cannot be written through a mirror that does not copy it, or"
                    f" whose transforms cannot be reversed: write to the origin, {self.origin}"
                )
            subject = found
        return subject

    def to_write(self, key: str) -> str:
        """Return the subject to which a key is written. Raises as `at_origin` does."""
        if not self.routes and self.refusal is None:
            return self.written + key
        prefix = self.written[: self.written.index("$KV.")]
        return prefix + self.at_origin(key)


def _refusal(config: StreamConfig, stored: str) -> str | None:
    """Return why the keys of a bucket cannot be written, or None if they can."""
    if not is_read_only_copy(config, stored):
        return None
    names = ", ".join(each.name or "" for each in config.sources or ())
    return (
        f"bucket {bucket_of(config.name or '')} is a copy that can only be read, because its stream"
        f" has no subjects: write to the buckets that it copies: {names}"
    )


def written_behind(api_prefix: str, subject: str) -> str:
    """Return the subject to write to; it begins with `api_prefix` unless that is the default."""
    # The server maps subjects with the prefix of a domain to those without the prefix.
    return subject if api_prefix == _DEFAULT_API else f"{api_prefix}.{subject}"


def check_revision(revision: object, *, instead: str = "") -> int:
    """Return a revision. Raises `BadArgument` if it is invalid.

    `instead` is text to append to the message of the error.
    """
    if isinstance(revision, bool) or not isinstance(revision, int) or revision < 1:
        raise BadArgument(f"a revision is a whole number from 1 up, got {revision!r}{instead}")
    return revision
