"""The client of a REST catalog, with the credentials, time limits and files of the lake."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO
from requests import Session
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from twinstream.lake.errors import StorageUnusable
from twinstream.lake.iceberg.errors import CATALOG_ERRORS, catalog_error, cause_of
from twinstream.lake.iceberg.file_io import ObjectFileIO
from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.objects.client import current_credentials
from twinstream.lake.objects.credentials import environment_variable
from twinstream.lake.objects.folder import StorageSettings

__all__ = ["LakeCatalog", "catalog_properties", "open_catalog"]

# Seconds until a connection counts as failed.
_CONNECT: Final = 10

# How often a request that changes nothing is repeated without an answer, or after an error of the
# server, with pauses from 0.2 s on. A commit is repeated only after its outcome is known.
_RETRIES: Final = Retry(
    6,
    backoff_factor=0.1,
    status_forcelist=(429, 500, 502, 503, 504),
    allowed_methods=("GET", "HEAD"),
    raise_on_status=False,
)


# A vacuum removes the files that no snapshot names, so it needs all of them.
_ALL_SNAPSHOTS: Final = {"snapshot-loading-mode": "all"}


class LakeCatalog(RestCatalog):
    """A REST catalog whose tables have their metadata in the object store of a lake."""

    def __init__(self, name: str, storage: StorageSettings, **properties: str) -> None:
        self._storage: Final = storage
        super().__init__(name, **properties)

    def _create_session(self) -> Session:
        """Return a session whose requests end. pyiceberg has no setting for this."""
        session = super()._create_session()
        limits: Any = {"timeout": (_CONNECT, self._storage.timeout)}
        session.request = partial(session.request, **limits)  # type: ignore[method-assign]
        for adapter in session.adapters.values():
            if isinstance(adapter, HTTPAdapter):
                adapter.max_retries = _RETRIES
        return session

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        """Return the files of the lake, whatever the properties of a table say."""
        return ObjectFileIO(self._storage)


def catalog_properties(settings: CatalogSettings, storage: StorageSettings) -> dict[str, str]:
    """Return the properties of pyiceberg for a catalog, with the credentials of now.

    Raises `StorageUnusable` if a variable with credentials is not set.
    """
    found = {**settings.properties, "uri": settings.uri, **_ALL_SNAPSHOTS}
    if settings.warehouse:
        found["warehouse"] = settings.warehouse
    if settings.token_env:
        found["token"] = _variable(settings.token_env)
    if settings.credential_env:
        found["credential"] = _variable(settings.credential_env)
    if settings.is_signed:
        if storage.region:
            found.setdefault("rest.signing-region", storage.region)
            found.setdefault("client.region", storage.region)
        credentials = current_credentials(storage)
        if credentials is not None:
            found["client.access-key-id"] = credentials.access_key
            found["client.secret-access-key"] = credentials.secret_key
            if credentials.token:
                found["client.session-token"] = credentials.token
    return found


def open_catalog(
    settings: CatalogSettings, storage: StorageSettings, properties: dict[str, str]
) -> LakeCatalog:
    """Return a client of the catalog. Raises `StorageError` if the catalog cannot be used."""
    try:
        return LakeCatalog("twinstream", storage, **properties)
    except CATALOG_ERRORS as error:
        raise catalog_error(settings, "cannot open the catalog", error) from cause_of(error)
    except (AttributeError, TypeError, ValueError) as error:
        reason = _reason(settings, error)
        raise StorageUnusable(f"cannot open the catalog {settings}: {reason}") from error


def _reason(settings: CatalogSettings, error: Exception) -> str:
    if settings.is_signed and isinstance(error, AttributeError):  # of credentials that are `None`
        return (
            "its requests are signed, and there are no credentials; set access_key_env and"
            " secret_key_env, or profile, in [storage]"
        )
    return f"{error}; check the properties of [catalog]"


def _variable(name: str) -> str:
    return environment_variable(name, "[catalog]", "the pipeline")
