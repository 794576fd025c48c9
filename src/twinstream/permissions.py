"""The minimal subject permissions that a user needs for given operations.

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

from twinstream.core.client.operation import Operation
from twinstream.core.client.permission_table import OPERATIONS, operation
from twinstream.core.kv.names import written_behind
from twinstream.core.wire.subject_match import covers
from twinstream.core.wire.subjects import ApiSubjects, check_prefix
from twinstream.core.wire.tokens import INBOX
from twinstream.errors import BadArgument

__all__ = [
    "Permissions",
    "consume",
    "operation",
    "operation_usages",
    "permissions",
    "publish",
]

# With the server option `js_ack_fc_v2` (2.14), the tokens of the domain and the account precede the
# token of the stream.
_SECOND_FORM: Final = {"$JS.ACK.": "$JS.ACK.*.*.", "$JS.FC.": "$JS.FC.*.*."}
_ESCAPED: Final = re.compile(r'[\0-\x1f\x7f"\\]')


@frozen
class Permissions:
    """The subjects that a user may publish and subscribe to. All other subjects are denied."""

    publish: tuple[str, ...]
    """Subjects that the user may publish to."""
    subscribe: tuple[str, ...]
    """Subjects that the user may subscribe to."""

    def as_json(self) -> dict[str, dict[str, list[str]]]:
        """Return the permissions in the form of `permissions` in the server's configuration."""
        return {"publish": _rule(self.publish), "subscribe": _rule(self.subscribe)}

    def as_claims(self) -> dict[str, dict[str, list[str]]]:
        """Return the permissions in the form of `pub` and `sub` in the JWT of a user."""
        return {"pub": _rule(self.publish), "sub": _rule(self.subscribe)}

    def nats_conf(self) -> str:
        """Return the text of a `permissions` block for the server's configuration file."""
        lines = ["permissions {"]
        for what, rule in self.as_json().items():
            for verb, subjects in rule.items():
                lines.append(f"  {what} {{ {verb}: [")
                lines += [f'    "{_quoted(subject)}"' for subject in subjects]
                lines.append("  ] }")
        return "\n".join([*lines, "}"])


def _quoted(subject: str) -> str:
    # The server's configuration format has no `\u` escapes, so only control characters, quotes and
    # backslashes are escaped, as `\x` and two digits.
    return _ESCAPED.sub(lambda found: f"\\x{ord(found.group()):02x}", subject)


def _rule(subjects: tuple[str, ...]) -> dict[str, list[str]]:
    # The server reads an empty allow list as no restriction.
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}


def permissions(
    *operations: Operation,
    domain: str | None = None,
    prefix: str | None = None,
    inbox_prefix: str = INBOX,
    second_form: bool = False,
) -> Permissions:
    """Return the permissions that a user needs for all of the operations.

    A subject that another subject covers is omitted.

    Args:
        operations: The operations of the user, such as `consume("ORDERS", "worker")`.
        domain: The JetStream domain, as in `Connection.jetstream`.
        prefix: The API prefix, as in `Connection.jetstream`.
        inbox_prefix: The inbox prefix, as in `connect`. If each user has a different prefix, no
            user can subscribe to the replies for another user.
        second_form: True for servers with the option `js_ack_fc_v2` (2.14), whose acknowledgement
            subjects have two more tokens.

    Raises:
        BadArgument: No operation is given, or a prefix is invalid.
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
        if subject.startswith("K."):
            # Add the prefix of a domain or an import in the same way as `KeySubjects`.
            return written_behind(api, f"$KV{subject[1:]}")
        for first, second in _SECOND_FORM.items():
            if second_form and subject.startswith(first):
                return second + subject[len(first) :]
        return subject

    return Permissions(
        _least([whole(each) for one in operations for each in one.publishes]),
        _least([whole(each) for one in operations for each in one.subscribes]),
    )


def _least(subjects: list[str]) -> tuple[str, ...]:
    """Return the subjects that no other subject covers, in the same order."""
    unique = list(dict.fromkeys(subjects))
    return tuple(
        one for one in unique if not any(other != one and covers(other, one) for other in unique)
    )


def publish(*subjects: str) -> Operation:
    """Return the operation of publishing to subjects and receiving acknowledgements.

    The subjects may have wildcards.

    Args:
        subjects: Subjects, which may have wildcards.
    """
    return operation("publish", *subjects)


def consume(stream: str, consumer: str, *, bound: bool = False) -> Operation:
    """Return the operation of consuming from a pull consumer and acknowledging its messages.

    Args:
        stream: The name of the stream.
        consumer: The name of the consumer.
        bound: True for `bind_consumer`, which does not look up the consumer; False for
            `get_consumer`, which needs the permission for the look-up. Without this permission, the
            client cannot distinguish a deleted consumer from a consumer without a leader.
    """
    return operation("consume_bound" if bound else "consume", stream, consumer)


def operation_usages() -> list[str]:
    """Return the usage text of each operation: its name and its arguments."""
    return [pattern.usage for pattern in OPERATIONS.values()]
