"""Publishing while servers are killed and leaders change: no false success, no duplicates."""

from __future__ import annotations

from collections import Counter

import pytest

import js_async as js
from js_async.api.api import Api
from js_async.publish.verify_stored import prove
from tests._async.flow import pause, together
from tests._async.leaders import step_down
from tests.hooked import hooked, starts
from tests.inside import session_of
from twinstream.core.deadline import Deadline
from twinstream.core.wire.subjects import ApiSubjects
from twinstream.models import StreamConfig

PATIENT = js.ReconnectPolicy(wait=0.02, max_wait=0.2, attempts=-1)


async def contents(jet, name):
    """Return the messages of a stream, data by sequence."""
    stream = await jet.get_stream(name)
    state = (await stream.info(confirmed=True)).state
    found = {}
    async with stream.ordered() as messages:
        async for message in messages:
            found[message.metadata.stream_seq] = message.data
            if len(found) == state.messages:
                break
    return found


async def test_a_server_killed_in_the_middle_stores_each_id_once(server_factory, name):
    server = server_factory()
    count = 6000
    async with js.connect(server.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream()
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        requests = [
            js.PublishRequest(subject=name, data=b"%d" % n, msg_id=str(n)) for n in range(count)
        ]
        taken = []
        async with jet.publish_many(requests, window=500, timeout=40) as outcomes:
            async for outcome in outcomes:
                assert not isinstance(outcome, js.PublishFailure), outcome
                taken.append(outcome)
                if len(taken) in (1000, 2500, 4000):
                    server.kill()
                    server.restart()
        stored = await contents(jet, name)
        assert Counter(stored.values()) == Counter(b"%d" % n for n in range(count))
        assert [stored[ack.seq] for ack in taken] == [b"%d" % n for n in range(count)]


async def test_failures_are_reported_while_messages_arrive_slowly(server, name):
    told = []

    async def requests():
        yield js.PublishRequest(subject=f"{name}.nobody")
        deadline = Deadline.after(120)
        while not told and not deadline.expired():
            await pause(0.05)
            yield js.PublishRequest(subject=name)

    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        deadline = Deadline.after(100)
        async for outcome in jet.publish_many(requests(), retry_wait=0.05, raise_failures=False):
            told.append(outcome)
    # The window had room for all: nothing but the failure itself made it known.
    assert not deadline.expired()
    assert isinstance(told[0].error, js.NoStream)
    assert not any(isinstance(outcome, js.PublishFailure) for outcome in told[1:])


async def test_a_server_killed_under_a_publisher_stores_each_id_once(server_factory, name):
    server = server_factory()
    async with js.connect(server.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream()
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        async with jet.publisher(window=100, timeout=40) as publisher:
            handles = []
            for number in range(2000):
                data = b"%d" % number
                handles.append(await publisher.send(name, data, msg_id=str(number)))
                if number in (500, 1200):
                    server.kill()
                    server.restart()
        acks = [await handle.result() for handle in handles]
        stored = await contents(jet, name)
        assert Counter(stored.values()) == Counter(b"%d" % n for n in range(2000))
        assert [stored[ack.seq] for ack in acks] == [b"%d" % n for n in range(2000)]


async def test_messages_without_ids_fail_as_unknown_when_the_server_dies(server_factory, name):
    server = server_factory()
    async with js.connect(server.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream()
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))

        def requests():
            for number in range(3000):
                if number == 1000:
                    # What is sent from now on gets no answer.
                    server.pause()
                if number == 1001:
                    server.kill()
                    server.restart()
                yield js.PublishRequest(subject=name, data=b"%d" % number)

        acks, lost = {}, []
        # Never full: there would be no room for the next message while the server is paused.
        async for outcome in jet.publish_many(requests(), window=3000, timeout=40):
            if isinstance(outcome, js.PublishFailure):
                assert isinstance(outcome.error, js.ConnectionLost)
                lost.append(outcome.request.data)
            else:
                acks[outcome.seq] = b"%d" % (len(acks) + len(lost))
        assert len(acks) + len(lost) == 3000
        assert b"1000" in lost
        assert b"2999" not in lost
        stored = await contents(jet, name)
        # What was acknowledged is there, nothing twice, the rest may be there.
        assert all(stored[seq] == data for seq, data in acks.items())
        assert max(Counter(stored.values()).values()) == 1
        assert set(stored.values()) <= set(acks.values()) | set(lost)


@pytest.mark.parametrize("answers", [False, True], ids=["silent", "answering"])
async def test_elections_with_somebody_else_on_the_subject(cluster, name, answers):
    """Other subscribers hide a missing leader: a message may get no response, or a wrong one."""
    async with (
        js.connect(cluster.url, reconnect=PATIENT) as connection,
        js.connect(cluster.url, reconnect=PATIENT) as other,
    ):
        jet = connection.jetstream(timeout=20)
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"], num_replicas=3))
        listener = await other.subscribe(f"{name}.*")
        await other.flush(timeout=20)
        count = 300

        async def listen():
            async for message in listener:
                if answers and message.reply:
                    await other.publish(message.reply, b"+OK")

        async def stepdown():
            await step_down(other, f"STREAM.LEADER.STEPDOWN.{name}")

        acks = {}

        async def publish():
            for number in range(count):
                if number % 60 == 30:
                    await stepdown()
                data = b"%d" % number
                ack = await jet.publish(
                    f"{name}.a", data, msg_id=str(number), retries=20, timeout=20
                )
                acks[ack.seq] = data
            requests = (
                js.PublishRequest(subject=f"{name}.b", data=b"b%d" % n, msg_id=f"b{n}")
                for n in range(count)
            )
            done = []
            async for outcome in jet.publish_many(requests, window=20, retries=20, timeout=20):
                assert not isinstance(outcome, js.PublishFailure), outcome
                acks[outcome.seq] = b"b%d" % len(done)
                done.append(outcome)
                if len(done) % 100 == 50:
                    await stepdown()
            await listener.close()

        await together(publish, listen)
        assert len(acks) == 2 * count
        assert await contents(jet, name) == acks


async def test_a_killed_leader_costs_no_message_and_none_twice(cluster, name):
    async with js.connect(cluster.url, reconnect=PATIENT) as connection:
        jet = connection.jetstream(timeout=30)
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name], num_replicas=3))
        acks, last = {}, 0
        for number in range(150):
            if number == 50:
                leader = cluster.node((await stream.info()).cluster.leader)
                leader.kill()
            data = b"%d" % number
            # The expectation alone makes a retry safe; the id identifies the first attempt.
            ack = await jet.publish(
                name, data, msg_id=str(number), expected_last_subject_seq=last, retries=100
            )
            acks[ack.seq] = data
            last = ack.seq
        leader.restart()
        cluster.wait_until_ready()
        assert await contents(jet, name) == acks


