"""Parse and validate the options of the source. Every `OptionError` names the option.

Options that also exist in Spark's Kafka source have the same names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from attrs import frozen

from twinstream.core.read.page_limits import PAGE_MESSAGES
from twinstream.core.wire.subject_match import widest
from twinstream.core.wire.subjects import check_filter, check_name
from twinstream.errors import BadArgument
from twinstream.spark.client.allow_list import SCHEMAS, STREAM_FILES, check_file
from twinstream.spark.client.options_map import OptionsMap
from twinstream.spark.client.settings import ConnectionSettings
from twinstream.spark.decode.json_schema import Uint64, is_schema_text, schema_text
from twinstream.spark.decode.payloads_schema import payloads_schema
from twinstream.spark.errors import OptionError
from twinstream.spark.source.bounds import Bound, Strategy
from twinstream.spark.source.bucket_options import BucketOptions

__all__ = ["Mode", "ReadMode", "SourceOptions", "ValueFormat"]

ValueFormat: TypeAlias = Literal["raw", "json", "advisory"]
Mode: TypeAlias = Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
ReadMode: TypeAlias = Literal["auto", "direct", "consumer"]

_FORMATS: Final[tuple[ValueFormat, ...]] = ("raw", "json", "advisory")
_MODES: Final[tuple[Mode, ...]] = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_READ_MODES: Final[tuple[ReadMode, ...]] = ("auto", "direct", "consumer")
_UINT64: Final[tuple[Uint64, ...]] = ("long", "decimal")

# Spark 4.3 passes no options to a Python source when a catalog table is read.
_NO_OPTIONS: Final = (
    "no option was received. Spark does not pass the options of CREATE TABLE to a Python source;"
    " use CREATE TEMPORARY VIEW … USING jetstream OPTIONS (…), or SELECT … FROM t WITH (…)"
)


@frozen(kw_only=True)
class SourceOptions:
    """The parsed options of one read."""

    connection: ConnectionSettings
    streams: tuple[str, ...]
    """The names of the streams; empty with a pattern."""
    pattern: str | None = None
    """A regular expression for names of streams. The streams are those that exist when a batch is
    planned."""
    subjects: tuple[str, ...] = ()
    """The subject filters, which the server applies. A filter is omitted if another filter covers
    it. Without filters, all messages are read."""
    bucket: BucketOptions | None = None
    """The key-value bucket to read, or `None`. With a bucket, the bucket's stream is the only
    name in `streams`."""
    start: Bound | None = None
    """The start of the read. With `None`, a batch query starts at the first message and a
    streaming query at the end of the stream, as in the Kafka source."""
    end: Bound | None = None
    """The end of a batch query. With `None`, the query reads up to the last message that is
    stored when Spark plans it."""
    refresh: bool = True
    """Whether a batch query that is a part of a streaming query is planned again in each
    micro-batch."""
    fail_on_data_loss: bool = True
    slots: int | None = None
    """The number of tasks that run at once, or `None` if it is not known. No option sets it: it
    is a property of the session."""
    more_slots: bool = False
    """Whether the session may have more slots when the query runs, as on a cluster."""
    min_partitions: int | None = None
    max_messages_per_partition: int | None = None
    read_mode: ReadMode = "auto"
    include_headers: bool = False
    value_format: ValueFormat = "raw"
    json_schema: str | None = None
    """The text of the JSON Schema, or `None`. If `jsonSchema` or `payloads` names a file, `parse`
    reads the file on the driver, so that executors need no copy."""
    renames: tuple[tuple[str, str], ...] = ()
    """The old and the new name of each member that was renamed. No option sets it: a pipeline has
    it in the settings of its source."""
    mode: Mode = "PERMISSIVE"
    uint64: Uint64 = "long"
    corrupt_column: str = "_raw"
    fetch_timeout: float = 120.0
    """The number of seconds without progress after which a read fails."""
    page_messages: int = PAGE_MESSAGES
    fetch_retries: int = 10
    """The maximum number of retries of a request to a stream's leader."""
    fetch_retry_interval: float = 0.5
    """Seconds between two attempts. With the defaults, the retries last longer than a leader
    election usually takes."""
    max_messages_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_messages_per_trigger: int | None = None
    max_trigger_delay: float = 900.0
    """The maximum number of seconds that a batch waits for `min_messages_per_trigger`."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the parsed and validated options.

        Raises `OptionError` for an invalid option, and `SchemaError` if the file that `jsonSchema`
        or `payloads` names cannot be read or does not have the schema.
        """
        if not options:
            raise OptionError("stream", _NO_OPTIONS)
        given = OptionsMap(options)
        bucket = BucketOptions.take(given)
        pattern = _pattern(given)
        if bucket is not None:
            streams: tuple[str, ...] = (bucket.stream,)
        else:
            # The driver looks for the streams of a pattern when it plans.
            streams = _streams(given) if pattern is None else ()
        subjects = _subjects(given)
        parsed = cls(
            connection=ConnectionSettings.take(given),
            streams=streams,
            pattern=pattern,
            subjects=subjects,
            bucket=bucket,
            start=_bound(given, "starting", streams, bucket),
            end=_bound(given, "ending", streams, bucket),
            refresh=given.boolean("refresh", True),
            fail_on_data_loss=given.boolean("failOnDataLoss", True),
            min_partitions=given.maybe_integer("minPartitions"),
            max_messages_per_partition=given.maybe_integer("maxMessagesPerPartition"),
            read_mode=given.word("readMode", _READ_MODES),
            include_headers=given.boolean("includeHeaders", False),
            value_format=given.word("valueFormat", _FORMATS),
            json_schema=_json_schema(given, streams, subjects),
            mode=given.word("mode", _MODES),
            uint64=given.word("uint64", _UINT64),
            corrupt_column=given.text("columnNameOfCorruptRecord") or "_raw",
            fetch_timeout=given.integer("fetchTimeoutMs", 120_000, least=1) / 1000,
            page_messages=given.integer("fetchMessages", PAGE_MESSAGES, least=1),
            fetch_retries=given.integer("fetchOffset.numRetries", 10),
            fetch_retry_interval=given.integer("fetchOffset.retryIntervalMs", 500) / 1000,
            max_messages_per_trigger=given.maybe_integer(
                "maxMessagesPerTrigger", "maxOffsetsPerTrigger"
            ),
            max_bytes_per_trigger=given.maybe_integer("maxBytesPerTrigger"),
            min_messages_per_trigger=given.maybe_integer(
                "minMessagesPerTrigger", "minOffsetsPerTrigger"
            ),
            max_trigger_delay=given.duration("maxTriggerDelay", 900.0),
        )
        given.finish()
        parsed._check()
        return parsed

    def _check(self) -> None:
        if self.bucket is not None and self.value_format == "advisory":
            raise OptionError("valueFormat", "'advisory' is for streams of events, not for buckets")
        if self.start is not None and self.end is not None:
            self.start.refuse_end(self.end)
        most, least = self.max_messages_per_trigger, self.min_messages_per_trigger
        if most is not None and least is not None and least > most:
            raise OptionError(
                "minMessagesPerTrigger", f"is {least}, above maxMessagesPerTrigger={most}"
            )


