"""Rows that no stream takes, found before they are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from js_sync import JetStream, Stream
from twinstream.spark.errors import SchemaError
from twinstream.spark.sink.subjects import KnownSubjects

Make = Callable[..., Stream]


def batch(*subjects: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(subjects, pa.string())], ["subject"])


def refuses(known: KnownSubjects, *subjects: str | None) -> None:
    with pytest.raises(SchemaError, match=r"'nowhere\.x', which belongs to no stream"):
        known.check(batch(*subjects))


def test_subjects_of_the_only_stream_are_known(jet: JetStream, make_stream: Make) -> None:
    stream = make_stream()
    name = stream.name.lower()
    known = KnownSubjects(jet, stream.cached_info.config, f"{name}.rest")
    known.check(batch(f"{name}.a", f"{name}.a.b", None))
    known.check(pa.RecordBatch.from_arrays([pa.array([1])], ["data"]))
    refuses(known, f"{name}.a", "nowhere.x")
    refuses(known, "nowhere.x")


def test_streams_are_found_by_the_rows(jet: JetStream, make_stream: Make) -> None:
    one, two = make_stream().name.lower(), make_stream().name.lower()
    known = KnownSubjects(jet, None, None)
    known.check(batch(f"{one}.a", None, f"{two}.a"))
    refuses(known, f"{two}.b", f"{one}.b", "nowhere.x")


@pytest.mark.parametrize(
    ("filters", "subjects"),
    [
        (["a.>"], ["a.b", "a.b.c.d"]),
        (["a.*.c", "a.ü", "a+b.$x"], ["a.b.c", "a.ü", "a+b.$x"]),
        (["a.b.c"], ["a.b.c"]),
    ],
)
def test_filters_match_as_the_server_does(
    jet: JetStream, make_stream: Make, filters: Sequence[str], subjects: Sequence[str]
) -> None:
    stream = make_stream(subjects=[f"match.{each}" for each in filters])
    known = KnownSubjects(jet, stream.cached_info.config, None)
    known.check(batch(*(f"match.{each}" for each in subjects)))
    # Otherwise the stream would have been looked up in vain, and nothing would be refused any more.
    refuses(known, "nowhere.x")
    stream.delete()
