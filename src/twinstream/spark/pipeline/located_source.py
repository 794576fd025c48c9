"""Look up the prefix of the keys of a pipeline's bucket."""

from __future__ import annotations

from attrs import evolve

from twinstream.spark.bucket.location import located
from twinstream.spark.pipeline.settings.config import SourceConfig

__all__ = ["located_source"]


def located_source(source: SourceConfig) -> SourceConfig:
    """Return the source with the prefix of its bucket's stored subjects, as the server reports it.

    A source of a stream is returned unchanged, without a request. Raises `OptionError` if there is
    no such bucket.
    """
    if source.bucket is None or source.key_prefix is not None:
        return source
    bucket = located(source.source_options).bucket
    assert bucket is not None
    return evolve(source, key_prefix=bucket.prefix)
