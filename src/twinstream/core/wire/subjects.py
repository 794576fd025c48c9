"""Validate names and subjects, and build the subjects of the JetStream API.

Source: ADR-6 and the name checks of nats-server 2.11 to 2.15.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from attrs import field, frozen

from twinstream.core.arguments.check_arguments import check_kind
from twinstream.errors import BadArgument
from twinstream.errors.api_target import api_names

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

# The server splits protocol lines at these bytes and at no other white space. It accepts a no-break
# space or a unit separator in a subject, which clients publish by accident.
_NOT_IN_SUBJECT: Final = re.compile(r"[ \t\r\n]")
_NOT_IN_NAME: Final = re.compile(r"[ \t\r\n\f.*>/\\]")
BLANKS: Final = " \t\r\n\f"
"""The white space that names must not contain; other white space is allowed.

Strip names with `strip(BLANKS)`, because `strip()` also removes characters that may be part of a
name.
"""
_DOMAIN: Final = re.compile(r"\$JS\.([^.]+)\.API")
_MAX_NAME: Final = 255
# A server accepts protocol lines of up to 4096 bytes (max_control_line). It closes the connection
# after a longer line, and does so again when the client sends that line after a reconnect. In
# addition to the subject, a line contains a reply subject and sizes, or a queue group.
_MAX_SUBJECT: Final = 3000
_MAX_QUEUE: Final = 500
# The usual subjects, of printable ASCII and without wildcards. Such a subject is valid, and this
# match takes a quarter of the steps of the full check.
_USUAL: Final = re.compile(r"[!-)+-\-/-=?-~]+(?:\.[!-)+-\-/-=?-~]+)*")
_MAX_PREFIX: Final = 200


def check_subject(subject: str) -> bytes:
    """Validate a subject to publish to; return it as bytes or raise `BadArgument`."""
    if _is_usual(subject):
        return subject.encode()
    encoded = check_filter(subject)
    if "*" in subject or ">" in subject:
        for token in subject.split("."):
            if token in {"*", ">"}:
                raise BadArgument(f"subject {subject!r}: cannot publish to a wildcard")
    return encoded


known_subject: Final = lru_cache(maxsize=1000)(check_subject)
"""Like `check_subject`, with a cache of the last 1000 subjects. The subject must be text."""


def check_filter(subject: str) -> bytes:
    """Validate a subject with or without wildcards; return it as bytes or raise `BadArgument`."""
    if _is_usual(subject):
        return subject.encode()
    if not isinstance(subject, str):
        raise BadArgument(f"a subject must be text, got {subject!r}")
    if not subject:
        raise BadArgument("a subject must not be empty")
    if _NOT_IN_SUBJECT.search(subject):
        raise BadArgument(f"subject {subject!r} contains white space (blank, tab, CR or LF)")
    if subject[0] == "." or subject[-1] == "." or ".." in subject:
        raise BadArgument(f"subject {subject!r} has an empty token")
    if ">" in subject and ">" in subject.split(".")[:-1]:
        raise BadArgument(f"subject {subject!r}: '>' must be the last token")
    encoded = _encoded(subject, "subject")
    if len(encoded) > _MAX_SUBJECT:
        raise BadArgument(
            f"subject {subject[:20]!r}… has {len(encoded)} bytes, at most {_MAX_SUBJECT} fit into a"
            " protocol line of the server (max_control_line, 4096 bytes by default) together with"
            " reply subject and sizes"
        )
    return encoded


def _is_usual(subject: str) -> bool:
    """Return whether a subject has the usual form. Other subjects may be valid as well."""
    known = isinstance(subject, str) and len(subject) <= _MAX_SUBJECT
    return known and _USUAL.fullmatch(subject) is not None


def _encoded(text: str, kind: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadArgument(f"{kind} {text!r} is not valid Unicode") from error


def check_queue(queue: str) -> bytes:
    """Validate a queue group name; return it as bytes or raise `BadArgument`."""
    check_kind(queue, str, "a queue group", "text (leave queue out to subscribe without a group)")
    if _NOT_IN_SUBJECT.search(queue):
        raise BadArgument(f"queue group {queue!r} contains white space")
    encoded = _encoded(queue, "queue group")
    if len(encoded) > _MAX_QUEUE:
        raise BadArgument(f"queue group {queue[:20]!r}… is longer than {_MAX_QUEUE} bytes")
    return encoded


def check_prefix(prefix: str) -> str:
    """Validate a prefix of inboxes or of API subjects; return it or raise `BadArgument`."""
    if len(check_subject(prefix)) > _MAX_PREFIX:
        raise BadArgument(f"prefix {prefix[:20]!r}… is longer than {_MAX_PREFIX} bytes")
    return prefix


def check_name(name: str, kind: str) -> str:
    """Validate the name of a stream, consumer or other `kind`; return it or raise `BadArgument`."""
    if not isinstance(name, str) or not name:
        raise BadArgument(f"a {kind} needs a name, got {name!r}")
    if len(_encoded(name, f"{kind} name")) > _MAX_NAME:
        raise BadArgument(f"{kind} name {name[:20]!r}… is longer than {_MAX_NAME} bytes")
    found = _NOT_IN_NAME.search(name)
    if found:
        raise BadArgument(
            f"{kind} name {name!r} contains {found.group()!r}; not allowed: white space . * > / \\"
        )
    return name


@frozen
class ApiSubjects:
    """The subjects of the JetStream API below one prefix, by default `$JS.API`."""

    prefix: str = field(default="$JS.API", converter=check_prefix)

    @classmethod
    def of(cls, *, domain: str | None, prefix: str | None) -> ApiSubjects:
        """Return the subjects of a JetStream domain, or of an API that is imported as `prefix`.

        If both are None or empty, the prefix is `$JS.API`. Raises `BadArgument` if both are given,
        or if one is invalid.
        """
        if domain and prefix:
            raise BadArgument("pass either domain or prefix, not both: each replaces $JS.API")
        if domain:
            return cls(f"$JS.{check_name(domain, 'domain')}.API")
        if not prefix:
            return cls()
        check_kind(prefix, str, "prefix", "text")
        return cls(prefix.rstrip("."))

    @property
    def domain(self) -> str | None:
        """The JetStream domain in the prefix, None if the prefix contains none."""
        found = _DOMAIN.fullmatch(self.prefix)
        return found[1] if found else None

    def stream_of(self, subject: str) -> str | None:
        """Return the name of the stream in an API subject, None if it contains none."""
        if not subject.startswith(self.prefix + "."):
            return None
        names = api_names(subject[len(self.prefix) + 1 :])
        return names[0] if names else None

    def account_info(self) -> str:
        """Return the subject of the account's limits and usage."""
        return f"{self.prefix}.INFO"

    def cluster(self, verb: str) -> str:
        """Return the subject of a cluster operation, such as META.LEADER.STEPDOWN."""
        return f"{self.prefix}.{verb}"

    def account(self, verb: str, account: str, stream: str | None = None) -> str:
        """Return the subject of an operator's request for an account: PURGE or STREAM.MOVE."""
        subject = f"{self.prefix}.ACCOUNT.{verb}.{check_name(account, 'account')}"
        return subject if stream is None else f"{subject}.{check_name(stream, 'stream')}"

    def stream(self, verb: str, name: str) -> str:
        """Return the subject of a request for a stream, such as CREATE or LEADER.STEPDOWN."""
        return f"{self.prefix}.STREAM.{verb}.{check_name(name, 'stream')}"

    def streams(self, verb: str) -> str:
        """Return the subject of STREAM.NAMES or STREAM.LIST."""
        return f"{self.prefix}.STREAM.{verb}"

    def message(self, verb: str, stream: str) -> str:
        """Return the subject on which the leader reads (GET) or deletes (DELETE) one message."""
        return f"{self.prefix}.STREAM.MSG.{verb}.{check_name(stream, 'stream')}"

    def direct_get(self, stream: str) -> str:
        """Return the subject of direct get requests to `stream`."""
        return f"{self.prefix}.DIRECT.GET.{check_name(stream, 'stream')}"

    def direct_last(self, stream: str, subject: str) -> str | None:
        """Return the subject of a direct get of the last message of `subject`.

        Return None if the result would be too long.
        """
        direct = f"{self.direct_get(stream)}.{subject}"
        return direct if len(direct.encode()) <= _MAX_SUBJECT else None

    def consumer(self, verb: str, stream: str, name: str) -> str:
        """Return the subject of a request for a consumer, such as INFO, DELETE or PAUSE."""
        check_name(stream, "stream")
        return f"{self.prefix}.CONSUMER.{verb}.{stream}.{check_name(name, 'consumer')}"

    def consumers(self, verb: str, stream: str) -> str:
        """Return the subject of CONSUMER.NAMES or CONSUMER.LIST."""
        return f"{self.prefix}.CONSUMER.{verb}.{check_name(stream, 'stream')}"

    def create_consumer(self, stream: str, name: str, filters: list[str]) -> str:
        """Return the subject that creates a consumer, with the filter if there is exactly one.

        Servers from 2.9 on accept the filter in the subject. If there are several filters, or if
        the subject would be too long, only the request body contains the filters.
        """
        subject = self.consumer("CREATE", stream, name)
        if len(filters) != 1:
            return subject
        length = len(subject.encode()) + 1 + len(check_filter(filters[0]))
        return subject if length > _MAX_SUBJECT else f"{subject}.{filters[0]}"

    def next_message(self, stream: str, consumer: str) -> str:
        """Return the subject of pull requests to a consumer."""
        return self.consumer("MSG.NEXT", stream, consumer)
