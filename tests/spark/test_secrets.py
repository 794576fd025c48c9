"""Secrets stay out of plans, event logs, errors and printed objects."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from js_spark.errors import OptionError
from js_spark.options import SourceOptions
from js_spark.plan import SequenceRange
from js_testing import NatsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CANARY = "canary-5f1e"
AUTH = f'authorization {{ users: [{{user: "reader", password: "{CANARY}"}}] }}'


@pytest.fixture
def guarded(server_factory: Callable[..., NatsServer]) -> NatsServer:
    return server_factory(AUTH)


def test_reads_with_a_password_and_shows_it_nowhere(
    spark: SparkSession, guarded: NatsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    import js_sync
    from js_models import StreamConfig

    with js_sync.connect(guarded.url, user="reader", password=CANARY) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="S", subjects=["s"], allow_direct=True))
        jet.publish("s", b"1")
    reader = spark.read.format("jetstream").options(
        **{
            "nats.servers": guarded.url,
            "nats.user": "reader",
            "nats.password": CANARY,
            "stream": "S",
        }
    )
    rows = reader.load()
    assert [row["seq"] for row in rows.collect()] == [1]
    rows.explain(True)
    plan = rows._jdf.queryExecution().toString()
    assert CANARY not in plan + capfd.readouterr().out


def test_a_wrong_password_is_told_without_it(spark: SparkSession, guarded: NatsServer) -> None:
    reader = spark.read.format("jetstream").options(
        **{
            "nats.servers": guarded.url,
            "nats.user": "reader",
            "nats.password": "wrong-" + CANARY,
            "stream": "S",
        }
    )
    with pytest.raises(PySparkException, match="Authorization Violation") as caught:
        reader.load().collect()
    assert CANARY not in str(caught.value)


def test_printed_objects_mask_secrets() -> None:
    given = {"nats.servers": "h", "stream": "S"}
    with_password = SourceOptions.parse(given | {"nats.user": "u", "nats.password": CANARY})
    with_token = SourceOptions.parse(given | {"nats.token": CANARY})
    for options in (with_password, with_token):
        assert CANARY not in repr(options) + str(options)
        assert pickle.loads(pickle.dumps(options)) == options
    assert repr(SequenceRange("S", 1, 9, direct=True)) == "SequenceRange(S [1, 9))"


def test_servers_with_user_info_are_refused_without_showing_it() -> None:
    with pytest.raises(OptionError) as caught:
        SourceOptions.parse({"nats.servers": f"nats://u:{CANARY}@h", "stream": "S"})
    assert CANARY not in str(caught.value)
    assert caught.value.option == "nats.servers"


def test_secrets_by_reference(monkeypatch: pytest.MonkeyPatch, guarded: NatsServer) -> None:
    options = SourceOptions.parse(
        {
            "nats.servers": guarded.url,
            "stream": "S",
            "nats.user": "reader",
            "nats.passwordEnv": "CANARY_PASSWORD",
        }
    )
    with pytest.raises(OptionError, match="environment variable CANARY_PASSWORD is not set"):
        options.connection.connect()
    monkeypatch.setenv("CANARY_PASSWORD", CANARY)
    with options.connection.connect() as nc:
        nc.flush()
