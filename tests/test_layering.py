"""Imports point one way only, and importing a package imports no more than it needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sources import PACKAGES, tree_of
from twinstream.testing import NatsServer

SOURCE = Path(__file__).resolve().parents[1] / "src"

# Which of our packages each package may import, from the ground up: models, records, errors, core,
# the twins, and what stands above them.
GROUND = {"twinstream.models", "twinstream.records", "twinstream.errors"}
ARROWS: dict[str, set[str]] = {
    "twinstream": set(),
    "twinstream.models": set(),
    "twinstream.records": {"twinstream.models"},
    "twinstream.errors": {"twinstream.models", "twinstream.records"},
    "twinstream.disk": {"twinstream.errors"},
    "twinstream.codecs": GROUND,
    "twinstream.core": GROUND | {"twinstream.codecs"},
    "twinstream.permissions": GROUND | {"twinstream.core"},
    "twinstream.observe": {"twinstream.core"},
    "twinstream.otel": GROUND | {"twinstream.core"},
    "js_async": GROUND | {"twinstream.codecs", "twinstream.core", "twinstream.disk"},
    "js_sync": GROUND | {"twinstream.codecs", "twinstream.core", "twinstream.disk"},
    "twinstream.lake": GROUND | {"twinstream.core", "twinstream.disk"},
    "twinstream.spark": GROUND
    | {"twinstream.codecs", "twinstream.core", "twinstream.disk", "twinstream.lake", "js_sync"},
    "pyspark_jetstream": {"twinstream.spark"},
    # Messages for unit tests of handlers; servers need none of it.
    "twinstream.testing": GROUND | {"js_async", "js_sync", "twinstream.codecs", "twinstream.core"},
    "twinstream.cli": GROUND
    | {
        "twinstream",
        "twinstream.codecs",
        "twinstream.core",
        "twinstream.lake",
        "twinstream.permissions",
        "twinstream.spark",
        "twinstream.testing",
        "js_async",
        "js_sync",
    },
}

# Packages above the client that another one of them is built on.
BELOW = {"groups": {"workers"}, "outbox": {"exactly_once"}}

# The floors of each package, from the ground up: folders, and modules that stand in no folder.
# Imports go down, or stay within a folder or module.
FLOORS: dict[str, list[set[str]]] = {
    "twinstream.core": [
        {"hooks", "lazy_imports", "on_failure", "arguments"},
        {"deadline"},
        {"log"},
        {"wire"},
        {"observe"},
        {"server_faults"},
        {"payloads"},
        {"consume", "client", "api", "backup"},
        {"read", "health"},
        {"publish", "coordination"},
        {"counters", "schedules"},
        {"exactly_once", "workers"},
        {"kv"},
        {"object_store"},
        {"groups"},
    ],
    "js_async": [
        {"runtime"},
        {"client"},
        {"background"},
        {"api"},
        {"read", "consume"},
        {"publish"},
        {"consumer"},
        {"_stream_consumers"},
        {"stream"},
        {"subject_writes"},
        {"kv"},
        {"object_store"},
        {"jetstream"},
        {"extension"},
        {"connection", "nats_py", "_index"},
        {"__init__"},
        set(PACKAGES) - set(BELOW),
        set(BELOW),
    ],
    "twinstream.spark": [
        {"errors"},
        {"client", "decode", "running", "schemas"},
        {"source", "sink"},
        {"bucket"},
        {"data_source", "landing"},
        {"session"},
        {"pipeline"},
        {"__init__"},
    ],
}
FLOORS["js_sync"] = FLOORS["js_async"]

# Circles within one folder, of imports for type checkers or within a function. Pages of the two
# kinds name each other, as one is made of the other; a bucket opens its cache, and the cache writes
# through its bucket.
CIRCLES = {
    frozenset({"twinstream.core.read.arrow_page", "twinstream.core.read.page"}),
    frozenset({"js_async.kv.bucket", "js_async.kv.cache"}),
    frozenset({"js_sync.kv.bucket", "js_sync.kv.cache"}),
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
ALLOWED_OUTSIDE = {
    ("twinstream.core", "deadline.py"): {"time"},
    ("twinstream.core", "logger.py"): {"logging"},
}

# What a bare install lacks.
EXTRAS = {
    "cattrs",
    "click",
    "jsonschema",
    "nats",
    "opentelemetry",
    "pyarrow",
    "pyspark",
    "rich",
    "yaml",
}


def files(package: str) -> list[Path]:
    """Return the files of a package, without inner packages that have an entry of their own."""
    folder = SOURCE.joinpath(*package.split("."))
    if not folder.is_dir():
        return [folder.with_suffix(".py")]
    inner = [SOURCE.joinpath(*each.split(".")) for each in ARROWS if each.startswith(f"{package}.")]
    return sorted(
        path
        for path in folder.rglob("*.py")
        if not any(each in path.parents or path == each.with_suffix(".py") for each in inner)
    )


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in SOURCE.rglob("*.py")}


@cache
def imported_modules(path: Path) -> tuple[str, ...]:
    """Return every module that a file imports, anywhere in the file."""
    return tuple(_imported_modules(path))


def _imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module


def imported(path: Path) -> Iterator[str]:
    """Yield the top-level name of every module that a file imports."""
    for module in imported_modules(path):
        yield module.partition(".")[0]


def package_of(module: str) -> str | None:
    """Return the longest name in ARROWS that is the module or a parent of it."""
    parts = module.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in ARROWS), None)


def test_every_package_is_drawn() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    inner = {
        f"twinstream.{path.stem}"
        for path in (SOURCE / "twinstream").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    program = {"twinstream.__init__", "twinstream.__main__"}
    assert packages | inner - program == set(ARROWS)


@pytest.mark.parametrize("package", ARROWS)
def test_imports_point_as_drawn(package: str) -> None:
    for path in files(package):
        ours = {package_of(module) for module in imported_modules(path)} - {None, package}
        allowed = ARROWS[package]
        if path.name == "__main__.py":
            allowed = {"twinstream.cli"}
        assert ours <= allowed, f"{path} imports {ours - allowed}"


def place(package: str, module: str) -> str:
    """Return the folder of a module below a package, or the module's name if it is in none."""
    return module.removeprefix(package).strip(".").partition(".")[0] or "__init__"


