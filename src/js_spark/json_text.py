"""Text and JSON: reading the one document in a payload, and writing a value back as text."""

from __future__ import annotations

import json

from js_spark.misfit import Misfit

__all__ = ["parse", "to_json"]


def parse(payload: bytes) -> object:
    """Return the one JSON value in a payload, or raise :class:`Misfit`.

    Stricter than the standard library's default: a member that occurs twice, NaN and infinite
    numbers are refused, because no reading of them is the right one.
    """
    try:
        return json.loads(
            payload.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Misfit(f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise Misfit("nested too deeply") from None
    except ValueError as error:
        raise Misfit(f"not JSON that can be kept: {error}") from None


def to_json(value: object) -> str:
    """Return JSON text of a parsed value, on one line, readable where it is valid Unicode."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
        text = json.dumps(value, separators=(",", ":"))
    return text


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} occurs twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")
