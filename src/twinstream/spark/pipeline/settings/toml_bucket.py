"""Parse what a source of a pipeline reads: a stream or a key-value bucket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from twinstream.core.kv.names import stream_of
from twinstream.core.wire.subjects import check_name
from twinstream.errors import BadArgument
from twinstream.spark.pipeline.settings.toml_table import TomlTable

__all__ = ["stream_and_bucket"]

# Keys of sources that a bucket cannot have, and the reason or the key to use instead.
_OF_STREAMS: Final[Mapping[str, str]] = {
    "stream": "give one of them",
    "subjects": 'name keys by keys = ["…"]',
    "payloads": "name the schema of the values by schema",
    "prefix": "it is for advisories; give table",
}
_ADVISORY: Final = "is for streams of events; a bucket is raw or json"
_PURGE: Final = (
    '"purge" would remove the values of the keys from the bucket; use "bookmark" or "none"'
)
_ALL_CHANGES: Final = "cannot be set: a pipeline lands all changes of a bucket, deletes included"
_STRICT: Final = (
    "must be true: a bucket that was created again has lower revisions, so the highest revision of"
    " a key would not be its latest; land it into a new folder"
)


def stream_and_bucket(table: TomlTable) -> tuple[str, str | None]:
    """Return the name of the stream of a source, and of its bucket or `None`.

    Raises `ConfigError` if the source names neither or both, if a name is invalid, or if a key
    does not fit a bucket.
    """
    stream, bucket = table.text("stream"), table.text("bucket")
    if not bucket:
        if table.has("keys"):
            raise table.fail("keys", "is for a bucket; filter a stream by subjects")
        return _stream(table, stream), None
    for key, instead in _OF_STREAMS.items():
        if table.has(key):
            raise table.fail(key, f"cannot be combined with bucket; {instead}")
    try:
        stream = stream_of(bucket)
    except BadArgument as error:
        raise table.fail("bucket", str(error)) from error
    if table.text("format") == "advisory":
        raise table.fail("format", _ADVISORY)
    if table.text("commit") == "purge":
        raise table.fail("commit", _PURGE)
    for option, value in table.table("options").rest().items():
        if option.lower() in ("history", "deletes"):
            raise table.fail(option, _ALL_CHANGES)
        if option.lower() == "failondataloss" and str(value).lower() != "true":
            raise table.fail(option, _STRICT)
    return stream, bucket


def _stream(table: TomlTable, stream: str) -> str:
    if not stream:
        raise table.fail(
            "stream",
            'is required: the name of a stream, as stream = "ORDERS", or of a key-value bucket, as'
            ' bucket = "CONFIG"',
        )
    if "," in stream:
        raise table.fail("stream", "names several; give each stream its own [[source]]")
    try:
        check_name(stream, "stream")
    except BadArgument as error:
        raise table.fail("stream", str(error)) from error
    return stream
