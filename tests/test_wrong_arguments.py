"""Arguments of another kind than is asked for: refused where they are given, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import js_sync
from js_sync import JetStream
from js_testing import NatsServer

WRONG: dict[str, tuple[str, Any]] = {
    "process a name": ("consumer", lambda jet: jet.process("c", print, into="S", by="id")),
    "relay nothing": ("an outbox", lambda jet: jet.outbox(None, stream="S", by="id")),
    "relay a path": ("an outbox", lambda jet: jet.outbox("app.db", stream="S", by="id")),
    "letters by name": ("dead_letters", lambda jet: jet.worker("S", "c", print, dead_letters="x")),
    "publish a number": ("several requests", lambda jet: jet.publish_many(5)),
    "ingest nothing": ("several requests", lambda jet: jet.fast_ingest("S", None)),
    "acknowledge bytes": ("message", lambda jet: jet.bind_consumer("S", "c").ack_next(b"")),
}


@pytest.mark.parametrize(("named", "call"), WRONG.values(), ids=WRONG)
def test_what_is_of_another_kind_is_refused_at_once(
    server: NatsServer, named: str, call: Any
) -> None:
    with (
        js_sync.connect(server.url) as nc,
        pytest.raises(js_sync.BadArgument, match=rf"{named} .*, got "),
    ):
        call(nc.jetstream())


def test_an_outbox_goes_into_a_stream_by_name(server: NatsServer, tmp_path: Path) -> None:
    outbox = js_sync.SqliteOutbox(tmp_path / "app.db")
    table: Any = 5
    with pytest.raises(js_sync.BadArgument, match="table must be"):
        js_sync.SqliteOutbox(tmp_path / "app.db", table=table)
    with js_sync.connect(server.url) as nc:
        jet: JetStream = nc.jetstream()
        stream: Any = jet.bind_stream("S")
        for wrong in (None, stream):
            with pytest.raises(js_sync.BadArgument, match="a stream needs a name"):
                jet.outbox(outbox, stream=wrong, by="subject")
