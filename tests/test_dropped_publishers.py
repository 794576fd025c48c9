"""A program that drops a publisher and ends at once still reports the refused messages."""

from __future__ import annotations

import re
import subprocess
import sys
from textwrap import dedent

import pytest

import js_sync
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

BLOCKING = dedent(
    """
    import sys
    import js_sync

    def refused(jet):
        publisher = jet.publisher()
        for _ in range(20):
            publisher.send(sys.argv[2], b"", expected_last_seq=99)

    connection = js_sync.connect(sys.argv[1], connect_timeout=60, request_timeout=60)
    refused(connection.jetstream())
    """
)
ASYNC = dedent(
    """
    import asyncio
    import sys
    import js_async

    async def refused(jet):
        publisher = jet.publisher()
        for _ in range(20):
            await publisher.send(sys.argv[2], b"", expected_last_seq=99)

    async def main():
        connection = await js_async.connect(sys.argv[1], connect_timeout=60, request_timeout=60)
        await refused(connection.jetstream())
        if "close" in sys.argv:
            await connection.close()

    asyncio.run(main())
    """
)
CLOSING = BLOCKING + "connection.close()\n"


@pytest.fixture
def subject(server: NatsServer, request: pytest.FixtureRequest) -> str:
    name = f"DROPPED_{re.sub(r'[^a-z]', '_', request.node.callspec.id)}"
    with js_sync.connect(server.url, **UNHURRIED) as connection:
        config = StreamConfig(name=name, subjects=[f"{name}.>"])
        connection.jetstream().create_stream(config)
    return f"{name}.a"


@pytest.mark.parametrize(
    ("program", "more"),
    [(BLOCKING, []), (CLOSING, []), (ASYNC, []), (ASYNC, ["close"])],
    ids=["blocking", "blocking, closed", "async", "async, closed"],
)
def test_refused_messages_are_reported(
    server: NatsServer, subject: str, program: str, more: list[str]
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program, server.url, subject, *more],
        capture_output=True, text=True, timeout=LONGEST, check=True,
    )  # fmt: skip
    assert "RuntimeWarning: publisher ended with failures that were not read" in ended.stderr
    assert "20 messages were not acknowledged" in ended.stderr
