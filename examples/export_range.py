"""Write a range of a stream to a file, one JSON object a line, and prove that it is complete.

    python examples/export_range.py nats://127.0.0.1:4222 log.jsonl

A range read creates no consumer, and leaves nothing on the server. It ends only when it is certain
that no message of the range is missing.

It prints:

    exported 100
    line 501 to line 600
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import js_sync
from js_sync import Stream, StreamConfig


def export(stream: Stream, start: int, end: int, path: Path) -> int:
    """Write the messages from `start` up to before `end`; return how many there were."""
    count = 0
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file, stream.read(start, end) as read:
        for message in read:
            line = {"seq": message.seq, "time": message.time.rfc3339(), "data": message.text}
            file.write(json.dumps(line) + "\n")
            count += 1
    # Limits or a purge may have removed messages that the read had not reached.
    if read.report is None or not read.report.is_complete:
        raise SystemExit(f"{path} would be incomplete: {read.report}")
    part.replace(path)
    return count


def main(server: str, path: str = "log.jsonl") -> None:
    """Export a part of a log."""
    with js_sync.connect(server, name="exporter") as nc:
        jet = nc.jetstream(timeout=30)
        config = StreamConfig(name="LOG", subjects=["log.>"], allow_direct=True)
        stream = jet.create_stream(config)
        lines = ((f"log.host-{number % 3}", b"line %d" % number) for number in range(1, 1_001))
        for _ in jet.publish_many(lines):
            pass

        print("exported", export(stream, 501, 601, Path(path)))
    first, *_, last = Path(path).read_text("utf-8").splitlines()
    print(json.loads(first)["data"], "to", json.loads(last)["data"])


if __name__ == "__main__":
    main(*sys.argv[1:])
