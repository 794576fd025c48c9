"""Publishing: acknowledged, deduplicated, conditional, pipelined."""

from __future__ import annotations

from itertools import chain

import pytest

import js_async as js
from js_models import PubAck, StreamConfig
from tests._async.flow import together


async def test_an_acknowledgement_names_stream_and_sequence(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        acks = [await jet.publish(name, b"x") for _ in range(3)]
        assert [(ack.stream, ack.seq, ack.duplicate) for ack in acks] == [
            (name, 1, None),
            (name, 2, None),
            (name, 3, None),
        ]


async def test_a_message_id_makes_a_repeat_harmless(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        first = await jet.publish(name, b"x", msg_id="1")
        second = await jet.publish(name, b"x", msg_id="1")
        assert (first.seq, first.duplicate) == (1, None)
        assert (second.seq, second.duplicate) == (1, True)
        assert (await stream.info()).state.messages == 1


async def test_conditions_hold_or_nothing_is_stored(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.*"]))
        one, two = f"{name}.1", f"{name}.2"
        await jet.publish(one, msg_id="a", expected_last_seq=0, expected_stream=name)
        await jet.publish(two, expected_last_subject_seq=0, expected_last_msg_id="a")
        refused = [
            (js.WrongLastSequence, {"expected_last_seq": 7}),
            (js.WrongLastSequence, {"expected_last_subject_seq": 0}),
            (js.WrongLastMessageId, {"expected_last_msg_id": "b"}),
            (js.WrongStream, {"expected_stream": "OTHER"}),
        ]
        for error, condition in refused:
            with pytest.raises(error):
                await jet.publish(one, **condition)
        assert (await stream.info()).state.messages == 2


async def test_a_full_subject_refuses_with_an_error_of_its_own(opened, name):
    async with opened() as jet:
        config = StreamConfig(
            name=name,
            subjects=[f"{name}.*"],
            discard="new",
            max_msgs=2,
            max_msgs_per_subject=1,
            discard_new_per_subject=True,
        )
        await jet.create_stream(config)
        await jet.publish(f"{name}.1")
        with pytest.raises(js.MessageExists):
            await jet.publish(f"{name}.1")
        await jet.publish(f"{name}.2")
        with pytest.raises(js.StoreRefused):
            await jet.publish(f"{name}.3")


async def test_a_subject_without_a_stream_is_told_apart(opened, name):
    async with opened() as jet:
        with pytest.raises(js.NoResponders, match=f"{name}.nobody"):
            await jet.publish(f"{name}.nobody")


async def test_headers_arrive_as_they_were_given(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        given = {"Plain": "x", "Empty": "", "Grüße": "no"}
        with pytest.raises(js.BadArgument, match="Grüße"):
            await jet.publish(name, headers=given)
        await jet.publish(name, headers={"Plain": "x y", "Umlaut": "Grüße"}, msg_id="7")
        stored = await stream.get_message(1)
        assert dict(stored.headers) == {"Plain": "x y", "Umlaut": "Grüße", "Nats-Msg-Id": "7"}
        with pytest.raises(js.BadArgument, match="twice"):
            await jet.publish(name, headers={"Nats-Msg-Id": "1"}, msg_id="2")


async def test_what_could_break_the_protocol_never_leaves(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        for subject in ("", "a b", "a\r\nPUB b 0\r\n", ".a", "a.", "a..b", "a.*", "a.>", "a\0b"):
            with pytest.raises(js.BadArgument):
                await jet.publish(subject)
        for headers in ({"a:b": "c"}, {"a": "b\r\nc: d"}, {"": "x"}, {"a b": "c"}):
            with pytest.raises(js.BadArgument):
                await jet.publish(f"{name}.x", headers=headers)
        with pytest.raises(js.BadArgument, match="the server takes"):
            await jet.publish(f"{name}.x", b"x" * (1024 * 1024 + 1))
        assert (await stream.info()).state.messages == 0


async def test_many_are_published_in_order_with_an_outcome_each(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        requests = [
            js.PublishRequest(subject=f"{name}.{number}", data=b"x", msg_id=str(number % 900))
            for number in range(1000)
        ]
        requests[500] = js.PublishRequest(subject="bad subject")
        requests[501] = js.PublishRequest(subject=f"nobody.{name}")
        outcomes = [each async for each in jet.publish_many(requests, window=64)]
        assert len(outcomes) == 1000
        acks = [each for each in outcomes if isinstance(each, PubAck)]
        assert [each.seq for each in acks[:500]] == list(range(1, 501))
        assert sum(bool(each.duplicate) for each in acks) == 100
        failures = outcomes[500:502]
        assert isinstance(failures[0], js.PublishFailure)
        assert isinstance(failures[0].error, js.BadArgument)
        assert isinstance(failures[1], js.PublishFailure)
        assert isinstance(failures[1].error, js.NoResponders)
        assert failures[1].request is requests[501]
        assert (await stream.info()).state.messages == 898


async def test_publishers_do_not_mix_up_their_answers(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))

        async def publish(number):
            return [
                (await jet.publish(f"{name}.{number}", b"x", msg_id=f"{number}-{each}")).seq
                for each in range(50)
            ]

        works = [lambda number=number: publish(number) for number in range(8)]
        sequences = await together(*works)
        assert sorted(chain.from_iterable(sequences)) == list(range(1, 401))
        assert all(own == sorted(own) for own in sequences)
