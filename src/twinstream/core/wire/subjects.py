"""Names and subjects: what may go on the wire, and the subjects of the JetStream API.

Source: ADR-6 and the name checks of nats-server 2.11 to 2.15.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from attrs import field, frozen

from twinstream.core.error_details.api_target import api_names
from twinstream.errors import BadArgument
from twinstream.core.base.check_arguments import check_kind

__all__ = [
    "BLANKS",
    "ApiSubjects",
    "check_filter",
    "check_name",
    "check_prefix",
    "check_queue",
    "check_subject",
    "known_subject",
]

# The server splits a protocol line at these bytes and at no other white space: it stores subjects
# with a no-break space or a unit separator, which clients publish by accident.
_NOT_IN_SUBJECT: Final = re.compile(r"[ \t\r\n]")
_NOT_IN_NAME: Final = re.compile(r"[ \t\r\n\f.*>/\\]")
BLANKS: Final = " \t\r\n\f"
"""White space that no name may hold; around a name only this may be cut off."""
_DOMAIN: Final = re.compile(r"\$JS\.([^.]+)\.API")
_MAX_NAME: Final = 255
# A server reads protocol lines of up to 4096 bytes (max_control_line). It closes the connection at
# a longer one, and would do so again when the line is repeated on a new link. Besides the subject a
# line holds a reply subject and sizes, or a queue group.
_MAX_SUBJECT: Final = 3000
_MAX_QUEUE: Final = 500
_MAX_PREFIX: Final = 200


def check_subject(subject: str) -> bytes:
    """Return a subject to publish to in bytes, or raise `BadArgument`."""
    encoded = check_filter(subject)
    if "*" in subject or ">" in subject:
        for token in subject.split("."):
            if token in {"*", ">"}:
                raise BadArgument(f"subject {subject!r}: a wildcard cannot be published to")
    return encoded


def known_subject(subject: str) -> bytes:
    """Do as `check_subject`, remembering the last thousand: programs publish to the same few."""
    return _remembered(subject) if isinstance(subject, str) else check_subject(subject)


_remembered: Final = lru_cache(maxsize=1000)(check_subject)


def check_filter(subject: str) -> bytes:
    """Return a subject to subscribe to, wildcards allowed, in bytes, or raise `BadArgument`."""
    if not isinstance(subject, str):
        raise BadArgument(f"a subject must be text, got {subject!r}")
    if not subject:
        raise BadArgument("a subject may not be empty")
    if _NOT_IN_SUBJECT.search(subject):
        raise BadArgument(f"subject {subject!r} holds white space that the protocol splits at")
    if subject[0] == "." or subject[-1] == "." or ".." in subject:
        raise BadArgument(f"subject {subject!r} has an empty token")
    if ">" in subject and ">" in subject.split(".")[:-1]:
        raise BadArgument(f"subject {subject!r}: '>' may only be the last token")
    encoded = _encoded(subject, "subject")
    if len(encoded) > _MAX_SUBJECT:
        raise BadArgument(
            f"subject {subject[:20]!r}… has {len(encoded)} bytes, {_MAX_SUBJECT} are allowed: with"
            " reply subject and sizes it must fit into a protocol line of the server, 4096 bytes"
        )
    return encoded


def _encoded(text: str, kind: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadArgument(f"{kind} {text!r} is not valid Unicode") from error


def check_queue(queue: str) -> bytes:
    """Return a queue group name in bytes, or raise `BadArgument`."""
    check_kind(queue, str, "a queue group", "text")
    if _NOT_IN_SUBJECT.search(queue):
        raise BadArgument(f"queue group {queue!r} holds white space")
    encoded = _encoded(queue, "queue group")
    if len(encoded) > _MAX_QUEUE:
        raise BadArgument(f"queue group {queue[:20]!r}… is longer than {_MAX_QUEUE} bytes")
    return encoded


def check_prefix(prefix: str) -> str:
    """Return the prefix of inboxes or of API subjects, or raise `BadArgument`."""
    if len(check_subject(prefix)) > _MAX_PREFIX:
        raise BadArgument(f"prefix {prefix[:20]!r}… is longer than {_MAX_PREFIX} bytes")
    return prefix


def check_name(name: str, kind: str) -> str:
    """Return the name of a stream or consumer (`kind` says which), or raise `BadArgument`."""
    if not isinstance(name, str) or not name:
        raise BadArgument(f"a {kind} needs a name, got {name!r}")
    if len(_encoded(name, f"{kind} name")) > _MAX_NAME:
        raise BadArgument(f"{kind} name {name[:20]!r}… is longer than {_MAX_NAME} bytes")
    found = _NOT_IN_NAME.search(name)
    if found:
        raise BadArgument(
            f"{kind} name {name!r} holds {found.group()!r}; not allowed are white space . * > / \\"
        )
    return name


@frozen
class ApiSubjects:
    """The subjects of the JetStream API under one prefix, by default `$JS.API`."""

    prefix: str = field(default="$JS.API", converter=check_prefix)

    @classmethod
    def of(cls, *, domain: str | None, prefix: str | None) -> ApiSubjects:
        """Return the subjects for a JetStream domain, or for an account's API import."""
        if domain and prefix:
            raise BadArgument("give a domain or a prefix, not both: each replaces $JS.API")
        if domain:
            return cls(f"$JS.{check_name(domain, 'domain')}.API")
        if not prefix:
            return cls()
        check_kind(prefix, str, "prefix", "text")
        return cls(prefix.rstrip("."))

    @property
    def domain(self) -> str | None:
        """The domain that the prefix names, None where it names none."""
        found = _DOMAIN.fullmatch(self.prefix)
        return found[1] if found else None

    def stream_of(self, subject: str) -> str | None:
        """Return the stream that an API subject names, None where it names none."""
        if not subject.startswith(self.prefix + "."):
            return None
        names = api_names(subject[len(self.prefix) + 1 :])
        return names[0] if names else None

    def account_info(self) -> str:
        """Return the subject of the account's limits and usage."""
        return f"{self.prefix}.INFO"

    def cluster(self, verb: str) -> str:
        """Return the subject of a call on the cluster: META.LEADER.STEPDOWN, SERVER.REMOVE."""
        return f"{self.prefix}.{verb}"

    def account(self, verb: str, account: str, stream: str | None = None) -> str:
        """Return the subject of an operator's call on an account: PURGE, STREAM.MOVE."""
        subject = f"{self.prefix}.ACCOUNT.{verb}.{check_name(account, 'account')}"
        return subject if stream is None else f"{subject}.{check_name(stream, 'stream')}"

    def stream(self, verb: str, name: str) -> str:
        """Return the subject of a call on one stream: CREATE, UPDATE, INFO, LEADER.STEPDOWN."""
        return f"{self.prefix}.STREAM.{verb}.{check_name(name, 'stream')}"

    def streams(self, verb: str) -> str:
        """Return the subject of NAMES or LIST."""
        return f"{self.prefix}.STREAM.{verb}"

    def message(self, verb: str, stream: str) -> str:
        """Return the subject that reads (GET) or deletes (DELETE) one message by the leader."""
        return f"{self.prefix}.STREAM.MSG.{verb}.{check_name(stream, 'stream')}"

    def direct_get(self, stream: str) -> str:
        """Return the subject of a direct get."""
        return f"{self.prefix}.DIRECT.GET.{check_name(stream, 'stream')}"

    def direct_last(self, stream: str, subject: str) -> str | None:
        """Return the subject of a direct get of another one's last message; None if too long."""
        direct = f"{self.direct_get(stream)}.{subject}"
        return direct if len(direct.encode()) <= _MAX_SUBJECT else None

    def consumer(self, verb: str, stream: str, name: str) -> str:
        """Return the subject of a call on one consumer: INFO, DELETE, PAUSE, RESET, UNPIN."""
        check_name(stream, "stream")
        return f"{self.prefix}.CONSUMER.{verb}.{stream}.{check_name(name, 'consumer')}"

    def consumers(self, verb: str, stream: str) -> str:
        """Return the subject of NAMES or LIST."""
        return f"{self.prefix}.CONSUMER.{verb}.{check_name(stream, 'stream')}"

    def create_consumer(self, stream: str, name: str, filters: list[str]) -> str:
        """Return the create subject: it carries the filter when there is exactly one (2.9).

        A filter that makes it too long is only in the request, as several filters are.
        """
        subject = self.consumer("CREATE", stream, name)
        if len(filters) != 1:
            return subject
        length = len(subject.encode()) + 1 + len(check_filter(filters[0]))
        return subject if length > _MAX_SUBJECT else f"{subject}.{filters[0]}"

    def next_message(self, stream: str, consumer: str) -> str:
        """Return the subject that pull requests go to."""
        return self.consumer("MSG.NEXT", stream, consumer)
