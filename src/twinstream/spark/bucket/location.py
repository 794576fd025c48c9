"""Look up the prefix of a bucket's stored subjects."""

from __future__ import annotations

from attrs import evolve

from twinstream.spark.source.driver_client import Leader
from twinstream.spark.source.options import SourceOptions

__all__ = ["located", "with_prefix"]


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
    return with_prefix(options, state.key_prefix)


def with_prefix(options: SourceOptions, prefix: str) -> SourceOptions:
    """Return the options of a bucket with the prefix of its stored subjects, and with filters."""
    bucket = options.bucket
    assert bucket is not None
    return evolve(options, subjects=bucket.subjects(prefix), bucket=evolve(bucket, prefix=prefix))
