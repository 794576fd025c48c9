"""The table that defines the log records of reports.

Each row is for one class of reports, or for one case of a class. It has the area (the logger is
`twinstream.<area>`), the level and the text. Placeholders in the text are names of the report's
attributes. Rows contain the names of classes, so that the table does not import unused features.
`docs/logging.md` shows the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, Final, Literal

__all__ = ["DEBUG", "ERROR", "EXTRAS", "INFO", "ROWS", "WARNING", "Row", "row_of"]

# The levels of `logging`, which is imported only for the first record.
DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40

Limit = Literal["none", "record", "traceback"]
"""How repeats of a record are logged.

`none`: like the first record. `record`: with level DEBUG. `traceback`: without a traceback.
"""

_NAMES: Final = re.compile(r"%\(([\w.]+)\)")
_NO_DIGITS: Final = dict.fromkeys(range(ord("0"), ord("9") + 1))

#: The attributes of each log record, with the report's attributes that contain their values.
EXTRAS: Final = {
    "nats_stream": ("stream",),
    "nats_consumer": ("consumer",),
    "nats_seq": ("stream_seq", "seq"),
    "nats_subject": ("subject",),
    "nats_delivery": ("attempt",),
}


class Row:
    """A row of the table: how reports of the class `name` are logged.

    If `when` is not None, the row applies only to reports for which `when` returns true.
    """

    def __init__(
        self,
        name: str,
        area: str,
        level: int,
        text: str,
        *,
        when: Callable[[Any], bool] | None = None,
        limit: Limit = "none",
        same: Callable[[Any], Hashable] | None = None,
        traceback: bool = False,
    ) -> None:
        self.name: Final = name
        self.area: Final = area
        self.level: Final = level
        self.text: Final = text
        self.when: Final = when
        self.limit: Final = limit
        self.same: Final = same
        """A function that returns a key for a report. Reports with the same key are repeats.

        If it is None, all reports of this class and level are repeats."""
        self.traceback: Final = traceback
        """Whether the traceback of the report's `error` is part of the record."""

    def values(self, report: object, given: dict[str, object]) -> dict[str, object]:
        """Return the values for the text's placeholders, from `given` or the report."""
        return {
            name: given[name] if name in given else attrgetter(name)(report)
            for name in _NAMES.findall(self.text)
        }


def _error(report: Any) -> Hashable:
    """Return the type of a report's error, and the line of code that raised it."""
    error: BaseException = report.error
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = None if trace is None else (trace.tb_frame.f_code, trace.tb_lineno)
    return type(error), place


def _text(report: Any) -> Hashable:
    """Return a report's text without its digits, which may differ between repeats."""
    text: str = report.text
    return text.translate(_NO_DIGITS)


def _is_wish(error: Exception) -> bool:
    from twinstream.core.workers.retry import TryLater

    return isinstance(error, TryLater)


