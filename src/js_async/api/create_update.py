"""Create and update streams and consumers, and explain how an existing one differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from attrs import evolve

import twinstream.models
from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.runtime.concurrency import sleep
from twinstream.core.arguments.check_arguments import check_config
from twinstream.core.deadline import Deadline, monotonic
from twinstream.errors import (
    BadArgument,
    ConsumerExists,
    JetStreamError,
    RequestTimeout,
    StreamExists,
    StreamNotFound,
    SubjectOverlap,
    TwinstreamError,
    Unsupported,
)
from twinstream.models.error_codes import MIRROR_NOT_UPDATABLE
from twinstream.records.difference import LIMITED, Difference, differences

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, ConsumerInfo, Problem, StreamConfig, StreamInfo

__all__ = [
    "CreateAction",
    "completed_stream",
    "create_consumer",
    "create_or_update_stream",
    "create_stream",
    "edited",
    "update_stream",
]

# The pause between two attempts while another client creates or deletes the stream (seconds).
_PAUSE: Final = 0.01
# Each attempt of `create_or_update_stream` may take the time of the whole call divided by
# `_SHARES`, but at least `_SHORTEST` seconds.
_SHARES: Final = 4
_SHORTEST: Final = 0.5

CreateAction = Literal["", "create", "update"]
_Config = TypeVar("_Config")


def edited(config: _Config, edit: Callable[[_Config], _Config]) -> _Config:
    """Return the configuration that a caller's function makes of the current one."""
    changed = edit(config)
    if not isinstance(changed, type(config)):
        raise BadArgument(
            "edit must return the changed configuration, as twinstream.models.evolve(config, ...)"
            f" does; it returned {changed!r:.80}"
        )
    return changed


async def create_stream(
    api: Api, name: str, config: StreamConfig, pedantic: bool, deadline: Deadline | None = None
) -> StreamInfo:
    """Create a stream and return its info.

    If the stream exists with the same configuration, its info is returned.

    Raises `StreamExists` if a stream of the name has another configuration. The error lists the
    differences, field by field.
    """
    try:
        return await _write_stream(api, "CREATE", name, config, pedantic, deadline)
    except StreamExists as error:
        adjusted = await _with_stored_start(api, name, config, deadline)
        if adjusted is not None:
            return await create_stream(api, name, adjusted, pedantic, deadline)
        raise await _stream_with_differences(api, name, config, error, deadline) from None


async def update_stream(
    api: Api, name: str, config: StreamConfig, pedantic: bool, deadline: Deadline | None = None
) -> StreamInfo:
    """Replace the configuration of a stream and return its info. Raises `StreamNotFound`."""
    return await _write_stream(api, "UPDATE", name, config, pedantic, deadline)


async def create_or_update_stream(
    api: Api, name: str, config: StreamConfig, deadline: Deadline
) -> StreamInfo:
    """Update a stream, or create it if it does not exist. Return its info.

    Another client may create or delete the stream between the two requests. Then both requests are
    repeated until the deadline. The update is also repeated after a timeout: the server may have
    dropped it while another client was creating the stream.
    """
    patience = max(deadline.remaining() / _SHARES, _SHORTEST)
    what: Literal["CREATE", "UPDATE"] = "UPDATE"
    while True:
        attempt = deadline.earlier(monotonic() + patience)
        try:
            return await _write_stream(api, what, name, config, False, attempt)
        except StreamNotFound:
            if what == "CREATE":
                # The error concerns another stream, for example the origin of a mirror.
                raise
            what = "CREATE"
        except (StreamExists, RequestTimeout):
            what = "UPDATE"
            if deadline.remaining() <= _PAUSE:
                raise
            await sleep(_PAUSE)


