"""Drivers that land batches by the protocol without a server and without Spark.

The messages of the stream are numbers as JSON, and each tenth is a dead letter, because it has no
number. Their subjects are `s.a` and `s.b`, in turn.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import duckdb
import obstore
import pyarrow as pa
import pyarrow.dataset as ds
from attrs import define, evolve
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tests.proxy_faults import request_limit
from tests.s3_proxy import Fault
from tests.soak import LONGEST
from tests.spark.pipelines import SCHEMA, counted, counted_by_duckdb
from twinstream.core.deadline import Deadline
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.lake.errors import StorageError
from twinstream.lake.journal import Journal
from twinstream.lake.land_batch import BatchLander
from twinstream.lake.objects.client import bucket_of, delta_options
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.store import Store
from twinstream.lake.stream_mark import Mark
from twinstream.lake.task_report import TaskReport
from twinstream.spark.landing.land_job import LandJob
from twinstream.spark.landing.split_tables import TableSplit
from twinstream.spark.landing.table_files import TableFiles
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.source_batches import SourceBatches
from twinstream.spark.pipeline.start_point import StartPoint
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.sink import Sink
from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.plan import SequenceRange
from twinstream.spark.source.stream_state import StreamState

if TYPE_CHECKING:
    from tests.s3_server import S3Server
    from tests.short_keys import ShortKeys

_T = TypeVar("_T")

SOURCE: Final = (
    'stream = "S"\nname = "orders"\ntable = "orders"\nformat = "json"\nschema = "order.json"\n'
    "max_messages = 10\noptions = {minPartitions = 2}\n"
)


def payload_of(seq: int) -> bytes:
    return b"{}" if seq % 10 == 0 else b'{"id": %d}' % seq


def subject_of(seq: int) -> str:
    return f"s.{'ab'[seq % 2]}"


def time_of(seq: int) -> str:
    return f"2026-01-01T00:{seq // 60:02}:{seq % 60:02}Z"


@define
class FakeLeader:
    """Answers as the leader of a stream with the messages 1 to `last`."""

    last: int
    created: str = "today"

    def states(self) -> list[StreamState]:
        mark = Mark(self.last, time_of(self.last)) if self.last else None
        end, count = self.last + 1, self.last
        return [
            StreamState("S", 1, end, self.created, messages=count, allow_direct=True, mark=mark)
        ]

    def time_at(self, stream: str, seq: int) -> str | None:
        return time_of(seq) if 1 <= seq <= self.last else None

    def seq_from(self, stream: str, seq: int) -> int | None:
        return seq if seq <= self.last else None

    def close(self) -> None:
        pass


class FakeEngine:
    """Runs the tasks of a batch in this process, with messages that it makes up."""

    slots = 2

    def __init__(
        self,
        before: Callable[[LandJob], None] = lambda _: None,
        payload: Callable[[int], bytes] = payload_of,
        subject: Callable[[int], str] = subject_of,
        page: int = 10_000,
    ) -> None:
        self._before: Final = before
        self._payload: Final = payload
        self._subject: Final = subject
        self._page: Final = page

    def run(self, task: Any, parts: Sequence[Any], group: str) -> list[TaskReport]:
        job: LandJob = task.__self__
        self._before(job)
        return [self._land(job, each) for each in parts]

    def cancel(self, group: str) -> None:
        pass

    def _land(self, job: LandJob, part: SequenceRange) -> TaskReport:
        files = TableFiles(job.folder, job.names.files)
        split = TableSplit(job.options, job.names, job.batch)
        for start in range(part.start, part.end, self._page):
            page = self._page_of(range(start, min(start + self._page, part.end)))
            for place, rows in split.split(page, part.stream):
                files.add(place, rows)
        finished = files.finish(job.seq_column)
        return TaskReport(part.start, part.end, finished, files.missing)

    def _page_of(self, seqs: range) -> ArrowPage:
        return ArrowPage(
            pa.array(seqs, pa.int64()),
            pa.array([self._subject(seq).encode() for seq in seqs], pa.binary()),
            pa.array([seq * 10**9 for seq in seqs], pa.timestamp("ns", "UTC")),
            pa.array([b""] * len(seqs), pa.binary()),
            pa.array([self._payload(seq) for seq in seqs], pa.binary()),
        )


def journal_in(config: PipelineConfig, store: Store | None = None) -> Journal:
    (source,) = config.sources
    return Journal(store or Folders.of(config.path).store, source.name)


def batches_of(
    config: PipelineConfig,
    journal: Journal,
    leader: FakeLeader,
    engine: FakeEngine | None = None,
    sink: Sink | None = None,
) -> SourceBatches:
    """Return the batches of the only source of a pipeline, of a stream that is made up."""
    (source,) = config.sources
    faked = cast(Leader, leader)
    origin = StartPoint(source, journal, faked).origin(leader.states()[0])
    return SourceBatches(
        source, origin, sink or open_sink(config), engine or FakeEngine(), faked, faked
    )


def land_all(
    config: PipelineConfig,
    leader: FakeLeader,
    *,
    store: Store | None = None,
    engine: FakeEngine | None = None,
) -> None:
    """Land the stream to its end, as a new driver does."""
    journal = journal_in(config, store)
    lander = BatchLander(journal, batches_of(config, journal, leader, engine))
    while (plan := lander.due()) is not None:
        lander.land(plan)


def land_until_renewed(config: PipelineConfig, leader: FakeLeader, keys: ShortKeys) -> None:
    """Land batches with the same tables until three keys were issued."""
    deadline = Deadline.after(LONGEST)
    lander: BatchLander | None = None
    while lander is None or len(keys.issued) < 3:
        assert not deadline.expired()
        if lander is None:
            journal = journal_in(config)
            lander = BatchLander(journal, batches_of(config, journal, leader))
        leader.last += 3
        began = time.monotonic()
        try:
            plan = lander.due()
            assert plan is not None
            lander.land(plan)
        except StorageError:
            # On a busy machine, the key of a table may expire within a batch.
            if time.monotonic() - began < keys.life / 2:
                raise
            lander = None
        time.sleep(0.2)  # the keys expire no sooner if more batches are landed
    land_all(config, leader)  # what a late batch has left


def landed(config: PipelineConfig) -> tuple[int, int]:
    """Return the rows and the distinct sequences in the tables and the dead letters."""
    assert isinstance(config.path, Path)
    tables = [*config.path.glob("orders*"), config.path / "dead_letters/source=orders"]
    found = [counted(table, config.sink) for table in tables if table.is_dir()]
    return sum(rows for rows, _ in found), sum(distinct for _, distinct in found)


def relaxed(config: PipelineConfig) -> PipelineConfig:
    """Return the pipeline with a schema that each message fits, and the local engine."""
    return with_schema(config, **SCHEMA["properties"])


def landed_on_s3(config: PipelineConfig, folder: Path) -> tuple[int, int]:
    """Return the rows and the distinct sequences of a lake on S3.

    deltalake reads the tables, and DuckDB reads copies of their files in `folder`.
    """
    assert isinstance(config.path, ObjectFolder)
    options, rows, distinct = delta_options(config.path.storage), 0, 0
    for table in (*open_sink(config).existing("orders"), "dead_letters/source=orders"):
        url = f"{config.path}/{table}"
        try:
            delta = DeltaTable(url, storage_options=options)
        except TableNotFoundError:
            continue
        seqs = delta.to_pyarrow_table(columns=["_seq"]).column("_seq").to_pylist()
        copies: list[str] = []
        for uri in delta.file_uris():
            copy = folder / uuid.uuid4().hex
            key = uri.removeprefix(f"{config.path}/")
            copy.write_bytes(obstore.get(bucket_of(config.path), key).bytes())
            copies.append(str(copy))
        found = counted_by_duckdb(copies) if copies else (0, 0)
        assert found == (len(seqs), len(set(seqs))), table
        rows, distinct = rows + found[0], distinct + found[1]
    return rows, distinct


def divided_rows(config: PipelineConfig, table: str = "orders") -> dict[int, dict[str, Any]]:
    """Return the rows of a table with partitions by their sequences.

    By the values of a partition, readers must find its rows, each once: deltalake, or both pyarrow
    and DuckDB. In a Parquet table, the values are texts.
    """
    names = [each.name for each in config.sources[0].partitions]
    if config.sink == "parquet":
        texts = {name: pa.string() for name in names}
        kinds = pa.schema({"batch_id": pa.int64(), **texts})
        hive = ds.partitioning(kinds, flavor="hive")
        dataset = ds.dataset(f"{config.path}/{table}", partitioning=hive)
        types = ", ".join(f"'{name}': VARCHAR" for name in names)
        relation = f"read_parquet('{config.path}/{table}/**/*.parquet', hive_types = {{{types}}})"
    else:
        is_on_s3 = isinstance(config.path, ObjectFolder)
        options = delta_options(config.path.storage) if is_on_s3 else None
        delta = DeltaTable(f"{config.path}/{table}", storage_options=options)
        assert delta.metadata().partition_columns == names
        # Not by DuckDB, too: its threads and those of this dataset, whose files are read by Python,
        # may wait for each other without an end.
        dataset, relation = delta.to_pyarrow_dataset(), ""
    rows = dataset.to_table().to_pylist()
    found = {row["_seq"]: row for row in rows}
    assert len(found) == len(rows)
    for values, count in Counter(tuple(row[name] for name in names) for row in rows).items():
        wanted, conditions = ds.scalar(True), ["true"]
        for name, value in zip(names, values, strict=True):
            wanted &= ds.field(name).is_null() if value is None else ds.field(name) == value
            conditions.append(f"{name} IS NULL" if value is None else f"{name} = ?")
        assert dataset.count_rows(filter=wanted) == count, values
        if relation:
            query = f"SELECT count(*), count(DISTINCT _seq) FROM {relation} WHERE "
            given = [each for each in values if each is not None]
            counts = duckdb.execute(query + " AND ".join(conditions), given).fetchone()
            assert counts == (count, count), values
    return found


# What some partitions of a row must be.
_PARTITIONS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "subject_2": lambda row: row["_subject"].split(".")[1],
    "timestamp_day": lambda row: f"{row['_timestamp']:%Y-%m-%d}",
    "timestamp_hour": lambda row: f"{row['_timestamp']:%Y-%m-%d-%H}",
}


def check_partitions(config: PipelineConfig) -> None:
    """Check that the rows of the orders are in the partitions of their subjects and times."""
    names = [each.name for each in config.sources[0].partitions]
    for row in divided_rows(config).values() if names else ():
        assert [str(row[name]) for name in names] == [_PARTITIONS[name](row) for name in names]


def with_lease(config: PipelineConfig) -> PipelineConfig:
    """Return the pipeline of a command that dies or sleeps: its lock is taken over soon.

    On a busy machine, other commands would lose such a lock, so they belong into `until_done`.
    """
    assert isinstance(config.path, ObjectFolder)
    storage = evolve(config.path.storage, lease=3.0)
    return evolve(config, path=evolve(config.path, storage=storage))


def with_schema(config: PipelineConfig, **members: Any) -> PipelineConfig:
    """Return the pipeline with another schema of its source, and the local engine."""
    schema = json.dumps({"type": "object", "properties": members})
    options = {**config.sources[0].options, "jsonSchema": schema}
    return evolve(changed(config, options=options), engine="local")


def changed(config: PipelineConfig, **values: Any) -> PipelineConfig:
    """Return the pipeline with other values in its only source."""
    (source,) = config.sources
    return evolve(config, sources=(evolve(source, **values),))


def beside(config: PipelineConfig, number: int, url: str = "", fault: Fault = "") -> PipelineConfig:
    """Return a pipeline with a lake of its own, perhaps behind a proxy with a fault."""
    assert isinstance(config.path, ObjectFolder)
    path = config.path / f"{number}"
    if url:
        storage = evolve(path.storage, endpoint=url, timeout=request_limit(fault))
        path = evolve(path, storage=storage)
    return evolve(config, path=path)


def misled_beside(config: PipelineConfig, number: int, urls: Sequence[str]) -> PipelineConfig:
    """Return the pipeline of `beside`, for `until_done`, each second one behind all faults.

    It does not wait long for an interrupted batch of another machine.
    """
    own = beside(config, number, urls[0], "time-out") if number % 2 else beside(config, number)
    return with_lease(own)


def bounds(config: PipelineConfig) -> list[tuple[int, int]]:
    """Return the first sequence of each landed batch, and the one after its last."""
    return [(each.start, each.end) for each in journal_in(config).entries().values()]


def until_done(command: Callable[[], _T]) -> _T:
    """Return the result of a command, which is repeated after an error of the store."""
    deadline = Deadline.after(LONGEST)
    while True:
        try:
            return command()
        except StorageError:
            assert not deadline.expired()
            time.sleep(0.2)


def land_through_a_kill(
    config: PipelineConfig, server: S3Server, last: int, *, within: float
) -> None:
    """Land a stream while its S3 server is killed and started again.

    The kill is at most `within` seconds after the start. The driver goes on after an error, as a
    source that is restarted does.
    """

    with ThreadPoolExecutor() as pool:
        driver = pool.submit(until_done, lambda: land_all(config, FakeLeader(last)))
        time.sleep(random.uniform(0.0, within))
        server.kill()
        server.start()
        driver.result(LONGEST)
