"""Leases during failures: partitions, pauses, kills, lost responses and leader changes."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack

import pytest

import js_async as js
from js_async.coordination import Coordination, LeaseLost
from tests._async.disturbed import Disturbed
from tests._async.flow import eventually, pause, together
from tests._async.leaders import step_down
from tests._async.scripted import scripted
from tests.inside import api_of
from tests.soak import rounds, state
from tests.stalls import attempts
from twinstream.core.deadline import monotonic
from twinstream.testing import FakePeer, FakeServer, Proxy

PATIENT = js.ReconnectPolicy(wait=0.01, max_wait=0.2, attempts=-1)


class Register:
    """A resource with fencing: it remembers the greatest token and refuses smaller ones."""

    def __init__(self):
        self.greatest = 0
        self.values = []

    def write(self, value, token):
        if token < self.greatest:
            raise ValueError(f"token {token} is stale, {self.greatest} was here")
        self.greatest = token
        self.values.append(value)


async def test_disconnected_holder_stops_believing_before_the_next_one_starts(server, name):
    with Proxy(server.url) as proxy:
        lonely = await js.connect(proxy.url, reconnect=PATIENT)
        async with js.connect(server.url) as connection:
            locks = Coordination(connection.jetstream(), name, create=True)
            assert await locks.lock("a").holder() is None
            behind = Coordination(lonely.jetstream(), name)
            told = []
            lease = await behind.lock("a", ttl=2, on_lost=told.append).acquire()
            register = Register()
            register.write("first", lease.token)
            proxy.black_hole = True
            async with locks.lock("a", ttl=60).acquire(timeout=60) as other:
                assert not lease.is_held
                assert "not renewed in time" in str(lease.lost)
                assert await lease.wait_lost(timeout=60)

                async def is_told():
                    return told == [lease]

                await eventually(is_told)
                assert other.token > lease.token
                register.write("second", other.token)
                # What a holder sends that does not know yet, or never looks.
                with pytest.raises(ValueError, match="stale"):
                    register.write("too late", lease.token)
            with pytest.raises(LeaseLost, match="not renewed in time"):
                lease.check()
            with pytest.raises(LeaseLost):
                async with lease:
                    pass
            assert register.values == ["first", "second"]
            proxy.black_hole = False
        await lonely.close()


async def test_a_short_cut_costs_nothing(server, name, tuned):
    # Renewed each second.
    tuned("lease renewals", 120)
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url, reconnect=PATIENT) as connection:
            locks = Coordination(connection.jetstream(), name, create=True)
            async with locks.lock("a", ttl=120).acquire() as lease:
                for _ in range(3):
                    before = lease.seq
                    proxy.cut()

                    async def is_renewed(before=before):
                        return lease.seq > before

                    await eventually(is_renewed, patience=60)
                    assert lease.is_held
            assert lease.lost is None


async def test_a_lock_survives_its_server(server_factory, name):
    with server_factory() as server:
        async with js.connect(server.url, reconnect=PATIENT) as connection:
            locks = Coordination(connection.jetstream(timeout=60), name, create=True)
            async with locks.lock("a", ttl=120).acquire() as lease:
                server.kill()
                server.restart()
                assert await locks.lock("a").try_acquire() is None
                assert lease.is_held
                server.pause()
                await pause(0.5)
                server.resume()
                assert (await locks.lock("a").holder()).token == lease.token
            assert await locks.lock("a").holder() is None


@pytest.mark.parametrize("kind", ["lock", "semaphore", "rate"])
async def test_waiter_continues_through_an_outage(server_factory, name, kind):
    with server_factory() as server:
        async with js.connect(server.url, reconnect=PATIENT) as connection:
            place = Coordination(connection.jetstream(timeout=60), name, create=True)
            wish = {
                "lock": lambda: place.lock("a", ttl=2),
                "semaphore": lambda: place.semaphore("a", 1, ttl=2),
                "rate": lambda: place.rate_limiter("a", 1, per=2),
            }[kind]()
            first = await wish.acquire(timeout=60)
            server.kill()

            async def wait():
                return await wish.acquire(timeout=60)

            async def back():
                await pause(0.3)
                server.restart()
                if kind != "rate":
                    await first.release()

            second, _ = await together(wait, back)
            assert second.token > first.token
            if kind != "rate":
                await second.release()


async def test_timeout_reports_the_last_trouble(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url, reconnect=PATIENT, request_timeout=0.2) as connection:
            place = Coordination(connection.jetstream(timeout=0.2), name, create=True)
            lease = await place.semaphore("a", 1, ttl=60).try_acquire(timeout=60)
            proxy.black_hole = True
            with pytest.raises(js.RequestTimeout, match=r"semaphore a: not free in time \("):
                await place.semaphore("a", 1).acquire(timeout=1)
            proxy.black_hole = False
            proxy.cut()
            await lease.release()


async def test_a_request_without_time_does_not_hide_who_holds_a_lock(server, name):
    for attempt in attempts(2):
        with attempt, Proxy(server.url) as proxy:
            async with js.connect(server.url) as near, js.connect(proxy.url) as connection:
                place = Coordination(near.jetstream(timeout=60), name)

                async def silence():
                    proxy.black_hole = True

                # The server's time is requested after an attempt that the holder blocked.
                disturbed = Disturbed(api_of(connection.jetstream()).transport)
                locks = Coordination(disturbed.jetstream(timeout=60), name, create=True)
                await locks.lock("a").holder()
                disturbed.expect(r"STREAM\.INFO", after=silence)
                held = "lock a: not free in time: held by"
                async with place.lock("a", ttl=60).acquire():
                    with pytest.raises(js.RequestTimeout, match=held):
                        await locks.lock("a").acquire(timeout=2)
                    assert proxy.black_hole


async def test_a_request_without_time_does_not_hide_that_work_is_running(server, name):
    for attempt in attempts(2):
        with attempt, Proxy(server.url) as proxy:
            async with js.connect(server.url) as near, js.connect(proxy.url) as connection:
                place = Coordination(near.jetstream(timeout=60), name)

                async def silence():
                    proxy.black_hole = True

                disturbed = Disturbed(api_of(connection.jetstream()).transport)
                far = Coordination(disturbed.jetstream(timeout=60), name, create=True)
                await far.once("a").result()
                disturbed.expect(r"\.GET\.", after=silence)
                async with place.lock("a", ttl=60).acquire():
                    with pytest.raises(js.RequestTimeout, match=r"has not ended in time$"):
                        await far.once("a").wait(timeout=2)
                    assert proxy.black_hole


async def test_a_server_that_pauses_for_too_long_costs_the_lease(server_factory, name):
    with server_factory() as server:
        async with js.connect(server.url, reconnect=PATIENT) as connection:
            locks = Coordination(connection.jetstream(timeout=60), name, create=True)
            lease = await locks.lock("a", ttl=2).acquire()
            server.pause()
            lost = await lease.wait_lost(timeout=30)
            server.resume()
            assert "not renewed in time" in str(lost)
            # The slot becomes free without any cleaning up.
            async with locks.lock("a").acquire(timeout=30) as again:
                assert again.token > lease.token


async def test_a_closed_connection_ends_the_lease(server, name, tuned):
    # Renewed each half second.
    tuned("lease renewals", 120)
    async with js.connect(server.url) as connection:
        locks = Coordination(connection.jetstream(), name, create=True)
        lease = await locks.lock("a", ttl=60).acquire()
        leader = locks.leader("b", ttl=60)
        await leader.start()

        async def leads():
            return leader.is_leader

        await eventually(leads)
    assert "closed" in str(await lease.wait_lost(timeout=60))
    with pytest.raises(js.ConnectionClosed):
        await leader.wait(timeout=60)


async def test_unanswered_release_is_reported(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url, reconnect=PATIENT) as connection:
            locks = Coordination(connection.jetstream(), name, create=True)
            lease = await locks.lock("a", ttl=300).acquire()
            proxy.black_hole = True
            assert not await lease.release(timeout=0.3)
            assert not lease.is_held
            proxy.cut()
            proxy.black_hole = False

            async def is_free():
                try:
                    return await locks.lock("a").holder() is None
                except (js.ConnectionLost, js.RequestTimeout):
                    # The client may have reconnected before the server was checked.
                    return False

            # The acquisition continues in the background.
            await eventually(is_free, patience=60)


async def test_end_of_work_that_cannot_be_stored_is_reported(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url, reconnect=PATIENT) as connection:
            coordination = Coordination(connection.jetstream(), name, create=True)

            async def work(_):
                proxy.black_hole = True
                return b"x"

            with pytest.raises(js.RequestTimeout, match="the work ran"):
                await coordination.once("a").run(work, timeout=0.3)
            proxy.cut()
            proxy.black_hole = False

            async def known():
                try:
                    return (await coordination.once("a").result()).data == b"x"
                except (js.ConnectionLost, js.RequestTimeout):
                    return False

            await eventually(known, patience=60)

            async def outlived(lease):
                proxy.black_hole = True
                await lease.wait_lost(timeout=30)

            with pytest.raises(LeaseLost, match="the work ran, its end is not stored"):
                await coordination.once("b", ttl=2).run(outlived)
            proxy.cut()
            proxy.black_hole = False

            async def again(_):
                return b"second"

            async def ran():
                try:
                    return (await coordination.once("b", ttl=60).run(again)).ran_here
                except (js.ConnectionLost, js.RequestTimeout):
                    # The connection is not restored yet.
                    return False

            await eventually(ran, patience=60)


# ---- what no server does on demand


def coordinated(peer: FakePeer, **server) -> None:
    """Answer the requests that a program sends before it uses the stream L."""
    peer.handshake(**server)
    peer.answer(peer.expect("STREAM.INFO.L"), described())


def described(*subjects: str):
    """Return the info of the stream L from a leader that most replicas follow.

    `subjects` are those that match the filter of the request and have a message.
    """
    config = {"name": "L", "subjects": ["L.held.>"], "retention": "limits", "storage": "file"}
    config |= {"max_msgs_per_subject": 1, "allow_msg_ttl": True, "max_consumers": -1}
    info = {"type": "io.nats.jetstream.api.v1.stream_info_response", "config": config}
    replicas = [{"name": name, "current": True, "active": 1000} for name in ("n1", "n2")]
    info["cluster"] = {"name": "c", "leader": "n3", "replicas": replicas}
    state = dict.fromkeys(("messages", "bytes", "first_seq", "last_seq", "consumer_count"), 0)
    state["subjects"] = dict.fromkeys(subjects, 1)
    return info | {"created": "2026-01-01T00:00:00Z", "state": state}


async def test_a_confirmation_that_got_lost_is_found(server, name):
    """The client reads the record and recognises its own tenure.

    The token is that of the first attempt.
    """

    def script(peer: FakePeer) -> None:
        coordinated(peer)
        first = peer.expect(r"HPUB L\.held\.lock\.a ")
        second = peer.expect(r"HPUB L\.held\.lock\.a ")
        peer.answer(second, refusal)
        look = peer.expect(r"MSG\.GET\.L")
        peer.answer(look, stored(first, 7))
        peer.answer(peer.expect(r"MSG\.DELETE\.L"), {"success": True})
        peer.expect(r"PUB L\.freed\.lock\.a")
        peer.until_left()

    for attempt in attempts(0.9):
        with attempt:
            async with scripted(script, request_timeout=0.3) as connection:
                locks = Coordination(connection.jetstream(), "L")
                async with locks.lock("a", ttl=3600).acquire(timeout=60) as lease:
                    assert lease.token == 7
                    assert lease.is_held


async def test_a_wish_that_is_given_up_without_an_answer_leaves_nothing(server, name):
    """The record may be stored without a response. It is removed, as no caller needs it."""

    def script(peer: FakePeer) -> None:
        coordinated(peer)
        first = peer.expect(r"HPUB L\.held\.leader\.a ")
        peer.reach("asked")
        peer.answer(peer.expect(r"MSG\.GET\.L"), stored(first, 7))
        assert peer.expect(r"MSG\.DELETE\.L").json["seq"] == 7
        peer.reach("removed")
        peer.until_left()

    async def asked():
        return fake.reached("asked")

    async def removed():
        return fake.reached("removed")

    for attempt in attempts(0.9):
        with attempt, FakeServer(script) as fake:
            async with js.connect(fake.url, request_timeout=0.3) as connection:
                leader = Coordination(connection.jetstream(), "L").leader("a", ttl=3600)
                await leader.start()
                await eventually(asked)
                await leader.stop()
                await eventually(removed)


async def test_wait_for_a_lock_ends_at_its_timeout():
    """The wait ends even if no response has the server's time."""
    import base64

    def script(peer: FakePeer) -> None:
        coordinated(peer)
        for operation in peer.follow():
            if operation.line.startswith("HPUB L.held.lock.a "):
                peer.answer(operation, refusal)
            elif "MSG.GET.L" in operation.line:
                held = stored(operation, 7)
                held["message"]["data"] = base64.b64encode(b'{"owner": "other"}').decode()
                ttl = base64.b64encode(b"NATS/1.0\r\nNats-TTL: 3600\r\n\r\n").decode()
                held["message"]["hdrs"] = ttl
                peer.answer(operation, held)

    for attempt in attempts(0.5):
        with attempt:
            async with scripted(script, request_timeout=600) as connection:
                locks = Coordination(connection.jetstream(), "L")
                with pytest.raises(js.RequestTimeout, match="held by other"):
                    await locks.lock("a", ttl=60).acquire(timeout=0.5)


