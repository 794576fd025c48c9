"""Models of one file in schema/.

Generated from schema/ by datamodel-codegen and codegen/templates. Edit those instead.
"""

from __future__ import annotations

from attrs import field, frozen

from twinstream.models.codec import converters
from twinstream.models.codec.model import Model
from twinstream.models.generated.common import ClientInfo
from twinstream.models.times.timestamp import Timestamp


@frozen(kw_only=True, repr=False)
class ApiAudit(Model):
    """A JetStream request was answered."""

    type: str | None = "io.nats.jetstream.advisory.v1.api_audit"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    server: str
    """Server that answered."""

    subject: str
    """Subject of the request."""

    response: str
    """Body of the answer as text."""

    client: ClientInfo | None = None
    """Connection that asked for it."""

    request: str | None = None
    """Body of the request as text."""

    domain: str | None = None
    """JetStream domain of the server."""


@frozen(kw_only=True, repr=False)
class ApiLimitReached(Model):
    """A server dropped JetStream requests because too many were waiting."""

    type: str | None = "io.nats.jetstream.advisory.v1.api_limit_reached"
    """Name of the type."""

    id: str
    """Unique text of this event."""

    timestamp: Timestamp = field(converter=converters.timestamp)
    """When it happened."""

    server: str
    """Server that dropped them."""

    dropped: int
    """Number of requests dropped."""

    domain: str | None = None
    """JetStream domain of the server."""
