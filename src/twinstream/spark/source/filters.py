"""Compare the subject filters of a read with those of its checkpoint."""

from __future__ import annotations

from twinstream.core.wire.subject_match import covers, crossing, pattern_of, widest
from twinstream.spark.source.options import SourceOptions

__all__ = ["instead_of", "same_filter"]


def same_filter(one: str, other: str) -> bool:
    """Return whether two comma-separated lists of filters match the same subjects.

    An empty list matches all subjects.
    """
    return set(_filters(one)) == set(_filters(other))


def instead_of(before: str, options: SourceOptions) -> str:
    """Return how a query with a checkpoint reads other subjects, as the end of an error message.

    `before` are the filters of the checkpoint, `options` have the new ones. No advice may make a
    table have rows twice. So the query keeps its filters, and a second query reads only what the
    first one does not.
    """
    name, prefix = "subject", ""
    if options.bucket is not None:
        name, prefix = "keys", options.bucket.prefix
    old, new = _filters(before), _filters(",".join(options.subjects))
    added = [each for each in new if not any(covers(wide, each) for wide in old)]
    keep = f"give {name}={_text(old, prefix)!r} as before"
    if not added:
        return f"{keep}, and leave out other rows in the query, with where()"
    second = (
        f"{keep}, and read {name}={_text(added, prefix)!r} in a second query with its own"
        " checkpoint and startingOffsets=earliest"
    )
    if not any(crossing([one, other]) for one in old for other in added):
        return f"{second}; both may write to one table, which then has no row twice"
    column = ("" if options.value_format == "raw" else "_") + name.removesuffix("s")
    pattern = "|".join(pattern_of(each.removeprefix(prefix)).decode() for each in old)
    return (
        f"{second}, without the rows of this one:"
        f' .where(~col("{column}").rlike(r"^({pattern})$")); both may write to one table, which'
        " then has no row twice"
    )


def _filters(text: str) -> tuple[str, ...]:
    return widest((text or ">").split(","))


def _text(filters: tuple[str, ...] | list[str], prefix: str) -> str:
    return ",".join(each.removeprefix(prefix) for each in filters)
