"""Subjects and names with white space that the server accepts: stored, read, managed."""

from __future__ import annotations

import json

import pytest

import js_async as js
from tests.conftest import VERSION
from twinstream.models import ConsumerConfig, StreamConfig, validate_consumer, validate_stream
from twinstream.permissions import permissions, publish

# nats-py's parser splits lines at a vertical tab, too, so that one is tried in the last tests.
ODD = [*map(chr, range(0x1C, 0x20)), "\x85", "\xa0", "\u2009", "\u2028", "\u3000"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
async def test_white_space_of_others_is_published_read_filtered_and_purged(opened, name, odd):
    subject, named = f"{name}.a{odd}b", f"{name}{odd}"
    config = StreamConfig(name=named, subjects=[f"{name}.>"], allow_direct=True)
    assert validate_stream(config, VERSION) == []
    async with opened() as jet:
        stream = await jet.create_stream(config)
        await jet.publish(subject, b"1")
        await jet.publish(f"{name}.rest", b"2")
        assert (await stream.get_last_message(subject)).data == b"1"
        assert [each.subject async for each in stream.read(subjects=subject)] == [subject]
        settings = ConsumerConfig(name=f"c{odd}d", filter_subject=subject, ack_policy="explicit")
        assert validate_consumer(settings, config, VERSION) == []
        consumer = await stream.create_consumer(settings)
        (message,) = await consumer.fetch(1, timeout=5)
        assert (message.subject, message.data) == (subject, b"1")
        await message.double_ack()
        await jet.publish(message.subject, message.data)
        assert [each async for each in stream.consumer_names()] == [f"c{odd}d"]
        assert await stream.purge(subject=subject) == 2
        await (await jet.get_stream(named)).delete()


async def test_what_no_parser_but_ours_reads(server, name):
    async with js.connect(server.url) as connection:
        jet = connection.jetstream()
        stream = await jet.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
        subjects = [f"{name}.a{odd}b" for odd in ("\0", "\x0b", "\f")]
        for subject in subjects:
            await jet.publish(subject)
        consumer = await stream.create_consumer(ConsumerConfig(name="c", ack_policy="explicit"))
        assert [message.subject for message in await consumer.fetch(3, timeout=5)] == subjects
        assert [await stream.purge(subject=subject) for subject in subjects] == [1, 1, 1]


async def test_a_refusal_reaches_the_publisher_of_an_odd_subject(server_factory, name):
    allowed = [f"{name}.a\xa0b", f'{name}."q"', f"{name}.\\", f"{name}.ü", f"{name}.\x0b"]
    block = permissions(publish(*allowed)).nats_conf()
    users = f"{{user: u, password: p, {block}}}, {{user: admin, password: p}}"
    server = server_factory(f"authorization {{ users: [{users}] }}")
    async with js.connect(server.url, user="admin", password="p") as connection:
        await connection.jetstream().create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    async with js.connect(server.url, user="u", password="p") as connection:
        jet = connection.jetstream()
        for subject in allowed:
            assert (await jet.publish(subject)).stream == name
            with pytest.raises(js.PermissionDenied):
                await jet.publish(f"{subject}2", timeout=30)


def test_permissions_stand_in_the_configuration_as_json_does_not_write_them():
    block = permissions(publish("a.ü\xa0", 'b."\\', "c.\x07")).nats_conf()
    assert '    "a.ü\xa0"\n' in block
    assert '    "b.\\x22\\x5c"\n' in block
    assert '    "c.\\x07"\n' in block
    assert json.dumps("ü") not in block
