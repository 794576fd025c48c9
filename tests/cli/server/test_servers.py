"""`twinstream server`: the servers of a system."""

from __future__ import annotations

from collections.abc import Callable

import js_sync
from tests.cli.output import Run, in_time, json_lines
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer

SYSTEM = """
accounts {
    SYS: { users: [{user: sys, password: pw}] }
    APP: { jetstream: enabled, users: [{user: app, password: pw}] }
}
system_account: SYS
no_auth_user: app
"""
SYS = ("--user", "sys", "--password", "pw")


def test_the_connected_server_is_shown(run: Run, server: NatsServer) -> None:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        known = nc.server_info
    (found,) = json_lines(run("server", "info", "--json"))
    assert (found["name"], found["version"]) == (known.server_name, known.version)
    assert (found["jetstream"], found["max_payload"]) == (True, 1 << 20)
    assert f"version\t{known.version}\n" in run("server", "info").stdout


def test_a_user_of_the_system_account_sees_all_servers(
    run: Run, server_factory: Callable[..., NatsServer]
) -> None:
    with server_factory(SYSTEM) as system:
        where = ("--server", system.url, *SYS)
        (row,) = [line.split("\t") for line in run("server", "ls", *where).stdout.splitlines()]
        (raw,) = json_lines(run("server", "ls", *where, "--json"))
        assert row[0] == raw["server"]["name"]
        assert row[2] == raw["server"]["ver"]
        assert int(row[5]) > 0
        assert row[7].endswith("Z")
        (ping,) = json_lines(run("server", "ping", *where, "--json"))
        assert ping["server"] == row[0]
        assert ping["seconds"] > 0
        assert run("server", "ping", *where).stdout.startswith(f"{row[0]}\t")
        refused = in_time(
            lambda: run("server", "ls", "--server", system.url, "--timeout", "2s"),
            lambda result: "no server accepted" not in result.stderr,
        )
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "only users of the system account get answers" in refused.stderr
