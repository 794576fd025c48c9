"""The log: levels and texts of reports, values, limited repeats, no cost if disabled."""

from __future__ import annotations

import ast
import importlib
import logging
import pkgutil
import queue
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import js_async
import twinstream.core
from tests.logged import texts
from tests.sources import tree_of
from twinstream.core.api.instrumentation import Call
from twinstream.core.client.connection_events import (
    Closed,
    Connected,
    Disconnected,
    LameDuck,
    MessagesDropped,
    ServerReported,
    ServersDiscovered,
)
from twinstream.core.consume.reports import (
    ConsumerRecreated,
    Pinned,
    PullWarning,
    Unpinned,
    WorkEnded,
)
from twinstream.core.exactly_once.outbox import OutboxEvent, OutboxReport
from twinstream.core.exactly_once.processing import ProcessReport, Reject
from twinstream.core.groups.reports import (
    CopiesSkipped,
    JoinDelayed,
    PartitionsAssigned,
    PartitionsRevoked,
)
from twinstream.core.log import events as log_events
from twinstream.core.log import report as log_report
from twinstream.core.log.logger import EXTRAS, Log
from twinstream.core.log.report import Report
from twinstream.core.log.reporter import GuardedReporter, Reporter
from twinstream.core.workers.reports import HandlerFailed
from twinstream.core.workers.retry import TryLater
from twinstream.errors import (
    AuthenticationFailed,
    BadArgument,
    ConnectionFailed,
    RequestTimeout,
)
from twinstream.lake.entry import BatchEntry
from twinstream.spark.pipeline import pipeline_events
from twinstream.spark.pipeline.runner import _report_all

SOURCE = Path(twinstream.core.__file__).parents[2]
LETTER = {"stream": "S", "consumer": "c", "stream_seq": 7, "subject": "s.1", "cause": "terminated"}
EVENT = OutboxEvent(number=3, id="x", subject="orders.new", data=b"payload")

# What a callback with such a name receives is no report.
NO_REPORTS = {
    "on_change": "the entries of a cached bucket, which are its data",
    "on_progress": "sizes, to be shown while a copy runs",
    "on_lost": "the lease itself; its loss is logged as LeaseWasLost",
    "on_elected": "the lease itself; the election is logged as Elected",
    "on_done": "the outcome of a publish, inside the pipeline",
    "on_bytes": "what a socket received",
    "on_end": "why a socket ended; logged as Disconnected",
}


def batch(dead_letters: int) -> BatchEntry:
    names = {each.name: 0 for each in BatchEntry.__attrs_attrs__}
    return BatchEntry(**names | {"dead_letters": dead_letters, "batch": 4, "seconds": 0.5})


def failed(retry_in: float | None = None, error: Exception | None = None) -> HandlerFailed:
    return HandlerFailed("s.1", 7, 2, error or TypeError("no"), retry_in)


