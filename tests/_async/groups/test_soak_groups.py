"""Partitioned consumer groups: order per key while members join, leave and are killed."""

from __future__ import annotations

from random import Random

import pytest

import js_async as js
from js_async.groups import StaticGroup
from tests._async.flow import eventually
from tests._async.members import (
    CALM,
    PATIENT,
    QUICK,
    STRICT,
    Members,
    Seen,
    consumed,
    elastic,
    floors_hold,
    has,
    publish,
    static,
)
from tests.soak import rounds, state

COUNT = rounds(200, 10_000)
STOPS = rounds(4, 30)
EACH = rounds(150, 1_000)
NAMES = ("m1", "m2", "m3")


@pytest.mark.parametrize("config", [QUICK, STRICT], ids=["many at once", "strict"])
async def test_keys_stay_in_order_while_members_come_go_and_die(server, name, config):
    seen, count = Seen(name), COUNT
    async with js.connect(server.url) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        group = await elastic(jet, name, "m1", "m2")
        m1, m2, m3 = [await members.start(server, name, each, seen, config) for each in NAMES]
        fifth = count // 5
        await publish(jet, name, 0, fifth)
        await consumed(seen, fifth // 2)
        # One more member.
        assert await group.add_members("m3") == ["m1", "m2", "m3"]
        await publish(jet, name, fifth, 2 * fifth)
        await eventually(has, m3.worker, [6, 7, 8])
        # One of them goes.
        await group.remove_members("m1")
        await publish(jet, name, 2 * fifth, 3 * fifth)
        await eventually(has, m2.worker, range(5))
        await consumed(seen, 2 * fifth + fifth // 2, patience=60 + count / 20)
        # One dies; its consumer vanishes some time later.
        await m3.kill()
        await group.remove_members("m3")
        await publish(jet, name, 3 * fifth, 4 * fifth)
        await group.add_members("m1")
        await publish(jet, name, 4 * fifth, count)
        await consumed(seen, count, patience=60 + count / 20)
        state(f"elastic group: {count} messages, {seen.again} handled again")
        seen.check(count, strict=config is STRICT)
        for each in (m1, m2):
            await each.stop()
        assert set(seen.by.values()) == set(NAMES)


async def test_a_static_group_keeps_keys_in_order(server, name):
    seen, count = Seen(name), COUNT
    async with js.connect(server.url) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        await static(jet, name, *NAMES)
        m1, m2, m3 = [
            await members.start(server, name, each, seen, kind="static") for each in NAMES
        ]
        await publish(jet, name, 0, count // 2)
        await consumed(seen, count // 4, patience=60 + count / 20)
        # It comes back as the same member: what it had not finished comes again.
        await m1.kill()
        again = await members.start(server, name, "m1", seen, kind="static")
        await publish(jet, name, count // 2, count)
        await consumed(seen, count, patience=60 + count / 20)
        seen.check(count)
        for each in (again, m2, m3):
            await each.stop()
        assert await StaticGroup(jet, name, "g").active_members() == []


@pytest.mark.parametrize("restarts", [True, False], ids=["new processes", "the same processes"])
async def test_no_second_copy_is_handled_after_stops_and_kills(server_factory, name, restarts):
    """With new processes the floors are stored before; the same ones know what they have done."""
    server, chance = server_factory(), Random(int(restarts))
    # The same processes send acknowledgements to a killed server. The messages come again.
    seen = Seen(name, patience=60 if restarts else 2)
    config = CALM if restarts else QUICK
    async with js.connect(server.url, reconnect=PATIENT) as connection, Members() as members:
        jet = connection.jetstream(timeout=60)
        await elastic(jet, name, "m1", "m2", stream={"storage": "file"})

        async def started():
            return [
                await members.start(server, name, each, seen, config, reconnect=PATIENT)
                for each in NAMES[:2]
            ]

        made, skipped = await started(), 0
        for stop in range(STOPS):
            await publish(jet, name, stop * EACH, (stop + 1) * EACH)
            if restarts:
                await consumed(seen, (stop + 1) * EACH)
                await eventually(floors_hold, jet, name, seen, patience=120)
                skipped += sum(each.worker.skipped for each in made)
                for each in made:
                    await each.kill()
            else:
                # Without messages in the group's stream the server trusts its old position.
                part = chance.random() if stop % 4 > 1 else 1
                await consumed(seen, int((stop + part) * EACH))
            if stop % 2:
                server.kill()
            else:
                server.shut_down()
            server.start()
            if restarts:
                made = await started()
        await publish(jet, name, STOPS * EACH, (STOPS + 1) * EACH)
        await consumed(seen, (STOPS + 1) * EACH)
        skipped += sum(each.worker.skipped for each in made)
        state(
            f"elastic group: {(STOPS + 1) * EACH} messages, {STOPS} stops, {seen.again} handled"
            f" again, of them {seen.twice} as second copies, {skipped} second copies skipped"
        )
        seen.check((STOPS + 1) * EACH)
        assert seen.twice == 0
        if restarts:
            assert seen.again == 0
        for each in made:
            await each.stop()
