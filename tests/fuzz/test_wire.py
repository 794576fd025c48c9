"""Some seconds of fuzzing: `make fuzz-wire` runs longer."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.__main__ import run_target
from tests.fuzz.client import CLIENTS, client_rounds
from tests.fuzz.seed import SEED
from tests.fuzz.wire import TARGETS
from tests.left_out import LONG

SECONDS = float(os.environ.get("TWINSTREAM_FUZZ_SECONDS", "15" if LONG else "5"))


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_of_any_kind_give_messages_or_errors_of_ours(name: str) -> None:
    assert run_target(name, SEED, SECONDS) > 0


@pytest.mark.parametrize("twin", CLIENTS)
def test_a_server_that_lies_is_answered_with_errors_of_ours(twin: str) -> None:
    assert client_rounds(twin, SEED, SECONDS) > 0
