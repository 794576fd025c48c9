"""What a server takes but people rarely mean; apart from errors, so that it can be ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from twinstream.models._document import TextError
from twinstream.models._reading import Reader
from twinstream.models.problem import Problem
from twinstream.models.rules.rule import judge
from twinstream.models.validation import Config, members_of
from twinstream.models.version import parse_version

DROPPED: Final = "L-IGNORED"
"""The rule that tells of members that the server would drop without a word."""

_FIRST_NAME: Final = re.compile(r"[.[]")


def lint_stream(config: Config, server: str | None = None) -> list[Problem]:
    """Return what is legal but surprising in a stream config; nothing for one that is broken."""
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
    """Return what is legal but surprising in a consumer config; nothing for one that is broken."""
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
    """Leave out what is said to be missing where it may be what was there and not read."""
    unread = {one.path for one in reader.problems}
    return [
        one
        for one in found
        if not unread or (one.path not in unread and _FIRST_NAME.split(one.path)[0] in members)
    ]


def dropped(reader: Reader) -> list[Problem]:
    """Return the members that the server would drop without a word, as servers before 2.12 do."""
    return [
        Problem(one.path, one.value, DROPPED, f"{one.message[:-1]}; it is dropped.", one.hint)
        for one in reader.ignored
    ]
