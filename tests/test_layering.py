"""Imports point one way only, and importing a package pulls in no more than it needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from twinstream.testing import NatsServer

SOURCE = Path(__file__).resolve().parents[1] / "src"

# Which of our packages each package may import.
ARROWS: dict[str, set[str]] = {
    "twinstream.models": set(),
    "twinstream.core": {"twinstream.models"},
    "js_async": {"twinstream.models", "twinstream.core"},
    "js_sync": {"twinstream.models", "twinstream.core"},
    "twinstream.spark": {"twinstream.models", "twinstream.core", "js_sync"},
    "pyspark_jetstream": {"twinstream.spark"},
    "twinstream.testing": set(),
    "twinstream.cli": {"twinstream.models", "twinstream.core", "js_async", "js_sync", "twinstream.spark", "twinstream.testing"},
}

# Modules that do I/O, run things at once, read a clock or draw randomness.
OUTSIDE_WORLD = {
    "asyncio",
    "concurrent",
    "http",
    "logging",
    "multiprocessing",
    "os",
    "queue",
    "random",
    "secrets",
    "select",
    "selectors",
    "signal",
    "socket",
    "socketserver",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
# Only what the file's one job is.
ALLOWED_OUTSIDE = {("twinstream.core", "deadline.py"): {"time"}, ("twinstream.core", "log.py"): {"logging"}}

# What a bare install lacks.
EXTRAS = {"click", "jsonschema", "nats", "pyarrow", "pyspark", "rich", "yaml"}


def files(package: str) -> list[Path]:
    return sorted((SOURCE / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Yield the top-level name of every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            yield (node.module or "").partition(".")[0]


def test_every_package_is_drawn() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(ARROWS)


@pytest.mark.parametrize("package", ARROWS)
def test_imports_point_as_drawn(package: str) -> None:
    for path in files(package):
        ours = set(imported(path)) & set(ARROWS) - {package}
        assert ours <= ARROWS[package], f"{path} imports {ours - ARROWS[package]}"


@pytest.mark.parametrize("package", ["twinstream.models", "twinstream.core"])
def test_models_and_core_know_no_outside_world(package: str) -> None:
    for path in files(package):
        allowed = ALLOWED_OUTSIDE.get((package, path.name), set())
        found = set(imported(path)) & OUTSIDE_WORLD - allowed
        assert not found, f"{path} imports {found}"


def test_only_the_seam_touches_asyncio() -> None:
    users = {path.name for path in files("js_async") if "asyncio" in set(imported(path))}
    assert users == {"_io.py", "_link.py", "_sleeper.py", "_sockets.py"}


def test_only_the_seam_touches_sockets_and_threads() -> None:
    low = {"socket", "select", "threading", "time"}
    users = {path.name for path in files("js_sync") if low & set(imported(path))}
    assert users == {
        "_io.py",
        "_keeping.py",
        "_link.py",
        "_reader.py",
        "_sender.py",
        "_sockets.py",
        "_tls_socket.py",
    }


def test_the_helpers_for_tests_use_the_standard_library_alone() -> None:
    for path in files("twinstream.testing"):
        foreign = set(imported(path)) - sys.stdlib_module_names - {"twinstream.testing"}
        assert not foreign, f"{path} imports {foreign}"


def modules_after(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a statement."""
    program = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def loaded_by(package: str) -> set[str]:
    """Return the top-level modules that all public names of a package bring along."""
    names = modules_after(f"from {package} import *")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("package", ["twinstream.models", "twinstream.core", "js_sync", "js_async", "twinstream.testing"])
def test_an_import_pulls_in_no_extra(package: str) -> None:
    assert not loaded_by(package) & EXTRAS


@pytest.mark.parametrize("package", ["twinstream.models", "js_sync"])
def test_the_blocking_twin_does_without_asyncio(package: str) -> None:
    assert "asyncio" not in loaded_by(package)


def test_models_alone_open_no_sockets() -> None:
    assert not loaded_by("twinstream.models") & {"socket", "ssl", "select", "http"}


def test_a_program_starts_without_what_it_does_not_use() -> None:
    found = modules_after("import js_sync; js_sync.connect, js_sync.JetStream, js_sync.Consumer")
    assert "js_sync.connection" in found
    heavy = {"ssl", "sqlite3", "tempfile", "zoneinfo", "twinstream.models.generated.config.stream"}
    assert not found & heavy
    features = {"js_sync.coordination.coordination", "js_sync.workers.dead_letters", "js_sync.workers.worker", "twinstream.core.api.health"}
    assert not found & features


QUIET = """
import sys
import js_sync
from twinstream.models import ConsumerConfig, StreamConfig

with js_sync.connect(sys.argv[1]) as nc:
    jet = nc.jetstream()
    stream = jet.create_stream(StreamConfig(name="QUIET", subjects=["quiet"]))
    jet.publish("quiet", b"x")
    consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
    for message in consumer.fetch(1, timeout=5):
        message.ack()
assert "logging" not in sys.modules
"""


def test_a_blocking_program_without_trouble_does_not_import_logging(server: NatsServer) -> None:
    subprocess.run([sys.executable, "-c", QUIET, server.url], check=True)
