"""Where the keys of a bucket are: its options with what the server knows of the bucket."""

from __future__ import annotations

from attrs import evolve

from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions

__all__ = ["located"]


def located(options: SourceOptions) -> SourceOptions:
    """Return the options with the stored subjects of the bucket that they name, if any.

    The keys of a mirror have the subjects of its origin, so the bucket's leader is asked. Raises
    `OptionError` if there is no such bucket.
    """
    bucket = options.bucket
    if bucket is None:
        return options
    with Leader(options) as leader:
        (state,) = leader.states()
    prefix = state.key_prefix
    return evolve(options, subjects=bucket.subjects(prefix), bucket=evolve(bucket, prefix=prefix))
