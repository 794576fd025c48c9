"""Reading ranges without an own consumer, with each `via`, up to a proven end."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import js_async as js
import js_async.read.page_sources
from js_async.jetstream import range_reader
from tests._async.flow import eventually, together
from tests._async.streams import filled, has_consumers
from twinstream.core.read.arrow import arrow_schema
from twinstream.core.read.read_report import ReadEnd
from twinstream.errors import UnsuitableSettings
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import Proxy

WAYS = pytest.mark.parametrize("via", ["direct", "consumer", "leader"])


async def stored(jet, name, count=50, **options):
    """Return a stream with messages on three subjects, from which some were deleted."""
    options = {"allow_direct": True, **options}
    config = StreamConfig(name=name, subjects=[f"{name}.>"], **options)
    stream = await jet.create_stream(config)
    requests = [
        js.PublishRequest(
            subject=f"{name}.{number % 3}",
            data=b"%d" % number,
            headers={"N": [str(number)]} if number % 2 else None,
        )
        for number in range(1, count + 1)
    ]
    async for outcome in jet.publish_many(requests):
        assert not isinstance(outcome, js.PublishFailure), outcome
    return stream


async def seqs(read):
    return [message.seq async for message in read]


@WAYS
async def test_everything_is_read_in_order(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name)
        for seq in (1, 7, 8, 50):
            await stream.delete_message(seq)
        async with stream.read(via=via, page_messages=9) as read:
            messages = [message async for message in read]
        assert read.via == via
        assert [message.seq for message in messages] == sorted({*range(2, 50)} - {7, 8})
        for message in messages:
            assert message == await stream.get_message(message.seq)
        assert read.report == js.ReadReport(
            stream_name=name,
            start=2,
            end=51,
            messages=46,
            position=51,
            reason=ReadEnd.LEADER,
        )
        assert read.report.is_complete


@WAYS
async def test_a_range_and_filters(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name)
        read = stream.read(10, 20, via=via)
        assert await seqs(read) == list(range(10, 20))
        assert read.report.reason is ReadEnd.SEEN
        one = stream.read(10, 20, subjects=f"{name}.1", via=via)
        assert await seqs(one) == [10, 13, 16, 19]
        two = stream.read(10, 20, subjects=[f"{name}.1", f"{name}.2"], via=via, page_messages=3)
        assert await seqs(two) == [10, 11, 13, 14, 16, 17, 19]
        assert two.report.messages == 7
        nothing = stream.read(10, 20, subjects=f"{name}.9", via=via)
        assert await seqs(nothing) == []
        assert nothing.report.reason is ReadEnd.LEADER
        assert await seqs(stream.read(45, 1000, via=via)) == list(range(45, 51))
        behind = stream.read(51, via=via)
        assert await seqs(behind) == []
        assert behind.report.reason is ReadEnd.EMPTY


@WAYS
@pytest.mark.parametrize("crossing_since", [(2, 12, 5), (99,)])
async def test_filters_may_match_the_same_subjects(opened, name, via, crossing_since, tuned):
    tuned("crossing filters since", crossing_since)
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=via == "direct")
        stream = await jet.create_stream(config)
        # Many beside them that none lets pass, so that whole pages have nothing.
        for place in ["a.b", *["x.y"] * 9, "a.c", "x.b", "x.y"]:
            await jet.publish(f"{name}.{place}")
        crossed = [f"{name}.a.*", f"{name}.*.b"]
        read = stream.read(subjects=crossed, via=via, page_messages=3)
        assert await seqs(read) == [1, 11, 12]
        assert read.report.messages == 3
        covered = [f"{name}.a.b", f"{name}.a.*", f"{name}.a.c"]
        assert await seqs(stream.read(subjects=covered, via=via)) == [1, 11]
        for filters, number in ((crossed, 3), (covered, 2)):
            assert len(await stream.snapshot(filters)) == number
        async with stream.ordered(subjects=covered) as ordered:
            assert (await ordered.next(timeout=10)).subject == f"{name}.a.b"


@WAYS
async def test_times_bound_a_range(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name)
        times = {seq: (await stream.get_message(seq)).time for seq in (1, 20, 30, 50)}
        read = stream.read(start_time=times[20], end_time=times[30], via=via)
        assert await seqs(read) == list(range(20, 30))
        hour = timedelta(hours=1)
        assert await seqs(stream.read(start_time=times[50] + hour, via=via)) == []
        assert await seqs(stream.read(end_time=times[1] - hour, via=via)) == []
        # Further away than a server counts.
        last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
        assert await seqs(stream.read(start_time=last, via=via)) == []
        assert await seqs(stream.read(end_time=first, via=via)) == []
        assert len(await seqs(stream.read(start_time=first, end_time=last, via=via))) == 50
        everything = stream.read(start_time=times[1] - hour, end_time=times[50] + hour, via=via)
        assert await seqs(everything) == list(range(1, 51))


async def test_messages_stored_during_the_read_are_not_part_of_it(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name, 20)
        found = []
        async for message in stream.read(page_messages=4):
            found.append(message.seq)
            await jet.publish(f"{name}.1", b"later")
        assert found == list(range(1, 21))


async def test_the_way_is_chosen_by_what_the_stream_allows(opened, name):
    async with opened() as jet:
        cases = [
            ({}, None, "direct"),
            ({}, (1, 2), "consumer"),
            ({"allow_direct": False}, None, "consumer"),
            ({"retention": "workqueue"}, (1, 2), "direct"),
            ({"retention": "workqueue", "allow_direct": False}, None, "leader"),
            ({"retention": "interest", "allow_direct": False}, None, "leader"),
        ]
        for number, (options, wanted, way) in enumerate(cases):
            # Each with a name of its own: what is deleted may still be on its way out.
            own = f"{name}_{number}"
            subjects = wanted and [f"{own}.{each}" for each in wanted]
            config = StreamConfig(name=own, subjects=[f"{own}.>"])
            if options.get("retention") == "interest":
                await jet.create_stream(StreamConfig(**{**vars_of(config), **options}))
                stream = await jet.get_stream(own)
                await stream.create_consumer(ConsumerConfig(durable_name="c"))
                for each in (1, 2, 3):
                    await jet.publish(f"{own}.{each}")
            else:
                stream = await stored(jet, own, 3, **options)
            read = stream.read(subjects=subjects)
            found = await seqs(read)
            assert read.via == way, options
            assert found == ([1, 2] if subjects else [1, 2, 3])
            # Nothing was consumed, nothing was left behind.
            assert (await stream.info()).state.messages == 3
            await eventually(has_consumers, stream, int(options.get("retention") == "interest"))
            await jet.delete_stream(own)


async def test_what_cannot_be_is_refused_with_the_reason(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name, 3, allow_direct=False, retention="workqueue")
        with pytest.raises(js.BadArgument, match="allow_direct"):
            await seqs(stream.read(via="direct"))
        with pytest.raises(js.BadArgument, match="work queue"):
            await seqs(stream.read(via="consumer"))
        now = (await stream.get_message(1)).time
        for wrong in (
            {"start": 0},
            {"end": "x"},
            {"start": 1, "start_time": now},
            {"end": 1, "end_time": now},
            {"via": "magic"},
            {"subjects": 1},
            {"subjects": "a..b"},
            {"page_messages": 0},
            {"start_time": 5},
            {"idle_timeout": -1},
        ):
            with pytest.raises(js.BadArgument):
                stream.read(**wrong)
        await jet.delete_stream(name)
        with pytest.raises(js.StreamNotFound):
            await seqs(stream.read())


@WAYS
async def test_read_left_early_reports_its_position_and_cleans_up(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name)
        async with stream.read(via=via, page_messages=10) as read:
            assert read.report is None
            async for message in read:
                if message.seq == 14:
                    break
        assert read.report == js.ReadReport(
            stream_name=name, start=1, end=51, messages=14, position=15, reason=ReadEnd.CLOSED
        )
        assert not read.report.is_complete
        assert await seqs(read) == []
        await eventually(has_consumers, stream, 0)
        assert await seqs(stream.read(read.report.position)) == list(range(15, 51))


async def test_read_overtaken_by_limits_reports_it(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name, 100)
        async with stream.read(page_messages=10) as read:
            found = []
            async for message in read:
                if not found:
                    await stream.purge(before_seq=60)
                found.append(message.seq)
        assert found[0] == 1
        assert found[-1] == 100
        assert 60 in found
        assert 55 not in found
        assert read.report.overtaken_at == 60
        assert not read.report.is_complete
        # Deletions in the middle are nothing of that kind.
        await stream.delete_message(80)
        read = stream.read()
        assert len(await seqs(read)) == 40
        assert read.report.is_complete


@WAYS
async def test_recreated_stream_is_not_read_as_the_old_one(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name, 60)
        read = stream.read(via=via, page_messages=20)
        assert (await read.__anext__()).seq == 1
        await jet.delete_stream(name)
        await stored(jet, name, 50)
        with pytest.raises(js.StreamNotFound, match=r"re-created at .* read again"):
            await seqs(read)
        await read.close()


@WAYS
async def test_a_stream_deleted_behind_its_last_message_was_read(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name, 10)
        async with stream.read(via=via) as read:
            async for message in read:
                if message.seq == 10:
                    await jet.delete_stream(name)
        assert read.report.messages == 10


async def test_error_for_a_range_without_direct_gets_has_a_remedy(opened, name):
    async with opened() as jet:
        await stored(jet, name, 5, allow_direct=False)
        with pytest.raises(js.BadArgument, match="direct=False, or set allow_direct"):
            await range_reader(jet, name, 1, 6, idle_timeout=30).next_page()
        with pytest.raises(js.StreamNotFound):
            await range_reader(jet, f"{name}-no", 1, 6, idle_timeout=30).next_page()
        page = await range_reader(jet, name, 1, 6, direct=False).next_page()
        assert len(page) == 5


async def test_readers_side_by_side(opened, name):
    async with opened() as jet:
        stream = await stored(jet, name, 300)

        async def one(start):
            return await seqs(stream.read(start, start + 100, page_messages=7))

        found = await together(lambda: one(1), lambda: one(101), lambda: one(201))
        assert [seq for part in found for seq in part] == list(range(1, 301))


async def test_pages_of_few_bytes_and_large_messages(opened, name):
    async with opened() as jet:
        config = StreamConfig(name=name, subjects=[name], allow_direct=True)
        stream = await jet.create_stream(config)
        for size in (10, 5000, 10, 70000, 10):
            await jet.publish(name, b"x" * size)
        for via in ("direct", "consumer", "leader"):
            read = stream.read(via=via, page_bytes=1000)
            assert [len(message.data) async for message in read] == [10, 5000, 10, 70000, 10]


async def test_arrow_tables_hold_what_the_messages_hold(opened, name):
    pa = pytest.importorskip("pyarrow")
    async with opened() as jet:
        stream = await stored(jet, name, 20)
        for via in ("direct", "consumer"):
            table = await stream.read(via=via, page_messages=6).to_arrow()
            assert table.schema.equals(arrow_schema())
            # Not as datetime objects, which end at the microsecond.
            numbers = table.column("time").combine_chunks().cast(pa.int64()).to_pylist()
            rows = table.select(["seq", "subject", "data", "headers"]).to_pylist()
            messages = [message async for message in stream.read()]
            assert [row["seq"] for row in rows] == list(range(1, 21))
            assert numbers == [message.time.ns for message in messages]
            for row, message in zip(rows, messages, strict=True):
                assert (row["subject"], row["data"]) == (message.subject, message.data)
                wanted = [("N", [str(message.seq)])] if message.seq % 2 else None
                assert row["headers"] == wanted
        batches = [batch async for batch in stream.read(page_messages=6).arrow_batches()]
        assert [batch.num_rows for batch in batches] == [6, 6, 6, 2]
        empty = await stream.read(20, 20).to_arrow()
        assert empty.num_rows == 0


@pytest.mark.parametrize("via", ["direct", "consumer"])
async def test_sequences_that_arrow_columns_do_not_hold(opened, name, via):
    pytest.importorskip("pyarrow")
    first = 2**63 - 2
    async with opened() as jet:
        # File streams lose messages from 2**62 on.
        config = StreamConfig(
            name=name, subjects=[name], first_seq=first, storage="memory", allow_direct=True
        )
        stream = await jet.create_stream(config)
        for _ in range(4):
            await jet.publish(name, b"")
        read = stream.read(via=via, page_messages=2)
        seqs = [first + at for at in range(4)]
        assert [message.seq async for message in read] == seqs
        table = await stream.read(end=2**63, via=via).to_arrow()
        assert table.column("seq").to_pylist() == seqs[:2]
        for page_messages in (2, 100):
            with pytest.raises(
                js.Unsupported, match=f"sequence {seqs[-1]} does not fit into the column"
            ):
                await stream.read(via=via, page_messages=page_messages).to_arrow()


async def test_broken_links_lose_nothing(server, name):
    async with js.connect(server.url) as plain:
        await filled(plain.jetstream(), name, 3000)
        await plain.jetstream().update_stream(
            StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        )
    with Proxy(server.url) as proxy:
        proxy.chunk = 4096
        async with js.connect(proxy.url) as connection:
            stream = await connection.jetstream().get_stream(name)
            for via in ("direct", "consumer", "leader"):
                found = []
                async with stream.read(via=via, page_messages=400) as read:
                    async for message in read:
                        found.append(message.seq)
                        if message.seq in {1, 399, 400, 1234}:
                            proxy.cut()
                assert found == list(range(1, 3001)), via
                assert read.report.is_complete


async def read_muted(stream, via, proxy):
    async with stream.read(via=via, page_messages=400, idle_timeout=0.5) as read:
        async for _ in read:
            proxy.mute = True


@pytest.mark.parametrize("via", ["direct", "consumer"])
async def test_silence_ends_a_read_within_the_timeout_of_requests(server, name, via):
    async with js.connect(server.url) as plain:
        await filled(plain.jetstream(), name, 3000)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        await plain.jetstream().update_stream(config)
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection:
            stream = connection.jetstream(timeout=0.5).bind_stream(name)

            async def silenced():
                with pytest.raises(js.RequestTimeout) as caught:
                    await read_muted(stream, via, proxy)
                # On a busy machine, the read may end before its first message.
                return proxy.mute and caught.value

            assert "fell silent for 0.5 s" in str(await eventually(silenced))


async def test_pages_that_come_slower_than_answers_may_are_read(server, name):
    async with js.connect(server.url) as plain:
        await filled(plain.jetstream(), name, 1200)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        await plain.jetstream().update_stream(config)
    with Proxy(server.url) as proxy:
        async with js.connect(proxy.url) as connection:
            stream = connection.jetstream(timeout=0.1).bind_stream(name)
            found = []

            async def is_read():
                # On a busy machine, the answer before the first page may be late, too.
                with suppress(js.RequestTimeout):
                    async with stream.read(
                        via="direct", page_messages=400, idle_timeout=60
                    ) as read:
                        async for message in read:
                            # Each way, on and on: as a server is slow that looks for what is rare.
                            proxy.delay = 0.2
                            found.append(message.seq)
                return found

            await eventually(is_read)
            assert found == list(range(1, 1201))


def vars_of(config):
    return {name: getattr(config, name) for name in ("name", "subjects")}


@WAYS
@pytest.mark.parametrize("readable", [0, 2])
async def test_what_a_file_store_hides_is_no_complete_read(opened, name, via, readable):
    first = 2**62 - readable
    async with opened() as jet:
        stream = await stored(jet, name, 5, first_seq=first)
        read = stream.read(via=via)
        pages = [await read.next_page() for _ in range(min(readable, 1))]
        assert [seq for page in pages for seq in page.seqs] == list(range(first, 2**62))
        with pytest.raises(UnsuitableSettings, match="2\\*\\*62"):
            await read.next_page()
        assert read.report is None
        found = [message.seq async for message in stream.read(end=2**62, via=via)]
        assert found == list(range(first, 2**62))
        with pytest.raises(UnsuitableSettings):
            await stream.snapshot()
        assert await stream.purge() == 5
        assert [message async for message in stream.read(via=via)] == []


@WAYS
async def test_a_memory_store_hides_nothing(opened, name, via):
    async with opened() as jet:
        stream = await stored(jet, name, 5, first_seq=2**62 - 2, storage="memory")
        found = [message.seq async for message in stream.read(via=via)]
        assert found == list(range(2**62 - 2, 2**62 + 3))
        none = stream.read(via=via, subjects=f"{name}.none")
        assert [message async for message in none] == []
        assert none.report.is_complete


async def test_read_continues_by_message_after_arrow_batches(opened, name):
    pytest.importorskip("pyarrow")
    async with opened() as jet:
        stream = await stored(jet, name, 400)
        for via in ("direct", "consumer"):
            read = stream.read(via=via, page_messages=100)
            async for batch in read.arrow_batches():
                assert batch.column("seq").to_pylist() == list(range(1, 101))
                break
            page = await read.next_page()
            assert page is not None
            assert page.seqs == list(range(101, 201))
            assert [each.seq async for each in read] == list(range(201, 401))
            assert read.report.is_complete
            plain = [message async for message in stream.read()]
            again = stream.read(via=via, page_messages=100)
            async for _ in again.arrow_batches():
                break
            messages = [message async for message in again]
            assert messages == plain[100:]