SAMPLES: tuple[Report, ...] = (
    Connected("h:1", 1),
    Connected("h:1", 2, 2.5),
    log_events.ServerUnverified("h:1"),
    Disconnected("h:1", "the program was interrupted", interrupted=True),
    Disconnected("h:1", "reset"),
    log_events.ReconnectFailed(1, AuthenticationFailed("no")),
    log_events.ReconnectFailed(1, ConnectionFailed("no")),
    log_events.OutageLasts(60.0, 12, ConnectionFailed("no")),
    Closed("gave up"),
    Closed(),
    LameDuck("h:1"),
    ServersDiscovered(("h:2",)),
    ServerReported("Permissions Violation"),
    MessagesDropped("s.1", 4),
    log_events.CallbackFailed("on_event", ValueError("no")),
    log_events.MessageNotRead("s.1", ValueError("no")),
    Call(kind="api", subject="$JS.API.INFO", size=1, seconds=0.1),
    Call(kind="api", subject="$JS.API.INFO", size=1, seconds=0.1, error=RequestTimeout("late")),
    log_events.WillRetry("publishing to s.1", RequestTimeout("late"), "s.1"),
    log_events.PullSent(10, 1024, "S", "c"),
    PullWarning("nothing received for 10 s", again=True),
    PullWarning("nothing received for 10 s"),
    log_events.FilterOutside("S", "c", "s.a", "t.>"),
    ConsumerRecreated("c"),
    Pinned("g", "pin"),
    Unpinned("g"),
    log_events.WorkerStarted(4),
    log_events.WorkerStopped(10, 2, 1),
    failed(),
    failed(1.5, TryLater(1.5)),
    failed(1.5),
    WorkEnded("the worker on S", ValueError("no")),
    ProcessReport(subject="s.1", seq=7, error=Reject("no"), rejected=True),
    ProcessReport(subject="s.1", seq=7, error=ValueError("no"), delay=1.0),
    PartitionsAssigned("S", "g", "m", (0, 1)),
    PartitionsRevoked("S", "g", "m", (0, 1), "the members changed"),
    JoinDelayed("S", "g", "m", RequestTimeout("late"), 0.1, True),
    JoinDelayed("S", "g", "m", RequestTimeout("late"), 0.1, False),
    CopiesSkipped("S", "g", "m", 10),
    log_events.DeadLettered(**LETTER, by_worker=True),  # type: ignore[arg-type]
    log_events.DeadLettered(**LETTER, by_worker=False),  # type: ignore[arg-type]
    log_events.NoDeadLetter("a purge"),
    OutboxReport(error=BadArgument("no"), event=EVENT, refused=True),
    OutboxReport(error=RequestTimeout("late")),
    OutboxReport(error=RequestTimeout("late"), event=EVENT),
    log_events.LeaseWasLost("l (token 3): its time ran out"),
    log_events.Elected("l", 3),
    log_events.BackedUp("S", 10, 0.5),
    log_events.Restored("S", 10, 0.5),
    log_events.ContentKept("a.txt", "FILES", "NUID", "object 'b' has the same content"),
    log_events.ContentLeft("a.txt", "FILES", "NUID", RequestTimeout("late")),
    log_events.ObjectUnreadable("a.txt", "FILES", 7, "the size is -1"),
    log_events.MarkersSkipped("B", 2),
    pipeline_events.Started("orders", 5, 6),
    pipeline_events.Landed("orders", batch(2)),
    pipeline_events.Landed("orders", batch(0)),
    pipeline_events.Released("orders", "purge", 5, 4),
    pipeline_events.Failed("orders", "no", None, "ValueError"),
    pipeline_events.Failed("orders", "no", 2.0, "ValueError"),
    pipeline_events.Ended("orders"),
)
"""The reports of the rows of `docs/logging.md`, in the same order."""


