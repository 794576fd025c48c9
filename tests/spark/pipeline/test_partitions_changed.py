"""Commands that change tables with partitions: replays, and rewrites of their other columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from js_sync import Stream
from tests.hooked import hooked
from tests.proxy_faults import NONE, Failure, failures_of
from tests.s3_proxy import S3Proxy
from tests.s3_server import S3Server
from tests.soak import sampled, state
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    beside,
    check_partitions,
    divided_rows,
    journal_in,
    land_all,
    landed,
    landed_on_s3,
    until_done,
    with_lease,
    with_schema,
)
from tests.spark.pipelines import config_of
from twinstream.lake.errors import StorageError
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.errors import SchemaError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.rewrite import rewrite
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

TEXT = {"type": "string"}
LONG = {"type": "integer"}
INT = {**LONG, "format": "int32"}
KINDS = ["parquet", "delta", "s3"]

# Texts that are escaped in the names of folders and in URLs, and values without a text.
REGIONS = ["eu", "a/b", "a=b", "50%", "%2F", "ä ö", "日本", "x y ", "a+b", "#?*:", "..", "", None]
# Some of them, for tests of streams, whose files are many.
FEW = ["a/b", "%2F", "日本", "", None]


class Killed(BaseException):
    """Ends a command at once."""


def killed(_: object) -> None:
    raise Killed


Make = Callable[..., PipelineConfig]


@pytest.fixture
def make(tmp_path: Path, bucket: ObjectFolder) -> Make:
    """Return pipelines whose schema has some members, with further lines of their source."""

    def made(
        kind: str, members: dict[str, Any], *lines: str, source: str = SOURCE, **top: str
    ) -> PipelineConfig:
        schema = {"type": "object", "properties": members}
        (tmp_path / "typed.json").write_text(json.dumps(schema))
        text = source.replace("order.json", "typed.json") + "\n".join(lines)
        top = {"server": "nats://127.0.0.1:1", "engine": "local", **top}
        sink = "delta" if kind == "s3" else kind
        config = config_of(tmp_path, sink, top.pop("server"), text, **top)
        return evolve(config, path=bucket) if kind == "s3" else config

    return made


def landed_in(config: PipelineConfig, folder: Path) -> tuple[int, int]:
    """Return the rows and the distinct sequences of a lake."""
    return landed(config) if isinstance(config.path, Path) else landed_on_s3(config, folder)


class OnS3:
    """A Delta table by region, where each third message is a dead letter at first."""

    last = 3 * len(REGIONS)

    def __init__(self, folder: Path, make: Make) -> None:
        lines = 'partition_by = ["region", "day(_timestamp)", "shard"]'
        members = {"region": TEXT, "shard": LONG}
        self.folder = folder
        self.strict = make("s3", {**members, "n": LONG}, lines)
        self.relaxed = make("s3", members, lines)
        land_all(self.strict, FakeLeader(self.last), engine=FakeEngine(payload=self._payload))

    def _payload(self, seq: int) -> bytes:
        region, n = REGIONS[seq % len(REGIONS)], 1 if seq % 3 else "no number"
        return json.dumps({"region": region, "shard": seq % 2, "n": n}).encode()

    def letters_replayed(self) -> LettersReport:
        return replay_letters(None, self.relaxed, self.relaxed.sources[0])

    def check(self) -> None:
        """Check that all messages are rows now, each in its partition."""
        assert landed_on_s3(self.relaxed, self.folder) == (self.last, self.last)
        rows = divided_rows(self.relaxed)
        assert {*rows} == {*range(1, self.last + 1)}
        for seq, row in rows.items():
            assert row["region"] == (REGIONS[seq % len(REGIONS)] or None)
            assert row["shard"] == seq % 2
            assert row["timestamp_day"] == row["_timestamp"].date()


@pytest.fixture
def lake(tmp_path: Path, make: Make) -> OnS3:
    return OnS3(tmp_path, make)


def test_letters_on_s3_are_landed_into_their_partitions(lake: OnS3) -> None:
    assert len(divided_rows(lake.strict)) == 2 * len(REGIONS)
    done = lake.letters_replayed()
    assert (done.landed, done.left) == (len(REGIONS), 0)
    lake.check()
    list(compact(lake.relaxed))
    assert vacuum(lake.relaxed, keep=0)
    lake.check()


@pytest.mark.parametrize("point", ["letters: before tables", "letters: before removal"])
def test_a_replay_of_letters_on_s3_that_is_interrupted_is_finished(lake: OnS3, point: str) -> None:
    """By the plan, which has the partitions of its files."""
    with hooked(point, killed), pytest.raises(Killed):
        lake.letters_replayed()
    assert journal_in(lake.relaxed).letters.unfinished() is not None
    vacuum(lake.relaxed, keep=0)
    assert journal_in(lake.relaxed).letters.unfinished() is None
    lake.check()
    assert lake.letters_replayed().letters == 0


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_batches_on_s3_are_landed_again_into_their_partitions(
    request: pytest.FixtureRequest,
    engine: str,
    tmp_path: Path,
    bucket: ObjectFolder,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> None:
    """In tables by a token. The second schema has members that were dead letters by the first."""
    stream = make_stream()
    values = [{"id": at, "item": FEW[at % len(FEW)]} for at in range(60)]
    fill(stream, [each if at % 7 else {"item": "i"} for at, each in enumerate(values)],
         subjects=("eu.x", "eu.y", "us.x"))  # fmt: skip
    source = (
        f'stream = "{stream.name}"\nname = "orders"\nformat = "json"\nschema = "order.json"\n'
        'table = "orders_{subject[2]}"\npartition_by = ["item", "subject[3]", "hour(_timestamp)"]\n'
        "max_messages = 40\noptions = {minPartitions = 2}\n"
    )
    config = evolve(config_of(tmp_path, "delta", server.url, source, engine=engine), path=bucket)
    spark = request.getfixturevalue("spark") if engine == "spark" else None

    def check(dead_letters: int) -> None:
        assert landed_on_s3(config, tmp_path) == (60, 60)
        (verdict,) = verify(config)
        assert (verdict.dead_letters, verdict.problems) == (dead_letters, [])
        for table in ("orders_eu", "orders_us"):
            for seq, row in divided_rows(config, table).items():
                item = "i" if row["id"] is None else FEW[(seq - 1) % len(FEW)]
                assert row["item"] == (item or None)
                assert row["subject_3"] == row["_subject"].split(".")[2]
                assert row["timestamp_hour"] == f"{row['_timestamp']:%Y-%m-%d-%H}"

    assert run(spark, config, once=True) == {}
    check(9)
    again = evolve(with_schema(config, id=LONG, item=TEXT), engine=engine)

    def replayed() -> list[int]:
        own = with_lease(again)  # which does not wait long for the interrupted batch
        done = until_done(lambda: replay(spark, own, own.sources[0], 1, None))
        return [each.dead_letters for each in done]

    for point in ("replay: before table", "replay: before journal"):
        with hooked(point, killed), pytest.raises(Killed):
            replayed()
    assert replayed() == [0, 0]
    check(0)
    list(compact(again))
    assert [each.messages for each in replay(spark, again, again.sources[0], 1, 30)] == [40]
    assert vacuum(again, keep=0)
    check(0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rewrite_keeps_each_kind_of_value(make: Make, tmp_path: Path, kind: str) -> None:
    """Also of files that `compact` has written, and with a column for two old ones."""
    values = {"region": TEXT, "paid": {"type": "boolean"}, "due": {**TEXT, "format": "date"}}
    items = ["region", "paid", "due", "shard", "month(at)", "subject[2]"]
    members = {**values, "shard": LONG, "at": {**TEXT, "format": "date-time"}}
    lines = f"partition_by = {items}", 'bounds = ["n"]' if kind != "parquet" else ""
    last = 2 * len(REGIONS)

    def value_of(seq: int) -> dict[str, Any]:
        given: dict[str, Any] = {"region": REGIONS[seq % len(REGIONS)], "n": seq, "old": f"t{seq}"}
        if seq % 2:
            given |= {"paid": seq % 3 == 0, "due": f"2026-02-0{seq % 3 + 1}", "shard": -seq % 3}
        return given | {"at": f"2026-0{seq % 3 + 1}-01T00:00:00Z"}

    engine = FakeEngine(payload=lambda seq: json.dumps(value_of(seq)).encode())
    config = make(kind, {**members, "n": INT, "old": TEXT}, *lines)
    land_all(config, FakeLeader(last), engine=engine)
    before = divided_rows(config)
    lines = lines[0], lines[1].replace('"n"', '"number"')
    renames = {"n": "number"}
    for round_ in range(2):
        texts = ", ".join(f'{old} = "{new}"' for old, new in renames.items())
        columns = {**members, "number": LONG, renames.get("old", "old"): TEXT}
        new = make(kind, columns, *lines, f"rename = {{{texts}}}")
        (done,) = rewrite(new)
        assert len(done.changes) == 2 - round_
        assert list(rewrite(new)) == []
        assert landed_in(new, tmp_path) == (last, last)
        found = divided_rows(new)
        names = [each.name for each in config.sources[0].partitions]
        for seq, row in found.items():
            assert {name: row[name] for name in names} == {n: before[seq][n] for n in names}
            assert (row["number"], row[renames.get("old", "old")]) == (seq, f"t{seq}")
            assert not {"n", *renames} & {*row}
        assert {*found} == {*range(1, last + 1)}
        renames["old"] = "text"
        list(compact(new))
    vacuum(new, keep=0)
    assert landed_in(new, tmp_path) == (last, last)
    assert {*divided_rows(new)} == {*range(1, last + 1)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("members", "lines", "reason"),
    [
        (
            {"region": TEXT, "shard": LONG, "m": LONG},
            ("", 'rename = {n = "m"}'),
            "partitions by other columns than .*'shard' is int32 and becomes int64.*name another",
        ),
        (
            {"area": TEXT, "shard": INT, "n": LONG},
            ("area", 'rename = {region = "area"}'),
            "partitions by other columns than .*'region' becomes 'area'.*name another table",
        ),
        (
            {"region": TEXT, "shard": INT, "n": LONG},
            ("", 'rename = {old = "region"}'),
            "partitions by other columns than .*'old' becomes 'region'.*name another table",
        ),
    ],
)
def test_the_column_of_a_partition_is_not_changed(
    make: Make,
    tmp_path: Path,
    kind: str,
    members: dict[str, Any],
    lines: tuple[str, str],
    reason: str,
) -> None:
    """Then the other columns of the table are not changed either."""
    known, renames = {"region": TEXT, "shard": INT, "n": INT, "old": TEXT}, lines[1]
    config = make(kind, known, 'partition_by = ["region", "shard"]')
    engine = FakeEngine(payload=lambda seq: b'{"region": "eu", "shard": 1, "n": %d}' % seq)
    land_all(config, FakeLeader(10), engine=engine)
    other = make(kind, members, f'partition_by = ["{lines[0] or "region"}", "shard"]', renames)
    for _ in range(2):
        with pytest.raises(SchemaError, match=reason):
            list(rewrite(other))
    assert [row["n"] for _, row in sorted(divided_rows(config).items())] == [*range(1, 11)]
    assert landed_in(config, tmp_path) == (10, 10)


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("parquet", "spark"), ("delta", "local"), ("s3", "local"), ("s3", "spark")],
)
def test_a_run_goes_on_after_a_rewrite(
    request: pytest.FixtureRequest,
    make: Make,
    kind: str,
    engine: str,
    tmp_path: Path,
    server: NatsServer,
    make_stream: Callable[..., Stream],
    fill: Callable[..., None],
) -> None:
    """Messages that did not fit the narrow column are landed into their partitions then."""
    spark = request.getfixturevalue("spark") if engine == "spark" else None
    stream = make_stream()
    source = SOURCE.replace('"S"', f'"{stream.name}"')
    by_region = 'partition_by = ["region", "subject[2]"]'

    def pipeline(*lines: str, **members: Any) -> PipelineConfig:
        own = {"region": TEXT, **members}
        return make(kind, own, *lines, source=source, server=server.url, engine=engine)

    def value_of(seq: int) -> dict[str, Any]:
        return {"region": FEW[seq % len(FEW)], "n": seq if seq % 7 else 2**40 + seq}

    fill(stream, [value_of(seq) for seq in range(1, 26)])
    old = pipeline(by_region, n=INT)
    assert run(spark, old, once=True) == {}
    assert sum(each.dead_letters for each in journal_in(old).entries().values()) == 3
    new = pipeline(by_region, 'rename = {n = "number"}', number=LONG)
    failed = run(spark, new, once=True)
    assert "'n' becomes 'number'" in failed["orders"]
    assert "run twinstream pipeline rewrite first" in failed["orders"]
    assert [each.table for each in rewrite(new)] == ["orders"]
    assert replay_letters(spark, new, new.sources[0]).landed == 3
    fill(stream, [value_of(seq) for seq in range(26, 41)])
    assert run(spark, new, once=True) == {}
    assert len(replay(spark, new, new.sources[0], 21, 35)) == 2
    list(compact(new))
    vacuum(new, keep=0)
    assert landed_in(new, tmp_path) == (40, 40)
    assert [each.problems for each in verify(new)] == [[]]
    rows = divided_rows(new)
    assert {seq: row["number"] for seq, row in rows.items()} == {
        seq: value_of(seq)["n"] for seq in range(1, 41)
    }
    for seq, row in rows.items():
        assert row["region"] == (FEW[seq % len(FEW)] or None)
        assert row["subject_2"] == row["_subject"].split(".")[1]


def test_soak_commands_with_a_request_that_fails(s3: S3Server, make: Make, tmp_path: Path) -> None:
    """A driver dies at any request, or gets a wrong answer to a write that was carried out.

    It lands dead letters again, and gives another column of the table a wider type and a new name.
    """
    last, by_token = 12, 'partition_by = ["subject[2]", "hour(_timestamp)"]'
    old = make("s3", {"id": INT}, by_token)
    new = make("s3", {"number": LONG}, by_token, 'rename = {id = "number"}')
    engine = FakeEngine(payload=lambda seq: b'{"id": %d}' % (seq if seq % 5 else 2**40 + seq))

    def behind(number: int, failure: Failure) -> S3Proxy:
        own = beside(old, number)
        land_all(own, FakeLeader(last), engine=engine)
        # The first command shuts out earlier owners. deltalake holds Python's lock while it changes
        # a property, so a proxy in this process could not answer.
        vacuum(own)
        with S3Proxy(s3.url, failure.answer, patience=1.5) as proxy, suppress(StorageError):
            work(with_lease(beside(new, number, proxy.url, failure.fault)))
        return proxy

    def work(config: PipelineConfig) -> None:
        list(rewrite(config))
        replay_letters(None, config, config.sources[0])

    points = failures_of(["412", "503", "time-out", "closed"], behind(0, NONE))
    assert len(points) > 150
    order = sampled(range(len(points)), 5, 80)
    for number, point in enumerate(order, start=1):
        behind(number, points[point])
        own = beside(new, number)
        rows, distinct = landed_on_s3(own, tmp_path)
        # Letters may be in both tables until the replay is finished.
        assert rows == distinct in (last, last + 2), point
        work(own)
        assert landed_on_s3(own, tmp_path) == (last, last), point
        check_partitions(own)
        numbers = {seq: row["number"] for seq, row in divided_rows(own).items()}
        assert numbers == {seq: seq if seq % 5 else 2**40 + seq for seq in range(1, last + 1)}, (
            point
        )
    state(f"{len(order)} of {len(points)} points, all exact")
