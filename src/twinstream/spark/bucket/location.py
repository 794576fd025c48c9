"""Look up the stored subjects of a bucket's keys."""

from __future__ import annotations

from attrs import evolve

from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions

__all__ = ["located"]


def located(options: SourceOptions) -> SourceOptions:
    """Return the options; if they name a bucket, a copy with the stored subjects of its keys.

    The keys of a mirror have the subjects of its origin, so this requests the prefix from the
    bucket's leader. Raises `OptionError` if there is no such bucket.
    """
    bucket = options.bucket
    if bucket is None:
        return options
    with Leader(options) as leader:
        (state,) = leader.states()
    prefix = state.key_prefix
    return evolve(options, subjects=bucket.subjects(prefix), bucket=evolve(bucket, prefix=prefix))
