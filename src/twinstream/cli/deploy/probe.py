"""Check that the server accepts a new stream before the old stream of that name is removed.

A stream loses its messages if it is re-created. Some reasons to refuse the new stream are known
only to the server: conflicting subjects, a cycle of origins, too few peers for its replicas, or too
little storage. First, the streams that capture the new subjects are requested. Second, a request
creates the stream under its own name: the server validates the whole config before it reports that
the name is in use. Third, a trial stream is created under another name, because the server checks
some limits only after the name. The trial stream is removed at once.
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
"""The number of characters of the stream's name with which the trial stream's name begins.

With its suffix, the name of the trial stream must not be longer than 255 bytes.
"""


_NO_ROOM: Final = frozenset(
    {
        error_codes.ACCOUNT_RESOURCES_EXCEEDED,
        error_codes.INSUFFICIENT_STORAGE,
        error_codes.MEMORY_EXCEEDED,
        error_codes.STORAGE_EXCEEDED,
    }
)


def probe(jet: JetStream, config: StreamConfig) -> None:
    """Raise :class:`Failure` if the server would refuse ``config`` even without the old stream."""
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
    """Return the bytes that the new stream reserves in addition to the old stream, at least 1.

    Return None if one of the streams reserves no bytes, or if they differ in storage or replicas.
    In this case, the removal of the old stream frees no bytes for the new stream.
    """
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
        with suppress(TwinstreamError):  # after a timeout, the trial stream may exist
            jet.delete_stream(trial.name or "")
        raise
    jet.delete_stream(trial.name or "")


def _check_subjects(jet: JetStream, config: StreamConfig) -> None:
    for subject in subjects_of(config):
        others = sorted(name for name in jet.stream_names(subject) if name != config.name)
        if others:
            raise _left_alone(config, f"{subject!r} belongs to stream {others[0]}")


def _trial(config: StreamConfig) -> StreamConfig:
    """Return the config of the trial stream: another name, and no relations to other streams.

    The trial stream must not copy an origin, because copying can remove messages from the origin.
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
    message = f"stream {name} is unchanged, because a new one could not be created: {reason}"
    hint = f"if the old stream takes up the storage, remove it: `twinstream stream rm {name}`"
    return Failure(f"{message}\n{hint}")
