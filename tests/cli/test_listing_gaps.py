"""Streams, consumers and buckets that the server lists without their info."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.output import Run, json_lines
from twinstream.testing import FakePeer, FakeServer, ScriptError

_ZERO = "0001-01-01T00:00:00Z"
_STATE = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 1}
_INFO = {
    "config": {"name": "S", "subjects": ["s"], "retention": "limits", "storage": "file"},
    "state": {**_STATE, "first_ts": _ZERO, "last_ts": _ZERO},
    "created": "2026-01-01T00:00:00Z",
}


def page(members: str, **more: Any) -> dict[str, Any]:
    return {"total": 1, "offset": 0, "limit": 256, members: [], **more}


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server whose streams and consumers have no leader."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        # Until the command disconnects.
        with suppress(ScriptError):
            while True:
                request = peer.expect(r"^H?PUB \$JS\.API\.")
                if "STREAM.LIST" in request.subject:
                    peer.answer(request, page("streams", missing=["S", "KV_b", "OBJ_o"]))
                elif "CONSUMER.LIST" in request.subject:
                    peer.answer(request, page("consumers", missing=["c"]))
                else:
                    peer.answer(request, _INFO)

    with FakeServer(rest=script) as server:
        yield server.url


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("stream", "ls"), "S"),
        (("stream", "info", "S"), "c"),
        (("consumer", "ls", "S"), "c"),
        (("kv", "ls"), "b"),
        (("object", "ls"), "o"),
        (("object", "info"), "o"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_has_no_info_is_named(
    run: Run, silent: str, command: tuple[str, ...], name: str
) -> None:
    shown = run(*command, "--server", silent)
    assert shown.exit_code == 0
    assert f"{name} cannot be described: its leader does not answer" in shown.stderr
    assert "no " not in shown.stdout
    as_json = json_lines(run(*command, "--server", silent, "--json"))
    assert "its leader does not answer" in str(as_json)


def test_a_plan_needs_the_config_of_each_consumer(run: Run, silent: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "streams:\n- name: S\n  subjects: [s]\n"
        "consumers:\n- stream_name: S\n  config: {durable_name: c}\n",
        "utf-8",
    )
    shown = run("plan", str(file), "--server", silent)
    assert shown.exit_code == 1
    assert "consumer c of stream S cannot be described" in shown.stderr
