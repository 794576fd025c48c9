"""`twinstream account`."""

from __future__ import annotations

import json
from collections.abc import Callable

import js_sync
from tests.cli.output import Run
from tests.unhurried import UNHURRIED
from twinstream.models import ConsumerConfig, StreamConfig
from twinstream.testing import NatsServer

TIERS = """
accounts { A: {
    users: [{user: a, password: pw}]
    jetstream { max_mem: 1M, max_file: 1M, max_streams: 2, max_consumers: -1 }
} }
no_auth_user: a
"""


def test_account_shows_usage_and_limits(
    run: Run, server_factory: Callable[..., NatsServer]
) -> None:
    with server_factory(TIERS) as server:
        with js_sync.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            for name in ("ONE", "TWO"):
                jet.create_stream(StreamConfig(name=name))
            jet.publish("ONE", bytes(512 * 1024))
        shown = run("account", "info", "--server", server.url)
        assert shown.exit_code == 0, shown.stderr
        rows = {line.split("\t")[0]: line.split() for line in shown.stdout.splitlines() if line}
        assert rows["storage"][-1] == "52%"
        assert rows["streams"][1:3] == ["2", "2"]
        assert rows["streams"][-1] == "100%"
        assert rows["consumers"][1:] == ["0"]
        document = json.loads(run("account", "info", "--server", server.url, "--json").stdout)
        assert document["streams"] == 2
        assert document["limits"]["max_streams"] == 2


def test_the_limit_of_consumers_is_shown_for_a_stream(
    run: Run, server_factory: Callable[..., NatsServer]
) -> None:
    with server_factory(TIERS.replace("max_consumers: -1", "max_consumers: 1")) as server:
        with js_sync.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            for name in ("ONE", "TWO"):
                jet.create_stream(StreamConfig(name=name))
                jet.create_consumer(name, ConsumerConfig(durable_name="c"))
        shown = run("account", "info", "--server", server.url).stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["consumers", "2"] in rows
    assert ["consumers", "of", "a", "stream", "1"] in rows
