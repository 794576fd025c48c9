"""Publishing: acknowledged, deduplicated, conditional, pipelined."""

from __future__ import annotations

import gc
from array import array
from datetime import timedelta
from functools import partial
from itertools import chain

import pytest

import js_async as js
from js_async.fast_ingest import FastIngest
from tests._async.flow import ended, eventually, together
from twinstream.models import PubAck, StreamConfig


async def test_an_acknowledgement_names_stream_and_sequence(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        acks = [await jet.publish(name, b"x") for _ in range(3)]
        assert [(ack.stream, ack.seq, ack.duplicate) for ack in acks] == [
            (name, 1, None),
            (name, 2, None),
            (name, 3, None),
        ]


async def test_message_id_makes_a_repetition_harmless(opened, name):
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
            (js.WrongLastSequence, 2, {"expected_last_seq": 7}),
            (js.WrongLastSequence, 1, {"expected_last_subject_seq": 0}),
            (js.WrongLastMessageId, None, {"expected_last_msg_id": "b"}),
            (js.WrongStream, None, {"expected_stream": "OTHER"}),
        ]
        for error, actual, condition in refused:
            with pytest.raises(error) as caught:
                await jet.publish(one, **condition)
            assert getattr(caught.value, "actual", None) == actual
        assert (await stream.info()).state.messages == 2


async def test_the_last_sequence_of_another_subject_can_be_expected(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        await jet.publish(f"{name}.orders.1.placed")
        await jet.publish(f"{name}.audit")
        after = {"expected_last_subject_seq_subject": f"{name}.orders.1.*"}
        ack = await jet.publish(f"{name}.orders.1.paid", expected_last_subject_seq=1, **after)
        assert ack.seq == 3
        with pytest.raises(js.WrongLastSequence):
            await jet.publish(f"{name}.orders.1.sent", expected_last_subject_seq=1, **after)
        with pytest.raises(js.BadArgument, match="expected_last_subject_seq"):
            await jet.publish(f"{name}.x", **after)
        assert (await stream.info()).state.messages == 3


async def test_a_rollup_removes_what_was_before(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_rollup_hdrs=True)
        stream = await jet.create_stream(config)
        for subject in (f"{name}.a", f"{name}.b", f"{name}.b"):
            await jet.publish(subject)
        await jet.publish(f"{name}.b", b"sum", rollup="sub")
        assert (await stream.info()).state.messages == 2
        await jet.publish(f"{name}.b", b"all", rollup="all")
        assert (await stream.info()).state.messages == 1
        with pytest.raises(js.BadArgument, match="'sub' or 'all'"):
            await jet.publish(f"{name}.b", rollup="some")


async def test_a_rollup_that_the_stream_does_not_take_is_refused(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        with pytest.raises(js.JetStreamError, match="rollup") as caught:
            await jet.publish(name, rollup="sub")
        assert caught.value.err_code == 10111


async def test_full_subject_has_its_own_error(opened, name):
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
        with pytest.raises(js.StoreFailed):
            await jet.publish(f"{name}.3")


async def test_subject_without_a_stream_is_distinguished(opened, name):
    async with opened() as jet:
        with pytest.raises(js.NoStream, match=f"{name}.nobody: no stream has this subject"):
            await jet.publish(f"{name}.nobody", retry_wait=0.01)


async def test_stream_without_acknowledgements_is_distinguished(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name], no_ack=True))
        sent = 0

        async def explained():
            nonlocal sent
            sent += 1
            with pytest.raises(js.RequestTimeout) as caught:
                await jet.publish(name, timeout=1)
            # On a busy machine, there may be no time left for the explanation.
            return f"stream {name} has no_ack" in str(caught.value) and caught.value

        error = await eventually(explained)
        assert type(error.__cause__) is js.NoResponders
        assert (await stream.info()).state.messages == sent


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
        for subject in ("", "a b", "a\r\nPUB b 0\r\n", ".a", "a.", "a..b", "a.*", "a.>", "a\tb"):
            with pytest.raises(js.BadArgument):
                await jet.publish(subject)
        for headers in ({"a:b": "c"}, {"a": "b\r\nc: d"}, {"": "x"}, {"a b": "c"}):
            with pytest.raises(js.BadArgument):
                await jet.publish(f"{name}.x", headers=headers)
        with pytest.raises(js.BadArgument, match="the server accepts"):
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
        outcomes = [
            each async for each in jet.publish_many(requests, window=64, raise_failures=False)
        ]
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