@pytest.mark.parametrize("package", FLOORS)
def test_folders_import_downwards(package: str) -> None:
    floors = {name: floor for floor, names in enumerate(FLOORS[package]) for name in names}
    for path in files(package):
        module = module_of(path)
        if module == package and package == "twinstream.core":
            continue
        here = place(package, module)
        assert here in floors, f"{module} is on no floor"
        for other in imported_modules(path):
            if package_of(other) != package:
                continue
            there = place(package, other)
            assert there == here or floors[there] < floors[here], f"{module} imports {other}"


def test_modules_import_each_other_in_no_circle() -> None:
    """Imports for type checkers count, and those within functions, in the whole tree."""
    graph = {
        module_of(path): {
            other
            for other in imported_modules(path)
            if other in MODULES and other != module_of(path)
        }
        for path in SOURCE.rglob("*.py")
    }
    circles = set(circles_of(graph)) - CIRCLES
    assert not circles, [sorted(circle) for circle in circles]


def circles_of(graph: dict[str, set[str]]) -> Iterator[frozenset[str]]:
    """Yield the groups of modules that import each other, directly or through others."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo += graph.get(module, ())
        reach[start] = seen
    for start, seen in reach.items():
        if start in seen:
            yield frozenset(other for other in seen if start in reach.get(other, ()))


# What imports PySpark: the data source, the Spark engine and its session, and what commands need
# for them. Everything else runs without it, decoding and landing above all.
USERS_OF_PYSPARK = {
    "twinstream.cli.failures",
    "twinstream.cli.pipeline.options",
    "twinstream.spark.data_source",
    "twinstream.spark.landing.spark_engine",
    "twinstream.spark.pipeline.batch",
    "twinstream.spark.running",
    "twinstream.spark.schemas",
    "twinstream.spark.session.session",
    "twinstream.spark.sink.report",
    "twinstream.spark.sink.rows",
    "twinstream.spark.sink.sink",
    "twinstream.spark.sink.task_identity",
    "twinstream.spark.source.range_partition",
    "twinstream.spark.source.reader",
    "twinstream.spark.source.refused_reader",
    "twinstream.spark.source.stream_reader",
}


def test_few_modules_import_pyspark() -> None:
    """Imports within functions count; those for type checkers do not, as they never run."""
    users = {
        module_of(path)
        for path in SOURCE.rglob("*.py")
        if {"pyspark", "py4j"} & {each.partition(".")[0] for each in _run_time_imports(path)}
    }
    assert users == USERS_OF_PYSPARK


def test_the_local_engine_imports_no_pyspark() -> None:
    found = modules_after(
        "from twinstream.spark.pipeline import read_config, runner\n"
        "from twinstream.spark.pipeline.maintenance import compact, replay, vacuum, verify\n"
        "from twinstream.spark.pipeline.tables import delta_sink, parquet_sink"
    )
    assert "twinstream.spark.landing.land_job" in found
    assert not {name for name in found if name.partition(".")[0] in {"pyspark", "py4j"}}


def _run_time_imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports outside blocks for type checkers."""
    todo: list[ast.AST] = [tree_of(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        else:
            todo += ast.iter_child_nodes(node)


# What packages above the client import of a twin beside its public names and `runtime`.
MOST_EXTENSION_NAMES = 12


def names_of(module: str) -> list[str]:
    """Return the names in the `__all__` of a module, from its source."""
    path = SOURCE.joinpath(*module.split("."))
    tree = tree_of(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    (found,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    names: list[str] = ast.literal_eval(found)
    return names


@pytest.mark.parametrize("twin", ["js_async", "js_sync"])
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_above_the_client_import_what_any_package_may(twin: str, package: str) -> None:
    offered = {name: set(names_of(name)) for name in (twin, f"{twin}.extension")}
    for path in sorted((SOURCE / twin / package).rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            names = [each.name for each in node.names] if isinstance(node, ast.ImportFrom) else []
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            if module is None or module.partition(".")[0] != twin:
                continue
            if module in offered:
                assert set(names) <= offered[module], f"{path} imports {names} of {module}"
            else:
                allowed = {"runtime", package} | BELOW.get(package, set())
                assert module.split(".")[1] in allowed, f"{path} imports {module}"


@pytest.mark.parametrize("twin", ["js_async", "js_sync"])
def test_the_module_for_packages_has_few_names_which_it_describes(twin: str) -> None:
    module = f"{twin}.extension"
    names = names_of(module)
    print(f"names in {module}: {len(names)}")
    assert len(names) <= MOST_EXTENSION_NAMES
    text = ast.get_docstring(tree_of(SOURCE / twin / "extension.py")) or ""
    assert [name for name in names if f"- `{name}` " not in text] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_above_the_client_is_not_loaded_by_it(package: str) -> None:
    found = modules_after("from js_sync import *")
    assert "js_sync.jetstream" in found
    assert not [each for each in found if each.startswith(f"js_sync.{package}")]


@pytest.mark.parametrize("package", ["twinstream.models", "twinstream.core"])
def test_models_and_core_know_no_outside_world(package: str) -> None:
    for path in files(package):
        allowed = ALLOWED_OUTSIDE.get((package, path.name), set())
        found = set(imported(path)) & OUTSIDE_WORLD - allowed
        assert not found, f"{path} imports {found}"


def test_only_the_seam_touches_asyncio() -> None:
    users = {path.name for path in files("js_async") if "asyncio" in set(imported(path))}
    assert users == {"concurrency.py", "fast.py", "socket_link.py", "waiter.py", "sockets.py"}


def test_only_the_seam_touches_sockets_and_threads() -> None:
    low = {"socket", "select", "threading", "time"}
    users = {path.name for path in files("js_sync") if low & set(imported(path))}
    assert users == {
        "concurrency.py",
        "handled_at_once.py",
        "polling.py",
        "reader.py",
        "sender.py",
        "socket_link.py",
        "sockets.py",
        "tls_socket.py",
    }


def test_the_helpers_for_tests_use_the_standard_library_alone() -> None:
    """All but the messages for handlers, which import a twin when one is made."""
    for path in files("twinstream.testing"):
        if path.name == "messages.py":
            continue
        others = {
            each for each in imported_modules(path) if package_of(each) != "twinstream.testing"
        }
        foreign = {each.partition(".")[0] for each in others} - sys.stdlib_module_names
        assert not foreign, f"{path} imports {foreign}"


def modules_after(statement: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after a statement."""
    program = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def loaded_by(package: str) -> set[str]:
    """Return the top-level modules that the public names of a package load."""
    names = modules_after(f"from {package} import *")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    "package", ["twinstream.models", "twinstream.core", "js_sync", "js_async", "twinstream.testing"]
)
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
    features = {
        "js_sync.workers.dead_letters",
        "js_sync.workers.worker",
        "twinstream.core.health.health",
    }
    assert not found & features


QUIET = """
import sys
import js_sync
from twinstream.models import ConsumerConfig, StreamConfig

with js_sync.connect(sys.argv[1], connect_timeout=60, request_timeout=60) as nc:
    jet = nc.jetstream()
    stream = jet.create_stream(StreamConfig(name="QUIET", subjects=["quiet"]))
    jet.publish("quiet", b"x")
    consumer = stream.create_consumer(ConsumerConfig(durable_name="c"))
    for message in consumer.fetch(1, timeout=60):
        message.ack()
assert "logging" not in sys.modules
"""


def test_a_blocking_program_without_trouble_does_not_import_logging(server: NatsServer) -> None:
    subprocess.run([sys.executable, "-c", QUIET, server.url], check=True)
