"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.generated.common import Placement


@frozen(kw_only=True, repr=False)
class MetaLeaderStepdownRequest(Model):
    """Asks the meta leader to hand over."""

    placement: Placement | None = None
    """Where the next leader should be."""


@frozen(kw_only=True, repr=False)
class MetaLeaderStepdownResponse(Model):
    """Answer to the hand-over of the meta leader."""

    type: str | None = "io.nats.jetstream.api.v1.meta_leader_stepdown_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it began."""


@frozen(kw_only=True, repr=False)
class MetaServerRemoveRequest(Model):
    """Asks to forget a server."""

    peer: str
    """Name of the server."""

    peer_id: str | None = None
    """Identity of the server."""


@frozen(kw_only=True, repr=False)
class MetaServerRemoveResponse(Model):
    """Answer to the removal of a server."""

    type: str | None = "io.nats.jetstream.api.v1.meta_server_remove_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it is gone."""


@frozen(kw_only=True, repr=False)
class MetaServerEvacuateRequest(Model):
    """Asks to move everything away from a server."""

    peer: str
    """Name of the server."""

    peer_id: str | None = None
    """Identity of the server."""


@frozen(kw_only=True, repr=False)
class MetaServerEvacuateResponse(Model):
    """Answer to the evacuation of a server."""

    type: str | None = "io.nats.jetstream.api.v1.meta_server_evacuate_response"
    """Name of the type."""

    success: bool | None = None
    """Whether it began."""


@frozen(kw_only=True, repr=False)
class MetaRescueRequest(Model):
    """Asks the remaining servers to go on with a smaller quorum."""

    quorum_needed: int
    """Number of servers that make a quorum."""


@frozen(kw_only=True, repr=False)
class MetaRescueResponse(Model):
    """Answer of one server to a rescue."""

    type: str | None = "io.nats.jetstream.api.v1.meta_rescue_response"
    """Name of the type."""

    server: str | None = None
    """Name of the server."""

    server_id: str | None = None
    """Identity of the server."""

    success: bool | None = None
    """Whether it took the new quorum."""


@frozen(kw_only=True, repr=False)
class StreamMoveRequest(Model):
    """Asks to move a stream."""

    server: str | None = None
    """Server to move it away from."""

    cluster: str | None = None
    """Cluster to move it to."""

    domain: str | None = None
    """JetStream domain."""

    tags: list[str] | None = field(default=None, converter=converters.optional_strings)
    """Tags that the target servers must carry."""


@frozen(kw_only=True, repr=False)
class SystemResponse(Model):
    """Answer to a request that no other answer fits."""

    type: str | None = "io.nats.jetstream.api.v1.system_response"
    """Name of the type."""
