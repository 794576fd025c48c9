# Generated from tests/_async/test_counters.py by codegen/twin.py. Edit that file instead.
"""Counters: of any size, from many at once, counted once whatever happens on the way."""

from __future__ import annotations

from functools import partial

import pytest

import js_sync as js
from twinstream.models import StreamConfig, StreamSource, SubjectTransform, evolve
from twinstream.testing import FakePeer, FakeServer, Proxy
from tests._sync.flow import eventually, together

pytestmark = pytest.mark.since("2.12")


def counter_stream(jet, name, **members):
    members.setdefault("subjects", [f"{name}.>"])
    config = StreamConfig(name=name, allow_msg_counter=True, allow_direct=True, **members)
    jet.create_stream(config)
    return jet.counters(name)


def test_additions_return_the_new_value(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)
        hits = f"{name}.hits"
        assert [counters.add(hits), counters.add(hits, 41)] == [1, 42]
        assert [counters.add(hits, -50), counters.add(hits, 0)] == [-8, -8]
        counter = counters.get(hits)
        assert (counter.subject, counter.value, counter.delta) == (hits, -8, 0)
        assert (counter.sources, counter.seq) == ({}, 4)
        assert repr(counters) == f"<Counters of {name}>"
        with pytest.raises(js.MessageNotFound):
            counters.get(f"{name}.never")


def test_numbers_of_any_size(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)
        big = f"{name}.big"
        for delta in (2**63, 10**9999, -(3**9000), 10**4000, 7 * 10**8000 + 1):
            before = (counters.get(big)).value if delta != 2**63 else 0
            assert counters.add(big, delta) == before + delta
            assert (counters.get(big)).value == before + delta
        for wrong in (1.0, "1", True, None):
            with pytest.raises(js.BadArgument, match="whole numbers"):
                counters.add(big, wrong)


def test_many_add_at_the_same_time(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)

        def add():
            return [counters.add(f"{name}.hits") for _ in range(25)]

        results = together(*[add] * 8)
        assert sorted(each for part in results for each in part) == list(range(1, 201))


def test_all_counters_that_match(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)
        assert [each for each in counters.get_many()] == []
        for number in range(1200):
            counters.add(f"{name}.{number % 2}.{number}", number)
        counters.add(f"{name}.0.0", 5)
        found = [each for each in counters.get_many()]
        assert {each.subject: each.value for each in found} == {
            f"{name}.{number % 2}.{number}": number or 5 for number in range(1200)
        }
        odd = [each for each in counters.get_many([f"{name}.1.*", f"{name}.0.0"])]
        assert len(odd) == 601
        for counter in counters.get_many(f"{name}.1.*"):
            assert counter.value == 1
            break
        stream = jet.get_stream(name)

        def nothing_is_left():
            return [each for each in stream.consumer_names()] == []

        eventually(nothing_is_left)


def test_the_same_message_id_is_counted_once(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name, max_msgs_per_subject=1)
        hits = f"{name}.hits"
        assert counters.add(hits, 5, msg_id="1") == 5
        assert counters.add(hits, 5, msg_id="1") == 5
        assert counters.add(hits, 1) == 6
        # The message of the first addition is gone, so the newest value is told.
        assert counters.add(hits, 5, msg_id="1") == 6
        assert (counters.get(hits)).value == 6


def test_a_counter_goes_back_to_zero(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)
        for delta in (3, 4):
            counters.add(f"{name}.hits", delta)
        assert counters.reset(f"{name}.hits") == 0
        assert (counters.get(f"{name}.hits")).delta == -7
        counters.add(f"{name}.hits", 9)
        assert counters.reset(f"{name}.hits", drop_history=True) == 0
        stream = jet.get_stream(name)
        assert (stream.info()).state.messages == 1
        with pytest.raises(js.MessageNotFound):
            counters.reset(f"{name}.never")


def test_sums_over_streams_know_what_came_from_where(opened, name):
    with opened() as jet:
        regions = [counter_stream(jet, f"{name}{each}") for each in ("eu", "us")]
        sources = [
            StreamSource(
                name=each.stream,
                subject_transforms=[SubjectTransform(src=f"{each.stream}.>", dest=f"{name}.>")],
            )
            for each in regions
        ]
        for number, each in enumerate(regions, 1):
            each.add(f"{each.stream}.hits", 10 * number)
            each.add(f"{each.stream}.hits", number)
        total = counter_stream(jet, name, sources=sources)
        total.add(f"{name}.hits", 100)

        def has_all():
            counter = total.get(f"{name}.hits")
            return counter if counter.value == 133 else None

        counter = eventually(has_all)
        assert counter.sources == {
            f"{name}eu": {f"{name}eu.hits": 11},
            f"{name}us": {f"{name}us.hits": 22},
        }
        regions[0].reset(f"{name}eu.hits")

        def follows():
            return (total.get(f"{name}.hits")).value == 122

        eventually(follows)