async def _write_stream(
    api: Api,
    what: Literal["CREATE", "UPDATE"],
    name: str,
    config: StreamConfig,
    pedantic: bool,
    deadline: Deadline | None,
) -> StreamInfo:
    """Create or update a stream and return its info.

    The server can refuse the start of a mirror because it compares the text of the time, not the
    time. In this case, the stream is updated with the text that the server has stored.
    """
    subject = api.subjects.stream(what, name)
    creates = what == "CREATE"
    answer = (
        twinstream.models.StreamCreateResponse
        if creates
        else twinstream.models.StreamUpdateResponse
    )
    body = {**twinstream.models.encode(config), **_pedantry(api, pedantic)}
    try:
        return await api.call(subject, body, answer, deadline)
    except StreamExists:
        raise
    except SubjectOverlap as error:
        from js_async.api.overlap import overlap_explained

        raise await overlap_explained(
            api, name, config, error, deadline or api.deadline()
        ) from None
    except JetStreamError as error:
        adjusted = None
        if _is_mirror(error):
            adjusted = await _with_stored_start(api, name, config, deadline)
        if adjusted is not None:
            return await update_stream(api, name, adjusted, pedantic, deadline)
        _explain(error, lambda: twinstream.models.validate_stream(config, _version(api)))
        raise


def _is_mirror(error: JetStreamError) -> bool:
    return error.err_code == MIRROR_NOT_UPDATABLE


async def _with_stored_start(
    api: Api, name: str, config: StreamConfig, deadline: Deadline | None
) -> StreamConfig | None:
    """Return the configuration with the mirror's start time written as the server stores it.

    The server compares the texts of the times. It takes the same time in another time zone for a
    different time, and refuses the configuration.

    Returns None if the text of the time is not the reason for the refusal: the mirror has no start
    time, the texts are equal, or the times really differ. Also returns None if the stored
    configuration is not available.
    """
    if config.mirror is None or config.mirror.opt_start_time is None:
        return None
    try:
        stored = (await api.stream_info(name, deadline)).config
    except TwinstreamError:
        return None
    from twinstream.models.mirror_start import keep_start

    members = keep_start(stored, config)
    if members is None:
        return None
    return twinstream.models.decode(members, twinstream.models.StreamConfig)


def completed_stream(config: StreamConfig, version: str) -> StreamConfig:
    """Return a configuration with the defaults of the server, or unchanged if they are unknown."""
    try:
        return twinstream.models.effective_stream(config, version)
    except ValueError:
        # There are no rules for this server version.
        return config


def _version(api: Api) -> str:
    return api.transport.server_info.version


def _explain(error: JetStreamError, find_problems: Callable[[], list[Problem]]) -> None:
    """Add to the text of an error each validation problem with the same error code.

    `find_problems` returns the problems. Each names the setting and what to change.
    """
    try:
        problems = find_problems()
    except ValueError:
        # There are no validation rules for this server version.
        return
    for problem in problems:
        if problem.err_code and problem.err_code == error.err_code:
            error.add_advice(str(evolve(problem, err_code=0)))


async def _stream_with_differences(
    api: Api, name: str, config: StreamConfig, error: StreamExists, deadline: Deadline | None
) -> JetStreamError:
    try:
        actual = (await api.stream_info(name, deadline)).config
        effective = twinstream.models.effective_stream(config, _version(api))
    except (TwinstreamError, ValueError):
        # Raise the server's error without the differences.
        return error
    return error.with_differences(differences(effective, actual, config))


def _pedantry(api: Api, pedantic: bool) -> dict[str, Any]:
    if pedantic:
        api.require((2, 11, 0), "pedantic=True")
    return {"pedantic": True} if pedantic else {}


