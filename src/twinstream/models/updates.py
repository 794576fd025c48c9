"""Validation of config updates, with the server's own rules, in its own order."""

from __future__ import annotations

from attrs import evolve

from twinstream.models._settings import Settings
from twinstream.models.problem import Problem
from twinstream.models.rules.rule import judge
from twinstream.models.validation import Config, read
from twinstream.models.version import Version, parse_version


def validate_stream_update(
    old: Config, new: Config, server: str | None = None, *, pedantic: bool = False
) -> list[Problem]:
    """Return why a server would refuse to replace `old` by `new`; empty if it would accept it.

    The whole config is replaced: settings omitted in `new` take their defaults.

    Args:
        old: The current config, ideally as returned by the server.
        new: The intended config.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: The flag of the request.

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
    """Return why a server would refuse to replace `old` by `new`; empty if it would accept it.

    Args:
        old: The current config, ideally as returned by the server.
        new: The intended config.
        stream: The config of its stream; without it, rules that need it are skipped.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: The flag of the request.

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
        # A consumer with a copy starts at the position of the copy; the start in an update is
        # ignored.
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
    """Read an existing config; members that the version does not know are ignored."""
    settings, problems = read(config, record, version)
    if settings is None:
        raise ValueError(f"the old config cannot be read: {problems[0].message}")
    return settings
