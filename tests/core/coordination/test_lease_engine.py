"""The actions of a lease in each state. Random histories are in test_lease_machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from math import inf

import pytest
from attrs import evolve

from twinstream.core.arguments.check_callbacks import check_callback
from twinstream.core.coordination.coordination import (
    CoordinationSubjects,
    check_coordination,
    check_count,
    coordination_config,
)
from twinstream.core.coordination.lease_engine import (
    FOREVER,
    Drop,
    LeaseEngine,
    Look,
    Phase,
    Put,
    Terms,
)
from twinstream.core.coordination.lease_record import LeaseRecord, SlotRecord, read_slot
from twinstream.core.read.stream_message import StreamMessage
from twinstream.errors import BadArgument, UnsuitableSettings
from twinstream.models import Timestamp
from twinstream.records.headers import Headers

TERMS = Terms(12, 3)  # believed for 9 s, renewed every 3 s
TIME = Timestamp.parse("2026-01-01T00:00:00Z")


def found(seq: int, *, tenure: str = "me", attempt: int = 1, token: int = 0) -> SlotRecord:
    record = LeaseRecord(owner="o", tenure=tenure, attempt=attempt, token=token)
    return read_slot(message(record.encode(), seq))


def message(data: bytes, seq: int = 1, ttl: str | None = "12") -> StreamMessage:
    headers = Headers([("Nats-TTL", ttl)] if ttl is not None else [])
    return StreamMessage(
        stream_name="S", subject="s", seq=seq, time=TIME, data=data, headers=headers
    )


def asking() -> LeaseEngine:
    engine = LeaseEngine(TERMS, "me", 0.0)
    assert engine.poll(0.0) == Put(1, 0, 0, False)
    return engine


def held() -> LeaseEngine:
    engine = asking()
    engine.stored(1, 5, 1.0)
    assert engine.phase is Phase.HELD
    return engine


# ---- asking


def test_belief_counts_from_the_sending() -> None:
    engine = asking()
    assert not engine.believes(0.5)
    engine.stored(1, 5, 2.0)
    assert (engine.token, engine.until) == (5, 9.0)
    assert engine.believes(8.9)
    assert not engine.believes(9.0)


@pytest.mark.parametrize(("ttl", "patience"), [(1, 1.0), (12, 4.5), (60, 5.0)])
def test_half_the_belief_is_waited_for_a_response(ttl: float, patience: float) -> None:
    engine = LeaseEngine(Terms(ttl, ttl / 4), "me", 0.0)
    engine.poll(0.0)
    assert engine.patience(0.0) == patience


def test_somebody_else_has_it() -> None:
    engine = asking()
    engine.refused(1.0)
    assert engine.poll(1.0) == Look()
    engine.looked(found(3, tenure="you"), 1.1)
    assert (engine.phase, engine.poll(2.0), engine.wake_at()) == (Phase.REFUSED, None, inf)
    assert engine.holder is not None
    assert engine.holder.tenure == "you"
    engine.ask_again(5.0)
    assert (engine.holder, engine.poll(5.0)) == (None, Put(2, 0, 0, False))
    engine.ask_again(6.0)
    assert engine.phase is Phase.ASKING


def test_slot_that_is_empty_when_read_is_requested_again() -> None:
    engine = asking()
    for attempt in (2, 3, 4):
        engine.refused(1.0)
        assert engine.poll(1.0) == Look()
        engine.looked(None, 1.0)
        assert engine.poll(1.0) == Put(attempt, 0, 0, False)
    engine.refused(1.0)
    engine.poll(1.0)
    engine.looked(None, 1.0)
    assert (engine.phase, engine.holder) == (Phase.REFUSED, None)


def test_a_lost_confirmation_is_found_by_looking() -> None:
    engine = asking()
    assert engine.may_be_stored
    engine.unanswered("timeout", 1.0)
    assert engine.reason == "timeout"
    assert engine.poll(1.0) is None
    assert engine.poll(engine.wake_at()) == Put(2, 0, 0, False)
    engine.refused(2.0)
    engine.poll(2.0)
    engine.looked(found(5, attempt=1), 2.0)
    # It counts from when the first was sent, not the second.
    assert (engine.phase, engine.until, engine.token) == (Phase.HELD, 9.0, 5)
    assert not engine.may_be_stored


def test_late_confirmation_is_renewed_before_it_counts() -> None:
    engine = asking()
    engine.stored(1, 5, 9.5)
    assert engine.phase is Phase.ASKING
    assert engine.poll(9.5) == Put(2, 5, 5, False)
    engine.stored(2, 6, 10.0)
    assert (engine.phase, engine.token, engine.until) == (Phase.HELD, 5, 18.5)


def test_missing_stream_is_explained_by_the_server() -> None:
    engine = asking()
    engine.unanswered("nobody", 1.0, look=True)
    assert engine.poll(2.0) == Look()


def test_waiting_doubles_up_to_a_second() -> None:
    engine = asking()
    now, pauses = 0.0, []
    for _ in range(7):
        engine.unanswered("x", now)
        pauses.append(engine.wake_at() - now)
        now = engine.wake_at()
        engine.poll(now)
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


# ---- holding


def test_renewals_move_the_end() -> None:
    engine = held()
    assert (engine.wake_at(), engine.poll(2.9)) == (3.0, None)
    assert engine.patience(2.9) == 1.5
    assert engine.patience(8.5) == 0.5
    assert engine.poll(3.0) == Put(2, 5, 5, False)
    engine.stored(2, 8, 3.5)
    assert (engine.until, engine.seq, engine.token, engine.wake_at()) == (12.0, 8, 5, 6.0)


def test_what_is_not_renewed_is_lost_for_good() -> None:
    engine = held()
    engine.poll(3.0)
    engine.unanswered("no answer", 8.9)
    assert engine.wake_at() == pytest.approx(8.95)
    assert engine.poll(9.0) is None
    assert engine.phase is Phase.LOST
    assert engine.reason == "it was not renewed in time (no answer)"
    engine.stored(2, 6, 9.1)
    assert (engine.phase, engine.believes(9.1), engine.wake_at()) == (Phase.LOST, False, inf)
    engine.leave(9.2)
    engine.fail("again")
    assert engine.reason == "it was not renewed in time (no answer)"


@pytest.mark.parametrize(
    ("record", "reason"),
    [(None, "its record was removed"), (found(9, tenure="you"), "o has it now")],
)
def test_lease_is_lost_if_its_record_is_removed_or_replaced(
    record: SlotRecord | None, reason: str
) -> None:
    engine = held()
    engine.poll(3.0)
    engine.refused(3.1)
    assert engine.poll(3.1) == Look()
    engine.looked(record, 3.2)
    assert (engine.phase, engine.reason) == (Phase.LOST, reason)


@pytest.mark.parametrize(
    "stale",
    [found(5), found(6, attempt=1), found(3, tenure="you")],
    ids=["the record before", "an attempt that is settled", "somebody before us"],
)
def test_a_stale_look_moves_nothing(stale: SlotRecord) -> None:
    engine = held()
    engine.poll(3.0)
    engine.refused(3.1)
    engine.poll(3.1)
    engine.looked(stale, 3.2)
    assert (engine.phase, engine.until, engine.seq) == (Phase.HELD, 9.0, 5)
    assert engine.poll(engine.wake_at()) == Put(3, 5, 5, False)


def leaving() -> LeaseEngine:
    engine = held()
    engine.leave(2.0)
    return engine


@pytest.mark.parametrize(
    ("made", "record", "wanted"),
    [
        (asking, None, False),
        (asking, found(5), False),
        (asking, found(5, tenure="you"), True),
        (held, None, True),
        (held, found(5), False),
        (held, found(9, tenure="you"), False),
        (leaving, None, True),
        (leaving, found(5), False),
        (leaving, found(9, tenure="you"), False),
    ],
)
def test_what_a_former_leader_may_reply_needs_proof(
    made: Callable[[], LeaseEngine], record: SlotRecord | None, wanted: bool
) -> None:
    assert made().needs_proof(record) is wanted


def test_look_after_a_failure_is_ignored() -> None:
    engine = held()
    engine.fail("closed")
    engine.looked(None, 1.0)
    assert engine.reason == "closed"


def test_a_record_without_end_is_never_renewed() -> None:
    engine = LeaseEngine(FOREVER, "me", 0.0)
    engine.poll(0.0)
    assert engine.patience(0.0) == 5.0
    engine.stored(1, 5, 1.0)
    assert engine.believes(1e12)
    assert engine.wake_at() == inf


# ---- leaving


def test_leaving_removes_the_record() -> None:
    engine = held()
    engine.leave(2.0)
    assert not engine.believes(2.0)
    assert engine.poll(2.0) == Drop(5)
    engine.dropped(True, 2.1)
    assert (engine.phase, engine.poll(3.0)) == (Phase.LEFT, None)


def test_leaving_before_asking_is_nothing() -> None:
    engine = LeaseEngine(TERMS, "me", 0.0)
    engine.leave(0.0)
    assert engine.phase is Phase.LEFT


def test_release_finds_a_renewal_with_lost_confirmation() -> None:
    engine = held()
    engine.poll(3.0)
    engine.leave(3.1)
    engine.unanswered("timeout", 3.2)
    assert engine.poll(4.0) == Drop(5)
    engine.dropped(False, 4.0)
    assert engine.poll(4.0) == Look()
    engine.looked(found(7, attempt=2, token=5), 4.0)
    assert engine.poll(4.0) == Drop(7)
    engine.dropped(False, 4.1)
    engine.poll(4.1)
    engine.looked(None, 4.1)
    assert engine.phase is Phase.LEFT


def test_leaving_while_asking_looks_for_what_may_be_stored() -> None:
    engine = asking()
    engine.leave(1.0)
    assert engine.poll(1.0) == Look()
    engine.looked(found(5), 1.0)
    assert engine.poll(1.0) == Drop(5)


def test_leaving_gives_up_when_the_record_ran_out() -> None:
    engine = held()
    engine.leave(2.0)
    engine.poll(2.0)
    engine.unanswered("x", 11.9)
    assert engine.phase is Phase.LEAVING
    engine.unanswered("x", 12.0)
    assert engine.phase is Phase.LEFT


def test_a_final_record_stays() -> None:
    engine = held()
    engine.leave(2.0, final=True)
    assert engine.poll(2.0) == Put(2, 5, 5, True)
    engine.unanswered("x", 2.5)
    assert engine.poll(3.0) == Put(3, 5, 5, True)
    engine.refused(3.1)
    assert engine.poll(3.1) == Look()
    # The first one is there; the second is stored over it, for what that one is for.
    engine.looked(found(6, attempt=2, token=5), 3.2)
    assert engine.poll(3.2) == Put(4, 6, 5, True)
    engine.stored(4, 7, 3.3)
    assert engine.phase is Phase.LEFT


def test_final_record_that_cannot_be_stored_is_a_loss() -> None:
    engine = held()
    engine.leave(2.0, final=True)
    engine.poll(2.0)
    engine.refused(2.1)
    engine.poll(2.1)
    engine.looked(None, 2.1)
    assert (engine.phase, engine.reason) == (Phase.LOST, "its record was removed")


# ---- terms


def test_terms_are_whole_seconds_with_a_margin_up_to_half_of_them() -> None:
    assert Terms.of(15, None) == Terms(15, 1.0)
    assert Terms.of(2, None) == Terms(2, 0.5)
    assert Terms.of(timedelta(minutes=1), 5) == Terms(60, 5)
    assert Terms.period(1, "per") == Terms(1, 0.0)
    for ttl, margin in [(1, None), (2.5, None), (4, 2.1), (4, 0)]:
        with pytest.raises(BadArgument):
            Terms.of(ttl, margin)
    for period in (0, 1.5):
        with pytest.raises(BadArgument):
            Terms.period(period, "per")


# ---- records


def test_record_is_decoded_as_encoded() -> None:
    record = LeaseRecord(
        owner="o", tenure="t", attempt=3, token=7, state="done", note="n", data=b"\x00x"
    )
    slot = read_slot(message(record.encode(), 9))
    assert (slot.owner, slot.tenure, slot.attempt, slot.token) == ("o", "t", 3, 7)
    assert (slot.state, slot.note, slot.data, slot.ttl, slot.seq) == ("done", "n", b"\x00x", 12, 9)


@pytest.mark.parametrize("token", [-1, 10, 2**64, 10**309])
def test_a_token_that_no_holder_can_have_counts_as_missing(token: int) -> None:
    assert found(9, token=token).token == 9
    assert found(9, token=9).token == 9


def test_a_note_may_hold_anything() -> None:
    record = LeaseRecord(owner="o\udce9", tenure="t", attempt=1, note="caf\udce9 \0\ud800\n")
    slot = read_slot(message(record.encode(), 9))
    assert (slot.owner, slot.note) == ("o?", "caf? \0?\n")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"owner":1,"tenure":[],"attempt":true,"data":"?"}',
    ],
)
def test_foreign_record_has_an_unknown_owner(data: bytes) -> None:
    slot = read_slot(message(data, 9, ttl=None))
    assert (slot.owner, slot.tenure, slot.attempt, slot.token) == ("", "", 0, 9)
    assert (slot.data, slot.state, slot.ttl) == (b"", "held", None)


# ---- streams


def test_slot_subjects_are_created_and_parsed() -> None:
    subjects = CoordinationSubjects("L")
    assert subjects.slot("lock", "a.b") == "L.held.lock.a.b"
    assert subjects.slot("rate", "a", 3) == "L.held.rate.a.3"
    assert subjects.slots("rate", "a") == "L.held.rate.a.*"
    assert subjects.freed("lock", "a") == "L.freed.lock.a"
    assert (subjects.kind(None), subjects.kind("once")) == ("L.held.>", "L.held.once.>")
    assert subjects.parts("L.held.lock.a.1") == ("lock", "a.1", None)
    assert subjects.parts("L.held.semaphore.a.b.12") == ("semaphore", "a.b", 12)
    assert subjects.parts("L.held.rate.odd") == ("rate", "odd", None)
    with pytest.raises(BadArgument, match="one of"):
        subjects.kind("x")
    with pytest.raises(BadArgument, match="stream"):
        CoordinationSubjects("a.b")
    assert check_count(1, "n") == 1
    for count in (0, 10_001, 1.0, True):
        with pytest.raises(BadArgument, match="n must be"):
            check_count(count, "n")  # type: ignore[arg-type]


def test_own_configuration_is_suitable() -> None:
    config = coordination_config("L", replicas=3)
    assert config.num_replicas == 3
    check_coordination(config, CoordinationSubjects("L"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"allow_msg_ttl": None}, "allow_msg_ttl is unset, so .*: set it to true"),
        ({"allow_msg_ttl": False}, "allow_msg_ttl is false, so"),
        ({"max_msg_size": 500}, "max_msg_size is 500, so records may not fit: set it to -1"),
        ({"max_msgs_per_subject": 2}, "max_msgs_per_subject is 2, so .*: set it to 1"),
        ({"discard_new_per_subject": True}, "renewals are refused: set it to false"),
        ({"max_age": timedelta(hours=1)}, "max_age is .*, so slots are released before"),
        ({"max_msgs": 10}, "max_msgs is 10, so .*: set it to -1"),
        ({"max_bytes": 1000}, "max_bytes"),
        ({"subject_delete_marker_ttl": timedelta(seconds=1)}, "marker"),
        ({"retention": "workqueue"}, "retention is workqueue, so"),
        ({"deny_delete": True}, "deny_delete"),
        ({"no_ack": True}, "no_ack"),
        ({"sealed": True}, "sealed"),
        ({"subjects": ["other"]}, "subjects is other, so .*: add L.held.>"),
        ({"subjects": None}, "subjects is unset"),
        ({"storage": "memory"}, "storage is memory, so with one replica"),
    ],
)
def test_each_setting_that_breaks_a_promise_is_named(changes: dict[str, object], said: str) -> None:
    config = evolve(coordination_config("L"), **changes)
    with pytest.raises(UnsuitableSettings, match=said):
        check_coordination(config, CoordinationSubjects("L"))


def test_memory_on_several_servers_will_do() -> None:
    config = evolve(coordination_config("L", replicas=3), storage="memory", max_msgs=-1, name=None)
    check_coordination(config, CoordinationSubjects("L"))


class Later:
    async def __call__(self, lease: object) -> None: ...


@pytest.mark.parametrize("handler", [5, Later().__call__, Later()])
def test_callback_of_a_loss_is_not_waited_for(handler: object) -> None:
    check_callback(None, "on_lost")
    check_callback(print, "on_lost")
    with pytest.raises(BadArgument, match="on_lost must"):
        check_callback(handler, "on_lost")