async def create_consumer(
    api: Api,
    stream: str,
    config: ConsumerConfig,
    action: CreateAction,
    deadline: Deadline | None = None,
    *,
    pedantic: bool = False,
) -> ConsumerInfo:
    """Create or update a consumer and return its info. The action "" means create or update.

    Raises `ConsumerExists` if a consumer of the name has another configuration. The error lists the
    differences, field by field.
    """
    if action == "update":
        _check_named(config)
    name, config = _completed(api, config)
    one, several = config.filter_subject, config.filter_subjects
    if several:
        _check_filters(api, several)
    # With both settings, leave the filter out of the request subject. Otherwise the server's error
    # would concern that subject, which the user did not write.
    filters = [one] if one and not several else []
    subject = api.subjects.create_consumer(stream, name, filters)
    body: dict[str, Any] = {
        "stream_name": stream,
        "config": twinstream.models.encode(config),
        "action": action,
    }
    body |= _pedantry(api, pedantic)
    try:
        # An update is not repeatable, because the repeated request could undo an update of another
        # client.
        creates = True if action == "create" else None
        return await api.call(
            subject, body, twinstream.models.ConsumerCreateResponse, deadline, repeatable=creates
        )
    except ConsumerExists as error:
        raise await _with_differences(api, stream, name, config, error, deadline) from None
    except JetStreamError as error:
        completed = config
        _explain(
            error, lambda: twinstream.models.validate_consumer(completed, server=_version(api))
        )
        raise


def _check_filters(api: Api, filters: Sequence[str]) -> None:
    """Raise `Unsupported` if the server would skip messages that match one of the filters."""
    from twinstream.core.server_faults.table import MIXED_FILTERS
    from twinstream.core.wire.subject_match import mixed

    version = api.transport.server_info.version_numbers
    if MIXED_FILTERS.affects(version) and mixed(filters):
        raise Unsupported(
            f"the filters {', '.join(filters)} together make nats-server"
            f" {api.transport.server_info.version} skip messages: one has * where another one has a"
            " word. Use one consumer for each of these filters, or nats-server 2.12.4"
        )


def _check_named(config: ConsumerConfig) -> None:
    check_config(config, twinstream.models.ConsumerConfig)
    if not (config.durable_name or config.name):
        raise BadArgument(
            "the consumer configuration has no name: give durable_name or name, to select the"
            " consumer to update"
        )


def _completed(api: Api, config: ConsumerConfig) -> tuple[str, ConsumerConfig]:
    """Return the consumer's name, and its configuration with a name and an `ack_policy`."""
    check_config(config, twinstream.models.ConsumerConfig)
    if config.durable_name and config.name and config.durable_name != config.name:
        raise BadArgument(
            f"the consumer has two names, {config.durable_name!r} as durable_name and"
            f" {config.name!r} as name: give one"
        )
    if config.ack_policy is None:
        # The server's default is "none", which few users intend.
        config = evolve(config, ack_policy=twinstream.models.AckPolicy.EXPLICIT)
    name = config.durable_name or config.name
    if name is None:
        name = api.transport.tokens.name()
        config = evolve(config, name=name)
    return name, config


async def _with_differences(
    api: Api,
    stream: str,
    name: str,
    config: ConsumerConfig,
    error: ConsumerExists,
    deadline: Deadline | None,
) -> JetStreamError:
    """Return the server's error with the differences between the two configurations.

    Without the consumer's stored configuration, return the error unchanged.
    """
    try:
        actual = await consumer_admin.info(api, stream, name, deadline)
    except TwinstreamError:
        # Raise the server's error without the differences.
        return error
    if actual.config is None:
        return error
    found = _consumer_differences(api, config, actual.config)
    if LIMITED.issuperset(each.field for each in found):
        # The server may have taken these values from the limits of the stream. Compare again with
        # these limits, unless the request for the stream's info fails.
        with suppress(TwinstreamError):
            parent = (await api.stream_info(stream, deadline)).config
            found = _consumer_differences(api, config, actual.config, parent)
    return error.with_differences(found)


def _consumer_differences(
    api: Api, config: ConsumerConfig, actual: ConsumerConfig, stream: StreamConfig | None = None
) -> tuple[Difference, ...]:
    try:
        effective = twinstream.models.effective_consumer(config, stream, _version(api))
    except ValueError:
        # The server is older than the rules, so its defaults are unknown. Return only the
        # differences of fields that the user has set.
        found = differences(config, actual, config)
        return tuple(each for each in found if each.wanted is not None)
    return differences(effective, actual, config)
