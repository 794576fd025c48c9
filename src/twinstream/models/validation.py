"""Validation of configs and of a consumer's pull requests, without a connection.

The rules are those of the server, in the order in which the server checks them. The first problem
without `needs_server` is the error that the server would return. A problem has `needs_server` if it
depends on the account, the cluster, or other streams and consumers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

from attrs import evolve

from twinstream.models.codec.codec import encode
from twinstream.models.codec.model import Model
from twinstream.models.files.document import TextError
from twinstream.models.files.reading import Reader, show
from twinstream.models.files.settings import Settings
from twinstream.models.problem import Problem
from twinstream.models.rules.rule import judge
from twinstream.models.version import Version, parse_version

Config: TypeAlias = Model | Mapping[str, Any] | str | bytes
"""A config as a model, as its members, or as JSON text."""


def validate_stream(
    config: Config, server: str | None = None, *, pedantic: bool = False
) -> list[Problem]:
    """Return the problems for which a server would refuse to create this stream.

    If the list is empty, the server would accept the config. If a problem has `needs_server`, only
    the server can decide.

    Args:
        config: The config as a model, as its members, or as JSON text.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: Validate as a request with `pedantic`, for which the server refuses a setting
            that it would otherwise change.

    Raises:
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.rules.stream import STREAM_RULES
    from twinstream.models.rules.stream_case import StreamCase
    from twinstream.models.rules.stream_environment import STREAM_ENVIRONMENT

    version = parse_version(server)
    settings, problems = read(config, "StreamCreateRequest", version)
    if settings is None:
        return problems
    flag = pedantic or bool(settings["pedantic"])
    case = StreamCase(settings, version, pedantic=flag)
    return [*problems, *judge(STREAM_RULES, case), *judge(STREAM_ENVIRONMENT, case)]


def validate_consumer(
    config: Config,
    stream: Config | None = None,
    server: str | None = None,
    *,
    pedantic: bool = False,
) -> list[Problem]:
    """Return the problems for which a server would refuse to create this consumer.

    If the list is empty, the server would accept the config. If a problem has `needs_server`, only
    the server can decide.

    Args:
        config: The config as a model, as its members, or as JSON text.
        stream: The config of the consumer's stream. None skips the rules that need the stream.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: Validate as a request with `pedantic`, for which the server refuses a setting
            that it would otherwise change.

    Raises:
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.rules.consumer import CONSUMER_RULES
    from twinstream.models.rules.consumer_case import ConsumerCase

    version = parse_version(server)
    settings, problems = read(config, "ConsumerConfig", version)
    if settings is None:
        return problems
    parent = None if stream is None else read(stream, "StreamCreateRequest", version)[0]
    case = ConsumerCase(settings, parent, version, pedantic=pedantic)
    return [*problems, *judge(CONSUMER_RULES, case)]


def validate_pull(
    request: Config, consumer: Config | None = None, server: str | None = None
) -> list[Problem]:
    """Return the problems for which a server would refuse this pull request.

    The list is empty if the server would accept the request. The server responds to an invalid pull
    request with a status, so `err_code` is 400 or 409. It ignores unknown members. They are
    reported nevertheless, with `err_code` 0.

    Args:
        request: The request as a model, as its members, or as text. Text that does not begin with
            `{` is the number of messages, or means 1 if it is not a number.
        consumer: The config of the consumer. None skips the rules that need the consumer.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.rules.consumer_case import ConsumerCase
    from twinstream.models.rules.pull import (
        FIRST_RULES,
        PULL_RULES,
        PullCase,
        members_of_text,
        trimmed,
    )

    version = parse_version(server)
    request = trimmed(request) if isinstance(request, (str, bytes)) else request
    plain = members_of_text(request) if isinstance(request, str) else None
    settings, problems = read(
        request if plain is None else plain, "PullRequest", version, several=False
    )
    problems = [evolve(one, err_code=400 if one.rule == "R-JSON" else 0) for one in problems]
    problems.sort(key=lambda one: not one.err_code)
    found = None if consumer is None else read(consumer, "ConsumerConfig", version)[0]
    case = None if found is None else ConsumerCase(found, None, version)
    pull = PullCase(settings or Settings("PullRequest"), case, version, is_json=plain is None)
    first = judge(FIRST_RULES, pull)
    if settings is None:
        return [*first, *problems]
    return [*first, *problems, *judge(PULL_RULES, pull)]


def read(
    config: Config, record: str, version: Version, *, several: bool = True
) -> tuple[Settings | None, list[Problem]]:
    """Return the settings in `config` as a server of `version` reads them, and the problems.

    The settings are None if `config` is not a JSON object. With `several`, a text may contain
    several objects, which are merged.
    """
    reader = Reader(version)
    try:
        members = members_of(config, several=several)
    except TextError as error:
        line, column = error.fault.place
        message = f"line {line}, column {column}: {error.fault.message}"
        reader.refuse("", None, message, error.fault.hint or _form(config))
        return None, reader.problems
    if not isinstance(members, Mapping):  # for example a list from a YAML file
        hint = "Pass the path of a file to load_configs." if isinstance(members, PurePath) else ""
        reader.refuse("", members, f"expected an object, got {show(members)}.", hint)
        return None, reader.problems
    return reader.record(members, record), reader.problems


def _form(config: object) -> str:
    """Return a hint for a text that is not a JSON object, such as YAML, or else ""."""
    start = config.lstrip()[:1] if isinstance(config, str | bytes | bytearray) else ""
    is_object = start in ("{", b"{")
    return "" if is_object else "The text must be a JSON object; load_configs also reads YAML."


def members_of(config: Config, *, several: bool = True) -> Mapping[str, Any]:
    """Return the members of a config in any form. Raises `TextError` for invalid JSON text."""
    if isinstance(config, Model):
        return encode(config)
    if isinstance(config, (str, bytes)):
        from twinstream.models.files.json_text import read_as_server

        return read_as_server(config, several=several)
    return config
