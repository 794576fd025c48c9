"""Long-running commands whose server goes down and comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

import js_sync
from tests.cli.output import in_time
from tests.hooked import hooked
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.cli.message.reconnects import LinkWatch, Patience
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer


def away_and_back(server: NatsServer, back: Callable[[], None]) -> AbstractContextManager[None]:
    """Kill the server at the first check, and restart it later; `back` then ends the command."""
    seen: list[bool] = []

    def looked(found: bool) -> None:
        if not seen:
            server.kill()
        seen.append(found)
        if seen[-3:] == [False, False, False]:
            server.start()
        elif seen[-1] and False in seen:
            back()

    return hooked("command: connection checked", looked)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("command", [["dlq", "run", "S"], ["events"], ["events", "--json"]])
def test_iteration_continues_after_the_server_restarts(command: list[str]) -> None:
    with NatsServer(start_timeout=300) as server:
        with js_sync.connect(server.url, **UNHURRIED) as nc:
            nc.jetstream().create_stream(StreamConfig(name="S", subjects=["s"]))
        arguments = [*command, "--timeout", "0.5", "--server", server.url]
        with away_and_back(server, lambda: signal.raise_signal(signal.SIGINT)):
            result = in_time(
                lambda: CliRunner().invoke(twinstream, arguments),
                lambda result: "is lost" in result.stderr,
            )
    assert result.exit_code == 0, result.output
    lost = result.stderr.index("the connection to the server is lost")
    assert lost < result.stderr.index("the connection to the server is restored")


def test_unnoticed_reconnect_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nc = SimpleNamespace(is_connected=True, stats=SimpleNamespace(connects=1))
    link = LinkWatch(cast(Any, nc))
    assert link.look()
    assert capsys.readouterr().err == ""
    nc.stats.connects = 2
    assert link.look()
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == [
        "reconnecting",
        "restored",
    ]
    assert link.look()
    assert capsys.readouterr().err == ""


def test_patience_ends_only_while_there_is_a_link() -> None:
    nc, clock = SimpleNamespace(is_connected=False), SimpleNamespace(now=0.0)
    stop = SimpleNamespace(wait=lambda _: None)
    patience = Patience(cast(Any, nc), cast(Any, stop), lambda: clock.now)
    for clock.now in (100.0, 200.0, 300.0):
        with patience.tried():
            raise js_sync.NoResponders("nobody")
    nc.is_connected = True
    clock.now = 315.0  # a leader that was lost may take so long to be replaced
    with patience.tried():
        raise js_sync.NoResponders("nobody")
    clock.now = 325.0
    with pytest.raises(js_sync.NoResponders), patience.tried():
        raise js_sync.NoResponders("nobody")
    with patience.tried():
        pass
    with patience.tried():  # a new trouble, which may last as long again
        raise js_sync.NoResponders("nobody")
    with pytest.raises(js_sync.StreamNotFound), patience.tried():
        raise js_sync.StreamNotFound("gone", code=404, err_code=10059)
