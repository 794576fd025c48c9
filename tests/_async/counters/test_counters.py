"""Counters of any size, concurrent additions, and additions that count once despite failures."""

from __future__ import annotations

from functools import partial

import pytest

import js_async as js
from js_async.counters import Counters
from tests._async.flow import eventually, pause, together
from tests._async.lossy import Lossy
from tests._async.scripted import scripted
from tests.inside import api_of
from twinstream.models import StreamConfig, StreamSource, SubjectTransform, evolve
from twinstream.testing import FakePeer, FakeServer, Proxy

pytestmark = pytest.mark.since("2.12")


async def counter_stream(jet, name, **members):
    members.setdefault("subjects", [f"{name}.>"])
    config = StreamConfig(name=name, allow_msg_counter=True, allow_direct=True, **members)
    await jet.create_stream(config)
    return Counters(jet, name)


async def test_additions_return_the_new_value(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)
        hits = f"{name}.hits"
        assert [await counters.add(hits), await counters.add(hits, 41)] == [1, 42]
        assert [await counters.add(hits, -50), await counters.add(hits, 0)] == [-8, -8]
        counter = await counters.get(hits)
        assert (counter.subject, counter.value, counter.delta) == (hits, -8, 0)
        assert (counter.sources, counter.seq) == ({}, 4)
        assert repr(counters) == f"<Counters of {name}>"
        with pytest.raises(js.MessageNotFound):
            await counters.get(f"{name}.never")


async def test_numbers_of_any_size(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)
        big = f"{name}.big"
        for delta in (2**63, 10**9999, -(3**9000), 10**4000, 7 * 10**8000 + 1):
            before = (await counters.get(big)).value if delta != 2**63 else 0
            assert await counters.add(big, delta) == before + delta
            assert (await counters.get(big)).value == before + delta
        for wrong in (1.0, "1", True, None):
            with pytest.raises(js.BadArgument, match="must be an int"):
                await counters.add(big, wrong)


async def test_many_add_at_the_same_time(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)

        async def add():
            return [await counters.add(f"{name}.hits") for _ in range(25)]

        results = await together(*[add] * 8)
        assert sorted(each for part in results for each in part) == list(range(1, 201))


async def test_all_counters_that_match(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)
        assert [each async for each in counters.list()] == []
        for number in range(1200):
            await counters.add(f"{name}.{number % 2}.{number}", number)
        await counters.add(f"{name}.0.0", 5)
        found = [each async for each in counters.list()]
        assert {each.subject: each.value for each in found} == {
            f"{name}.{number % 2}.{number}": number or 5 for number in range(1200)
        }
        odd = [each async for each in counters.list([f"{name}.1.*", f"{name}.0.0"])]
        assert len(odd) == 601
        async for counter in counters.list(f"{name}.1.*"):
            assert counter.value == 1
            break
        stream = await jet.get_stream(name)

        async def nothing_is_left():
            return [each async for each in stream.consumer_names()] == []

        await eventually(nothing_is_left)


async def test_the_same_message_id_is_counted_once(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name, max_msgs_per_subject=1)
        hits = f"{name}.hits"
        assert await counters.add(hits, 5, msg_id="1") == 5
        assert await counters.add(hits, 5, msg_id="1") == 5
        assert await counters.add(hits, 1) == 6
        # The message of the first addition was removed, so the newest value is returned.
        assert await counters.add(hits, 5, msg_id="1") == 6
        assert (await counters.get(hits)).value == 6


async def test_counter_is_reset_to_zero(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)
        for delta in (3, 4):
            await counters.add(f"{name}.hits", delta)
        assert await counters.reset(f"{name}.hits") == 0
        assert (await counters.get(f"{name}.hits")).delta == -7
        await counters.add(f"{name}.hits", 9)
        assert await counters.reset(f"{name}.hits", drop_history=True) == 0
        stream = await jet.get_stream(name)
        assert (await stream.info()).state.messages == 1
        with pytest.raises(js.MessageNotFound):
            await counters.reset(f"{name}.never")


