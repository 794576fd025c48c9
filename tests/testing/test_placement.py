"""Whether a cluster can place a stream, as its leader answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from twinstream.testing import FakePeer, FakeServer, NatsServer
from twinstream.testing.placement import places_streams

NO_PEERS = {"error": {"code": 400, "err_code": 10005, "description": "no suitable peers"}}
NOT_ENABLED = {"error": {"code": 503, "err_code": 10039, "description": "not enabled"}}


def answering(answer: Mapping[str, Any] | None) -> Callable[[FakePeer], None]:
    """Return a script that answers the creation of a stream; None closes the connection."""

    def script(peer: FakePeer) -> None:
        peer.info()
        request = peer.expect(r"^PUB \$JS\.API\.STREAM\.CREATE\.")
        assert request.json["num_replicas"] == 3
        if answer is None:
            peer.close()
            return
        peer.answer(request, answer)
        if "error" not in answer:
            peer.answer(peer.expect(r"^PUB \$JS\.API\.STREAM\.DELETE\."), {"success": True})
        peer.until_left()

    return script


@pytest.mark.parametrize(
    ("answer", "places"), [({}, True), (NO_PEERS, False), (NOT_ENABLED, True), (None, False)]
)
def test_the_answer_decides(answer: Mapping[str, Any] | None, places: bool) -> None:
    with FakeServer(answering(answer)) as server:
        assert places_streams(server.port, 3) is places


@pytest.mark.parametrize("demand", ["auth_required", "tls_required"])
def test_a_server_that_strangers_may_not_use_is_not_asked(demand: str) -> None:
    def script(peer: FakePeer) -> None:
        peer.info(**{demand: True})
        peer.until_left()
        assert not peer.operations

    with FakeServer(script) as server:
        assert places_streams(server.port, 3)


def test_a_single_server_has_no_peers() -> None:
    with NatsServer(start_timeout=300) as server:
        assert places_streams(server.port, 1)
        port = server.port
    assert not places_streams(port, 1)
