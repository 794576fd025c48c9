"""The contract of the seam, line by line, on both implementations.

docs/architecture.md holds the contract ("What the seam guarantees"): the name of each line there is
the name of a check below, and a test compares the two. A check gets a twin, writes a program once,
as it is for asyncio, and runs it for that twin in a process of its own.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import js_sync
from tests._sync.flow import eventually
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from tests.warm import run_warm
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import FakePeer, FakeServer, NatsServer

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = count(1)

PRELUDE = """
import asyncio, gc, multiprocessing, os, select, signal, socket, sys, threading, time
import TWIN as js
from TWIN.coordination import Coordination
from twinstream.errors import WrongProcessOrLoop
from twinstream.models import AckPolicy, ConsumerConfig, StreamConfig

URL = sys.argv[1]
# A shell that starts the tests in the background lets their programs ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def end_within(seconds):
    "Set how long the end of this program may wait for what is not sent."
    from TWIN.client import connection_keeper
    from TWIN.publish import publisher
    from TWIN.runtime import concurrency

    connection_keeper.EXIT_TIME = publisher.EXIT_TIME = seconds
    if hasattr(concurrency, "_EXIT_TIME"):
        concurrency._EXIT_TIME = seconds


# A busy machine may not run the program for longer than the second that an end waits by default.
end_within(60)


def sockets():
    "Return descriptors for what this process has of TCP connections to the server."
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            sock = socket.socket(fileno=os.dup(int(number)))
        except OSError:
            continue
        try:
            peer = sock.getpeername()
        except OSError:
            peer = ""
        if isinstance(peer, tuple) and f":{peer[1]}" in URL:
            found.append(sock)
        else:
            sock.close()
    return found


def until_server_left(found):
    "Block, and with this the event loop, until the server's end of the connections is closed."
    for sock in found:
        poll = select.poll()
        poll.register(sock, select.POLLRDHUP)
        assert poll.poll(300_000)
        sock.close()
    # What is written right behind something else is not the first write after a pause.
    time.sleep(0.005)


def resources():
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


"""


SENT = "async def sent():\n    'Return when what was written is sent.'\n    await {}\n\n\n"


def written(twin: str, body: str) -> str:
    """Return a program for a twin. The argument is written for asyncio."""
    sleep = "time.sleep(0.01)" if twin == "js_sync" else "asyncio.sleep(0)"
    body = SENT.format(sleep) + textwrap.dedent(body).strip()
    body = body.replace("connect(URL", "connect(URL, connect_timeout=60, request_timeout=60")
    if twin == "js_sync":
        body = re.sub(r"\b(await|async) ", "", body)
    else:
        body = f"async def main():\n{textwrap.indent(body, '    ')}\n\nasyncio.run(main())"
    return PRELUDE.replace("TWIN", twin) + body + "\n"


def started(twin: str, body: str, url: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, *options, "-c", written(twin, body), url]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def ran(twin: str, body: str, url: str, *options: str) -> tuple[int, str, str]:
    """Run a program to its end; return its exit code, its output and its errors."""
    done: subprocess.CompletedProcess[str] | subprocess.Popen[str]
    if options:
        with started(twin, body, url, *options) as done:
            out, err = done.communicate(timeout=LONGEST)
    else:
        done = run_warm(written(twin, body), ["-c", url], ROOT, os.environ, LONGEST)
        out, err = done.stdout, done.stderr
    # What is logged without any setting, when the server of a test leaves.
    logged = re.compile(r"disconnected from 127\.0\.0\.1:\d+: the server closed the connection\n")
    return done.returncode, out, logged.sub("", err)


def greet(peer: FakePeer) -> None:
    peer.handshake()
    peer.until_left(timeout=LONGEST)
    peer.reach("left")


def has_left(fake: FakeServer) -> None:
    """Return once the server has seen the end of the connection."""
    eventually(lambda: fake.reached("left"), patience=LONGEST)


def deaf(peer: FakePeer) -> None:
    """A peer that reads nothing after the handshake."""
    peer.handshake()
    peer.stop_reading()
    peer.wait_for("over", timeout=LONGEST)


class Stored:
    """A stream of 40 messages on a real server, and the acknowledgements of its consumer `c`."""

    def __init__(self, server: NatsServer) -> None:
        self.name = f"SEAM{next(NUMBERS)}"
        self._server = server
        with js_sync.connect(server.url, **UNHURRIED) as connection:
            jet = connection.jetstream(timeout=60)
            config = StreamConfig(name=self.name, subjects=[f"{self.name}.>"])
            stream = jet.create_stream(config)
            stream.create_consumer(ConsumerConfig(durable_name="c"))
            for _ in range(40):
                jet.publish(f"{self.name}.a")

    def acknowledged(self, wanted: int) -> None:
        """Return once `count` messages are acknowledged."""
        with js_sync.connect(self._server.url, **UNHURRIED) as connection:
            consumer = connection.jetstream(timeout=60).get_consumer(self.name, "c")

            def floor() -> bool:
                info = consumer.info()
                delivered = info.delivered.consumer_seq if info.delivered else 0
                return delivered - (info.num_ack_pending or 0) == wanted

            eventually(floor, patience=LONGEST)

    def messages(self, wanted: int) -> None:
        """Return once `count` messages are stored."""
        with js_sync.connect(self._server.url, **UNHURRIED) as connection:
            stream = connection.jetstream(timeout=60).get_stream(self.name)
            eventually(lambda: stream.info().state.messages == wanted, patience=LONGEST)


# ---- at the end of a program that does not close


ACKS = """
nc = await js.connect(URL)
consumer = await nc.jetstream().get_consumer("{name}", "c")
for message in await consumer.fetch(20, timeout=60):
    await message.ack()
