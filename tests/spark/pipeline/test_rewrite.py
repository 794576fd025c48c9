"""Tables get wider types and new names of columns, with each row once and every value in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.hooked import hooked, once
from tests.soak import LONGEST
from tests.spark.drivers import (
    SOURCE,
    FakeEngine,
    FakeLeader,
    batches_of,
    changed,
    check_partitions,
    journal_in,
    land_all,
    landed,
    with_schema,
)
from tests.spark.pipelines import SINKS, config_of, counted, files_of, rows_of, schema_of
from twinstream.lake.land_batch import BatchLander
from twinstream.spark.errors import CheckpointError, PipelineBusy, SchemaError
from twinstream.spark.pipeline import PipelineConfig
from twinstream.spark.pipeline.maintenance.compact import compact
from twinstream.spark.pipeline.maintenance.rewrite import Rewritten, rewrite
from twinstream.spark.pipeline.maintenance.vacuum import vacuum
from twinstream.spark.pipeline.settings.folders import Folders
from twinstream.spark.pipeline.tables.open_sink import open_sink
from twinstream.spark.pipeline.tables.source_columns import refuse_old_columns

INT32 = {"type": "integer", "format": "int32"}
WHOLE = {"type": "integer"}
FLOAT = {"type": "number", "format": "float"}
DOUBLE = {"type": "number"}
TEXT = {"type": "string"}
BIG = 3_000_000_000


def record(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def nested(number: dict[str, Any], real: dict[str, Any]) -> dict[str, Any]:
    return {
        "n": number,
        "r": real,
        "in": record(n=number, deep=record(r=real, t=TEXT)),
        "list": {"type": "array", "items": record(n=number)},
        "map": {"type": "object", "additionalProperties": number},
        "t": TEXT,
    }


def values_of(number: int) -> dict[str, Any]:
    return {
        "n": number,
        "r": 0.5,
        "in": {"n": number, "deep": {"r": 1.5, "t": "x"}},
        "list": [{"n": number}, {"n": None}],
        "map": {"a": number},
        "t": "y",
    }


LAYOUTS = {"": "", "-divided": 'partition_by = ["subject[2]", "hour(_timestamp)"]\n'}


@pytest.fixture(params=[f"{sink}{layout}" for sink in SINKS for layout in LAYOUTS])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> PipelineConfig:
    """Return a pipeline into tables without partitions, or with some."""
    sink, sign, layout = request.param.partition("-")
    source = SOURCE + LAYOUTS[sign + layout]
    return config_of(tmp_path, sink, "nats://127.0.0.1:1", source)


def lands(config: PipelineConfig, last: int, payload: Callable[[int], dict[str, Any]]) -> None:
    """Land the messages up to `last`, after the check that a run does."""
    (source,) = config.sources
    refuse_old_columns(open_sink(config), source, ["orders"])
    engine = FakeEngine(payload=lambda seq: json.dumps(payload(seq)).encode())
    land_all(config, FakeLeader(last), engine=engine)


def orders(config: PipelineConfig) -> dict[int, dict[str, Any]]:
    found = rows_of(config.path / "orders", config.sink)
    assert len(found) == len({row["_seq"] for row in found})
    assert counted(config.path / "orders", config.sink) == (len(found), len(found))
    return {row["_seq"]: row for row in sorted(found, key=lambda row: row["_seq"])}


def is_exact(config: PipelineConfig, batches: int) -> None:
    entries = journal_in(config).entries()
    assert list(entries) == list(range(batches))
    messages = sum(each.messages for each in entries.values())
    assert landed(config) == (messages, messages)
    by_batch = [row["_batch_id"] for row in orders(config).values()]
    for number, entry in entries.items():
        assert by_batch.count(number) == entry.rows
    check_partitions(config)


def test_types_widen_also_inside_other_types(config: PipelineConfig) -> None:
    narrow, wide = (
        with_schema(config, **nested(INT32, FLOAT)),
        with_schema(config, **nested(WHOLE, DOUBLE)),
    )
    lands(narrow, 25, lambda seq: values_of(seq) if seq % 5 else values_of(BIG))
    with pytest.raises(SchemaError, match=r"'n' is int32 and becomes int64; .*pipeline rewrite"):
        lands(wide, 30, values_of)
    assert journal_in(wide).newest() == 2, "nothing was planned"
    (done,) = rewrite(wide)
    assert done.table == "orders"
    assert [each.split("'")[1] for each in done.changes] == ["n", "r", "in", "list", "map"]
    assert list(rewrite(wide)) == []
    is_exact(wide, 3)
    lands(wide, 40, lambda seq: values_of(BIG + seq))
    is_exact(wide, 5)
    found = orders(wide)
    for seq in (1, 24, 31, 40):
        number = seq if seq < 30 else BIG + seq
        expected = {**values_of(number), "map": [("a", number)]}
        assert {name: found[seq][name] for name in expected} == expected
    assert list(compact(wide))
    is_exact(wide, 5)
    vacuum(wide, keep=0)
    is_exact(wide, 5)


def test_sequences_may_be_decimals(config: PipelineConfig) -> None:
    (source,) = config.sources
    decimals = changed(config, options={**source.options, "uint64": "decimal"})
    lands(with_schema(decimals, n=INT32), 20, lambda seq: {"n": seq})
    wide = with_schema(decimals, n=WHOLE)
    assert len(list(rewrite(wide))) == 1
    lands(wide, 30, lambda seq: {"n": BIG})
    assert [row["n"] for row in orders(wide).values()] == [*range(1, 21), *([BIG] * 10)]
    is_exact(wide, 3)


def test_a_wider_type_is_not_narrowed_again(config: PipelineConfig) -> None:
    wide = with_schema(config, n=WHOLE)
    lands(wide, 10, lambda seq: {"n": seq})
    with pytest.raises(SchemaError, match="was landed as int64 and is int32 now; name another"):
        lands(with_schema(config, n=INT32), 20, lambda seq: {"n": seq})


@pytest.mark.parametrize(
    ("old", "new", "types"),
    [
        (WHOLE, DOUBLE, "int64 and is double"),
        (INT32, DOUBLE, "int32 and is double"),
        (WHOLE, TEXT, "int64 and is string"),
        (DOUBLE, FLOAT, "double and is float"),
    ],
)
def test_other_changes_of_a_type_are_refused(
    config: PipelineConfig, old: Any, new: Any, types: str
) -> None:
    lands(with_schema(config, n=old), 10, lambda seq: {"n": seq})
    changed_type = with_schema(config, n=new)
    for attempt in (
        lambda: lands(changed_type, 20, values_of),
        lambda: list(rewrite(changed_type)),
    ):
        with pytest.raises(SchemaError, match=f"column 'n' of the table orders .* {types} now"):
            attempt()
    assert [row["n"] for row in orders(config).values()] == list(range(1, 11))


def test_a_required_member_may_become_optional(config: PipelineConfig) -> None:
    lands(config, 9, lambda seq: {"id": seq})
    optional = with_schema(config, id=WHOLE)
    assert list(rewrite(optional)) == []
    lands(optional, 12, lambda seq: {})
    assert [row["id"] for row in orders(config).values()] == [*range(1, 10), None, None, None]


def test_a_process_that_runs_meanwhile_adds_no_narrow_file(config: PipelineConfig) -> None:
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    engine, leader = FakeEngine(payload=lambda seq: b'{"n": %d}' % seq), FakeLeader(10)
    journal = journal_in(narrow)
    running = BatchLander(journal, batches_of(narrow, journal, leader, engine))

    def land() -> None:
        plan = running.due()
        assert plan is not None
        running.land(plan)

    land()
    leader.last = 20
    land()
    assert len(list(rewrite(wide))) == 1
    leader.last = 30
    with pytest.raises(SchemaError, match="was landed as int64 and is int32 now"):
        land()
    lands(wide, 35, lambda seq: {"n": BIG})
    assert [row["n"] for row in orders(wide).values()] == [*range(1, 21), *([BIG] * 15)]
    is_exact(wide, 4)


def test_an_unfinished_batch_that_is_in_no_table_does_not_matter(config: PipelineConfig) -> None:
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    lands(narrow, 10, lambda seq: {"n": seq})

    def interrupted(config: PipelineConfig, *, in_table: bool) -> None:
        journal, leader = journal_in(config), FakeLeader(20)
        work = batches_of(config, journal, leader, FakeEngine(payload=lambda seq: b'{"n": 7}'))
        plan = work.next_plan(1, journal.last())
        assert plan is not None
        journal.planned(plan)
        if in_table:
            work.land(plan, journal.last())

    interrupted(narrow, in_table=False)
    assert len(list(rewrite(wide))) == 1
    lands(wide, 20, lambda seq: {"n": BIG})
    is_exact(wide, 2)
    assert [row["n"] for row in orders(wide).values()] == [*range(1, 11), *([BIG] * 10)]


def test_a_batch_that_is_in_a_table_must_be_finished_first(config: PipelineConfig) -> None:
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    lands(narrow, 10, lambda seq: {"n": seq})
    journal, leader = journal_in(narrow), FakeLeader(20)
    work = batches_of(narrow, journal, leader, FakeEngine(payload=lambda seq: b'{"n": 7}'))
    plan = work.next_plan(1, journal.last())
    assert plan is not None
    work.land(journal.planned(plan), journal.last())
    with pytest.raises(CheckpointError, match="finish it first, with the schema that it began"):
        list(rewrite(wide))
    lands(narrow, 20, lambda seq: {"n": 7})
    assert len(list(rewrite(wide))) == 1
    is_exact(wide, 2)


def renaming(config: PipelineConfig, renames: dict[str, str], **members: Any) -> PipelineConfig:
    return changed(with_schema(config, **members), renames=renames)


def customers(config: PipelineConfig) -> dict[int, tuple[Any, Any]]:
    """Return the customer of each row, and what else the message has."""
    return {
        seq: (row["customer"], row["_extra"] and json.loads(row["_extra"]))
        for seq, row in orders(config).items()
    }


def test_a_column_gets_a_new_name(config: PipelineConfig) -> None:
    old = with_schema(config, id=WHOLE, customer_id=INT32)
    new = renaming(config, {"customer_id": "customer"}, id=WHOLE, customer=WHOLE)
    lands(old, 15, lambda seq: {"id": seq, "customer_id": seq})
    refusal = "'customer_id' becomes 'customer'; column 'customer_id' is int32 and becomes int64"
    with pytest.raises(SchemaError, match=rf"{refusal}.*pipeline rewrite first"):
        lands(new, 20, lambda seq: {})
    (done,) = rewrite(new)
    assert done.changes == (
        "column 'customer_id' becomes 'customer'",
        "column 'customer_id' is int32 and becomes int64",
    )
    messages = {
        16: {"customer_id": 16},
        17: {"customer": BIG},
        18: {"customer": 18, "customer_id": 5},
        19: {"customer": None, "customer_id": 6},
        20: {},
    }
    lands(new, 20, lambda seq: messages[seq])
    assert customers(new) == {
        **{seq: (seq, None) for seq in range(1, 17)},
        17: (BIG, None),
        18: (18, {"customer_id": 5}),
        19: (None, {"customer_id": 6}),
        20: (None, None),
    }
    assert list(rewrite(new)) == []
    is_exact(new, 3)
    assert "customer_id" not in schema_of(config.path / "orders", config.sink).names


def test_columns_of_both_names_become_one(config: PipelineConfig) -> None:
    lands(
        with_schema(config, id=WHOLE, buyer=TEXT), 10, lambda seq: {"id": seq, "buyer": f"b{seq}"}
    )
    lands(
        with_schema(config, id=WHOLE, customer_id=TEXT, customer=TEXT),
        20,
        lambda seq: {"customer" if seq % 2 else "customer_id": f"c{seq}"},
    )
    names = {"buyer": "customer", "customer_id": "customer"}
    new = renaming(config, names, id=WHOLE, customer=TEXT)
    (done,) = rewrite(new)
    assert len(done.changes) == 2
    expected = {seq: (f"{'b' if seq <= 10 else 'c'}{seq}", None) for seq in range(1, 21)}
    assert customers(new) == expected
    is_exact(new, 2)


def test_a_process_that_runs_meanwhile_may_land_the_old_name_again(
    config: PipelineConfig,
) -> None:
    old = with_schema(config, id=WHOLE, customer_id=TEXT)
    new = renaming(config, {"customer_id": "customer"}, id=WHOLE, customer=TEXT)
    lands(old, 10, lambda seq: {"customer_id": f"c{seq}"})
    assert len(list(rewrite(new))) == 1
    lands(old, 20, lambda seq: {"customer_id": f"c{seq}"})
    with pytest.raises(SchemaError, match="'customer_id' becomes 'customer'"):
        lands(new, 30, lambda seq: {})
    assert len(list(rewrite(new))) == 1
    lands(new, 30, lambda seq: {"customer": f"c{seq}"})
    assert customers(new) == {seq: (f"c{seq}", None) for seq in range(1, 31)}
    is_exact(new, 3)


def test_values_under_both_names_are_not_made_one(config: PipelineConfig) -> None:
    old = with_schema(config, customer_id=TEXT, customer=TEXT)
    lands(
        old, 10, lambda seq: {"customer_id": "a", "customer": "b"} if seq > 7 else {"customer": "c"}
    )
    new = renaming(config, {"customer_id": "customer"}, customer=TEXT)
    refusal = "the table orders has rows with different values in 'customer' and 'customer_id'"
    with pytest.raises(SchemaError, match=f"{refusal}.*leave out the rename"):
        list(rewrite(new))
    assert [row["customer_id"] for row in orders(old).values()] == [*([None] * 7), *(["a"] * 3)]
    assert not [*Folders(config.path).staging.glob("*")]


def test_equal_values_under_both_names_are_one(config: PipelineConfig) -> None:
    old = with_schema(config, customer_id=TEXT, customer=TEXT)
    lands(old, 10, lambda seq: {"customer_id": f"c{seq}", "customer": f"c{seq}"})
    new = renaming(config, {"customer_id": "customer"}, customer=TEXT)
    assert len(list(rewrite(new))) == 1
    assert customers(new) == {seq: (f"c{seq}", None) for seq in range(1, 11)}


def test_structs_under_both_names_are_not_made_one(config: PipelineConfig) -> None:
    old = with_schema(config, old=record(n=WHOLE), new=record(n=WHOLE))
    lands(old, 10, lambda seq: {"old" if seq % 2 else "new": {"n": seq}})
    new = renaming(config, {"old": "new"}, new=record(n=WHOLE))
    assert len(list(rewrite(new))) == 1
    assert [row["new"] for row in orders(new).values()] == [{"n": seq} for seq in range(1, 11)]
    lands(old, 20, lambda seq: {"old": {"n": seq}, "new": {"n": seq}})
    with pytest.raises(SchemaError, match="has rows with different values in 'new' and 'old'"):
        list(rewrite(new))


def test_columns_of_two_types_are_not_made_one(config: PipelineConfig) -> None:
    lands(with_schema(config, old=TEXT), 10, lambda seq: {"old": "a"})
    new = renaming(config, {"old": "n"}, n=WHOLE)
    with pytest.raises(SchemaError, match="'n' of the table orders was landed as string and is i"):
        list(rewrite(new))
    lands(with_schema(config, n=WHOLE), 20, lambda seq: {"n": seq})
    with pytest.raises(SchemaError, match="so they cannot become one column 'n': name another"):
        list(rewrite(new))


def test_the_case_of_a_name_may_change(config: PipelineConfig) -> None:
    lands(with_schema(config, Item=TEXT), 10, lambda seq: {"Item": f"i{seq}"})
    new = renaming(config, {"Item": "item"}, item=TEXT)
    assert len(list(rewrite(new))) == 1
    lands(new, 12, lambda seq: {"Item" if seq == 11 else "item": f"i{seq}"})
    assert [row["item"] for row in orders(new).values()] == [f"i{seq}" for seq in range(1, 13)]


def test_of_two_rewrites_one_waits_for_the_other(config: PipelineConfig) -> None:
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    lands(narrow, 10, lambda seq: {"n": seq})
    with ThreadPoolExecutor() as pool:
        second: list[Future[list[Rewritten]]] = []

        def begin_another() -> None:
            second.append(pool.submit(lambda: list(rewrite(wide))))

        with hooked("rewrite: before rows", once(begin_another)):
            assert len(list(rewrite(wide))) == 1
        # The second finds nothing to change.
        assert second[0].result(LONGEST) == []
    is_exact(wide, 1)


def test_a_commit_of_another_program_is_not_lost(tmp_path: Path) -> None:
    config = config_of(tmp_path, "delta", "nats://127.0.0.1:1", SOURCE)
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    lands(narrow, 10, lambda seq: {"n": seq})

    def commit_another_row() -> None:
        table = DeltaTable(str(config.path / "orders"))
        write_deltalake(table, ds.dataset(table.file_uris()).head(1), mode="append")

    with (
        hooked("rewrite: before rows", once(commit_another_row)),
        pytest.raises(PipelineBusy, match="another program has changed the table orders"),
    ):
        list(rewrite(wide))
    assert schema_of(config.path / "orders", "delta").field("n").type == "int32"
    assert len(rows_of(config.path / "orders", "delta")) == 11


def test_an_interrupted_rewrite_leaves_the_table_as_it_was(config: PipelineConfig) -> None:
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    lands(narrow, 25, lambda seq: {"n": seq})

    def stop() -> None:
        raise KeyboardInterrupt

    with hooked("rewrite: before rows", once(stop)), pytest.raises(KeyboardInterrupt):
        list(rewrite(wide))
    is_exact(narrow, 3)
    lands(narrow, 30, lambda seq: {"n": seq})
    assert len(list(rewrite(wide))) == 1
    is_exact(wide, 4)
    assert not [*Folders(config.path).staging.glob("*")]


def test_readers_see_all_rows_while_a_table_is_rewritten(config: PipelineConfig) -> None:
    narrow, wide = with_schema(config, n=INT32), with_schema(config, n=WHOLE)
    lands(narrow, 25, lambda seq: {"n": seq})
    opened = files_of(config.path / "orders", config.sink)
    seen: list[list[int]] = []

    def read(_: object) -> None:
        # In a thread of its own, as another program: the hook runs below the writer of the table.
        with ThreadPoolExecutor(1) as reader:
            rows = reader.submit(rows_of, config.path / "orders", config.sink).result(LONGEST)
            seen.append(sorted(row["n"] for row in rows))

    with hooked("rewrite: between rows", read):
        assert len(list(rewrite(wide))) == 1
    assert seen == [[*range(1, 26)]] * len(opened), "one for each file"
    is_exact(wide, 3)
    if config.sink == "delta":
        assert ds.dataset(opened).count_rows() == 25, "a reader that has opened the old version"
