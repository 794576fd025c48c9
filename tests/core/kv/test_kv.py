"""Key-value buckets without a server: names, settings, codecs, entries, initial values."""

from __future__ import annotations

from datetime import timedelta

import pytest

from twinstream.codecs import (
    Base64Keys,
    JsonCodec,
    KeyCodecs,
    PathKeys,
    ValueCodecs,
    codec_for,
)
from twinstream.core.kv.cached_entries import CachedEntries
from twinstream.core.kv.codecs import Codecs
from twinstream.core.kv.config import changed_stream, key_value_config, stream_config
from twinstream.core.kv.names import KeySubjects, check_bucket, check_filter_of_keys, check_key
from twinstream.core.kv.ttl import check_key_ttl, whole_ttl
from twinstream.core.kv.watch import WatchState
from twinstream.errors import (
    BadArgument,
    InvalidKey,
    NotABucket,
    RevisionMismatch,
    WrongLastSequence,
)
from twinstream.models import (
    Compression,
    ExternalStream,
    KeyValueConfig,
    StreamConfig,
    StreamSource,
    SubjectTransform,
    decode,
    encode,
    evolve,
)
from twinstream.records.entry import Entry, KeyValueOperation, may_be_marker, operation_of, size_of
from twinstream.records.headers import Headers

# ---- names


@pytest.mark.parametrize("key", ["a", "a.b", "A-Z/a_z=0", "_kv.x", "x" * 500, "a/b=c.d-e"])
def test_keys_that_are_fine(key: str) -> None:
    assert check_key(key) == check_filter_of_keys(key) == key


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", "a b", "a\n", "a*", "é", "a:b", "\t"])
def test_keys_that_are_not(key: str) -> None:
    with pytest.raises(InvalidKey):
        check_key(key)


@pytest.mark.parametrize(
    ("pattern", "good"),
    [
        ("*", True),
        (">", True),
        ("a.*.c", True),
        ("a.>", True),
        ("*.>", True),
        (">.a", False),
        ("a>", False),
        ("a*.b", False),
        ("a.**", False),
        ("a..*", False),
        ("", False),
        ("a. b", False),
    ],
)
def test_filters(pattern: str, good: bool) -> None:
    if good:
        assert check_filter_of_keys(pattern) == pattern
    else:
        with pytest.raises(InvalidKey):
            check_filter_of_keys(pattern)


@pytest.mark.parametrize("bucket", ["", "a.b", "a b", "a\n", "é", "a/b", ">", "x" * 253, None])
def test_names_of_no_bucket(bucket: str) -> None:
    with pytest.raises(InvalidKey):
        check_bucket(bucket)


def test_where_keys_are_read_and_written() -> None:
    plain = StreamConfig(name="KV_B", subjects=["$KV.B.>"])
    assert KeySubjects.of(plain, "$JS.API") == KeySubjects("$KV.B.", "$KV.B.")
    assert KeySubjects.of(plain, "$JS.hub.API").written == "$JS.hub.API.$KV.B."
    mirror = StreamConfig(name="KV_M", mirror=StreamSource(name="KV_O"))
    assert KeySubjects.of(mirror, "$JS.API") == KeySubjects("$KV.O.", "$KV.O.", "KV_O")
    far = evolve(
        mirror, mirror=StreamSource(name="KV_O", external=ExternalStream(api="$JS.hub.API"))
    )
    found = KeySubjects.of(far, "$JS.API")
    assert found == KeySubjects("$KV.O.", "$JS.hub.API.$KV.O.", "KV_O", "$JS.hub.API")
    transform = SubjectTransform(src="$KV.O.>", dest="$KV.M.>")
    moved = evolve(mirror, mirror=StreamSource(name="KV_O", subject_transforms=[transform]))
    assert KeySubjects.of(moved, "$JS.API").stored == "$KV.M."
    assert found.key("$KV.O.a.b") == "a.b"
    assert found.key("other") == "other"


# ---- settings

FULL = KeyValueConfig(
    bucket="B",
    description="d",
    history=5,
    ttl=timedelta(hours=1),
    limit_marker_ttl=timedelta(minutes=1),
    max_value_size=1000,
    max_bytes=10_000,
    storage="memory",
    num_replicas=3,
    compression=True,
    metadata={"a": "b"},
)


