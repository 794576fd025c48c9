"""Look up the prefix of a bucket's stored subjects."""

from __future__ import annotations

from attrs import evolve

from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions

__all__ = ["located"]


def located(options: SourceOptions) -> SourceOptions:
    """Return the options with the bucket's prefix and subject filters.

    Options without a bucket are returned unchanged. The stored subjects of a mirror begin with the
    prefix of its origin. So the prefix is derived from the configuration of the bucket's stream,
    which is requested from the leader. Raises `OptionError` if there is no such bucket.
    """
    bucket = options.bucket
    if bucket is None:
        return options
    with Leader(options) as leader:
        (state,) = leader.states()
    prefix = state.key_prefix
    return evolve(options, subjects=bucket.subjects(prefix), bucket=evolve(bucket, prefix=prefix))
