"""JetStream on PySpark: the data source `jetstream`, and a pipeline from streams to Parquet.

Spark discovers the source if this package is installed, so that
`spark.read.format("jetstream")`, `spark.readStream` and `df.write` work. Offsets are stream
sequences. Reads use no acknowledgements, and every read can be repeated exactly.

- `local_session` starts a local Spark session; if no Java is installed, it uses one from a
  wheel;
- `land` writes a stream's new messages to typed tables, `summary` counts the messages
  of a table;
- `register` registers the source in sessions that did not discover it;
- the modules `source.options` and `sink.options` describe the options.

Names are imported lazily: the first name that needs PySpark imports it. If PySpark is not
installed, these names raise an error that explains how to install it. Pipelines with
`engine = "local"` do not need it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinstream.spark.data_source import JetStreamDataSource, register
    from twinstream.spark.errors import DataLossError, OptionError, SchemaError, SparkSourceError
    from twinstream.spark.landing.report import LandReport, SubjectSummary, TableReport
    from twinstream.spark.pipeline import land, summary
    from twinstream.spark.session.session import local_session

__all__ = [
    "DataLossError",
    "JetStreamDataSource",
    "LandReport",
    "OptionError",
    "SchemaError",
    "SparkSourceError",
    "SubjectSummary",
    "TableReport",
    "land",
    "local_session",
    "register",
    "summary",
]

_HOMES = {
    "landing.report": ("LandReport", "SubjectSummary", "TableReport"),
    "pipeline": ("land", "summary"),
    "session.session": ("local_session",),
    "data_source": ("JetStreamDataSource", "register"),
    "errors": ("DataLossError", "OptionError", "SchemaError", "SparkSourceError"),
}


# The modules of the names that need PySpark. The local engine of pipelines, which works without
# PySpark, uses the other modules.
_OF_SPARK = {"pipeline", "session.session", "data_source"}


def __getattr__(name: str) -> object:
    """Import a name of `__all__` when it is first used."""
    for home, names in _HOMES.items():
        if name in names:
            # Without this check, the error would name the first submodule of PySpark that is
            # imported.
            if home in _OF_SPARK and find_spec("pyspark") is None:
                raise ModuleNotFoundError(
                    f"twinstream.spark.{name} needs pyspark, which is not installed; install"
                    " Twinstream with its extras spark and java (in a clone: pip install"
                    " '.[spark,java]')",
                    name="pyspark",
                )
            return getattr(import_module(f"twinstream.spark.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
