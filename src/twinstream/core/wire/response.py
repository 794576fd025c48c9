"""Read and write JSON: JetStream requests, responses, and documents in stored messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, cast

from twinstream.core.wire.header_text import valid
from twinstream.errors import BadArgument, InvalidResponse, api_error

__all__ = [
    "check_success",
    "read_answer",
    "read_api_answer",
    "read_json",
    "read_object",
    "write_json",
]


# The beginning of `type` in each response of the API, also in those of 2.11.
_API_TYPE: Final = "io.nats.jetstream.api."


def read_json(text: str | bytes) -> object:
    """Parse JSON; raises ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def write_json(members: Mapping[str, Any]) -> bytes:
    """Return compact JSON. Raises `BadArgument` for text that cannot be encoded as UTF-8."""
    try:
        return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        path, text = _unfit(members)
        raise BadArgument(f"{path}: {text!r} is not valid Unicode") from error


def _unfit(value: object, path: str = "") -> tuple[str, str]:
    """Return path and value of the first text that UTF-8 cannot encode, or two empty strings."""
    parts: Iterable[tuple[str, object]] = ()
    if isinstance(value, str):
        return ("", "") if valid(value) == value else (path, value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        parts = chain(
            ((path or "a key", name) for name in members),
            ((f"{path}.{name}" if path else name, each) for name, each in members.items()),
        )
    elif isinstance(value, list):
        items = cast("list[object]", value)
        parts = ((f"{path}[{index}]", each) for index, each in enumerate(items))
    return next((found for place, each in parts if (found := _unfit(each, place))[0]), ("", ""))


def read_object(text: bytes) -> dict[str, Any]:
    """Parse a JSON object; raises ValueError for anything else."""
    # The bytes are UTF-8. Decoding them here saves `json.loads` the detection of the encoding.
    loaded = read_json(str(text, "utf-8"))
    if not isinstance(loaded, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", loaded)


def read_answer(payload: bytes, subject: str) -> dict[str, Any]:
    """Return the members of a response to a request on `subject`.

    Raises a `JetStreamError` for an error response. Raises `InvalidResponse` for a response that is
    not from JetStream, for example if a core NATS subscriber on the same subject replied.
    """
    try:
        members = read_object(payload)
    except ValueError as error:
        raise InvalidResponse(f"{subject}: not a JetStream response: {payload[:80]!r}") from error
    refusal: object = members.get("error")
    if isinstance(refusal, dict):
        raise api_error(cast("dict[str, object]", refusal), subject=subject)
    if refusal is not None:
        raise InvalidResponse(
            f"{subject}: `error` in the response is not an object: {payload[:80]!r}"
        )
    return members


def read_api_answer(payload: bytes, subject: str) -> dict[str, Any]:
    """Return the members of a response of the JetStream API, like `read_answer`.

    Raises `InvalidResponse` also for a response without a `type` of the API, for example `{}`.
    """
    members = read_answer(payload, subject)
    if not str(members.get("type")).startswith(_API_TYPE):
        raise InvalidResponse(f"{subject}: the response has no type of the API: {payload[:80]!r}")
    return members


def check_success(model: object, subject: str) -> None:
    """Raise `InvalidResponse` for a response that should report success, but does not."""
    if getattr(model, "success", True) is not True:
        raise InvalidResponse(f"{subject}: the response reports neither success nor an error")
