"""Fast ingest: many messages into one stream, which acknowledges groups of them (server 2.14).

`FastIngest` sends the messages of an iterable to a stream with `allow_batched`, and returns the
outcome of each. An outcome claims no more than the server reported.
"""

from __future__ import annotations

from js_async.fast_ingest.fast_ingest import FastIngest
from twinstream.core.publish.fast_ingest import Gaps, Ingested
from twinstream.errors import PublishFailure

__all__ = ["FastIngest", "Gaps", "Ingested", "PublishFailure"]
