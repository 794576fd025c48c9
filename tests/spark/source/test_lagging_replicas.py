"""Ranges on a three-node cluster while a producer runs: replicas lag, reads stay complete.

The same pages are read twice: once believing a replica that says nothing is left, once with the
check against the leader. The first must lose messages, or the test shows nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count

import pytest

import js_sync
from js_sync import JetStream, PublishRequest
from js_sync.jetstream import range_reader
from js_sync.read.page_sources import ConsumerPages, DirectPages
from js_sync.read.range_reader import RangeReader
from tests._sync.lagging import FAR, Believing, lead_near
from tests.inside import api_of
from tests.soak import LONGEST
from tests.unhurried import connected
from twinstream.core.read.arrow_page import ArrowPage
from twinstream.core.read.range_read import RangeRead
from twinstream.models import StreamConfig
from twinstream.testing.cluster import NatsCluster

ROUNDS = {"direct": 6, "consumer": 2}
BURST = 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    with NatsCluster() as running:
        yield running


@pytest.fixture(scope="module")
def wide() -> Iterator[NatsCluster]:
    with NatsCluster(far=FAR) as running:
        yield running


def read_all(jet: JetStream, read: RangeRead, mode: str) -> list[int]:
    make = DirectPages if mode == "direct" else ConsumerPages
    reader = RangeReader(api_of(jet), "R", read, make(api_of(jet), "R", bulk=True), ahead=True)
    found: list[int] = []
    try:
        while (page := reader.next_page()) is not None:
            found += ArrowPage.of(page).seqs.to_pylist()
    finally:
        reader.close()
    return found


@pytest.fixture
def jets(wide: NatsCluster) -> Iterator[list[JetStream]]:
    """Readers at every node, so that each replica answers some of the questions."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(each.url)).jetstream() for each in wide.servers]


@pytest.mark.parametrize("mode", ["direct", "consumer"])
def test_lag_never_shortens_a_range(wide: NatsCluster, jets: list[JetStream], mode: str) -> None:
    config = StreamConfig(name="R", subjects=["r.>"], num_replicas=3, allow_direct=True)
    lead_near(jets[0].create_stream(config))
    stop = threading.Event()
    producer = threading.Thread(target=produce, args=(wide.servers[0].url, stop))
    producer.start()
    lost = checked = 0
    try:
        start, deadline = 1, time.monotonic() + LONGEST
        for number in count():
            # The far replica answers from when it has caught up with the stream.
            done = lost or mode == "consumer" or time.monotonic() > deadline
            if number >= ROUNDS[mode] and done:
                break
            for jet in jets:
                # Acknowledged this moment: the far replica does not have it yet.
                end = jets[0].publish("r.own", retries=15, retry_wait=1).seq + 1
                lost += end - start - len(read_all(jet, Believing(start, end), mode))
                found = read_all(jet, RangeRead(start, end), mode)
                assert found == list(range(start, end))
                checked += len(found)
                start = end
    finally:
        stop.set()
        producer.join(LONGEST)
        jets[0].delete_stream("R")
    assert checked > ROUNDS[mode] * len(jets)
    # A consumer reads where its leader is, which is mostly near: that part shows completeness.
    assert lost or mode == "consumer", "no replica lagged, so nothing was shown"


def produce(url: str, stop: threading.Event) -> None:
    with connected(url) as nc:
        jet = nc.jetstream()
        while not stop.is_set():
            burst = [PublishRequest(subject="r.x", data=b"x" * 50) for _ in range(BURST)]
            for _ in jet.publish_many(burst, raise_failures=False):
                pass  # which of them are stored does not matter


def test_a_read_survives_the_step_down_of_the_leader(cluster: NatsCluster) -> None:
    with connected(cluster.url) as nc:
        jet = nc.jetstream()
        config = StreamConfig(name="R", subjects=["r.>"], num_replicas=3, allow_direct=True)
        stream = jet.create_stream(config)
        # A message that is published again has a later sequence.
        requests = [
            PublishRequest(subject=f"r.{at % 7}", data=b"x", msg_id=str(at)) for at in range(5000)
        ]
        stored: list[int] = []
        for request, outcome in zip(
            requests, jet.publish_many(requests, retries=15, retry_wait=1), strict=True
        ):
            assert not isinstance(outcome, js_sync.PublishFailure)
            if request.subject == "r.1":
                stored.append(outcome.seq)
        stream.delete_message(5000)
        reader = range_reader(jet, "R", 1, 5001, filter_subjects=["r.1"], page_messages=50)
        found: list[int] = []
        pages = 0
        while (page := reader.next_page()) is not None:
            found += page.seqs
            pages += 1
            if pages in {3, 7}:
                # A leader that steps down may do so without an answer.
                with suppress(js_sync.RequestTimeout):
                    nc.request("$JS.API.STREAM.LEADER.STEPDOWN.R", b"", timeout=2)
        reader.close()
        assert found == sorted(seq for seq in stored if seq != 5000)
        jet.delete_stream("R")