def reported() -> Iterator[tuple[str, type]]:
    """Yield the classes that callbacks of the SDK receive, each with its place in the source."""
    for folder in ("js_async", "twinstream/spark/pipeline"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            for node in ast.walk(tree_of(path)):
                if not isinstance(node, ast.arg) or node.annotation is None:
                    continue
                tells = node.arg == "tell" and path.name == "runner.py"
                if node.arg in NO_REPORTS or not (node.arg.startswith("on_") or tells):
                    continue
                parts = ast.walk(node.annotation)
                words = {each.id for each in parts if isinstance(each, ast.Name)}
                # `on_bad`, `on_deleted`, `on_refused` are choices; `OnCall` takes a `Call`.
                for word in words - {"Callable", "OnBad", "OnCall", "OnDeleted", "OnRefused"}:
                    for found in members(class_of(word)):
                        yield f"{path.name}: {node.arg}: {word}", found


def class_of(word: str) -> object:
    if hasattr(pipeline_events, word):
        return getattr(pipeline_events, word)
    modules = [js_async] + [
        importlib.import_module(each.name)
        for each in pkgutil.walk_packages(twinstream.core.__path__, "twinstream.core.")
    ]
    return next(getattr(module, word) for module in modules if hasattr(module, word))


def members(found: object) -> list[type]:
    return [found] if isinstance(found, type) else list(typing.get_args(found))


def test_every_class_of_reports_and_events_states_its_log_record() -> None:
    names = {type(each).__name__ for each in SAMPLES}
    found = list(reported())
    for where, each in found:
        assert issubclass(each, Report), f"{where}: {each.__name__} is no Report"
    known = {each.__name__ for _, each in found}
    assert {"HandlerFailed", "Connected", "Call", "OutboxReport", "Landed"} <= known
    assert names == known | set(log_events.__all__)


@pytest.mark.parametrize("report", SAMPLES, ids=lambda report: type(report).__name__)
def test_a_record_has_the_level_area_text_and_values_of_its_report(
    report: Report, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "twinstream")
    Log(stream="S", consumer="c")(report)
    [record] = caplog.records
    assert (record.name, record.levelno) == (f"twinstream.{report.log_area}", report.level)
    assert record.getMessage() == f"S/c: {report}"
    assert "payload" not in record.getMessage()
    error = getattr(report, "error", None)
    has_trace = record.levelno == logging.ERROR and isinstance(error, Exception)
    assert (record.exc_info is not None) == has_trace
    given = vars(record)
    assert set(EXTRAS) <= set(given)
    assert given["nats_stream_name"] == "S"
    if report.log_area == "worker" and hasattr(report, "stream_seq"):
        assert (given["nats_seq"], given["nats_subject"], given["nats_delivery"]) == (7, "s.1", 2)


@pytest.mark.parametrize("report", SAMPLES, ids=lambda report: type(report).__name__)
def test_it_is_one_level_lower_where_the_program_has_a_callback(
    report: Report, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "twinstream")
    got: list[object] = []
    Reporter(got.append)(report)
    [record] = caplog.records
    assert record.levelno == max(logging.DEBUG, report.level - 10)
    assert got == [report]


ODD = "\x1b[2J\x9b31m\x7f\u202e\r\nWARNING forged\ttab \udcff"


class _Foreign(Exception):
    def __repr__(self) -> str:
        return ODD


@pytest.mark.parametrize(
    "report",
    [
        ServerReported(ODD),
        MessagesDropped(ODD, 1),
        Disconnected(ODD, ODD),
        ServersDiscovered((ODD,)),
        PullWarning(ODD),
        log_events.DeadLettered("S", "c", 7, ODD, ODD, by_worker=False),
        HandlerFailed(ODD, 7, 1, _Foreign(ODD), 1.0),
        log_events.WillRetry(ODD, _Foreign(ODD)),
    ],
    ids=lambda report: type(report).__name__,
)
def test_text_of_a_stranger_forges_no_line(
    report: Report, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "twinstream")
    Log(stream=ODD, consumer="c")(report)
    [record] = caplog.records
    assert record.getMessage().isprintable()
    assert "\\u001b[2J" in record.getMessage()


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")

    __repr__ = __str__


def test_an_error_without_a_text_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Log()(failed(1.0, _Unprintable()))
    assert texts(caplog, "worker") == ["HandlerFailed, its error cannot be shown"]


def test_the_page_shows_the_levels_and_texts() -> None:
    page = (SOURCE.parent / "docs" / "logging.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `twinstream.")]
    assert rows == [shown(report) for report in SAMPLES]
    assert set(EXTRAS) <= set(re.findall(r"^\| `(nats_\w+)` \|", page, re.MULTILINE))


def shown(report: Report) -> str:
    """Return the row of a report as `docs/logging.md` shows it, with names instead of values."""
    level = logging.getLevelName(report.level)
    logger, name = f"`twinstream.{report.log_area}`", f"`{type(report).__name__}`"
    return f"| {logger} | {level} | {name} | {with_names(report)} |"