async def test_long_and_short_messages_of_several_come_whole(opened, name):
    sizes = (0, 65_536, 65_537, 100, 900_000, 1)
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))

        def requests(who):
            for number, size in enumerate(sizes * 2):
                headers = {"Number": str(number)} if number % 2 else None
                data = bytes([16 * who + number]) * size
                yield js.PublishRequest(subject=f"{name}.{who}", data=data, headers=headers)

        async def at_once(who):
            async for outcome in jet.publish_many(requests(who)):
                assert isinstance(outcome, PubAck)

        async def one_by_one(who):
            for each in requests(who):
                await jet.publish(each.subject, each.data, headers=each.headers)

        await together(
            *(
                lambda do=do, who=who: do(who)
                for who, do in enumerate((at_once, one_by_one, at_once, one_by_one))
            )
        )
        for who in range(4):
            found = [
                (bytes(each.data), each.headers.get("Number"))
                async for each in stream.read(subjects=f"{name}.{who}")
            ]
            wanted = [(each.data, (each.headers or {}).get("Number")) for each in requests(who)]
            assert sorted(found) == sorted(wanted)


async def listening(jet, name):
    """Return requests, the last two of which fail."""
    await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    good = [js.PublishRequest(subject=f"{name}.{number}") for number in range(20)]
    return [*good, js.PublishRequest(subject="bad subject"), js.PublishRequest(subject="nobody.x")]


async def test_headers_that_cannot_be_compared_are_refused_as_what_they_are(opened, name):
    class Table:
        def __eq__(self, other):
            raise ValueError("the truth value is ambiguous")

        __hash__ = None

    async with opened() as jet:
        await listening(jet, name)
        odd = js.PublishRequest(f"{name}.x", b"1", headers=Table())
        with pytest.raises(js.BadArgument, match="a mapping of names"):
            await jet.publish(odd.subject, odd.data, headers=odd.headers)
        outcomes = [
            outcome
            async for outcome in jet.publish_many([odd, (f"{name}.x", b"2")], raise_failures=False)
        ]
        assert isinstance(outcomes[0].error, js.BadArgument)
        assert outcomes[1].seq == 1


async def test_what_is_no_bytes_is_refused_by_its_name(opened, name):
    async with opened() as jet:
        await listening(jet, name)
        wrong = [("text", "the text 'text': encode it"), (None, "NoneType"), (5, "int")]
        wrong += [(array("i", [1, 2]), "array"), (memoryview(array("i", [1])), "memoryview")]
        for data, found in wrong:
            with pytest.raises(
                js.BadArgument, match=f"{name}.x: the data of .* bytes, got {found}"
            ):
                await jet.publish(f"{name}.x", data)
            wanted = js.PublishRequest(subject=f"{name}.x", data=data)
            [outcome] = [each async for each in jet.publish_many([wanted], raise_failures=False)]
            assert outcome.request.data is data
            assert isinstance(outcome.error, js.BadArgument)
            async with jet.publisher() as publisher:
                with pytest.raises(js.BadArgument, match="must be bytes"):
                    await publisher.send(f"{name}.x", data)
        for good in (bytearray(b"abc"), memoryview(b"abc")):
            ack = await jet.publish(f"{name}.x", good)
            assert (await jet.bind_stream(ack.stream).get_message(ack.seq)).data == b"abc"


async def test_leaving_publish_many_early_reports_failures(opened, name):
    async with opened() as jet:
        requests = await listening(jet, name)
        outcomes = jet.publish_many(requests, window=30, retries=0)

        async def leave(error=None):
            async with outcomes:
                async for outcome in outcomes:
                    assert isinstance(outcome, PubAck)
                    if error is not None:
                        raise error
                    break

        with pytest.raises(js.PublishFailures, match="2 messages") as caught:
            await leave()
        assert caught.value.count == 2
        assert [each.request for each in caught.value.failures] == requests[-2:]
        assert isinstance(caught.value.failures[1].error, js.NoStream)
        await outcomes.close()
        outcomes = jet.publish_many(requests, retries=0)
        with pytest.raises(KeyError) as gone:
            await leave(KeyError("mine"))
        assert any("2 messages" in note for note in gone.value.__notes__)


async def test_unread_outcomes_are_reported(opened, name):
    async with opened() as jet:
        await listening(jet, name)
        wrong = {"expected_last_seq": 10**6}
        requests = [js.PublishRequest(subject=f"{name}.x", **wrong) for _ in range(4)]

        async def leave(outcomes):
            async for _ in outcomes:
                # The server answers in order: the others' answers come before this one's.
                await jet.publish(f"{name}.x")
                break

        with pytest.raises(js.PublishFailures, match="4 messages"):
            async with jet.publish_many(requests) as outcomes:
                await leave(outcomes)
        outcomes = jet.publish_many(requests)
        await leave(outcomes)
        with (
            pytest.warns(RuntimeWarning, match="publish_many ended with failures .*: 4 messages"),
            pytest.warns(ResourceWarning, match="with 3 messages in flight or unread"),
        ):
            await ended(outcomes)


MANY = ["publish_many", pytest.param("FastIngest", marks=pytest.mark.since("2.14"))]


