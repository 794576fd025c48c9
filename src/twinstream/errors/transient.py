"""Transient errors, after which the same request may succeed if it is sent again.

The error codes are those with `x-transient` in `schema/errors.json`.
"""

from __future__ import annotations

from typing import Final

from twinstream.errors.api import JetStreamNotEnabled
from twinstream.errors.base import JetStreamError, NoResponders, TwinstreamError
from twinstream.errors.connection import (
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionLost,
    RequestTimeout,
)
from twinstream.models.error_codes import TRANSIENT

__all__ = ["FAILED_REQUEST", "LOST_RESPONSE", "NO_RESPONSE", "is_transient"]

LOST_RESPONSE: Final = (RequestTimeout, ConnectionLost)
"""The errors after which it is unknown whether the server has processed the request."""

NO_RESPONSE: Final = (*LOST_RESPONSE, NoResponders)
"""The errors of a request that got no response."""

FAILED_REQUEST: Final = (*NO_RESPONSE, JetStreamError)
"""The errors of a request that got no response or that the server refused."""

# The error text of a leader before 2.12 that has just stepped down. The error has no code, and
# nothing was stored.
_NOT_LEADER: Final = "raft: not leader"


def is_transient(error: TwinstreamError, *, repeatable: bool = True, batch: bool = False) -> bool:
    """Return whether a retry of the same request may succeed and does no harm.

    `repeatable` is true if it does no harm when the server processes the request twice. If it is
    false, the result for a lost response is False. `batch` is true if the retry is a new batch of
    the same messages.
    """
    match error:
        case JetStreamNotEnabled():
            return not error.err_code
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
