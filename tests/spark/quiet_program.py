"""A program that runs a pipeline as users do, with all that Spark writes on its own screen.

`python quiet_program.py NARROW WIDE` lands with the file NARROW, is refused with the file WIDE,
which gives a column another type, and is interrupted in a batch, as by Ctrl-C. Prints the results.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

from twinstream.spark import local_session
from twinstream.spark.pipeline.runner import run
from twinstream.spark.pipeline.settings.toml_config import read_config


def interrupt_in_a_batch(plans: Path) -> None:
    """Interrupt this process when tasks work on the next batch."""
    known = len(list(plans.iterdir()))
    while len(list(plans.iterdir())) == known:
        time.sleep(0.01)
    time.sleep(0.5)
    signal.raise_signal(signal.SIGINT)


def main(narrow: str, wide: str) -> None:
    spark = local_session()
    config = read_config(narrow)
    (source,) = config.sources
    print("landed:", run(spark, config, once=True))
    print("refused:", run(spark, read_config(wide), once=True))
    print("ready", flush=True)
    input()  # until the stream has more messages
    plans = Path(str(config.path)) / "_pipeline" / source.name / "plan"
    threading.Thread(target=interrupt_in_a_batch, args=(plans,), daemon=True).start()
    try:
        run(spark, config)
    except KeyboardInterrupt:
        print("stopped")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