@pytest.mark.parametrize("call", MANY)
async def test_an_odd_subject_or_header_is_the_failure_of_its_message(opened, name, call):
    async with opened() as jet:
        await jet.create_stream(
            StreamConfig(
                name=name, subjects=[f"{name}.*"], allow_batched=call == "FastIngest" or None
            )
        )
        many = jet.publish_many if call == "publish_many" else partial(FastIngest, jet, name)
        odd = [([name], b"1"), ({}, b"1"), js.PublishRequest([name], b"1", msg_id="1")]
        odd += [
            js.PublishRequest(f"{name}.x", b"1", headers=headers, msg_id=msg_id)
            for headers in ("text", 5, [("A", "1")], {1: "1"}, {"A": "\ud800"})
            for msg_id in (None, "1")
        ]
        outcomes = [
            each async for each in many([*odd, (f"{name}.x", b"good")], raise_failures=False)
        ]
        assert [type(each.error) for each in outcomes[:-1]] == [js.BadArgument] * len(odd)
        assert [each.request for each in outcomes[:-1]] == [
            js.PublishRequest(*each) for each in odd
        ]
        assert not isinstance(outcomes[-1], js.PublishFailure)


@pytest.mark.parametrize("call", MANY)
async def test_a_message_may_be_given_as_a_pair(opened, name, call):
    async with opened() as jet:
        stream = await jet.create_stream(
            StreamConfig(
                name=name,
                subjects=[f"{name}.>"],
                max_msg_size=100,
                allow_batched=call == "FastIngest" or None,
            )
        )
        many = jet.publish_many if call == "publish_many" else partial(FastIngest, jet, name)
        given = [
            (f"{name}.1", b"one"),
            js.PublishRequest(f"{name}.2", b"two"),
            (f"{name}.3", bytearray(b"three")),
            ("bad subject", b""),
            (f"{name}.4", "text"),
            (f"{name}.5", b"x" * 200),
        ]
        outcomes = [each async for each in many(given, retries=0, raise_failures=False)]
        failures = [each for each in outcomes if isinstance(each, js.PublishFailure)]
        assert [outcomes.index(each) for each in failures] == [3, 4, 5]
        requests = [js.PublishRequest(*each) for each in given[3:]]
        assert [each.request for each in failures] == requests
        errors = [js.BadArgument, js.BadArgument, js.JetStreamError]
        assert [isinstance(*each) for each in zip((f.error for f in failures), errors, strict=True)]
        stored = [(await stream.get_message(seq)).data for seq in (1, 2, 3)]
        assert stored == [b"one", b"two", b"three"]


@pytest.mark.parametrize("call", MANY)
@pytest.mark.parametrize("wrong", ["orders", ("orders",), ["orders", b""], None, {"data": b""}])
async def test_what_is_no_message_is_refused(opened, name, call, wrong):
    async with opened() as jet:
        batched = call == "FastIngest" or None
        await jet.create_stream(
            StreamConfig(name=name, subjects=[f"{name}.>"], allow_batched=batched)
        )
        many = jet.publish_many if call == "publish_many" else partial(FastIngest, jet, name)
        with pytest.raises(js.BadArgument, match="a PublishRequest or a pair of subject and data"):
            async for _ in many([wrong]):
                pass


def dropped(many, request):
    """Create an iterator that is never used, and drop it."""
    many([request])
    gc.collect()


@pytest.mark.parametrize("call", ["publish_many", "FastIngest"])
async def test_unread_iterator_warns_that_nothing_was_sent(opened, name, call):
    async with opened() as jet:
        many = jet.publish_many if call == "publish_many" else partial(FastIngest, jet, name)
        with pytest.warns(RuntimeWarning, match=f"{call} sent nothing"):
            async with many([js.PublishRequest(f"{name}.1")]):
                pass
        with pytest.warns(RuntimeWarning, match=f"{call} sent nothing"):
            dropped(many, js.PublishRequest(f"{name}.1"))
        with pytest.raises(LookupError):
            async with many([js.PublishRequest(f"{name}.1")]):
                raise LookupError


async def test_read_outcomes_are_not_reported_again(opened, name):
    async with opened() as jet:
        requests = await listening(jet, name)
        async with jet.publish_many(requests, retries=0) as outcomes:
            taken = [outcome async for outcome in outcomes]
            errors = [type(each.error) for each in taken if not isinstance(each, PubAck)]
        assert len(taken) == 22
        assert errors == [js.BadArgument, js.NoStream]
        assert outcomes.in_flight == 0


