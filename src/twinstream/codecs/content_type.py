"""The header `Content-Type`: written in this form, and read in any case of letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from twinstream.codecs.json_text import JSON
from twinstream.errors.payload import PayloadError

__all__ = ["CONTENT_TYPE", "check_content_type", "header_of", "media_type"]

CONTENT_TYPE: Final = "Content-Type"
_JSON_SUFFIX: Final = "+json"


def header_of(headers: Iterable[str] | Mapping[str, str], name: str) -> str | None:
    """Return a header's name as it is written in `headers`, in any case, or None without it."""
    if name in headers:
        return name
    lower = name.lower()
    return next((each for each in headers if each.lower() == lower), None)


def media_type(text: str) -> str:
    """Return the media type without its parameters, in lower case."""
    return text.partition(";")[0].strip().lower()


def check_content_type(expected: str, headers: Mapping[str, str]) -> None:
    """Raise `PayloadError` if the headers name another media type than the expected one.

    Types with the suffix `+json` are JSON. Without the header, or with an empty one, or if
    `expected` is empty, every payload is accepted.
    """
    name = header_of(headers, CONTENT_TYPE)
    found = "" if name is None else media_type(headers[name])
    wanted = media_type(expected)
    if not found or not wanted or found == wanted:
        return
    if wanted == JSON and found.endswith(_JSON_SUFFIX):
        return
    raise PayloadError("", f"Content-Type is {found}, expected {wanted}")
