"""A driver in a process of its own, without a server and without Spark.

`python land_alone.py FILE LAST` says `ready`, waits until there is a file `go` beside FILE, and
then lands a stream of LAST messages. It goes on after an error of the store.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.spark.drivers import FakeLeader, land_all, until_done
from twinstream.spark.pipeline import read_config


def main(file: Path, last: int) -> None:
    config, leader = read_config(file), FakeLeader(last)
    print("ready", flush=True)
    while not file.with_name("go").exists():
        time.sleep(0.0005)
    until_done(lambda: land_all(config, leader))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
