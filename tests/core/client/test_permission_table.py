"""Permissions: the entries of the table, for a domain, a prefix and an inbox prefix."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinstream.core.client.permission_table import OPERATIONS
from twinstream.core.wire.subject_match import covers
from twinstream.errors import BadArgument
from twinstream.permissions import consume, operation, operation_usages, permissions, publish


@pytest.mark.parametrize(
    ("operations", "options", "published", "subscribed"),
    [
        ([publish("a.>", "a.b", "c.*")], {}, ["a.>", "c.*"], ["_INBOX.>"]),
        (
            [consume("S", "c", bound=True), consume("S", "c")],
            {},
            ["$JS.API.CONSUMER.MSG.NEXT.S.c", "$JS.ACK.S.c.>", "$JS.API.CONSUMER.INFO.S.c"],
            ["_INBOX.>"],
        ),
        (
            [consume("S", "*", bound=True)],
            {"domain": "hub", "inbox_prefix": "_IN.me", "second_form": True},
            ["$JS.hub.API.CONSUMER.MSG.NEXT.S.*", "$JS.ACK.*.*.S.*.>"],
            ["_IN.me.>"],
        ),
        (
            [operation("create_consumer", "S", "c", "a.*"), operation("create_consumer", "S", "d")],
            {"prefix": "JS.app.API"},
            ["JS.app.API.CONSUMER.CREATE.S.c.a.*", "JS.app.API.CONSUMER.CREATE.S.d"],
            ["_INBOX.>"],
        ),
        (
            [operation("create_push_messages", "S", "c", "to.me")],
            {},
            ["$JS.API.CONSUMER.CREATE.S.c", "$JS.ACK.S.c.>", "$JS.FC.S.c.*"],
            ["_INBOX.>", "to.me"],
        ),
    ],
)
def test_subjects_of_operations(
    operations: list[Any], options: dict[str, Any], published: list[str], subscribed: list[str]
) -> None:
    found = permissions(*operations, **options)
    assert (list(found.publish), list(found.subscribe)) == (published, subscribed)


def test_the_three_forms() -> None:
    found = permissions(publish("a.>"))
    assert found.as_json() == {"publish": {"allow": ["a.>"]}, "subscribe": {"allow": ["_INBOX.>"]}}
    assert found.as_claims() == {"pub": {"allow": ["a.>"]}, "sub": {"allow": ["_INBOX.>"]}}
    assert found.nats_conf().splitlines() == [
        "permissions {",
        "  publish { allow: [",
        '    "a.>"',
        "  ] }",
        "  subscribe { allow: [",
        '    "_INBOX.>"',
        "  ] }",
        "}",
    ]


def test_nothing_allowed_is_everything_denied() -> None:
    found = permissions(publish("a"))
    silent = type(found)((), ("b",))
    assert silent.as_json()["publish"] == {"deny": [">"]}
    assert 'deny: [\n    ">"\n' in silent.nats_conf()
    assert json.dumps(silent.as_claims()["pub"]) == '{"deny": [">"]}'


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("fly", (), "purge"),
        ("purge", (), "purge STREAM"),
        ("purge", ("S", "T"), "purge STREAM"),
        ("publish", (), "publish SUBJECT..."),
        ("ordered", ("S", "a", "b"), r"ordered STREAM \[FILTER\]"),
        ("purge", ("a.b",), "name of a stream"),
        ("consume", ("S", ">"), "name of a consumer"),
        ("publish", ("a b",), "white space"),
        ("publish", ("a.{b}", "c..d"), "empty token"),
    ],
)
def test_wrong_operations_are_refused(name: str, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        operation(name, *arguments)


def test_braces_in_a_subject_are_only_letters() -> None:
    assert operation("publish", "a.{b}").publishes == ("a.{b}",)


def test_permissions_for_nothing_are_refused() -> None:
    with pytest.raises(BadArgument, match="at least one"):
        permissions()
    with pytest.raises(BadArgument):
        permissions(publish("a"), inbox_prefix="a.*")


def test_every_line_of_the_table_can_be_used() -> None:
    assert len(operation_usages()) == len(OPERATIONS)
    for pattern in OPERATIONS.values():
        made = pattern.of(*("x" for _ in pattern.takes))
        assert made.publishes or made.subscribes


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (">", "a.b", True),
        ("a.>", "a", False),
        ("a.>", "a.>", True),
        ("a.*", "a.b", True),
        ("a.*", "a.>", False),
        ("a.b", "a.*", False),
        ("a.*.c", "a.b.c", True),
        ("a.b", "a.b.c", False),
        ("a.b.c", "a.b", False),
        ("*.b", "a.b", True),
    ],
)
def test_a_filter_covers_another(wide: str, narrow: str, expected: bool) -> None:
    assert covers(wide, narrow) is expected
