"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.times.duration import Duration
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class ApiError(Model):
    """Why the server refused a request."""

    code: int
    """Class of the error after the manner of HTTP, such as 400, 404, 500 or 503."""

    err_code: int | None = None
    """Stable number of the condition, the one to branch on. Since server 2.6.0."""

    description: str | None = None
    """The reason in words, which change between versions."""


@frozen(kw_only=True, repr=False)
class ErrorResponse(Model):
    """An answer that carries an error instead of its payload."""

    error: ApiError
    """What went wrong."""

    type: str | None = None
    """Name of the answer's type."""


@frozen(kw_only=True, repr=False)
class Placement(Model):
    """Where in a cluster an asset may live."""

    cluster: str | None = None
    """Name of the cluster."""

    tags: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Tags that a server must carry, all of them."""

    preferred: str | None = None
    """
    Server that should lead, only valid when a leader is asked to step down. Since server
    2.11.0.
    """


@frozen(kw_only=True, repr=False)
class PeerInfo(Model):
    """One follower in a replication group."""

    name: str
    """Name of the server."""

    current: bool | None = None
    """Whether it is up to date with the leader."""

    offline: bool | None = None
    """Whether the leader counts it as gone."""

    active: Duration | None = field(default=None, converter=converters.optional_duration)
    """Time since it was last heard."""

    lag: int | None = None
    """Operations that it is behind the leader."""

    peer: str | None = None
    """Identity of the server inside the group. Since server 2.10.0."""

    pending: bool | None = None
    """Whether it takes part in a move that is not finished. Since server 2.15.0."""

    observer: bool | None = None
    """Whether it follows without a vote."""


@frozen(kw_only=True, repr=False)
class MigrationOrigin(Model):
    """A stream or consumer before its move."""

    replicas: int | None = None
    """Number of copies."""

    placement: Placement | None = None
    """Where it was to be."""

    retention: str | None = None
    """Retention that holds until the move is finished."""


@frozen(kw_only=True, repr=False)
class MigrationStatus(Model):
    """What a move is waiting for."""

    description: str | None = None
    """One line for people."""

    type: str | None = None
    """What has to change: meta, membership, snapshot, catchup, quorum, blocked or unavailable."""

    err: str | None = None
    """The failure behind it, if it lasts."""


@frozen(kw_only=True, repr=False)
class ClientInfo(Model):
    """The connection behind an event."""

    start: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When it connected."""

    host: str | None = None
    """Address of the client."""

    id: int | None = None
    """Number of the connection on its server."""

    acc: str | None = None
    """Account."""

    svc: str | None = None
    """Account of the service that passed the request on."""

    user: str | None = None
    """User name or public key."""

    name: str | None = None
    """Name that the client gave itself."""

    lang: str | None = None
    """Language of its library."""

    ver: str | None = None
    """Version of its library."""

    rtt: Duration | None = field(default=None, converter=converters.optional_duration)
    """Last measured round trip."""

    server: str | None = None
    """Server that it is connected to."""

    cluster: str | None = None
    """Cluster of that server."""

    alts: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Other clusters that hold the service."""

    stop: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When it disconnected."""

    jwt: str | None = None
    """User token."""

    issuer_key: str | None = None
    """Public key of the issuer."""

    name_tag: str | None = None
    """Name in the user token."""

    tags: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Tags in the user token."""

    kind: str | None = None
    """Kind of connection, such as Client or Leafnode."""

    client_type: str | None = None
    """Protocol, such as nats, websocket or mqtt."""

    client_id: str | None = None
    """MQTT client identity. Since server 2.10.0."""

    nonce: str | None = None
    """Challenge of the connection."""


@frozen(kw_only=True, repr=False)
class UnknownEvent(Model):
    """An event or answer of a type that this release does not know."""

    type: str | None = None
    """Name of the type."""

    id: str | None = None
    """Unique text of the event."""

    timestamp: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When it happened."""


@frozen(kw_only=True, repr=False)
class MigrationTarget(Model):
    """The target of a stream or consumer that is on the move."""

    created: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When the move was asked for."""

    name: str | None = None
    """Name of the target cluster."""

    replicas: list[PeerInfo] | None = None
    """Servers that will hold the asset."""

    origin: MigrationOrigin | None = None
    """What the asset was like before."""

    status: MigrationStatus | None = None
    """What the move is waiting for."""


@frozen(kw_only=True, repr=False)
class ClusterInfo(Model):
    """The servers that hold a replicated asset, or the account's meta group."""

    name: str | None = None
    """Name of the cluster."""

    raft_group: str | None = None
    """Name of the replication group."""

    leader: str | None = None
    """Server that leads now, absent while there is none."""

    leader_since: Timestamp | None = field(default=None, converter=converters.optional_timestamp)
    """When the leader took over. Since server 2.11.9."""

    system_account: bool | None = None
    """Whether replication traffic runs in the system account. Since server 2.11.9."""

    traffic_account: str | None = None
    """Account that carries the replication traffic. Since server 2.11.9."""

    replicas: list[PeerInfo] | None = None
    """The followers."""

    desired: MigrationTarget | None = None
    """Where a running move is going to. Since server 2.15.0."""
