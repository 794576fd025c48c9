"""Objects of the local store: created once, whole or not there, and durable."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.soak import LONGEST
from twinstream.lake.errors import JournalError
from twinstream.lake.local_store import LocalStore
from twinstream.lake.store import KeyTaken


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "state")


def test_an_object_is_created_once(store: LocalStore) -> None:
    assert (store.get("a/b/1.json"), store.names("a/b")) == (None, [])
    store.create("a/b/1.json", b"first")
    with pytest.raises(KeyTaken, match=r"a/b/1\.json"):
        store.create("a/b/1.json", b"second")
    assert store.get("a/b/1.json") == b"first"
    store.create("a/b/0.json", b"")
    assert store.names("a/b") == ["0.json", "1.json"]
    assert store.unfinished() == []


def test_an_object_is_deleted(store: LocalStore) -> None:
    store.create("a/1.json", b"first")
    store.delete("a/1.json")
    store.delete("a/1.json")
    store.delete("b/1.json")
    assert (store.get("a/1.json"), store.names("a")) == (None, [])
    store.create("a/1.json", b"second")


def test_one_of_many_writers_creates_an_object(store: LocalStore) -> None:
    for number in range(20):
        winners: list[bytes] = []
        ready = threading.Barrier(8)

        def work(
            name: bytes,
            winners: list[bytes] = winners,
            ready: threading.Barrier = ready,
            key: str = f"race/{number}",
        ) -> None:
            ready.wait(LONGEST)
            try:
                store.create(key, name)
            except KeyTaken:
                return
            winners.append(name)

        writers = [threading.Thread(target=work, args=(b"%d" % at,)) for at in range(8)]
        for each in writers:
            each.start()
        for each in writers:
            each.join(LONGEST)
        assert winners == [store.get(f"race/{number}")]


def test_what_a_killed_writer_left_is_no_object(store: LocalStore, tmp_path: Path) -> None:
    """It dies before it links the file to its name."""

    def die(*_: object) -> None:
        os._exit(9)

    child = os.fork()
    if child == 0:
        os.link = die
        store.create("a/1.json", b"{}")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (store.get("a/1.json"), store.names("a")) == (None, [])
    (left,) = store.unfinished()
    assert left.parent == tmp_path / "state" / "a"
    store.create("a/1.json", b"{}")
    assert store.names("a") == ["1.json"]


def test_what_is_no_small_file_is_named(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "state" / "a" / "folder").mkdir(parents=True)
    with (tmp_path / "state" / "a" / "huge").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(JournalError, match=r"a/folder cannot be read"):
        store.get("a/folder")
    with pytest.raises(JournalError, match="more than 64 MiB"):
        store.get("a/huge")
