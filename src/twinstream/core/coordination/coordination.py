"""Locks, leases and rate limits in a stream: their subjects, and the required stream settings.

Each lock, and each unit of a semaphore or rate limit, is a slot: a subject that has one message or
none. A client acquires a slot with a publish that expects no message on the subject. It renews the
slot with a publish that expects the sequence of its last message, and releases the slot by deleting
that message. If the client dies, the slot is released when the TTL of the message expires.
"""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from twinstream.core.wire.subjects import check_name, check_subject
from twinstream.errors import BadArgument, UnsuitableSettings
from twinstream.models import StreamConfig
from twinstream.models.digits import natural
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = ["CoordinationSubjects", "check_coordination", "check_count", "coordination_config"]

_KINDS: Final = ("lock", "semaphore", "rate", "once", "leader")
MOST_SLOTS: Final = 10_000
"""The limit keeps a list of all slots of a name small.

A list of 10,000 slots takes some megabytes.
"""
# Bytes. A record has a note of up to 1,000 characters of up to 12 bytes, and other members.
_LARGEST_RECORD: Final = 16_384


def _checked(root: str) -> str:
    return check_name(root, "stream")


@frozen
class CoordinationSubjects:
    """The subjects of one coordination stream. `root` is their first token, the stream's name."""

    root: str = field(converter=_checked)

    @property
    def held(self) -> str:
        """The subject filter of the stream."""
        return f"{self.root}.held.>"

    def slot(self, kind: str, name: str, number: int | None = None) -> str:
        """Return the subject of a slot. The slots of semaphores and rate limits have a number."""
        subject = f"{self.root}.held.{kind}.{name}"
        check_subject(subject)
        return subject if number is None else f"{subject}.{number}"

    def slots(self, kind: str, name: str) -> str:
        """Return the filter of all numbered slots with a name."""
        return f"{self.slot(kind, name)}.*"

    def freed(self, kind: str, name: str) -> str:
        """Return the subject of messages that announce a released slot; they are not stored."""
        return f"{self.root}.freed.{kind}.{name}"

    def kind(self, kind: str | None) -> str:
        """Return the filter of all slots of a kind, or of all slots if `kind` is None."""
        if kind is not None and kind not in _KINDS:
            raise BadArgument(f"kind must be one of {', '.join(_KINDS)}, got {kind!r}")
        return f"{self.root}.held.{kind}.>" if kind is not None else self.held

    def parts(self, subject: str) -> tuple[str, str, int | None]:
        """Return kind, name and number from the subject of a slot.

        The number is None unless the slot is one of a semaphore or a rate limit.
        """
        kind, _, rest = subject.removeprefix(f"{self.root}.held.").partition(".")
        name, _, number = rest.rpartition(".")
        slot = natural(number)
        if kind in {"semaphore", "rate"} and name and slot is not None:
            return kind, name, slot
        return kind, rest, None


def check_count(count: int, what: str) -> int:
    """Return a number of slots; raises `BadArgument` unless it is from 1 to `MOST_SLOTS`."""
    if type(count) is not int or not 1 <= count <= MOST_SLOTS:
        raise BadArgument(f"{what} must be a whole number from 1 to {MOST_SLOTS:,}, got {count!r}")
    return count


def coordination_config(name: str, *, replicas: int = 1) -> StreamConfig:
    """Return the configuration of a stream for locks, semaphores, rate limits and leaders.

    Create the stream with `create_stream`. Change settings that do not affect the guarantees, such
    as placement and description, with `attrs.evolve`. Raises `BadArgument` for an invalid name.

    Args:
        name: The name of the stream. It is also the first token of its subjects.
        replicas: The number of replicas.
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


# Each row has a setting, its valid values (None means omitted), and the consequence of other
# values.
_NEEDED: Final[tuple[tuple[str, tuple[object, ...], str], ...]] = (
    ("allow_msg_ttl", (True,), "the slot of a holder that died is never released"),
    ("max_msgs_per_subject", (1,), "a slot may have more than one record"),
    ("discard_new_per_subject", (False, None), "renewals are refused"),
    ("retention", ("limits",), "valid records are removed by others"),
    ("max_age", (None, 0), "slots are released before their time"),
    ("max_msgs", (-1, None), "valid records are dropped at the limit"),
    ("max_bytes", (-1, None), "valid records are dropped at the limit"),
    ("subject_delete_marker_ttl", (None, 0), "a marker occupies the slot of an expired record"),
    ("deny_delete", (False, None), "nothing can be released"),
    ("no_ack", (False, None), "holders get no confirmation that they hold a slot"),
    ("mirror", (None,), "nothing can be published into it"),
    ("sources", (None,), "messages of other streams occupy slots"),
    ("subject_transform", (None,), "records are stored on other subjects"),
    ("sealed", (False, None), "nothing can be published into it"),
    ("persist_mode", ("default", None), "a restart may lose confirmed records"),
)


def check_coordination(config: StreamConfig, subjects: CoordinationSubjects) -> None:
    """Raise `UnsuitableSettings`, with all settings of a stream that break a guarantee."""
    gaps = [
        GuaranteeGap(name, _shown(getattr(config, name)), because, _instead(allowed[0]))
        for name, allowed, because in _NEEDED
        if not _is_in(getattr(config, name), allowed)
    ]
    if 0 < (config.max_msg_size or -1) < _LARGEST_RECORD:
        most, because = str(config.max_msg_size), "records may not fit"
        gaps.append(GuaranteeGap("max_msg_size", most, because, "set it to -1"))
    if config.storage == "memory" and (config.num_replicas or 1) == 1:
        because = "with one replica a restart loses all slots"
        gaps.append(GuaranteeGap("storage", "memory", because, "set it to file"))
    if subjects.held not in (config.subjects or ()):
        shown = ", ".join(config.subjects or ()) or "unset"
        gaps.append(GuaranteeGap("subjects", shown, "slots are not stored", f"add {subjects.held}"))
    if gaps:
        raise UnsuitableSettings(config.name or "", "coordination", tuple(gaps))


def _is_in(value: object, allowed: tuple[object, ...]) -> bool:
    # If None is valid, so are other empty values: a duration of zero, an empty list.
    return value in allowed or (not value and None in allowed)


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _instead(value: object) -> str:
    return "omit it" if value is None else f"set it to {_shown(value)}"
