"""Pull requests, validated offline and by a real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import nats
import pytest
from pull_fuzz import open_puller

from twinstream.models import PullRequest, validate_pull
from twinstream.testing import NatsServer

SECOND = 1_000_000_000
PLAIN = {"durable_name": "plain", "ack_policy": "explicit"}
BOUND = {**PLAIN, "durable_name": "bound", "max_batch": 5, "max_expires": SECOND, "max_bytes": 99}
OVERFLOW = {
    **PLAIN,
    "durable_name": "overflow",
    "priority_policy": "overflow",
    "priority_groups": ["g"],
}
PINNED = {**OVERFLOW, "durable_name": "pinned", "priority_policy": "pinned_client"}
CONSUMERS = {config["durable_name"]: config for config in (PLAIN, BOUND, OVERFLOW, PINNED)}

CASES: list[tuple[dict[str, Any], str, str, int]] = [
    ({}, "plain", "", 0),
    ({"batch": 0}, "plain", "", 0),
    ({"batch": 5, "expires": SECOND, "idle_heartbeat": SECOND // 2}, "plain", "", 0),
    ({"idle_heartbeat": SECOND}, "plain", "P-HEARTBEAT", 400),
    ({"expires": SECOND, "idle_heartbeat": SECOND // 2 + 1}, "plain", "P-HEARTBEAT", 400),
    ({"batch": "5"}, "plain", "R-JSON", 400),
    ({"expires": 1.5}, "plain", "R-JSON", 400),
    ({"batch": 5}, "bound", "", 0),
    ({"batch": 6}, "bound", "P-BATCH", 409),
    ({"expires": 2 * SECOND}, "bound", "P-EXPIRES", 409),
    ({"batch": 1}, "bound", "", 0),
    ({"max_bytes": 100}, "bound", "P-BYTES", 409),
    ({"min_pending": 5}, "plain", "P-OVERFLOW", 400),
    ({"min_pending": 5, "group": "g"}, "overflow", "", 0),
    ({"min_ack_pending": 5, "group": "g"}, "pinned", "P-OVERFLOW", 400),
    ({"id": "x"}, "plain", "P-PIN", 400),
    ({"priority": 10}, "plain", "P-PRIORITY", 400),
    ({"priority": -1}, "plain", "P-PRIORITY", 400),
    ({"priority": 9}, "plain", "", 0),
    ({}, "overflow", "P-GROUP", 400),
    ({"group": "h"}, "pinned", "P-GROUP", 400),
    ({"group": "g"}, "pinned", "", 0),
    ({"group": "g"}, "plain", "", 0),
]


@pytest.mark.parametrize(("request_", "consumer", "rule", "code"), CASES, ids=str)
def test_each_rule_reports_its_code(
    request_: dict[str, Any], consumer: str, rule: str, code: int
) -> None:
    problems = validate_pull(request_, CONSUMERS[consumer])
    assert [(one.rule, one.err_code) for one in problems[:1]] == ([(rule, code)] if rule else [])


def test_misspelt_members_are_problems_though_the_server_ignores_them() -> None:
    [problem] = validate_pull({"bach": 5})
    assert (problem.rule, problem.err_code) == ("R-UNKNOWN", 0)
    assert problem.hint == "Did you mean 'batch'?"


TEXTS: list[tuple[str | bytes, int]] = [
    ("", 0),
    (" 5 ", 0),
    ("\u00a06\u3000", 409),
    ("\x1c6", 0),
    ("0" * 30 + "6", 409),
    (f"+{2**63 - 1}", 409),
    ('\v{"batch": 6}\u2003', 409),
    ('\x1c{"batch": 6}', 0),
    ('{"batch": 6}\x1c', 400),
    ("abc", 0),
    (b"\xff", 0),
    ("6", 409),
    ("9" * 30, 0),
    ('{"batch": 1} {"batch": 2}', 400),
    ('{"batch": 1} x', 400),
    ('{"BATCH": 6}', 409),
]


@pytest.mark.parametrize(("text", "code"), TEXTS, ids=repr)
def test_texts_are_read_as_the_server_reads_them(text: str | bytes, code: int) -> None:
    assert [one.err_code for one in validate_pull(text, BOUND)] == [code] * bool(code)


def test_a_number_can_name_no_group() -> None:
    assert validate_pull("5", OVERFLOW) == []


def test_errors_in_requests_have_the_line() -> None:
    assert validate_pull('\n\v{"batch":}')[0].message.startswith("line 2, column 10:")


def test_push_consumers_take_no_pulls() -> None:
    assert validate_pull(PullRequest(batch=1), {"deliver_subject": "d"})[0].rule == "P-PUSH"
    assert validate_pull("{", {"deliver_subject": "d"})[0].rule == "P-PUSH"
    assert validate_pull("{")[0].err_code == 400


@pytest.mark.since("2.12")
def test_a_server_reads_the_same_texts(server: NatsServer) -> None:
    asyncio.run(_send_texts(server))


async def _send_texts(server: NatsServer) -> None:
    puller = await open_puller(server.url, "anybody", server.version)
    for text, code in TEXTS:
        assert (await puller.status("bound", text))[0] == code, text
    await puller.nc.close()


@pytest.mark.since("2.12")
def test_a_server_gives_the_same_codes(server: NatsServer) -> None:
    asyncio.run(_ask_all(server.url))


async def _ask_all(url: str) -> None:
    nc = await nats.connect(url)
    create = "$JS.API.CONSUMER.CREATE.PULLRULES"
    body = {"name": "PULLRULES", "subjects": ["pullrules"], "storage": "memory"}
    await nc.request("$JS.API.STREAM.CREATE.PULLRULES", json.dumps(body).encode())
    for name, config in CONSUMERS.items():
        body = {"stream_name": "PULLRULES", "config": config}
        answer = json.loads((await nc.request(f"{create}.{name}", json.dumps(body).encode())).data)
        assert "error" not in answer
    for request, name, rule, code in CASES:
        # What is fine ends at once, since nothing is pending.
        body = {**request, "no_wait": True}
        data = json.dumps(body).encode()
        if rule or "expires" not in request:
            assert await _status(nc, name, data) == (code or 404), (request, name)
    await nc.close()


async def _status(nc: Any, consumer: str, data: bytes) -> int:
    """Return the status that refuses a pull request, or 0 without a response."""
    try:
        reply = await nc.request(f"$JS.API.CONSUMER.MSG.NEXT.PULLRULES.{consumer}", data, timeout=2)
    except TimeoutError:
        return 0
    return int((reply.headers or {}).get("Status", "0"))
