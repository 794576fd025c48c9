# Generated from tests/_async/test_kv_entries.py by codegen/twin.py. Edit that file instead.
"""Reading and writing single keys: values, markers, conditions, TTL."""

from __future__ import annotations

from functools import partial

import pytest

import js_sync as js
from twinstream.errors import ConnectionLost
from js_sync.kv import writes as _kv_writes
from tests._sync.buckets import bucket, listed, told
from tests._sync.flow import eventually, together
from tests._sync.lossy import Lossy


def test_what_was_put_is_got(opened, name):
    with opened() as jet:
        made = bucket(jet, name, history=3)
        for number, value in enumerate((b"", b"\0", b"x" * 100_000), 1):
            assert made.put("a/b=c.d-e_f", value) == number
            entry = made.get("a/b=c.d-e_f")
            assert (entry.key, entry.value, entry.revision) == ("a/b=c.d-e_f", value, number)
            assert (entry.bucket, entry.size) == (name, len(value))
            assert entry.operation is js.KeyValueOperation.PUT
            assert entry.is_value
        first = made.get("a/b=c.d-e_f", revision=1)
        assert (first.value, first.revision) == (b"", 1)
        assert first.created < entry.created
        assert made.put("view", memoryview(b"seen")) == 4
        assert (made.get("view", stale=True)).value == b"seen"


def test_a_key_without_a_value_is_told_from_an_empty_one(opened, name):
    with opened() as jet:
        made = bucket(jet, name, history=5)
        with pytest.raises(js.KeyNotFound, match=f"bucket {name} has no key 'a'") as caught:
            made.get("a")
        assert not isinstance(caught.value, js.KeyDeleted)
        assert isinstance(caught.value, LookupError)
        assert made.entry("a") is None
        made.put("a", b"")
        assert (made.get("a")).value == b""
        assert made.delete("a") == 2
        with pytest.raises(js.KeyDeleted) as caught:
            made.get("a")
        marker = caught.value.entry
        assert (marker.operation, marker.revision) == (js.KeyValueOperation.DELETE, 2)
        assert marker.value is None
        assert not marker.is_value
        assert (made.entry("a")).revision == 2
        with pytest.raises(js.KeyDeleted):
            made.get("a", revision=2)
        assert (made.get("a", revision=1)).value == b""
        assert made.purge("a") == 3
        assert (made.entry("a")).operation is js.KeyValueOperation.PURGE
        # Of another key, removed, or never there.
        made.put("b", b"")
        for revision in (1, 4, 99):
            with pytest.raises(js.KeyNotFound, match=f"at revision {revision}"):
                made.get("a", revision=revision)


