"""Locks, semaphores, rate limits and single runs on a server without failures."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from attrs import evolve

import js_async as js
from js_async.coordination import Coordination, LeaseLost
from tests._async.flow import eventually, pause, together
from twinstream.errors import UnsuitableSettings


async def test_lock_has_one_holder_and_is_passed_on(opened, name):
    async with opened() as jet:
        locks = Coordination(jet, name, create=True, owner="one")
        others = Coordination(jet, name, owner="two")
        async with locks.lock("invoices", note="nightly").acquire(timeout=60) as lease:
            assert lease.is_held
            assert lease.remaining > 0
            assert (lease.name, lease.lost) == ("invoices", None)
            assert await others.lock("invoices").try_acquire() is None
            holder = await others.lock("invoices").holder()
            assert (holder.owner, holder.note, holder.token) == ("one", "nightly", lease.token)
            with pytest.raises(js.RequestTimeout, match=r"held by one \(token 1, nightly\)"):
                await others.lock("invoices").acquire(timeout=0.3)
        assert not lease.is_held
        assert lease.lost is None
        with pytest.raises(LeaseLost, match="released"):
            lease.check()
        assert await locks.lock("invoices").holder() is None
        second = await others.lock("invoices").try_acquire()
        assert second.token > lease.token
        assert await second.release()
        assert await second.release()


async def test_waiter_gets_the_lock_when_its_release_is_announced(opened, name):
    async with opened() as jet:
        # So long that no asking again would be in time.
        lock = Coordination(jet, name, create=True).lock("a.b", ttl=3600)
        order = []

        async def hold():
            async with lock.acquire(timeout=60):
                await pause(0.8)
                order.append("left")

        async def wait():
            await eventually(lock.holder)
            async with lock.acquire(timeout=60):
                order.append("entered")

        await together(hold, wait)
        assert order == ["left", "entered"]


async def test_a_lease_is_renewed_and_its_ttl_begins_again(opened, name, tuned):
    # Every 0.3 s. No pause of a busy machine is as long as the TTL.
    tuned("lease renewals", 400)
    async with opened() as jet:
        locks = Coordination(jet, name, create=True)
        async with locks.lock("a", ttl=120).acquire() as lease:
            first = lease.seq
            stored = await locks.lock("a").holder()

            async def is_renewed():
                return lease.seq >= first + 6

            await eventually(is_renewed, patience=60)
            assert lease.is_held
            assert lease.token == first
            holder = await locks.lock("a").holder()
            assert (holder.token, holder.attempt > 6) == (first, True)
            assert (holder.ttl, holder.time > stored.time) == (120, True)


async def test_many_want_one_lock(opened, name):
    async with opened() as jet:
        lock = Coordination(jet, name, create=True).lock("a")
        inside, tokens = [], []

        async def work():
            for _ in range(5):
                async with lock.acquire(timeout=60) as lease:
                    inside.append(1)
                    assert len(inside) == 1
                    await pause(0.002)
                    tokens.append(lease.token)
                    inside.pop()

        await together(*[work] * 6)
        assert tokens == sorted(set(tokens))
        assert len(tokens) == 30


async def test_an_error_within_is_not_hidden_and_frees_the_lock(opened, name):
    async with opened() as jet:
        lock = Coordination(jet, name, create=True).lock("a")
        with pytest.raises(ZeroDivisionError):
            async with lock.acquire():
                _ = 1 / 0
        assert await lock.holder() is None


async def test_evicted_user_is_notified(opened, name, tuned):
    # Renewed every 0.6 s.
    tuned("lease renewals", 200)
    async with opened() as jet:
        locks = Coordination(jet, name, create=True)
        told = []
        lease = await locks.lock("a", ttl=120, on_lost=told.append).acquire()
        (taken,) = [each async for each in locks.held("lock")]
        assert (taken.kind, taken.name, taken.number) == ("lock", "a", None)

        async def is_evicted():
            # Not if it is renewed in between.
            return await locks.evict(*[each async for each in locks.held()])

        await eventually(is_evicted)
        lost = await lease.wait_lost(timeout=60)
        assert "its record was removed" in str(lost)

        async def is_told():
            return told == [lease]

        await eventually(is_told)
        with pytest.raises(LeaseLost, match="its record was removed"):
            async with lease:
                pass


async def test_a_semaphore_has_so_many_places(opened, name):
    async with opened() as jet:
        places = Coordination(jet, name, create=True).semaphore("gpu", 3)
        leases = [await places.try_acquire() for _ in range(3)]
        assert sorted(each.number for each in leases) == [1, 2, 3]
        assert await places.try_acquire() is None
        assert len(await places.holders()) == 3
        with pytest.raises(js.RequestTimeout, match="semaphore gpu: not free in time: held by"):
            await places.acquire(timeout=0.2)
        await leases[1].release()
        async with places.acquire(timeout=60) as again:
            assert again.number == leases[1].number
            assert again.token > leases[2].token
        for lease in leases:
            await lease.release()
        assert await places.holders() == []


async def test_no_more_than_so_many_are_inside(opened, name):
    async with opened() as jet:
        places = Coordination(jet, name, create=True).semaphore("a", 2)
        inside, most = [], []

        async def work():
            for _ in range(3):
                async with places.acquire(timeout=60):
                    inside.append(1)
                    most.append(len(inside))
                    await pause(0.01)
                    inside.pop()

        await together(*[work] * 6)
        assert (len(most), max(most)) == (18, 2)


async def test_rate_limit_applies_to_any_window(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        limiter = coordination.rate_limiter("mail", 4, per=1)
        times = []

        async def work():
            for _ in range(3):
                permit = await limiter.acquire(timeout=60)
                # By the clock that counts, the server's.
                stream = await jet.get_stream(name)
                stored = await stream.get_message(permit.token)
                times.append(stored.time)

        await together(*[work] * 4)
        times.sort()
        assert len(times) == 12
        gaps = [later - earlier for earlier, later in zip(times, times[4:], strict=False)]
        assert min(gaps) >= timedelta(seconds=1)


async def test_a_rate_limit_refuses_what_is_too_much(opened, name):
    async with opened() as jet:
        limiter = Coordination(jet, name, create=True).rate_limiter("a", 2, per=3600)
        first, second = await limiter.try_acquire(), await limiter.try_acquire()
        assert {first.number, second.number} == {1, 2}
        assert second.token > first.token
        assert await limiter.try_acquire() is None
        with pytest.raises(js.RequestTimeout, match="rate a: not free in time"):
            await limiter.acquire(timeout=0.2)


async def test_work_runs_once_and_its_result_is_known(opened, name):
    async with opened() as jet:
        once = Coordination(jet, name, create=True, owner="me").once("invoice-7")
        assert await once.result() is None
        ran = []

        async def work(lease):
            ran.append(lease.token)
            await pause(0.1)
            return b"paid"

        async def attempt():
            return await once.run(work)

        results = await together(*[attempt] * 5)
        assert len(ran) == 1
        assert sum(each.ran_here for each in results) == 1
        assert {each.state for each in results} <= {"done", "running"}
        result = await once.wait(timeout=60)
        assert (result.state, result.data, result.owner) == ("done", b"paid", "me")
        assert result.token == ran[0]
        again = await once.run(work)
        assert (again.data, again.ran_here, len(ran)) == (b"paid", False, 1)
        assert await once.forget()
        assert not await once.forget()
        assert (await once.run(work)).ran_here


async def test_waiter_gets_the_result(opened, name):
    async with opened() as jet:
        once = Coordination(jet, name, create=True).once("a")

        async def run():
            async def work(_):
                await pause(0.5)
                return b"x"

            return await once.run(work)

        async def wait():
            return await once.wait(timeout=60)

        ran, waited = await together(run, wait)
        assert (ran.ran_here, waited.ran_here, waited.data) == (True, False, b"x")
        with pytest.raises(js.RequestTimeout, match="not ended"):
            await Coordination(jet, name).once("b").wait(timeout=0.1)


async def test_a_result_is_waited_for_through_an_outage(server_factory, name):
    server = server_factory()
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=0.2)
        coordination = Coordination(jet, name, create=True)
        assert await coordination.once("a").result(timeout=60) is None
        patient = Coordination(connection.jetstream(timeout=60), name)
        assert await patient.once("a").result() is None

        async def work(_):
            return b"x"

        async def wait():
            return await coordination.once("a").wait(timeout=60)

        async def outage():
            await pause(0.1)
            server.kill()
            # Several requests run out of time meanwhile.
            await pause(1.5)
            server.restart()
            return await patient.once("a").run(work)

        waited, ran = await together(wait, outage)
        assert (waited.data, ran.ran_here) == (b"x", True)


async def test_work_that_fails_has_run(opened, name):
    async with opened() as jet:
        once = Coordination(jet, name, create=True).once("a", keep=60)

        async def broken(_):
            raise ValueError("no paper")

        async def wrong(_):
            return 7

        with pytest.raises(ValueError, match="no paper"):
            await once.run(broken)
        result = await once.run(broken)
        assert (result.state, result.error, result.ran_here) == ("failed", "no paper", False)
        with pytest.raises(js.BadArgument, match="bytes"):
            await Coordination(jet, name).once("b").run(wrong)


async def test_a_result_too_large_is_a_failure(opened, name):
    async with opened() as jet:
        once = Coordination(jet, name, create=True).once("a")

        async def large(_):
            return b"x" * 900_000

        with pytest.raises(js.BadArgument, match=r"900000 bytes, .* store it elsewhere"):
            await once.run(large)
        result = await once.result()
        assert (result.state, result.data) == ("failed", b"")
        assert "900000 bytes" in result.error
        fits = Coordination(jet, name).once("b")

        async def small(_):
            return b"x" * 785_000

        assert len((await fits.run(small)).data) == 785_000


async def test_a_result_too_large_for_the_stream_is_a_failure(opened, name):
    async with opened() as jet:
        config = evolve(Coordination.stream_config(name), max_msg_size=20_000)
        await jet.create_stream(config)
        once = Coordination(jet, name).once("a")

        async def large(_):
            return b"x" * 20_000

        with pytest.raises(js.BadArgument, match=f"20000 bytes, .* stream {name} takes 20000"):
            await once.run(large)
        assert (await once.result()).state == "failed"


async def test_the_text_of_a_failure_may_hold_anything(opened, name):
    async with opened() as jet:
        once = Coordination(jet, name, create=True).once("a")

        async def broken(_):
            raise ValueError("cannot open caf\udce9 \0")

        with pytest.raises(ValueError, match="cannot open"):
            await once.run(broken)
        result = await once.result()
        assert (result.state, result.error) == ("failed", "cannot open caf? \0")


async def test_a_stream_that_breaks_a_promise_is_refused_with_the_reasons(opened, name):
    async with opened() as jet:
        with pytest.raises(js.StreamNotFound) as missing:
            await Coordination(jet, name).lock("a").holder()
        assert "create=True" in str(missing.value)
        good = Coordination.stream_config(name)
        stream = await jet.create_stream(
            evolve(good, allow_msg_ttl=None, max_age=timedelta(minutes=1), storage="memory")
        )
        with pytest.raises(UnsuitableSettings, match="does not guarantee coordination") as caught:
            await Coordination(jet, name, create=True).lock("a").holder()
        found = [gap.setting for gap in caught.value.gaps]
        assert found == ["allow_msg_ttl", "max_age", "storage"]
        await jet.delete_stream(stream.name)
        await jet.create_stream(evolve(good, description="mine", metadata={"team": "a"}))
        coordination = Coordination(jet, name)
        assert await coordination.lock("a").holder() is None
        assert coordination.stream_name == name


async def test_bad_arguments_are_named_before_anything_is_sent(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        bad = [
            ("ttl", lambda: coordination.lock("a", ttl=1)),
            ("ttl", lambda: coordination.lock("a", ttl=2.5)),
            ("margin", lambda: coordination.lock("a", ttl=4, margin=3)),
            ("margin", lambda: coordination.lock("a", margin=0)),
            ("white space", lambda: coordination.lock("a b")),
            ("empty token", lambda: coordination.lock("")),
            ("wildcard", lambda: coordination.once("a.*")),
            ("count", lambda: coordination.semaphore("a", 0)),
            ("count", lambda: coordination.rate_limiter("a", 10_001)),
            ("per must", lambda: coordination.rate_limiter("a", 1, per=0.5)),
            ("keep must", lambda: coordination.once("a", keep=0)),
        ]
        for said, make in bad:
            with pytest.raises(js.BadArgument, match=said):
                make()
        with pytest.raises(js.BadArgument, match="kind must be one of"):
            [each async for each in coordination.held("locks")]


async def test_lock_refuses_an_invalid_on_lost(opened, name):
    async with opened() as jet:
        place = Coordination(jet, name, create=True)
        for make in (place.lock, partial(place.semaphore, count=1)):
            with pytest.raises(js.BadArgument, match="on_lost must be a plain function"):
                make("a", on_lost=5)


async def test_slots_in_use_are_listed(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        await coordination.lock("a.1").acquire()
        await coordination.semaphore("s.x", 2).acquire()
        await coordination.rate_limiter("r", 1, per=60).acquire()
        found = [(each.kind, each.name) async for each in coordination.held()]
        assert found == [("lock", "a.1"), ("semaphore", "s.x"), ("rate", "r")]
        assert [each.name async for each in coordination.held("rate")] == ["r"]


async def test_a_foreign_message_in_a_slot_is_somebody_else(opened, name):
    async with opened() as jet:
        locks = Coordination(jet, name, create=True)
        assert await locks.lock("a").holder() is None
        await jet.publish(f"{name}.held.lock.a", b"not json")
        assert await locks.lock("a").try_acquire() is None
        with pytest.raises(js.RequestTimeout, match="a foreign message"):
            await locks.lock("a").acquire(timeout=0.1)


async def test_a_lock_is_its_own_block(opened, name):
    async with opened() as jet:
        lock = Coordination(jet, name, create=True).lock("a")
        visits = []

        async def visit():
            async with lock as lease:
                assert lease.is_held
                visits.append(("in", lease.token))
                await pause(0.1)
                visits.append(("out", lease.token))

        await together(visit, visit, visit)
        tokens = [token for _, token in visits]
        assert [where for where, _ in visits] == ["in", "out"] * 3
        assert tokens[::2] == tokens[1::2] == sorted(set(tokens))
        assert await lock.holder() is None


async def test_each_block_of_a_lock_leaves_its_own_lease(opened, name):
    async with opened() as jet:
        shared = Coordination(jet, name, create=True)
        lock = shared.lock("a")
        steps = []

        async def lose():
            with pytest.raises(LeaseLost):
                await hold_what_is_evicted()

        async def hold_what_is_evicted():
            async with lock as lease:
                [slot] = [each async for each in shared.held()]
                assert await shared.evict(slot)
                assert await lease.wait_lost(timeout=60)
                steps.append("lost")
                await eventually(has_left)

        async def has_lost():
            return "lost" in steps

        async def has_left():
            return "left" in steps

        async def follow():
            await eventually(has_lost)
            async with lock as lease:
                assert lease.is_held
            steps.append("left")

        await together(lose, follow)
        assert await lock.holder() is None


async def test_a_constructor_sends_nothing(opened, name):
    async with opened() as jet:
        shared = Coordination(jet, name, create=True)
        shared.lock("a"), shared.semaphore("b", 1), shared.once("c"), shared.leader("d")
        with pytest.raises(js.StreamNotFound):
            await jet.get_stream(name)
        assert [each async for each in shared.held()] == []
        assert (await jet.get_stream(name)).cached_info.config.max_msgs_per_subject == 1
