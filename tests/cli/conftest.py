"""The command line, run in this process against a real server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

import js_sync
from tests.cli.output import Run
from tests.cli.terminal import PATIENT
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

_numbers = itertools.count(1)


@pytest.fixture
def run(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `twinstream` with arguments; the server comes from the environment.

    Requests have a minute, unless the arguments say otherwise.
    """
    monkeypatch.setenv("TWINSTREAM_URL", server.url)
    monkeypatch.setenv("NO_COLOR", "1")

    def invoke(*arguments: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(twinstream, [*PATIENT, *arguments], input=input)

    return invoke


@pytest.fixture
def stream(server: NatsServer) -> str:
    """A new stream, whose name is also the first token of its subjects."""
    name = f"CLI{next(_numbers)}"
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        nc.jetstream().create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
    return name


@pytest.fixture
def jet(server: NatsServer) -> Iterator[js_sync.JetStream]:
    """The JetStream API of the server, to check the effects of a command."""
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        yield nc.jetstream()
