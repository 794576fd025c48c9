"""Whether a stream can keep what a write promises; asked before anything is sent."""

from __future__ import annotations

from typing import Final

from twinstream.core.exactly_once.guarantees import write_holes
from twinstream.core.wire.subject_match import matcher
from twinstream.models import RetentionPolicy, StreamConfig
from twinstream.spark.errors import OptionError
from twinstream.spark.sink.options import SinkOptions

__all__ = ["check_promise"]

#: Entries of one task that a stream must keep; they are for 999 rows each.
_ENTRIES: Final = 1000


def check_promise(config: StreamConfig, options: SinkOptions) -> None:
    """Raise `OptionError` with the setting that breaks the promise, and what to try."""
    # Only these modes look a message up later, under the subject that it was written to.
    by_subject = options.idempotence in {"insert", "ledger"}
    holes = [
        each for each in write_holes(config) if by_subject or each.setting != "subject_transform"
    ]
    if holes:
        found = "; ".join(map(str, holes))
        raise OptionError("stream", f"a write to {config.name} cannot be promised: {found}")
    if options.idempotence == "msgId":
        _check_window(config, options)
    elif options.idempotence == "ledger":
        _check_ledger(config, options)


def _check_window(config: StreamConfig, options: SinkOptions) -> None:
    window = config.duplicate_window.total_seconds() if config.duplicate_window else 0.0
    if window < options.min_duplicate_window:
        raise OptionError(
            "idempotence",
            f"stream {config.name} forgets message ids after {window:g} s, which is less than"
            f" minDuplicateWindow={options.min_duplicate_window:g}s: a later repeat would store"
            " rows twice. Raise the stream's duplicate_window, use idempotence=ledger, or lower"
            " minDuplicateWindow if repeats are always sooner",
        )


def _check_ledger(config: StreamConfig, options: SinkOptions) -> None:
    if not config.allow_atomic:
        raise OptionError(
            "idempotence",
            f"ledger needs allow_atomic on stream {config.name} (server 2.12); set it, or use"
            " msgId",
        )
    if config.retention not in (None, RetentionPolicy.LIMITS):
        raise OptionError(
            "idempotence",
            f"stream {config.name} has retention={config.retention.value} and drops an entry of the"
            " ledger once a consumer has acknowledged it, or where none waits for it, so a repeat"
            " would store rows twice. Set retention=limits, or use msgId",
        )
    kept = config.max_msgs_per_subject or -1
    if 0 < kept < _ENTRIES:
        raise OptionError(
            "idempotence",
            f"stream {config.name} keeps {kept} messages a subject, so it drops entries of the"
            " ledger that say which rows are stored, and a repeat could not go on. Set"
            f" max_msgs_per_subject=-1, or to {_ENTRIES} or more; or use msgId",
        )
    # Where the entries of a task go: the name of the write and the task's number come behind it.
    entries = f"{options.ledger_subject}.write.0"
    takes = matcher(config.subjects or [str(config.name)])
    if takes is not None and not takes(entries.encode()):
        raise OptionError(
            "ledgerSubject",
            f"stream {config.name} does not take messages on {entries!r}, where entries would go;"
            " give the beginning of subjects inside the stream",
        )