def with_names(record: Any) -> Any:
    """Return a copy of a record whose values are shown as their names in braces."""
    values = {each.name: getattr(record, each.name) for each in attrs.fields(type(record))}
    return attrs.evolve(record, **{name: named(name, value) for name, value in values.items()})


def named(name: str, value: Any) -> Any:
    """Return a value of the same kind that is shown as its name; no value and booleans as such."""
    if value in (None, "") or isinstance(value, bool):
        return value
    if attrs.has(type(value)):
        return with_names(value)
    text = f"{{{name}}}"
    if isinstance(value, str):
        return text
    shows = dict.fromkeys(("__format__", "__repr__", "__str__"), lambda *_: text)
    cls = type(type(value).__name__, (type(value),), shows)
    return cls.__new__(cls) if isinstance(value, Exception) else cls(value)


def test_the_levels_are_those_of_logging() -> None:
    for name in ("DEBUG", "INFO", "WARNING", "ERROR"):
        assert getattr(log_report, name) == getattr(logging, name)


def test_repeats_of_one_error_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 1000.0
    caplog.set_level(logging.INFO, "twinstream")
    write = Log(clock=lambda: now)
    for seq in range(100):
        write(HandlerFailed("s", seq, 1, TypeError(f"no {seq}"), 1.0))
    write(failed(1.0, KeyError("x")))
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "KeyError" in caplog.text
    now += 61
    write(failed(1.0))
    assert caplog.records[-1].getMessage().endswith("(and 99 more of this kind)")
    # The others are there for a program that wants them.
    caplog.set_level(logging.DEBUG, "twinstream")
    write(failed(1.0))
    assert caplog.records[-1].levelname == "DEBUG"


def test_each_message_that_is_given_up_is_an_error_the_first_of_a_kind_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    write = Log()
    errors: list[Exception] = []
    for number in range(3):
        try:
            raise TypeError(f"no {number}")
        except TypeError as error:
            errors.append(error)
    try:
        raise TypeError("elsewhere")
    except TypeError as error:
        errors.append(error)
    for error in errors:
        write(failed(error=error))
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 4
    traces = [record.exc_info and record.exc_info[1] for record in caplog.records]
    assert traces == [errors[0], None, None, errors[3]]


def test_a_text_differs_by_more_than_numbers_to_be_of_another_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    write = Log()
    write(PullWarning("a gap behind stream sequence 17"))
    write(PullWarning("a gap behind stream sequence 18"))
    write(PullWarning("nothing received for 10 s"))
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 2


def test_errors_of_a_guarded_callback_are_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def callback(event: object) -> None:
        raise LookupError("not my day")

    GuardedReporter(callback, "on_event")(Disconnected("h:1", "reset"))
    [record] = caplog.records
    assert (record.name, record.levelname) == ("twinstream.connection", "ERROR")
    assert record.getMessage() == "on_event raised LookupError('not my day')"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


def test_what_happens_in_a_pipeline_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    heard: queue.SimpleQueue[pipeline_events.Happening] = queue.SimpleQueue()
    heard.put(pipeline_events.Failed("orders", "no", None, "ValueError"))
    passed: list[pipeline_events.Happening] = []
    _report_all(heard, Reporter(passed.append, "tell"))
    assert len(passed) == 1
    assert texts(caplog, "pipeline", logging.WARNING) == ["source orders has ended: no"]


def test_no_handler_is_installed() -> None:
    Log()(failed())
    for name in ("twinstream", "twinstream.worker"):
        assert not logging.getLogger(name).handlers
        assert logging.getLogger(name).level == logging.NOTSET


def test_a_disabled_logger_costs_no_record(request: pytest.FixtureRequest) -> None:
    def fail(*_: object, **__: object) -> logging.LogRecord:
        raise AssertionError("a record was made")

    before = logging.getLogRecordFactory()
    request.addfinalizer(lambda: logging.setLogRecordFactory(before))
    logging.setLogRecordFactory(fail)
    write = Log("worker")
    assert not write.debugs()
    write(log_events.WorkerStarted(1))