def test_settings_of_a_bucket_become_those_of_its_stream() -> None:
    stream = stream_config(FULL)
    assert encode(stream) == {
        "name": "KV_B",
        "description": "d",
        "subjects": ["$KV.B.>"],
        "max_msgs_per_subject": 5,
        "max_age": 3_600_000_000_000,
        "subject_delete_marker_ttl": 60_000_000_000,
        "allow_msg_ttl": True,
        "max_msg_size": 1000,
        "max_bytes": 10_000,
        "storage": "memory",
        "num_replicas": 3,
        "compression": "s2",
        "metadata": {"a": "b"},
        "discard": "new",
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "deny_purge": False,
        "allow_direct": True,
    }
    assert key_value_config(stream) == FULL
    assert decode(encode(FULL), KeyValueConfig) == FULL


def test_the_smallest_bucket() -> None:
    stream = stream_config(KeyValueConfig(bucket="B"))
    assert stream.max_msgs_per_subject == 1
    assert stream.max_age is stream.allow_msg_ttl is stream.compression is None


def test_sources_are_completed_and_the_given_ones_stay() -> None:
    own = StreamSource(name="X", subject_transforms=[SubjectTransform(src="a.>", dest="$KV.B.a.>")])
    given = [StreamSource(name="O"), StreamSource(name="KV_P", filter_subject="$KV.P.x.*"), own]
    stream = stream_config(KeyValueConfig(bucket="B", sources=given))
    one, two, three = stream.sources or []
    assert one == StreamSource(
        name="KV_O", subject_transforms=[SubjectTransform(src="$KV.O.>", dest="$KV.B.>")]
    )
    assert two == StreamSource(
        name="KV_P", subject_transforms=[SubjectTransform(src="$KV.P.x.*", dest="$KV.B.x.*")]
    )
    assert three == own
    assert given[0] == StreamSource(name="O")


def test_a_mirror_has_no_subjects() -> None:
    stream = stream_config(KeyValueConfig(bucket="M", mirror=StreamSource(name="O")))
    assert stream.subjects is None
    assert (stream.mirror_direct, stream.allow_direct) == (True, True)
    with pytest.raises(BadArgument, match="creates no markers"):
        stream_config(evolve(FULL, mirror=StreamSource(name="O")))


def test_what_changes_and_what_stays() -> None:
    stream = evolve(
        stream_config(FULL),
        max_consumers=9,
        duplicate_window=timedelta(minutes=2),
        metadata={"a": "b", "_nats.level": "1"},
    )
    before = key_value_config(stream)
    assert before.metadata == {"a": "b"}
    assert changed_stream(stream, before, before) is stream
    given = KeyValueConfig(bucket="B", history=5, ttl=timedelta(seconds=30), metadata={"c": "d"})
    changed = changed_stream(stream, before, given)
    assert changed.max_age == changed.duplicate_window == timedelta(seconds=30)
    assert changed.metadata == {"c": "d", "_nats.level": "1"}
    assert (changed.max_consumers, changed.max_msgs_per_subject) == (9, 5)
    bare = changed_stream(
        stream, before, evolve(before, max_bytes=None, history=None, compression=False, ttl=None)
    )
    assert (bare.max_bytes, bare.max_msgs_per_subject, bare.max_age) == (-1, 1, None)
    assert bare.compression is Compression.NONE
    assert bare.allow_msg_ttl


def test_streams_that_are_no_buckets() -> None:
    for stream in (
        StreamConfig(name="B", subjects=["$KV.B.>"]),
        StreamConfig(name="KV_", subjects=["$KV..>"]),
        StreamConfig(name="KV_B", subjects=["$KV.C.>"]),
    ):
        with pytest.raises(NotABucket):
            key_value_config(stream)


# ---- entries


