"""The rules and a real server agree on random configs, including the error code."""

from __future__ import annotations

import asyncio
from typing import Any

import nats
import pytest
from differential import (
    LANES_OF,
    ask,
    compare,
    configs_of,
    create,
    has_null_source,
    lanes_config,
    theirs,
)
from texts import TEXTS

from twinstream.models import effective_stream, encode
from twinstream.testing import NatsServer

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


def test_status_agrees_on_pull_requests() -> None:
    with NatsServer(lanes_config()) as server:
        tally = asyncio.run(compare("pull", COUNT, SEED, server))
    assert tally.total + tally.explained == COUNT
    assert COUNT // 4 < tally.accepted < COUNT * 3 // 4
    assert tally.odd == {}, tally.report()


def test_same_seed_creates_the_same_configs() -> None:
    for kind in LANES_OF:
        assert configs_of(kind, 20, SEED) == configs_of(kind, 20, SEED)
        assert configs_of(kind, 20, SEED) != configs_of(kind, 20, SEED + 1)


@pytest.mark.parametrize(
    ("case", "seen"),
    [
        ({"name": "S"}, False),
        ({"name": "S", "sources": [{"name": "O", "external": None}]}, False),
        ({"name": "S", "Sources": [{"name": "O"}, None]}, True),
        (({"name": "S"}, [({"max_msgs": 5}, []), ({"sources": [None]}, ["max_msgs"])]), True),
    ],
)
def test_what_ends_an_old_server_is_seen(case: Any, seen: bool) -> None:
    assert has_null_source(case) == seen


def test_a_server_reads_text_as_we_say() -> None:
    with NatsServer() as server:
        asyncio.run(_send(server))


async def _send(server: NatsServer) -> None:
    nc = await nats.connect(server.url)
    for text, codes in TEXTS:
        verdict = theirs(await create(nc, "S", text.encode()))
        assert [verdict.code] == (codes[:1] or [0]), text
        if not verdict.code:
            assert encode(effective_stream(text, server.version)) == verdict.config, text
        await ask(nc, "$JS.API.STREAM.DELETE.S", "")
    await nc.close()


def test_mirror_at_an_empty_offset_accepts_no_update_after_a_restart() -> None:
    mirror = {"name": "O", "opt_start_time": "2026-01-01T00:00:00+00:00"}
    config = {"name": "S", "mirror": mirror}
    with NatsServer() as server:
        assert _code(server, "CREATE", config) == 0
        assert _code(server, "UPDATE", config) == 0
        server.restart()
        assert _code(server, "UPDATE", config) == 10055
        mirror["opt_start_time"] = "2026-01-01T00:00:00Z"
        assert _code(server, "UPDATE", config) == 0


def _code(server: NatsServer, verb: str, config: dict[str, Any]) -> int:
    async def request() -> int:
        nc = await nats.connect(server.url)
        answer = await ask(nc, f"$JS.API.STREAM.{verb}.S", config)
        await nc.close()
        return theirs(answer).code

    return asyncio.run(request())
