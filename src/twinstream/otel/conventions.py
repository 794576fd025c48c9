"""The names of the semantic conventions for messaging, in the versions that can be chosen.

Python's package of constants ends at 1.44, so the names are written here. 1.45 renamed
`messaging.system`, and took the prefix `messaging.` off the attributes of single systems. The names
of 1.43 are those that the Java agent emits for NATS.
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

__all__ = ["CONVENTIONS", "DURATION_BUCKETS", "Conventions", "Version"]

Version = Literal["1.45", "1.43"]

DURATION_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25),
    *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
"""The advised boundaries of both histograms in seconds."""


@frozen(kw_only=True)
class Conventions:
    """The names of one version."""

    schema_url: str
    system: str
    stream: str
    sequence: str
    outcome: str
    attempt: str
    names_subjects: bool
    """Whether the name of a span has the subject if there is no template."""
    settled_destination: str | None
    """The destination of acknowledgements, or None for that of their message."""
    records_body_size: bool

    operation_name: str = "messaging.operation.name"
    operation_type: str = "messaging.operation.type"
    destination: str = "messaging.destination.name"
    template: str = "messaging.destination.template"
    group: str = "messaging.consumer.group.name"
    message_id: str = "messaging.message.id"
    message_count: str = "messaging.batch.message_count"
    body_size: str = "messaging.message.body.size"
    client_id: str = "messaging.client.id"
    server_address: str = "server.address"
    server_port: str = "server.port"
    error_type: str = "error.type"

    operation_duration: str = "messaging.client.operation.duration"
    process_duration: str = "messaging.process.duration"
    sent_messages: str = "messaging.client.sent.messages"
    consumed_messages: str = "messaging.client.consumed.messages"


CONVENTIONS: Final[dict[Version, Conventions]] = {
    "1.45": Conventions(
        schema_url="https://opentelemetry.io/schemas/1.45.0",
        system="messaging.system.name",
        stream="nats.stream",
        sequence="nats.sequence",
        outcome="nats.handler.outcome",
        attempt="nats.delivery.attempt",
        names_subjects=False,
        settled_destination=None,
        records_body_size=False,
    ),
    "1.43": Conventions(
        schema_url="https://opentelemetry.io/schemas/1.43.0",
        system="messaging.system",
        stream="messaging.nats.stream",
        sequence="messaging.nats.sequence",
        outcome="messaging.nats.handler.outcome",
        attempt="messaging.nats.delivery.attempt",
        names_subjects=True,
        settled_destination="$JS.ACK",
        records_body_size=True,
    ),
}