def test_words_of_markers() -> None:
    assert operation_of({}) is KeyValueOperation.PUT
    assert operation_of({"KV-Operation": "DEL"}) is KeyValueOperation.DELETE
    assert operation_of({"Nats-Marker-Reason": "MaxAge"}) is KeyValueOperation.EXPIRED
    # What a client says counts more than what a server says.
    both = {"KV-Operation": "PURGE", "Nats-Marker-Reason": "MaxAge"}
    assert operation_of(both) is KeyValueOperation.PURGE
    assert may_be_marker(b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n")
    assert may_be_marker(b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n")
    assert not may_be_marker(b"NATS/1.0\r\nNats-Msg-Size: 7\r\n\r\n")


def test_sizes_of_values() -> None:
    assert size_of(Headers(), b"abc") == 3
    assert size_of(Headers([("Nats-Msg-Size", "70")]), b"") == 70
    assert size_of(Headers([("Nats-Msg-Size", "many")]), b"abc") == 3
    assert size_of(Headers([("Nats-Msg-Size", "70"), ("Nats-Msg-Size", "5")]), b"") == 5


# ---- codecs


@pytest.mark.parametrize(
    ("key", "stored"), [("a.b", "YQ.Yg"), ("a b", "YSBi"), ("?>", "Pz4"), ("~~?", "fn4_")]
)
def test_base64_keys_as_orbit_writes_them(key: str, stored: str) -> None:
    codec = Base64Keys()
    assert codec.encode(key) == stored
    assert codec.decode(stored) == key
    assert codec.encode_filter("a.*.>") == "YQ.*.>"


@pytest.mark.parametrize(
    ("key", "stored", "back"),
    [
        ("/x/y", "_root_.x.y", "/x/y"),
        ("/", "_root_", "/"),
        ("x/y/", "x.y", "x/y"),
        ("/x/", "_root_.x", "/x"),
        ("x", "x", "x"),
    ],
)
def test_path_keys_as_orbit_writes_them(key: str, stored: str, back: str) -> None:
    codec = PathKeys()
    assert codec.encode(key) == stored
    assert codec.decode(stored) == back


def test_chains_encode_forwards_and_decode_backwards() -> None:
    chain = KeyCodecs(PathKeys(), Base64Keys())
    assert chain.encode("/x") == "X3Jvb3Rf.eA"
    assert chain.decode("X3Jvb3Rf.eA") == "/x"
    assert chain.encode_filter("/x/*") == "X3Jvb3Rf.eA.*"

    class Reversed:
        def encode(self, value: bytes) -> bytes:
            return value[::-1]

        decode = encode

    values = ValueCodecs(JsonCodec(int), Reversed())
    assert values.encode(123) == b"321"
    assert values.decode(b"321") == 123


def test_the_encoded_key_is_checked() -> None:
    codecs: Codecs[bytes] = Codecs(Base64Keys(), None)
    assert codecs.encode_key("é ü") == "w6kgw7w"
    with pytest.raises(InvalidKey):
        codecs.encode_key("a..b")
    with pytest.raises(InvalidKey):
        codecs.encode_key("")


def test_model_with_its_own_json() -> None:
    class Own:
        def __init__(self, text: str) -> None:
            self.text = text

        def model_dump_json(self) -> str:
            return self.text

        @classmethod
        def model_validate_json(cls, data: bytes) -> Own:
            return cls(data.decode())

    codec = codec_for(Own)
    assert codec.encode(Own("{}")) == b"{}"
    assert codec.decode(b"{}").text == "{}"


# ---- TTL


def test_times_to_live() -> None:
    assert whole_ttl(1.5) == 2
    assert whole_ttl(timedelta(minutes=1)) == 60
    assert whole_ttl("never") == "never"
    for bad in (0, 0.99, -1, "1s", float("inf")):
        with pytest.raises(BadArgument):
            whole_ttl(bad)
    one = StreamConfig(max_msgs_per_subject=1, subject_delete_marker_ttl=timedelta(seconds=9))
    check_key_ttl(2, one, single=True)
    deep = evolve(one, max_msgs_per_subject=5)
    check_key_ttl(9, deep, single=False)
    for ttl, single in ((8, False), (60, True)):
        with pytest.raises(BadArgument):
            check_key_ttl(ttl, deep, single=single)


# ---- conflicts


@pytest.mark.parametrize(
    ("description", "code", "actual"),
    [
        ("wrong last sequence: 7", 10071, 7),
        ("wrong last sequence: 0", 10071, 0),
        ("wrong last sequence", 10164, None),
        ("wrong last sequence: x", 10071, None),
    ],
)
def test_both_codes_of_a_conflict_are_one_error(
    description: str, code: int, actual: int | None
) -> None:
    given = WrongLastSequence(description, code=400, err_code=code)
    assert given.actual == actual
    error = RevisionMismatch.of(given, "k", 3)
    assert (error.expected, error.actual, error.err_code) == (3, actual, code)
    found = "another write is in flight" if actual is None else f"it is at {actual}"
    text = f"key 'k' is not at revision 3, {found}; get it again before the next try"
    assert str(error).startswith(text)


# ---- the end of the state


def test_state_is_complete_if_nothing_was_written_in_between() -> None:
    state = WatchState(updates_only=False)
    assert not state.take_mark()
    assert state.reached(7)
    state.judge(7, 7)
    assert (state.take_mark(), state.take_mark(), state.is_live) == (True, False, True)


def test_state_is_read_during_writes_but_not_forever() -> None:
    state = WatchState(updates_only=False)
    rounds = 0
    while not state.is_live:
        assert state.reached(state.target)
        assert not state.reached(state.target - 1)
        state.judge(state.target + 5, state.target)
        rounds += 1
    assert rounds == 10
    assert state.take_mark()


def test_updates_have_no_state_and_a_new_bucket_has_one() -> None:
    state = WatchState(updates_only=True)
    assert state.take_mark()
    assert not state.reached(99)
    other = WatchState(updates_only=False)
    other.judge(0, 0)
    assert other.take_mark()
    other.restart()
    assert (other.generation, other.is_live, other.target) == (2, False, 0)
    assert other.reached(0)
    other.judge(3, 3)
    assert other.take_mark()


# ---- the cache


def entry(revision: int, operation: str = "put") -> Entry[bytes]:
    return Entry(
        bucket="B",
        key="k",
        value=b"%d" % revision if operation == "put" else None,
        revision=revision,
        operation=KeyValueOperation(operation),
        timestamp_ns=0,
        size=1,
        headers=Headers(),
    )


def test_what_was_written_is_not_replaced_by_what_is_older() -> None:
    cached: CachedEntries[bytes] = CachedEntries()
    cached.delivered(entry(1), 1)
    cached.caught_up(1)
    cached.wrote(entry(5), (1, 0))
    cached.delivered(entry(4), 1)
    assert cached.find("k") == entry(5)
    cached.wrote(entry(7, "delete"), (1, 0))
    cached.delivered(entry(6), 1)
    assert cached.find("k") is None
    cached.delivered(entry(7, "delete"), 1)
    assert list(cached.living()) == []
    cached.delivered(entry(8), 1)
    assert cached.find("k") == entry(8)
    cached.wrote(entry(3), (1, 0))
    assert cached.find("k") == entry(8)


def test_a_write_that_is_entered_late_revives_no_deleted_key() -> None:
    """The watch may deliver a write, and the deletion after it, before the writer goes on."""
    cached: CachedEntries[bytes] = CachedEntries()
    cached.caught_up(1)
    cached.delivered(entry(5), 1)
    cached.delivered(entry(6, "delete"), 1)
    cached.wrote(entry(5), (1, 4))
    assert cached.find("k") is None
    cached.wrote(entry(6, "delete"), (1, 5))
    assert cached.find("k") is None
    cached.wrote(entry(7), (1, 6))
    assert cached.find("k") == entry(7)


def test_a_write_to_a_bucket_that_was_created_again_is_visible_before_the_watch_knows_it() -> None:
    cached: CachedEntries[bytes] = CachedEntries()
    cached.delivered(entry(89), 1)
    cached.caught_up(1)
    for deleted in (False, True):
        if deleted:
            cached.delivered(entry(90, "delete"), 1)
        cached.wrote(entry(1), cached.reached)
        assert cached.find("k") == entry(1)


def test_a_bucket_that_is_created_again_replaces_the_state_when_it_is_complete() -> None:
    cached: CachedEntries[bytes] = CachedEntries()
    cached.delivered(entry(90), 1)
    cached.caught_up(1)
    cached.delivered(entry(2), 2)
    assert cached.find("k") == entry(90)
    cached.caught_up(2)
    assert cached.find("k") == entry(2)
    cached.caught_up(3)
    assert cached.find("k") is None


def test_a_creation_that_others_held_up_says_so() -> None:
    refused = WrongLastSequence("wrong last sequence: 7", code=400, err_code=10071)
    plain = RevisionMismatch.of(refused, "a", 0)
    assert "is not at revision 0" in str(plain)
    held_up = RevisionMismatch.of(refused, "a", 0, 3)
    assert "writes of other clients made 3 attempts fail, at the last one it is at 7" in str(
        held_up
    )
    assert "get it before the next try" in str(held_up)
    assert (held_up.expected, held_up.actual) == (0, 7)
