"""Targets without I/O: everything in `twinstream.core`, and each file, that reads stored data."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from js_async.backup import read_backup
from js_async.outbox import SqliteOutbox
from tests.fuzz.stored.samples import (
    BODY,
    BUCKET,
    CREATED,
    NAMES,
    NOW,
    STORED,
    Message,
    Mutator,
    original,
)
from tests.fuzz.wire import ALLOWED, Finding
from twinstream.codecs import Base64Keys, JsonCodec, PathKeys
from twinstream.core.consume.advisories import read_event
from twinstream.core.coordination.coordination import CoordinationSubjects
from twinstream.core.coordination.lease_engine import LeaseEngine, Terms
from twinstream.core.coordination.lease_record import read_slot
from twinstream.core.exactly_once.processing import InputStream, OwnIds
from twinstream.core.groups.config import (
    config_bytes,
    differences,
    read_config,
    with_members,
    without_members,
)
from twinstream.core.groups.elastic_stream import group_stream
from twinstream.core.groups.member_consumer import check_template, member_consumer
from twinstream.core.groups.names import GroupNames
from twinstream.core.groups.partitions import filters_of, members_of, partitions_of
from twinstream.core.kv.codecs import PLAIN_CODECS, Codecs
from twinstream.core.kv.entries import EntryMaker
from twinstream.core.object_store.claims import claimed
from twinstream.core.object_store.info import (
    digest_bytes,
    info_bytes,
    is_link,
    listed_info,
    read_info,
)
from twinstream.core.object_store.names import ObjectSubjects
from twinstream.core.publish.request import publish_headers
from twinstream.core.schedules.schedules import finish_headers, is_schedule, stored_schedule
from twinstream.core.wire.subject_match import covers
from twinstream.core.wire.subjects import check_subject
from twinstream.core.workers.dead_letter import (
    Failure,
    Skip,
    check_complete,
    foreign_names,
    is_copy,
    is_letter_of,
    letter_of_failure,
    read_failure,
    read_letter,
    replay_request,
    second_subject,
)
from twinstream.core.workers.replay_subject import PlaceSearch, is_reserved
from twinstream.errors import BadArgument, TwinstreamError
from twinstream.models import (
    ElasticGroupConfig,
    StaticGroupConfig,
    StreamConfig,
    StreamSource,
    SubjectTransform,
)
from twinstream.records.entry import marker_of, may_be_marker
from twinstream.records.header_names import MSG_ID
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest

__all__ = ["LONGEST", "READERS", "broken_by", "judged", "run_readers"]

LONGEST: Final = 1.0
"""Seconds of CPU time that one input may take."""


def broken_by(text: str) -> str:
    """Return the control characters of a text that goes to a log or a terminal."""
    return "".join(
        each for each in text if (each < " " and each != "\n") or "\x7f" <= each <= "\x9f"
    )


def judged(error: BaseException) -> None:
    """Raise `AssertionError` if the text of an error could steer a terminal."""
    found = broken_by(str(error))
    assert not found, f"the text of an error contains {found!r}"


# ---- letters and advisories

_STREAMS: Final = {
    each.name or "": each
    for each in (
        StreamConfig(
            name="S",
            subjects=["S.>"],
            sources=[
                StreamSource(name="HUB", filter_subject="S.b"),
                StreamSource(
                    name="MAPPED",
                    subject_transforms=[SubjectTransform(src="old.*", dest="S.{{Wildcard(1)}}")],
                ),
            ],
        ),
        StreamConfig(name="HUB", subjects=["S.b", "hub.>"]),
        StreamConfig(name="MAPPED", subjects=["old.*"]),
    )
}


def read_letters(message: Message) -> None:
    """A letter is replayed to subjects of its stream or of an origin only."""
    found = message.read("S-dead")
    letter = read_letter(found)
    foreign_names(NAMES, letter)
    is_copy(letter, original())
    search = PlaceSearch("S", letter.subject)
    while (place := search.next()) is not None:
        search.enter(place, _STREAMS[place.stream])
    for each in search.found:
        own = _STREAMS[each.stream].subjects or []
        assert any(covers(one, each.subject) for one in own), f"{each} is not a subject of it"
        check_subject(each.subject)
        is_reserved(each.subject, ("$JS.API", "_INBOX"))
    for subject in ("S.new", *(each.subject for each in search.found)):
        try:
            check_complete(letter)
            block = publish_headers(replay_request(letter, subject, "S"))
        except BadArgument as error:
            judged(error)
            continue
        kept = Headers.parse(block)
        own = [name for name in kept if name.startswith("Nats-")]
        assert set(own) <= {MSG_ID, "Nats-Expected-Stream"}, f"a replay has the headers {own}"


def read_advisories(message: Message) -> None:
    """An advisory counts if it agrees with its subject, and its letter can be stored."""
    subject = message.subject.decode("utf-8", "surrogateescape")
    frame = (message.subject, b"", len(message.block), message.block + message.data + b"\r\n")
    event = read_event(frame)
    assert not broken_by(repr(event.problem)[1:-1]), "a problem has control characters"
    str((event.type, event.kind, event.stream_name, event.consumer_name, event.domain, event.time))
    found = read_failure(NAMES, subject, message.data)
    if isinstance(found, Skip):
        assert not broken_by(found.reason), f"a reason contains {broken_by(found.reason)!r}"
        return
    assert found.stream == "S", "the failure is of another stream"
    assert subject in {
        f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.{found.consumer}",
        f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.S.{found.consumer}",
    }
    _store(found)


def _store(failure: Failure) -> None:
    for created, stored in ((CREATED, original()), (CREATED, None), (None, None)):
        letter = letter_of_failure(NAMES, failure, created, stored, "" if stored else "gone")
        for subject in (
            letter.subject,
            second_subject(letter, failure, None if stored is None else STORED),
        ):
            check_subject(subject)
            assert subject.startswith(f"dead.S.{failure.consumer}."), f"the letter is on {subject}"
        block = publish_headers(letter)
        again = Message(letter.subject.encode(), block, letter.data).read("S-dead")
        assert is_letter_of(again, failure, stored), "a letter is not recognised"


# ---- objects

_OBJECTS: Final = ObjectSubjects(BUCKET)


def read_objects(message: Message) -> None:
    """A damaged description is listed with its name, and the content is that of one object."""
    found = message.read("OBJ_B")
    listed = listed_info(found, BUCKET)
    assert listed.name
    assert listed.revision == 7
    assert listed.bucket == BUCKET
    claim = claimed(message.data)
    info = read_info(found, BUCKET)
    assert not listed.unknown.get("error")
    if info.nuid:
        chunks = _chunks(info.nuid)
        assert chunks.count(".") == 3, f"the content is on {chunks}"
        assert "*" not in chunks, "the content is on several subjects"
        if not info.deleted:
            assert claim == info.nuid, "the content of a readable object is not claimed"
    is_link(info)
    for make in (_OBJECTS.info, _OBJECTS.other_info):
        make(info.name)
    info_bytes(info, NOW)
    if info.digest is not None:
        digest_bytes(info.digest)


def _chunks(nuid: str) -> str:
    try:
        return _OBJECTS.chunks(nuid)
    except BadArgument as error:
        raise AssertionError("a readable description has an invalid NUID") from error


# ---- groups and locks

_GROUPS: Final = (
    (GroupNames.of("static", "S", "G"), StaticGroupConfig),
    (GroupNames.of("elastic", "S", "G"), ElasticGroupConfig),
)


def read_groups(message: Message) -> None:
    """A group's configuration is bounded, and what members do with it is within its stream."""
    for names, kind in _GROUPS:
        try:
            config: Any = read_config(names, message.data, kind)
        except TwinstreamError as error:
            judged(error)
            continue
        for member in members_of(config)[:20]:
            filters = filters_of(config, member)
            assert len(filters) <= 65_536
            names.consumer(member)
            partitions = partitions_of(config, member)
            assert all(0 <= each < config.max_members for each in partitions)
            if len(filters) < 1000:
                member_consumer(names, member, filters, check_template(names, None))
        config_bytes(config)
        differences(config, config)
        if isinstance(config, ElasticGroupConfig):
            group_stream(names, config, StreamConfig(name="S"))
            _edit(config)