ROWS: Final = (
    # ---- connection
    Row(
        "Connected",
        "connection",
        INFO,
        "connected to %(server)s",
        when=lambda event: event.epoch == 1,
    ),
    Row("Connected", "connection", INFO, "reconnected to %(server)s after %(outage).1f s"),
    Row(
        "ServerUnverified",
        "connection",
        WARNING,
        "the certificate of %(server)s is not verified (verify=False), so any server is trusted",
    ),
    Row(
        "Disconnected",
        "connection",
        INFO,
        "disconnected from %(server)s: %(cause)s",
        when=lambda event: event.interrupted,
    ),
    Row("Disconnected", "connection", WARNING, "disconnected from %(server)s: %(cause)s"),
    Row(
        "ReconnectFailed",
        "connection",
        WARNING,
        "reconnect attempt %(attempt)d was refused: %(error)s",
        when=lambda event: event.is_refusal,
        limit="record",
        same=lambda event: "refused",
    ),
    Row(
        "ReconnectFailed",
        "connection",
        DEBUG,
        "reconnect attempt %(attempt)d failed: %(error)s",
    ),
    Row(
        "Closed",
        "connection",
        ERROR,
        "the connection is closed: %(cause)s",
        when=lambda event: bool(event.cause),
    ),
    Row("Closed", "connection", INFO, "the connection is closed"),
    Row("LameDuck", "connection", INFO, "%(server)s is about to stop (lame duck mode)"),
    Row("ServersDiscovered", "connection", DEBUG, "servers discovered: %(servers)s"),
    Row(
        "ServerReported",
        "connection",
        WARNING,
        "the server reported: %(text)s",
        limit="record",
        same=_text,
    ),
    Row(
        "MessagesDropped",
        "connection",
        WARNING,
        "slow consumer of %(subject)s: %(dropped)d messages dropped so far",
    ),
    Row(
        "CallbackFailed",
        "connection",
        ERROR,
        "%(name)s raised %(error)r",
        limit="record",
        same=_error,
        traceback=True,
    ),
    Row(
        "MessageNotRead",
        "connection",
        ERROR,
        "a message to %(subject)s was dropped, as reading it raised %(error)r",
        limit="record",
        same=_error,
        traceback=True,
    ),
    # ---- calls
    Row(
        "Call",
        "api",
        DEBUG,
        "%(kind)s %(subject)s: done in %(seconds).4f s, attempts: %(attempts)d",
        when=lambda call: call.error is None,
    ),
    Row(
        "Call",
        "api",
        DEBUG,
        "%(kind)s %(subject)s: failed in %(seconds).4f s, attempts: %(attempts)d: %(error)r",
    ),
    Row(
        "WillRetry",
        "publisher",
        WARNING,
        "%(what)s: %(error)s; trying again",
        limit="record",
        same=_error,
    ),
    # ---- consumers
    Row("PullSent", "consumer", DEBUG, "pull of %(batch)d messages, max_bytes: %(max_bytes)s"),
    Row(
        "PullWarning",
        "consumer",
        DEBUG,
        "%(text)s",
        when=lambda report: report.again,
    ),
    Row("PullWarning", "consumer", WARNING, "%(text)s", limit="record", same=_text),
    Row(
        "FilterOutside",
        "consumer",
        WARNING,
        "the stream captures nothing on %(filters)s, so no new message matches: compare the"
        " consumer's filters with the stream's subjects %(subjects)s",
    ),
    Row("Recreated", "consumer", WARNING, "%(name)s was gone and was created again"),
    Row("Pinned", "consumer", INFO, "this client is pinned in priority group %(group)s"),
    Row("Unpinned", "consumer", INFO, "another client is pinned in priority group %(group)s"),
    # ---- workers
    Row("WorkerStarted", "worker", INFO, "the worker started, concurrency: %(concurrency)d"),
    Row(
        "WorkerStopped",
        "worker",
        INFO,
        "the worker stopped, handled: %(handled)d, retried: %(retried)d, given up: %(rejected)d",
    ),
    Row(
        "HandlerFailed",
        "worker",
        ERROR,
        "message %(stream_seq)d (%(subject)s) is given up after attempt %(attempt)d: %(error)r",
        when=lambda report: report.retry_in is None,
        limit="traceback",
        same=_error,
        traceback=True,
    ),
    Row(
        "HandlerFailed",
        "worker",
        INFO,
        "the handler wants message %(stream_seq)d (%(subject)s) again in %(retry_in)g s: %(error)s",
        when=lambda report: _is_wish(report.error),
    ),
    Row(
        "HandlerFailed",
        "worker",
        WARNING,
        "message %(stream_seq)d (%(subject)s) failed at attempt %(attempt)d,"
        " the next follows in %(retry_in)g s: %(error)r",
        limit="record",
        same=_error,
    ),
    Row(
        "WorkEnded",
        "worker",
        ERROR,
        "%(what)s was ended by an error: %(error)r",
        traceback=True,
    ),
    Row(
        "ProcessReport",
        "processing",
        ERROR,
        "message %(seq)d (%(subject)s) is rejected: %(error)r",
        when=lambda report: report.rejected,
        limit="traceback",
        same=_error,
        traceback=True,
    ),
    Row(
        "ProcessReport",
        "processing",
        WARNING,
        "message %(seq)d (%(subject)s) was not processed, it is tried again: %(error)r",
        limit="record",
        same=_error,
    ),
    # ---- consumer groups
    Row(
        "PartitionsAssigned",
        "groups",
        INFO,
        "member %(member)s of consumer group %(group)s consumes partitions %(partitions)s",
    ),
    Row(
        "PartitionsRevoked",
        "groups",
        INFO,
        "member %(member)s of consumer group %(group)s left partitions %(partitions)s: %(reason)s",
    ),
    Row(
        "JoinDelayed",
        "groups",
        DEBUG,
        "member %(member)s of consumer group %(group)s waits for its consumer, next try in"
        " %(retry_in)g s: %(error)s",
        when=lambda report: report.is_usual,
    ),
    Row(
        "JoinDelayed",
        "groups",
        WARNING,
        "member %(member)s of consumer group %(group)s could not create its consumer, next try in"
        " %(retry_in)g s: %(error)s",
        limit="record",
        same=_error,
    ),
    Row(
        "CopiesSkipped",
        "groups",
        WARNING,
        "member %(member)s of consumer group %(group)s acknowledged %(count)d messages without"
        " handling: the server had copied them again",
    ),
    # ---- dead letters
    Row(
        "DeadLettered",
        "dead_letters",
        INFO,
        "message %(stream_seq)d (%(subject)s) was rejected and is stored as a dead letter",
        when=lambda event: event.by_worker,
    ),
    Row(
        "DeadLettered",
        "dead_letters",
        WARNING,
        "message %(stream_seq)d (%(subject)s) was given up (%(cause)s) and is stored as a dead"
        " letter",
    ),
    Row("NoDeadLetter", "dead_letters", INFO, "no dead letter for an advisory: %(reason)s"),
    # ---- outbox
    Row(
        "OutboxReport",
        "outbox",
        ERROR,
        "event %(event.number)d (%(event.subject)s) is refused and set aside: %(error)s",
        when=lambda report: report.refused,
        limit="traceback",
        same=_error,
        traceback=True,
    ),
    Row(
        "OutboxReport",
        "outbox",
        WARNING,
        "the outbox cannot be sent now, it is tried again: %(error)s",
        when=lambda report: report.event is None,
        limit="record",
        same=_error,
    ),
    Row(
        "OutboxReport",
        "outbox",
        WARNING,
        "event %(event.number)d (%(event.subject)s) is not stored yet: %(error)s",
        limit="record",
        same=_error,
    ),
    # ---- coordination
    Row("LeaseWasLost", "coordination", WARNING, "lost: %(reason)s"),
    Row("Elected", "coordination", INFO, "%(name)s: elected, token %(token)d"),
    # ---- backups
    Row("BackedUp", "backup", INFO, "backed up %(stream)s: %(size)d bytes in %(seconds).1f s"),
    Row("Restored", "backup", INFO, "restored %(stream)s: %(size)d bytes in %(seconds).1f s"),
    # ---- object stores
    Row(
        "ContentKept",
        "object",
        WARNING,
        "bucket %(bucket)s: the content that object '%(name)s' had before is kept: %(reason)s",
    ),
    Row(
        "ContentLeft",
        "object",
        WARNING,
        "bucket %(bucket)s: the content that object %(name)s had before remains, sweep() removes"
        " it: %(error)s",
    ),
    Row(
        "ObjectUnreadable",
        "object",
        WARNING,
        "bucket %(bucket)s: object '%(name)s' cannot be read: %(error)s",
        limit="record",
        same=lambda event: (event.bucket, event.name, event.seq),
    ),
    # ---- key-value buckets
    Row(
        "MarkersSkipped",
        "kv",
        WARNING,
        "bucket %(bucket)s: markers are kept (%(count)d), because their keys have a wildcard or are"
        " not UTF-8",
    ),
    # ---- the Spark pipeline
    Row(
        "Started",
        "pipeline",
        INFO,
        "source %(source)s continues at sequence %(position)d, %(backlog)d sequences are pending",
    ),
    Row(
        "Landed",
        "pipeline",
        WARNING,
        "source %(source)s: batch %(entry.batch)d landed %(entry.messages)d messages,"
        " %(entry.dead_letters)d of them as dead letters",
        when=lambda event: event.entry.dead_letters > 0,
    ),
    Row(
        "Landed",
        "pipeline",
        INFO,
        "source %(source)s: batch %(entry.batch)d landed %(entry.messages)d messages"
        " in %(entry.seconds).1f s",
    ),
    Row(
        "Released",
        "pipeline",
        INFO,
        "source %(source)s: released all below sequence %(end)d (%(mode)s),"
        " %(removed)d messages removed",
    ),
    Row(
        "Failed",
        "pipeline",
        ERROR,
        "source %(source)s has ended: %(error)s",
        when=lambda event: event.retry_in is None,
    ),
    Row(
        "Failed",
        "pipeline",
        WARNING,
        "source %(source)s failed and restarts in %(retry_in)g s: %(error)s",
    ),
    Row("Ended", "pipeline", INFO, "source %(source)s has ended"),
)

_ROWS: Final[dict[str, list[Row]]] = {}
for _row in ROWS:
    _ROWS.setdefault(_row.name, []).append(_row)


def row_of(report: object) -> Row:
    """Return the first row that applies to a report."""
    rows = _ROWS[type(report).__name__]
    return next(row for row in rows if row.when is None or row.when(report))
