"""Start and control one real `nats-server` process."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from twinstream.testing.binary import binary_version, find_binary
from twinstream.testing.config import HOST, server_config
from twinstream.testing.guard import Guard
from twinstream.testing.ports import free_ports

_POLL: Final = 0.01
_LOG_TAIL: Final = 30
_RELOADED: Final = "Reloaded server configuration"
_NOT_RELOADED: Final = "Failed to reload server configuration"
# An opener that ignores the environment's proxy settings, because the server runs locally.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerStartError(Exception):
    """Raised if a server or cluster did not start, or did not reload its configuration.

    The text contains the end of a server's log.

    What to do: Read the log in the text; usually the configuration is wrong or a port is in use.
    """


class NatsServer:
    """A `nats-server` on a free loopback port, with JetStream in a temporary folder.

    Use it as a context manager, or call `start` and `stop`. When this process ends, the server is
    killed, even if this process was itself killed (POSIX).

    Args:
        config: text to append to the configuration file, which already has `listen`, `http`,
            `ports_file_dir` and `jetstream`.
        version: the version of the server, by default the installed one.
        jetstream: whether JetStream is on.
        domain: the JetStream domain.
        jetstream_config: text to append to the `jetstream` block of the configuration.
        name: the server's name, by default a random one.
        store_dir: the folder of the JetStream store, by default one in the temporary folder.
        start_timeout: the maximum duration of the start in seconds.
    """

    def __init__(
        self,
        config: str | None = None,
        version: str | None = None,
        *,
        jetstream: bool = True,
        domain: str | None = None,
        jetstream_config: str = "",
        name: str | None = None,
        store_dir: Path | None = None,
        start_timeout: float = 20.0,
    ) -> None:
        self.binary: Final = find_binary(version)
        """Path of the program."""
        self.version: Final = binary_version(self.binary)
        self.name: Final = name or f"test-{secrets.token_hex(4)}"
        self._config = config or ""
        self._jetstream = jetstream
        self._domain = domain
        self._jetstream_config = jetstream_config
        self._given_store = store_dir
        self._start_timeout = start_timeout
        self._folder: Path | None = None
        self._port: int | None = None
        self._monitoring_port: int | None = None
        # The ports in the configuration, for clients and for monitoring. A reload must not change
        # them.
        self._config_ports: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    # -- address and state

    @property
    def port(self) -> int:
        """The port for clients. `restart` keeps it. Raises `RuntimeError` before the start."""
        if self._port is None:
            raise RuntimeError("the server has not been started; its port is not known yet")
        return self._port

    @property
    def url(self) -> str:
        """The address for clients, without credentials."""
        return f"nats://{HOST}:{self.port}"

    @property
    def monitoring_url(self) -> str:
        """The address of the server's HTTP monitoring."""
        if self._monitoring_port is None:
            raise RuntimeError("the server has not been started; its port is not known yet")
        return f"http://{HOST}:{self._monitoring_port}"

    @property
    def folder(self) -> Path:
        """The folder with configuration, log and store. `stop` removes it."""
        if self._folder is None:
            raise RuntimeError("the server has not been started; it has no folder")
        return self._folder

    @property
    def store_dir(self) -> Path:
        """The folder of the JetStream store."""
        return self._given_store or self.folder / "store"

    @property
    def pid(self) -> int | None:
        """The process ID, or `None` while the server is down."""
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        """Whether the server process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The whole log of the server, including entries from before a restart."""
        path = self.folder / "server.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    # -- start and stop

    def start(self) -> Self:
        """Start the server unless it is running, and return when it responds.

        Raises `ServerStartError` if the server ends or does not respond within `start_timeout`.
        """
        if self.running:
            return self
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="twinstream-server-"))
        with ExitStack() as undo:
            undo.callback(self.stop)
            try:
                self._launch()
                self._wait_until_ready()
            except TimeoutError as failure:
                raise self._start_error(failure) from None
            undo.pop_all()
        return self

    def stop(self) -> None:
        """Stop the server and remove its folder. A second call has no effect."""
        self._end(signal.SIGTERM)
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def kill(self) -> None:
        """End the server at once (SIGKILL), like a crash. Keep store and port for `restart`."""
        self._end(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)

    def shut_down(self) -> None:
        """Shut the server down normally. Keep store and port for `restart`."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Shut the server down if it is running, and start it again on the same port and store."""
        self._end(signal.SIGTERM)
        self.start()

    def pause(self) -> None:
        """Freeze the process. Connections stay open, but the server does not respond (POSIX)."""
        self._signal(signal.SIGSTOP)
        if self._process is not None:
            # The signal is asynchronous. Wait until the process has stopped, because the server
            # still responds before that.
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Resume a frozen process (POSIX)."""
        self._signal(signal.SIGCONT)

    def lame_duck(self) -> None:
        """Start lame duck mode, in which the server disconnects its clients and ends (POSIX)."""
        self._signal(signal.SIGUSR2)

    def reload(self, config: str) -> None:
        """Reload the running server with another `config`, and return after the reload (POSIX).

        Raises `ServerStartError` if the server refuses the new configuration and keeps the previous
        one, or if it reports no reload within `start_timeout`.
        """
        before, last = len(self.log), self._config
        self._config = config
        self._write_config()
        self._signal(signal.SIGHUP)
        deadline = time.monotonic() + self._start_timeout
        while _RELOADED not in self.log[before:]:
            if _NOT_RELOADED in self.log[before:] or time.monotonic() > deadline:
                self._config = last
                raise ServerStartError(
                    f"the server did not reload its configuration:\n{self.log[before:]}"
                )
            time.sleep(_POLL)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = self.url if self._port is not None else "not started"
        return f"<NatsServer {self.version} {where}{'' if self.running else ' (down)'}>"

    # -- inside

    def _write_config(self) -> Path:
        """Write the configuration file of the server, and return its path."""
        text = server_config(
            name=self.name,
            port=self._config_ports[0],
            monitoring_port=self._config_ports[1],
            ports_folder=self.folder,
            store=self.store_dir if self._jetstream else None,
            domain=self._domain,
            jetstream_extra=self._jetstream_config,
            extra=self._config,
        )
        config = self.folder / "server.conf"
        config.write_text(text, "utf-8")
        return config

    def _launch(self) -> None:
        self._config_ports = self._known_ports() or free_ports(2)
        config = self._write_config()
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self.binary), "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that Ctrl-C ends the program before the server
            )
        self._guard = Guard(self._process.pid, self.folder)

    def _wait_until_ready(self) -> None:
        """Wait until the server responds. Raises `TimeoutError` if it ends or takes too long."""
        deadline = time.monotonic() + self._start_timeout
        while not (self._learn_ports() and self._healthy()):
            if not self.running:
                raise TimeoutError("the process ended")
            if time.monotonic() > deadline:
                raise TimeoutError(f"no response within {self._start_timeout:g} s")
            time.sleep(_POLL)

    def _known_ports(self) -> list[int]:
        ports = self._port, self._monitoring_port
        return [port for port in ports if port is not None]

    def _learn_ports(self) -> bool:
        if self._process is None:
            return False
        path = self.folder / f"{self.binary.name}_{self._process.pid}.ports"
        try:
            ports: dict[str, list[str]] = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):  # the file is missing or incomplete
            return False
        self._port = urlsplit(ports["nats"][0]).port
        self._monitoring_port = urlsplit(ports["monitoring"][0]).port
        return True

    def _healthy(self) -> bool:
        # Check only the server itself, because in a cluster the streams wait for other servers.
        address = f"{self.monitoring_url}/healthz?js-server-only=true"
        try:
            with _OPENER.open(address, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _start_error(self, reason: BaseException) -> ServerStartError:
        tail = "\n".join(f"  | {line}" for line in self.log.splitlines()[-_LOG_TAIL:])
        return ServerStartError(
            f"nats-server {self.version} ({self.binary}) did not start: {reason}\n"
            f"the end of its log:\n{tail or '  | (empty)'}"
        )

    def _signal(self, number: signal.Signals) -> None:
        if not self.running or self._process is None:
            raise RuntimeError("the server is not running")
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        """Send a signal to the server, and wait for its end. Kill it if it runs for 10 s more."""
        guard, self._guard = self._guard, None
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            if number is signal.SIGTERM and os.name == "posix":
                process.send_signal(signal.SIGCONT)  # a frozen process does not handle SIGTERM
            process.send_signal(number)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if guard is not None:
            guard.dismiss()