def _edit(config: ElasticGroupConfig) -> None:
    for change in (lambda: with_members(config, ["z"]), lambda: without_members(config, ["m"])):
        try:
            config_bytes(change())
        except TwinstreamError as error:
            judged(error)


_LOCKS: Final = CoordinationSubjects("L")


def read_leases(message: Message) -> None:
    """A record can neither give a token that its writer does not have, nor break the engine."""
    record = read_slot(message.read("L"))
    assert 0 < record.token <= record.seq, f"the token {record.token} is not of the record"
    _LOCKS.parts(record.subject)
    for phase in ("ask", "hold", "leave"):
        engine = LeaseEngine(Terms.of(30, None), "T", 0.0)
        engine.poll(0.0)
        if phase != "ask":
            engine.stored(1, 5, 0.1)
        if phase == "leave":
            engine.leave(0.2)
        engine.needs_proof(record)
        engine.looked(record, 0.3)
        assert engine.token <= record.seq
        engine.poll(1.0)


# ---- schedules and entries


def read_schedules(message: Message) -> None:
    """A stored schedule is shown, with its next times if it has any."""
    found = message.read("S")
    is_schedule(found)
    schedule = stored_schedule(found)
    str(schedule.schedule)
    finish_headers(schedule)
    schedule.next_times(NOW + timedelta(days=1))


_CODECS: Final = (
    PLAIN_CODECS,
    Codecs(Base64Keys(), None),
    Codecs(PathKeys(), JsonCodec(dict)),
    Codecs(None, JsonCodec(int)),
)
_MAKERS: Final = tuple(
    EntryMaker(BUCKET, "KV_B", "$KV.B.", each)  # type: ignore[arg-type]
    for each in _CODECS
)


