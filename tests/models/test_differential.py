"""The rules and a real server agree on random configs, to the error code."""

from __future__ import annotations

import asyncio

import pytest
from differential import compare, lanes_config

from js_testing import NatsServer

COUNT = 400


@pytest.mark.parametrize("kind", ["stream", "consumer"])
def test_verdict_and_code_agree(kind: str) -> None:
    with NatsServer(lanes_config()) as server:
        tally = asyncio.run(compare(kind, COUNT, 20_260_131, server))
    assert tally.total == COUNT
    assert COUNT // 4 < tally.accepted < COUNT * 3 // 4
    assert tally.odd == {}, tally.report()
