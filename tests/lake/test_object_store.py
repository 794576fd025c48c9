"""Objects of a store on S3: created once, even if answers are lost or keys expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proxy_faults import request_limit
from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server
from tests.short_keys import ShortKeys
from tests.soak import LONGEST, rounds
from twinstream.lake.errors import StorageError, StorageUnusable
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.objects.store import ObjectStore
from twinstream.lake.store import KeyTaken

AFTER: list[Fault] = ["412", "503", "time-out", "closed"]


@pytest.fixture
def store(bucket: ObjectFolder) -> ObjectStore:
    return ObjectStore(bucket)


def puts(*faults: Fault) -> Callable[[S3Request], Fault]:
    """Return what happens to the first requests that write; later ones are answered well."""
    left = list(faults)
    return lambda request: left.pop(0) if left and request.method == "PUT" else ""


def test_an_object_is_created_once(store: ObjectStore) -> None:
    assert (store.get("a/b/1.json"), store.names("a/b")) == (None, [])
    store.create("a/b/1.json", b"first")
    with pytest.raises(KeyTaken, match=r"a/b/1\.json"):
        store.create("a/b/1.json", b"first")
    assert store.get("a/b/1.json") == b"first"
    store.create("a/b/0.json", b"")
    store.create("a/bc/2.json", b"{}")
    store.create("a/b/c=d/3.json", b"{}")
    assert store.names("a/b") == ["0.json", "1.json"]
    assert store.names("a/b/c=d") == ["3.json"]
    assert (store.get("a/b/0.json"), store.get("a/b")) == (b"", None)


def test_an_object_can_be_deleted(store: ObjectStore) -> None:
    store.create("a/1.json", b"{}")
    store.delete("a/1.json")
    store.delete("a/1.json")
    store.delete("a/none.json")
    assert (store.get("a/1.json"), store.names("a")) == (None, [])
    store.create("a/1.json", b"{}")


def test_names_of_many_objects_are_listed(store: ObjectStore) -> None:
    names = [f"{at:05}.json" for at in range(1100)]
    threads = [
        threading.Thread(
            target=lambda part: [store.create(f"a/{name}", b"{}") for name in part],
            args=(names[at::8],),
        )
        for at in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LONGEST)
    assert store.names("a") == names


def test_soak_one_of_many_writers_creates_an_object(bucket: ObjectFolder) -> None:
    for number in range(rounds(2, 100)):
        winners: list[bytes] = []
        ready = threading.Barrier(8)

        def work(
            name: bytes,
            winners: list[bytes] = winners,
            ready: threading.Barrier = ready,
            key: str = f"race/{number}",
        ) -> None:
            store = ObjectStore(bucket)
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
        assert winners == [ObjectStore(bucket).get(f"race/{number}")]


@pytest.mark.parametrize("fault", AFTER)
def test_a_write_whose_answer_is_wrong_is_settled(
    s3: S3Server, bucket: ObjectFolder, fault: Fault
) -> None:
    with S3Proxy(s3.url, puts(fault)) as proxy:
        store = ObjectStore(s3.folder(bucket.prefix, proxy.url, timeout=request_limit(fault)))
        store.create("plan/1.json", b"mine")
        assert store.get("plan/1.json") == b"mine"
        assert proxy.counts()["PUT"] <= 2
        with pytest.raises(KeyTaken):
            store.create("plan/1.json", b"mine")


@pytest.mark.parametrize("fault", AFTER)
def test_an_object_of_another_writer_is_not_taken_for_the_own_one(
    s3: S3Server, bucket: ObjectFolder, fault: Fault
) -> None:
    """Even if it has the same content."""
    ObjectStore(bucket).create("plan/1.json", b"same")
    with S3Proxy(s3.url, puts(fault)) as proxy:
        store = ObjectStore(s3.folder(bucket.prefix, proxy.url, timeout=request_limit(fault)))
        with pytest.raises(KeyTaken):
            store.create("plan/1.json", b"same")


@pytest.mark.parametrize("fault", ["lost", "503"])
def test_a_write_that_was_lost_is_repeated(
    s3: S3Server, bucket: ObjectFolder, fault: Fault
) -> None:
    with S3Proxy(s3.url, puts(fault, fault, "")) as proxy:
        store = ObjectStore(s3.folder(bucket.prefix, proxy.url, timeout=request_limit(fault)))
        store.create("plan/1.json", b"mine")
        assert ObjectStore(bucket).get("plan/1.json") == b"mine"


@pytest.mark.parametrize("answer", ["200", "501"])
def test_a_server_without_conditions_is_refused(
    s3: S3Server, bucket: ObjectFolder, answer: Fault
) -> None:
    for _ in range(2):
        ObjectStore(bucket).check()
    with S3Proxy(s3.url, lambda _: answer) as proxy:
        store = ObjectStore(s3.folder(bucket.prefix, proxy.url))
        with pytest.raises(StorageUnusable, match="does not support PUT with If-None-Match"):
            store.check()


def test_errors_name_the_object_the_reason_and_a_remedy(
    s3: S3Server, bucket: ObjectFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(folder: ObjectFolder, *texts: str) -> None:
        store = ObjectStore(folder)
        calls: list[Callable[[], object]] = [
            lambda: store.create("plan/1.json", b"{}"),
            lambda: store.get("plan/1.json"),
            lambda: store.names("plan"),
            lambda: store.delete("plan/1.json"),
            store.check,
        ]
        for call in calls:
            with pytest.raises(StorageError) as caught:
                call()
            for text in texts:
                assert text in str(caught.value), str(caught.value)

    name = bucket.prefix
    fails(s3.folder(name, access_key_env="NO_SUCH_KEY"), "variable NO_SUCH_KEY", "set it")
    monkeypatch.setenv("WRONG_KEY", "wrong")
    fails(s3.folder(name, access_key_env="WRONG_KEY"), f"s3://lake/{name}/", "access", "[storage]")
    other = ObjectFolder("none", name, bucket.storage)
    fails(other, "s3://none/", "there is no bucket none", "create it")
    nowhere = s3.folder(name, "http://127.0.0.1:9")
    with pytest.raises(StorageError, match=r"no answer from http://127\.0\.0\.1:9"):
        ObjectStore(nowhere).get("plan/1.json")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    profile = s3.folder(name, access_key_env="", secret_key_env="", profile="p")
    fails(profile, "there is no profile p", "add it")


def test_encryption_is_asked_for(s3: S3Server, bucket: ObjectFolder) -> None:
    with S3Proxy(s3.url) as proxy:
        store = ObjectStore(s3.folder(bucket.prefix, proxy.url, encryption="AES256"))
        store.create("a.json", b"{}")
        assert store.get("a.json") == b"{}"
        (put,) = [each for each in proxy.requests if each.method == "PUT"]
        assert put.headers["x-amz-server-side-encryption"] == "AES256"


def test_credentials_that_expire_are_renewed(
    s3: S3Server, bucket: ObjectFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy refuses keys that are older than ten seconds."""
    keys = ShortKeys(tmp_path)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(keys.config))
    with S3Proxy(s3.url, keys.fault) as proxy:
        folder = s3.folder(
            bucket.prefix, proxy.url, access_key_env="", secret_key_env="", profile="short"
        )
        store, number = ObjectStore(folder), 0
        while len({each.access_key for each in proxy.requests}) < 3:
            store.create(f"a/{number:04}", b"{}")
            number += 1
            time.sleep(0.2)
        assert len(store.names("a")) == number
    assert 3 <= len(keys.issued) <= keys.most, "they are used for half of their life"


def test_a_killed_server_comes_back(bucket: ObjectFolder) -> None:
    with S3Server() as server:
        store = ObjectStore(server.folder("kept"))
        for number in range(20):
            store.create(f"a/{number:02}", b"%d" % number)
        server.kill()
        server.start()
        assert [store.get(f"a/{at:02}") for at in range(20)] == [b"%d" % at for at in range(20)]
        with pytest.raises(KeyTaken):
            store.create("a/00", b"0")
