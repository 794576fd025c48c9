"""Record the responses and events of real servers: one golden file for each.

`python tests/models/capture.py` runs every request against a server of each known line, alone and
in a cluster of three, and writes `golden/<version>/<topology>/<name>.json`. Tests read these
files without a server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = ("2.11.11", "2.12.8", "2.14.6", "2.15.1")
SECOND = 1_000_000_000
ACCOUNTS = """
accounts {
  APP: { jetstream: enabled, users: [{user: app, password: app}] }
  $SYS: { users: [{user: sys, password: sys}] }
}
no_auth_user: app
"""


class Recorder:
    """Send requests, and store the responses and events."""

    def __init__(self, app: Client, system: Client, prefix: str, folder: Path) -> None:
        self.app = app
        self.system = system
        self.prefix = prefix
        self.folder = folder
        self.seen: dict[str, int] = {}

    def keep(self, name: str, text: bytes) -> None:
        """Write one golden file; text that is not JSON is ignored."""
        try:
            value = json.loads(text)
        except ValueError:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    async def event(self, message: Any) -> None:
        """Store the first two events of each kind."""
        value = json.loads(message.data)
        kind = value["type"].rpartition(".")[2]
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if self.seen[kind] <= 2:
            self.keep(f"event-{kind}-{self.seen[kind]}", message.data)

    async def ask(
        self, name: str, subject: str, body: Any = None, *, system: bool = False
    ) -> dict[str, Any]:
        """Send a request and store its response. Without a response, no file is written."""
        nc = self.system if system else self.app
        data = b"" if body is None else json.dumps(body).encode()
        try:
            reply = await nc.request(f"{self.prefix}.{subject}", data, timeout=4)
        except (NatsTimeout, NoRespondersError):
            return {}
        self.keep(name, reply.data)
        answer: dict[str, Any] = json.loads(reply.data) if reply.data else {}
        return answer

    async def publish(
        self, name: str, subject: str, data: bytes = b"x", **headers: str
    ) -> dict[str, Any]:
        """Publish a message, and store its acknowledgement."""
        named = {key.replace("_", "-"): value for key, value in headers.items()} or None
        try:
            reply = await self.app.request(subject, data, timeout=4, headers=named)
        except (NatsTimeout, NoRespondersError):
            return {}
        self.keep(name, reply.data)
        return json.loads(reply.data) if reply.data else {}


async def ready(rec: Recorder) -> None:
    """Wait until the account answers. In a cluster, this requires a leader."""
    for _ in range(100):
        try:
            reply = await rec.app.request(f"{rec.prefix}.INFO", b"", timeout=1)
            if "error" not in json.loads(reply.data):
                return
        except (NatsTimeout, NoRespondersError):
            pass
        await asyncio.sleep(0.1)


async def streams(rec: Recorder, replicas: int) -> None:
    """Create, change, read and list streams."""
    await rec.ask("stream-names-empty", "STREAM.NAMES")
    await rec.ask("stream-list-empty", "STREAM.LIST")
    base = {"name": "ORDERS", "subjects": ["orders.>"], "num_replicas": replicas}
    await rec.ask("stream-create", "STREAM.CREATE.ORDERS", base)
    await rec.ask(
        "stream-create-full",
        "STREAM.CREATE.FULL",
        {
            "name": "FULL",
            "description": "everything",
            "subjects": ["full.*"],
            "storage": "memory",
            "max_consumers": 5,
            "max_msgs": 100,
            "max_bytes": 1 << 20,
            "max_age": 3600 * SECOND,
            "max_msgs_per_subject": 3,
            "max_msg_size": 1000,
            "discard": "new",
            "discard_new_per_subject": True,
            "duplicate_window": 60 * SECOND,
            "placement": {"tags": []},
            "compression": "s2",
            "first_seq": 10,
            "subject_transform": {"src": "full.*", "dest": "full.{{wildcard(1)}}"},
            "republish": {"src": "full.*", "dest": "again.$1", "headers_only": True},
            "deny_delete": True,
            "allow_rollup_hdrs": True,
            "allow_direct": True,
            "metadata": {"owner": "us"},
            "consumer_limits": {"inactive_threshold": 60 * SECOND, "max_ack_pending": 9},
            "allow_msg_ttl": True,
        },
    )
    await rec.ask(
        "stream-create-marker",
        "STREAM.CREATE.MARKER",
        {"name": "MARKER", "subject_delete_marker_ttl": SECOND, "num_replicas": replicas},
    )
    await rec.ask(
        "stream-create-mirror",
        "STREAM.CREATE.MIRROR",
        {"name": "MIRROR", "mirror": {"name": "ORDERS", "opt_start_time": "2026-01-02T03:04:05Z"}},
    )
    await rec.ask(
        "stream-create-sources",
        "STREAM.CREATE.SOURCES",
        {
            "name": "SOURCES",
            "sources": [
                {"name": "ORDERS", "filter_subject": "orders.x"},
                {
                    "name": "FAR",
                    "external": {"api": "$JS.far.API", "deliver": "far"},
                    "subject_transforms": [{"src": "a.*", "dest": "b.$1"}],
                },
            ],
        },
    )
    await rec.ask("stream-create-bad", "STREAM.CREATE.BAD", {"name": "BAD", "max_age": 5})
    await rec.ask("stream-update", "STREAM.UPDATE.ORDERS", {**base, "description": "changed"})
    await rec.ask("stream-info-missing", "STREAM.INFO.NONE")


async def messages(rec: Recorder) -> None:
    """Publish, read and remove messages."""
    await rec.publish("puback", "orders.a", b"one", Nats_Msg_Id="1")
    await rec.publish("puback-duplicate", "orders.a", b"one", Nats_Msg_Id="1")
    await rec.publish("puback-bad", "orders.a", b"one", Nats_Expected_Last_Sequence="99")
    for number in range(12):
        await rec.app.publish(f"orders.{number % 3}", b"x")
    await rec.publish("puback-full", "full.a", b"x")
    await rec.ask("msg-get", "STREAM.MSG.GET.ORDERS", {"seq": 1})
    await rec.ask("msg-get-last", "STREAM.MSG.GET.ORDERS", {"last_by_subj": "orders.1"})
    await rec.ask("msg-get-missing", "STREAM.MSG.GET.ORDERS", {"seq": 999})
    await rec.ask("msg-delete", "STREAM.MSG.DELETE.ORDERS", {"seq": 3})
    details = {"deleted_details": True, "subjects_filter": ">"}
    await rec.ask("stream-info-details", "STREAM.INFO.ORDERS", details)
    await rec.ask("stream-info", "STREAM.INFO.ORDERS")
    await rec.ask("stream-info-mirror", "STREAM.INFO.MIRROR")
    await rec.ask("stream-info-sources", "STREAM.INFO.SOURCES")
    await rec.ask("stream-names", "STREAM.NAMES")
    await rec.ask("stream-list", "STREAM.LIST")
    await rec.ask("stream-names-far", "STREAM.NAMES", {"offset": 50})


async def new_features(rec: Recorder) -> None:
    """Use counters, batches and schedules. Servers without them respond with errors."""
    counter = {"name": "COUNT", "subjects": ["count.>"], "allow_msg_counter": True}
    await rec.ask("stream-create-counter", "STREAM.CREATE.COUNT", counter)
    await rec.publish("puback-counter", "count.a", b"", Nats_Incr="+5")
    batch = {"name": "BATCH", "subjects": ["batch.>"], "allow_atomic": True}
    await rec.ask("stream-create-atomic", "STREAM.CREATE.BATCH", batch)
    await rec.publish("batch-1", "batch.a", b"x", Nats_Batch_Id="b1", Nats_Batch_Sequence="1")
    await rec.publish(
        "puback-batch",
        "batch.a",
        b"y",
        Nats_Batch_Id="b1",
        Nats_Batch_Sequence="2",
        Nats_Batch_Commit="1",
    )
    await rec.publish("batch-2", "batch.a", b"x", Nats_Batch_Id="b2", Nats_Batch_Sequence="1")
    await rec.publish("batch-gap", "batch.a", b"x", Nats_Batch_Id="b2", Nats_Batch_Sequence="3")
    fast = {"name": "FAST", "subjects": ["fast.>"], "allow_batched": True, "storage": "memory"}
    await rec.ask("stream-create-batched", "STREAM.CREATE.FAST", fast)
    await fast_batch(rec)
    schedule = {"name": "SCHED", "subjects": ["sched.>"], "allow_msg_schedules": True}
    await rec.ask("stream-create-schedules", "STREAM.CREATE.SCHED", schedule)
    mode = {"name": "ASYNC", "persist_mode": "async"}
    await rec.ask("stream-create-async", "STREAM.CREATE.ASYNC", mode)


async def fast_batch(rec: Recorder) -> None:
    """Run a fast batch and store each kind of response."""
    inbox = rec.app.new_inbox()
    kinds: dict[str, bytes] = {}

    async def answer(message: Any) -> None:
        value = json.loads(message.data) if message.data else {}
        kinds.setdefault(value.get("type", "puback"), message.data)

    waiting = await rec.app.subscribe(f"{inbox}.>", cb=answer)
    for number, (operation, subject) in enumerate([(0, "fast.a"), (1, "fast.b"), (2, "fast.c")]):
        reply = f"{inbox}.fb1.10.ok.{number + 1}.{operation}.$FI"
        await rec.app.publish(subject, b"x", reply=reply)
    await rec.app.flush()
    await until(lambda: "puback" in kinds or "err" in kinds, seconds=2)
    await waiting.unsubscribe()
    for kind, data in kinds.items():
        rec.keep(f"fast-{kind}", data)


async def consumers(rec: Recorder, replicas: int) -> None:
    """Create consumers of every kind and read them."""
    create = "CONSUMER.CREATE.ORDERS"
    configs: dict[str, dict[str, Any]] = {
        "pull": {"durable_name": "pull", "ack_policy": "explicit", "sample_freq": "100"},
        "full": {
            "durable_name": "full",
            "description": "everything",
            "ack_policy": "explicit",
            "backoff": [SECOND, 2 * SECOND],
            "max_deliver": 5,
            "filter_subjects": ["orders.1", "orders.2"],
            "deliver_policy": "by_start_time",
            "opt_start_time": "2026-01-02T03:04:05.123456789Z",
            "max_batch": 10,
            "max_expires": 60 * SECOND,
            "max_bytes": 100000,
            "inactive_threshold": 600 * SECOND,
            "metadata": {"owner": "us"},
            "headers_only": True,
            "replay_policy": "original",
        },
        "push": {
            "durable_name": "push",
            "deliver_subject": "deliver.push",
            "deliver_group": "workers",
            "ack_policy": "all",
            "flow_control": True,
            "idle_heartbeat": SECOND,
            "rate_limit_bps": 10000,
        },
        "ephemeral": {"name": "ephemeral", "ack_policy": "none", "num_replicas": 1},
        "limited": {
            "durable_name": "limited",
            "ack_policy": "explicit",
            "ack_wait": SECOND // 5,
            "max_deliver": 1,
            "filter_subject": "orders.0",
        },
        "pinned": {
            "durable_name": "pinned",
            "ack_policy": "explicit",
            "priority_policy": "pinned_client",
            "priority_groups": ["g"],
            "priority_timeout": SECOND,
        },
        "paused": {"durable_name": "paused", "pause_until": "2099-01-01T00:00:00Z"},
        "flow": {"durable_name": "flow", "ack_policy": "flow_control", "deliver_subject": "d.f"},
    }
    for name, config in configs.items():
        body = {"stream_name": "ORDERS", "config": config, "action": "create"}
        one = config.get("filter_subject")
        await rec.ask(
            f"consumer-create-{name}", f"{create}.{name}" + (f".{one}" if one else ""), body
        )
    bad = {
        "stream_name": "ORDERS",
        "config": {"durable_name": "bad", "max_batch": 5, "ack_wait": -1},
    }
    await rec.ask("consumer-create-bad", f"{create}.bad", bad)
    for name in configs:
        await rec.ask(f"consumer-info-{name}", f"CONSUMER.INFO.ORDERS.{name}")
    await rec.ask("consumer-names", "CONSUMER.NAMES.ORDERS")
    await rec.ask("consumer-list", "CONSUMER.LIST.ORDERS")
    await rec.ask("consumer-names-empty", "CONSUMER.NAMES.FULL")
    await rec.ask("consumer-list-empty", "CONSUMER.LIST.FULL")


async def deliveries(rec: Recorder) -> None:
    """Acknowledge in every way, so that servers publish advisories."""
    for payload in (b"", b'-NAK {"delay": 1000000}', b"+TERM broken", b"+WPI"):
        for message in await pull(rec, "pull", {"batch": 1, "expires": SECOND}):
            await rec.app.publish(message.reply, payload)
    await pull(rec, "limited", {"batch": 1, "expires": SECOND})
    await until(lambda: "max_deliver" in rec.seen, seconds=4)
    await pull(rec, "pinned", {"batch": 1, "expires": SECOND, "group": "g"})
    await rec.ask("consumer-info-pinned-held", "CONSUMER.INFO.ORDERS.pinned")
    await rec.ask("consumer-unpin", "CONSUMER.UNPIN.ORDERS.pinned", {"group": "g"})
    await rec.ask("consumer-unpin-bad", "CONSUMER.UNPIN.ORDERS.pinned", {"group": "other"})
    until_when = {"pause_until": "2099-01-01T00:00:00Z"}
    await rec.ask("consumer-pause", "CONSUMER.PAUSE.ORDERS.pull", until_when)
    await rec.ask("consumer-info-pull-paused", "CONSUMER.INFO.ORDERS.pull")
    await rec.ask("consumer-resume", "CONSUMER.PAUSE.ORDERS.pull", {})
    await rec.ask("consumer-reset", "CONSUMER.RESET.ORDERS.pull", {"seq": 2})
    await rec.ask("consumer-reset-bad", "CONSUMER.RESET.ORDERS.full", {"seq": 1})
    await rec.ask("consumer-info-late", "CONSUMER.INFO.ORDERS.pull")
    await rec.ask("consumer-stepdown", "CONSUMER.LEADER.STEPDOWN.ORDERS.pull")


async def pull(rec: Recorder, consumer: str, body: dict[str, Any]) -> list[Any]:
    """Return the first message that a pull request receives in time, as a list."""
    inbox = rec.app.new_inbox()
    waiting = await rec.app.subscribe(inbox)
    subject = f"{rec.prefix}.CONSUMER.MSG.NEXT.ORDERS.{consumer}"
    await rec.app.publish(subject, json.dumps(body).encode(), reply=inbox)
    try:
        first = await waiting.next_msg(timeout=2)
    except NatsTimeout:
        return []
    finally:
        await waiting.unsubscribe()
    return [first] if first.reply else []


async def snapshot(rec: Recorder) -> None:
    """Take a snapshot of a stream, delete the stream, and restore it."""
    inbox = rec.app.new_inbox()
    chunks: list[bytes] = []
    done = asyncio.Event()

    async def chunk(message: Any) -> None:
        if not message.data:
            done.set()
            return
        chunks.append(message.data)
        if message.reply:
            await rec.app.publish(message.reply, b"")

    waiting = await rec.app.subscribe(inbox, cb=chunk)
    body = {"deliver_subject": inbox}
    answer = await rec.ask("stream-snapshot", "STREAM.SNAPSHOT.ORDERS", body)
    if "error" in answer or not answer:
        return
    await asyncio.wait_for(done.wait(), 5)
    await waiting.unsubscribe()
    await rec.ask("stream-delete", "STREAM.DELETE.ORDERS")
    body = {"config": answer["config"], "state": answer["state"]}
    begun = await rec.ask("stream-restore", "STREAM.RESTORE.ORDERS", body)
    if "deliver_subject" not in begun:
        return
    for part in chunks:
        await rec.app.request(begun["deliver_subject"], part, timeout=5)
    last = await rec.app.request(begun["deliver_subject"], b"", timeout=5)
    rec.keep("stream-restore-done", last.data)


async def ends(rec: Recorder) -> None:
    """Purge, delete, and send requests that only the system account may send."""
    await rec.ask("stream-purge", "STREAM.PURGE.ORDERS", {"filter": "orders.1"})
    await rec.ask("stream-purge-bad", "STREAM.PURGE.ORDERS", {"keep": 1, "seq": 1})
    await rec.ask("account-info", "INFO")
    await rec.ask("stream-stepdown", "STREAM.LEADER.STEPDOWN.ORDERS")
    await rec.ask("stream-remove-peer", "STREAM.PEER.REMOVE.ORDERS", {"peer": "nobody"})
    await rec.ask("stream-evacuate-peer", "STREAM.PEER.EVACUATE.ORDERS", {"peer": "nobody"})
    await rec.ask("stream-cancel-move", "STREAM.CANCEL_MOVE.ORDERS")
    await rec.ask("consumer-delete", "CONSUMER.DELETE.ORDERS.full")
    await rec.ask("consumer-delete-missing", "CONSUMER.DELETE.ORDERS.full")
    await rec.ask("meta-remove", "SERVER.REMOVE", {"peer": "nobody"}, system=True)
    await rec.ask("meta-evacuate", "SERVER.EVACUATE", {"peer": "nobody"}, system=True)
    await rec.ask("meta-stepdown", "META.LEADER.STEPDOWN", system=True)
    await rec.ask("account-purge", "ACCOUNT.PURGE.APP", system=True)


async def until(ready: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition, for at most `seconds`."""
    for _ in range(int(seconds * 50)):
        if ready():
            return
        await asyncio.sleep(0.02)