"""


def exit_acks(twin: str, server: NatsServer) -> None:
    endings = {
        "": 0,
        "raise ValueError": 1,
        "sys.exit(3)": 3,
        "os.kill(os.getpid(), signal.SIGINT)": -2,
    }
    for ending, code in endings.items():
        stored = Stored(server)
        ended = ran(twin, ACKS.format(name=stored.name) + ending, server.url)
        assert ended[0] == code, ended
        stored.acknowledged(20)


def exit_publishes(twin: str, server: NatsServer) -> None:
    stored = Stored(server)
    body = f"""
    nc = await js.connect(URL)
    for _ in range(1000):
        await nc.publish("{stored.name}.a", b"x")
    """
    assert ran(twin, body, server.url) == (0, "", "")
    stored.messages(1040)


def exit_several(twin: str, server: NatsServer) -> None:
    stored = Stored(server)
    body = f"""
    several = [await js.connect(URL) for _ in range(5)]
    for each in several:
        await each.publish("{stored.name}.a", b"x")
    """
    assert ran(twin, body, server.url) == (0, "", "")
    stored.messages(45)


def exit_unread(twin: str, server: NatsServer) -> None:
    stored = Stored(server)
    body = f"""
    nc = await js.connect(URL)
    consumer = await nc.jetstream().get_consumer("{stored.name}", "c")
    messages = consumer.messages()
    await (await messages.next(timeout=60)).ack()
    """
    ended = ran(twin, body, server.url)
    assert ended[0] == 0, ended
    stored.acknowledged(1)


CHILD = """
    if __name__ == "__main__":
        kind = multiprocessing.get_context("{kind}")
        child = kind.Process(target=work)
        child.start()
        child.join()
        sys.exit(child.exitcode)
