"""The subjects that a user needs for what its program does, and nothing beyond.

::

    needed = permissions(consume("ORDERS", "worker"), publish("invoices.>"))
    needed.publish      # ("$JS.API.CONSUMER.INFO.ORDERS.worker", …, "invoices.>")
    needed.subscribe    # ("_INBOX.>",)
    print(needed.nats_conf())
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from twinstream.errors import BadArgument
from twinstream.core.connect.operation import Operation
from twinstream.core.connect.operations import OPERATIONS, operation
from twinstream.core.wire.subject_match import covers
from twinstream.core.wire.subjects import ApiSubjects, check_prefix
from twinstream.core.wire.tokens import INBOX

__all__ = [
    "Permissions",
    "consume",
    "operation",
    "operation_usages",
    "permissions",
    "publish",
]

# With `js_ack_fc_v2` (server 2.14) domain and account stand in front of the stream.
_SECOND_FORM: Final = {"$JS.ACK.": "$JS.ACK.*.*.", "$JS.FC.": "$JS.FC.*.*."}
_ESCAPED: Final = re.compile(r'[\0-\x1f\x7f"\\]')


@frozen
class Permissions:
    """What a user may publish and subscribe to; everything else is denied."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]

    def as_json(self) -> dict[str, dict[str, list[str]]]:
        """Return the `permissions` of a user, as the server's configuration takes them."""
        return {"publish": _rule(self.publish), "subscribe": _rule(self.subscribe)}

    def as_claims(self) -> dict[str, dict[str, list[str]]]:
        """Return `pub` and `sub` of a user's JWT."""
        return {"pub": _rule(self.publish), "sub": _rule(self.subscribe)}

    def nats_conf(self) -> str:
        """Return the block for a user in the server's configuration file."""
        lines = ["permissions {"]
        for what, rule in self.as_json().items():
            for verb, subjects in rule.items():
                lines.append(f"  {what} {{ {verb}: [")
                lines += [f'    "{_quoted(subject)}"' for subject in subjects]
                lines.append("  ] }")
        return "\n".join([*lines, "}"])


def _quoted(subject: str) -> str:
    # The server's configuration has no \\u; what is not ASCII stands there as it is.
    return _ESCAPED.sub(lambda found: f"\\x{ord(found.group()):02x}", subject)


def _rule(subjects: tuple[str, ...]) -> dict[str, list[str]]:
    # An empty list of what is allowed allows everything.
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}


def permissions(
    *operations: Operation,
    domain: str | None = None,
    prefix: str | None = None,
    inbox_prefix: str = INBOX,
    second_form: bool = False,
) -> Permissions:
    """Return the subjects that all of the operations need, without those that others cover.

    `domain`, `prefix` and `inbox_prefix` are those of `Connection.jetstream` and `connect`; an
    inbox prefix of its own keeps a user from listening to the answers of others. `second_form` is
    for servers with the option `js_ack_fc_v2` (2.14), whose acknowledgement subjects are longer.
    Raises `BadArgument`.
    """
    if not operations:
        raise BadArgument("permissions need at least one operation, such as consume(stream, name)")
    api = ApiSubjects.of(domain=domain, prefix=prefix).prefix
    check_prefix(inbox_prefix)

    def whole(subject: str) -> str:
        if subject == "INBOX":
            return f"{inbox_prefix}.>"
        if subject.startswith("P."):
            return f"{api}{subject[1:]}"
        for first, second in _SECOND_FORM.items():
            if second_form and subject.startswith(first):
                return second + subject[len(first) :]
        return subject

    return Permissions(
        _least([whole(each) for one in operations for each in one.publishes]),
        _least([whole(each) for one in operations for each in one.subscribes]),
    )


def _least(subjects: list[str]) -> tuple[str, ...]:
    """Leave out what another subject covers; keep the order."""
    unique = list(dict.fromkeys(subjects))
    return tuple(
        one for one in unique if not any(other != one and covers(other, one) for other in unique)
    )


def publish(*subjects: str) -> Operation:
    """Publish to subjects, wildcards allowed, and be told that the stream has it."""
    return operation("publish", *subjects)


def consume(stream: str, consumer: str, *, bound: bool = False) -> Operation:
    """Take and acknowledge the messages of a pull consumer, found with `get_consumer`.

    `bound` is for `bind_consumer`, which asks the server for nothing. It cannot tell then whether
    a consumer that nobody answers for is gone, or only without a leader.
    """
    return operation("consume_bound" if bound else "consume", stream, consumer)


def operation_usages() -> list[str]:
    """Return every operation with its arguments, for people to choose from."""
    return [pattern.usage for pattern in OPERATIONS.values()]
