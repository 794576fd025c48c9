"""The names by which readers find the columns of a table in files without the IDs of columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pyiceberg.schema import index_by_id
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping

from twinstream.lake.iceberg.tables import NAME_MAPPING

__all__ = ["missing_mapping"]


def missing_mapping(metadata: TableMetadata) -> dict[str, str]:
    """Return the property that a table needs so that readers find all its columns in all files.

    There is none if the table has it. Another program, or the catalog, may have set it without the
    names that columns had in earlier schemas.
    """
    names: dict[int, set[str]] = defaultdict(set)
    for schema in metadata.schemas:
        for number, column in index_by_id(schema).items():
            names[number].add(column.name)
    known = metadata.name_mapping()
    present = set[tuple[int, str]]() if known is None else set(_pairs(known.root))
    for number, name in present:
        names[number].add(name)
    wanted = NameMapping(_with_names(metadata.schema().name_mapping.root, names))
    if {*_pairs(wanted.root)} <= present:
        return {}
    return {NAME_MAPPING: wanted.model_dump_json()}


def _pairs(fields: Iterable[MappedField]) -> Iterator[tuple[int, str]]:
    for each in fields:
        yield from ((each.field_id or 0, name) for name in each.names)
        yield from _pairs(each.fields)


def _with_names(
    fields: Iterable[MappedField], names: Mapping[int, Iterable[str]]
) -> list[MappedField]:
    """Return columns of one level with all their names, but each name only once."""
    current = list(fields)
    taken = {name for each in current for name in each.names}
    found: list[MappedField] = []
    for each in current:
        further = sorted({*names.get(each.field_id or 0, ())} - taken)
        taken |= {*further}
        below = _with_names(each.fields, names)
        update = {"names": [*each.names, *further], "fields": below}
        found.append(each.model_copy(update=update))
    return found
