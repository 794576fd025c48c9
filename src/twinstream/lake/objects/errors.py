"""Explain the errors of clients of an object store. Their own texts have many lines."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from twinstream.lake.errors import StorageError
from twinstream.lake.objects.client import bucket_of
from twinstream.lake.objects.folder import ObjectFolder

if TYPE_CHECKING:
    from obstore.store import S3Store

__all__ = ["is_no_bucket", "is_unsupported", "requests", "storage_error"]

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
# deltalake shows causes on lines of their own, with an arrow in colour.
_LEVELS: Final = re.compile(r"\s*(?:\x1b\[\d*m)?↳(?:\x1b\[\d*m)?\s*")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_UNSUPPORTED: Final = "NotImplemented"
_NO_BUCKET: Final = "NoSuchBucket"

# The maximum number of characters of an unknown error that are shown.
_SHOWN: Final = 200


def storage_error(folder: ObjectFolder, what: str, error: Exception) -> StorageError:
    """Return an error that says what failed, why, and what to do; the caller raises it.

    `error` is from obstore or deltalake. Its own text is not shown, because it may have the
    signature of the request.
    """
    reason, remedy = _explained(folder, str(error))
    return StorageError(f"{what}: {reason}; {remedy}")


@contextmanager
def requests(folder: ObjectFolder, verb: str, key: str) -> Generator[S3Store]:
    """Yield the client for requests, whose errors get the names of the bucket and the key.

    Raises `StorageError` for the errors of obstore.
    """
    from obstore.exceptions import BaseError

    client = bucket_of(folder)
    try:
        yield client
    except (BaseError, OSError) as error:
        raise storage_error(folder, f"cannot {verb} {folder / key}", error) from error


def is_no_bucket(error: Exception) -> bool:
    """Return whether an error of obstore means that the bucket does not exist."""
    return _NO_BUCKET in str(error)


def is_unsupported(error: StorageError) -> bool:
    """Return whether an error of `storage_error` means that the server lacks a feature."""
    return _UNSUPPORTED in str(error)


def _explained(folder: ObjectFolder, text: str) -> tuple[str, str]:
    text = _LEVELS.sub(": ", text)
    status, code = _STATUS.search(text), _CODE.search(text)
    name = code[1] if code else ""
    if name == _NO_BUCKET:
        return f"there is no bucket {folder.bucket}", "create it, or correct path"
    if status and status[1] in ("401", "403"):
        return (
            f"the server refuses access ({name or status[1]})",
            "check the credentials and the region of [storage], and what they may do in the bucket",
        )
    if status:
        return f"the server answered {status[1]} {name}".rstrip(), "check the server"
    server = folder.storage.endpoint or "the server"
    if "kind: Timeout" in text or "timed out" in text:
        return (
            f"no answer from {server} within {folder.storage.timeout:g} s",
            "check the server, or set a longer timeout in [storage]",
        )
    if "HTTP error" in text or "Connect" in text:
        return f"no answer from {server}", "check the endpoint of [storage], and the network"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason")
    return first[:_SHOWN], "check the settings of [storage]"
