"""Long outages: the client tries to reconnect for ever, and says so in the log."""

from __future__ import annotations

import re

import pytest

import js_async as js
from js_async.workers import Worker
from tests._async.flow import eventually
from tests.hooked import hooked
from tests.logged import texts
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer, FakeServer

QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.01)
# Each failed round of attempts makes an outage longer by this number of seconds.
LONGER = 30


async def closed(connection):
    return connection.is_closed


async def test_a_worker_goes_on_after_an_outage_of_ten_minutes(server_factory, name, caplog):
    server = server_factory()
    seen = []

    async def handler(message):
        seen.append(message.data)

    async def saw(*wanted):
        return seen == list(wanted)

    async def gave_the_next_notice():
        # The third is due after half an hour, so later than the ten minutes.
        return len(notices(caplog)) == 3

    async with js.connect(server.url, reconnect=QUICK) as connection:
        jet = connection.jetstream()
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        async with Worker(jet, name, ConsumerConfig(durable_name="w"), handler):
            await jet.publish(name, b"before")
            await eventually(saw, b"before")
            server.kill()
            with hooked("session: before notice", lengthen):
                await eventually(gave_the_next_notice)
            with pytest.raises(js.RequestTimeout, match="not connected in time"):
                await jet.publish(name, b"meanwhile", timeout=0.1)
            server.restart()
            await jet.publish(name, b"after", timeout=30)
            await eventually(saw, b"before", b"after")
    lasted = [seconds for seconds, _ in notices(caplog)]
    assert all(due <= at for due, at in zip((60, 300, 1800), lasted, strict=True))
    assert notices(caplog)[-1][1] >= 60


def lengthen(outage):
    outage.began -= LONGER


def notices(caplog):
    """Return the seconds and the rounds of the records of an outage that lasts."""
    pattern = r"not connected for (\d+) s, (\d+) rounds failed, the client keeps trying: .+"
    found = [re.fullmatch(pattern, each) for each in texts(caplog, "connection")]
    return [(int(each[1]), int(each[2])) for each in found if each is not None]


def welcome(peer: FakePeer) -> None:
    peer.handshake()
    peer.reach("connected")
    peer.wait_for("break")
    peer.close()


def refuse(peer: FakePeer, why: str = "Authorization Violation") -> None:
    peer.stop_answering()
    peer.info()
    peer.expect("^CONNECT")
    peer.error(why)
    peer.close()


def be_late(peer: FakePeer) -> None:
    refuse(peer, "Authentication Timeout")


async def test_two_refusals_of_the_same_credentials_are_final():
    with FakeServer(welcome, be_late, be_late, refuse, refuse) as server:
        connection = await js.connect(server.url, user="ann", password="secret", reconnect=QUICK)
        server.tell("break")
        await eventually(closed, connection)
        with pytest.raises(
            js.ConnectionClosed, match="refused the same credentials twice"
        ) as ended:
            await connection.publish("x")
        assert isinstance(ended.value.__cause__, js.AuthenticationFailed)
        assert "secret" not in str(ended.value)
        assert server.connections == 5


async def test_new_credentials_are_tried_after_a_refusal():
    given = []

    def credentials():
        given.append(f"token {len(given)}")
        return js.Credentials(token=given[-1])

    def welcome_again(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left()

    with FakeServer(welcome, refuse, refuse, refuse, welcome_again) as server:
        connecting = js.connect(server.url, credentials=credentials, reconnect=QUICK)
        async with connecting as connection:
            server.tell("break")

            async def is_back():
                return connection.stats.connects == 2

            await eventually(is_back)
        assert given == [f"token {number}" for number in range(5)]
