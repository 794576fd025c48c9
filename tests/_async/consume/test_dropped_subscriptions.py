"""Iterations that a program leaves open leave no subscription and no consumer behind.

Each use is repeated. Afterwards the connection has as many subscriptions as before, on the client
and on the server, and the streams have no consumer that a use has created.
"""

from __future__ import annotations

import gc
import json
import re
import warnings
from itertools import count
from urllib.request import urlopen

import pytest

import js_async as js
from js_async.jetstream import range_reader
from tests._async.flow import eventually
from tests.dropping import begin_collecting
from twinstream.models import ConsumerConfig, KeyValueConfig, ObjectStoreConfig, StreamConfig

_NUMBERS = count(1)
REPEATS = 50
MESSAGES = 3
# The inboxes that a connection keeps: one for the responses to requests, one for pull requests.
MOST_KEPT = 2


class Place:
    """A stream, a bucket and an object store with some content each."""

    def __init__(self, jet, connection, name):
        self.jet = jet
        self.connection = connection
        self.name = name

    async def set(self):
        jet, name = self.jet, self.name
        config = StreamConfig(name=name, subjects=[f"{name}.>"], allow_direct=True)
        self.stream = await jet.create_stream(config)
        for number in range(MESSAGES):
            await jet.publish(f"{name}.{number}")
        self.consumer = await self.stream.create_consumer(
            ConsumerConfig(durable_name="c", filter_subject=f"{name}.none")
        )
        self.bucket = await jet.create_key_value(KeyValueConfig(bucket=name, history=5))
        self.store = await jet.create_object_store(ObjectStoreConfig(bucket=name))
        for number in range(MESSAGES):
            await self.bucket.put("k", b"%d" % number)
            await self.bucket.put(f"k{number}", b"%d" % number)
            await self.store.put(f"o{number}", b"%d" % number * 300_000)

    async def remove(self):
        await self.stream.delete()
        await self.jet.delete_key_value(self.name)
        await self.jet.delete_object_store(self.name)

    async def consumers(self):
        """Return the names of the consumers of all streams."""
        streams = [
            self.stream,
            self.jet.bind_stream(self.bucket.stream_name),
            await self.jet.get_stream(f"OBJ_{self.name}"),
        ]
        found = []
        for each in streams:
            found += [name async for name in each.consumer_names()]
        return found


async def first_of(iterable):
    async for _ in iterable:
        return


async def read(place):
    await first_of(place.stream.read())


async def read_of_one_page(place):
    await first_of(place.stream.read(page_messages=1))


async def read_by_a_consumer(place):
    await first_of(place.stream.read(via="consumer", page_messages=1))


async def page(place):
    await place.stream.read(page_messages=1).next_page()


async def range_page(place):
    reader = range_reader(place.jet, place.name, 1, MESSAGES + 1, ahead=True, page_messages=1)
    await reader.next_page()


async def ordered(place):
    await first_of(place.stream.ordered())


async def ordered_fetch(place):
    await place.stream.ordered().fetch(2)


async def ordered_open(place):
    async with place.stream.ordered() as messages:
        await messages.next(timeout=20)
        again = place.stream.ordered()
        await again.next(timeout=20)


async def cached(place):
    assert "k" in await place.bucket.cached()


async def watch(place):
    await first_of(await place.bucket.watch())


async def watch_never_read(place):
    await place.bucket.watch()


async def watch_initial(place):
    await first_of((await place.bucket.watch()).initial())


async def object_watch(place):
    await first_of(await place.store.watch())


async def object_updates(place):
    await place.store.watch(updates_only=True)


async def object_reader(place):
    await (await place.store.get("o1")).read(10)


async def subscribed(place):
    await place.connection.subscribe(f"other.{place.name}")


async def events(place):
    await place.jet.events()


async def messages(place):
    await place.consumer.messages().next(timeout=0.001)


async def push(place):
    # With one name for all, the server (2.15.1) may still remove the files of the previous consumer
    # while it creates the next one, which then fails: "rename ...: no such file or directory".
    name = f"pushed-{next(_NUMBERS)}"
    await place.stream.push_messages(ConsumerConfig(ack_policy="none", name=name))
    await place.stream.delete_consumer(name)


