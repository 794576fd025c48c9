"""The source on a standalone cluster: a master and two workers, started from the pip package.

Where the package is installed on the executors, where they have nothing but pyarrow and PySpark and
get the rest as one zip, and where they have nothing and get a whole environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

import js_sync
from tests.quick_java import QUICK_JAVA
from tests.soak import LONG, LONGEST
from tests.spark.processes import SparkProcess, job_environment, package_folder
from tests.unhurried import connected
from twinstream.models import StreamConfig
from twinstream.spark.session.project_zip import PACKAGES, pack
from twinstream.spark.session.worker_python import worker_python
from twinstream.testing import NatsServer

ROOT = Path(__file__).parents[3]
JOB = Path(__file__).with_name("cluster_job.py")
MESSAGES = 10_000


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    spark = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        ready = r"spark://127\.0\.0\.1:\d+"
        first = stack.enter_context(
            SparkProcess(folder, "master", ready, [f"{spark}.master.Master", *here])
        )
        for name in ("one", "two"):
            limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name)]
            worker = [f"{spark}.worker.Worker", *here, *limits, first.found]
            stack.enter_context(
                SparkProcess(folder, name, "Successfully registered with master", worker)
            )
        yield first.found


@pytest.fixture
def orders(server_factory: Callable[[], NatsServer]) -> NatsServer:
    server = server_factory()
    with connected(server.url) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.*"], allow_direct=True))
        jet.create_stream(
            StreamConfig(
                name="COPY",
                subjects=["copy.*"],
                max_msgs_per_subject=1,
                discard="new",
                discard_new_per_subject=True,
            )
        )
        requests = (
            js_sync.PublishRequest(subject=f"orders.{number % 7}", data=b"%d" % number)
            for number in range(MESSAGES)
        )
        for outcome in jet.publish_many(requests):
            assert not isinstance(outcome, js_sync.PublishFailure), outcome
    return server


def submit(
    master: str,
    server: NatsServer,
    folder: Path,
    environment: dict[str, str],
    *more: str,
    cwd: Path | None = None,
) -> None:
    command = [sys.executable, str(JOB), master, server.url, str(folder), *more]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=os.environ | QUICK_JAVA | environment | job_environment(environment["PYTHONPATH"]),
        cwd=cwd,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "batch": [MESSAGES] * 2,
        "streamed": [MESSAGES] * 2,
        "landed": [MESSAGES, MESSAGES, 4],
        "executors": 2,
        "driver_python": environment.get("PYSPARK_DRIVER_PYTHON", worker_python()),
    }
    with connected(server.url) as nc:
        assert nc.jetstream().get_stream("COPY").cached_info.state.messages == MESSAGES


@pytest.mark.skipif(not LONG, reason="the long form alone: the next one does the same and more")
def test_soak_installed_on_the_executors(master: str, orders: NatsServer, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    submit(master, orders, tmp_path, {"PYTHONPATH": paths})


def test_shipped_as_one_file(master: str, orders: NatsServer, tmp_path: Path) -> None:
    package = pack(tmp_path / "twinstream.zip")
    python = bare_python(tmp_path / "bare")
    add_pyspark(python)
    missing = subprocess.run(
        [python, "-E", "-c", "import twinstream.spark"], capture_output=True, text=True, check=False
    )
    assert "No module named 'twinstream'" in missing.stderr
    paths = os.pathsep.join([str(package), str(ROOT / "src")])
    submit(master, orders, tmp_path, {"PYTHONPATH": paths, "PYSPARK_PYTHON": python}, str(package))


@pytest.mark.skipif(not LONG, reason="the long form alone: packs and unpacks 200 MiB")
def test_soak_shipped_as_an_environment(master: str, orders: NatsServer, tmp_path: Path) -> None:
    """The driver runs in the same environment, unpacked where it works."""
    package = packed_environment(tmp_path)
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path / "env", filter="fully_trusted")
    environment = {"PYTHONPATH": str(ROOT / "src")}
    environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), "./env/bin/python")
    submit(master, orders, tmp_path, environment, str(package), cwd=tmp_path)


def packed_environment(folder: Path) -> Path:
    """Pack an interpreter with pyarrow and the package, all its files in it."""
    python = Path(bare_python(folder / "bare"))
    site = next(folder.glob("bare/lib/python*/site-packages"))
    target = folder / "env.tar.gz"
    with tarfile.open(target, "w:gz", compresslevel=1, dereference=True) as archive:
        archive.add(python.parents[1], arcname=".")
        for name in PACKAGES:
            found = find_spec(name)
            assert found is not None
            assert found.origin is not None
            origin = Path(found.origin)
            source = origin if found.submodule_search_locations is None else origin.parent
            archive.add(source, arcname=str(site.relative_to(folder / "bare") / source.name))
    return target


def bare_python(folder: Path) -> str:
    """Make an interpreter that has pyarrow and nothing of this project."""
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in ("pyarrow", "numpy", "pandas", "pytz", "dateutil", "six"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            target = origin if origin.name == "six.py" else origin.parent
            (site / target.name).symlink_to(target)
    libraries = package_folder("pyarrow").parent / "pyarrow.libs"
    if libraries.exists():
        (site / libraries.name).symlink_to(libraries)
    return str(folder / "bin" / "python")


def add_pyspark(python: str) -> None:
    """Let an interpreter use the installed PySpark instead of Spark's zip.

    Python compiles all modules of the zip in each process. Then the process that plans a streaming
    query does not start within Spark's ten seconds while other tests have the processors.
    """
    [site] = Path(python).parents[1].glob("lib/python*/site-packages")
    for name in ("pyspark", "py4j"):
        (site / name).symlink_to(package_folder(name))
    without = "import sys; sys.path[:] = [each for each in sys.path if 'pyspark.zip' not in each]"
    (site / "installed_pyspark.pth").write_text(without)


def test_the_package_is_the_same_each_time(tmp_path: Path) -> None:
    one, two = pack(tmp_path / "one.zip"), pack(tmp_path / "two.zip")
    assert one.read_bytes() == two.read_bytes()
    assert "js_sync" in PACKAGES
