"""Each operation with exactly the permissions of the table, and with one fewer."""

from __future__ import annotations

import pytest
from attrs import evolve

import js_async as js
from tests._async.operations import ACTS, PROOFS, Stage
from tests.conftest import VERSION
from tests.worlds import WORLDS, plain, users
from twinstream.core.client.permission_table import OPERATIONS, operation
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.permissions import Permissions, consume, permissions, publish

RELEASE = tuple(map(int, (VERSION or "99.0").split(".")))
POSSIBLE = {
    name: act for name, act in ACTS.items() if RELEASE[:2] >= tuple(map(int, act[2].split(".")))
}


NOT_IMPORTED = {"backup_stream", "restore_stream"}


def stream_of(name):
    """Return the name of the stream of an operation."""
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def needed(name, **options):
    """Return the permissions of an operation on its stream."""
    stream = stream_of(name)
    pattern = OPERATIONS[name.split()[0]]
    first = {"publish": [f"p.{stream}.>"], "atomic_batch": [f"p.{stream}.>"]}
    given = first.get(name, [stream] if pattern.takes else [])
    behind = [each.format(stream=stream) for each in ACTS[name][0]]
    return permissions(operation(pattern.name, *given, *behind), **options)


def without(whole):
    """Return the permissions with one entry left out, for each entry."""
    for subject in whole.publish:
        left = tuple(each for each in whole.publish if each != subject)
        yield Permissions(left, whole.subscribe)
    for subject in whole.subscribe:
        left = tuple(each for each in whole.subscribe if each != subject)
        yield Permissions(whole.publish, left)


@pytest.fixture(scope="module", params=WORLDS)
def world(request):
    """One of the ways to reach JetStream, with a user for each operation."""
    options = {"leaf": {"domain": "leaf"}, "import": {"prefix": "JS.app.API"}}
    lists = {name: needed(name, **options.get(request.param, {})) for name in POSSIBLE}
    with WORLDS[request.param](lists) as made:
        yield made


async def prepared(url, name, folder):
    """Create what the operation requires, as a user without limits."""
    stage = Stage(stream_of(name), folder=f"{folder}/backup")
    async with js.connect(url, user="admin", password="pw") as connection:
        jet = connection.jetstream(timeout=60)
        await stage.set(jet)
        if name in {"create_stream", "create_or_update_stream", "coordination_create"}:
            await jet.delete_stream(stage.stream)
    return stage


async def proved(url, stage):
    """Fail unless a user with all permissions sees the effect of the operation."""
    async with js.connect(url, user="admin", password="pw") as connection:
        if stage.stream in PROOFS:
            await PROOFS[stage.stream](connection.jetstream(timeout=60), stage)


@pytest.mark.parametrize("name", POSSIBLE)
async def test_an_operation_uses_what_it_declares_and_nothing_else(world, name, tmp_path):
    if world.options.get("prefix") and name in NOT_IMPORTED:
        pytest.skip("the server carries snapshots to no other account")
    stage = await prepared(world.admin_url, name, tmp_path)
    reported = []
    async with js.connect(
        world.url, user=name, password="pw", on_event=reported.append
    ) as connection:
        await POSSIBLE[name][1](connection.jetstream(**{"timeout": 60} | world.options), stage)
        await connection.flush()
    await proved(world.admin_url, stage)
    assert [each for each in reported if isinstance(each, js.ServerReported)] == []


@pytest.fixture(scope="module")
def poor_world():
    """A server with direct access to JetStream, with a user for each list that lacks one entry."""
    lists = {
        f"{name}/{number}": each
        for name in POSSIBLE
        for number, each in enumerate(without(needed(name)))
    }
    with WORLDS["plain"](lists) as made:
        yield made


@pytest.mark.parametrize("name", POSSIBLE)
async def test_an_operation_fails_without_any_one_entry(poor_world, name, tmp_path):
    for number, left in enumerate(without(needed(name))):
        stage = await prepared(poor_world.admin_url, name, tmp_path)
        poor = evolve(stage, short=0.3)
        async with js.connect(
            poor_world.url, user=f"{name}/{number}", password="pw", request_timeout=2
        ) as connection:
            try:
                await POSSIBLE[name][1](connection.jetstream(), poor)
                await proved(poor_world.admin_url, stage)
            except (js.TwinstreamError, AssertionError, IndexError):
                continue
            pytest.fail(f"{name} does without entry {number}; left were {left}")


@pytest.mark.since("2.14")
@pytest.mark.parametrize("name", ["consume", "create_push_messages"])
async def test_longer_acknowledgement_subjects(name, tmp_path):
    first, second = needed(name), needed(name, second_form=True)
    flags = "feature_flags { js_ack_fc_v2: true }"
    with plain({"first": first, "second": second}, flags) as made:
        for user in ("second", "first"):
            stage = await prepared(made.admin_url, name, tmp_path)
            reported = []
            async with js.connect(
                made.url, user=user, password="pw", on_event=reported.append
            ) as connection:
                if user == "first":
                    with pytest.raises(js.PermissionDenied, match="ACK"):
                        await POSSIBLE[name][1](connection.jetstream(), stage)
                    continue
                await POSSIBLE[name][1](connection.jetstream(), stage)
                await connection.flush()
            assert [each for each in reported if isinstance(each, js.ServerReported)] == []


def test_every_operation_of_one_node_is_tried():
    # Those of the cluster need three nodes and the system account: test_cluster.py.
    tried = {name.split()[0] for name in ACTS}
    assert {name for name in OPERATIONS if not name.startswith("cluster.")} == tried


async def test_permissions_of_a_whole_program(server_factory):
    needs = permissions(
        consume("ORDERS", "worker"), publish("invoices.>"), inbox_prefix="_INBOX_worker"
    )
    config = f"""accounts {{ A: {{
        jetstream: enabled, users: [{{user: admin, password: pw}}, {users({"worker": needs})}]
    }} }}"""
    with server_factory(config) as server:
        async with js.connect(server.url, user="admin", password="pw") as connection:
            jet = connection.jetstream()
            orders = await jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
            await jet.create_stream(StreamConfig(name="INVOICES", subjects=["invoices.>"]))
            await orders.create_consumer(ConsumerConfig(durable_name="worker"))
            await jet.publish("orders.1", b"tea")
        async with js.connect(
            server.url, user="worker", password="pw", inbox_prefix="_INBOX_worker"
        ) as connection:
            jet = connection.jetstream()
            consumer = await jet.get_consumer("ORDERS", "worker")
            async with consumer.messages() as messages:
                order = await messages.next(timeout=60)
                await jet.publish("invoices.1", order.data)
                await order.double_ack()
            with pytest.raises(js.PermissionDenied, match="orders"):
                await jet.publish("orders.2", b"")
        # Without its own inbox prefix it gets no responses, and an error with the reason.
        async with js.connect(server.url, user="worker", password="pw") as connection:
            for _ in range(2):
                with pytest.raises(js.PermissionDenied, match="_INBOX"):
                    await connection.jetstream().get_consumer("ORDERS", "worker")
