"""A pipeline leaves its password nowhere: not in its state, tables, report or output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

import js_sync
from js_cli.pipeline.board import told
from js_cli.pipeline.page import page
from js_models import StreamConfig
from js_spark.pipeline.batch_log import BatchLog
from js_spark.pipeline.config import PipelineConfig
from js_spark.pipeline.folders import Folders
from js_spark.pipeline.happenings import Happening
from js_spark.pipeline.runner import run
from js_testing import NatsServer
from tests.spark.pipelines import config_of, counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CANARY = "canary-8a2c"
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
    with js_sync.connect(guarded.url, user="reader", password=CANARY) as nc:
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

    log = list(BatchLog(Folders(config.path).source("S").journal).entries().values())
    texts = {
        "report": page(config.name, config.sink, {"S": log}),
        "config": repr(config) + str(config),
        "events": repr(heard) + "".join(map(told, heard)) + repr(wrong),
        "output": "".join(capfd.readouterr()),
    }
    assert [name for name, text in texts.items() if CANARY in text] == []
    files = [file for file in (tmp_path / "lake").rglob("*") if file.is_file()]
    assert len(files) > 8
    assert [file for file in files if CANARY.encode() in file.read_bytes()] == []