refusal = {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence: 7"}}


def stored(operation, seq):
    """Return the response that contains a record as it was sent."""
    import base64

    return {
        "type": "io.nats.jetstream.api.v1.stream_msg_get_response",
        "message": {
            "subject": operation.subject,
            "seq": seq,
            "data": base64.b64encode(operation.payload).decode(),
            "time": "2026-01-01T00:00:00Z",
        },
    }


def record_of(tenure, seq, time="2026-01-01T00:00:00Z"):
    """Return the response with the record of a tenure."""
    import base64

    data = json.dumps({"owner": tenure, "tenure": tenure, "attempt": 1}).encode()
    message = {"subject": SLOT, "seq": seq, "time": time, "data": base64.b64encode(data).decode()}
    return {"type": "io.nats.jetstream.api.v1.stream_msg_get_response", "message": message}


SLOT = "L.held.lock.a"
LOOK = r"MSG\.GET\.L"
PUT = r"HPUB L\.held\.lock\.a "
INFO = r"STREAM\.INFO\.L"
GONE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}


@pytest.mark.parametrize("kept", [True, False])
async def test_a_former_leader_does_not_end_a_lease(kept):
    """It lacks the record. The leader decides whether the lease is lost."""

    def script(peer: FakePeer) -> None:
        coordinated(peer, cluster="c")
        first = peer.expect(PUT)
        peer.answer(first, {"stream": "L", "seq": 7})
        peer.answer(peer.expect(PUT), refusal)
        peer.answer(peer.expect(LOOK), GONE)
        asked = peer.expect(INFO)
        assert asked.json == {"subjects_filter": SLOT}
        peer.answer(asked, described(*[SLOT] * kept))
        if kept:
            peer.answer(peer.expect(LOOK), stored(first, 7))
            peer.answer(peer.expect(PUT), {"stream": "L", "seq": 8})
            peer.reach("renewed")
        peer.until_left()

    async def renewed():
        return fake.reached("renewed")

    for attempt in attempts(3):
        with attempt, FakeServer(script) as fake:
            async with js.connect(fake.url) as connection:
                locks = Coordination(connection.jetstream(), "L")
                # The lease is renewed after a second, and valid for three.
                lease = await locks.lock("a", ttl=4).acquire(timeout=60)
                if kept:
                    await eventually(renewed)
                    assert (lease.is_held, lease.lost) == (True, None)
                else:
                    assert "its record was removed" in str(await lease.wait_lost(timeout=30))


