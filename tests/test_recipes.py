"""The recipes: programs of `examples/recipes/` under the servers and tools that they are for."""

from __future__ import annotations

import ast
import asyncio
import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import click
import pytest
import yaml

import js_sync
from tests._sync.flow import eventually
from tests.examples import ROOT, blocks, run
from tests.soak import LONGEST
from tests.unhurried import UNHURRIED
from twinstream.cli.groups import twinstream
from twinstream.testing import NatsServer

PAGE = ROOT / "docs" / "recipes.md"
EXAMPLES = ROOT / "examples"
FOLDER = EXAMPLES / "recipes"
PROGRAMS = sorted(FOLDER.glob("*.py"))
JSON = {"Content_Type": "application/json"}
"""The header of a JSON document, as an argument of `ask`."""
ADDRESS = re.compile(r"(?:running on|Listening at:|answers on port) (?:http://[\d.]+:)?(\d+)")


def command_of(program: Path, tool: str) -> list[str]:
    """Return the words of the command in a docstring that begins with `tool`."""
    text = (ast.get_docstring(ast.parse(program.read_text("utf-8"))) or "").replace("\\\n", " ")
    [line] = re.findall(rf"^ +(?:\w+=\S+ )*({tool} .*)$", text, re.MULTILINE)
    return shlex.split(line)


@contextmanager
def serving(command: list[str], server: NatsServer, folder: Path, **env: str) -> Iterator[str]:
    """Run a command that serves HTTP on a port of its choice; yield its URL, then stop it."""
    environment = os.environ | {"TWINSTREAM_URL": server.url, "PYTHONUNBUFFERED": "1"} | env
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    log = folder / "log.txt"
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, cwd=ROOT, env=environment
        ) as process,
    ):
        try:
            soon(lambda: process.poll() is not None or ADDRESS.search(log.read_text()))
            found = ADDRESS.search(log.read_text())
            assert found is not None, log.read_text()
            yield f"http://127.0.0.1:{found[1]}"
            process.send_signal(signal.SIGTERM)
            # uvicorn raises the signal again when it has shut down.
            expected = -signal.SIGTERM if command[0] == "uvicorn" else 0
            assert process.wait(LONGEST) == expected, log.read_text()
        finally:
            process.kill()


def soon(condition: Callable[[], object]) -> None:
    """Wait for what takes seconds, and minutes where the machine is busy."""
    eventually(condition, patience=LONGEST)


