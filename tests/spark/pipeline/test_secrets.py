"""A pipeline leaves its secrets nowhere: not in state, tables, reports, plans, logs or output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

import js_sync
from tests.operators import make_pair
from tests.quick_java import QUICK_JAVA
from tests.soak import LONG, LONGEST
from tests.spark.pipelines import config_of, counted
from tests.spark.processes import job_environment
from tests.unhurried import connected
from twinstream.cli.pipeline.page import page
from twinstream.cli.pipeline.progress_output import sentence as board_sentence
from twinstream.models import StreamConfig
from twinstream.spark.pipeline.pipeline_events import Happening
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.config import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.state.source_state import journal_of
from twinstream.testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = Path(__file__).parents[1] / "secrets_job.py"
CANARY = "canary-8a2c"
TOKEN = "canary-77b0-token"
AUTH = f'authorization {{ users: [{{user: "reader", password: "{CANARY}"}}] }}'


def with_password(config: PipelineConfig, password: str) -> PipelineConfig:
    (source,) = config.sources
    secret = {"nats.user": "reader", "nats.password": password}
    return evolve(config, sources=(evolve(source, options={**source.options, **secret}),))


def test_the_password_is_nowhere(
    spark: SparkSession,
    server_factory: Callable[..., NatsServer],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    guarded = server_factory(AUTH)
    with connected(guarded.url, user="reader", password=CANARY) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="S", subjects=["s"], allow_direct=True))
        jet.publish("s", b"1")
    bare = config_of(tmp_path, "delta", guarded.url, 'stream = "S"\ncommit = "purge"')
    heard: list[Happening] = []

    wrong = run(spark, with_password(bare, "wrong-" + CANARY), once=True, tell=heard.append)
    assert "Authorization Violation" in wrong["S"]
    config = with_password(bare, CANARY)
    assert run(spark, config, once=True, tell=heard.append) == {}
    assert counted(tmp_path / "lake" / "s", "delta", "seq") == (1, 1)

    log = list(journal_of(Folders(config.path), config.sources[0]).entries().values())
    texts = {
        "report": page(config.name, config.sink, {"S": log}),
        "config": repr(config) + str(config),
        "events": repr(heard) + "".join(map(board_sentence, heard)) + repr(wrong),
        "output": "".join(capfd.readouterr()),
    }
    assert [name for name, text in texts.items() if CANARY in text] == []
    files = [file for file in (tmp_path / "lake").rglob("*") if file.is_file()]
    assert len(files) > 8
    assert [file for file in files if CANARY.encode() in file.read_bytes()] == []


def test_with_all_that_spark_writes_down(
    server_factory: Callable[..., NatsServer], tmp_path: Path
) -> None:
    """Event log, logs as JSON, plans, state, report and output, by reference and inline."""
    pair = make_pair()
    users = server_factory(
        f'authorization {{ users: [{{user: "reader", password: "{CANARY}"}},'
        f" {{nkey: {pair.public}}}] }}"
    )
    with connected(users.url, user="reader", password=CANARY) as nc:
        fill(nc)
    tasks = [f"password-env={users.url}", f"nkey-inline={users.url}"]
    if LONG:
        guarded = server_factory(f'authorization {{ token: "{TOKEN}" }}')
        with connected(guarded.url, token=TOKEN) as nc:
            fill(nc)
        tasks += [f"nkey-env={users.url}", f"password-inline={users.url}"]
        tasks += [f"token-env={guarded.url}", f"token-inline={guarded.url}"]
    secrets = {
        "NATS_CANARY_PASSWORD": CANARY,
        "NATS_CANARY_TOKEN": TOKEN,
        "NATS_CANARY_SEED": pair.seed,
    }
    with (tmp_path / "output").open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(JOB), str(tmp_path), *tasks],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | QUICK_JAVA | job_environment() | secrets,
            timeout=LONGEST,
            check=False,
        )
    texts = {
        str(file.relative_to(tmp_path)): file.read_bytes()
        for file in tmp_path.rglob("*")
        if file.is_file()
    }
    said = texts["output"].decode()
    assert done.returncode == 0, said[-4000:]
    found = [
        (name, variable)
        for name, text in texts.items()
        for variable, secret in secrets.items()
        if secret.encode() in text
    ]
    assert found == []
    # All of it was there to be found: the pipelines ran, and what they left knows of the options.
    assert said.count("Authorization Violation") >= len(tasks)
    assert '"event":"landed"' in said
    events = b"".join(text for name, text in texts.items() if name.startswith("events/"))
    assert b"(redacted)" in events
    assert b"jetstream" in events
    assert b'"level":"INFO"' in texts["spark.log"]
    names = " ".join(texts)
    for part in ("/offsets/0", "report.html", "/landed/000000000", "/copied/", "streams.py"):
        assert part in names
    assert b"NATS_CANARY_PASSWORD" in texts["password-env/orders.toml"]


def fill(nc: js_sync.Connection) -> None:
    jet = nc.jetstream()
    jet.create_stream(StreamConfig(name="S", subjects=["s.>"], allow_direct=True))
    jet.publish("s.1", b"1")
