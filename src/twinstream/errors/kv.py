"""Errors of keys and values. Those of the bucket itself are in `errors.bucket`.

::

        TwinstreamError
        ├── KeyNotFound (KeyError)            the key has no value
        │   └── KeyDeleted                    the value was deleted, purged, or expired
        └── PastNotHeld                       a past state of the bucket is not stored whole
        BadArgument ───── InvalidKey          a key, filter or bucket name is invalid
        WrongLastSequence ─ RevisionMismatch  another client wrote the key first
                          └── KeyExists       the key to create already has a value
        JetStreamError ── ValueTooLarge       the value is larger than the bucket's limit
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from twinstream.errors.api import WrongLastSequence
from twinstream.errors.base import JetStreamError, TwinstreamError
from twinstream.errors.bucket import BucketNotFound, bucket_not_found
from twinstream.errors.publish import NoStream
from twinstream.errors.server_errors import StreamNotFound
from twinstream.errors.usage import BadArgument
from twinstream.models.error_codes import (
    MESSAGE_TOO_LARGE,
    STORE_REFUSED,
    TTL_DISABLED,
    WRONG_LAST_SEQUENCE,
)
from twinstream.models.picklable_error import harmless_line

if TYPE_CHECKING:
    from twinstream.models import Timestamp
    from twinstream.records.entry import Entry

__all__ = [
    "InvalidKey",
    "KeyDeleted",
    "KeyExists",
    "KeyNotFound",
    "PastNotHeld",
    "RevisionMismatch",
    "ValueTooLarge",
    "bucket_error",
    "raise_for_bucket",
]


class InvalidKey(BadArgument):
    """A key, a filter of keys or the name of a bucket contains invalid characters.

    What to do: Use tokens of A-Z a-z 0-9 - / _ = between dots, or the codec `Base64Keys`.
    """


class KeyNotFound(TwinstreamError, KeyError):
    """The key has no value, or does not have the requested revision.

    What to do: Pass `default` to `get`, or write the key.
    """

    def __init__(self, bucket: str, key: str, reason: str = "") -> None:
        self.bucket = bucket
        """Name of the bucket."""
        self.key = key
        """The key."""
        super().__init__(f"bucket {bucket} has no key {key!r}{reason}")

    def __str__(self) -> str:
        # The text of a `KeyError` is the repr of its argument, with quotes.
        return harmless_line(LookupError.__str__(self))


class KeyDeleted(KeyNotFound):
    """The value of the key was deleted or purged, or has expired; `entry` is the marker.

    What to do: Pass `default` to `get`, or write the key.
    """

    def __init__(self, entry: Entry[Any]) -> None:
        self.entry = entry
        marker = f" now: revision {entry.revision} is a marker ({entry.operation.value})"
        super().__init__(entry.bucket, entry.key, marker)


class PastNotHeld(TwinstreamError):
    """The bucket does not hold its whole state at a past moment.

    Revisions that may belong to this state were removed, or the bucket did not exist yet.

    What to do: Choose a later moment, or keep more revisions with a larger `history`.
    """

    def __init__(
        self,
        message: str,
        *,
        earliest_revision: int | None = None,
        earliest_time: Timestamp | None = None,
        held_to: int = 0,
    ) -> None:
        super().__init__(message)
        self.earliest_revision = earliest_revision
        """The revision from which on all states are held; None if only the present one is."""
        self.earliest_time = earliest_time
        """When the server stored this revision, or None."""
        self.held_to = held_to
        """The states up to this revision are held, too. 0 if no earlier state is."""

    @classmethod
    def removed(
        cls,
        bucket: str,
        moment: str,
        reason: str,
        earliest: tuple[int, Timestamp] | None,
        held_to: int,
    ) -> PastNotHeld:
        """Return the error for a state of which revisions may have been removed.

        `earliest` are the earliest revision of a state that is held, and its time.

        Args:
            bucket: Name of the bucket.
            moment: The requested time.
            reason: Why the state is not known.
            earliest: The first time for which the state is known, or None.
            held_to: The last time for which the state is known, or None.
        """
        held = "only its present state"
        if earliest is not None:
            held = f"its states from {earliest[1].rfc3339()} (revision {earliest[0]}) on"
        early = f", and those up to revision {held_to}" if held_to else ""
        return cls(
            f"bucket {bucket} does not hold its whole state at {moment}: {reason}; it holds"
            f" {held}{early}",
            earliest_revision=None if earliest is None else earliest[0],
            earliest_time=None if earliest is None else earliest[1],
            held_to=held_to,
        )

    @classmethod
    def before_creation(cls, bucket: str, moment: str, created: Timestamp) -> PastNotHeld:
        """Return the error for a moment before the bucket was created.

        Args:
            bucket: Name of the bucket.
            moment: The requested time.
            created: When the bucket was created.
        """
        return cls(
            f"bucket {bucket} has no state at {moment}: it was created at {created.rfc3339()}",
            earliest_time=created,
        )

    @classmethod
    def in_memory(cls, bucket: str, moment: str, first: Timestamp | None) -> PastNotHeld:
        """Return the error for a moment before the first stored revision of a bucket in memory.

        `first` is the time of this revision, None if no revision is stored.

        Args:
            bucket: Name of the bucket.
            moment: The requested time.
            first: The time of the first stored revision, or None.
        """
        held = "it holds no revision"
        if first is not None:
            held = f"its first stored revision is from {first.rfc3339()}"
        return cls(
            f"bucket {bucket} does not hold its whole state at {moment}: it is stored in memory, so"
            f" a restart of its server may have removed revisions; {held}",
            earliest_time=first,
        )

    @classmethod
    def not_copied(cls, bucket: str, moment: str, reason: str) -> PastNotHeld:
        """Return the error for a moment after the last message that a mirror has copied.

        Args:
            bucket: Name of the bucket.
            moment: The requested time.
            reason: Why the state is not known.
        """
        return cls(
            f"bucket {bucket} may not hold its whole state at {moment}: it is a mirror, and"
            f" {reason}; try again when it has caught up, or read its origin"
        )


class RevisionMismatch(WrongLastSequence):
    """The key is at another revision than expected (10071, 10164).

    `expected` and `actual` are revisions; 0 means that the key has no revision. `actual` is None if
    the server does not report it. Then another write of the key is in flight, which may still fail
    (10164, in replicated buckets).

    What to do: Read the key again, and write with its present revision.
    """

    expected: int

    @classmethod
    def of(
        cls, error: WrongLastSequence, key: str, expected: int, attempts: int = 0
    ) -> RevisionMismatch:
        """Return the error for a write of `key` that required the revision `expected`.

        `attempts` is the number of attempts that writes of other clients made fail, until the
        timeout.

        Args:
            error: The error of the server.
            key: The key.
            expected: The revision that the write required.
            attempts: Number of failed attempts.
        """
        actual = error.actual
        what = "another write is in flight" if actual is None else f"it is at {actual}"
        text = (
            f"key {key!r} is not at revision {expected}, {what}; get it again before the next try"
        )
        if attempts:
            text = (
                f"key {key!r} was not created before the timeout: writes of other clients made"
                f" {attempts} attempts fail, at the last one {what}; get it before the next try"
            )
        mismatch = cls(
            text,
            code=error.code,
            err_code=error.err_code,
            subject=error.subject,
        )
        mismatch.expected, mismatch.actual = expected, actual
        return mismatch


class KeyExists(RevisionMismatch):
    """The key to create already has a value, which is in `entry`.

    What to do: Use `update` with the revision of `entry`, or `put`.
    """

    entry: Entry[Any]

    @classmethod
    def at(cls, entry: Entry[Any]) -> KeyExists:
        """Return the error for a key whose value is in `entry`."""
        error = cls(
            f"key {entry.key!r} of bucket {entry.bucket} exists, at revision {entry.revision};"
            " use update to replace it conditionally, or put to replace it always",
            code=400,
            err_code=WRONG_LAST_SEQUENCE,
        )
        error.expected, error.actual, error.entry = 0, entry.revision, entry
        return error


class ValueTooLarge(JetStreamError):
    """The value with its headers is larger than the bucket's `max_value_size` (10054).

    What to do: Store the value in an object store, or raise `max_value_size` of the bucket.
    """


def bucket_error(bucket: str, error: TwinstreamError) -> TwinstreamError:
    """Return the error of the bucket for an error of its stream.

    If `error` has no counterpart for buckets, it is returned itself, possibly with advice.
    """
    if isinstance(error, NoStream | StreamNotFound) and not isinstance(error, BucketNotFound):
        return bucket_not_found(bucket, "key_value", error)
    if isinstance(error, JetStreamError):
        if error.err_code == MESSAGE_TOO_LARGE:
            return ValueTooLarge(
                f"bucket {bucket}: the value with its headers is larger than max_value_size;"
                " conditional writes add about 150 bytes of headers",
                code=error.code,
                err_code=error.err_code,
                subject=error.subject,
            )
        if error.err_code == TTL_DISABLED:
            error.add_advice(f"set limit_marker_ttl of bucket {bucket}, which cannot be undone")
        if error.err_code == STORE_REFUSED:
            error.add_advice(
                f"bucket {bucket} has reached max_bytes; servers before 2.14 then also refuse to"
                " overwrite a key. The markers of delete and purge need room, too. To make room,"
                " remove old markers and revisions with purge_deletes(older_than=0), remove a key"
                " without a marker, so that watchers do not hear of it, with"
                " bind_stream(bucket.stream_name).purge(subject=...), or raise max_bytes with"
                " change"
            )
    return error


def raise_for_bucket(bucket: str, error: TwinstreamError) -> NoReturn:
    """Raise the error of the bucket for an error of its stream (see `bucket_error`)."""
    meant = bucket_error(bucket, error)
    if meant is error:
        raise error
    for note in getattr(error, "__notes__", ()):
        meant.add_note(note)
    raise meant from error