async def test_counters_across_streams_have_their_sources(opened, name):
    async with opened() as jet:
        regions = [await counter_stream(jet, f"{name}{each}") for each in ("eu", "us")]
        sources = [
            StreamSource(
                name=each.stream_name,
                subject_transforms=[
                    SubjectTransform(src=f"{each.stream_name}.>", dest=f"{name}.>")
                ],
            )
            for each in regions
        ]
        for number, each in enumerate(regions, 1):
            await each.add(f"{each.stream_name}.hits", 10 * number)
            await each.add(f"{each.stream_name}.hits", number)
        total = await counter_stream(jet, name, sources=sources)
        await total.add(f"{name}.hits", 100)

        async def has_all():
            counter = await total.get(f"{name}.hits")
            return counter if counter.value == 133 else None

        counter = await eventually(has_all)
        assert counter.sources == {
            f"{name}eu": {f"{name}eu.hits": 11},
            f"{name}us": {f"{name}us.hits": 22},
        }
        await regions[0].reset(f"{name}eu.hits")

        async def follows():
            return (await total.get(f"{name}.hits")).value == 122

        await eventually(follows)


async def test_streams_that_do_not_count(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=f"{name}p", subjects=[f"{name}p.>"]))
        with pytest.raises(js.BadArgument, match="allow_msg_counter"):
            await Counters(jet, f"{name}p").get(f"{name}p.hits")
        with pytest.raises(js.StreamNotFound):
            await Counters(jet, f"{name}-none").get(f"{name}.hits")
        counters = await counter_stream(jet, name)
        other = await counter_stream(jet, f"{name}o")
        with pytest.raises(js.BadArgument, match=f"{name}p has it"):
            await counters.add(f"{name}p.hits")
        with pytest.raises(js.BadArgument, match=f"{name}o has it"):
            await counters.add(f"{name}o.hits")
        # Nor was it counted where it belongs.
        with pytest.raises(js.MessageNotFound):
            await other.get(f"{name}o.hits")


async def test_the_first_call_checks_the_stream(server, name):
    reported = []
    async with js.connect(server.url, on_call=reported.append) as connection:
        jet = connection.jetstream()
        counters = Counters(jet, name)
        assert (reported, counters.stream_name) == ([], name)
        for _ in range(2):
            # A failed check is repeated: the stream may be created meanwhile.
            with pytest.raises(js.StreamNotFound):
                await counters.add(f"{name}.hits")
        await counter_stream(jet, name)
        reported.clear()
        assert [await counters.add(f"{name}.hits") for _ in range(2)] == [1, 2]
        assert [each.value async for each in counters.list()] == [2]
        await counters.get(f"{name}.hits")
        kinds = [each.subject.rpartition(".STREAM.")[2] for each in reported]
        # `list` takes a snapshot, which begins with the info of the stream.
        assert kinds[:3] == [f"INFO.{name}", f"{name}.hits", f"{name}.hits"]
        assert kinds[-1] == f"MSG.GET.{name}"
        assert f"INFO.{name}" in kinds[3:-1]


class HeldUp:
    """A connection that becomes ready too late for the second attempt."""

    def __init__(self, transport):
        self._transport = transport
        self._is_first = True

    def __getattr__(self, name):
        return getattr(self._transport, name)

    async def ask(self, subject, *given, **options):
        try:
            return await self._transport.ask(subject, *given, **options)
        finally:
            self._is_first &= subject.startswith("$JS.")

    async def ready(self, deadline):
        await self._transport.ready(deadline)
        if not self._is_first:
            await pause(3)


async def test_what_was_never_sent_is_not_counted(opened, name):
    """The program is held up until the deadline before the second attempt."""
    async with opened() as jet:
        await counter_stream(jet, name)
        counters = Counters(js.JetStream(HeldUp(api_of(jet).transport)), name)
        with pytest.raises(js.NoResponders):
            await counters.add(f"absent.{name}", timeout=2)


async def test_a_stream_may_get_further_counters(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)
        stream = await jet.get_stream(name)
        both = [f"{name}.>", f"more{name}.>"]
        await stream.change(lambda config: evolve(config, subjects=both))
        assert [await counters.add(f"more{name}.hits") for _ in range(2)] == [1, 2]


async def test_a_wildcard_is_no_counter(opened, name):
    async with opened() as jet:
        counters = await counter_stream(jet, name)
        await counters.add(f"{name}.a", 5)
        for work in (counters.add, counters.get, partial(counters.reset, drop_history=True)):
            for wildcard in (f"{name}.*", f"{name}.>"):
                with pytest.raises(js.BadArgument, match="a wildcard"):
                    await work(wildcard)
        assert [(each.subject, each.value) async for each in counters.list()] == [(f"{name}.a", 5)]


# ---- trouble on the way


