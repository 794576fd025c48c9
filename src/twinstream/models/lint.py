"""Warnings about settings that a server accepts but that are rarely intended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from twinstream.models.files.document import TextError
from twinstream.models.files.reading import Reader
from twinstream.models.problem import Problem
from twinstream.models.rules.rule import judge
from twinstream.models.validation import Config, members_of
from twinstream.models.version import parse_version

DROPPED: Final = "L-IGNORED"
"""The rule that reports members that the server would ignore."""

_FIRST_NAME: Final = re.compile(r"[.[]")


def lint_stream(config: Config, server: str | None = None) -> list[Problem]:
    """Return warnings about valid but rarely intended settings of a stream config.

    Settings that cannot be read are ignored; `validate_stream` reports them.

    Args:
        config: The config as a model, as its members, or as JSON text.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.rules.stream_case import StreamCase
    from twinstream.models.rules.stream_lint import STREAM_LINT

    reader = Reader(parse_version(server))
    try:
        members = members_of(config)
        settings = reader.record(members, "StreamCreateRequest")
    except TextError:
        return []
    found = judge(STREAM_LINT, StreamCase(settings, reader.version))
    return [*dropped(reader), *_sure(found, members, reader)]


def lint_consumer(
    config: Config, stream: Config | None = None, server: str | None = None
) -> list[Problem]:
    """Return warnings about valid but rarely intended settings of a consumer config.

    Settings that cannot be read are ignored; `validate_consumer` reports them.

    Args:
        config: The config as a model, as its members, or as JSON text.
        stream: The config of the consumer's stream. None skips the rules that need the stream.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.rules.consumer_case import ConsumerCase
    from twinstream.models.rules.consumer_lint import CONSUMER_LINT

    reader = Reader(parse_version(server))
    try:
        members = members_of(config)
        settings = reader.record(members, "ConsumerConfig")
        parent = (
            None
            if stream is None
            else Reader(reader.version).record(members_of(stream), "StreamCreateRequest")
        )
    except TextError:
        return []
    found = judge(CONSUMER_LINT, ConsumerCase(settings, parent, reader.version))
    return [*dropped(reader), *_sure(found, members, reader)]


def _sure(found: list[Problem], members: Mapping[str, Any], reader: Reader) -> list[Problem]:
    """Return the warnings without those that unreadable settings may have caused."""
    unread = {one.path for one in reader.problems}
    return [
        one
        for one in found
        if not unread or (one.path not in unread and _FIRST_NAME.split(one.path)[0] in members)
    ]


def dropped(reader: Reader) -> list[Problem]:
    """Return a warning for each member that the server ignores.

    The list is empty for servers from 2.12 on, because they refuse such members.
    """
    return [
        Problem(one.path, one.value, DROPPED, f"{one.message[:-1]}; it is dropped.", one.hint)
        for one in reader.ignored
    ]