def _streams(given: OptionsMap) -> tuple[str, ...]:
    """Return the names of the streams. Raises `OptionError` for none or for an invalid name."""
    streams = given.names("stream", "subscribe")
    if not streams:
        raise OptionError(
            "stream",
            "is required: the name of a stream, or several, with commas; or the option"
            " subscribePattern or bucket",
        )
    for name in streams:
        try:
            check_name(name, "stream")
        except BadArgument as error:
            raise OptionError(given.given_name("stream", "subscribe"), str(error)) from error
    return streams


def _pattern(given: OptionsMap) -> str | None:
    pattern = given.text("subscribePattern")
    if pattern is None:
        return None
    if given.text("stream", "subscribe") is not None:
        one = given.given_name("stream", "subscribe")
        raise OptionError("subscribePattern", f"cannot be combined with {one}; give one of them")
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError("subscribePattern", f"is no regular expression: {error}") from error
    return pattern


def _json_schema(
    given: OptionsMap, streams: tuple[str, ...], subjects: tuple[str, ...]
) -> str | None:
    """Return the text of the schema that `jsonSchema` or `payloads` names, or `None`.

    Raises `OptionError` if the options contradict each other, and `SchemaError` for a bad file.
    """
    found, file = given.text("jsonSchema"), given.text("payloads")
    if found is None and file is None:
        return None
    if found is not None and file is not None:
        raise OptionError("payloads", "cannot be combined with jsonSchema; give one of them")
    if given.word("valueFormat", _FORMATS) != "json":
        raise OptionError("payloads" if found is None else "jsonSchema", "needs valueFormat=json")
    if file is not None:
        if not streams:
            problem = "needs stream: which streams subscribePattern finds is not known before"
            raise OptionError("payloads", f"{problem}; give jsonSchema")
        check_file("payloads", file, STREAM_FILES)
        return payloads_schema(file, streams, subjects)
    assert found is not None, "one of the two options is given"
    if not is_schema_text(found):
        check_file("jsonSchema", found, SCHEMAS)
    return schema_text(found)


def _subjects(given: OptionsMap) -> tuple[str, ...]:
    subjects = given.names("subject")
    for subject in subjects:
        try:
            check_filter(subject)
        except BadArgument as error:
            raise OptionError("subject", str(error)) from error
    return widest(subjects)


def _bound(
    given: OptionsMap,
    end: Literal["starting", "ending"],
    streams: tuple[str, ...],
    bucket: BucketOptions | None,
) -> Bound | None:
    if bucket is None:
        return _bound_of(given, end, streams)
    found = _bound_of(given, end, (bucket.name,))
    return None if found is None else found.renamed(bucket.name, bucket.stream)


def _bound_of(
    given: OptionsMap, end: Literal["starting", "ending"], streams: tuple[str, ...]
) -> Bound | None:
    """Return the start or end of a read, or `None` if no option gives one.

    Raises `OptionError` for an invalid bound, or if several options give one.
    """
    # By default, a start time after the last message is an error, as in the Kafka source. An end
    # time after the last message always means the end of the stream.
    strategies: tuple[Strategy, ...] = ("error", "latest") if end == "starting" else ("latest",)
    otherwise: Strategy = given.word(f"{end}OffsetsByTimestampStrategy", strategies)
    offsets, time, times = f"{end}Offsets", f"{end}Timestamp", f"{end}OffsetsByTimestamp"
    texts = {
        name: text for name in (offsets, time, times) if (text := given.text(name)) is not None
    }
    if len(texts) > 1:
        one, other = list(texts)[:2]
        raise OptionError(other, f"cannot be combined with {one}; give one of them")
    if time in texts:
        return Bound.at_time(time, texts[time], otherwise)
    if times in texts:
        return Bound.at_times(times, texts[times], streams, otherwise)
    if offsets not in texts:
        return None
    text = texts[offsets]
    bound = Bound.parse(offsets, text, streams)
    if end == "ending" and bound.asks_for("earliest"):
        raise OptionError(offsets, "may not be earliest (-2): no message is before it")
    if end == "ending" and bound.last is not None:
        raise OptionError(offsets, f"'{text}' is a start; a read ends at latest or a sequence")
    return bound
