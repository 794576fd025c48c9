"""Each test has one marker for what it needs, and `fast` tests cannot start a server."""

from __future__ import annotations

import importlib
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.left_out import LEFT_OUT, LeftOut, is_left_out
from tests.markers import NEED_SPARK, starts_servers
from twinstream.testing import NatsCluster, NatsServer

TESTS = Path(__file__).parent
KINDS = {"fast", "long", "server", "spark"}


@contextmanager
def made(start: bool) -> Any:
    """Start a server within a decorated function."""
    yield NatsServer().start() if start else None


WAYS = {"own": made}


class Wrapped:
    def __init__(self) -> None:
        self.server = NatsServer()


def direct() -> Any:
    return NatsServer()


def through_another() -> Any:
    return [direct() for _ in range(2)]


def nested() -> Any:
    def inner() -> Any:
        return NatsCluster(3)

    return inner


def through_a_class() -> Any:
    return Wrapped()


def through_a_table() -> Any:
    return WAYS["own"](True)


def in_a_program() -> str:
    return "from twinstream.testing import NatsServer\nNatsServer().start()"


def without(server: NatsServer | None = None) -> bool:
    return server is None


def endless(more: bool = True) -> Any:
    return endless(False) if more else without()


@pytest.mark.parametrize(
    "function",
    [direct, through_another, nested, through_a_class, through_a_table, made, in_a_program],
)
def test_what_starts_a_server_is_seen(function: Any) -> None:
    assert starts_servers(function)


@pytest.mark.parametrize("function", [without, endless, len, None])
def test_function_without_servers_is_not_marked(function: Any) -> None:
    assert not starts_servers(function)


def test_a_fast_test_cannot_start_a_server(request: pytest.FixtureRequest) -> None:
    """The name of the class is built from parts, so that this test is marked `fast`."""
    assert request.node.get_closest_marker("fast")
    starter = getattr(importlib.import_module("twinstream.testing"), "".join(["Nats", "Server"]))
    with pytest.raises(AssertionError, match="marked `fast`"):
        starter()


def test_the_list_of_what_needs_spark_is_whole() -> None:
    """Without PySpark, these tests are not collected."""
    # Some tests import all modules of a package that they name, and the reference that codegen.site
    # makes has the names of twinstream.spark.
    importing = re.compile(
        r"^ *(?:from|import) pyspark|^from codegen\.site|\"twinstream\.spark\"", re.MULTILINE
    )
    files = [path for path in TESTS.rglob("test_*.py") if "spark" not in path.parts]
    found = {path for path in files if importing.search(path.read_text("utf-8"))}
    names = {path.relative_to(TESTS).as_posix() for path in found}
    assert names - {"test_layering.py", "test_markers.py"} == set(NEED_SPARK) - {"spark"}


def test_server_fixture_marks_a_test(request: pytest.FixtureRequest, server: NatsServer) -> None:
    assert request.node.get_closest_marker("server")
    assert server.running


def test_each_test_has_one_kind(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        assert len(KINDS & {mark.name for mark in item.iter_markers()}) == 1, item.nodeid


@pytest.mark.parametrize("entry", LEFT_OUT, ids=lambda each: each.files[0])
def test_what_is_left_out_is_there(entry: LeftOut) -> None:
    names = re.findall(r"::(\w+)", entry.pattern)
    for file in entry.files:
        text = (TESTS.parent / file).read_text("utf-8")
        assert all(f"def {name}(" in text for name in names), file
        assert names or "(opened, " in text, file


def test_what_proves_the_same_is_not_left_out() -> None:
    operation = "test_an_operation_uses_what_it_declares_and_nothing_else"
    fewer = "test_an_operation_fails_without_any_one_entry[publish]"
    assert is_left_out(f"tests/_sync/client/test_permissions.py::{operation}[leaf-publish]")
    assert is_left_out(f"tests/_sync/client/test_permissions.py::{fewer}")
    for kept in (
        f"tests/_sync/client/test_permissions.py::{operation}[plain-publish]",
        f"tests/_async/client/test_permissions.py::{operation}[leaf-publish]",
        f"tests/_async/client/test_permissions.py::{fewer}",
        "tests/_async/counters/test_counters.py::test_a_sum[own connection-1]",
        "tests/_async/publish/test_publish.py::test_a_message[nats-py connection]",
    ):
        assert not is_left_out(kept), kept
    assert is_left_out("tests/_async/counters/test_counters.py::test_a_sum[nats-py connection-1]")
    assert is_left_out("tests/_async/counters/test_counters.py::test_a_sum[1-nats-py connection]")
