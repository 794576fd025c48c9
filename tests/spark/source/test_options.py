"""Options: what is given is read, and every mistake names its option."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from twinstream.models import Timestamp
from twinstream.spark.data_source import JetStreamDataSource
from twinstream.spark.errors import OptionError
from twinstream.spark.source.bounds import Bound
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.stream_reader import JetStreamStreamReader
from twinstream.spark.source.stream_state import StreamState

LEAST = {"nats.servers": "nats://127.0.0.1:4222", "stream": "S"}


def parse(**given: str) -> SourceOptions:
    return SourceOptions.parse(LEAST | given)


def test_options_have_defaults() -> None:
    options = parse()
    assert options.streams == ("S",)
    assert options.start is None
    assert options.end is None
    assert options.fail_on_data_loss
    assert options.read_mode == "auto"
    assert options.value_format == "raw"
    assert not options.include_headers


def test_names_and_words_take_any_case() -> None:
    options = SourceOptions.parse(
        {"NATS.SERVERS": "h", "STREAM": "S", "valueformat": "RAW", "INCLUDEHEADERS": "True"}
    )
    assert options.value_format == "raw"
    assert options.include_headers


def test_option_names_of_kafka_are_accepted() -> None:
    options = SourceOptions.parse({"nats.servers": "h", "subscribe": "A, B"})
    assert options.streams == ("A", "B")
    assert parse(maxOffsetsPerTrigger="7").max_messages_per_trigger == 7


def test_only_white_space_of_the_server_is_cut_off_names() -> None:
    given = {"nats.servers": "h", "stream": " \xa0A, B\u3000 ", "subject": "\x1fa.b\xa0,\tc"}
    options = SourceOptions.parse(given)
    assert options.streams == ("\xa0A", "B\u3000")
    assert options.subjects == ("\x1fa.b\xa0", "c")


@pytest.mark.parametrize(
    ("given", "option", "reason"),
    [
        ({"nats.servers": ""}, "nats.servers", "may not be empty"),
        ({"nats.servers": "http://h"}, "nats.servers", "http"),
        ({"stream": "a b"}, "stream", "not allowed"),
        ({"stream": "A,,B"}, "stream", "empty name"),
        ({"stream": "A,A"}, "stream", "'A' twice"),
        ({"subscribe": "T"}, "subscribe", "means the same as 'stream'"),
        ({"subject": "a..b"}, "subject", "empty token"),
        ({"startingOffsets": "first"}, "startingOffsets", "earliest, latest, last 100 (messages)"),
        ({"startingOffsets": "-100"}, "startingOffsets", "earliest, latest, last 100 (messages)"),
        ({"endingOffsets": "last 9"}, "endingOffsets", "'last 9' is a start"),
        ({"startingTimestamp": "-7"}, "startingTimestamp", "as -7d, -12h or -30m, got '-7'"),
        ({"startingTimestamp": "-999999999d"}, "startingTimestamp", "up to 1000 years"),
        (
            {"startingTimestamp": "-1h", "endingTimestamp": "-2h"},
            "endingTimestamp",
            "-2h is before startingTimestamp, which is -1h",
        ),
        ({"startingOffsets": '{"S": 0}'}, "startingOffsets", "from 1 to 2"),
        ({"startingOffsets": '{"S": true}'}, "startingOffsets", "from 1 to 2"),
        ({"startingOffsets": "{}"}, "startingOffsets", "'S' is missing"),
        ({"endingOffsets": '{"S": 1, "T": 1}'}, "endingOffsets", "'T' is not read"),
        ({"endingOffsets": "earliest"}, "endingOffsets", "no message is before it"),
        ({"endingOffsets": '{"S": -2}'}, "endingOffsets", "no message is before it"),
        (
            {"startingOffsets": '{"S": 9}', "endingOffsets": '{"S": 3}'},
            "endingOffsets",
            "3 is before startingOffsets, which is 9",
        ),
        (
            {"startingTimestamp": "2000", "endingOffsetsByTimestamp": '{"S": 1999}'},
            "endingOffsetsByTimestamp",
            "is before startingTimestamp, which is 1970-01-01T00:00:02Z",
        ),
        ({"startingTimestamp": "noon"}, "startingTimestamp", "milliseconds since 1970"),
        ({"endingTimestamp": "2026-01-31"}, "endingTimestamp", "as 2026-01-31T12:00:00Z"),
        ({"startingOffsetsByTimestamp": "7"}, "startingOffsetsByTimestamp", "JSON object"),
        ({"startingOffsetsByTimestamp": "{}"}, "startingOffsetsByTimestamp", "one time a stream"),
        (
            {"startingOffsets": "latest", "startingTimestamp": "7"},
            "startingTimestamp",
            "cannot be combined with startingOffsets",
        ),
        (
            {"endingOffsetsByTimestampStrategy": "error"},
            "endingOffsetsByTimestampStrategy",
            "must be",
        ),
        ({"minPartitions": "0"}, "minPartitions", "from 1 up"),
        ({"maxMessagesPerPartition": "many"}, "maxMessagesPerPartition", "from 1 up"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss", "true or false"),
        ({"readMode": "push"}, "readMode", "auto, direct or consumer"),
        ({"valueFormat": "avro"}, "valueFormat", "raw, json or advisory"),
        ({"jsonSchema": "{}"}, "jsonSchema", "needs valueFormat=json"),
        ({"payloads": "s.yaml"}, "payloads", "needs valueFormat=json"),
        (
            {"payloads": "s.yaml", "jsonSchema": "{}", "valueFormat": "json"},
            "payloads",
            "cannot be combined with jsonSchema",
        ),
        (
            {"payloads": "/etc/passwd", "valueFormat": "json"},
            "payloads",
            "may name a file *.json or *.yaml or *.yml, not '/etc/passwd'",
        ),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay", "500ms, 30s, 15m or 2h"),
        ({"nats.password": "p"}, "nats.password", "needs nats.user"),
        ({"nats.token": "t", "nats.user": "u"}, "nats.token", "cannot be combined with a user"),
        (
            {"nats.token": "t", "nats.tokenEnv": "NATS_T"},
            "nats.tokenEnv",
            "combined with nats.token",
        ),
        ({"nats.domain": "a.b"}, "nats.domain", "domain name"),
        ({"startingOfsets": "latest"}, "startingOfsets", "did you mean 'startingOffsets'"),
        ({"kafka.x": "1"}, "kafka.x", "is not known"),
        (
            {"minMessagesPerTrigger": "9", "maxMessagesPerTrigger": "3"},
            "minMessagesPerTrigger",
            "above maxMessagesPerTrigger=3",
        ),
    ],
)
def test_a_mistake_names_its_option(given: dict[str, str], option: str, reason: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(**given)
    assert caught.value.option == option
    assert reason in str(caught.value)
    assert repr(option) in str(caught.value)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("subscribe", "a b"),
        ("subscribe", "A,,B"),
        ("subscribe", "A,A"),
        ("maxOffsetsPerTrigger", "many"),
        ("minOffsetsPerTrigger", "0"),
    ],
)
def test_a_mistake_names_its_option_as_it_was_given(option: str, text: str) -> None:
    given = {"nats.servers": "h", "subscribe": "S"} | {option: text}
    with pytest.raises(OptionError) as caught:
        SourceOptions.parse(given)
    assert caught.value.option == option


def test_a_missing_option_is_named() -> None:
    with pytest.raises(OptionError, match=r"nats\.servers.*is required"):
        SourceOptions.parse({"stream": "S"})
    with pytest.raises(OptionError, match=r"'stream'.*is required"):
        SourceOptions.parse({"nats.servers": "h"})
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        SourceOptions.parse({})


def test_what_spark_adds_to_tables_is_no_mistake() -> None:
    table = {"provider": "jetstream", "owner": "me", "path": "file:/t", "option.stream": "S"}
    assert parse(**table).streams == ("S",)
    with pytest.raises(OptionError, match=r"option\.nope"):
        parse(**table, **{"option.nope": "1"})


def nothing_at(stream: str, time: datetime) -> int | None:
    return None


@pytest.mark.parametrize(
    ("text", "at"),
    [("earliest", 5), ("LATEST", 9), ('{"S": -2}', 5), ('{"S": -1}', 9), ('{"S": 7}', 7)],
)
def test_bounds_resolve_to_sequences(text: str, at: int) -> None:
    bound = Bound.parse("startingOffsets", text, ("S",))
    assert bound.resolve(StreamState("S", first=5, next=9, created=""), nothing_at) == at


def test_a_time_before_now_is_resolved_by_the_clock_of_the_leader() -> None:
    state = StreamState("S", first=5, next=9, created="", now="2026-01-31T06:00:00Z")
    times: list[str] = []

    def seq_at(stream: str, time: datetime) -> int:
        times.append(time.isoformat())
        return 7

    bound = parse(startingTimestamp="-7d").start
    assert bound is not None
    assert bound.resolve(state, seq_at) == 7
    by_stream = parse(startingOffsetsByTimestamp='{"S": "-90m"}').start
    assert by_stream is not None
    assert by_stream.resolve(state, seq_at) == 7
    assert times == ["2026-01-24T06:00:00+00:00", "2026-01-31T04:30:00+00:00"]


def test_a_number_of_last_messages_needs_a_way_to_count_them() -> None:
    bound = parse(startingOffsets="Last 3").start
    assert bound is not None
    state = StreamState("S", first=5, next=9, created="")
    assert bound.resolve(state, nothing_at, lambda state, last: state.next - last) == 6
    with pytest.raises(OptionError, match="a landing begins at earliest, a sequence or a time"):
        bound.resolve(state, nothing_at)


STATE = StreamState("S", first=5, next=9, created="")
MORNING = "2026-01-31T06:00:00Z"


@pytest.mark.parametrize(
    "given",
    [
        {"startingTimestamp": MORNING},
        {"startingTimestamp": "1769839200000"},
        {"startingOffsetsByTimestamp": '{"S": 1769839200000}'},
        {"startingOffsetsByTimestamp": f'{{"S": "{MORNING}"}}'},
    ],
)
def test_times_are_resolved_by_the_server(given: dict[str, str]) -> None:
    bound = parse(**given).start
    assert bound is not None
    asked: list[tuple[str, datetime]] = []

    def seven_at(stream: str, time: datetime) -> int | None:
        asked.append((stream, time))
        return 7

    assert bound.resolve(STATE, seven_at) == 7
    assert asked == [("S", Timestamp.parse(MORNING))]


def test_a_start_after_all_messages_is_refused_unless_latest() -> None:
    start, end = parse(startingTimestamp=MORNING).start, parse(endingTimestamp=MORNING).end
    assert start is not None
    assert end is not None
    with pytest.raises(OptionError, match="no message at or after 2026-01-31"):
        start.resolve(STATE, nothing_at)
    assert end.resolve(STATE, nothing_at) == 9
    latest = parse(startingTimestamp=MORNING, startingOffsetsByTimestampStrategy="latest").start
    assert latest is not None
    assert latest.resolve(STATE, nothing_at) == 9


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_streaming_read_has_no_end(name: str) -> None:
    texts = {
        "endingOffsets": "latest",
        "endingTimestamp": "1",
        "endingOffsetsByTimestamp": '{"S":1}',
    }
    source = JetStreamDataSource({**LEAST, name: texts[name]})
    assert source.reader(source.schema())
    with pytest.raises(OptionError, match=f"'{name}': is for a batch"):
        source.streamReader(source.schema()).initialOffset()


@pytest.mark.parametrize(
    "given",
    [
        {"maxMessagesPerTrigger": "3"},
        {"maxoffsetspertrigger": "3"},
        {"maxBytesPerTrigger": "3"},
        {"minMessagesPerTrigger": "3"},
        {"maxTriggerDelay": "3s"},
    ],
)
def test_a_batch_has_no_limits_of_triggers(given: dict[str, str]) -> None:
    source = JetStreamDataSource({**LEAST, **given})
    assert source.streamReader(source.schema())
    with pytest.raises(OptionError, match="is for a streaming query"):
        source.reader(source.schema())


@pytest.mark.parametrize("least", ["minMessagesPerTrigger", "minoffsetspertrigger"])
def test_a_delay_is_for_batches_that_wait_for_more(least: str) -> None:
    source = JetStreamDataSource({**LEAST, "maxTriggerDelay": "3s"})
    with pytest.raises(OptionError, match="'maxTriggerDelay': needs minMessagesPerTrigger"):
        source.streamReader(source.schema()).initialOffset()
    source = JetStreamDataSource({**LEAST, "maxTriggerDelay": "3s", least: "5"})
    assert isinstance(source.streamReader(source.schema()), JetStreamStreamReader)


def test_a_streaming_write_has_its_name_from_the_checkpoint() -> None:
    source = JetStreamDataSource({**LEAST, "subject": "s", "writeId": "job"})
    rows = StructType([StructField("data", BinaryType())])
    assert source.writer(rows, overwrite=False)
    with pytest.raises(OptionError, match="'writeId': is for a batch write: a streaming query is"):
        source.streamWriter(rows, overwrite=False)
