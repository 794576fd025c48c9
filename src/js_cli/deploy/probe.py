"""Finding out whether a server takes a stream before the old one is removed for it.

A stream that has to be made anew goes with its messages, and some reasons to refuse the new one are
the server's alone: no peers for its replicas, no room for its limits, subjects of others.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from attrs import evolve

from js_cli.failures import Failure
from js_models import StreamConfig

if TYPE_CHECKING:
    from js_sync import JetStream

_NAME_MAX: Final = 200
"""Letters of a name that a probe takes over; what it adds has to fit into the 255 of a server."""


def probe(jet: JetStream, config: StreamConfig) -> None:
    """Raise :class:`Failure` where ``config`` would be refused in the place of a stream.

    A stream with the same storage, replicas, placement and limits is made and removed again.
    """
    from js_sync import TwinstreamError

    _check_subjects(jet, config)
    trial = _trial(config)
    try:
        jet.create_stream(trial)
    except TwinstreamError as error:
        with suppress(TwinstreamError):  # after an answer that came too late, it may be there
            jet.delete_stream(trial.name or "")
        raise _left_alone(config, str(error)) from error
    jet.delete_stream(trial.name or "")


def _check_subjects(jet: JetStream, config: StreamConfig) -> None:
    default = [] if config.mirror or config.sources else [config.name or ""]
    for subject in config.subjects or default:
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
    hint = f"where the old one takes up the room, `twinstream stream rm {name}` makes it first"
    return Failure(f"{message}\n{hint}")