async def test_left_iteration_can_be_continued(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        requests = [js.PublishRequest(subject=name) for _ in range(100)]
        async with jet.publish_many(requests, window=10) as outcomes:
            first = []
            async for outcome in outcomes:
                first.append(outcome.seq)
                if len(first) == 30:
                    break
            rest = [outcome.seq async for outcome in outcomes]
        assert [*first, *rest] == list(range(1, 101))
        assert (await stream.info()).state.messages == 100


async def test_error_of_the_source_is_raised_and_nothing_is_lost(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))

        def source():
            yield js.PublishRequest(subject=name)
            yield js.PublishRequest(subject="no where")
            raise KeyError("source")

        async def run():
            async with jet.publish_many(source(), window=10) as outcomes:
                [_ async for _ in outcomes]

        with pytest.raises(KeyError) as caught:
            await run()
        assert any("1 message was" in note for note in caught.value.__notes__)
        assert (await stream.info()).state.messages == 1


async def test_a_publisher_hands_out_results(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        async with jet.publisher(window=7) as publisher:
            handles = [await publisher.send(f"{name}.{n}", b"x", msg_id=str(n)) for n in range(50)]
            assert (await handles[0].result()).seq == 1
            await publisher.flush()
            assert all(handle.is_done for handle in handles)
            assert publisher.in_flight == 0
            assert [(await handle.result()).seq for handle in handles] == list(range(1, 51))
            again = await publisher.send(f"{name}.0", msg_id="0")
            assert (await again.result()).duplicate
        with pytest.raises(js.ConnectionClosed, match="publisher is closed"):
            await publisher.send(f"{name}.x")
        await publisher.close()
        assert (await stream.info()).state.messages == 50


async def test_a_publisher_takes_a_request_alone(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        request = js.PublishRequest(f"{name}.a", b"1", msg_id="one")
        async with jet.publisher() as publisher:
            first, again = await publisher.send(request), await publisher.send(request)
            assert first.request is request
            assert not (await first.result()).duplicate
            assert (await again.result()).duplicate
            for beside in ({"data": b"2"}, {"ttl": 5}, {"msg_id": "two"}):
                with pytest.raises(js.BadArgument, match="pass it alone"):
                    await publisher.send(request, **beside)


async def test_publisher_reports_unread_failures_at_its_end(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        publisher = jet.publisher(retries=0)
        await publisher.send(f"{name}.x", expected_last_seq=0)
        seen = await publisher.send(f"{name}.x", expected_last_seq=7)
        with pytest.raises(js.WrongLastSequence):
            await seen.result()
        unseen = await publisher.send(f"{name}.x", expected_stream="OTHER")
        with pytest.raises(js.BadArgument):
            await publisher.send("a b")
        with pytest.raises(js.PublishFailures) as caught:
            await publisher.close()
        [failure] = caught.value.failures
        assert failure.request is unseen.request
        assert isinstance(failure.error, js.WrongStream)


async def test_publishers_are_shared(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        async with jet.publisher(window=5) as publisher:

            async def work():
                for _ in range(40):
                    handle = await publisher.send(name)
                    assert publisher.in_flight <= 5
                    await handle.result()

            await together(*[work] * 6)
        assert (await stream.info()).state.messages == 240


async def test_windows_that_cannot_be(opened, name):
    async with opened() as jet:
        for wrong in ({"window": 0}, {"window_bytes": 0}, {"retries": -1}, {"retry_wait": -1}):
            with pytest.raises(js.BadArgument, match=next(iter(wrong))):
                jet.publish_many([], **wrong)
            with pytest.raises(js.BadArgument, match=next(iter(wrong))):
                jet.publisher(**wrong)


async def test_a_message_may_outlive_the_age_of_its_stream(opened, name):
    config = StreamConfig(
        name=name, subjects=[f"{name}.>"], allow_msg_ttl=True, max_age=timedelta(seconds=1)
    )
    async with opened() as jet:
        stream = await jet.create_stream(config)
        await jet.publish(f"{name}.1", b"forgotten")
        await jet.publish(f"{name}.2", b"kept", ttl="never")
        async with jet.publisher() as publisher:
            await publisher.send(f"{name}.3", b"kept", ttl="never")

        async def only_two_are_left():
            return (await stream.info()).state.messages == 2

        await eventually(only_two_are_left)
        assert [message.data async for message in stream.read()] == [b"kept"] * 2
        assert (await stream.get_message(2)).headers["Nats-TTL"] == "never"


async def test_a_stream_raises_a_ttl_to_that_of_its_markers(opened, name):
    config = StreamConfig(
        name=name,
        subjects=[f"{name}.>"],
        allow_msg_ttl=True,
        allow_rollup_hdrs=True,
        subject_delete_marker_ttl=timedelta(seconds=300),
    )
    async with opened() as jet:
        stream = await jet.create_stream(config)
        for ttl in (1, 600):
            await jet.publish(f"{name}.a", ttl=ttl)
        lives = [(await stream.get_message(seq)).headers["Nats-TTL"] for seq in (1, 2)]
        assert lives == ["300", "600"]
