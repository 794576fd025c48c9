"""Where locks and their kin live in a stream, and which settings of it their promises rest on.

Every slot is a subject that holds one message or none. It is taken by a publish that expects
nothing there, kept by one that expects the holder's own last sequence, and given up by removing
that sequence; the message's TTL frees it when its holder is gone.
"""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from twinstream.core.base.digits import natural
from twinstream.errors import BadArgument, NotPromised
from twinstream.core.error_details.guarantee_gap import Hole
from twinstream.core.wire.subjects import check_name, check_subject
from twinstream.models import StreamConfig

__all__ = ["CoordinationSubjects", "check_coordination", "check_count", "coordination_config"]

_KINDS: Final = ("lock", "semaphore", "rate", "once", "leader")
# A slot's message is a small record; this many slots make a listing of some megabytes.
MOST_SLOTS: Final = 10_000
# Bytes of a record: a note of 1,000 characters of up to 12 bytes, the owner, and what is its own.
_LARGEST_RECORD: Final = 16_384


def _checked(root: str) -> str:
    return check_name(root, "stream")


@frozen
class CoordinationSubjects:
    """The subjects of one coordination stream; `root` is their first token."""

    root: str = field(converter=_checked)

    @property
    def held(self) -> str:
        """What the stream listens to."""
        return f"{self.root}.held.>"

    def slot(self, kind: str, name: str, number: int | None = None) -> str:
        """Return the subject of a slot; semaphores and rate limits have numbered ones."""
        subject = f"{self.root}.held.{kind}.{name}"
        check_subject(subject)
        return subject if number is None else f"{subject}.{number}"

    def slots(self, kind: str, name: str) -> str:
        """Return the filter of all numbered slots of a name."""
        return f"{self.slot(kind, name)}.*"

    def freed(self, kind: str, name: str) -> str:
        """Return the subject that tells waiters of a release; no stream holds it."""
        return f"{self.root}.freed.{kind}.{name}"

    def kind(self, kind: str | None) -> str:
        """Return the filter of all slots of a kind, or of all."""
        if kind is not None and kind not in _KINDS:
            raise BadArgument(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
        return f"{self.root}.held.{kind}.>" if kind is not None else self.held

    def parts(self, subject: str) -> tuple[str, str, int | None]:
        """Return kind, name and number of a slot's subject."""
        kind, _, rest = subject.removeprefix(f"{self.root}.held.").partition(".")
        name, _, number = rest.rpartition(".")
        slot = natural(number)
        if kind in {"semaphore", "rate"} and name and slot is not None:
            return kind, name, slot
        return kind, rest, None


def check_count(count: int, what: str) -> int:
    """Return a number of slots, or raise `BadArgument`."""
    if type(count) is not int or not 1 <= count <= MOST_SLOTS:
        raise BadArgument(f"{what} must be a whole number from 1 to {MOST_SLOTS:,}, got {count!r}")
    return count


def coordination_config(name: str, *, replicas: int = 1) -> StreamConfig:
    """Return the configuration of a stream for locks and their kin.

    Change what the promises do not rest on (placement, description) with `attrs.evolve`, and
    create the stream with `create_stream`.
    """
    return StreamConfig(
        name=name,
        description="Locks, semaphores, rate limits, leaders",
        subjects=[CoordinationSubjects(name).held],
        num_replicas=replicas,
        storage="file",
        retention="limits",
        discard="old",
        max_msgs_per_subject=1,
        allow_msg_ttl=True,
    )


# Setting, values that will do (None is a setting that was left out), and what follows otherwise.
_NEEDED: Final[tuple[tuple[str, tuple[object, ...], str], ...]] = (
    ("allow_msg_ttl", (True,), "no slot of a holder that died is ever freed"),
    ("max_msgs_per_subject", (1,), "a slot may hold more than one record"),
    ("discard_new_per_subject", (False, None), "renewals are refused"),
    ("retention", ("limits",), "records that are valid are removed by others"),
    ("max_age", (None, 0), "slots are freed before their time"),
    ("max_msgs", (-1, None), "records that are valid are dropped at the limit"),
    ("max_bytes", (-1, None), "records that are valid are dropped at the limit"),
    ("subject_delete_marker_ttl", (None, 0), "a marker takes the slot of what ran out"),
    ("deny_delete", (False, None), "nothing can be released"),
    ("no_ack", (False, None), "no holder learns that it holds a slot"),
    ("mirror", (None,), "nothing can be published into it"),
    ("sources", (None,), "messages of other streams take slots"),
    ("subject_transform", (None,), "records land on other subjects"),
    ("sealed", (False, None), "nothing can be published into it"),
    ("persist_mode", ("default", None), "a restart may forget what was confirmed"),
)


def check_coordination(config: StreamConfig, subjects: CoordinationSubjects) -> None:
    """Raise `NotPromised`, which names every setting that breaks a promise."""
    holes = [
        Hole(name, _shown(getattr(config, name)), because, _instead(allowed[0]))
        for name, allowed, because in _NEEDED
        if not _is_in(getattr(config, name), allowed)
    ]
    if 0 < (config.max_msg_size or -1) < _LARGEST_RECORD:
        most, because = str(config.max_msg_size), "records may not fit"
        holes.append(Hole("max_msg_size", most, because, "set it to -1"))
    if config.storage == "memory" and (config.num_replicas or 1) == 1:
        because = "with one replica a restart forgets who holds what"
        holes.append(Hole("storage", "memory", because, "set it to file"))
    if subjects.held not in (config.subjects or ()):
        shown = ", ".join(config.subjects or ()) or "unset"
        holes.append(Hole("subjects", shown, "slots are not kept", f"add {subjects.held}"))
    if holes:
        raise NotPromised(config.name or "", "coordination", tuple(holes))


def _is_in(value: object, allowed: tuple[object, ...]) -> bool:
    # A duration of nothing is a timedelta here; an empty list is as good as none.
    return value in allowed or (not value and None in allowed)


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _instead(value: object) -> str:
    return "take it out" if value is None else f"set it to {_shown(value)}"
