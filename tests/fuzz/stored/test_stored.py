"""Some seconds of fuzzing of stored data: `make fuzz` runs longer."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.seed import SEED
from tests.fuzz.stored.__main__ import run_target
from tests.fuzz.stored.calls import Twin, broken_rule, world
from tests.fuzz.stored.client import CLIENTS
from tests.fuzz.stored.readers import READERS
from tests.fuzz.stored.samples import Mutator
from tests.fuzz.stored.server import StoredServer
from twinstream.errors import TwinstreamError

SECONDS = float(os.environ.get("TWINSTREAM_FUZZ_SECONDS", "1"))


@pytest.mark.parametrize("kind", READERS)
def test_stored_data_of_any_kind_is_read_or_refused(kind: str) -> None:
    assert run_target(kind, SEED, SECONDS) > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_stored_data_makes_no_call_do_what_was_not_named(client: str) -> None:
    assert run_target(client, SEED, 2 * SECONDS) > 0


# ---- the fuzz itself


@pytest.mark.parametrize("client", CLIENTS)
def test_every_call_reads_what_is_real(client: str) -> None:
    """The server is complete enough: calls succeed, and keep their rules."""
    make, calls = CLIENTS[client]
    mutator = Mutator()
    mutator.message = mutator.real  # type: ignore[method-assign]
    succeeded = dict.fromkeys(calls, False)
    with StoredServer() as server:
        twin = make(server.url)
        for name, call in calls.items():
            for seed in range(6):
                mutator.begin(seed)
                server.begin(world(mutator, call.kind))
                succeeded[name] |= _has_succeeded(twin, call, mutator)
                with server.mutex:
                    assert not broken_rule(call, server.asked, server.streams)
                    assert not server.unknown
        twin.close()
    assert all(succeeded.values()), [name for name, done in succeeded.items() if not done]


def _has_succeeded(twin: Twin, call: object, mutator: Mutator) -> bool:
    try:
        call.run(twin, mutator)  # type: ignore[attr-defined]
    except TwinstreamError:
        return False
    finally:
        twin.fence()
    return True
