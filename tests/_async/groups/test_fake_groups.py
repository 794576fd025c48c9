"""Creating the consumer of a member, by a script, while the previous consumer is removed."""

from __future__ import annotations

import pytest

import js_async as js
from js_async.groups.member_join import create_member_consumer
from tests.fake.answers import CONSUMER
from twinstream.core.groups.member_consumer import check_template
from twinstream.core.groups.names import GroupNames
from twinstream.testing import FakePeer, FakeServer

NAMES = GroupNames.of("elastic", "S", "g")
BEING_REMOVED = {
    "error": {"code": 400, "err_code": 10012, "description": "meta.inf: no such file or directory"}
}
NOT_FOUND = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
EXISTS = {"error": {"code": 400, "err_code": 10148, "description": "consumer already exists"}}


async def created(server, **options):
    """Create the consumer of a member."""
    async with js.connect(server.url) as connection:
        jet = connection.jetstream(timeout=60)
        template = check_template(NAMES, None)
        return await create_member_consumer(jet, NAMES, "m", ("0.>",), template, **options)


def info(pin="", waiting=0):
    """Return a consumer info with older filters."""
    state = {"group": "PCG", "pinned_client_id": pin} if pin else {"group": "PCG"}
    config = {**CONSUMER["config"], "filter_subjects": ["1.>"]}
    return {**CONSUMER, "config": config, "priority_groups": [state], "num_waiting": waiting}


async def test_a_consumer_whose_folder_is_being_removed_is_created_again():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.CREATE\.S-g\.m"), BEING_REMOVED)
        peer.answer(peer.expect(r"CONSUMER\.CREATE\.S-g\.m"), CONSUMER)
        peer.until_left()

    with FakeServer(script) as server:
        assert (await created(server)).stream_name == "S-g"


async def test_another_refusal_is_raised_after_the_second_attempt():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(2):
            peer.answer(peer.expect(r"CONSUMER\.CREATE\.S-g\.m"), BEING_REMOVED)
        peer.until_left()

    with FakeServer(script) as server:
        with pytest.raises(js.JetStreamError, match="no such file"):
            await created(server)


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_consumer_that_was_in_the_way_is_looked_for_first(is_there):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        answer = info(pin="another") if is_there else NOT_FOUND
        peer.answer(peer.expect(r"CONSUMER\.INFO\.S-g\.m"), answer)
        peer.answer(peer.expect(r"CONSUMER\.CREATE\.S-g\.m"), CONSUMER)
        peer.until_left()

    with FakeServer(script) as server:
        await created(server, looks_first=True)


@pytest.mark.parametrize(("pin", "waiting"), [("", 0), ("", 1)])
async def test_a_consumer_with_older_filters_is_replaced(pin, waiting):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.CREATE\.S-g\.m"), EXISTS)
        for request in peer.follow():
            if "CONSUMER.INFO" in request.line:
                peer.answer(request, info(pin, waiting))
            elif "STREAM.INFO" in request.line:
                peer.answer(request, NOT_FOUND)
            elif "CONSUMER.DELETE" in request.line:
                peer.answer(request, {"success": True})
            elif "CONSUMER.CREATE" in request.line:
                peer.answer(request, CONSUMER)

    with FakeServer(script) as server:
        await created(server)
        assert len(server.operations("CONSUMER.DELETE")) == 1


async def test_a_consumer_that_another_instance_is_pinned_to_is_left_to_it():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(r"CONSUMER\.CREATE\.S-g\.m"), EXISTS)
        for request in peer.follow():
            if "CONSUMER.INFO" in request.line:
                peer.answer(request, info("another"))
            elif "STREAM.INFO" in request.line:
                peer.answer(request, NOT_FOUND)

    with FakeServer(script) as server:
        with pytest.raises(js.ConsumerExists):
            await created(server)
        assert not server.operations("CONSUMER.DELETE")