"""


def exit_multiprocessing(twin: str, server: NatsServer, tmp_path: Path) -> None:
    for kind in ("fork", "spawn", "forkserver"):
        stored = Stored(server)
        # The name keeps it: a child that lets go of it closes it, as any other program.
        work = "global nc\n" + ACKS.format(name=stored.name)
        if twin == "js_sync":
            work = re.sub(r"\bawait ", "", work)
            text = f"def work():\n{textwrap.indent(work, '    ')}"
        else:
            text = f"async def main():\n{textwrap.indent(work, '    ')}\n\n"
            text += "def work():\n    asyncio.run(main())\n"
        path = tmp_path / f"{kind}.py"
        path.write_text(
            PRELUDE.replace("TWIN", twin) + text + textwrap.dedent(CHILD.format(kind=kind))
        )
        command = [sys.executable, str(path), server.url]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, cwd=ROOT)
        assert (ended.returncode, ended.stderr) == (0, "")
        stored.acknowledged(20)


# Waits for nothing: the peer never takes it all.
FILL = {
    "js_async": """
    async def fill():
        while True:
            await nc.publish("x", bytes(100_000))

    try:
        await asyncio.wait_for(fill(), 1)
    except TimeoutError:
        pass
    """,
    "js_sync": """
    def fill():
        try:
            while True:
                nc.publish("x", bytes(100_000))
        except js.TwinstreamError:
            pass

    threading.Thread(target=fill, daemon=True).start()
    time.sleep(1)
    """,
}


def exit_bounded(twin: str, server: NatsServer) -> None:
    """Without the bound, the exit would hang, or lose the rest silently."""
    with FakeServer(deaf, patience=LONGEST) as fake:
        # As it is by default.
        body = "end_within(1)\nnc = await js.connect(URL)\n" + textwrap.dedent(FILL[twin])
        code, out, err = ran(twin, body, fake.url)
        assert (code, out) == (0, "")
        assert re.search(r"did not take the last \d+ bytes: they are lost", err)
        fake.tell("over")


def exit_reconnecting(twin: str, server: NatsServer) -> None:
    def leaving(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^PUB last")
        peer.close()

    with FakeServer(leaving, rest=lambda peer: peer.close(), patience=LONGEST) as fake:
        body = """
        end_within(1)
        nc = await js.connect(URL, reconnect=js.ReconnectPolicy(attempts=-1, wait=20))
        found = sockets()
        await nc.publish("last")
        await sent()
        until_server_left(found)
        """
        assert ran(twin, body, fake.url) == (0, "", "")


def exit_child(twin: str, server: NatsServer) -> None:
    """The parent's data is sent once, by the parent."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^PUB end")
        assert peer.count("^PUB once") == 1
        peer.until_left(timeout=LONGEST)

    with FakeServer(script, patience=LONGEST) as fake:
        body = """
        nc = await js.connect(URL)
        await nc.publish("once")
        child = os.fork()
        if child == 0:
            sys.exit(3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        await nc.publish("end")
        await nc.close()
        sys.exit(code)
        """
        assert ran(twin, body, fake.url) == (3, "", "")


