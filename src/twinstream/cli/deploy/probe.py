"""Check that a server accepts a stream before the old one is removed for it.

A stream that must be re-created loses its messages, and only the server knows some reasons to
refuse the new one: a cycle of origins, no peers for its replicas, no room for its limits, subjects
of other streams. Two requests find them. The first creates the stream under its own name: a server
judges the whole config before it says that the name is taken. What a server judges only after that
is found by creating a stream of another name, which is then removed.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from attrs import evolve

from twinstream.cli.deploy.turns import subjects_of
from twinstream.cli.failures import Failure
from twinstream.models import StreamConfig, error_codes

if TYPE_CHECKING:
    from js_sync import JetStream

_NAME_MAX: Final = 200
"""Letters of the name that a probe keeps, so that with its suffix it stays within the 255."""


_NO_ROOM: Final = frozenset(
    {
        error_codes.ACCOUNT_RESOURCES_EXCEEDED,
        error_codes.INSUFFICIENT_STORAGE,
        error_codes.MEMORY_EXCEEDED,
        error_codes.STORAGE_EXCEEDED,
    }
)


def probe(jet: JetStream, config: StreamConfig) -> None:
    """Raise :class:`Failure` if ``config`` would be refused once the old stream is removed."""
    from js_sync import TwinstreamError

    try:
        old = jet.get_stream(config.name or "").config
        _check_subjects(jet, config)
        _check_settings(jet, config)
        _check_room(jet, old, config)
    except TwinstreamError as error:
        raise _left_alone(config, str(error)) from error


def _check_settings(jet: JetStream, config: StreamConfig) -> None:
    from js_sync import StreamExists

    with suppress(StreamExists):  # the config is valid: only the name is in use
        jet.create_stream(config)


def _check_room(jet: JetStream, old: StreamConfig, config: StreamConfig) -> None:
    from js_sync import JetStreamError

    try:
        _make_and_remove(jet, _trial(config))
    except JetStreamError as error:
        more = _more_bytes(old, config)
        if error.err_code not in _NO_ROOM or more is None:
            raise
        _make_and_remove(jet, evolve(_trial(config), max_bytes=more))


def _more_bytes(old: StreamConfig, new: StreamConfig) -> int | None:
    """Return the bytes to reserve beyond those that the old stream frees; None if it frees none."""
    given, wanted = old.max_bytes or 0, new.max_bytes or 0
    same = (old.storage or "file", old.num_replicas or 1) == (
        new.storage or "file",
        new.num_replicas or 1,
    )
    return max(1, wanted - given) if same and given > 0 and wanted > 0 else None


def _make_and_remove(jet: JetStream, trial: StreamConfig) -> None:
    from js_sync import TwinstreamError

    try:
        jet.create_stream(trial)
    except TwinstreamError:
        with suppress(TwinstreamError):  # it may exist although the answer came too late
            jet.delete_stream(trial.name or "")
        raise
    jet.delete_stream(trial.name or "")


def _check_subjects(jet: JetStream, config: StreamConfig) -> None:
    for subject in subjects_of(config):
        others = sorted(name for name in jet.stream_names(subject) if name != config.name)
        if others:
            raise _left_alone(config, f"{subject!r} belongs to stream {others[0]}")


def _trial(config: StreamConfig) -> StreamConfig:
    """Return the config under another name, cut off from all other streams.

    Without its origins, because reading from one can remove messages there.
    """
    name = f"{(config.name or '')[:_NAME_MAX]}_probe_{secrets.token_hex(4)}"
    return evolve(
        config,
        name=name,
        subjects=[name],
        mirror=None,
        mirror_direct=None,
        sources=None,
        republish=None,
        subject_transform=None,
    )


def _left_alone(config: StreamConfig, reason: str) -> Failure:
    name = config.name
    message = f"stream {name} was left as it is, because a new one could not be made: {reason}"
    hint = f"if the old one takes up the room, `twinstream stream rm {name}` frees it first"
    return Failure(f"{message}\n{hint}")
