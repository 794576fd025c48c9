"""Errors for pulls that ended with a status after which a retry does not help."""

from __future__ import annotations

import math
import re
from typing import Final

from twinstream.core.consume.pull_request import PullLimits
from twinstream.core.wire.status import Kind, Status
from twinstream.errors import (
    ConsumerDeleted,
    ConsumerIsPush,
    InvalidPullRequest,
    NoResponders,
    PullError,
    PullRefused,
    TwinstreamError,
)
from twinstream.models.digits import natural

__all__ = ["of_consumer", "pull_error", "refused_limit"]


_GO_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "\u00b5s": 1e-6, "ns": 1e-9}
_GO_PART: Final = r"(\d{1,19}(?:\.\d{1,9})?)(h|ms|m|s|\u00b5s|ns)"
_GO_DURATION: Final = rf"(?:{_GO_PART})+"


def pull_error(status: Status, limits: PullLimits) -> TwinstreamError:
    """Return the error for a status after which a retry does not help."""
    match status.kind:
        case Kind.DELETED:
            return ConsumerDeleted("the consumer was deleted while it was pulled from")
        case Kind.NOT_PULL:
            return ConsumerIsPush(
                "a push consumer cannot be pulled from; receive with Stream.push_messages"
            )
        case Kind.NO_RESPONDERS:
            return NoResponders(
                "no responders for the pull: no such consumer (one that is not durable is deleted"
                " when idle), no leader at the moment, or JetStream is not available"
            )
        case Kind.REFUSED:
            return _refused(status, limits)
        case Kind.BUSY:
            return PullRefused("max_waiting", None, None, str(status))
        case Kind.BAD_REQUEST:
            return InvalidPullRequest(
                f"the server refuses the pull request: {status}{_advice(status)}"
            )
        case _:
            return PullError(f"the pull ended with {status}")


def _advice(status: Status) -> str:
    """Return what to correct in a pull request that the server refused, or ""."""
    if "priority group missing" in status.text.lower():
        return "; the consumer has priority groups: pass priority=Priority(group=...)"
    return ""


def of_consumer(error: TwinstreamError, stream: str, name: str) -> TwinstreamError:
    """Put stream and consumer before the text of an error, and return the error.

    They are needed because an application may pull from several consumers.
    """
    error.args = (f"{stream}/{name}: {error}",)
    return error


def _refused(status: Status, limits: PullLimits) -> PullRefused:
    name, allowed = refused_limit(status.text)
    asked = {
        "max_batch": limits.max_messages,
        "max_bytes": limits.max_bytes,
        "max_expires": limits.expires,
    }
    return PullRefused(name, asked[name], allowed, str(status))


def refused_limit(refusal: str) -> tuple[str, float | None]:
    """Return the name of the consumer's limit that a request exceeds, and its value if known.

    The server sends, for example, "Exceeded MaxRequestBatch of 2", or "MaxRequestExpires of 1m30s".
    """
    allowed = refusal.rpartition(" of ")[2]
    lower = refusal.lower()
    if "maxrequestbatch" in lower:
        return "max_batch", natural(allowed)
    if "maxrequestexpires" in lower:
        return "max_expires", _go_seconds(allowed)
    return "max_bytes", natural(allowed)


def _go_seconds(text: str) -> float | None:
    """Return the seconds of a duration in Go's format, or None for other text."""
    if not re.fullmatch(_GO_DURATION, text):
        return None
    return math.fsum(float(value) * _GO_UNITS[unit] for value, unit in re.findall(_GO_PART, text))
