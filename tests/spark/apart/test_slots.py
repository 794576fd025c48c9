"""Reads use the task slots of the session, on any machine that plans them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import js_sync
from tests.quick_java import QUICK_JAVA
from tests.soak import LONGEST
from tests.spark.processes import job_environment
from tests.unhurried import connected
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

JOB = Path(__file__).with_name("slots_job.py")
SLOTS = 7
LARGE = 150_001
SMALL = 19_000


def test_reads_are_divided_by_the_slots_of_the_session(
    server_factory: Callable[[], NatsServer], tmp_path: Path
) -> None:
    server = server_factory()
    with connected(server.url) as nc:
        jet = nc.jetstream()
        for name, count in (("LARGE", LARGE), ("SMALL", SMALL)):
            config = StreamConfig(name=name, subjects=[name], allow_direct=True, storage="memory")
            jet.create_stream(config)
            requests = (js_sync.PublishRequest(subject=name, data=b"") for _ in range(count))
            for outcome in jet.publish_many(requests):
                assert not isinstance(outcome, js_sync.PublishFailure), outcome
    done = subprocess.run(
        [sys.executable, str(JOB), str(SLOTS), server.url, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | QUICK_JAVA | job_environment(),
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "batch": SLOTS,
        "three": 3,
        "limited": 16,
        "small": 1,
        "streaming": SLOTS,
        "landed": SLOTS,
    }
