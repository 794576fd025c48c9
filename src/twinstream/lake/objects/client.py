"""Clients of an object store: of the package obstore, and the options of the package deltalake."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from twinstream.lake.errors import StorageUnusable
from twinstream.lake.objects.credentials import Credentials, Renewed, credentials_of
from twinstream.lake.objects.folder import ObjectFolder, StorageSettings

if TYPE_CHECKING:
    from obstore.store import RetryConfig, S3Config, S3Credential, S3Store

__all__ = ["bucket_of", "current_credentials", "delta_options"]

# How often a request is repeated that got no answer or an error of the server, and for how long.
_RETRIES: Final = 6
_LONGEST: Final = timedelta(seconds=90)
_FIRST_PAUSE: Final = timedelta(milliseconds=100)
_LONGEST_PAUSE: Final = timedelta(seconds=5)

# Seconds until a connection counts as failed.
_CONNECT: Final = 10

# Credentials without an end are read again in this time, because another program may replace them.
_READ_AGAIN: Final = timedelta(minutes=10)


@lru_cache(maxsize=64)
def bucket_of(folder: ObjectFolder) -> S3Store:
    """Return the client for the objects of a folder. Keys are relative to the folder.

    A process has one client for each folder, which keeps its connections open.
    """
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError as missing:
        if missing.name != "obstore":
            raise
        raise StorageUnusable(
            f"{folder} needs obstore, which is not installed; install Twinstream with its extra"
            " lake (in a clone: pip install '.[lake]')"
        ) from missing
    credentials = _credentials(folder.storage)
    return S3Store(
        folder.bucket,
        prefix=folder.prefix or None,
        config=_config(folder.storage),
        client_options={
            "allow_http": folder.storage.endpoint.startswith("http://"),
            "connect_timeout": f"{_CONNECT}s",
            "timeout": timedelta(seconds=folder.storage.timeout),
        },
        retry_config=_retries(),
        credential_provider=None if credentials is None else _provider(credentials),
    )


def delta_options(storage: StorageSettings) -> dict[str, str]:
    """Return the options of deltalake for a table in the store, with the credentials of now."""
    found = {
        "conditional_put": "etag",
        "timeout": f"{storage.timeout:g}s",
        "connect_timeout": f"{_CONNECT}s",
        "max_retries": str(_RETRIES),
        "retry_timeout": f"{_LONGEST.total_seconds():g}s",
        "allow_http": str(storage.endpoint.startswith("http://")).lower(),
    }
    found |= {f"aws_{name}": str(value) for name, value in _config(storage).items()}
    current = current_credentials(storage)
    if current is not None:
        found["aws_access_key_id"] = current.access_key
        found["aws_secret_access_key"] = current.secret_key
        # Without a token of its own, deltalake would take that of the environment.
        found["aws_session_token"] = current.token or ""
    return found


def current_credentials(storage: StorageSettings) -> Credentials | None:
    """Return the credentials of now that the settings name, or `None` if they name none.

    Raises `StorageUnusable` if there are none where the settings say.
    """
    credentials = _credentials(storage)
    return None if credentials is None else credentials.current()


@lru_cache(maxsize=64)
def _credentials(storage: StorageSettings) -> Renewed | None:
    """Return the credentials of a process, which all its clients share."""
    return credentials_of(storage)


def _config(storage: StorageSettings) -> S3Config:
    found: S3Config = {}
    if storage.endpoint:
        found["endpoint"] = storage.endpoint
    if storage.region:
        found["region"] = storage.region
    elif not any(name in os.environ for name in ("AWS_REGION", "AWS_DEFAULT_REGION")):
        found["region"] = "us-east-1"
    if storage.encryption:
        found["server_side_encryption"] = storage.encryption
    if storage.kms_key:
        found["sse_kms_key_id"] = storage.kms_key
    return found


def _retries() -> RetryConfig:
    return {
        "max_retries": _RETRIES,
        "retry_timeout": _LONGEST,
        "backoff": {"init_backoff": _FIRST_PAUSE, "max_backoff": _LONGEST_PAUSE},
    }


def _provider(credentials: Renewed) -> Callable[[], S3Credential]:
    credentials.current()  # an error is raised as it is here, while obstore changes it below

    def current() -> S3Credential:
        found = credentials.current()
        return {
            "access_key_id": found.access_key,
            "secret_access_key": found.secret_key,
            "token": found.token,
            "expires_at": found.expires or datetime.now(UTC) + _READ_AGAIN,
        }

    return current
