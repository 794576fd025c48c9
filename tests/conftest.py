"""Servers for all tests.

`server` is one real server for the tests of a file: they use different stream names, so that they
do not affect each other. `server_factory` starts further servers, which end with the test.
`TWINSTREAM_SERVER` selects an older release for all of them (`make versions`).
"""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.dropping import begin_collecting
from tests.left_out import LONG, is_left_out
from tests.markers import HAS_SPARK, NEED_SPARK, kind, no_servers
from tests.property_examples import register_profiles
from tests.s3_server import S3Server, client_environment
from tests.sources import USERS
from tests.stalls import timed
from tests.tuned import Tuned, tuner
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.testing import NatsCluster, NatsServer

VERSION = os.environ.get("TWINSTREAM_SERVER")

START = 300
"""The seconds that a server has to start. It takes less than one, unless the machine is busy."""

# A shell that starts the tests in the background lets them ignore these signals. Tests send them.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        is_interrupt = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)

# The servers of the tests collect garbage less often, which saves a quarter of their CPU time.
os.environ.setdefault("GOGC", "400")
if not LONG:
    # Servers with one core save a tenth of their CPU time. Long runs use them as users do.
    os.environ.setdefault("GOMAXPROCS", "1")
    # Each client of an object store, and each context of TLS, reads all authorities of the system,
    # which takes longer than some requests. Only what downloads programs needs one of them.
    if VERSION is None:
        os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "authority.pem")
        os.environ["SSL_CERT_DIR"] = os.devnull
# Spark's processes inherit the environment of the test that happens to start Spark.
os.environ.update(client_environment())

# What starts Java takes longest, and would end last unless it began first. These share a session in
# each of three processes, and those with an object store share its server;
SPARK = "tests/spark/"
PIPELINES = "tests/spark/pipeline/"
OBJECTS = ("tests/spark/pipeline/test_iceberg", "tests/spark/pipeline/test_s3")
# these need no session, so each of the files is dealt to any process;
SESSIONLESS = (
    "tests/spark/pipeline/test_crashes.py",
    "tests/spark/pipeline/test_s3_maintenance.py",
)
# and these have their own, one after the other: several at once would leave nothing for the rest.
APART = ("tests/spark/apart/", "tests/test_readme.py", "tests/test_demo.py")
# Files that take long by themselves. One that began at the end of the run would run alone there.
SLOW = (
    "tests/cli/lock/test_lock.py",
    "tests/cli/test_screen.py",
    "tests/fuzz/",
    "tests/kills/",
    "tests/test_dead_letter_kills.py",
    "tests/test_docs.py",
    "tests/test_processes.py",
    "tests/test_seam.py",
    "tests/test_worker_signals.py",
    "tests/testing/",
)
_FOLDERS = count(1)
# Their tests share nothing and mostly wait for timeouts, so each test is dealt by itself.
SCRIPTED = re.compile(r"tests/_(a?)sync/\w+/test_fake_")
# `make setup-fast` leaves PySpark out.
collect_ignore = [] if HAS_SPARK else list(NEED_SPARK)

register_profiles()


# `make coverage` measures the processes of xdist. Programs that tests start are not measured: tests
# look at what these import, print and write.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


class ByFile(LoadScopeScheduling):
    """A scheduler that assigns tests to processes by file, and tests with Java to four processes.

    Tests that parse all sources share a process, which parses them once. Tests that share nothing
    are assigned one by one.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(APART):
            return "apart"
        if nodeid.startswith(SESSIONLESS):
            return nodeid.partition("::")[0]
        if nodeid.startswith(OBJECTS):
            return "objects"
        for session in (PIPELINES, SPARK):
            if nodeid.startswith(session):
                return session
        if SCRIPTED.match(nodeid):
            return nodeid
        return "sources" if nodeid.startswith(USERS) else nodeid.partition("::")[0]

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget the scopes that the process has finished, and note that a test is complete.

        After each test, the base class counts the pending tests of all scopes that it knows.
        """
        work = self.assigned_work[node]
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]
        super().mark_test_complete(node, item_index, duration)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Select how tests are assigned to the processes."""
    return ByFile(config, log)


def pytest_report_header() -> str | None:
    """Name the tests that are not collected because PySpark is missing."""
    return (
        None
        if HAS_SPARK
        else (
            f"PySpark is not installed, so these are left out: {', '.join(NEED_SPARK)}; "
            "`make setup` installs it"
        )
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by what it needs, and run slow tests first; otherwise the order stays.

    Tests that `tests/left_out.py` names are removed.
    """
    left_out = set() if LONG else {item for item in items if is_left_out(item.nodeid)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        short = item.get_closest_marker("timed")
        if short is not None and isinstance(item, pytest.Function):
            item.obj = timed(item.obj, *short.args)
        item.add_marker(kind(item, java=(SPARK, *APART)))
    for prefix in (USERS, SLOW, APART, SPARK, OBJECTS):
        items.sort(key=lambda item: not item.nodeid.startswith(prefix))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from searching the tests and modules, which stay until the end.

    This halves the time of the collection and of each `gc.collect()` in a test.
    """
    gc.disable()
    result = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return result


def pytest_unconfigure() -> None:
    """Let the garbage collector delete the modules at exit. Otherwise DuckDB reports them as leaks.

    It writes the report to the real standard error, one per process, after the summary of pytest.
    """
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Check that no test with the marker `fast` starts a server in this process."""
    with no_servers() if item.get_closest_marker("fast") else nullcontext():
        return (yield)


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> None:
    """Keep the garbage collector from searching what the files before have left.

    It is much, such as the parsed sources: `gc.collect()` in a test would take a second.
    """
    begin_collecting()


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Disable logging: pytest keeps records, whose tracebacks reference objects of the test."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Tuned:
    """Change a constant of the SDK for this test, by its name in `tests/tuned.py`."""
    return tuner(monkeypatch, request.module.__name__)


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    """One real server with JetStream, shared by the tests of a file."""
    with NatsServer(version=VERSION, start_timeout=START) as running:
        yield running


@pytest.fixture
def server_factory() -> Iterator[Callable[..., NatsServer]]:
    """Start servers with the arguments of `NatsServer`."""
    with ExitStack() as stack:

        def start(*args: Any, **options: Any) -> NatsServer:
            options.setdefault("version", VERSION)
            options.setdefault("start_timeout", START)
            return stack.enter_context(NatsServer(*args, **options))

        yield start


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    """A cluster of three real servers, shared by the tests of a file.

    Three servers work for the replicas of all streams that tests have left, until they end.
    """
    with NatsCluster(version=VERSION, start_timeout=START) as running:
        yield running


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One server that speaks S3, shared by all tests of a process. The environment has its keys."""
    with S3Server() as running:
        yield running


@pytest.fixture
def bucket(s3: S3Server) -> ObjectFolder:
    """A folder of the bucket for one test."""
    return s3.folder(f"test{next(_FOLDERS)}")


@pytest.fixture(autouse=True)
def since(request: pytest.FixtureRequest) -> None:
    """Skip tests marked `since("2.14")` on an older server."""
    marker = request.node.get_closest_marker("since")
    if marker is not None and VERSION is not None:
        wanted = tuple(map(int, marker.args[0].split(".")))
        if tuple(map(int, VERSION.split(".")))[: len(wanted)] < wanted:
            pytest.skip(f"needs server {marker.args[0]}, this is {VERSION}")
