"""Commands that change tables with partitions: replays of batches and of dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from js_sync import Stream
from tests.hooked import hooked
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    divided_rows,
    journal_in,
    land_all,
    landed_on_s3,
    with_schema,
)
from tests.spark.pipelines import config_of
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.letters.letters_report import LettersReport
from twinstream.spark.pipeline.letters.replay import replay_letters
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.replay import replay
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.maintenance.verify import verify
from twinstream.spark.pipeline.runner import run
from twinstream.testing import NatsServer

TEXT = {"type": "string"}
LONG = {"type": "integer"}

# Texts that are escaped in the names of folders and in URLs, and values without a text.
REGIONS = ["eu", "a/b", "a=b", "50%", "%2F", "ä ö", "日本", "x y ", "a+b", "#?*:", "..", "", None]


class Killed(BaseException):
    """Ends a command at once."""


def killed(_: object) -> None:
    raise Killed


def of_members(
    folder: Path, members: dict[str, Any], *lines: str, lake: ObjectFolder | None = None
) -> PipelineConfig:
    """Return a pipeline whose schema has these members, into Delta tables."""
    (folder / "typed.json").write_text(json.dumps({"type": "object", "properties": members}))
    source = SOURCE.replace("order.json", "typed.json") + "\n".join(lines)
    made = config_of(folder, "delta", "nats://127.0.0.1:1", source, engine="local")
    return made if lake is None else evolve(made, path=lake)


class OnS3:
    """A Delta table by region, where each third message is a dead letter at first."""

    last = 3 * len(REGIONS)

    def __init__(self, folder: Path, bucket: ObjectFolder) -> None:
        lines = 'partition_by = ["region", "day(_timestamp)", "shard"]'
        members = {"region": TEXT, "shard": LONG}
        self.folder = folder
        self.strict = of_members(folder, {**members, "n": LONG}, lines, lake=bucket)
        self.relaxed = of_members(folder, members, lines, lake=bucket)
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
def lake(tmp_path: Path, bucket: ObjectFolder) -> OnS3:
    return OnS3(tmp_path, bucket)


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
    values = [{"id": at, "item": REGIONS[at % len(REGIONS)]} for at in range(60)]
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
                item = "i" if row["id"] is None else REGIONS[(seq - 1) % len(REGIONS)]
                assert row["item"] == (item or None)
                assert row["subject_3"] == row["_subject"].split(".")[2]
                assert row["timestamp_hour"] == f"{row['_timestamp']:%Y-%m-%d-%H}"

    assert run(spark, config, once=True) == {}
    check(9)
    again = evolve(with_schema(config, id=LONG, item=TEXT), engine=engine)
    for point in ("replay: before table", "replay: before journal"):
        with hooked(point, killed), pytest.raises(Killed):
            replay(spark, again, again.sources[0], 1, None)
    assert [each.dead_letters for each in replay(spark, again, again.sources[0], 1, None)] == [0, 0]
    check(0)
    list(compact(again))
    assert [each.messages for each in replay(spark, again, again.sources[0], 1, 30)] == [40]
    assert vacuum(again, keep=0)
    check(0)
