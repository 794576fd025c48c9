"""Validation of config updates, with the rules of the server, in the order of the server."""

from __future__ import annotations

from attrs import evolve

from twinstream.models.files.settings import Settings
from twinstream.models.problem import Problem
from twinstream.models.rules.rule import judge
from twinstream.models.validation import Config, read
from twinstream.models.version import Version, parse_version


def validate_stream_update(
    old: Config, new: Config, server: str | None = None, *, pedantic: bool = False
) -> list[Problem]:
    """Return the problems for which a server would refuse to replace a stream's config.

    If the list is empty, the server would accept the update. If a problem has `needs_server`, only
    the server can decide. An update replaces the whole config: a setting that `new` omits gets its
    default.

    Args:
        old: The current config, ideally as returned by the server.
        new: The intended config.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: Validate as a request with `pedantic`, for which the server refuses a setting
            that it would otherwise change.

    Raises:
        ValueError: `server` is not a supported version, or `old` cannot be read.
    """
    from twinstream.models.rules.stream import STREAM_RULES
    from twinstream.models.rules.stream_case import StreamCase
    from twinstream.models.rules.stream_environment import STREAM_ENVIRONMENT
    from twinstream.models.rules.stream_update import (
        UPDATE_ENVIRONMENT,
        UPDATE_RULES,
        StreamUpdateCase,
    )

    version = parse_version(server)
    settings, problems = read(new, "StreamUpdateRequest", version)
    if settings is None:
        return problems
    flag = pedantic or bool(settings["pedantic"])
    case = StreamCase(settings, version, pedantic=flag, update=True)
    change = StreamUpdateCase(_old(old, "StreamUpdateRequest", version), case)
    notes = [evolve(note, needs_server=True) for note in judge(UPDATE_ENVIRONMENT, change)]
    notes += judge(STREAM_ENVIRONMENT, case)
    return [*problems, *judge(STREAM_RULES, case), *judge(UPDATE_RULES, change), *notes]


def validate_consumer_update(
    old: Config,
    new: Config,
    stream: Config | None = None,
    server: str | None = None,
    *,
    pedantic: bool = False,
) -> list[Problem]:
    """Return the problems for which a server would refuse to replace a consumer's config.

    If the list is empty, the server would accept the update. If a problem has `needs_server`, only
    the server can decide.

    Args:
        old: The current config, ideally as returned by the server.
        new: The intended config.
        stream: The config of the consumer's stream. None skips the rules that need the stream.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: Validate as a request with `pedantic`, for which the server refuses a setting
            that it would otherwise change.

    Raises:
        ValueError: `server` is not a supported version, or `old` or `stream` cannot be read.
    """
    from twinstream.models.rules.consumer import EARLY_RULES
    from twinstream.models.rules.consumer_case import ConsumerCase
    from twinstream.models.rules.consumer_defaults import with_start_of
    from twinstream.models.rules.consumer_update import (
        UPDATE_ENVIRONMENT,
        UPDATE_RULES,
        ConsumerUpdateCase,
    )

    version = parse_version(server)
    settings, problems = read(new, "ConsumerConfig", version)
    if settings is None:
        return problems
    parent = None if stream is None else _old(stream, "StreamCreateRequest", version)
    before = ConsumerCase(_old(old, "ConsumerConfig", version), parent, version)
    case = ConsumerCase(settings, parent, version, pedantic=pedantic)
    if case.given["sourcing"] and case.given["durable_name"]:
        # A durable consumer with `sourcing` feeds a copy of the stream. The server starts it at the
        # position that the copy has reached, and ignores the start settings in an update.
        settings = with_start_of(before.given, case.given)
        case = ConsumerCase(settings, parent, version, pedantic=pedantic)
    change = ConsumerUpdateCase(before, case)
    notes = [evolve(note, needs_server=True) for note in judge(UPDATE_ENVIRONMENT, change)]
    return [
        *problems,
        *judge(EARLY_RULES, case),
        *judge(UPDATE_RULES, change),
        *notes,
    ]


def _old(config: Config, record: str, version: Version) -> Settings:
    """Return the settings of an existing config. Values that a server would refuse are omitted.

    Raises `ValueError` if the config is not a JSON object.
    """
    settings, problems = read(config, record, version)
    if settings is None:
        raise ValueError(f"the old config cannot be read: {problems[0].message}")
    return settings