async def test_a_former_leader_does_not_confirm_a_release():
    def script(peer: FakePeer) -> None:
        coordinated(peer, cluster="c")
        first = peer.expect(PUT)
        peer.answer(first, {"stream": "L", "seq": 7})
        peer.answer(peer.expect(r"MSG\.DELETE\.L"), GONE)
        peer.answer(peer.expect(LOOK), GONE)
        peer.answer(peer.expect(INFO), described(SLOT))
        peer.answer(peer.expect(LOOK), stored(first, 7))
        peer.answer(peer.expect(r"MSG\.DELETE\.L"), {"success": True})
        peer.expect(r"PUB L\.freed\.lock\.a")
        peer.until_left()

    for attempt in attempts(15):
        with attempt, FakeServer(script) as fake:
            async with js.connect(fake.url) as connection:
                locks = Coordination(connection.jetstream(), "L")
                lease = await locks.lock("a", ttl=3600).acquire(timeout=60)
                assert await lease.release(timeout=30)
            assert len(fake.operations(r"MSG\.DELETE")) == 2


@pytest.mark.parametrize("case", ["granted", "free", "held"])
async def test_a_former_leader_does_not_refuse_a_lock(case):
    """It still has the record of an earlier holder.

    The leader may have stored the refused record, may have no record, or that of another client.
    """

    def script(peer: FakePeer) -> None:
        coordinated(peer, cluster="c")
        first = peer.expect(PUT)
        peer.answer(first, refusal)
        peer.answer(peer.expect(LOOK), record_of("before", 4))
        peer.answer(peer.expect(INFO), described(*[SLOT] * (case != "free")))
        if case == "free":
            peer.answer(peer.expect(PUT), {"stream": "L", "seq": 9})
        else:
            answer = stored(first, 9) if case == "granted" else record_of("other", 8)
            peer.answer(peer.expect(LOOK), answer)
        if case != "held":
            assert peer.expect(r"MSG\.DELETE\.L").json["seq"] == 9
        peer.until_left()

    for attempt in attempts(15):
        with attempt:
            async with scripted(script) as connection:
                locks = Coordination(connection.jetstream(), "L")
                lease = await locks.lock("a", ttl=3600).try_acquire()
                if case == "held":
                    assert lease is None
                else:
                    assert (lease.token, lease.is_held) == (9, True)
                    await lease.release(timeout=0.01)


