"""Insert, update and upsert: on every kind of stream, with lost responses, and refused."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import js_async as js
from js_async.exactly_once import AlreadyThere, Stored, SubjectWriter, UnsuitableSettings
from tests._async.flow import pause, together
from tests._async.lossy import Lossy
from tests.inside import session_of
from twinstream.core.deadline import Deadline
from twinstream.models import KeyValueConfig, StreamConfig

FULL = {"discard": "new", "max_msgs_per_subject": 1, "discard_new_per_subject": True}
FORMS = pytest.mark.parametrize(
    "form", [FULL, {"max_msgs_per_subject": 1}, {}], ids=["limit", "one", "history"]
)
REPLICAS = pytest.mark.parametrize("replicas", [1, 3])


async def made(jet, name, **settings):
    return await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **settings))


async def held(stream):
    return (await stream.info()).state.messages


@FORMS
async def test_a_subject_is_inserted_once(opened, name, form):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, **form)
        first = await writer.insert(f"{name}.1", b"one")
        assert first == Stored(stream_name=name, seq=1)
        again = await writer.insert(f"{name}.1", b"two")
        assert isinstance(again, AlreadyThere)
        assert (again.stream_name, again.seq, again.message.data) == (name, 1, b"one")
        assert await writer.insert(f"{name}.2") == Stored(stream_name=name, seq=2)
        assert await held(stream) == 2


@FORMS
async def test_the_same_identity_is_the_same_message(opened, name, form):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, **form)
        first = await writer.insert(f"{name}.1", b"one", msg_id="event-1", headers={"A": "b"})
        again = await writer.insert(f"{name}.1", b"one", msg_id="event-1", headers={"A": "b"})
        assert again == Stored(stream_name=name, seq=first.seq, repeated=True)
        other = await writer.insert(f"{name}.1", b"one", msg_id="event-2")
        assert isinstance(other, AlreadyThere)
        assert other.message.headers["Nats-Msg-Id"] == "event-1"
        assert await held(stream) == 1


async def test_one_of_many_inserts(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name)
        results = await together(
            *[lambda n=n: writer.insert(f"{name}.1", b"%d" % n) for n in range(20)]
        )
        stored = [each for each in results if isinstance(each, Stored)]
        assert len(stored) == 1
        assert {each.seq for each in results} == {stored[0].seq}
        assert await held(stream) == 1


async def test_a_removed_message_is_not_there(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name)
        await writer.insert(f"{name}.1", b"one")
        await stream.delete_message(1)
        assert await writer.insert(f"{name}.1", b"two") == Stored(stream_name=name, seq=2)
        # An identity is refused as long as the duplicate window remembers it.
        await writer.insert(f"{name}.2", msg_id="x")
        await stream.delete_message(3)
        again = await writer.insert(f"{name}.2", msg_id="x")
        assert again == AlreadyThere(stream_name=name, seq=3, message=None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_age": timedelta(hours=1)}, "max_age is 1:00:00"),
        ({"storage": "memory"}, "set storage=file"),
        ({"max_msgs": 5, "retention": "workqueue"}, "set retention=limits; max_msgs is 5"),
    ],
)
async def test_settings_that_forget_are_named(opened, name, settings, words):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, **settings)
        with pytest.raises(UnsuitableSettings, match=words) as caught:
            await writer.insert(f"{name}.1")
        assert caught.value.stream == name
        assert await held(stream) == 0
        assert isinstance(await SubjectWriter(jet, check=False).insert(f"{name}.1"), Stored)
        if "max_age" in settings:
            assert (await writer.insert(f"{name}.2", lasting=3600)).seq == 2
            with pytest.raises(UnsuitableSettings, match="3601 s or more"):
                await writer.insert(f"{name}.3", lasting=timedelta(seconds=3601))


async def test_corrected_settings_are_noticed_at_once(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], max_age=timedelta(hours=1))
        await jet.create_stream(config)
        with pytest.raises(UnsuitableSettings):
            await writer.insert(f"{name}.1")
        await jet.update_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        assert isinstance(await writer.insert(f"{name}.1"), Stored)


@pytest.mark.parametrize("named", [False, True])
async def test_a_writer_requests_the_settings_once(server, name, named):
    async with js.connect(server.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        await made(jet, name, max_msgs_per_subject=1)
        link.api.clear()
        writer = SubjectWriter(jet, name if named else None)
        shown = name if named else "of any stream"
        assert repr(writer) == f"<SubjectWriter {shown}>"
        for number in range(3):
            assert isinstance(await writer.insert(f"{name}.{number}"), Stored)
            await writer.upsert(f"{name}.{number}")
        looked_up = [] if named else ["$JS.API.STREAM.NAMES"]
        assert link.api == [*looked_up, f"$JS.API.STREAM.INFO.{name}"]


async def test_subject_without_a_stream_is_reported(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        with pytest.raises(js.NoStream, match=f"{name}.1: no stream has this subject"):
            await writer.insert(f"{name}.1")
        await made(jet, name)
        with pytest.raises(js.StreamNotFound):
            await SubjectWriter(jet, f"{name}-NO").insert(f"{name}.1")
        with pytest.raises(js.BadArgument):
            await writer.insert(f"{name}.*")


async def test_full_stream_refuses_with_a_reason(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        await made(jet, name, discard="new", max_msgs=1)
        await writer.insert(f"{name}.1")
        with pytest.raises(js.StoreFailed):
            await writer.insert(f"{name}.2")
        assert isinstance(await writer.insert(f"{name}.1"), AlreadyThere)


async def test_an_insert_with_a_life(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        await made(jet, name, allow_msg_ttl=True, max_age=timedelta(hours=1))
        assert isinstance(await writer.insert(f"{name}.1", ttl=3600), Stored)
        with pytest.raises(UnsuitableSettings, match="max_age"):
            await writer.insert(f"{name}.2", ttl=7200)


@pytest.mark.parametrize("form", [{"max_msgs_per_subject": 1}, {}], ids=["one", "history"])
async def test_an_update_replaces_what_was_expected(opened, name, form):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, **form)
        subject = f"{name}.1"
        first = await writer.insert(subject, b"one")
        second = await writer.update(subject, b"two", first.seq)
        assert second == Stored(stream_name=name, seq=2)
        with pytest.raises(js.WrongLastSequence):
            await writer.update(subject, b"three", first.seq)
        assert (await stream.get_last_message(subject)).data == b"two"
        with pytest.raises(js.BadArgument, match="use insert"):
            await writer.update(subject, b"three", 0)


async def test_one_of_many_updates(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, max_msgs_per_subject=1)
        first = await writer.insert(f"{name}.1")

        async def change(number):
            try:
                return (await writer.update(f"{name}.1", b"%d" % number, first.seq)).seq
            except js.WrongLastSequence:
                return None

        sequences = await together(*[lambda n=n: change(n) for n in range(20)])
        assert [each for each in sequences if each is not None] == [2]
        assert await held(stream) == 1


async def test_an_upsert_leaves_the_newest_only(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, max_msgs_per_subject=1)
        assert await writer.upsert(f"{name}.1", b"one") == Stored(stream_name=name, seq=1)
        assert await writer.upsert(f"{name}.1", b"two") == Stored(stream_name=name, seq=2)
        assert await held(stream) == 1
        history = await made(jet, f"{name}-H", max_msgs_per_subject=3)
        with pytest.raises(
            UnsuitableSettings, match="max_msgs_per_subject is 3, so older messages"
        ):
            await writer.upsert(f"{name}-H.1")
        assert await held(history) == 0


async def test_an_upsert_rolls_up_where_a_history_is_kept(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, allow_rollup_hdrs=True)
        for number in range(3):
            await jet.publish(f"{name}.1", b"%d" % number)
        await writer.upsert(f"{name}.1", b"newest", headers={"A": "b"})
        assert await held(stream) == 1
        assert (await stream.get_last_message(f"{name}.1")).headers["A"] == "b"


async def test_error_for_a_full_subject_explains_how_to_replace_it(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        await made(jet, name, **FULL)
        first = await writer.insert(f"{name}.1")
        for call in (
            lambda: writer.upsert(f"{name}.1"),
            lambda: writer.update(f"{name}.1", b"two", first.seq),
        ):
            with pytest.raises(UnsuitableSettings, match=r"allow_rollup_hdrs=True on server 2\.14"):
                await call()


@pytest.mark.since("2.14")
async def test_a_full_subject_is_replaced_by_a_rollup(opened, name):
    async with opened() as jet:
        writer = SubjectWriter(jet)
        stream = await made(jet, name, **FULL, allow_rollup_hdrs=True)
        first = await writer.insert(f"{name}.1", b"one")
        second = await writer.update(f"{name}.1", b"two", first.seq)
        with pytest.raises(js.WrongLastSequence):
            await writer.update(f"{name}.1", b"three", first.seq)
        assert (await writer.upsert(f"{name}.1", b"four")).seq == second.seq + 1
        assert await held(stream) == 1
        assert isinstance(await writer.insert(f"{name}.1"), AlreadyThere)


LOSSES = pytest.mark.parametrize(
    "losses", [["request"], ["answer"], ["answer", "answer"], ["request", "answer"]], ids="-".join
)


@REPLICAS
@LOSSES
@FORMS
async def test_an_insert_survives_losses(cluster, name, replicas, losses, form):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        stream = await made(jet, name, num_replicas=replicas, **form)
        link.losses = list(losses)
        result = await writer.insert(f"{name}.1", b"x")
        assert result == Stored(stream_name=name, seq=1, repeated="answer" in losses)
        # Refused, and the refusal is lost.
        link.losses = list(losses)
        assert isinstance(await writer.insert(f"{name}.1", b"y"), AlreadyThere)
        assert await held(stream) == 1


@REPLICAS
@LOSSES
async def test_updates_and_upserts_survive_losses(cluster, name, replicas, losses):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        stream = await made(jet, name, num_replicas=replicas, max_msgs_per_subject=1)
        first = await writer.insert(f"{name}.1")
        link.losses = list(losses)
        second = await writer.update(f"{name}.1", b"2", first.seq)
        assert second == Stored(stream_name=name, seq=2, repeated="answer" in losses)
        link.losses = list(losses)
        third = await writer.upsert(f"{name}.1", b"3")
        assert third == Stored(stream_name=name, seq=3, repeated="answer" in losses)
        assert (await stream.info()).state.last_seq == 3


@REPLICAS
async def test_what_was_stored_and_replaced_is_proven(cluster, name, replicas):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        await made(jet, name, num_replicas=replicas, max_msgs_per_subject=1)
        first = await writer.insert(f"{name}.1")

        async def overwrite():
            await jet.publish(f"{name}.1", b"somebody else")

        link.losses = [overwrite]
        second = await writer.update(f"{name}.1", b"2", first.seq)
        assert second == Stored(stream_name=name, seq=2, repeated=True)


REFUSALS = pytest.mark.parametrize("refusal", ["behind", "in flight"])


@REFUSALS
@pytest.mark.parametrize("lost", ["", "lost "], ids=["stored", "lost"])
async def test_a_former_leaders_refusal_is_not_the_outcome(cluster, name, refusal, lost):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        stream = await made(jet, name, num_replicas=3, max_msgs_per_subject=1)
        first = await writer.insert(f"{name}.1")
        link.losses = [lost + refusal]
        second = await writer.update(f"{name}.1", b"2", first.seq)
        assert (second.seq, (await stream.info()).state.last_seq) == (2, 2)


# Before 2.12 a cluster reports the id of a refused message as one in process.
@pytest.mark.since("2.12")
@REFUSALS
async def test_a_write_that_a_former_leader_refused_may_be_replaced(cluster, name, refusal):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        await made(jet, name, num_replicas=3, max_msgs_per_subject=1)
        first = await writer.insert(f"{name}.1")

        async def overwrite():
            await jet.publish(f"{name}.1", b"of another client")
            return refusal

        link.losses = [overwrite]
        second = await writer.update(f"{name}.1", b"2", first.seq)
        assert second == Stored(stream_name=name, seq=2, repeated=True)
        # The other client was first this time.
        third = await jet.publish(f"{name}.1", b"of another client")
        link.losses = ["lost " + refusal]
        with pytest.raises(js.WrongLastSequence):
            await writer.update(f"{name}.1", b"4", third.seq - 1)


async def last_frame(link, stream, subject):
    """Return the response with the last message of a subject."""
    body = json.dumps({"last_by_subj": subject}).encode()
    target = f"$JS.API.STREAM.MSG.GET.{stream}"
    return await link.ask(target, b"", body, Deadline.after(20), repeatable=True)


@pytest.mark.parametrize("case", ["stored", "lost", "refused"])
async def test_a_former_leaders_message_does_not_prevent_an_insert(cluster, name, case):
    """The former leader still has a message that was removed."""
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        stream = await made(jet, name, num_replicas=3, max_msgs_per_subject=1)
        await writer.insert(f"{name}.1", b"before")
        before = await last_frame(link, name, f"{name}.1")
        await stream.purge(subject=f"{name}.1")
        if case == "refused":
            await writer.insert(f"{name}.1", b"of another client")
        link.losses = ["lost behind" if case == "lost" else "behind"]
        link.outdated = [before]
        found = await writer.insert(f"{name}.1", b"2")
        if case == "refused":
            assert isinstance(found, AlreadyThere)
            assert found.message.data == b"of another client"
        else:
            assert (found.stream_name, found.seq) == (name, 2)
            assert isinstance(found, Stored)


@pytest.mark.parametrize("marker", [True, False])
async def test_a_former_leaders_value_does_not_prevent_a_creation(cluster, name, marker):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        bucket = await jet.create_key_value(KeyValueConfig(bucket=name, num_replicas=3))
        await bucket.create("a", b"before")
        before = await last_frame(link, f"KV_{name}", f"$KV.{name}.a")
        if marker:
            await bucket.purge("a")
        else:
            await jet.bind_stream(f"KV_{name}").purge(subject=f"$KV.{name}.a")
            link.losses = ["behind"]
        link.outdated = [before]
        revision = await bucket.create("a", b"2")
        assert (await bucket.get("a")).revision == revision
        link.outdated = [before]
        with pytest.raises(js.KeyExists) as caught:
            await bucket.create("a", b"3")
        assert caught.value.entry.value == b"2"


@REPLICAS
async def test_a_sequence_that_the_subject_never_had_is_refused(cluster, name, replicas):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        stream = await made(jet, name, num_replicas=replicas, max_msgs_per_subject=1)
        await writer.insert(f"{name}.1")
        with pytest.raises(js.WrongLastSequence, match="wrong last sequence: 1"):
            await writer.update(f"{name}.1", b"2", 7)
        assert link.asked == (2 if replicas == 1 else 5)
        await stream.purge()
        with pytest.raises(js.WrongLastSequence, match="wrong last sequence: 0"):
            await writer.update(f"{name}.1", b"2", 1)


# In a cluster of 2.11 a refused message leaves its identity behind, as one in process.
@pytest.mark.since("2.12")
@REPLICAS
async def test_what_was_never_stored_is_refused(cluster, name, replicas):
    async with js.connect(cluster.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=60)
        writer = SubjectWriter(jet)
        await made(jet, name, num_replicas=replicas, max_msgs_per_subject=1)
        first = await writer.insert(f"{name}.1")
        await jet.publish(f"{name}.1", b"somebody else")
        link.losses = ["request"]
        with pytest.raises(js.WrongLastSequence):
            await writer.update(f"{name}.1", b"2", first.seq)


# Before 2.12 the identity is checked before the condition, so this can be determined.
@pytest.mark.since("2.12")
async def test_undeterminable_outcome_is_reported(server, name):
    async with js.connect(server.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream()
        writer = SubjectWriter(jet)
        window = timedelta(seconds=0.1)
        await made(jet, name, max_msgs_per_subject=1, duplicate_window=window)
        first = await writer.insert(f"{name}.1")

        async def overwrite():
            await jet.publish(f"{name}.1", b"somebody else")
            await pause(0.2)

        link.losses = [overwrite]
        with pytest.raises(js.OutcomeUnknown, match="of another writer"):
            await writer.update(f"{name}.1", b"2", first.seq)


async def test_elapsed_time_is_reported(server, name):
    async with js.connect(server.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream()
        writer = SubjectWriter(jet)
        await made(jet, name, max_msgs_per_subject=1)
        link.losses = ["answer"] * 100
        with pytest.raises(js.OutcomeUnknown, match="a response was lost"):
            await writer.upsert(f"{name}.2", timeout=0.5)
        link.losses = ["request"] * 100
        with pytest.raises(js.OutcomeUnknown):
            await writer.insert(f"{name}.3", timeout=0.5)


async def test_an_upsert_may_wait_for_the_connection_longer_than_the_window(server, name):
    async with js.connect(server.url) as connection:
        link = Lossy(session_of(connection))
        jet = link.jetstream(timeout=100)
        writer = SubjectWriter(jet)
        await made(jet, name, max_msgs_per_subject=1, duplicate_window=timedelta(seconds=10))
        await writer.upsert(f"{name}.1")
        waits = []

        async def ready(deadline):
            waits.append(deadline.remaining())

        link.ready = ready
        await writer.upsert(f"{name}.1")
        # The window counts from the first attempt on.
        assert waits[0] > 50 > waits[-1]
