"""Places where JetStream is reached in three ways, with a user for each list of permissions.

In the plain world the client is in JetStream's own account; through a leaf node it is on a server
without JetStream, and names the domain; through an import it is in another account, and names the
prefix. In each the user may do what its list says and nothing else, so that a call on a subject
without the domain or the prefix is a violation that the server reports.
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
    """Where clients connect to, and where a user without limits in JetStream's account does."""

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
    """Return a server where the users are in JetStream's account; `more` is configuration."""
    config = f"""{more}
    accounts {{
        APP: {{ jetstream: enabled, users: [{{user: admin, password: pw}}, {users(lists)}] }}
    }}"""
    with NatsServer(config, VERSION) as server:
        yield World(server.url, server.url, {})


@contextmanager
def through_a_leaf(lists: Mapping[str, Permissions]) -> Iterator[World]:
    """Return a hub without JetStream; a leaf node of it has JetStream as a domain."""
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
        NatsServer(hub_config, VERSION, jetstream=False) as hub,
        NatsServer(leaf_config, VERSION, domain=DOMAIN) as leaf,
    ):
        yield World(hub.url, leaf.url, {"domain": DOMAIN})


@contextmanager
def through_an_import(lists: Mapping[str, Permissions]) -> Iterator[World]:
    """Return a server where another account imports the API under a prefix of its own."""
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
    with NatsServer(config, VERSION) as server:
        yield World(server.url, server.url, {"prefix": PREFIX})


WORLDS = {"plain": plain, "leaf": through_a_leaf, "import": through_an_import}
