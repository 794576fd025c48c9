"""A program that runs a pipeline as users do, with all that Spark writes on its own screen.

`python quiet_program.py NARROW WIDE PID` lands with the file NARROW, is refused with the file WIDE,
which gives a column another type, and is interrupted in a batch, as by Ctrl-C. Prints the results.
The process PID is the server, which is stopped meanwhile, so that the batch cannot end.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from tests.hooked import hooked
from twinstream.spark import local_session
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.toml_config import read_config


def interrupt(server: int) -> None:
    """Interrupt this process in a batch, whose tasks start later and get nothing."""
    os.kill(server, signal.SIGSTOP)
    signal.raise_signal(signal.SIGINT)
    time.sleep(2)


def main(narrow: str, wide: str, server: str) -> None:
    spark = local_session()
    config = read_config(narrow)
    print("landed:", run(spark, config, once=True))
    print("refused:", run(spark, read_config(wide), once=True))
    print("ready", flush=True)
    input()  # until the stream has more messages
    try:
        with hooked("land: before tasks", lambda _: interrupt(int(server))):
            run(spark, config)
    except KeyboardInterrupt:
        print("stopped")
    finally:
        os.kill(int(server), signal.SIGCONT)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