def ask(url: str, data: bytes | None = None, **headers: str) -> tuple[int, Any]:
    """Send a request, with POST if there are data; return the status and the decoded body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(url, data, named), timeout=LONGEST) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture
def jet(server: NatsServer) -> Generator[js_sync.JetStream]:
    with js_sync.connect(server.url, **UNHURRIED) as nc:
        yield nc.jetstream(timeout=30)


def placed(url: str, key: str, order: bytes) -> tuple[tuple[int, Any], int]:
    """Place an order; return the answer, and how often the program had no time for it before."""
    answers = [(503, None)]
    while answers[-1][0] == 503 and len(answers) < 100:
        answers.append(ask(f"{url}/orders", order, Idempotency_Key=key, **JSON))
    return answers[-1], len(answers) - 2


def test_fastapi_stores_each_order_once_and_streams_them(
    server: NatsServer, jet: js_sync.JetStream, tmp_path: Path
) -> None:
    command = [*command_of(FOLDER / "fastapi_shop.py", "uvicorn"), "--port", "0"]
    with ExitStack() as pages, serving(command, server, tmp_path) as url:
        answer, refusals = placed(url, "1", b'{"item": "tea"}')
        # What was refused may be stored.
        assert refusals or answer == (202, {"seq": 1, "is_new": True})
        answer, _ = placed(url, "1", b'{"item": "tea"}')
        assert answer == (202, {"seq": 1, "is_new": False})
        assert ask(f"{url}/orders", b'{"item": "tea"}', **JSON)[0] == 422
        assert ask(f"{url}/orders", b'{"item": 7}', Idempotency_Key="2", **JSON)[0] == 422
        assert placed(url, "3", b'{"item": "oil", "count": 2}')[0][0] == 202
        with urlopen(f"{url}/orders", timeout=LONGEST) as response:
            lines = [response.readline().decode().strip() for _ in range(6)]
        assert lines == [
            *("id: 1", 'data: {"item":"tea","count":1}', ""),
            *("id: 2", 'data: {"item":"oil","count":2}', ""),
        ]
        # This page is still open when the server ends.
        request = Request(f"{url}/orders", headers={"Last-Event-ID": "1"})
        assert pages.enter_context(urlopen(request)).readline() == b"id: 2\n"
        jet.delete_stream("ORDERS")
        status, body = ask(f"{url}/orders", b'{"item": "tea"}', Idempotency_Key="4", **JSON)
        assert (status, "orders.new" in body["detail"]) == (503, True)


def test_django_stores_an_order_and_its_event_in_one_transaction(
    server: NatsServer, jet: js_sync.JetStream, tmp_path: Path
) -> None:
    program = FOLDER / "django_shop.py"
    database = {"SHOP_DB": str(tmp_path / "shop.db")}
    environment = os.environ | database | {"TWINSTREAM_URL": server.url}
    create = [sys.executable, str(program), "create"]
    subprocess.run(create, env=environment, check=True, timeout=LONGEST)
    command = [*command_of(program, "gunicorn"), "--bind", "127.0.0.1:0"]
    with serving(command, server, tmp_path, **database) as url:
        for number, item in enumerate(("tea", "oil"), 1):
            placed = ask(f"{url}/orders", urlencode({"item": item}).encode())
            assert placed == (201, {"number": number})
    relay = subprocess.Popen([sys.executable, str(program), "relay"], env=environment)
    try:
        stream = jet.bind_stream("ORDERS")
        soon(lambda: "ORDERS" in set(jet.stream_names()))
        soon(lambda: stream.info().state.messages == 2)
        relay.send_signal(signal.SIGTERM)
        assert relay.wait(LONGEST) == 0
    finally:
        relay.kill()
    assert [(each.subject, json.loads(each.data)["item"]) for each in stream.read()] == [
        *(("orders.1.placed", "tea"), ("orders.2.placed", "oil"))
    ]


@pytest.mark.parametrize("is_preloaded", [True, False])
def test_each_process_of_a_prefork_server_has_its_connection(
    server: NatsServer, jet: js_sync.JetStream, tmp_path: Path, is_preloaded: bool
) -> None:
    program = FOLDER / "prefork_clicks.py"
    run(command_of(program, "twinstream"), server, tmp_path)
    command = [*command_of(program, "gunicorn"), "--bind", "127.0.0.1:0"]
    if not is_preloaded:
        command.remove("--preload")
    processes: set[int] = set()

    def both_answered(url: str) -> bool:
        status, body = ask(f"{url}/start-page", b"")
        if status == 503:  # the server had no time
            return False
        assert status == 201, body
        processes.add(body["process"])
        return len(processes) == 2

    with serving(command, server, tmp_path) as url:
        soon(lambda: both_answered(url))
        assert ask(f"{url}/no.page", b"")[0] == 404
        stored = jet.get_stream("CLICKS").info().state.messages
        assert stored >= 2
        jet.delete_stream("CLICKS")
        assert ask(f"{url}/start-page", b"")[0] == 503


def test_probes_say_what_is_wrong(tmp_path: Path) -> None:
    with NatsServer(start_timeout=300) as server:
        command = [sys.executable, str(FOLDER / "probes.py"), server.url, "0"]
        with serving(command, server, tmp_path) as url:
            assert ask(f"{url}/live") == ask(f"{url}/ready") == (200, [])
            soon(lambda: ask(f"{url}/health") == (200, []))
            assert ask(f"{url}/other") == (503, ["no probe /other"])
            with js_sync.connect(server.url, **UNHURRIED) as nc:
                stream = nc.jetstream(timeout=30).get_stream("ORDERS")
                config = js_sync.ConsumerConfig(durable_name="idle")
                stream.create_consumer(config)
                nc.jetstream(timeout=30).publish("orders.1", b"tea")
            soon(lambda: "packed orders.1" in (tmp_path / "log.txt").read_text())
            waits = "1 message waits, and no client pulls"
            soon(lambda: ask(f"{url}/health") == (503, [waits]))
            server.kill()
            soon(lambda: ask(f"{url}/ready") == (503, ["not connected to a server"]))
            assert ask(f"{url}/live") == (200, [])
            server.restart()
            soon(lambda: ask(f"{url}/ready") == (200, []))


def test_the_tests_of_users_pass(tmp_path: Path) -> None:
    # They start their server themselves, in a process of their own.
    assert "with NatsServer() as server" in (FOLDER / "test_shop.py").read_text("utf-8")
    command = [*command_of(FOLDER / "test_shop.py", "pytest"), "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", *command, f"--rootdir={tmp_path}", "-c", os.devnull]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_cells_of_the_notebook_run(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter compiles each cell with this flag, and runs it in the event loop of the kernel."""
    monkeypatch.setenv("TWINSTREAM_URL", server.url)
    notebook = json.loads((FOLDER / "notebook.ipynb").read_text("utf-8"))
    names: dict[str, Any] = {}

    async def run_all() -> None:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                flag = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                code = compile("".join(cell["source"]), "<cell>", "exec", flags=flag)
                result = eval(code, names)
                if result is not None:
                    await result

    asyncio.run(run_all())
    assert names["readings"] == [(n + 1, f"readings.{n % 2}", 20.0 + n) for n in range(5)]
    assert names["last"].text == "24"
    assert names["nc"].is_closed
    assert not any(cell.get("outputs") for cell in notebook["cells"])


# ---- what is not run here: containers, systemd, Kubernetes


