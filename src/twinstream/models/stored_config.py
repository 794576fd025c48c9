"""The config that a server would store for a given config: with defaults and implicit changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.models.codec.codec import decode
from twinstream.models.picklable_error import PicklableError
from twinstream.models.problem import Problem
from twinstream.models.validation import Config, read, validate_consumer, validate_stream
from twinstream.models.version import parse_version

if TYPE_CHECKING:
    from twinstream.models.codec.json_object import JsonObject
    from twinstream.models.files.settings import Settings
    from twinstream.models.generated.config.consumer import ConsumerConfig
    from twinstream.models.generated.config.stream import StreamConfig
    from twinstream.models.version import Version


class ConfigError(PicklableError, ValueError):
    """A server would refuse the config. `problems` contains the reasons as `Problem` objects.

    What to do: Correct the settings that `problems` lists.
    """

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(str(problem) for problem in problems))


def effective_stream(config: Config, server: str | None = None) -> StreamConfig:
    """Return the config that a server would store for a new stream.

    The result includes the metadata that the server adds; `_nats.ver` only if `server` has a patch
    number. For a mirror, a server copies `mirror_direct` from the origin if it has access to the
    origin; the result contains the value in `config` instead.

    Args:
        config: The config as a model, as its members, or as JSON text.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ConfigError: The server would refuse the config.
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.generated.config.stream import StreamConfig

    _refuse(validate_stream(config, server))
    return decode(stored_stream_members(config, parse_version(server)), StreamConfig)


def effective_consumer(
    config: Config, stream: Config | None = None, server: str | None = None
) -> ConsumerConfig:
    """Return the config that a server would store for a new consumer of `stream`.

    The result has no name if `config` has none, because the server chooses it. On a stream with
    `limits` retention, the server appends random letters to the name of a consumer with `direct`
    and `sourcing`; the result does not contain them.

    Args:
        config: The config as a model, as its members, or as JSON text.
        stream: The config of the consumer's stream. None skips the rules that need the stream, and
            the defaults that come from it.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.

    Raises:
        ConfigError: The server would refuse the config.
        ValueError: `server` is not a supported version.
    """
    from twinstream.models.generated.config.consumer import ConsumerConfig

    _refuse(validate_consumer(config, stream, server))
    members = stored_consumer_members(config, stream, parse_version(server))
    return decode(members, ConsumerConfig)


def stored_stream_members(config: Config, version: Version) -> JsonObject:
    """Return the members of a stream config as a server stores them; no rules are checked."""
    from twinstream.models.rules.stream_case import StreamCase
    from twinstream.models.rules.stream_stored import stored_stream

    return stored_stream(StreamCase(_settings(config, "StreamCreateRequest", version), version))


def stored_consumer_members(
    config: Config, stream: Config | None, version: Version, *, was_durable: bool = False
) -> JsonObject:
    """Return the members of a consumer config as a server stores them; no rules are checked.

    `was_durable` means that the config is an update of a durable consumer.
    """
    from twinstream.models.rules.consumer_case import ConsumerCase
    from twinstream.models.rules.consumer_stored import stored_consumer

    settings = _settings(config, "ConsumerConfig", version)
    parent = None if stream is None else _settings(stream, "StreamCreateRequest", version)
    case = ConsumerCase(settings, parent, version)
    return stored_consumer(case, was_durable=was_durable)


def _refuse(problems: list[Problem]) -> None:
    errors = [problem for problem in problems if not problem.needs_server]
    if errors:
        raise ConfigError(errors)


def _settings(config: Config, record: str, version: Version) -> Settings:
    settings, problems = read(config, record, version)
    if settings is None:
        raise ConfigError(problems)
    return settings
