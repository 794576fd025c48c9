"""Transient errors: the same request may succeed if it is sent again.

The codes are those with `x-transient` in `schema/errors.json`.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionLost,
    JetStreamError,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models.error_codes import TRANSIENT

__all__ = ["FAILED_REQUEST", "LOST_RESPONSE", "NO_RESPONSE", "is_transient"]

LOST_RESPONSE: Final = (RequestTimeout, ConnectionLost)
"""Errors that leave open whether the server processed the request."""

NO_RESPONSE: Final = (*LOST_RESPONSE, NoResponders)
"""Errors of a request that got no response."""

FAILED_REQUEST: Final = (*NO_RESPONSE, JetStreamError)
"""Errors of a request that got no response or was refused: neither is a fault of the caller."""

# The error, without a code, of a leader that has just stepped down before 2.12: nothing was stored.
_NOT_LEADER: Final = "raft: not leader"


def is_transient(error: TwinstreamError, *, repeatable: bool = True, batch: bool = False) -> bool:
    """Return whether a retry of the same request may succeed, and does no harm.

    `repeatable` is whether the request may be processed twice: if not, a lost response is not
    transient. With `batch`, the retry is a new batch of the same messages.
    """
    match error:
        case JetStreamError():
            kind = TRANSIENT.get(error.err_code)
            if kind is None:
                return error.description == _NOT_LEADER
            return kind == "request" or batch
        case AuthenticationFailed():
            return False
        case NoResponders() | ConnectionFailed():
            return True
        case RequestTimeout() | ConnectionLost():
            return repeatable
        case _:
            return False
