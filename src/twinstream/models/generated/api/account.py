"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import frozen

from twinstream.models.codec.model import Model


@frozen(kw_only=True, repr=False)
class AccountPurgeResponse(Model):
    """Answer to the removal of everything an account holds."""

    type: str | None = "io.nats.jetstream.api.v1.account_purge_response"
    """Name of the type."""

    initiated: bool | None = None
    """Whether the removal began."""


@frozen(kw_only=True, repr=False)
class AccountLimits(Model):
    """Upper bounds of an account; -1 for no limit."""

    max_memory: int | None = None
    """Memory in bytes."""

    max_storage: int | None = None
    """Disk in bytes."""

    max_streams: int | None = None
    """Number of streams."""

    max_consumers: int | None = None
    """Number of consumers."""

    max_ack_pending: int | None = None
    """Largest max_ack_pending of a consumer."""

    memory_max_stream_bytes: int | None = None
    """Size of one memory stream in bytes."""

    storage_max_stream_bytes: int | None = None
    """Size of one file stream in bytes."""

    max_bytes_required: bool | None = None
    """Whether every stream must set max_bytes."""


@frozen(kw_only=True, repr=False)
class ApiStats(Model):
    """Counts of JetStream requests."""

    level: int | None = None
    """API level of the server. Since server 2.11.0."""

    total: int | None = None
    """Requests so far."""

    errors: int | None = None
    """Requests that ended with an error."""

    inflight: int | None = None
    """Requests being worked on. Since server 2.11.0."""


@frozen(kw_only=True, repr=False)
class AccountTier(Model):
    """Use and bounds of streams with one number of replicas."""

    memory: int | None = None
    """Memory in use, in bytes."""

    storage: int | None = None
    """Disk in use, in bytes."""

    reserved_memory: int | None = None
    """Memory promised to streams, in bytes."""

    reserved_storage: int | None = None
    """Disk promised to streams, in bytes."""

    streams: int | None = None
    """Number of streams."""

    consumers: int | None = None
    """Number of consumers."""

    limits: AccountLimits | None = None
    """Upper bounds."""


@frozen(kw_only=True, repr=False)
class AccountInfo(Model):
    """What an account uses and may use."""

    memory: int | None = None
    """Memory in use, in bytes."""

    storage: int | None = None
    """Disk in use, in bytes."""

    reserved_memory: int | None = None
    """Memory promised to streams with max_bytes, in bytes. Since server 2.9.0."""

    reserved_storage: int | None = None
    """Disk promised to streams with max_bytes, in bytes. Since server 2.9.0."""

    streams: int | None = None
    """Number of streams."""

    consumers: int | None = None
    """Number of consumers."""

    limits: AccountLimits | None = None
    """Upper bounds, empty for accounts with tiers."""

    domain: str | None = None
    """JetStream domain of the server. Since server 2.3.0."""

    api: ApiStats | None = None
    """Requests so far."""

    tiers: dict[str, AccountTier] | None = None
    """
    Use and bounds for each number of replicas, by names such as R1 and R3. Since server
    2.8.0.
    """


@frozen(kw_only=True, repr=False)
class AccountInfoResponse(AccountInfo):
    """Answer with what an account uses and may use."""

    type: str | None = "io.nats.jetstream.api.v1.account_info_response"
    """Name of the type."""
