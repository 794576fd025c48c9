# Generated from tests/_async/test_coordination.py by codegen/twin.py. Edit that file instead.
"""Locks, semaphores, rate limits, single runs: on a server that behaves."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from attrs import evolve

import js_sync as js
from tests._sync.flow import eventually, pause, together


def test_a_lock_has_one_holder_who_hands_it_on(opened, name):
    with opened() as jet:
        locks = jet.coordination(name, create=True, owner="one")
        others = jet.coordination(name, owner="two")
        with locks.lock("invoices", note="nightly").acquire(timeout=10) as lease:
            assert lease.is_held
            assert lease.remaining > 0
            assert (lease.name, lease.lost) == ("invoices", None)
            assert others.lock("invoices").try_acquire() is None
            holder = others.lock("invoices").holder()
            assert (holder.owner, holder.note, holder.token) == ("one", "nightly", lease.token)
            with pytest.raises(js.RequestTimeout, match=r"held by one \(token 1, nightly\)"):
                others.lock("invoices").acquire(timeout=0.3)
        assert not lease.is_held
        assert lease.lost is None
        with pytest.raises(js.LeaseLost, match="given up"):
            lease.check()
        assert locks.lock("invoices").holder() is None
        second = others.lock("invoices").try_acquire()
        assert second.token > lease.token
        assert second.release()
        assert second.release()


def test_a_waiter_gets_the_lock_by_the_word_of_its_release(opened, name):
    with opened() as jet:
        # So long that no asking again would be in time.
        lock = (jet.coordination(name, create=True)).lock("a.b", ttl=3600)
        order = []

        def hold():
            with lock.acquire(timeout=10):
                pause(0.8)
                order.append("left")

        def wait():
            eventually(lock.holder)
            with lock.acquire(timeout=30):
                order.append("entered")

        together(hold, wait)
        assert order == ["left", "entered"]


def test_a_lease_outlives_its_ttl_by_renewal(opened, name):
    with opened() as jet:
        locks = jet.coordination(name, create=True)
        with locks.lock("a", ttl=2).acquire() as lease:
            first = lease.seq

            def is_renewed():
                return lease.seq >= first + 6

            # Renewed each half second: twice the TTL at least.
            eventually(is_renewed, patience=30)
            assert lease.is_held
            assert lease.token == first
            holder = locks.lock("a").holder()
            assert (holder.token, holder.attempt > 6) == (first, True)


def test_many_want_one_lock(opened, name):
    with opened() as jet:
        lock = (jet.coordination(name, create=True)).lock("a")
        inside, tokens = [], []

        def work():
            for _ in range(5):
                with lock.acquire(timeout=60) as lease:
                    inside.append(1)
                    assert len(inside) == 1
                    pause(0.002)
                    tokens.append(lease.token)
                    inside.pop()

        together(*[work] * 6)
        assert tokens == sorted(set(tokens))
        assert len(tokens) == 30


def test_an_error_within_is_not_hidden_and_frees_the_lock(opened, name):
    with opened() as jet:
        lock = (jet.coordination(name, create=True)).lock("a")
        with pytest.raises(ZeroDivisionError):
            with lock.acquire():
                _ = 1 / 0
        assert lock.holder() is None


def test_who_is_evicted_is_told(opened, name):
    with opened() as jet:
        locks = jet.coordination(name, create=True)
        told = []
        lease = locks.lock("a", ttl=2, on_lost=told.append).acquire()
        (taken,) = [each for each in locks.taken("lock")]
        assert (taken.kind, taken.name, taken.number) == ("lock", "a", None)
        if not locks.evict(taken):  # renewed in between
            (taken,) = [each for each in locks.taken()]
            assert locks.evict(taken)
        lost = lease.wait_lost(timeout=30)
        assert "its record is gone" in str(lost)

        def is_told():
            return told == [lease]

        eventually(is_told)
        with pytest.raises(js.LeaseLost, match="its record is gone"):
            lease.close()


def test_a_semaphore_has_so_many_places(opened, name):
    with opened() as jet:
        places = (jet.coordination(name, create=True)).semaphore("gpu", 3)
        leases = [places.try_acquire() for _ in range(3)]
        assert sorted(each.number for each in leases) == [1, 2, 3]
        assert places.try_acquire() is None
        assert len(places.holders()) == 3
        with pytest.raises(js.RequestTimeout, match="semaphore gpu: not free in time: held by"):
            places.acquire(timeout=0.2)
        leases[1].release()
        with places.acquire(timeout=10) as again:
            assert again.number == leases[1].number
            assert again.token > leases[2].token
        for lease in leases:
            lease.release()
        assert places.holders() == []


def test_no_more_than_so_many_are_inside(opened, name):
    with opened() as jet:
        places = (jet.coordination(name, create=True)).semaphore("a", 2)
        inside, most = [], []

        def work():
            for _ in range(3):
                with places.acquire(timeout=60):
                    inside.append(1)
                    most.append(len(inside))
                    pause(0.01)
                    inside.pop()

        together(*[work] * 6)
        assert (len(most), max(most)) == (18, 2)


def test_a_rate_limit_holds_in_any_window(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
        limiter = coordination.rate_limiter("mail", 4, per=1)
        times = []

        def work():
            for _ in range(3):
                permit = limiter.acquire(timeout=60)
                # By the clock that counts, the server's.
                stream = jet.get_stream(name)
                stored = stream.get_message(permit.token)
                times.append(stored.time)

        together(*[work] * 4)
        times.sort()
        assert len(times) == 12
        gaps = [later - earlier for earlier, later in zip(times, times[4:], strict=False)]
        assert min(gaps) >= timedelta(seconds=1)


def test_a_rate_limit_refuses_what_is_too_much(opened, name):
    with opened() as jet:
        limiter = (jet.coordination(name, create=True)).rate_limiter("a", 2, per=3600)
        first, second = limiter.try_acquire(), limiter.try_acquire()
        assert {first.number, second.number} == {1, 2}
        assert second.token > first.token
        assert limiter.try_acquire() is None
        with pytest.raises(js.RequestTimeout, match="rate a: not free in time"):
            limiter.acquire(timeout=0.2)


def test_work_runs_once_and_its_result_is_known(opened, name):
    with opened() as jet:
        once = (jet.coordination(name, create=True, owner="me")).once("invoice-7")
        assert once.result() is None
        ran = []

        def work(lease):
            ran.append(lease.token)
            pause(0.1)
            return b"paid"

        def attempt():
            return once.run(work)

        results = together(*[attempt] * 5)
        assert len(ran) == 1
        assert sum(each.ran_here for each in results) == 1
        assert {each.state for each in results} <= {"done", "running"}
        result = once.wait(timeout=10)
        assert (result.state, result.data, result.owner) == ("done", b"paid", "me")
        assert result.token == ran[0]
        again = once.run(work)
        assert (again.data, again.ran_here, len(ran)) == (b"paid", False, 1)
        assert once.forget()
        assert not once.forget()
        assert (once.run(work)).ran_here


def test_who_waits_for_a_result_gets_it(opened, name):
    with opened() as jet:
        once = (jet.coordination(name, create=True)).once("a")

        def run():
            def work(_):
                pause(0.5)
                return b"x"

            return once.run(work)

        def wait():
            return once.wait(timeout=30)

        ran, waited = together(run, wait)
        assert (ran.ran_here, waited.ran_here, waited.data) == (True, False, b"x")
        with pytest.raises(js.RequestTimeout, match="not ended"):
            (jet.coordination(name)).once("b").wait(timeout=0.1)


def test_a_result_is_waited_for_through_an_outage(server_factory, name):
    server = server_factory()
    with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=0.2)
        coordination = jet.coordination(name, create=True)
        patient = connection.jetstream(timeout=60).coordination(name)

        def work(_):
            return b"x"

        def wait():
            return coordination.once("a").wait(timeout=60)

        def outage():
            pause(0.1)
            server.kill()
            # Several requests run out of time meanwhile.
            pause(1.5)
            server.restart()
            return patient.once("a").run(work)

        waited, ran = together(wait, outage)
        assert (waited.data, ran.ran_here) == (b"x", True)


def test_work_that_fails_has_run(opened, name):
    with opened() as jet:
        once = (jet.coordination(name, create=True)).once("a", keep=60)

        def broken(_):
            raise ValueError("no paper")

        def wrong(_):
            return 7

        with pytest.raises(ValueError, match="no paper"):
            once.run(broken)
        result = once.run(broken)
        assert (result.state, result.error, result.ran_here) == ("failed", "no paper", False)
        with pytest.raises(js.BadArgument, match="bytes"):
            (jet.coordination(name)).once("b").run(wrong)


def test_a_result_too_large_is_a_failure(opened, name):
    with opened() as jet:
        once = (jet.coordination(name, create=True)).once("a")

        def large(_):
            return b"x" * 900_000

        with pytest.raises(js.BadArgument, match=r"900000 bytes, .* store it elsewhere"):
            once.run(large)
        result = once.result()
        assert (result.state, result.data) == ("failed", b"")
        assert "900000 bytes" in result.error
        fits = (jet.coordination(name)).once("b")

        def small(_):
            return b"x" * 785_000

        assert len((fits.run(small)).data) == 785_000


def test_a_result_too_large_for_the_stream_is_a_failure(opened, name):
    with opened() as jet:
        config = evolve(js.coordination_config(name), max_msg_size=20_000)
        jet.create_stream(config)
        once = (jet.coordination(name)).once("a")

        def large(_):
            return b"x" * 20_000

        with pytest.raises(js.BadArgument, match=f"20000 bytes, .* stream {name} takes 20000"):
            once.run(large)
        assert (once.result()).state == "failed"


def test_the_text_of_a_failure_may_hold_anything(opened, name):
    with opened() as jet:
        once = (jet.coordination(name, create=True)).once("a")

        def broken(_):
            raise ValueError("cannot open caf\udce9 \0")

        with pytest.raises(ValueError, match="cannot open"):
            once.run(broken)
        result = once.result()
        assert (result.state, result.error) == ("failed", "cannot open caf? \0")


def test_a_stream_that_breaks_a_promise_is_refused_with_the_reasons(opened, name):
    with opened() as jet:
        with pytest.raises(js.StreamNotFound) as missing:
            jet.coordination(name)
        assert "create=True" in missing.value.__notes__[0]
        good = js.coordination_config(name)
        stream = jet.create_stream(
            evolve(good, allow_msg_ttl=None, max_age=timedelta(minutes=1), storage="memory")
        )
        with pytest.raises(js.NotPromised, match="does not promise coordination") as caught:
            jet.coordination(name, create=True)
        found = [hole.setting for hole in caught.value.holes]
        assert found == ["allow_msg_ttl", "max_age", "storage"]
        jet.delete_stream(stream.name)
        jet.create_stream(evolve(good, description="mine", metadata={"team": "a"}))
        assert (jet.coordination(name)).stream == name


def test_bad_arguments_are_named_before_anything_is_sent(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
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
            [each for each in coordination.taken("locks")]


def test_a_lock_refuses_what_it_cannot_tell(opened, name):
    with opened() as jet:
        place = jet.coordination(name, create=True)
        for make in (place.lock, partial(place.semaphore, count=1)):
            with pytest.raises(js.BadArgument, match="on_lost must be a plain function"):
                make("a", on_lost=5)


def test_what_is_taken_is_listed(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
        coordination.lock("a.1").acquire()
        coordination.semaphore("s.x", 2).acquire()
        coordination.rate_limiter("r", 1, per=60).acquire()
        found = [(each.kind, each.name) for each in coordination.taken()]
        assert found == [("lock", "a.1"), ("semaphore", "s.x"), ("rate", "r")]
        assert [each.name for each in coordination.taken("rate")] == ["r"]


def test_a_foreign_message_in_a_slot_is_somebody_else(opened, name):
    with opened() as jet:
        locks = jet.coordination(name, create=True)
        jet.publish(f"{name}.held.lock.a", b"not json")
        assert locks.lock("a").try_acquire() is None
        with pytest.raises(js.RequestTimeout, match="a foreign message"):
            locks.lock("a").acquire(timeout=0.1)
