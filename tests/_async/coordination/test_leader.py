"""Elections: one leader at a time, replaced when it stops, steps down, or is lost."""

from __future__ import annotations

import attrs
import pytest

import js_async as js
from js_async.coordination import Coordination
from js_async.runtime.concurrency import Signal
from tests._async.flow import eventually, pause
from tests.dropping import let_go
from tests.hooked import starts
from twinstream.core.deadline import NEVER, Deadline
from twinstream.errors import LeaseLost, UnsuitableSettings


class Candidate:
    """A candidate that records the calls of its handlers."""

    def __init__(self, coordination, **options):
        self.told = []
        self.leader = coordination.leader(
            "cron", ttl=30, on_elected=self.elected, on_lost=self.lost, **options
        )

    async def elected(self, lease):
        self.told.append(("elected", lease.token))
        await lease.wait_lost()

    async def lost(self, lease):
        self.told.append(("lost", lease.token))

    async def leads(self):
        """Return whether the candidate leads, and its handler was called."""
        lease = self.leader.lease
        return lease is not None and ("elected", lease.token) in self.told

    async def has_led(self):
        return self.leader.terms


async def test_one_leads_and_the_other_follows(opened, name):
    async with opened() as jet:
        one = Candidate(Coordination(jet, name, create=True, owner="one"))
        two = Candidate(Coordination(jet, name, owner="two"))
        async with one.leader:
            await eventually(one.leads)
            assert (await two.leader.holder()).owner == "one"
            async with two.leader:
                assert not two.leader.is_leader
                await one.leader.stop()
                assert not one.leader.is_leader
                await eventually(two.leads)
                assert one.leader.lease is None
                assert two.leader.lease.is_held
                assert await eventually(two.has_led) == one.leader.terms == 1
        assert await two.leader.holder() is None
        (_, first), (_, second) = one.told[0], two.told[0]
        assert one.told == [("elected", first), ("lost", first)]
        assert two.told == [("elected", second), ("lost", second)]
        assert second > first


async def test_stepping_down_gives_others_a_turn(opened, name):
    async with opened() as jet:
        one = Candidate(Coordination(jet, name, create=True))
        two = Candidate(Coordination(jet, name))
        async with one.leader:
            await eventually(one.leads)
            async with two.leader:
                assert await one.leader.step_down(pause=3600)
                await eventually(two.leads)
                assert not await one.leader.step_down()
                assert await two.leader.step_down()

                async def elected_again():
                    return two.leader.terms == 2 and two.leader.is_leader

                await eventually(elected_again)
        assert one.leader.terms == 1


async def test_an_error_of_a_handler_ends_the_campaign(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)

        async def broken(_):
            raise ValueError("cannot lead")

        leader = coordination.leader("a", on_elected=broken)
        await leader.start()
        with pytest.raises(ValueError, match="cannot lead"):
            await leader.wait(timeout=30)
        assert await leader.holder() is None
        with pytest.raises(js.BadArgument, match="started already"):
            await leader.start()


async def test_a_handler_that_checks_its_lease_ends_with_its_term(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        ended = []

        async def elected(lease):
            try:
                while True:
                    lease.check()
                    await pause(0.02)
            finally:
                ended.append(lease.token)

        leader = coordination.leader("a", on_elected=elected)
        await leader.start()
        assert await eventually(stepped_down, leader)
        await eventually(leads_again, leader)
        await leader.stop()
        assert len(ended) == 2


async def leads_again(leader):
    return leader.terms == 2 and leader.is_leader


async def test_a_lost_lease_of_another_lock_ends_the_campaign(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)

        async def elected(_):
            lock = coordination.lock("other")
            async with lock as lease:
                pass
            lease.check()

        leader = coordination.leader("a", on_elected=elected)
        await leader.start()
        with pytest.raises(LeaseLost, match="other: it was released"):
            await leader.wait(timeout=30)


async def test_an_error_at_the_end_of_a_term_waits_for_the_handler(opened, name, unlogged):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        at_work = Signal()
        returned = []

        async def elected(lease):
            await lease.wait_lost()
            await at_work.sleep(NEVER)
            returned.append(lease.token)

        async def lost(_):
            at_work.set()
            raise ValueError("cannot lose")

        leader = coordination.leader("a", on_elected=elected, on_lost=lost)
        await leader.start()
        assert await eventually(stepped_down, leader)
        with pytest.raises(ValueError, match="cannot lose"):
            await leader.wait(timeout=30)
        assert len(returned) == 1
        at_work.clear()
        leaders = [coordination.leader("b", on_elected=elected, on_lost=lost)]
        with starts() as tasks:
            await leaders[0].start()
        assert await eventually(stepped_down, leaders[0])
        assert await tasks["twinstream-leader"].join(Deadline.after(30))
        with pytest.warns(RuntimeWarning, match=f"Leader b of {name} ended with .*cannot lose"):
            let_go(leaders)


async def stepped_down(leader):
    return await leader.step_down()


async def test_leader_may_stop_in_its_own_handlers(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        told = []

        async def elected(lease):
            await leader.stop()
            told.append(("elected", lease.is_held))

        async def lost(_):
            await leader.stop()
            told.append("lost")

        leader = coordination.leader("a", on_elected=elected, on_lost=lost)
        await leader.start()
        await leader.wait(timeout=60)
        assert len(told) == 2
        assert ("elected", False) in told
        assert await leader.holder() is None


async def test_campaign_waits_for_a_deleted_stream(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        candidate = Candidate(coordination)
        async with candidate.leader:
            await eventually(candidate.leads)
            await jet.delete_stream(name)
            with pytest.raises(js.RequestTimeout):
                await candidate.leader.wait(timeout=0.3)
            await jet.create_stream(Coordination.stream_config(name))
            await eventually(candidate.leads)


async def test_campaign_ends_if_its_stream_is_recreated_with_other_settings(opened, name):
    async with opened() as jet:
        coordination = Coordination(jet, name, create=True)
        leader = coordination.leader("a")
        assert await leader.holder() is None
        await jet.delete_stream(name)
        await leader.start()
        with pytest.raises(js.RequestTimeout):
            await leader.wait(timeout=0.3)
        config = Coordination.stream_config(name)
        await jet.create_stream(attrs.evolve(config, max_msgs_per_subject=5))
        with pytest.raises(UnsuitableSettings, match="max_msgs_per_subject"):
            await leader.wait(timeout=30)
