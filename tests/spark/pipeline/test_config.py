"""A pipeline's file: what it means, and what is said of mistakes in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.huge import huge
from twinstream.spark.errors import ConfigError
from twinstream.spark.pipeline import PipelineConfig, read_config

SCHEMA = '{"properties": {"id": {"type": "integer"}}}'
SOURCE = '[[source]]\nstream = "ORDERS"\n'
HEAD = 'path = "lake"\n[nats]\nservers = "nats://h"\n'


def read(tmp_path: Path, text: str, **options: str) -> PipelineConfig:
    file = tmp_path / "orders.toml"
    file.write_text(text)
    return read_config(file, **options)


def test_the_least_that_is_needed(tmp_path: Path) -> None:
    config = read(tmp_path, HEAD + SOURCE)
    assert (config.name, config.path, config.sink) == ("orders", tmp_path / "lake", "parquet")
    assert config.engine == "spark"
    (source,) = config.sources
    assert (source.name, source.table, source.format) == ("ORDERS", "orders", "raw")
    assert (source.start, source.commit, source.bookmark) == ("earliest", "none", "orders-ORDERS")
    assert source.options == {
        "maxMessagesPerTrigger": "4000000",
        "nats.servers": "nats://h", "stream": "ORDERS", "valueFormat": "raw",
    }  # fmt: skip


def test_only_white_space_of_the_server_is_cut_off_a_name(tmp_path: Path) -> None:
    config = read(tmp_path, HEAD + '[[source]]\nname = "o"\nstream = " ORDERS\u00a0 "\n')
    assert config.sources[0].options["stream"] == "ORDERS\xa0"


def test_paths_may_begin_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "order.json").write_text(SCHEMA)
    monkeypatch.setenv("HOME", str(home))
    source = SOURCE + 'format = "json"\nschema = "~/order.json"'
    head = 'path = "~/lake"\n[nats]\nservers = "nats://h"\ncredentials_file = "~/a.creds"\n'
    config = read(tmp_path, head + source)
    options = config.sources[0].options
    assert config.path == home / "lake"
    assert options["jsonSchema"] == SCHEMA
    assert options["nats.credentialsFile"] == str(home / "a.creds")


def test_schema_comes_from_the_configuration_of_the_stream(tmp_path: Path) -> None:
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    (contracts / "order.schema.json").write_text(SCHEMA)
    (contracts / "orders.yaml").write_text(
        "name: ORDERS\nsubjects: [orders.>]\npayloads: {orders.new.*: order.schema.json}\n"
    )
    source = SOURCE + 'format = "json"\npayloads = "contracts/orders.yaml"\n'
    config = read(tmp_path, HEAD + source + 'subjects = ["orders.new.*"]')
    options = config.sources[0].options
    assert json.loads(options["jsonSchema"]) == json.loads(SCHEMA)
    assert "payloads" not in options
    reason = "source ORDERS: payloads: .*not all messages of orders.> have a schema"
    with pytest.raises(ConfigError, match=reason):
        read(tmp_path, HEAD + source)


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text(SCHEMA)
    config = read(
        tmp_path,
        """
        name = "shop"
        path = "lake"
        sink = "delta"
        every = "1m"
        [nats]
        servers = ["nats://a", "nats://b"]
        user = "reader"
        password_env = "NATS_SHOP_PASSWORD"
        [spark]
        master = "local[2]"
        [spark.settings]
        spark.driver.memory = "2g"
        [restart]
        first = "500ms"
        longest = "5m"
        most = 9
        [[source]]
        stream = "ORDERS"
        name = "orders"
        table = "sales"
        format = "json"
        schema = "order.json"
        subjects = ["orders.>"]
        start = 7
        commit = "bookmark"
        bookmark = "lake"
        max_messages = 500
        rename = { number = "id", "no." = "id" }
        options = { minPartitions = 4, failOnDataLoss = false }
        [[source]]
        stream = "EVENTS"
        format = "advisory"
        prefix = "js_"
        commit = "purge"
        """,
        server="nats://other",
    )
    assert (config.name, config.sink, config.every) == ("shop", "delta", 60.0)
    assert (config.master, config.settings) == ("local[2]", {"spark.driver.memory": "2g"})
    restarts = config.restarts
    assert (restarts.first, restarts.longest, restarts.most) == (0.5, 300.0, 9)
    orders, events = config.sources
    assert orders.options == {
        "nats.servers": "nats://other",
        "nats.user": "reader",
        "nats.passwordEnv": "NATS_SHOP_PASSWORD",
        "stream": "ORDERS",
        "subject": "orders.>",
        "valueFormat": "json",
        "jsonSchema": SCHEMA,
        "maxMessagesPerTrigger": "500",
        "minPartitions": "4",
        "failOnDataLoss": "false",
    }
    assert orders.renames == {"number": "id", "no.": "id"}
    assert orders.source_options.renames == (("number", "id"), ("no.", "id"))
    assert (orders.start, orders.bookmark, orders.dead_letters) == (
        7, "lake", "dead_letters/source=orders",
    )  # fmt: skip
    assert (events.table, events.prefix, events.commit) == ("", "js_", "purge")
    assert events.options["maxMessagesPerTrigger"] == "4000000"


def test_batch_may_wait_for_more_messages_than_its_default_size(tmp_path: Path) -> None:
    options = 'options = { minMessagesPerTrigger = 9000000, maxTriggerDelay = "1h" }'
    (source,) = read(tmp_path, f"{HEAD}{SOURCE}{options}").sources
    assert source.source_options.max_messages_per_trigger == 9_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path = ", "orders.toml: is not TOML"),
        (SOURCE, "orders.toml: path: is required"),
        (HEAD, r"orders.toml: source: is required, at least once: write it as \[\[source\]\]"),
        ('path = "dbfs:/x"\n' + SOURCE, "dbfs: is not supported"),
        ("source = []\n" + HEAD, r"source: is required, at least once: write it as"),
        (
            'path = "lake"\nservers = "nats://h"\n' + SOURCE,
            r"orders.toml: servers: is not known here; it belongs into the table \[nats\]",
        ),
        (
            HEAD + SOURCE + 'servers = "nats://h"',
            r"source ORDERS: servers: is not known here; it belongs into the table \[nats\]",
        ),
        (HEAD + SOURCE + 'every = "1s"', "every: is not known here; it belongs above the first"),
        ('[nats]\nservers = "h"\npath = "lake"\n' + SOURCE, r"\[nats\]: path: is not known here"),
        ('path = "lake"\n[nats]\nserver = "h"\n' + SOURCE, "server: is not known; did you mean"),
        (HEAD + 'url = "nats://h"\n' + SOURCE, r"orders.toml: \[nats\]: url: is not known"),
        ('path = "lake"\n' + SOURCE, r"orders.toml: \[nats\]: servers: is required"),
        (
            'path = "lake"\n[nats]\nservers = 4222\n' + SOURCE,
            r"\[nats\]: servers: must be an address such as .* has a value of type int",
        ),
        (
            'path = "lake"\n[nats]\nservers = ["nats://h", 4222]\n' + SOURCE,
            r"\[nats\]: servers: must be an address such as .* has a value of type int",
        ),
        (HEAD + "user = ['a', 'b']\n" + SOURCE, r"\[nats\]: user: must be text"),
        (
            'path = "~nobody-of-this-name/lake"\n[nats]\nservers = "h"\n' + SOURCE,
            "path: begins in an unknown home folder",
        ),
        ('sinc = "delta"\n' + HEAD + SOURCE, "sinc: is not known; did you mean 'sink'"),
        ('sink = "detla"\n' + HEAD + SOURCE, "got 'detla'; did you mean 'delta'"),
        (
            'engine = "locale"\n' + HEAD + SOURCE,
            "engine: must be one of spark, local",
        ),
        ('every = "1 minute"\n' + HEAD + SOURCE, "every: must be a duration such as 500ms"),
        (
            HEAD + SOURCE + 'comit = "none"',
            "ORDERS: comit: is not known; did you mean 'commit'",
        ),
        (
            HEAD + SOURCE + 'format = "avro"',
            "must be one of raw, json, advisory, got 'avro'",
        ),
        (
            HEAD + '[[source]]\nstrem = "ORDERS"',
            "source 1: strem: is not known; did you mean 'stream'",
        ),
        (HEAD + "[[source]]\n", "source 1: stream: is required: the name of a stream"),
        ('pat = "lake"\n' + SOURCE, "orders.toml: pat: is not known; did you mean 'path'"),
        (HEAD + SOURCE + 'format = "json"', "schema: is required with format"),
        (HEAD + SOURCE + 'format = "json"\nschema = "no.json"', "schema: .*cannot be read"),
        (HEAD + SOURCE + 'schema = "x"', 'schema: needs format = "json"'),
        (HEAD + SOURCE + 'payloads = "x"', 'payloads: needs format = "json"'),
        (
            HEAD + SOURCE + 'format = "json"\nschema = "x"\npayloads = "y"',
            "payloads: cannot be combined with schema; give one of them",
        ),
        (
            HEAD + SOURCE + 'format = "json"\npayloads = "no.yaml"',
            "payloads: the file .*no.yaml' has no stream 'ORDERS'; .*cannot read the file",
        ),
        (
            HEAD + SOURCE + 'options = { payloads = "x" }',
            "payloads: is the key 'payloads' of the source",
        ),
        (
            HEAD + SOURCE + 'format = "advisory"\ntable = "t"',
            "table: advisories have one table per kind",
        ),
        (HEAD + SOURCE + 'prefix = "x"', "prefix: is for format"),
        (HEAD + SOURCE + "start = 0", "start: must be"),
        (HEAD + SOURCE + "start = '23'", "start: must be"),
        (HEAD + SOURCE + "start = '-7 weeks'", "start: must be"),
        (HEAD + SOURCE + "start = 2026-01-31T12:00:00", "start: must be"),
        (HEAD + SOURCE + 'table = "a/b"', "table: 'a/b' may contain only letters"),
        (HEAD + '[[source]]\nstream = "A,B"', r"give each stream its own \[\[source\]\]"),
        (HEAD + SOURCE + SOURCE, "name: 'orders' is used more than once"),
        (HEAD + SOURCE + SOURCE + 'name = "b"', r"table: 'orders' .* choose another table"),
        (HEAD + SOURCE + "options = {stream = 'X'}", "stream: is the key 'stream' of the source"),
        (HEAD + SOURCE + "options = {mode = 'FAILFAST'}", "mode: cannot be set, because"),
        (
            HEAD + SOURCE + "options = {checkpointLocation = 'x'}",
            "Location: cannot be set, because",
        ),
        (
            HEAD + SOURCE + "options = {endingOffsetsByTimestamp = '{}'}",
            "endingOffsetsByTimestamp: cannot be set, because",
        ),
        (HEAD + SOURCE + "options = {minPartition = 2}", "did you mean 'minPartitions'"),
        (HEAD + SOURCE + "options = {minPartitions = 0}", "minPartitions: must be a whole number"),
        (
            HEAD + SOURCE + "options = {maxTriggerDelay = '3s'}",
            "maxTriggerDelay: needs minMessagesPerTrigger:",
        ),
        (HEAD + SOURCE + "subjects = ['a..b']", "subjects: "),
        (HEAD + SOURCE + "subjects = []", r"subjects: must be a list of texts, got \[\]"),
        ("a = " + "[" * 100_000, "orders.toml: is nested too deeply"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        (
            '{a = "idd"}',
            "rename: 'a' becomes 'idd', but the schema has no member 'idd'; did you mean",
        ),
        ('{id = "id"}', "rename: 'id' becomes 'id', but the schema still has a member 'id'"),
        ('{_seq = "id"}', "rename: '_seq' is no member, but a column that each table has"),
        ('{_batch_id = "id"}', "rename: '_batch_id' is no member"),
        ("{a = 1}", r"\[rename\]: a: must be a text"),
        ('"id"', r"rename: must be a table"),
    ],
)
def test_renames_that_mean_nothing_are_refused(tmp_path: Path, rename: str, message: str) -> None:
    (tmp_path / "order.json").write_text(SCHEMA)
    source = f'{SOURCE}format = "json"\nschema = "order.json"\nrename = {rename}'
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, HEAD + source)
    with pytest.raises(ConfigError, match='rename: needs format = "json"'):
        read(tmp_path, HEAD + SOURCE + 'rename = {a = "b"}')


@pytest.mark.parametrize(
    ("sink", "member"), [("parquet", "batch_id"), ("parquet", "_Batch_ID"), ("delta", "_batch_id")]
)
def test_members_do_not_take_the_columns_of_a_batch(tmp_path: Path, sink: str, member: str) -> None:
    def read_with(name: str) -> PipelineConfig:
        schema = {"type": "object", "properties": {name: {"type": "integer"}}}
        (tmp_path / "a.json").write_text(json.dumps(schema))
        lines = f'sink = "{sink}"\n' + HEAD + SOURCE + 'format = "json"\nschema = "a.json"'
        return read(tmp_path, lines)

    with pytest.raises(ConfigError, match=f"source ORDERS: schema: the payload has .*{member}"):
        read_with(member)
    if sink == "delta":
        assert read_with("batch_id").sources[0].table == "orders"


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("password", "password_env"),
        ("[nats.deep]\ntoken", "token_env"),
        ("Token", "token_env"),
        ("secret_nkey_seed", "nkey_seed_env"),
        ("secretNkeySeed", "nkey_seed_env"),
        ("secret_credentials", "credentials_env"),
        ("secretCredentials", "credentials_env"),
    ],
)
def test_secrets_are_refused_without_showing_them(tmp_path: Path, key: str, instead: str) -> None:
    with pytest.raises(ConfigError, match=f"variable that has it: {instead} = ") as caught:
        read(tmp_path, f'{HEAD}{key} = "canary-77"\n{SOURCE}')
    assert "canary" not in str(caught.value)


def test_two_sources_do_not_purge_one_stream(tmp_path: Path) -> None:
    def sources(stream: str, more: str = "") -> str:
        common = f'table = "b"\nname = "b"\nsubjects = ["b.>"]\ncommit = "purge"\n{more}\n'
        one = SOURCE + f'subjects = ["a.>"]\ncommit = "purge"\n{more}\n'
        return HEAD + one + f'[[source]]\nstream = "{stream}"\n' + common

    message = "source b: commit: source ORDERS also purges stream ORDERS, and each would report"
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, sources("ORDERS"))
    assert len(read(tmp_path, sources("OTHERS")).sources) == 2
    lossy = "options = { failOnDataLoss = false }"
    assert len(read(tmp_path, sources("ORDERS", lossy)).sources) == 2


def test_purge_removes_nothing_that_another_source_needs(tmp_path: Path) -> None:
    """What the slower one had not read yet left the stream for good."""
    lossy = "options = { failOnDataLoss = false }\n"

    def both(purger: str = "", reader: str = "", commit: str = "none") -> str:
        other = f'[[source]]\nstream = "ORDERS"\nname = "b"\ntable = "b"\ncommit = "{commit}"\n'
        return HEAD + SOURCE + f'commit = "purge"\n{purger}' + other + reader

    for lines in (both(), both(commit="bookmark"), both(purger=lossy)):
        with pytest.raises(ConfigError, match=r"source ORDERS: commit: .* whether source b has"):
            read(tmp_path, lines)
    with pytest.raises(ConfigError, match="ORDERS: commit: source b also purges stream ORDERS"):
        read(tmp_path, both(purger=lossy, commit="purge"))
    assert len(read(tmp_path, both(reader=lossy)).sources) == 2


def test_default_server_is_for_files_without_one(tmp_path: Path) -> None:
    named = read(tmp_path, HEAD + SOURCE, default_server="nats://default")
    assert named.sources[0].options["nats.servers"] == "nats://h"
    unnamed = read(tmp_path, 'path = "lake"\n' + SOURCE, default_server="nats://default")
    assert unnamed.sources[0].options["nats.servers"] == "nats://default"


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: it has more than 64 MiB"):
        read_config(huge(tmp_path / "p.toml"))
