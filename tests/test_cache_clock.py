"""A cache decides by the server's time what has expired, whatever the client's clock shows."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from textwrap import dedent

import pytest

import js_sync
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

WRONG_CLOCK = dedent(
    """
    import datetime as module
    import sys
    from datetime import datetime, timedelta

    class WrongClock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=float(sys.argv[3]))

    module.datetime = WrongClock
    """
)
BLOCKING = """
import js_sync

with js_sync.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as connection:
    with connection.jetstream().get_key_value(sys.argv[2]).cached() as cache:
        print(sorted(cache))
"""
ASYNC = """
import asyncio
import js_async

async def main():
    async with js_async.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as connection:
        bucket = await connection.jetstream().get_key_value(sys.argv[2])
        async with bucket.cached() as cache:
            print(sorted(cache))

asyncio.run(main())
"""


@pytest.mark.since("2.11")
@pytest.mark.parametrize("program", [BLOCKING, ASYNC], ids=["js_sync", "js_async"])
def test_a_client_whose_clock_is_ahead_keeps_what_lives(
    server: NatsServer, request: pytest.FixtureRequest, program: str
) -> None:
    name = f"CLOCK_{request.node.callspec.id}"
    with js_sync.connect(server.url, **UNHURRIED) as connection:
        jet = connection.jetstream()
        # Without limit markers, watchers do not hear when a value has expired.
        jet.create_stream(
            StreamConfig(
                name=f"KV_{name}",
                subjects=[f"$KV.{name}.>"],
                max_msgs_per_subject=1,
                allow_msg_ttl=True,
                allow_rollup_hdrs=True,
            )
        )
        jet.get_key_value(name).put("a", b"1", ttl=timedelta(minutes=5))
    run = subprocess.run(
        [sys.executable, "-c", WRONG_CLOCK + program, server.url, name, "600"],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert run.stdout == "['a']\n", run.stderr
