"""Errors of buckets: of key-value buckets and of object stores.

::

        StreamNotFound ── BucketNotFound      no bucket of that name exists
        StreamExists ──── BucketExists        a bucket of that name has other settings
        TwinstreamError ─ NotABucket          the stream does not have the layout of a bucket
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from twinstream.errors.api import StreamExists
from twinstream.errors.base import TwinstreamError
from twinstream.errors.server_errors import StreamNotFound
from twinstream.models.error_codes import STREAM_NOT_FOUND

if TYPE_CHECKING:
    from twinstream.records.difference import Difference

__all__ = ["BucketExists", "BucketNotFound", "NotABucket", "bucket_exists", "bucket_not_found"]

Kind = Literal["key_value", "object_store"]
"""The word for a kind of bucket in the names of calls, such as `create_key_value`."""


class BucketNotFound(StreamNotFound):
    """No key-value bucket or object store of that name exists (10059).

    What to do: Create the bucket, or correct its name and the domain of the JetStream context.
    """


class BucketExists(StreamExists):
    """A key-value bucket or an object store of that name exists with other settings (10058).

    `differences` has the expected and the actual value of each setting of the bucket that differs.
    It is empty if the actual settings were not requested from the server.

    What to do: Take the bucket as it is with `get_key_value` or `get_object_store`, or change it
    with `create_or_update_key_value` or `create_or_update_object_store`.
    """

    _next = ""  # The text names the call.


class NotABucket(TwinstreamError):
    """The stream exists, but has the layout of no key-value bucket or object store.

    What to do: Correct the name, or read the stream with `get_stream`.
    """


def bucket_not_found(bucket: str, kind: Kind, error: TwinstreamError) -> BucketNotFound:
    """Return the error for a bucket whose stream does not exist, according to `error`."""
    text = f"bucket {bucket} does not exist: create it with create_{kind}"
    if isinstance(error, StreamNotFound):
        return BucketNotFound(text, code=error.code, err_code=error.err_code, subject=error.subject)
    return BucketNotFound(text, code=404, err_code=STREAM_NOT_FOUND)


def bucket_exists(
    bucket: str, kind: Kind, error: StreamExists, found: tuple[Difference, ...]
) -> BucketExists:
    """Return the error for a bucket that exists with other settings, whose differences are `found`.

    Without differences, another client has deleted the bucket after the server returned `error`.
    """
    state = "exists, and another client deletes it"
    if found:
        fixed = "storage" in {each.field for each in found}
        advice = "the storage of a bucket is fixed" if fixed else f"update_{kind} changes them"
        listed = "; ".join(map(str, found))
        state = f"exists with other settings: {listed}; {advice}, and get_{kind} opens it as it is"
    exists = BucketExists(
        f"bucket {bucket} {state}",
        code=error.code,
        err_code=error.err_code,
        subject=error.subject,
    )
    exists.differences = found
    return exists
