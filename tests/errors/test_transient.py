"""Which errors are transient."""

from __future__ import annotations

import pytest

from twinstream.errors import (
    AuthenticationFailed,
    BadArgument,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    InvalidResponse,
    JetStreamNotEnabled,
    NoLeader,
    NoResponders,
    NoStream,
    OutcomeUnknown,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
    api_error,
)
from twinstream.errors.transient import (
    FAILED_REQUEST,
    LOST_RESPONSE,
    NO_RESPONSE,
    is_transient,
)
from twinstream.models import error_codes

ALWAYS = (True, True, True)
REPEATABLE = (True, False, True)
BATCH = (False, False, True)
NEVER = (False, False, False)


def answer(err_code: int, description: str = "no") -> TwinstreamError:
    return api_error({"code": 400, "err_code": err_code, "description": description})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NoResponders("x"), ALWAYS),
        (NoLeader("x"), ALWAYS),
        (NoStream("x"), ALWAYS),
        (JetStreamNotEnabled("x", code=503, err_code=0), ALWAYS),
        (ConnectionFailed("x"), ALWAYS),
        (AuthenticationFailed("x"), NEVER),
        (RequestTimeout("x"), REPEATABLE),
        (ConnectionLost("x"), REPEATABLE),
        (ConnectionClosed("x"), NEVER),
        (PermissionDenied("x"), NEVER),
        (BadArgument("x"), NEVER),
        (InvalidResponse("x"), NEVER),
        (OutcomeUnknown("x"), NEVER),
        (answer(error_codes.CLUSTER_INCOMPLETE), ALWAYS),
        (answer(error_codes.CLUSTER_NOT_ASSIGNED), ALWAYS),
        (answer(error_codes.CLUSTER_NOT_AVAILABLE), ALWAYS),
        (answer(error_codes.CLUSTER_NOT_LEADER), ALWAYS),
        (answer(error_codes.MESSAGE_ID_IN_PROCESS), ALWAYS),
        (answer(error_codes.EXPECTATION_UNDECIDED), ALWAYS),
        (answer(error_codes.TOO_MANY_REQUESTS), ALWAYS),
        (answer(error_codes.NOT_ENABLED), NEVER),
        (answer(0, "raft: not leader"), ALWAYS),
        (answer(error_codes.BATCH_INCOMPLETE), BATCH),
        (answer(error_codes.BATCH_TOO_MANY), BATCH),
        (answer(error_codes.FAST_BATCH_ID_UNKNOWN), BATCH),
        (answer(error_codes.FAST_BATCH_TOO_MANY), BATCH),
        (answer(0), NEVER),
        (answer(error_codes.CLUSTER_REQUIRED), NEVER),
        (answer(error_codes.STORE_REFUSED), NEVER),
        (answer(error_codes.STREAM_NOT_FOUND), NEVER),
        (answer(error_codes.STREAM_OFFLINE), NEVER),
        (answer(error_codes.WRONG_LAST_SEQUENCE), NEVER),
    ],
)
def test_which_errors_are_transient(
    error: TwinstreamError, expected: tuple[bool, bool, bool]
) -> None:
    assert expected == (
        is_transient(error),
        is_transient(error, repeatable=False),
        is_transient(error, batch=True),
    )


def test_no_other_code_is_transient() -> None:
    assert error_codes.TRANSIENT.keys() == {
        code for code in error_codes.NAMES if is_transient(answer(code), batch=True)
    }


def test_the_groups_for_except_contain_each_other() -> None:
    assert set(LOST_RESPONSE) < set(NO_RESPONSE) < set(FAILED_REQUEST)