def test_update_replaces_what_it_expects(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        made.put("a", b"1")
        assert made.update("a", b"2", 1) == 2
        with pytest.raises(js.RevisionMismatch, match="it is at 2") as caught:
            made.update("a", b"3", 1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert isinstance(caught.value, js.WrongLastSequence)
        for call in (made.delete, made.purge):
            with pytest.raises(js.RevisionMismatch):
                call("a", revision=1)
        with pytest.raises(js.RevisionMismatch) as caught:
            made.update("never", b"", 7)
        assert caught.value.actual == 0
        for bad in (0, -1, True, "1", None):
            with pytest.raises(js.BadArgument, match="create stores a key that has no value"):
                made.update("a", b"", bad)
        assert made.delete("a", revision=2) == 3
        assert made.purge("a", revision=3) == 4


def test_create_needs_a_key_without_a_value(opened, name):
    with opened() as jet:
        made = bucket(jet, name, history=4)
        assert made.create("a", b"1") == 1
        with pytest.raises(js.KeyExists, match="update replaces it on condition") as caught:
            made.create("a", b"2")
        assert caught.value.entry.value == b"1"
        assert caught.value.actual == 1
        made.delete("a")
        assert made.create("a", b"3") == 3
        made.purge("a")
        assert made.create("a", b"4") == 5
        assert [told(each) for each in made.history("a")] == [
            ("a", "purge", None),
            ("a", "put", b"4"),
        ]


def test_of_many_creators_one_wins(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        for _ in range(10):

            def attempt(number):
                try:
                    return made.create("a", b"%d" % number)
                except js.KeyExists as error:
                    return error

            results = together(*(partial(attempt, number) for number in range(8)))
            (won,) = [each for each in results if isinstance(each, int)]
            assert {each.actual for each in results if not isinstance(each, int)} == {won}
            made.delete("a", revision=won)


def test_counting_up_by_update_loses_nothing(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        made.put("n", b"0")

        def count():
            for _ in range(25):
                while True:
                    entry = made.get("n")
                    try:
                        made.update("n", b"%d" % (int(entry.value) + 1), entry.revision)
                        break
                    except js.RevisionMismatch:
                        continue

        together(*[count] * 4)
        assert (made.get("n")).value == b"100"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "is empty"),
        (".a", "begins or ends with a dot"),
        ("a.", "begins or ends with a dot"),
        ("a..b", "two in a row"),
        ("a b", "holds ' '"),
        ("a\n", r"holds '\\n'"),
        ("a.*", r"holds '\*'"),
        (">", "holds '>'"),
        ("é", "holds 'é'"),
        ("a:b", "holds ':'"),
        (7, "is no text"),
    ],
)
def test_keys_that_no_peer_accepts(opened, name, key, words):
    with opened() as jet:
        made = bucket(jet, name)
        for call in (
            lambda: made.get(key),
            lambda: made.put(key, b""),
            lambda: made.create(key, b""),
            lambda: made.update(key, b"", 1),
            lambda: made.delete(key),
            lambda: made.purge(key),
            lambda: made.history(key),
        ):
            with pytest.raises(js.InvalidKey, match=words):
                call()


def test_values_are_bytes(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        with pytest.raises(js.BadArgument, match="encode it"):
            made.put("a", "text")
        with pytest.raises(js.BadArgument, match="got int"):
            made.create("a", 7)


def test_keys_of_other_writers_are_read(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        for key in ("a:b", "é", "plain"):
            jet.publish(f"$KV.{name}.{key}", b"x")
        assert listed(made.keys()) == ["a:b", "plain", "é"]
        assert sorted(made.get_many()) == ["a:b", "plain", "é"]


def test_what_other_words_of_markers_mean(opened, name):
    with opened() as jet:
        made = bucket(jet, name)
        for headers, operation in (
            ({"KV-Operation": "PUT"}, "put"),
            ({"KV-Operation": "DEL"}, "delete"),
            ({"KV-Operation": "PURGE"}, "purge"),
            ({"KV-Operation": "NEW"}, "delete"),
            ({"Nats-Marker-Reason": "MaxAge"}, "expired"),
            ({"Nats-Marker-Reason": "Purge"}, "purge"),
            ({"Nats-Marker-Reason": "Remove"}, "delete"),
            ({"Nats-Marker-Reason": "New"}, "delete"),
            ({"Other": "x"}, "put"),
        ):
            jet.publish(f"$KV.{name}.a", b"", headers=headers)
            assert (made.entry("a")).operation == operation


def test_many_keys_at_one_revision(opened, name):
    with opened() as jet:
        made = bucket(jet, name, history=5)
        for number in range(5):
            made.put(f"a.{number}", b"%d" % number)
        made.put("b", b"b")
        made.delete("a.0")
        found = made.get_many("a.*", "b")
        assert {key: entry.value for key, entry in found.items()} == {
            **{f"a.{number}": b"%d" % number for number in range(1, 5)},
            "b": b"b",
        }
        assert found.revision == 7
        before = made.get_many("a.0", at_revision=6)
        assert before["a.0"].value == b"0"
        assert len(made.get_many("none")) == 0
        with pytest.raises(js.InvalidKey, match="whole token"):
            made.get_many("a*")


def test_history_is_told_oldest_first(opened, name):
    with opened() as jet:
        made = bucket(jet, name, history=3)
        with pytest.raises(js.KeyNotFound):
            made.history("a")
        for number in range(3):
            made.put("a", b"%d" % number)
        made.delete("a")
        found = made.history("a")
        assert [each.revision for each in found] == [2, 3, 4]
        assert told(found[-1]) == ("a", "delete", None)


# ---- lost answers


def test_a_condition_survives_lost_answers(server, name):
    with js.connect(server.url) as connection:
        lossy = Lossy(connection)
        made = bucket(lossy.jetstream(), name)
        lossy.losses = ["answer"]
        assert made.create("a", b"1") == 1
        lossy.losses = ["request"]
        assert made.update("a", b"2", 1) == 2
        lossy.losses = ["answer"]
        assert made.update("a", b"3", 2) == 3
        lossy.losses = ["answer"]
        assert made.delete("a", revision=3) == 4
        lossy.losses = ["answer"]
        # First over the marker: the insert is refused, and that refusal gets lost.
        assert made.create("a", b"5") == 5
        assert (made.status()).last_revision == 5


def test_a_put_whose_answer_is_lost_is_found(server, name, monkeypatch):
    with js.connect(server.url) as connection:
        made = bucket(connection.jetstream(), name)
        made.put("a", b"0")
        before, losses = _kv_writes.publish, []

        def lossy(api, request, policy, timeout):
            loss = losses.pop(0) if losses else ""
            if loss != "request":
                before(api, request, policy, timeout)
            if loss == "overwritten":
                before(api, request._replace(data=b"theirs"), policy, timeout)
            if loss:
                raise ConnectionLost("lost by the test")
            return before(api, request, policy, timeout)

        def put(*given):
            losses[:] = given[1:]
            return made.put("a", given[0])

        monkeypatch.setattr(_kv_writes, "publish", lossy)
        assert put(b"1", "answer") == 2
        assert put(b"2", "request") == 3
        # The same value once more is another revision.
        assert put(b"2", "request") == 4
        with pytest.raises(js.OutcomeUnknown, match="revision 6 of another client"):
            put(b"3", "overwritten")
        assert (made.get("a")).value == b"theirs"
        losses[:] = ["answer"]
        assert made.delete("a") == 7
        losses[:] = ["request"]
        assert made.purge("a") == 8
        assert (made.entry("a")).operation is js.KeyValueOperation.PURGE


# ---- time to live


@pytest.mark.since("2.11")
@pytest.mark.parametrize("history", [1, 5])
def test_an_expired_key_has_a_marker_and_can_be_created(opened, name, history):
    with opened() as jet:
        made = bucket(jet, name, history=history, limit_marker_ttl=1)
        made.delete("a")
        revision = made.create("a", b"1", ttl=1)

        def expired():
            entry = made.entry("a")
            return entry if entry is None or not entry.is_value else None

        entry = eventually(expired)
        assert (entry.operation, entry.value) == (js.KeyValueOperation.EXPIRED, None)
        assert entry.revision > revision
        with pytest.raises(js.KeyDeleted, match="expired"):
            made.get("a")
        assert made.create("a", b"2", ttl=60) > entry.revision
        assert (made.get("a")).value == b"2"


@pytest.mark.since("2.11")
def test_times_to_live_are_whole_and_make_no_old_value_come_back(opened, name):
    with opened() as jet:
        made = bucket(jet, name, limit_marker_ttl=6)
        made.put("a", b"1", ttl=1.5)
        assert (made.get("a")).headers["Nats-TTL"] == "2"
        made.update("a", b"1", 1, ttl=60)
        assert (made.get("a")).headers["Nats-TTL"] == "60"
        made.put("a", b"1")
        assert "Nats-TTL" not in (made.get("a")).headers
        made.put("a", b"1", ttl="never")
        for bad in (0.5, 0, -1, "soon"):
            with pytest.raises(js.BadArgument, match="ttl"):
                made.put("a", b"1", ttl=bad)
        deep = bucket(jet, f"{name}_deep", history=3, limit_marker_ttl=6)
        with pytest.raises(js.BadArgument, match="an older one would come back"):
            deep.put("a", b"1", ttl=60)
        with pytest.raises(js.BadArgument, match="an older one would come back"):
            deep.update("a", b"1", 1, ttl=60)
        with pytest.raises(js.BadArgument, match="is below limit_marker_ttl, 6 s"):
            deep.create("a", b"1", ttl=2)
        deep.put("b", b"old")
        deep.delete("b")
        deep.create("b", b"new", ttl=60)
        # Nothing is below it that could come back.
        assert [told(each) for each in deep.history("b")] == [("b", "put", b"new")]


@pytest.mark.since("2.11")
def test_the_marker_of_a_purge_can_go_by_itself(opened, name):
    with opened() as jet:
        made = bucket(jet, name, history=3, limit_marker_ttl=1)
        made.put("a", b"1")
        made.purge("a", ttl=1)
        assert (made.entry("a")).operation is js.KeyValueOperation.PURGE

        def gone():
            return made.entry("a") is None

        eventually(gone)
