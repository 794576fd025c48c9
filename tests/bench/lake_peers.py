"""Land the same messages without this package, for `python -m tests.bench.lake --peers`.

`python -m tests.bench.lake_peers spark FILES TARGET` lets Spark read the payloads from files of
JSON lines. `python -m tests.bench.lake_peers nats_py URL STREAM TARGET` fetches the messages with
nats-py and writes them with pyarrow. Both write one Parquet table with the columns of the schema.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import Final

import nats
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq
from nats.js.api import ConsumerConfig

from tests.bench.spark import DDL
from twinstream.spark import local_session

# The number of messages that a request asks for.
_FETCHED: Final = 5000
# The number of messages that are written as one row group.
_GROUP: Final = 100_000

_COLUMNS: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("amount", pa.float64()),
        ("paid", pa.bool_()),
        ("placed", pa.timestamp("us", "UTC")),
        ("note", pa.string()),
    ]
)

_READ: Final = pj.ReadOptions(use_threads=True, block_size=1024 * 1024)
_PARSE: Final = pj.ParseOptions(explicit_schema=_COLUMNS, unexpected_field_behavior="error")


def by_spark(files: str, target: str) -> None:
    """Read files of JSON lines, and write a Parquet table."""
    session = local_session()
    session.read.schema(DDL).json(files).write.parquet(target)
    session.stop()


async def by_nats_py(url: str, stream: str, target: str) -> None:
    """Fetch and acknowledge all messages of a stream, and write a Parquet table."""
    Path(target).mkdir()
    connection = await nats.connect(url)
    jet = connection.jetstream()
    left = (await jet.stream_info(stream)).state.messages
    # By default, the server stops at 1,000 messages without acknowledgement.
    config = ConsumerConfig(max_ack_pending=10 * _FETCHED)
    consumer = await jet.pull_subscribe(
        ">", durable=f"peer-{uuid.uuid4().hex}", stream=stream, config=config
    )
    with closing(pq.ParquetWriter(f"{target}/part.parquet", _COLUMNS)) as writer:
        held: list[bytes] = []
        while left:
            messages = await consumer.fetch(min(_FETCHED, left), timeout=30)
            held += [each.data for each in messages]
            left -= len(messages)
            if len(held) >= _GROUP or not left:
                rows = pj.read_json(pa.BufferReader(b"\n".join(held)), _READ, _PARSE)
                writer.write_table(rows.select(_COLUMNS.names))
                held = []
            for message in messages:
                await message.ack()
    await connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "spark":
        by_spark(*sys.argv[2:])
    else:
        asyncio.run(by_nats_py(*sys.argv[2:]))