# ---- long trouble


class KeyValueWatch:
    """A record of which holder had the lock when, by one clock, and of the tokens."""

    def __init__(self):
        self.visits = []
        self.lost = 0

    def check(self, what, wanted):
        self.visits.sort()
        pairs = list(zip(self.visits, self.visits[1:], strict=False))
        overlaps = sum(later[0] < earlier[1] for earlier, later in pairs)
        disorder = sum(later[2] <= earlier[2] for earlier, later in pairs)
        longest = max((later[0] - earlier[1] for earlier, later in pairs), default=0.0)
        state(
            f"{what}: {len(self.visits)} visits, {overlaps} overlaps, {disorder} tokens out of"
            f" order, {self.lost} leases lost, longest time free {longest:.2f} s"
        )
        assert (overlaps, disorder) == (0, 0)
        assert len(self.visits) >= wanted


async def visit(lock, watch, wanted):
    """Acquire and release the lock repeatedly. Trust the lease only as long as it is held."""
    while len(watch.visits) < wanted:
        try:
            lease = await lock.acquire(timeout=120)
        except (js.RequestTimeout, js.JetStreamError, js.ConnectionLost, js.NoResponders):
            continue
        entered = now = monotonic()
        left = None
        while now < entered + 0.15 and lease.is_held:
            # The holder was inside at that time, regardless of later events.
            left = now
            await pause(0.005)
            now = monotonic()
        watch.lost += lease.lost is not None
        if left is not None:
            watch.visits.append((entered, left, lease.token))
        await lease.release()


