"""How the columns of a table change: to wider types, and to new names.

An integer of 32 bits may become one of 64, and a float a double, also inside structs, lists and
maps. No value changes by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from attrs import evolve, frozen

from twinstream.core.hooks import HOOKS, reached
from twinstream.spark.errors import SchemaError
from twinstream.spark.landing.partitions import partition_columns
from twinstream.spark.landing.table_fit import check_columns

__all__ = ["ColumnChange", "change_of", "changed_rows"]

_WIDER: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.int32(): pa.int64(),
    pa.float32(): pa.float64(),
}


@frozen
class ColumnChange:
    """A change of a table's columns.

    `columns` are all columns afterwards, with a note of the table's partitions. `sources` has, for
    each of them, the names of the columns in the table that have its values; of several, a row has
    one value. `texts` say what changes; without a change there are none.
    """

    columns: pa.Schema
    sources: Mapping[str, tuple[str, ...]]
    texts: tuple[str, ...]

    @property
    def in_files(self) -> ColumnChange:
        """The same change for the files of the table, which do not have the partitions' columns."""
        divided = {*partition_columns(self.columns)}
        columns = [each for each in self.columns if each.name not in divided]
        sources = {each.name: self.sources[each.name] for each in columns}
        return evolve(self, columns=pa.schema(columns, self.columns.metadata), sources=sources)

    @property
    def old_names(self) -> set[str]:
        """The names that no column has afterwards."""
        return {name for names in self.sources.values() for name in names} - {*self.columns.names}

    def changed(self, known: pa.Schema) -> set[str]:
        """Return the columns that get another name or type. `known` are those of the table."""
        return {
            each.name
            for each in self.columns
            if self.sources[each.name] != (each.name,) or known.field(each.name).type != each.type
        }

    @property
    def read_columns(self) -> pa.Schema:
        """The columns with which the table is read: new types under the names that it has."""
        return pa.schema(
            [each.with_name(name) for each in self.columns for name in self.sources[each.name]]
        )


def change_of(
    table: str, known: pa.Schema, wanted: pa.Schema, renames: Mapping[str, str]
) -> ColumnChange:
    """Return the change after which a table with the columns `known` fits the columns `wanted`.

    `renames` has the new name of each old name. Columns that are not wanted stay as they are.
    Raises `SchemaError` if no such change would make the table fit.
    """
    target = {each.name: each for each in wanted}
    found: dict[str, pa.Field] = {}
    sources: dict[str, tuple[str, ...]] = {}
    texts: list[str] = []
    for column in known:
        name = renames.get(column.name, column.name)
        kind = _widened(column.type, target[name].type) if name in target else column.type
        if name != column.name:
            texts.append(f"column {column.name!r} becomes {name!r}")
        if kind != column.type:
            texts.append(f"column {column.name!r} is {column.type} and becomes {kind}")
        if name in found and found[name].type != kind:
            raise SchemaError(
                f"column {column.name!r} of the table {table} is {kind}, and {sources[name][0]!r}"
                f" is {found[name].type}, so they cannot become one column {name!r}: name another"
                " table"
            )
        found.setdefault(name, column.with_name(name).with_type(kind))
        # If the table has the new name, too, its values are looked for there first.
        others = sources.get(name, ())
        sources[name] = (name, *others) if column.name == name else (*others, column.name)
    columns = pa.schema(found.values(), known.metadata)
    check_columns(table, columns, wanted)
    return ColumnChange(columns, sources, tuple(texts))


def _widened(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Return `old` with a wider type wherever `new` has this wider type."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        types = {each.name: each.type for each in new}
        members = [(each, types.get(each.name, each.type)) for each in old]
        return pa.struct([each.with_type(_widened(each.type, kind)) for each, kind in members])
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(old.value_field.with_type(_widened(old.value_type, new.value_type)))
    if pa.types.is_map(old) and pa.types.is_map(new):
        item = old.item_field.with_type(_widened(old.item_type, new.item_type))
        return pa.map_(old.key_type, item)
    return new if _WIDER.get(old) == new else old


def changed_rows(table: str, rows: ds.Dataset, change: ColumnChange) -> Iterator[pa.RecordBatch]:
    """Return rows of a table with the columns of a change.

    `rows` were opened with `read_columns`. Raises `SchemaError`, before the first row is read, if a
    row has different values under two names of one column.
    """
    _refuse_two_values(table, rows, change)
    if HOOKS:
        reached("rewrite: before rows", table)
    values = {name: _first_of(names) for name, names in change.sources.items()}
    return _batches(table, rows.to_batches(columns=values), change.columns)


def _batches(
    table: str, parts: Iterable[pa.RecordBatch], columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for part in parts:
        if HOOKS:
            reached("rewrite: between rows", table)
        yield pa.RecordBatch.from_arrays(part.columns, schema=columns)


def _first_of(names: Sequence[str]) -> ds.Expression:
    values = [ds.field(name) for name in names]
    return values[0] if len(values) == 1 else pc.coalesce(*values)


def _refuse_two_values(table: str, rows: ds.Dataset, change: ColumnChange) -> None:
    for column in change.columns:
        for one, other in combinations(change.sources[column.name], 2):
            if rows.count_rows(filter=_differ(column.type, one, other)):
                raise SchemaError(
                    f"the table {table} has rows with different values in {one!r} and {other!r}, so"
                    f" they cannot become one column {column.name!r}: leave out the rename, or"
                    " name another table"
                )


def _differ(kind: pa.DataType, one: str, other: str) -> ds.Expression:
    """Return an expression for rows with two values. Arrow cannot compare structs and lists."""
    if pa.types.is_nested(kind):
        return ds.field(one).is_valid() & ds.field(other).is_valid()
    return pc.not_equal(ds.field(one), ds.field(other))