def test_streams_that_do_not_count(opened, name):
    with opened() as jet:
        jet.create_stream(StreamConfig(name=f"{name}p", subjects=[f"{name}p.>"]))
        with pytest.raises(js.BadArgument, match="allow_msg_counter"):
            jet.counters(f"{name}p")
        with pytest.raises(js.StreamNotFound):
            jet.counters(f"{name}-none")
        counters = counter_stream(jet, name)
        other = counter_stream(jet, f"{name}o")
        with pytest.raises(js.BadArgument, match=f"{name}p has it"):
            counters.add(f"{name}p.hits")
        with pytest.raises(js.BadArgument, match=f"{name}o has it"):
            counters.add(f"{name}o.hits")
        # Nor was it counted where it belongs.
        with pytest.raises(js.MessageNotFound):
            other.get(f"{name}o.hits")
        with pytest.raises(js.NoResponders):
            counters.add(f"nobody.{name}", timeout=0.5)


def test_a_stream_may_get_further_counters(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)
        stream = jet.get_stream(name)
        both = [f"{name}.>", f"more{name}.>"]
        stream.change(lambda config: evolve(config, subjects=both))
        assert [counters.add(f"more{name}.hits") for _ in range(2)] == [1, 2]


def test_a_wildcard_is_no_counter(opened, name):
    with opened() as jet:
        counters = counter_stream(jet, name)
        counters.add(f"{name}.a", 5)
        for work in (counters.add, counters.get, partial(counters.reset, drop_history=True)):
            for wildcard in (f"{name}.*", f"{name}.>"):
                with pytest.raises(js.BadArgument, match="a wildcard"):
                    work(wildcard)
        assert [(each.subject, each.value) for each in counters.get_many()] == [(f"{name}.a", 5)]


# ---- trouble on the way


def test_an_addition_whose_answer_is_lost_is_counted_once(server, name):
    with Proxy(server.url) as proxy:
        with js.connect(proxy.url) as connection, js.connect(server.url) as other:
            watch = counter_stream(other.jetstream(), name)
            counters = connection.jetstream().counters(name)
            hits = f"{name}.hits"
            counters.add(hits, 1)
            proxy.mute = True

            def is_stored():
                return (watch.get(hits)).value == 11

            def cut_when_stored():
                eventually(is_stored)
                watch.add(hits, 100)
                proxy.mute = False
                proxy.cut()

            def add():
                return counters.add(hits, 10, timeout=20)

            value, _ = together(add, cut_when_stored)
            # Its own value, though somebody else has added since.
            assert value == 11
            assert (watch.get(hits)).value == 111


def test_a_counter_survives_a_link_that_breaks_all_the_time(server, name):
    with Proxy(server.url) as proxy:
        with js.connect(proxy.url) as connection, js.connect(server.url) as other:
            watch = counter_stream(other.jetstream(), name)
            counters = connection.jetstream().counters(name)
            done = []

            def add():
                for number in range(60):
                    counters.add(f"{name}.hits", number, timeout=30)
                    done.append(number)

            def cut():
                for number in range(5, 60, 6):

                    def is_there(number=number):
                        return len(done) >= number

                    eventually(is_there, patience=40)
                    proxy.cut()

            together(add, cut)
            assert (watch.get(f"{name}.hits")).value == sum(range(60))


def test_a_repeat_carries_the_same_id_and_waits_while_the_first_is_stored():
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

    with FakeServer(script) as fake:
        with js.connect(fake.url) as connection:
            counters = connection.jetstream().counters("S")
            assert counters.add("s.hits", 5) == 12


def test_nothing_is_repeated_when_the_server_may_have_forgotten_the_id():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        config = {"name": "S", "subjects": ["s.>"], "allow_msg_counter": True}
        config["duplicate_window"] = 100_000_000
        state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
        info = {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}
        peer.answer(peer.expect(r"STREAM\.INFO\.S"), info)
        peer.expect("^HPUB s.hits ")
        peer.until_left(timeout=20)

    with FakeServer(script) as fake:
        with js.connect(fake.url) as connection:
            counters = connection.jetstream().counters("S")
            with pytest.raises(js.OutcomeUnknown, match="repeated with msg_id 'mine'"):
                counters.add("s.hits", 5, msg_id="mine", timeout=30)
        assert len(fake.operations("^HPUB")) == 1


def test_an_old_server_is_told():
    def script(peer: FakePeer) -> None:
        peer.handshake(version="2.11.11")
        peer.until_left()

    with FakeServer(script) as fake:
        with js.connect(fake.url) as connection:
            with pytest.raises(js.Unsupported, match=r"counters needs server 2\.12\.0"):
                connection.jetstream().counters("S")
