"""The lock of a lake on S3: one owner at a time, whatever is lost or late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.proxy_faults import request_limit
from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server
from tests.soak import LONGEST, rounds
from twinstream.core.deadline import Deadline
from twinstream.lake.errors import JournalError, StorageError, StorageUnusable
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.objects.lease import Lease
from twinstream.lake.objects.store import ObjectStore

AFTER: list[Fault] = ["412", "503", "time-out", "closed"]
OBJECT = "maintenance.json"

# The lease of an owner whose lock is taken over. A busy machine may be late to renew it.
SHORT = 3.0

# How often an owner may lose its lock on a busy machine.
ATTEMPTS = 10


def lease(store: ObjectStore, seconds: float = 120.0) -> Lease:
    return Lease(store, seconds)


def behind(proxy: S3Proxy, s3: S3Server, bucket: ObjectFolder) -> Lease:
    """Return the lock as a process sees it that sleeps, or is gone soon."""
    return lease(ObjectStore(s3.folder(bucket.prefix, proxy.url)), SHORT)


def waits(_: str) -> bool:
    return True


def refuses(_: str) -> bool:
    return False


def now() -> bool:
    return True


@pytest.fixture
def store(bucket: ObjectFolder) -> ObjectStore:
    return ObjectStore(bucket)


def without_writes(fault: Fault = "expired") -> Callable[[S3Request], Fault]:
    """Return what happens to requests: no write of the lock reaches the server any more."""
    return lambda request: fault if request.method == "PUT" and request.key.endswith(OBJECT) else ""


def test_one_process_has_the_lock(store: ObjectStore) -> None:
    assert lease(store).user() is None
    with lease(store).held("compact", refuses) as first:
        assert first is not None
        first.check()
        assert first.is_taken_over, "an earlier object may have been removed"
        first.settle()
        assert not first.is_taken_over
        assert lease(store).user() == "compact"
        users: list[str] = []
        with lease(store).held("vacuum", lambda user: bool(users.append(user))) as second:
            assert second is None
        assert users == ["compact"]
    assert lease(store).user() is None
    with lease(store).held("vacuum", refuses) as second:
        assert second is not None
        second.check()


def test_a_command_waits_for_its_turn(store: ObjectStore) -> None:
    entered, waiting = threading.Event(), threading.Event()

    def wait(_: str) -> bool:
        waiting.set()
        return True

    def work() -> None:
        with lease(store).held("vacuum", wait):
            entered.set()

    with lease(store).held("compact", refuses):
        command = threading.Thread(target=work)
        command.start()
        assert waiting.wait(LONGEST)
        assert not entered.is_set()
    assert entered.wait(LONGEST)
    command.join(LONGEST)


def test_a_lock_that_is_renewed_is_not_taken_over(store: ObjectStore) -> None:
    """Another process takes it over each time if it is never renewed."""
    for _ in range(ATTEMPTS):
        with lease(store, SHORT).held("compact", waits) as first:
            assert first is not None
            until = Deadline.after(3 * SHORT)
            with lease(store).held("vacuum", lambda _, end=until: not end.expired()) as second:
                if second is None:
                    with suppress(StorageError):
                        first.check()
                        return
    raise AssertionError("the lock was taken over each time")


def test_a_lock_that_is_not_renewed_is_lost(
    s3: S3Server, bucket: ObjectFolder, store: ObjectStore
) -> None:
    with S3Proxy(s3.url) as proxy:
        asleep = behind(proxy, s3, bucket)
        with asleep.held("compact", refuses) as first:
            assert first is not None
            proxy.fault = without_writes()
            with lease(store).held("vacuum", waits) as second:
                assert second is not None
                assert second.is_taken_over
                with pytest.raises(StorageError, match="the lock of the tables was lost"):
                    first.check()
                proxy.fault = lambda _: ""
                with pytest.raises(StorageError, match="run this one again"):
                    first.enter("held")
                second.check()
    assert lease(store).user() is None, "the late owner has freed nothing"
    with lease(store).held("compact", refuses) as third:
        assert third is not None
        assert third.is_taken_over, "until an owner has settled it"
        third.settle()
        assert not third.is_taken_over
    with lease(store).held("compact", refuses) as fourth:
        assert fourth is not None
        assert not fourth.is_taken_over


def test_an_owner_that_has_slept_does_not_free_the_lock_of_another(
    s3: S3Server, bucket: ObjectFolder, store: ObjectStore
) -> None:
    with S3Proxy(s3.url) as proxy:
        asleep = behind(proxy, s3, bucket)
        first = asleep.held("compact", refuses)
        assert first.__enter__() is not None
        proxy.fault = without_writes()
        with lease(store).held("vacuum", waits) as second:
            assert second is not None
            proxy.fault = lambda _: ""
            first.__exit__(None, None, None)
            assert lease(store).user() == "vacuum"
            second.check()


def test_batches_wait_as_the_phase_says(store: ObjectStore) -> None:
    others = lease(store)
    with lease(store).held("compact", refuses) as lock:
        assert lock is not None
        assert not others.lets_plan(now)
        assert others.lets_land(now)
        lock.enter("held")
        assert not others.lets_plan(now)
        assert not others.lets_land(now)
        lock.enter("closing")
        assert others.lets_land(now)
    assert others.lets_plan(now)
    assert others.lets_land(now)


def test_batches_do_not_wait_for_a_process_that_is_gone(
    s3: S3Server, bucket: ObjectFolder, store: ObjectStore
) -> None:
    with S3Proxy(s3.url) as proxy:
        gone = behind(proxy, s3, bucket)
        with gone.held("compact", refuses) as lock:
            assert lock is not None
            with suppress(StorageError):  # its short lease may be over
                lock.enter("held")
            proxy.fault = without_writes()
            assert lease(store).lets_plan(lambda: False)


def test_only_the_first_batch_waits_for_a_process_that_is_gone(
    s3: S3Server, bucket: ObjectFolder, store: ObjectStore
) -> None:
    """Its object stays until another command takes the lock."""
    with S3Proxy(s3.url) as proxy:
        gone = behind(proxy, s3, bucket)
        with gone.held("compact", refuses) as lock:
            assert lock is not None
            with suppress(StorageError):  # its short lease may be over
                lock.enter("held")
            proxy.fault = without_writes()
            others = lease(store)
            assert others.lets_plan(lambda: False)
            for _ in range(3):
                assert others.lets_plan(now)
                assert others.lets_land(now)
            assert others.user() is None


@pytest.mark.parametrize("fault", AFTER)
def test_answers_that_are_wrong_are_settled(
    s3: S3Server, bucket: ObjectFolder, fault: Fault
) -> None:
    """Each second write of the lock is carried out, and its answer is lost or wrong."""
    seen = 0

    def answer(request: S3Request) -> Fault:
        nonlocal seen
        if request.method != "PUT" or not request.key.endswith(OBJECT):
            return ""
        seen += 1
        return fault if seen % 2 else ""

    with S3Proxy(s3.url, answer, patience=1.5) as proxy:
        timeout = request_limit(fault)
        store = ObjectStore(s3.folder(bucket.prefix, proxy.url, timeout=timeout))
        for _ in range(2):
            with lease(store).held("compact", refuses) as lock:
                assert lock is not None
                lock.enter("held")
                lock.enter("closing")
                lock.check()
        assert lease(store).user() is None
    assert seen >= 8


@pytest.mark.parametrize("answer", ["200", "501"])
def test_a_server_that_ignores_the_condition_is_refused(
    s3: S3Server, bucket: ObjectFolder, answer: Fault
) -> None:
    def fault(request: S3Request) -> Fault:
        return answer if "if-match" in request.headers else ""

    with S3Proxy(s3.url, fault) as proxy:
        own = lease(ObjectStore(s3.folder(bucket.prefix, proxy.url)))
        with (
            pytest.raises(StorageUnusable, match="does not support PUT with If-Match"),
            own.held("compact", refuses),
        ):
            pass


def test_an_object_of_another_program_is_named(store: ObjectStore) -> None:
    for data in (b"no JSON", b"[]", b'{"other": 1}'):
        store.delete(OBJECT)
        store.create(OBJECT, data)
        with pytest.raises(JournalError, match=r"maintenance\.json in the journal cannot be read"):
            lease(store).user()


def test_soak_one_of_many_has_the_lock(bucket: ObjectFolder) -> None:
    inside, most, errors = 0, 0, list[BaseException]()
    counting = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        try:
            for _ in range(rounds(2, 20)):
                with lease(ObjectStore(bucket)).held("compact", waits) as lock:
                    assert lock is not None
                    with counting:
                        inside += 1
                        most = max(most, inside)
                    time.sleep(0.05)
                    lock.check()
                    with counting:
                        inside -= 1
        except BaseException as error:
            errors.append(error)

    processes = [threading.Thread(target=work) for _ in range(4)]
    for each in processes:
        each.start()
    for each in processes:
        each.join(LONGEST)
    assert (errors, most) == ([], 1)
