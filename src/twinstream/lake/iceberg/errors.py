"""Explain the errors of a catalog. Their own texts are those of programs in other languages."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)
from requests import RequestException

from twinstream.lake.errors import StorageError
from twinstream.lake.iceberg.settings import CatalogSettings

__all__ = ["CATALOG_ERRORS", "catalog_error", "cause_of", "is_refusal"]

# `NotImplementedError` is raised for requests that the catalog does not offer, and
# `ValidationError` for answers that are not those of a catalog.
CATALOG_ERRORS: Final = (
    *(RESTError, OAuthError, RequestException, NotImplementedError, ValidationError),
)
"""Errors of pyiceberg for requests that the catalog has not carried out, or perhaps not."""

_ACCESS: Final = (ForbiddenError, UnauthorizedError, AuthorizationExpiredError, OAuthError)

# The maximum number of characters of an answer that are shown.
_SHOWN: Final = 200


def is_refusal(error: BaseException | None) -> bool:
    """Return whether the catalog has refused a request, so that it was not carried out."""
    return isinstance(error, (*_ACCESS, BadRequestError, NotImplementedError))


def cause_of(error: Exception) -> Exception | None:
    """Return what an error for the user is raised from.

    A `ValidationError` shows the answer of the catalog, which may have a token or keys.
    """
    return None if isinstance(error, ValidationError) else error


def catalog_error(settings: CatalogSettings, what: str, error: Exception) -> StorageError:
    """Return an error that says what failed, why, and what to do.

    The caller raises it from `cause_of(error)`.
    """
    # The text of a request's error has its URL, whose query may have a signature.
    answer = " ".join(str(error).split())[:_SHOWN]
    if isinstance(error, _ACCESS):
        reason = f"the catalog {settings} refuses access ({answer})"
        remedy = "check the credentials and properties of [catalog]"
    elif isinstance(error, RequestException):
        reason = f"the catalog {settings} does not answer ({type(error).__name__})"
        remedy = "check that it runs, and uri"
    elif isinstance(error, ValidationError):
        wrong = (".".join(map(str, each["loc"])) for each in error.errors(include_input=False))
        reason = f"an answer is not that of a catalog ({error.title}: {', '.join(wrong)})"
        remedy = f"check uri of [catalog], which is {settings}, and oauth2-server-uri if it is set"
    else:
        reason = f"the catalog {settings} answered: {answer}"
        remedy = "check the catalog, and the settings of [catalog]"
    return StorageError(f"{what}: {reason}; {remedy}")
