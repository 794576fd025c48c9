"""Secrets stay out of plans, event logs, errors and printed objects."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from tests.certificates import make_certificates
from tests.operators import make_operator, make_pair
from tests.unhurried import connected
from twinstream.spark.errors import OptionError
from twinstream.spark.sink.options import SinkOptions
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange
from twinstream.spark.source.read_columns import ReadColumns
from twinstream.testing import NatsServer

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
    from twinstream.models import StreamConfig

    with connected(guarded.url, user="reader", password=CANARY) as nc:
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


def test_wrong_password_is_reported_without_it(spark: SparkSession, guarded: NatsServer) -> None:
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
    assert repr(SequenceRange("S", 1, 9, "direct")) == "SequenceRange(S [1, 9))"


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
            "nats.passwordEnv": "NATS_CANARY_PASSWORD",
        }
    )
    with pytest.raises(OptionError, match="environment variable NATS_CANARY_PASSWORD is not set"):
        options.connection.connect()
    monkeypatch.setenv("NATS_CANARY_PASSWORD", CANARY)
    with options.connection.connect() as nc:
        nc.flush()


def test_a_credentials_file_by_path_by_variable_and_inline(
    server_factory: Callable[..., NatsServer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operator = make_operator()
    server = server_factory(operator.config, jetstream=False)
    path = tmp_path / "user.creds"
    path.write_text(operator.credentials)
    monkeypatch.setenv("NATS_CANARY_CREDENTIALS", operator.credentials)
    for option, value in {
        "nats.credentialsFile": str(path),
        "nats.credentialsEnv": "NATS_CANARY_CREDENTIALS",
        "nats.secretCredentials": operator.credentials,
    }.items():
        given = {"nats.servers": server.url, "stream": "S", option: value}
        connection = SourceOptions.parse(given).connection
        with connection.connect() as nc:
            nc.flush()
        seed = operator.credentials.split("SEED-----\n")[1].split("\n")[0]
        assert seed not in repr(connection)


def test_an_nkey_logs_in_and_is_not_shown(
    server_factory: Callable[..., NatsServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make_pair()
    server = server_factory(
        f"authorization {{ users: [{{ nkey: {pair.public} }}] }}", jetstream=False
    )
    monkeypatch.setenv("NATS_CANARY_SEED", pair.seed)
    for option, value in {
        "nats.nkeySeedEnv": "NATS_CANARY_SEED",
        "nats.secretNkeySeed": pair.seed,
    }.items():
        given = {"nats.servers": server.url, "stream": "S", option: value}
        connection = SourceOptions.parse(given).connection
        with connection.connect() as nc:
            nc.flush()
        assert pair.seed not in repr(connection)


def test_tls_with_a_client_certificate(
    spark: SparkSession, server_factory: Callable[..., NatsServer], tmp_path: Path
) -> None:
    import js_sync
    from twinstream.models import StreamConfig

    made = make_certificates(tmp_path)
    files = f'cert_file: "{made.server}", key_file: "{made.server_key}"'
    server = server_factory(f'tls {{ {files}, ca_file: "{made.authority}", verify: true }}')
    tls = js_sync.TlsOptions(
        ca_file=made.authority, cert_file=made.client, key_file=made.client_key
    )
    with connected(server.url, tls=tls) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="S", subjects=["s"], allow_direct=True))
        jet.publish("s", b"1")
    reader = spark.read.format("jetstream").options(
        **{
            "nats.servers": server.url,
            "nats.tls.caFile": made.authority,
            "nats.tls.certFile": made.client,
            "nats.tls.keyFile": made.client_key,
            "stream": "S",
        }
    )
    assert [row["seq"] for row in reader.load().collect()] == [1]


VARIABLES = ["nats.passwordEnv", "nats.tokenEnv", "nats.credentialsEnv", "nats.nkeySeedEnv"]
FILES = [
    "nats.credentialsFile",
    "nats.tls.caFile",
    "nats.tls.certFile",
    "nats.tls.keyFile",
    "jsonSchema",
]


def parse_with(option: str, value: str) -> SourceOptions:
    beside = {
        "nats.passwordEnv": {"nats.user": "u"},
        "nats.tls.keyFile": {"nats.tls.certFile": "c.pem"},
        "jsonSchema": {"valueFormat": "json"},
    }
    given = {"nats.servers": "h", "stream": "S", option: value, **beside.get(option, {})}
    if option != "jsonSchema":
        SinkOptions.parse(given)
    return SourceOptions.parse(given)


@pytest.mark.parametrize("option", VARIABLES)
def test_options_name_only_variables_that_are_meant_for_them(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NATS_PASSWORD", "TWINSTREAM_X"):
        parse_with(option, name)
    for listed in ("", "AWS_SECRET", "OTHER, AWS_SECRET_ACCESS_KEY_2"):
        monkeypatch.setenv("TWINSTREAM_ALLOWED_ENV", listed)
        with pytest.raises(OptionError, match="list it in TWINSTREAM_ALLOWED_ENV") as caught:
            parse_with(option, "AWS_SECRET_ACCESS_KEY")
        assert caught.value.option == option
    monkeypatch.setenv("TWINSTREAM_ALLOWED_ENV", "OTHER, AWS_SECRET_ACCESS_KEY")
    parse_with(option, "AWS_SECRET_ACCESS_KEY")


@pytest.mark.parametrize("option", FILES)
def test_options_name_only_files_that_are_meant_for_them(
    option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    for file in ("secrets/key", "key", "nats.creds", "nats.pem", "order.json"):
        (tmp_path / file).write_text('{"properties": {"id": {"type": "integer"}}}')
    own = {"nats.credentialsFile": "nats.creds", "jsonSchema": "order.json"}
    parse_with(option, str(tmp_path / own.get(option, "nats.pem")))
    file, outside = tmp_path / "secrets" / "key", tmp_path / "secrets" / ".." / "key"
    for listed, wanted in (("", file), (f"{file}2", file), (str(file.parent), outside)):
        monkeypatch.setenv("TWINSTREAM_ALLOWED_FILES", listed)
        with pytest.raises(OptionError, match="in TWINSTREAM_ALLOWED_FILES") as caught:
            parse_with(option, str(wanted))
        assert caught.value.option == option
    for listed in (str(file), f"/nowhere:{tmp_path}/secrets/"):
        monkeypatch.setenv("TWINSTREAM_ALLOWED_FILES", listed)
        parse_with(option, str(file))


def test_a_schema_is_read_once_on_the_driver(tmp_path: Path) -> None:
    """Executors get its text: they may have no such file, or a newer one."""
    file = tmp_path / "order.json"
    file.write_text('{"properties": {"id": {"type": "integer"}}}')
    options = parse_with("jsonSchema", str(file))
    file.unlink()
    shipped: SourceOptions = pickle.loads(pickle.dumps(options))
    assert ReadColumns(shipped).payload.names == ["id"]


@pytest.mark.parametrize(
    ("given", "option", "reason"),
    [
        ({"nats.token": "t", "nats.user": "u"}, "nats.token", "combined with a user"),
        (
            {"nats.secretNkeySeed": "S", "nats.token": "t"},
            "nats.secretNkeySeed",
            "combined with a token",
        ),
        (
            {"nats.secretNkeySeed": "S", "nats.nkeySeedEnv": "NATS_E"},
            "nats.secretNkeySeed",
            "combined with nats.nkeySeedEnv",
        ),
        ({"nats.password": "p"}, "nats.password", "needs nats.user"),
        ({"nats.tls.keyFile": "k.key"}, "nats.tls.keyFile", "needs nats.tls.certFile"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    given: dict[str, str], option: str, reason: str
) -> None:
    with pytest.raises(OptionError, match=reason) as caught:
        SourceOptions.parse({"nats.servers": "h", "stream": "S"} | given)
    assert caught.value.option == option
