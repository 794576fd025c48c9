"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.generated.common import PeerInfo
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class DomainLeaderElected(Model):
    """A JetStream domain has a new meta leader."""

    type: str | None = "io.nats.jetstream.advisory.v1.domain_leader_elected"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    leader: str | None = None
    """Server that leads now."""

    replicas: list[PeerInfo] | None = None
    """The followers."""

    cluster: str | None = None
    """Cluster of the server."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ServerOutOfSpace(Model):
    """A server has no room left for JetStream."""

    type: str | None = "io.nats.jetstream.advisory.v1.server_out_of_space"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    server: str
    """Name of the server."""

    server_id: str
    """Identity of the server."""

    stream: str | None = None
    """Stream that met the limit."""

    cluster: str | None = None
    """Cluster of the server."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ServerRemoved(Model):
    """A server was taken out of the cluster."""

    type: str | None = "io.nats.jetstream.advisory.v1.server_removed"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    server: str
    """Name of the server."""

    server_id: str
    """Identity of the server."""

    cluster: str | None = None
    """Cluster of the server."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class MetaRescue(Model):
    """A server goes on with a smaller quorum."""

    type: str | None = "io.nats.jetstream.advisory.v1.meta_rescue"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    server: str
    """Name of the server."""

    server_id: str
    """Identity of the server."""

    prev_quorum: int
    """Servers that made a quorum before."""

    new_quorum: int
    """Servers that make one now."""

    cluster: str | None = None
    """Cluster of the server."""

    domain: str | None = None
    """JetStream domain of the server."""
