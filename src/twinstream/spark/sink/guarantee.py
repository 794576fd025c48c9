"""Check, before rows are sent, that a stream's settings allow the guarantee of a write."""

from __future__ import annotations

from typing import Final

from twinstream.core.exactly_once.guarantees import write_gaps
from twinstream.core.wire.subject_match import matcher
from twinstream.models import RetentionPolicy, StreamConfig
from twinstream.spark.errors import OptionError
from twinstream.spark.sink.options import SinkOptions

__all__ = ["check_promise"]

# The fewest ledger entries of one task that a stream must keep. An entry records up to 999 rows.
_ENTRIES: Final = 1000


def check_promise(config: StreamConfig, options: SinkOptions) -> None:
    """Raise `OptionError` if a setting of the stream breaks the guarantee of a write.

    The error names the setting and a remedy.
    """
    # With these two values, the server must find a stored message under the subject to which the
    # sink published it. A subject transform of the stream changes the subject.
    by_subject = options.idempotence in {"insert", "ledger"}
    weaknesses = [
        each for each in write_gaps(config) if by_subject or each.setting != "subject_transform"
    ]
    if weaknesses:
        found = "; ".join(map(str, weaknesses))
        raise OptionError("stream", f"stream {config.name} cannot guarantee the write: {found}")
    if options.idempotence == "msgId":
        _check_window(config, options)
    elif options.idempotence == "ledger":
        _check_ledger(config, options)


def _check_window(config: StreamConfig, options: SinkOptions) -> None:
    window = config.duplicate_window.total_seconds() if config.duplicate_window else 0.0
    if window < options.min_duplicate_window:
        raise OptionError(
            "idempotence",
            f"stream {config.name} forgets message IDs after {window:g} s, which is less than"
            f" minDuplicateWindow={options.min_duplicate_window:g}s: a later retry would store"
            " rows twice. Raise the stream's duplicate_window, use idempotence=ledger, or lower"
            " minDuplicateWindow if all retries happen sooner",
        )


def _check_ledger(config: StreamConfig, options: SinkOptions) -> None:
    """Raise `OptionError` if the stream cannot store ledger entries, or removes them too early."""
    if not config.allow_atomic:
        raise OptionError(
            "idempotence",
            f"ledger needs allow_atomic on stream {config.name} (server 2.12); set it, or use"
            " msgId",
        )
    if config.retention not in (None, RetentionPolicy.LIMITS):
        raise OptionError(
            "idempotence",
            f"stream {config.name} has retention={config.retention.value} and removes a ledger"
            " entry once a consumer has acknowledged it, or if no consumer needs it, so a retry"
            " would store rows twice. Set retention=limits, or use msgId",
        )
    kept = config.max_msgs_per_subject or -1  # without a limit, the server reports -1 or nothing
    if 0 < kept < _ENTRIES:
        raise OptionError(
            "idempotence",
            f"stream {config.name} keeps {kept} messages per subject, so it removes ledger entries"
            " that record the stored rows, and a retry could not continue. Set"
            f" max_msgs_per_subject=-1, or to {_ENTRIES} or more; or use msgId",
        )
    # An example of a ledger's subject: prefix, ID of a write, number of a task.
    entries = f"{options.ledger_subject}.write.0"
    is_stored = matcher(config.subjects or [str(config.name)])
    # `matcher` returns `None` for filters that match all subjects.
    if is_stored is not None and not is_stored(entries.encode()):
        raise OptionError(
            "ledgerSubject",
            f"stream {config.name} does not have the subject {entries!r} of ledger entries; give a"
            " prefix of subjects of the stream",
        )
