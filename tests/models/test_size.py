"""The calculated size of messages, compared with a real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import nats
import pytest

from twinstream.models import headers_size, storage_size
from twinstream.testing import NatsServer

MESSAGES: list[tuple[str, bytes, dict[str, str]]] = [
    ("s", b"", {}),
    ("s.a", b"hello", {}),
    ("s.\u00fc", b"x" * 1000, {"Nats-Msg-Id": "1"}),
    ("s.b.c", b"", {"A": "", "B": "\u00e9"}),
]


def test_sizes_are_those_of_the_format() -> None:
    assert storage_size("abcd", 5) == 39
    assert storage_size("abcd", 5, storage="memory") == 25
    assert storage_size("abcd", 5, messages=10, replicas=3) == 39 * 30
    assert headers_size({}) == 0
    assert headers_size({"A": "b"}) == len(b"NATS/1.0\r\nA: b\r\n\r\n")
    assert headers_size({"A": ["b", "c"]}) == len(b"NATS/1.0\r\nA: b\r\nA: c\r\n\r\n")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"payload": -1}, "payload must not be negative"),
        ({"payload": 1, "messages": -1}, "messages must not"),
        ({"payload": 1, "replicas": 0}, "at least 1"),
        ({"payload": 1, "storage": "tape"}, "file or memory, got 'tape'"),
    ],
)
def test_negative_numbers_and_unknown_storage_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        storage_size("a", **fields)


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_a_server_counts_the_same(server: NatsServer, storage: str) -> None:
    assert asyncio.run(_bytes(server.url, storage)) == sum(
        storage_size(subject, len(data), headers=headers_size(headers), storage=storage)
        for subject, data, headers in MESSAGES
    )


async def _bytes(url: str, storage: str) -> int:
    nc = await nats.connect(url)
    name = f"SIZE-{storage}"
    # The stream's prefix keeps the two apart and is taken off again before storing.
    body = {
        "name": name,
        "subjects": [f"{storage}.>"],
        "storage": storage,
        "subject_transform": {"src": f"{storage}.>", "dest": ">"},
    }
    await nc.request(f"$JS.API.STREAM.CREATE.{name}", json.dumps(body).encode())
    for subject, data, headers in MESSAGES:
        await nc.request(f"{storage}.{subject}", data, headers=headers or None)
    answer = json.loads((await nc.request(f"$JS.API.STREAM.INFO.{name}", b"")).data)
    await nc.close()
    stored: int = answer["state"]["bytes"]
    return stored
