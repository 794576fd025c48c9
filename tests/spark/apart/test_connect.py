"""The source and the sink over Spark Connect, from a client that has PySpark alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.soak import LONGEST
from tests.spark.processes import SparkProcess, connect_path, job_environment
from tests.unhurried import connected
from twinstream.models import StreamConfig
from twinstream.testing import NatsServer

JOB = Path(__file__).with_name("connect_job.py")
MESSAGES = 300


def test_reads_and_writes_as_batch_and_as_stream(
    connect: SparkProcess, server_factory: Callable[[], NatsServer], tmp_path: Path
) -> None:
    server = server_factory()
    with connected(server.url) as nc:
        jet = nc.jetstream()
        jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.*"], allow_direct=True))
        jet.create_stream(
            StreamConfig(name="COPY", subjects=["copy.>"], allow_direct=True, allow_atomic=True)
        )
        for number in range(MESSAGES):
            jet.publish(f"orders.{number % 7}", b"%d" % number)
        found = run_job(f"sc://{connect.found}", server.url, str(tmp_path))
        copied = list(jet.get_stream("COPY").read(subjects="copy.orders.*"))
        told = dict(jet.get_stream("COPY").subjects("copy.told"))
        again = dict(jet.get_stream("COPY").subjects("copy.again"))
    assert "needs Spark in its own process" in found.pop("refused")
    assert "'writeId': does not identify a write within foreachBatch" in found.pop("in_batch")
    assert again == {}
    assert found == {
        "read": MESSAGES,
        "joined": [["first", "first"], ["second", "second"]],
        "foreign": True,
        "registered": MESSAGES,
        "landed": MESSAGES,
        "session": True,
    }
    assert sorted(int(each.data) for each in copied) == list(range(MESSAGES))
    assert told == {"copy.told": 10}


def test_a_session_elsewhere_is_no_local_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from twinstream.spark import local_session; local_session()"],
        capture_output=True,
        text=True,
        env=os.environ | {"SPARK_REMOTE": "sc://host"},
        check=False,
    )
    assert done.returncode == 1
    assert "SparkSourceError: SPARK_REMOTE is set to 'sc://host'" in done.stderr


def run_job(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(JOB), *arguments],
        capture_output=True,
        text=True,
        env=os.environ | job_environment(connect_path()),
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))
