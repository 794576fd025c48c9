"""JetStream on PySpark: the data source ``jetstream``, and a pipeline from streams to Parquet.

Spark finds the source by itself where this package is installed; then
``spark.read.format("jetstream")``, ``spark.readStream`` and ``df.write`` know it. Offsets are
stream sequences: nothing depends on acknowledgements, and every read can be repeated exactly.

- :func:`local_session` starts a local Spark session, with Java from a wheel where there is none;
- :func:`land` lands what is new in a stream as typed tables, :func:`summary` counts one;
- :func:`register` makes the source known to sessions that do not find it;
- :mod:`twinstream.spark.source.options` and :mod:`twinstream.spark.sink.options` describe the options.

Importing this module imports nothing else: PySpark comes with the first name that needs it. Where
it is not installed, already the import says so, and how to get it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinstream.spark.errors import DataLossError, OptionError, SchemaError, SparkSourceError
    from twinstream.spark.pipeline import land, summary
    from twinstream.spark.landing.report import LandReport, SubjectSummary, TableReport
    from twinstream.spark.session.session import local_session
    from twinstream.spark.source.source import JetStreamDataSource, register

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
    "errors": ("DataLossError", "OptionError", "SchemaError", "SparkSourceError"),
    "pipeline": ("land", "summary"),
    "report": ("LandReport", "SubjectSummary", "TableReport"),
    "session": ("local_session",),
    "source": ("JetStreamDataSource", "register"),
}


# Said here, for all modules below: otherwise any of them would fail by the name of some part of it.
if find_spec("pyspark") is None:
    raise ModuleNotFoundError(
        "twinstream.spark needs pyspark, which is not installed; install Twinstream with its extras spark"
        " and java (in a clone: pip install '.[spark,java]')",
        name="pyspark",
    )


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"twinstream.spark.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
