"""Which requests to the API are sent again, and when."""

from __future__ import annotations

from itertools import count

import pytest

from twinstream.core.server_faults.repeats import is_repeatable, pause_before_repeat
from twinstream.errors import JetStreamError


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("INFO", True),
        ("STREAM.INFO.S", True),
        ("STREAM.CREATE.S", True),
        ("STREAM.LIST", True),
        ("STREAM.MSG.GET.S", True),
        ("CONSUMER.INFO.S.c", True),
        ("CONSUMER.NAMES.S", True),
        ("CONSUMER.RESET.S.c", True),
        ("STREAM.UPDATE.S", False),
        ("STREAM.DELETE.S", False),
        ("STREAM.PURGE.S", False),
        ("STREAM.MSG.DELETE.S", False),
        ("STREAM.LEADER.STEPDOWN.S", False),
        ("CONSUMER.CREATE.S.c", False),
        ("CONSUMER.DELETE.S.INFO", False),
    ],
)
@pytest.mark.parametrize("prefix", ["$JS.API", "$JS.leaf.API"])
def test_reads_and_creation_are_repeatable(prefix: str, verb: str, expected: bool) -> None:
    assert is_repeatable(f"{prefix}.{verb}", prefix) is expected


def refusal(err_code: int) -> JetStreamError:
    return JetStreamError("no", code=500, err_code=err_code)


@pytest.mark.parametrize("err_code", [10004, 10007, 10008, 10009])
def test_a_transient_refusal_is_repeated_until_the_deadline(err_code: int) -> None:
    left, pauses = 5.0, []
    for attempts in count(1):
        pause = pause_before_repeat(refusal(err_code), attempts, left)
        if pause is None:
            break
        pauses.append(pause)
        left -= pause
    assert pauses[:5] == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert 0 < left <= 1.0


@pytest.mark.parametrize("err_code", [10058, 10059, 0])
def test_any_other_refusal_is_final(err_code: int) -> None:
    assert pause_before_repeat(refusal(err_code), 1, 60.0) is None
