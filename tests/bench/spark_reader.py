"""`python -m tests.bench.spark_reader WHO MODE URL COUNT`: read a range in a plain process.

`ours` does what a task of the source does: it reads pages and builds record batches. `raw` is
the limit: a socket that asks for the same pages and counts messages in what comes.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from tests.bench.clients.raw import Socket, request
from tests.bench.job import Job, Meter
from twinstream.spark.source.batcher import Batcher
from twinstream.spark.source.options import SourceOptions
from twinstream.spark.source.plan import SequenceRange, Way
from twinstream.spark.source.range_task import read_batches
from twinstream.spark.source.read_columns import ReadColumns

STREAM: Final = "ORDERS"
PAGE: Final = 20_000
_READ: Final = 1 << 18


def ours(url: str, mode: str, count: int) -> str:
    """Build the record batches of a range."""
    given = {"nats.servers": url, "stream": STREAM, "readMode": mode}
    options = SourceOptions.parse(given)
    batcher = Batcher(options, ReadColumns(options).columns)
    way: Way = "direct" if mode == "direct" else "consumer"
    # A worker of Spark lives on: what is imported and compiled at first use is not a task's cost.
    warm = SequenceRange(STREAM, 1, min(count, 1000) + 1, way)
    for _ in read_batches(options, batcher, warm):
        pass
    part = SequenceRange(STREAM, 1, count + 1, way)
    meter = Meter()
    return meter.result(sum(batch.num_rows for batch in read_batches(options, batcher, part)))


def raw(url: str, mode: str, count: int) -> str:
    """Count the messages of a range, page by page."""
    socket = Socket(Job("raw", "drain", url, count))
    job = Job(f"spark-{os.getpid()}", "drain", url, count)
    direct = mode == "direct"
    if not direct:
        config = {"durable_name": job.consumer, "ack_policy": "none", "mem_storage": True}
        subject = f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{job.consumer}"
        body = json.dumps({"stream_name": STREAM, "config": config}).encode()
        assert b"error" not in socket.ask(subject, body)
    mark = b"\r\nNats-Sequence: " if direct else b"MSG orders."
    meter, seen, tail = Meter(), 0, b""
    while seen < count:
        size = min(PAGE, count - seen)
        if direct:
            _ask_direct(socket, seen + 1, size)
        else:
            socket.pull(job, size, STREAM)
        got = 0
        while got < size:
            data = tail + socket.sock.recv(_READ)
            got += data.count(mark)
            # Too short for a whole mark: what is cut is counted with the next read.
            tail = data[1 - len(mark) :]
        seen += got
    return meter.result(seen)


def _ask_direct(socket: Socket, seq: int, size: int) -> None:
    body = b'{"seq":%d,"batch":%d,"max_bytes":67108864}' % (seq, size)
    socket.send(request(f"$JS.API.DIRECT.GET.{STREAM}", body, b"1"))


if __name__ == "__main__":
    who, mode, url, count = sys.argv[1:]
    work = {"ours": ours, "raw": raw}[who]
    print(work(url, mode, int(count)))
