# Generated from tests/_async/test_leader.py by codegen/twin.py. Edit that file instead.
"""Elections: one leader, handed on by stopping, stepping down, and loss."""

from __future__ import annotations

import attrs
import pytest

import js_sync as js
from twinstream.core.deadline import NEVER, Deadline
from js_sync.runtime.concurrency import Signal
from tests._sync.flow import eventually
from tests.dropping import let_go


class Candidate:
    """Notes what its handlers are told."""

    def __init__(self, coordination, **options):
        self.told = []
        self.leader = coordination.leader(
            "cron", ttl=30, on_elected=self.elected, on_lost=self.lost, **options
        )

    def elected(self, lease):
        self.told.append(("elected", lease.token))
        lease.wait_lost()

    def lost(self, lease):
        self.told.append(("lost", lease.token))

    def leads(self):
        """Tell whether it leads, and its handler knows."""
        lease = self.leader.lease
        return lease is not None and ("elected", lease.token) in self.told

    def has_led(self):
        return self.leader.terms


def test_one_leads_and_the_other_follows(opened, name):
    with opened() as jet:
        one = Candidate(jet.coordination(name, create=True, owner="one"))
        two = Candidate(jet.coordination(name, owner="two"))
        with one.leader:
            eventually(one.leads)
            assert (two.leader.leader()).owner == "one"
            with two.leader:
                assert not two.leader.is_leader
                one.leader.stop()
                assert not one.leader.is_leader
                eventually(two.leads)
                assert one.leader.lease is None
                assert two.leader.lease.is_held
                assert eventually(two.has_led) == one.leader.terms == 1
        assert two.leader.leader() is None
        (_, first), (_, second) = one.told[0], two.told[0]
        assert one.told == [("elected", first), ("lost", first)]
        assert two.told == [("elected", second), ("lost", second)]
        assert second > first


def test_stepping_down_lets_others_have_a_turn(opened, name):
    with opened() as jet:
        one = Candidate(jet.coordination(name, create=True))
        two = Candidate(jet.coordination(name))
        with one.leader:
            eventually(one.leads)
            with two.leader:
                assert one.leader.step_down(pause=3600)
                eventually(two.leads)
                assert not one.leader.step_down()
                assert two.leader.step_down()

                def elected_again():
                    return two.leader.terms == 2 and two.leader.is_leader

                eventually(elected_again)
        assert one.leader.terms == 1


def test_an_error_of_a_handler_ends_the_campaign(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)

        def broken(_):
            raise ValueError("cannot lead")

        leader = coordination.leader("a", on_elected=broken)
        leader.start()
        with pytest.raises(ValueError, match="cannot lead"):
            leader.wait(timeout=30)
        assert leader.leader() is None
        with pytest.raises(js.BadArgument, match="started already"):
            leader.start()


def test_an_error_at_the_end_of_a_term_waits_for_the_handler(opened, name, unlogged):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
        at_work = Signal()
        returned = []

        def elected(lease):
            lease.wait_lost()
            at_work.sleep(NEVER)
            returned.append(lease.token)

        def lost(_):
            at_work.set()
            raise ValueError("cannot lose")

        leader = coordination.leader("a", on_elected=elected, on_lost=lost)
        leader.start()
        assert eventually(stepped_down, leader)
        with pytest.raises(ValueError, match="cannot lose"):
            leader.wait(timeout=30)
        assert len(returned) == 1
        at_work.clear()
        leaders = [coordination.leader("b", on_elected=elected, on_lost=lost)]
        leaders[0].start()
        assert eventually(stepped_down, leaders[0])
        assert leaders[0]._campaign.join(Deadline.after(30))
        with pytest.warns(RuntimeWarning, match="campaign for leader b ended by .*cannot lose"):
            let_go(leaders)


def stepped_down(leader):
    return leader.step_down()


def test_a_leader_may_stop_in_its_own_handlers(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
        told = []

        def elected(lease):
            leader.stop()
            told.append(("elected", lease.is_held))

        def lost(_):
            leader.stop()
            told.append("lost")

        leader = coordination.leader("a", on_elected=elected, on_lost=lost)
        leader.start()
        leader.wait(timeout=20)
        assert len(told) == 2
        assert ("elected", False) in told
        assert leader.leader() is None


def test_a_campaign_waits_for_a_stream_that_is_gone(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
        candidate = Candidate(coordination)
        jet.delete_stream(name)
        with candidate.leader:
            with pytest.raises(js.RequestTimeout):
                candidate.leader.wait(timeout=0.3)
            jet.coordination(name, create=True)
            eventually(candidate.leads)


def test_a_campaign_ends_where_its_stream_came_back_with_other_settings(opened, name):
    with opened() as jet:
        coordination = jet.coordination(name, create=True)
        leader = coordination.leader("a")
        jet.delete_stream(name)
        leader.start()
        with pytest.raises(js.RequestTimeout):
            leader.wait(timeout=0.3)
        config = js.coordination_config(name)
        jet.create_stream(attrs.evolve(config, max_msgs_per_subject=5))
        with pytest.raises(js.NotPromised, match="max_msgs_per_subject"):
            leader.wait(timeout=30)