async def arrow(place):
    await first_of(place.stream.read(page_messages=1).arrow_batches())


async def sent(place):
    requests = (js.PublishRequest(subject=f"{place.name}.{n}", data=b"") for n in range(3))
    await first_of(place.jet.publish_many(requests))


FORGOTTEN = [
    (read_of_one_page, "a read was not closed"),
    (read_by_a_consumer, "a read was not closed"),
    (page, "a read was not closed"),
    (range_page, "a read was not closed"),
    (ordered, "an ordered read was not closed"),
    (ordered_fetch, "an ordered read was not closed"),
    (ordered_open, "an ordered read was not closed"),
    (watch, "an ordered read was not closed"),
    (watch_never_read, "an ordered read was not closed"),
    (watch_initial, "an ordered read was not closed"),
    (cached, "a cache was not closed"),
    (object_watch, "an ordered read was not closed"),
    (object_updates, "an ordered read was not closed"),
    (subscribed, "the subscription to other.* was not closed"),
    (events, "the iterator over the events on .* was not closed"),
    (messages, "an iterator over its messages was not closed"),
    (push, "an iterator over its pushed messages was not closed"),
    (arrow, "a read was not closed"),
    (sent, "publish_many was left with"),
]


async def keys(place):
    await first_of(place.bucket.keys())


async def history(place):
    await place.bucket.history("k")


async def get_many(place):
    await place.bucket.get_many()


async def snapshot(place):
    await place.stream.snapshot()


async def objects(place):
    await first_of(place.store.list())


async def content(place):
    await place.store.get_bytes("o1")


async def fetch(place):
    await place.consumer.fetch(1, wait="none")


async def names(place):
    await first_of(place.jet.stream_names())


async def purge_deletes(place):
    await place.bucket.purge_deletes()


async def arrow_table(place):
    await place.stream.read(page_messages=1).to_arrow()


TIDY = [
    # The first page is the last one, after which a read owns nothing.
    read,
    object_reader,
    keys,
    history,
    get_many,
    purge_deletes,
    snapshot,
    objects,
    content,
    fetch,
    names,
    arrow_table,
]


def on_the_server(server):
    """Return the subscriptions of each of the server's clients."""
    with urlopen(f"{server.monitoring_url}/connz?subs=1", timeout=20) as answer:
        clients = json.load(answer)["connections"]
    return {each["cid"]: sorted(each.get("subscriptions_list", ())) for each in clients}


async def left(connection, server):
    """Return the number of subscriptions of a connection, after a garbage collection."""
    gc.collect()
    await connection.flush(timeout=60)
    clients, number = on_the_server(server), connection.server_info.client_id
    return max(connection.stats.subscriptions, len(clients[number]))


async def used(server, name, use):
    """Repeat a use, and check that it leaves nothing behind. Return the texts of the warnings."""
    async with js.connect(server.url) as connection:
        place = Place(connection.jetstream(timeout=60), connection, name)
        await place.set()
        begin_collecting()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            # The first use subscribes to inboxes that the connection keeps.
            await use(place)

            async def has_left(most):
                return await left(connection, server) <= most

            await eventually(has_left, MOST_KEPT)
            kept = await left(connection, server)
            for _ in range(REPEATS):
                await use(place)

            async def is_clean():
                return await left(connection, server) <= kept and await place.consumers() == ["c"]

            await eventually(is_clean)
        await place.remove()
        return [str(each.message) for each in found]


@pytest.mark.parametrize(("use", "text"), FORGOTTEN)
async def test_what_a_program_leaves_open_ends_with_a_warning(server, name, use, text):
    found = await used(server, name, use)
    assert len(found) == REPEATS + 1
    assert all(re.search(text, each) for each in found), found[0]


@pytest.mark.parametrize("use", TIDY)
async def test_what_ends_by_itself_leaves_nothing_behind(server, name, use):
    assert not await used(server, name, use)
