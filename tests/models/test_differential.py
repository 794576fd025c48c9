"""The rules and a real server agree on random configs, to the error code."""

from __future__ import annotations

import asyncio

import pytest
from differential import compare, lanes_config

from js_testing import NatsServer

COUNT = 400
SEED = 20_260_131


@pytest.mark.parametrize("kind", ["stream", "consumer"])
def test_verdict_code_and_stored_form_agree(kind: str) -> None:
    with NatsServer(lanes_config()) as server:
        tally = asyncio.run(compare(kind, COUNT, SEED, server))
    assert tally.total + tally.explained == COUNT
    assert COUNT // 4 < tally.accepted < COUNT * 3 // 4
    assert tally.compared > COUNT // 4
    assert (tally.odd, tally.differ) == ({}, {}), tally.report()


@pytest.mark.parametrize("kind", ["stream-update", "consumer-update"])
def test_verdict_and_code_agree_on_updates(kind: str) -> None:
    with NatsServer(lanes_config()) as server:
        tally = asyncio.run(compare(kind, COUNT, SEED, server))
    assert tally.accepted > COUNT // 10
    assert tally.refused > COUNT // 10
    assert tally.odd == {}, tally.report()