@pytest.mark.parametrize("replicas", [1, 3])
async def test_outcome_of_an_attempt_can_be_requested(cluster, name, replicas):
    async with js.connect(cluster.url) as connection:
        jet = connection.jetstream(timeout=20)
        config = StreamConfig(name=name, subjects=[name], num_replicas=replicas)
        await asking(connection, jet, name, config)


async def test_outcome_of_an_attempt_can_be_requested_from_a_single_server(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=20)
        config = StreamConfig(name=name, subjects=[name], allow_rollup_hdrs=True)
        await asking(connection, jet, name, config)


async def asking(connection, jet, name, config):
    stream = await jet.create_stream(config)
    await jet.publish(name, b"first", msg_id="1")
    await jet.publish(name, b"second", msg_id="2", expected_last_seq=1)
    api = Api(session_of(connection), ApiSubjects.of(domain=None, prefix=None), 20)
    refusal = js.WrongLastSequence("no", code=400, err_code=10071)

    async def ask(msg_id):
        request = js.PublishRequest(
            subject=name, data=b"second", msg_id=msg_id, expected_last_seq=1
        )
        return await prove(api, request, refusal, Deadline.after(20))

    found = await ask("2")
    assert (found.seq, found.duplicate) == (2, True)
    old = connection.server_info.version_numbers < (2, 12, 0)
    with pytest.raises(js.OutcomeUnknown if old else js.WrongLastSequence):
        await ask("3")
    # The question left nothing behind: neither a message, nor an id that counts as known.
    assert (await stream.info()).state.messages == 2
    ack = await jet.publish(name, b"third", msg_id="3")
    assert (ack.seq, ack.duplicate) == (3, None)


async def test_a_publisher_that_is_interrupted_while_it_opens_leaves_nothing(server):
    ends = []

    def interrupted(started):
        ends.append(started[1])
        raise KeyboardInterrupt

    async with js.connect(server.url) as connection:
        with hooked("task: started", interrupted), pytest.raises(KeyboardInterrupt):
            await connection.jetstream().publisher().__aenter__()
        assert connection.stats.subscriptions == 0
        assert await ends[0].join(Deadline.after(30))


async def test_a_publisher_that_could_not_open_is_kept_when_it_does(server):
    def failing(_):
        raise js.RequestTimeout("not now")

    async with js.connect(server.url) as connection:
        one = connection.jetstream().publisher()
        with hooked("session: mailbox opened", failing), pytest.raises(js.RequestTimeout):
            await one.__aenter__()
        with starts() as tasks:
            async with one:
                # It goes on while the publisher is open.
                assert not await tasks["twinstream-publisher"].join(Deadline.after(0.2))
        assert await tasks["twinstream-publisher"].join(Deadline.after(30))
