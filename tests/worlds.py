"""Servers that reach JetStream in three ways, with a user for each list of permissions.

With `plain`, the client is in JetStream's own account. Through a leaf node, the client is on a
server without JetStream and names the domain. Through an import, the client is in another account
and names the prefix. Each user may use exactly the subjects of its list, so the server reports a
violation if a call uses a subject without the domain or the prefix.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from attrs import frozen

from tests.conftest import VERSION
from twinstream.permissions import Permissions
from twinstream.testing import NatsServer
from twinstream.testing.ports import free_ports

PREFIX = "JS.app.API"
DOMAIN = "leaf"


@frozen
class World:
    """The URL for clients, and the URL for a user without limits in JetStream's account."""

    url: str
    admin_url: str
    options: dict[str, str]


def users(lists: Mapping[str, Permissions]) -> str:
    """Return the users of an account; the password of each is `pw`."""
    return ",\n".join(
        f"{{user: {json.dumps(name)}, password: pw, {each.nats_conf()}}}"
        for name, each in lists.items()
    )


@contextmanager
def plain(lists: Mapping[str, Permissions], more: str = "") -> Iterator[World]:
    """Yield a server whose users are in JetStream's account; `more` is configuration."""
    config = f"""{more}
    accounts {{
        APP: {{ jetstream: enabled, users: [{{user: admin, password: pw}}, {users(lists)}] }}
    }}"""
    with NatsServer(config, VERSION, start_timeout=300) as server:
        yield World(server.url, server.url, {})


@contextmanager
def through_a_leaf(lists: Mapping[str, Permissions]) -> Iterator[World]:
    """Yield a hub without JetStream, to which a leaf node with a JetStream domain is connected."""
    [port] = free_ports(1)
    hub_config = f"""
        leafnodes {{ listen: "127.0.0.1:{port}" }}
        accounts {{ HUB: {{ users: [{{user: leaf, password: pw}}, {users(lists)}] }} }}
    """
    leaf_config = f"""
        leafnodes {{ remotes [
            {{ url: "nats-leaf://leaf:pw@127.0.0.1:{port}", account: APP }}
        ] }}
        accounts {{ APP: {{ jetstream: enabled, users: [{{user: admin, password: pw}}] }} }}
    """
    with (
        NatsServer(hub_config, VERSION, jetstream=False, start_timeout=300) as hub,
        NatsServer(leaf_config, VERSION, domain=DOMAIN, start_timeout=300) as leaf,
    ):
        yield World(hub.url, leaf.url, {"domain": DOMAIN})


@contextmanager
def through_an_import(lists: Mapping[str, Permissions]) -> Iterator[World]:
    """Yield a server on which another account imports the API under its own prefix."""
    services = (
        "$JS.ACK.>",
        "$JS.FC.>",
        "$JS.SNAPSHOT.>",
        "p.>",
        "dead.>",
        "coordination.held.>",
        "$O.>",
    )
    exports = [
        *(
            f'{{service: "{each}", response_type: stream}}'
            for each in ("$JS.API.>", "$KV.>", *services)
        ),
        '{stream: "deliver.>"}',
    ]
    imports = [
        f'{{service: {{account: APP, subject: "$JS.API.>"}}, to: "{PREFIX}.>"}}',
        f'{{service: {{account: APP, subject: "$KV.>"}}, to: "{PREFIX}.$KV.>"}}',
        *(f'{{service: {{account: APP, subject: "{each}"}}}}' for each in services),
        '{stream: {account: APP, subject: "deliver.>"}}',
    ]
    config = f"""accounts {{
        APP: {{
            jetstream: enabled
            users: [{{user: admin, password: pw}}]
            exports: [ {", ".join(exports)} ]
        }}
        OUT: {{ users: [ {users(lists)} ], imports: [ {", ".join(imports)} ] }}
    }}"""
    with NatsServer(config, VERSION, start_timeout=300) as server:
        yield World(server.url, server.url, {"prefix": PREFIX})


WORLDS = {"plain": plain, "leaf": through_a_leaf, "import": through_an_import}