def exit_unclosed(twin: str, server: NatsServer, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    made = "nc = js.connect(URL)" if twin == "js_sync" else "nc = await js.connect(URL)"
    # Not before: tracing the imports takes long.
    body = f"import tracemalloc\njs.connect\ntracemalloc.start(25)\n{made}\n"
    path.write_text(written(twin, body))
    command = [sys.executable, "-W", "default", str(path), server.url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, cwd=ROOT)
    assert ended.returncode == 0
    assert "ResourceWarning: unclosed connection to 127.0.0.1:" in ended.stderr
    # Where it was made.
    assert made.removesuffix(")") in ended.stderr


# ---- a connection that the program dropped


def drop_frees(twin: str, server: NatsServer) -> None:
    body = """
    async def use():
        nc = await js.connect(URL)
        await nc.publish("x")
        await nc.flush()

    before = resources()
    for _ in range(3):
        await use()
        gc.collect()
    end = time.monotonic() + 30
    while resources() != before and time.monotonic() < end:
        gc.collect()
        await sent()
    print(resources() == before)
    """
    # The first connection imports what then stays; asyncio opens what its loop needs.
    body = "async with js.connect(URL) as first:\n    await first.flush()\n" + textwrap.dedent(body)
    code, out, err = ran(twin, body, server.url, "-W", "always")
    assert (code, out) == (0, "True\n"), err
    assert err.count("ResourceWarning: unclosed connection") == 3


def drop_sends(twin: str, server: NatsServer) -> None:
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect("^PUB last")
        peer.until_left(timeout=LONGEST)
        peer.reach("left")

    with FakeServer(script, patience=LONGEST) as fake:
        body = """
        async def use():
            nc = await js.connect(URL)
            await nc.publish("last")
            LAST

        await use()
        gc.collect()
        print("dropped", flush=True)
        REST
        """
        rest = (
            "sys.stdin.read()" if twin == "js_sync" else "await asyncio.to_thread(sys.stdin.read)"
        )
        # What waits for the next turn of the loop keeps the connection until then.
        last = "" if twin == "js_sync" else "await sent()"
        body = body.replace("REST", rest).replace("LAST", last)
        with started(twin, body, fake.url) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "dropped\n"
            # While the program goes on.
            has_left(fake)
            assert program.communicate(timeout=LONGEST)[1] == ""


def drop_reconnecting(twin: str, server: NatsServer) -> None:
    def leaving(peer: FakePeer) -> None:
        peer.handshake()
        peer.close()

    with FakeServer(leaving, rest=lambda peer: peer.close(), patience=LONGEST) as fake:
        body = """
        async def use():
            broken = []
            policy = js.ReconnectPolicy(attempts=-1, wait=0.01, max_wait=60)
            nc = await js.connect(URL, reconnect=policy, on_event=broken.append)
            while not any(isinstance(each, js.Disconnected) for each in broken):
                await sent()

        before = resources()
        await use()
        end = time.monotonic() + 30
        while resources() != before and time.monotonic() < end:
            gc.collect()
            await sent()
        print(resources() == before)
        """
        code, out, err = ran(twin, body, fake.url)
        assert (code, out) == (0, "True\n"), err


def drop_in_use(twin: str, server: NatsServer) -> None:
    body = """
    async def context():
        return (await js.connect(URL)).jetstream(timeout=60)

    jet = await context()
    gc.collect()
    await jet.account_info()
    """
    assert ran(twin, body, server.url) == (0, "", "")


# ---- forks


def fork_use(twin: str, server: NatsServer) -> None:
    body = """
    nc = await js.connect(URL)
    jet = nc.jetstream()
    child = os.fork()
    if child == 0:
        codes = 0
        for use in (
            lambda: nc.publish("x"),
            lambda: nc.flush(),
            lambda: jet.publish("x"),
            lambda: nc.request("x"),
        ):
            try:
                await use()
            except WrongProcessOrLoop:
                codes += 1
        os._exit(codes)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    await nc.close()
    """
    assert ran(twin, body, server.url) == (0, "4\n", "")


def fork_closes(twin: str, server: NatsServer) -> None:
    """A child closes all objects of its parent, which goes on with them."""
    name = f"SEAM{next(NUMBERS)}"
    body = f"""
    nc = await js.connect(URL)
    jet = nc.jetstream(timeout=60)
    stream = await jet.create_stream(StreamConfig(name="{name}", subjects=["{name}.>"]))
    consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
    bucket = await jet.create_key_value(js.KeyValueConfig(bucket="{name}"))
    locks = Coordination(jet, "L{name}", create=True)
    await bucket.put("a", b"1")
    publisher, lease = jet.publisher(), await locks.lock("a").acquire()
    watch, messages = await bucket.watch(), consumer.messages()
    subscription = await nc.subscribe("{name}.*")
    await publisher.send("{name}.b")
    await nc.flush()
    child = os.fork()
    if child == 0:
        for each in (publisher, watch, messages, subscription, nc, nc):
            await each.close()
        await lease.release()
        await nc.drain()
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    await publisher.close()
    await nc.publish("{name}.a", b"the parent's")
    while (await subscription.next(timeout=60)).data != b"the parent's":
        pass
    entry, message = await watch.next(timeout=60), await messages.next(timeout=60)
    print(entry.value, message.subject, lease.is_held)
    await lease.release()
    for each in (watch, messages, subscription, nc):
        await each.close()
    """
    code, out, err = ran(twin, body, server.url)
    assert (code, out, err) == (0, f"3\nb'1' {name}.b True\n", ""), err


def fork_stops(twin: str, server: NatsServer) -> None:
    """A child stops all the background work of its parent, which goes on with it."""
    name = f"SEAM{next(NUMBERS)}"
    body = f"""
    import tempfile
    from importlib import import_module

    groups = import_module(js.__name__ + ".groups")
    outboxes = import_module(js.__name__ + ".outbox")
    workers = import_module(js.__name__ + ".workers")

    done = []

    async def handler(message):
        done.append(message.data)

    async def elected(lease):
        pass

    async def all_done(count):
        while len(done) < count:
            await sent()

    nc = await js.connect(URL)
    jet = nc.jetstream(timeout=60)
    config = StreamConfig(name="{name}", subjects=["{name}.>"], allow_direct=True)
    stream = await jet.create_stream(config)
    config = ConsumerConfig(durable_name="c", filter_subject="{name}.c")
    consumer = await stream.create_consumer(config)
    store = await jet.create_object_store(js.ObjectStoreConfig(bucket="{name}"))
    await store.put("o", bytes(1000))
    locks = Coordination(jet, "L{name}", create=True)
    group = groups.ElasticGroup(jet, "{name}", "g")
    parts = groups.PartitioningFilter(filter="{name}.*", partitioning_wildcards=[1])
    members = groups.ElasticGroupConfig(max_members=2, partitioning_filters=[parts], members=["m"])
    await group.create(members)
    letters = workers.DeadLetters(jet, "{name}")
    config = ConsumerConfig(durable_name="w", filter_subject="{name}.w")
    outbox = outboxes.SqliteOutbox(tempfile.mkdtemp() + "/outbox.db")
    stopped = [
        letters,
        workers.Worker(jet, "{name}", config, handler),
        consumer.consume(handler),
        outboxes.OutboxRelay(jet, outbox, "{name}", by="id"),
        group.worker("m", handler),
        locks.leader("l", on_elected=elected),
    ]
    for each in stopped:
        await each.start()
    lease, batch = await locks.lock("a").acquire(), jet.atomic_batch()
    closed = [
        lease, batch, await store.get("o"), await store.watch(), stream.read(),
        jet.publisher(), consumer.messages(), stream.ordered(), await nc.subscribe("{name}.*"),
    ]
    child = os.fork()
    if child == 0:
        for each in (*stopped, *closed, nc):
            for call in ("abandon", "close", "release", "stop"):
                if hasattr(each, call):
                    await getattr(each, call)()
            if hasattr(each, "drain"):
                await each.drain()
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    count = len(done)
    for end in ("c", "w"):
        await jet.publish(f"{name}.{{end}}", b"the parent's")
    await all_done(count + 4)
    print(lease.is_held, flush=True)
    for each in stopped:
        await each.stop()
    for each in closed:
        for call in ("close", "abandon", "release"):
            if hasattr(each, call):
                await getattr(each, call)()
                break
    await nc.close()
    """
    code, out, err = ran(twin, body, server.url)
    assert (code, out, err) == (0, "3\nTrue\n", ""), err


def fork_leaves(twin: str, server: NatsServer) -> None:
    """A child leaves all open blocks, and the parent continues to use the objects."""
    name = f"SEAM{next(NUMBERS)}"
    body = f"""
    async def handler(message):
        pass

    async with js.connect(URL) as nc:
        jet = nc.jetstream(timeout=60)
        config = StreamConfig(name="{name}", subjects=["{name}.>"], allow_atomic=True)
        stream = await jet.create_stream(config)
        consumer = await stream.create_consumer(ConsumerConfig(durable_name="c"))
        await jet.publish("{name}.a")
        async with (
            nc.subscribe("{name}.*") as subscription,
            consumer.messages() as messages,
            stream.ordered() as ordered,
            jet.publisher() as publisher,
            jet.atomic_batch() as batch,
            stream.read() as stored,
            consumer.consume(handler) as consuming,
        ):
            await batch.add("{name}.b")
            await publisher.send("{name}.c")
            await nc.flush()
            child = os.fork()
            if child == 0:
                sys.exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            await nc.publish("{name}.a", b"the parent's")
            while (await subscription.next(timeout=60)).data != b"the parent's":
                pass
        print((await stream.info()).state.messages)
    """
    code, out, err = ran(twin, body, server.url)
    assert (code, out, err) == (0, "3\n4\n", ""), err


def blocks(twin: str) -> set[type]:
    """Return the classes of a twin with a `with` block."""
    package = importlib.import_module(twin)
    left = "__exit__" if twin == "js_sync" else "__aexit__"
    found = set()
    for info in pkgutil.walk_packages(package.__path__, f"{twin}."):
        module = importlib.import_module(info.name)
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == info.name and hasattr(kind, left):
                found.add(kind)
    return found


def fork_blocks(twin: str, server: NatsServer) -> None:
    """In a forked child, the end of a `with` block closes nothing."""
    found = blocks(twin)
    # The seam's own, which are not of a connection. A lease asks itself whether it is inherited,
    # `Lock` leaves the block of its lease, `_Chunks` leaves the block of its publisher, and the
    # thread of an `_Interrupter` does not run in a child.
    own = {
        "Gate",
        "Interrupts",
        "KeepingSocket",
        "Lease",
        "Lock",
        "Opening",
        "_Chunks",
        "_Interrupter",
    }
    base = importlib.import_module(f"{twin}.client.closable").Closable
    assert len(found) > 15
    assert {kind.__name__ for kind in found if not issubclass(kind, base)} <= own
    for kind in found:
        if issubclass(kind, base) and kind.__init__ is not base.__init__:
            assert "super().__init__(" in inspect.getsource(kind.__init__), kind


def fork_all_closing(twin: str, server: NatsServer) -> None:
    """Each method that ends the work of an object does nothing in a forked child."""
    owned = importlib.import_module(f"{twin}.client.closable")
    checked = 0
    for kind in blocks(twin):
        for name in owned.CLOSING:
            call = vars(kind).get(name)
            # A name of another client, with a hint, is no method.
            if not callable(call) or not issubclass(kind, owned.Closable):
                continue
            body = inspect.getsource(call).replace(call.__doc__ or "", "")
            if "NotImplementedError" not in body and "@abstractmethod" not in body:
                assert re.search(r"if (not )?self._is_parents:", body), call
                checked += 1
    assert checked > 20


def fork_close(twin: str, server: NatsServer) -> None:
    with FakeServer(greet, patience=LONGEST) as fake:
        body = """
        nc = await js.connect(URL)
        child = os.fork()
        if child == 0:
            sys.stdin.read()
            os._exit(0)
        await nc.close()
        os.waitpid(child, 0)
        """
        with started(twin, body, fake.url) as program:
            has_left(fake)
            assert program.communicate(timeout=LONGEST) == ("", "")


def fork_killed(twin: str, server: NatsServer) -> None:
    with FakeServer(greet, patience=LONGEST) as fake:
        body = """
        nc = await js.connect(URL)
        ready, done = os.pipe()
        if os.fork() == 0:
            os.write(done, b"x")
            sys.stdin.read()
            os._exit(0)
        os.read(ready, 1)
        os.kill(os.getpid(), signal.SIGKILL)
        """
        with started(twin, body, fake.url) as program:
            has_left(fake)
            program.communicate(timeout=LONGEST)


# ---- the end of a socket


def end_shuts_down(twin: str, server: NatsServer) -> None:
    """Another descriptor of the socket does not keep the connection open."""
    with FakeServer(greet, patience=LONGEST) as fake:
        body = """
        nc = await js.connect(URL)
        copies = sockets()
        await nc.close()
        print(len(copies), flush=True)
        sys.stdin.read()
        """
        with started(twin, body, fake.url) as program:
            has_left(fake)
            assert program.communicate(timeout=LONGEST) == ("1\n", "")


def end_bounded(twin: str, server: NatsServer) -> None:
    with FakeServer(deaf, patience=LONGEST) as fake:
        body = (
            "before = len(sockets())\nnc = await js.connect(URL)\n"
            + textwrap.dedent(FILL[twin])
            + "await nc.close()\nprint(before, len(sockets()))\n"
        )
        assert ran(twin, body, fake.url) == (0, "0 0\n", "")
        fake.tell("over")


CALLS = {
    "publish": "print((await nc.jetstream().publish('a', b'')).seq)",
    "core publish": "await nc.publish('core'); await nc.flush(); print(1)",
    "request": "print(len((await nc.request('a')).headers) + 1)",
    "flush": "await nc.flush(); print(1)",
    "fetch": "print(len(await nc.jetstream().bind_consumer('A', 'c').fetch(1, timeout=60)))",
    "publish_many": "print([o.seq async for o in nc.jetstream().publish_many([('a', b'')])][0])",
    "is_connected": "print(int(not nc.is_connected)); await nc.flush()",
    "ack": "await message.ack(); await nc.flush(); print(1)",
}


def end_noticed(twin: str, server: NatsServer) -> None:
    def leaving(peer: FakePeer) -> None:
        peer.handshake()
        pull = peer.expect_pull()
        peer.deliver(pull, seq=1)
        peer.expect("^PUB ready")
        peer.close()

    def answering(peer: FakePeer) -> None:
        peer.handshake()
        for operation in peer.follow():
            if "MSG.NEXT" in operation.line:
                peer.deliver(operation, seq=1)
            elif operation.reply:
                peer.answer(operation, b'{"stream":"A","seq":1}')

    for call in CALLS.values():
        with FakeServer(leaving, answering, patience=LONGEST) as fake:
            body = f"""
            async with js.connect(URL, reconnect=js.ReconnectPolicy(wait=0.01)) as nc:
                consumer = nc.jetstream().bind_consumer("A", "c")
                message = (await consumer.fetch(1, timeout=60))[0]
                found = sockets()
                await nc.publish("ready")
                await sent()
                until_server_left(found)
                {call.replace("; ", chr(10) + " " * 16)}
            """
            ended = ran(twin, body, fake.url)
            assert ended == (0, "1\n", ""), (call, ended)
            if "ack" in call:
                assert len(fake.operations(r"^PUB \$JS.ACK")) == 1


# ---- cancellation and interrupts


def cancel_close(twin: str, server: NatsServer) -> None:
    def silent(peer: FakePeer) -> None:
        peer.stop_answering()
        greet(peer)

    interrupted = {
        "js_sync": """
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        try:
            nc.close()
            sys.exit("not interrupted")
        except KeyboardInterrupt:
            pass
        """,
        "js_async": """
        try:
            async with asyncio.timeout(0.1):
                await nc.close()
            sys.exit("not cancelled")
        except TimeoutError:
            pass
        """,
    }
    with FakeServer(silent, patience=LONGEST) as fake:
        body = "nc = await js.connect(URL)\n" + textwrap.dedent(interrupted[twin])
        body += "print(nc.is_closed, len(sockets()))"
        assert ran(twin, body, fake.url) == (0, "True 0\n", "")


def cancel_wait(twin: str, server: NatsServer) -> None:
    interrupted = {
        "js_sync": """
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        try:
            subscription.next(timeout=60)
            sys.exit("not interrupted")
        except KeyboardInterrupt:
            pass
        """,
        "js_async": """
        try:
            async with asyncio.timeout(0.1):
                await subscription.next(timeout=60)
            sys.exit("not cancelled")
        except TimeoutError:
            pass
        """,
    }
    body = (
        "nc = await js.connect(URL)\nsubscription = await nc.subscribe('cancelled')\n"
        + textwrap.dedent(interrupted[twin])
        + "await nc.publish('cancelled', b'x')\nprint((await subscription.next(timeout=60)).data)\n"
        + "print(nc.stats.connects)\nawait nc.close()\n"
    )
    assert ran(twin, body, server.url) == (0, "b'x'\n1\n", "")


Check = Callable[..., None]

LINES: dict[str, Check] = {
    "exit: acknowledgements": exit_acks,
    "exit: publishes": exit_publishes,
    "exit: several connections": exit_several,
    "exit: unread messages": exit_unread,
    "exit: multiprocessing": exit_multiprocessing,
    "exit: a deaf peer": exit_bounded,
    "exit: while reconnecting": exit_reconnecting,
    "exit: of a forked child": exit_child,
    "exit: a warning": exit_unclosed,
    "drop: resources": drop_frees,
    "drop: last bytes": drop_sends,
    "drop: while reconnecting": drop_reconnecting,
    "drop: only when unused": drop_in_use,
    "fork: use": fork_use,
    "fork: closing": fork_closes,
    "fork: stopping": fork_stops,
    "fork: all closing": fork_all_closing,
    "fork: leaving blocks": fork_leaves,
    "fork: all blocks": fork_blocks,
    "fork: close": fork_close,
    "fork: the parent killed": fork_killed,
    "end: shutdown": end_shuts_down,
    "end: a deaf peer": end_bounded,
    "end: noticed before a write": end_noticed,
    "cancel: close": cancel_close,
    "cancel: a wait": cancel_wait,
    # Lines on several addresses of a name begin with "address: ".
}


@pytest.mark.parametrize("twin", ["js_sync", "js_async"])
@pytest.mark.parametrize("line", LINES)
def test_the_contract(line: str, twin: str, server: NatsServer, tmp_path: Path) -> None:
    check = LINES[line]
    wants_path = "tmp_path" in check.__code__.co_varnames[: check.__code__.co_argcount]
    if wants_path:
        check(twin, server, tmp_path)
    else:
        check(twin, server)


def test_the_contract_is_written_down_line_by_line() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("## What the seam guarantees\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z]+: [^`]+)` \|", section, re.MULTILINE) == list(LINES)
