"""The named error codes are those with which servers respond."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import goldens
import nats
import pytest

from twinstream.models import error_codes
from twinstream.models.rules.consumer import CONSUMER_RULES
from twinstream.models.rules.consumer_update import UPDATE_ENVIRONMENT
from twinstream.models.rules.consumer_update import UPDATE_RULES as CONSUMER_UPDATE_RULES
from twinstream.models.rules.rule import ForEach, Rule
from twinstream.models.rules.stream import STREAM_RULES
from twinstream.models.rules.stream_environment import STREAM_ENVIRONMENT, NeedsServer
from twinstream.models.rules.stream_update import UPDATE_RULES as STREAM_UPDATE_RULES

SMALL = """
accounts {
  A: {
    jetstream: { max_mem: 1000, max_file: 1000000 }
    users: [{user: a, password: a}]
  }
}
no_auth_user: a
"""


def codes_of(entry: Any) -> set[int]:
    """Return the codes of a rule, or of several rules."""
    if isinstance(entry, ForEach):
        return set().union(*map(codes_of, entry.rules))
    rule = entry.rule if isinstance(entry, NeedsServer) else entry
    assert isinstance(rule, Rule)
    return {rule.err_code}


def test_the_code_of_every_rule_has_a_name() -> None:
    tables = (
        STREAM_RULES,
        STREAM_ENVIRONMENT,
        STREAM_UPDATE_RULES,
        CONSUMER_RULES,
        CONSUMER_UPDATE_RULES,
        UPDATE_ENVIRONMENT,
    )
    codes = set().union(*(codes_of(entry) for table in tables for entry in table))
    assert len(codes) > 80
    assert codes - error_codes.NAMES.keys() == set()


def errors(path: Path) -> list[dict[str, Any]]:
    """Return the error in a golden file, if there is one."""
    error = goldens.load(path).get("error")
    return [error] if isinstance(error, dict) and "err_code" in error else []


def test_recorded_errors_have_a_name_and_the_status_that_was_sent() -> None:
    seen = {
        (error["err_code"], error["code"]) for path in goldens.paths() for error in errors(path)
    }
    assert len(seen) > 10
    assert seen <= set(error_codes.STATUS.items())
    assert {code for code, _ in seen} <= error_codes.NAMES.keys()


@pytest.mark.parametrize(
    ("config", "subject", "headers", "code"),
    [
        ({"deny_purge": True}, "$JS.API.STREAM.PURGE.S", None, error_codes.PURGE_DENIED),
        ({}, "S", {"Nats-Rollup": "all"}, error_codes.ROLLUP_NOT_PERMITTED),
        ({"storage": "memory"}, "S", None, error_codes.ACCOUNT_RESOURCES_EXCEEDED),
    ],
    ids=["purge", "rollup", "account"],
)
def test_a_server_sends_the_status(
    server_factory: Any,
    config: dict[str, Any],
    subject: str,
    headers: dict[str, str] | None,
    code: int,
) -> None:
    error = asyncio.run(refused(server_factory(SMALL).url, config, subject, headers))
    assert (error["err_code"], error["code"]) == (code, error_codes.STATUS[code])


async def refused(
    url: str, config: dict[str, Any], subject: str, headers: dict[str, str] | None
) -> dict[str, Any]:
    """Create the stream S, send something to `subject`, and return the error."""
    nc = await nats.connect(url)
    await nc.request("$JS.API.STREAM.CREATE.S", json.dumps({"name": "S", **config}).encode())
    data = b"" if subject.startswith("$JS") else b"x" * 2000
    await nc.request(subject, data, headers=headers)  # the account is full once this is stored
    answer = json.loads((await nc.request(subject, data, headers=headers)).data)
    await nc.close()
    error: dict[str, Any] = answer["error"]
    return error