@pytest.mark.parametrize("loss", ["answer", "request"])
async def test_an_addition_that_is_refused_after_a_lost_response_is_unknown(opened, name, loss):
    async with opened() as jet:
        link = Lossy(api_of(jet).transport)
        counters = await counter_stream(link.jetstream(timeout=60), name)

        async def forbidden():
            await (await jet.get_stream(name)).seal()
            return loss

        link.losses = [forbidden]
        with pytest.raises(js.OutcomeUnknown) as caught:
            await counters.add(f"{name}.hits")
        assert isinstance(caught.value.__cause__, js.JetStreamError)
        # A refused first attempt is certain.
        with pytest.raises(js.JetStreamError):
            await counters.add(f"{name}.hits")


async def test_an_addition_without_a_connection_is_not_sent(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url, reconnect=js.ReconnectPolicy(attempts=-1)) as connection:
            counters = await counter_stream(connection.jetstream(), name)
            proxy.refuse = True
            proxy.cut()

            async def is_cut():
                return not connection.is_connected

            await eventually(is_cut)
            with pytest.raises(js.RequestTimeout):
                await counters.add(f"{name}.hits", timeout=0.5)


async def test_addition_with_lost_response_is_counted_once(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection, js.connect(server.url) as other:
            watch = await counter_stream(other.jetstream(), name)
            counters = Counters(connection.jetstream(), name)
            hits = f"{name}.hits"
            await counters.add(hits, 1)
            proxy.mute = True

            async def is_stored():
                return (await watch.get(hits)).value == 11

            async def cut_when_stored():
                await eventually(is_stored)
                await watch.add(hits, 100)
                proxy.mute = False
                proxy.cut()

            async def add():
                return await counters.add(hits, 10, timeout=20)

            value, _ = await together(add, cut_when_stored)
            # The value of its own addition, although another client has added since.
            assert value == 11
            assert (await watch.get(hits)).value == 111


async def test_a_counter_survives_a_link_that_breaks_all_the_time(server, name):
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection, js.connect(server.url) as other:
            watch = await counter_stream(other.jetstream(), name)
            counters = Counters(connection.jetstream(), name)
            done = []

            async def add():
                for number in range(60):
                    await counters.add(f"{name}.hits", number, timeout=30)
                    done.append(number)

            async def cut():
                for number in range(5, 60, 6):

                    async def is_there(number=number):
                        return len(done) >= number

                    await eventually(is_there, patience=40)
                    proxy.cut()

            await together(add, cut)
            assert (await watch.get(f"{name}.hits")).value == sum(range(60))


async def test_a_repeat_carries_the_same_id_and_waits_while_the_first_is_stored():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = {"name": "S", "subjects": ["s.>"], "allow_msg_counter": True}
        config["duplicate_window"] = 120_000_000_000
        state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
        info = {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), info)
        first = peer.expect("^HPUB s.hits ")
        conflict = {"error": {"code": 409, "err_code": 10158, "description": "in process"}}
        peer.answer(first, conflict)
        second = peer.expect("^HPUB s.hits ")
        assert first.headers == second.headers
        peer.answer(second, {"stream": "S", "seq": 7, "duplicate": True})
        stored = {"subject": "s.hits", "seq": 7, "time": "2026-01-01T00:00:00Z"}
        body = "eyJ2YWwiOiIxMiJ9"  # {"val":"12"}
        peer.answer(peer.expect(r"MSG\.GET\.S"), {"message": {**stored, "data": body}})

    async with scripted(script) as connection:
        counters = Counters(connection.jetstream(), "S")
        assert await counters.add("s.hits", 5) == 12


async def test_nothing_is_repeated_when_the_server_may_have_forgotten_the_id(tuned):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = {"name": "S", "subjects": ["s.>"], "allow_msg_counter": True}
        config["duplicate_window"] = 100_000_000
        state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
        info = {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), info)
        peer.expect("^HPUB s.hits ")
        peer.until_left(timeout=60)

    tuned("counter attempt", 0.3)
    with FakeServer(script) as fake:
        async with js.connect(fake.url) as connection:
            counters = Counters(connection.jetstream(), "S")
            with pytest.raises(js.OutcomeUnknown, match="repeated with msg_id 'mine'"):
                await counters.add("s.hits", 5, msg_id="mine", timeout=30)
        assert len(fake.operations("^HPUB")) == 1


async def test_old_server_is_reported():
    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.11.11")
        peer.until_left()

    async with scripted(script) as connection:
        with pytest.raises(js.Unsupported, match=r"counters needs server 2\.12\.0"):
            await Counters(connection.jetstream(), "S").get("s")