async def test_soak_one_at_a_time_on_failing_networks(server, name):
    wanted = rounds(40, 4000)
    chance = random.Random(5)
    watch = KeyValueWatch()
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.url)) for _ in range(3)]
        links = [
            await js.connect(proxy.url, reconnect=PATIENT, request_timeout=2) for proxy in proxies
        ]
        locks = [Coordination(link.jetstream(), name, create=True) for link in links]
        assert [await each.lock("a").holder(timeout=60) for each in locks] == [None] * 3

        async def chaos():
            while len(watch.visits) < wanted:
                proxy = chance.choice(proxies)
                match chance.randrange(3):
                    case 0:
                        proxy.cut()
                    case 1:
                        proxy.delay = chance.choice((0.0, 0.02, 0.3))
                    case _:
                        proxy.black_hole = True
                        await pause(chance.choice((0.1, 0.5, 3.0)))
                        proxy.cut()
                        proxy.black_hole = False
                await pause(0.2)
            for proxy in proxies:
                proxy.delay = 0.0

        works = [lambda each=each: visit(each.lock("a", ttl=2), watch, wanted) for each in locks]
        await together(chaos, *works)
        watch.check("failing networks", wanted)
        for link in links:
            await link.close()


async def test_soak_one_at_a_time_while_leaders_change(cluster, name):
    wanted = rounds(30, 3000)
    watch = KeyValueWatch()
    async with js.connect(cluster.url, reconnect=PATIENT) as other:
        jet = other.jetstream(timeout=60)
        await jet.create_stream(Coordination.stream_config(name, replicas=3))
        links = [await js.connect(each.url, reconnect=PATIENT) for each in cluster.servers]
        locks = [Coordination(link.jetstream(timeout=60), name) for link in links]

        async def chaos():
            while len(watch.visits) < wanted:
                await step_down(other, f"STREAM.LEADER.STEPDOWN.{name}")
                await pause(0.7)

        works = [lambda each=each: visit(each.lock("a", ttl=3), watch, wanted) for each in locks]
        await together(chaos, *works)
        watch.check("leaders step down", wanted)
        for link in links:
            await link.close()