def read_entries(message: Message) -> None:
    """Each message of a bucket is an entry, perhaps with an error."""
    found = message.read("KV_B")
    may_be_marker(message.block)
    marker_of(found.headers)
    for maker in _MAKERS:
        for entry in (
            maker.of_stored(found),
            maker.make(found.subject, b"", found.headers, 7, STORED.ns, 1, False),
        ):
            assert entry.size >= 0
            assert entry.error is None or entry.value is None
            repr(entry)
        maker.key(found.subject)


def read_checkpoints(message: Message) -> None:
    """Only ids of the processor's own results count."""
    own = OwnIds(InputStream("p", "S", CREATED), {"p-S-abc-7-0"})
    id = message.read("S").headers.get(MSG_ID)
    assert id is None or not own.select(id) or id.startswith("p-S-")


# ---- files


@frozen
class _Files:
    folder: Path
    outbox: SqliteOutbox
    rows: sqlite3.Connection


def read_backups(message: Message, files: _Files) -> None:
    """A damaged backup is refused before anything is sent."""
    (files.folder / "backup.json").write_bytes(message.data)
    (files.folder / "SHA256SUMS").write_bytes(message.subject)
    str(read_backup(files.folder).stream_name)


def read_outbox(message: Message, files: _Files) -> None:
    """A damaged row of an outbox keeps no other from being sent."""
    found = message.read("outbox").headers
    given = {"id": found.get("id", "x"), "key": found.get("key")}
    values = [each if each is None else _storable(each) for each in given.values()]
    row = (*values, _storable(message.subject.decode("utf-8", "replace")))
    with files.rows as db:
        db.execute("DELETE FROM outbox")
        text = "INSERT INTO outbox (id, key, subject, headers, data) VALUES (?, ?, ?, ?, ?)"
        db.execute(text, (*row, message.data.decode("utf-8", "replace"), BODY))
        db.execute(text, ("good", None, "S.a", None, BODY))
    events = files.outbox.pending(10)
    assert [each.id for each in events if each.id == "good"], "the good event is not pending"
    files.outbox.pending_ids()
    files.outbox.refused()
    for event in events:
        request = PublishRequest(event.subject, event.data, headers=_pairs(event.headers))
        try:
            check_subject(request.subject)
            publish_headers(request)
        except TwinstreamError as error:
            judged(error)


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _pairs(pairs: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


# Files in memory are written and read in a tenth of the time.
_MEMORY: Final = Path("/dev/shm")


@contextmanager
def _files() -> Generator[_Files]:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        folder = Path(name)
        (folder / "backup").mkdir()
        (folder / "backup" / "stream.tar.s2").write_bytes(b"")
        path = folder / "outbox.db"
        rows = sqlite3.connect(path)
        rows.execute("PRAGMA synchronous = OFF")
        rows.execute("PRAGMA journal_mode = MEMORY")
        outbox = SqliteOutbox(path, table="outbox")
        outbox.create(rows)
        rows.commit()
        assert outbox.claim()
        try:
            yield _Files(folder / "backup", outbox, rows)
        finally:
            outbox.release()
            rows.close()


_PURE: Final[dict[str, Callable[[Message], None]]] = {
    "letters": read_letters,
    "advisories": read_advisories,
    "objects": read_objects,
    "groups": read_groups,
    "leases": read_leases,
    "schedules": read_schedules,
    "entries": read_entries,
    "checkpoints": read_checkpoints,
}
_OF_FILES: Final[dict[str, Callable[[Message, _Files], None]]] = {
    "backups": read_backups,
    "outbox": read_outbox,
}
READERS: Final = (*_PURE, *_OF_FILES)
"""The kinds of stored data, with a target each."""


def run_readers(kind: str, seed: int, more: Callable[[int], int]) -> int:
    """Feed inputs to the readers of a kind, and return how many it was.

    `more(done)` says how many are to follow next, 0 at the end. The input number n is made of the
    seed plus n. Raises `Finding`.
    """
    mutator, done = Mutator(), 0
    with _target(kind) as target:
        while count := more(done):
            for each in range(seed + done, seed + done + count):
                _feed(kind, target, mutator, each)
            done += count
    return done


@contextmanager
def _target(kind: str) -> Iterator[Callable[[Message], None]]:
    if kind in _PURE:
        yield _PURE[kind]
        return
    with _files() as files:
        read = _OF_FILES[kind]
        yield lambda message: read(message, files)


def _feed(kind: str, target: Callable[[Message], None], mutator: Mutator, seed: int) -> None:
    mutator.begin(seed)
    message = mutator.message(kind)
    began = time.thread_time()
    try:
        try:
            target(message)
        except ALLOWED as error:
            judged(error)
    except Exception as error:
        raise Finding(f"{kind}, seed {seed}: {error!r:.2000} from {message!r:.4000}") from error
    taken = time.thread_time() - began
    if taken > LONGEST:
        raise Finding(f"{kind}, seed {seed}: took {taken:.1f} s for {message!r:.4000}")