def check_program(words: list[str], folder: Path = FOLDER) -> None:
    """Assert that a command is `twinstream` with existing options, or a program with arguments."""
    if words[0] == "twinstream":
        groups: list[click.Command] = [twinstream]
        for word in words[1:]:
            if isinstance(groups[-1], click.Group):
                found = groups[-1].get_command(click.Context(groups[-1]), word)
                groups += [found] if found is not None else []
        options = {name for group in groups for each in group.params for name in each.opts}
        assert len(groups) > 1
        assert {word for word in words if word.startswith("-")} <= options
        return
    assert words[0].split("/")[-1] == "python"
    program = folder / Path(words[1]).name
    main = re.search(r"^(?:async )?def main\((.*?)\)", program.read_text("utf-8"), re.MULTILINE)
    assert main is not None
    assert len(words[2:]) == main[1].count(": str")


def test_containers_of_compose_have_what_they_name() -> None:
    composed = yaml.safe_load((EXAMPLES / "compose.yaml").read_text("utf-8"))
    services = composed["services"]
    build = services["packer"]["build"]
    context = EXAMPLES / build["context"]
    assert (context / build["dockerfile"]).is_file()
    check_program(services["packer"]["command"])
    options = run_help("nats-server")
    for word in services["nats"]["command"]:
        assert not word.startswith("-") or re.search(rf"{word}\b", options), word
    (supported,) = re.findall(
        r"nats-server \| [\d.]+ to ([\d.]+)", (ROOT / "README.md").read_text("utf-8")
    )
    assert services["nats"]["image"].startswith(f"nats:{supported}-")
    assert set(services["packer"]["depends_on"]) < set(services)
    used = {volume.partition(":")[0] for volume in services["nats"]["volumes"]}
    assert used == set(composed["volumes"])


def run_help(command: str) -> str:
    path = Path(sys.executable).parent / command
    done = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=LONGEST)
    return done.stdout + done.stderr


def test_the_image_has_what_it_copies_and_runs() -> None:
    text = re.sub(r"^#.*\n", "", (EXAMPLES / "Dockerfile").read_text("utf-8"), flags=re.M)
    steps = [line.split(" ", 1) for line in text.splitlines() if line]
    assert {name for name, _ in steps} <= {
        *("FROM", "COPY", "RUN", "WORKDIR", "USER", "EXPOSE", "CMD")
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [extras] = re.findall(r"/src\[(.+?)\]", text)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for name, rest in steps:
        if name == "COPY" and not rest.startswith("--from"):
            assert (ROOT / rest.split()[0]).exists(), rest
        if name == "CMD":
            check_program(json.loads(rest))
    versions = re.findall(r"FROM python:([\d.]+)-slim", text)
    assert len(set(versions)) == 1
    assert any(each.endswith(f":: {versions[0]}") for each in project["classifiers"])


def test_the_unit_of_systemd_runs_an_example(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(FOLDER / "worker.service")
    service = unit["Service"]
    check_program(shlex.split(service["ExecStart"]), EXAMPLES)
    assert service["KillSignal"] == "SIGTERM"
    assert int(service["TimeoutStopSec"]) > 30
    assert unit["Install"]["WantedBy"] == "multi-user.target"
    # It names unknown keys, where it is installed.
    if verify := shutil.which("systemd-analyze"):
        text = (FOLDER / "worker.service").read_text("utf-8")
        copy = tmp_path / "worker.service"
        copy.write_text(text.replace("/opt/shop/venv/bin/python", sys.executable))
        done = subprocess.run([verify, "verify", str(copy)], capture_output=True, text=True)
        assert copy.name not in done.stderr, done.stderr


def test_kubernetes_asks_for_probes_that_the_program_has() -> None:
    deployment, job = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8"))
    pod = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > 30
    [container] = pod["spec"]["containers"]
    check_program(container["command"])
    assert container["command"][-1] == str(container["ports"][0]["containerPort"])
    program = (FOLDER / "probes.py").read_text("utf-8")
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        assert f'"{probe["path"]}"' in program
        assert probe["port"] == container["ports"][0]["name"]
    [health] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    check_program(health["command"])


# ---- the page


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.stem)
def test_a_program_is_short_and_says_how_to_run_it(program: Path) -> None:
    text = program.read_text("utf-8")
    assert 20 <= len(text.splitlines()) <= 80
    assert re.search(rf"\b{program.stem}\b", ast.get_docstring(ast.parse(text)) or "")


def test_the_page_links_every_recipe() -> None:
    page = PAGE.read_text("utf-8")
    files = [*FOLDER.iterdir(), EXAMPLES / "Dockerfile", EXAMPLES / "compose.yaml"]
    for path in files:
        if path.is_file():
            assert f"](../{path.relative_to(ROOT).as_posix()})" in page, path.name


def test_excerpts_of_the_page_are_in_the_programs() -> None:
    programs = [path.read_text("utf-8") for path in (*PROGRAMS, *EXAMPLES.glob("*.py"))]
    excerpts = blocks(PAGE, "py")
    assert excerpts
    for excerpt in excerpts:
        assert any(excerpt in text for text in programs), excerpt


def test_files_that_no_test_runs_say_so() -> None:
    for name in ("Dockerfile", "compose.yaml", "recipes/worker.service", "recipes/kubernetes.yaml"):
        assert "Not run here." in (EXAMPLES / name).read_text("utf-8"), name
