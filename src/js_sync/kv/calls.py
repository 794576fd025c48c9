# Generated from src/js_async/kv/calls.py by codegen/twin.py. Edit that file instead.
"""The calls of a JetStream context about key-value buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.core.deadline import Seconds
from twinstream.core.base.nats_py_names import hint_keywords
from js_sync.api.api import ApiCalls

if TYPE_CHECKING:
    from twinstream.core.kv.status import KeyValueStatus
    from twinstream.models import KeyValueConfig
    from js_sync.kv.bucket import KeyValue
    from js_sync.api.listing import Listing

__all__ = ["KeyValueCalls"]


class KeyValueCalls(ApiCalls):
    """The part of a JetStream context that is about key-value buckets (ADR-8)."""

    @hint_keywords
    def create_key_value(
        self, config: KeyValueConfig, *, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Create a bucket; an equal one that exists is fine.

        Raises `BucketExists` with the differences to one of that name, `BadArgument`,
        `Unsupported` (a `limit_marker_ttl` before server 2.11), `InvalidConfig`.
        """
        from js_sync.kv.manage import create_bucket
        from js_sync.kv.bucket import handle

        return handle(create_bucket(self._api, config, self._api.deadline(timeout)))

    def update_key_value(
        self, config: KeyValueConfig, *, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Change what a configuration gives; what it leaves out stays. Raises `BucketNotFound`.

        A zero duration switches a TTL off. `KeyValue.change` can also take a setting away. Storage
        cannot change, and a `limit_marker_ttl` that was set once leaves the TTL of keys allowed.
        """
        from js_sync.kv.manage import update_bucket
        from js_sync.kv.bucket import handle

        return handle(update_bucket(self._api, config, self._api.deadline(timeout)))

    def create_or_update_key_value(
        self, config: KeyValueConfig, *, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Change a bucket as `update_key_value` does, or create it where there is none."""
        from js_sync.kv.manage import create_or_update_bucket
        from js_sync.kv.bucket import handle

        return handle(create_or_update_bucket(self._api, config, self._api.deadline(timeout)))

    def get_key_value(self, bucket: str, *, timeout: Seconds | None = None) -> KeyValue[bytes]:
        """Return a bucket that exists. Raises `BucketNotFound`, `NotABucket`."""
        from js_sync.kv.manage import get_bucket
        from js_sync.kv.bucket import handle

        return handle(get_bucket(self._api, bucket, self._api.deadline(timeout)))

    def bind_key_value(self, bucket: str) -> KeyValue[bytes]:
        """Return a bucket without asking the server, where INFO is not permitted.

        It is taken for a bucket that is no mirror, and reads go to the leader. What needs to know
        more of the bucket asks then: `create`, `update`, a TTL, deletes and purges of a `revision`.
        """
        from js_sync.kv.place import Place
        from js_sync.kv.bucket import handle

        return handle(Place(self._api, bucket, None))

    def delete_key_value(self, bucket: str, *, timeout: Seconds | None = None) -> None:
        """Delete a bucket with all its keys. Raises `BucketNotFound`."""
        from js_sync.kv.manage import delete_bucket

        delete_bucket(self._api, bucket, timeout)

    def key_values(self, *, timeout: Seconds | None = None) -> Listing[KeyValueStatus]:
        """Iterate over the status of all buckets, mirrors included; `timeout` is for each page."""
        from js_sync.kv.manage import Buckets

        return Buckets(self._api, timeout)

    def key_value_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Iterate over the names of all buckets, mirrors included; `timeout` is for each page."""
        from js_sync.kv.manage import BucketNames

        return BucketNames(self._api, timeout)
