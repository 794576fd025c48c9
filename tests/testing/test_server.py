"""The helper that runs real servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak import LONGEST
from twinstream.testing import BinaryNotFound, NatsServer, ServerStartError, find_binary


def greeting(server: NatsServer) -> dict[str, object]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as link:
        line = link.makefile("rb").readline()
    assert line.startswith(b"INFO ")
    greeted: dict[str, object] = json.loads(line[5:])
    return greeted


def eventually(condition: Callable[[], bool], seconds: float = LONGEST) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def test_a_started_server_speaks_with_jetstream(server: NatsServer) -> None:
    about = greeting(server)
    assert about["jetstream"] is True
    assert about["version"] == server.version
    assert server.url == f"nats://127.0.0.1:{server.port}"


def test_jetstream_can_be_left_out(server_factory: Callable[..., NatsServer]) -> None:
    assert "jetstream" not in greeting(server_factory(jetstream=False))


def test_domain_and_extra_configuration_reach_the_server(
    server_factory: Callable[..., NatsServer],
) -> None:
    server = server_factory("max_payload: 4096", domain="hub", jetstream_config="max_file: 1MB")
    about = greeting(server)
    assert about["domain"] == "hub"
    assert about["max_payload"] == 4096
    with urllib.request.urlopen(f"{server.monitoring_url}/jsz", timeout=60) as answer:
        assert json.load(answer)["config"]["max_storage"] == 1024**2


def test_killed_server_restarts_on_its_port(
    server_factory: Callable[..., NatsServer],
) -> None:
    server = server_factory()
    port, store = server.port, server.store_dir
    server.kill()
    assert not server.running
    assert who_answers(port) == ""
    server.restart()
    assert (server.port, server.store_dir) == (port, store)
    assert greeting(server)["port"] == port


def test_running_server_accepts_another_configuration(
    server_factory: Callable[..., NatsServer],
) -> None:
    server = server_factory("max_payload: 4096")
    pid = server.pid
    server.reload("max_payload: 8192")
    assert greeting(server)["max_payload"] == 8192
    with pytest.raises(ServerStartError, match=r"server\.conf:"):
        server.reload("max_payload: many")
    server.restart()
    assert greeting(server)["max_payload"] == 8192
    server.reload("max_payload: 2048")
    server.restart()
    assert greeting(server)["max_payload"] == 2048
    server.reload("max_payload: 1024")
    assert (server.pid == pid, greeting(server)["max_payload"]) == (False, 1024)


def test_nothing_is_left_after_stop() -> None:
    server = NatsServer().start()
    folder, pid = server.folder, server.pid
    assert pid is not None
    server.stop()
    server.stop()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_refused_configuration_is_shown_with_the_log() -> None:
    with pytest.raises(ServerStartError, match=r"the process ended[\s\S]*Parse error"):
        NatsServer("no such { thing").start()


def test_used_port_is_reported_with_the_log(server: NatsServer) -> None:
    other = NatsServer(f'listen: "127.0.0.1:{server.port}"')
    with pytest.raises(ServerStartError, match="address already in use"):
        other.start()


def test_unstarted_server_is_reported() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        _ = NatsServer().url


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_paused_server_is_silent_until_it_continues(
    server_factory: Callable[..., NatsServer],
) -> None:
    server = server_factory()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as link:
        reader = link.makefile("rb")
        reader.readline()
        link.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        assert reader.readline() == b"PONG\r\n"
        server.pause()
        link.sendall(b"PING\r\n")
        link.settimeout(0.1)
        with pytest.raises(TimeoutError):
            link.recv(64)
        server.resume()
        link.settimeout(60)
        assert link.recv(64) == b"PONG\r\n"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_server_and_its_folder_go_with_a_killed_parent() -> None:
    program = (
        "import os, signal; from twinstream.testing import NatsServer\n"
        "server = NatsServer().start()\n"
        "print(server.port, server.folder, server.name, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL
    port, folder, name = ended.stdout.split()
    eventually(lambda: not Path(folder).exists())
    eventually(lambda: name not in who_answers(int(port)))


def who_answers(port: int) -> str:
    """Return what a server on the port says first: another one may be there already."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            return link.recv(4096).decode()
    except ConnectionError:
        return ""


def test_a_version_that_is_no_version_is_refused() -> None:
    with pytest.raises(BinaryNotFound, match="write it like"):
        find_binary("../../etc")


def test_cached_version_is_taken_from_the_folder_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "2.11.0" / "nats-server"
    kept.parent.mkdir()
    kept.write_text("#!/bin/sh\necho nats-server: v2.11.0\n")
    kept.chmod(0o755)
    monkeypatch.setenv("TWINSTREAM_SERVERS", str(tmp_path))
    assert find_binary("2.11.0") == kept