async def record(url: str, prefix: str, folder: Path, replicas: int) -> None:
    """Run all requests against one server and store the responses."""
    app = await nats.connect(url, user="app", password="app")
    system = await nats.connect(url, user="sys", password="sys")
    rec = Recorder(app, system, prefix, folder)
    await app.subscribe("$JS.EVENT.>", cb=rec.event)
    await app.subscribe("deliver.push", queue="workers", cb=_ignore)
    await app.flush()
    await ready(rec)
    await streams(rec, replicas)
    await messages(rec)
    await new_features(rec)
    await consumers(rec, replicas)
    await deliveries(rec)
    await snapshot(rec)
    await ends(rec)
    await until(lambda: "stream_leader_elected" in rec.seen or replicas == 1, seconds=5)
    await until(lambda: "stream_batch_abandoned" in rec.seen, seconds=1)
    await app.close()
    await system.close()


async def _ignore(message: Any) -> None:
    del message


@contextmanager
def cluster(version: str) -> Iterator[list[NatsServer]]:
    """Start three servers of one cluster."""
    ports = free_ports(3)
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    with ExitStack() as stack:
        servers: list[NatsServer] = []
        for number, port in enumerate(ports):
            own = f"cluster {{ name: C, listen: 127.0.0.1:{port}, routes: [{routes}] }}\n"
            server = NatsServer(ACCOUNTS + own, version=version, name=f"n{number}")
            servers.append(server)
        # A member is healthy only when it can see the others, so they start side by side.
        starts = [asyncio.to_thread(stack.enter_context, server) for server in servers]

        async def start() -> None:
            await asyncio.gather(*starts)

        asyncio.run(start())
        yield servers


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", action="append")
    parser.add_argument("--no-cluster", action="store_true")
    arguments = parser.parse_args()
    for version in arguments.server or VERSIONS:
        folder = GOLDEN / version
        shutil.rmtree(folder, ignore_errors=True)
        with NatsServer(ACCOUNTS, version=version) as server:
            asyncio.run(record(server.url, "$JS.API", folder / "single", 1))
        with NatsServer(ACCOUNTS, version=version, domain="hub") as server:
            asyncio.run(record(server.url, "$JS.hub.API", folder / "domain", 1))
        if not arguments.no_cluster:
            with cluster(version) as servers:
                asyncio.run(record(servers[0].url, "$JS.API", folder / "cluster", 3))
        print(version, len(list(folder.rglob("*.json"))), "goldens")


if __name__ == "__main__":
    main()
