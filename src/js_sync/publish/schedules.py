# Generated from src/js_async/publish/schedules.py by codegen/twin.py. Edit that file instead.
"""Schedules: messages that the server publishes later, or again and again (ADR-51)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from twinstream.core.deadline import Seconds
from twinstream.errors import BadArgument, JetStreamError
from twinstream.core.wire.header_names import SCHEDULE
from twinstream.core.wire.headers import Headers, HeaderValues
from twinstream.core.publish.request import PublishRequest
from twinstream.core.publish.retry import RetryPolicy
from twinstream.core.publish.schedules import (
    Schedule,
    StoredSchedule,
    check_schedule_server,
    check_schedules,
    explained,
    finish_headers,
    is_schedule,
    schedule_headers,
    stored_schedule,
)
from twinstream.core.wire.subjects import check_subject
from twinstream.core.publish.ttl import Ttl
from twinstream.models import PubAck
from js_sync.api.api import Api
from js_sync.runtime.concurrency import Stream as Generated
from js_sync.publish.publish import publish
from js_sync.stream import Stream

__all__ = ["Schedules"]

_SINCE: Final = (2, 12, 0)


class Schedules:
    """The schedules of a stream. Get them from `JetStream.schedules`."""

    def __init__(self, api: Api, stream: Stream) -> None:
        self._api: Final = api
        self._stream: Final = stream

    @classmethod
    def _open(cls, api: Api, name: str) -> Schedules:
        """Look at a stream and return its schedules."""
        api.transport.ready(api.deadline())
        api.require(_SINCE, "message scheduling")
        info = api.stream_info(name)
        check_schedules(info.config)
        return cls(api, Stream(api, name, info))

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._stream.name

    def __repr__(self) -> str:
        return f"<Schedules of {self.stream}>"

    def add(
        self,
        subject: str,
        schedule: Schedule,
        target: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        source: str | None = None,
        ttl: Ttl | None = None,
        rollup: bool = False,
        lifetime: Ttl | None = None,
        msg_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> PubAck:
        """Store a schedule under a subject of its own; one that is there is replaced.

        At its times the server publishes `data` with `headers` to `target`, another subject of the
        same stream; or, with `source`, whatever is the last message of that subject then (2.14).
        What is published lives for `ttl` seconds, the schedule itself for `lifetime`; `"never"`
        keeps it beyond the stream's `max_age`. Both need `allow_msg_ttl`. With `rollup` it replaces
        what the target held (2.14). A stream with interest retention keeps a schedule only if some
        consumer's filter covers its subject.

        Raises `Unsupported`, `BadArgument`, and what `JetStream.publish` raises.
        """
        own = schedule_headers(schedule, subject, target, source=source, ttl=ttl, rollup=rollup)
        server = self._api.transport.server_info
        check_schedule_server(own, schedule, server.version_numbers, server.version)
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=_joined(own, headers),
            msg_id=msg_id,
            expected_stream=self.stream,
            ttl=lifetime,
        )
        try:
            return publish(self._api, request, RetryPolicy(waits_for_leader=True), timeout)
        except JetStreamError as error:
            told = explained(error, target, source)
            if told is None:
                raise
            raise told from error

    def get(self, subject: str) -> StoredSchedule:
        """Return the schedule of a subject.

        Raises `MessageNotFound` if there is none, `BadAnswer` if another message is there, or
        `BadArgument` for a wildcard.
        """
        check_subject(subject)
        return stored_schedule(self._stream.get_last_message(subject))

    def list(self, subjects: str | Sequence[str] = ">") -> Generated[StoredSchedule]:
        """Iterate over the schedules whose subjects match any of the filters, as of one moment.

        Every schedule that was acknowledged before the call is among them. The last message of
        each such subject is read at once, by `Stream.snapshot`, so narrow filters are cheap; raises
        what that raises.
        """
        for message in (self._stream.snapshot(subjects)).values():
            if is_schedule(message):
                yield stored_schedule(message)

    def cancel(self, subject: str) -> StoredSchedule:
        """Remove the schedule of a subject and return what it was.

        What it has published stays. Raises as `get` does, or a `JetStreamError` where the stream
        does not let messages be deleted.
        """
        found = self.get(subject)
        self._stream.delete_message(found.seq)
        return found

    def finish(
        self,
        schedule: StoredSchedule,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        timeout: Seconds | None = None,
    ) -> PubAck:
        """Store a message and cancel a schedule, both or neither.

        Raises `WrongLastSequence`, and stores nothing, when the schedule was replaced, cancelled
        or done meanwhile; `BadArgument`, and what `JetStream.publish` raises.
        """
        if subject == schedule.subject:
            raise BadArgument(f"{subject} is the schedule's own subject: store under another one")
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=_joined(finish_headers(schedule), headers),
            msg_id=msg_id,
            expected_stream=self.stream,
        )
        return publish(self._api, request, RetryPolicy(waits_for_leader=True), timeout)


def _joined(own: dict[str, str], headers: HeaderValues | None) -> HeaderValues:
    """Return the schedule's headers with those of the user."""
    if not headers:
        return own
    both: dict[str, str | Iterable[str]] = {}
    for name in headers:
        if name in own or name.startswith(SCHEDULE):
            raise BadArgument(f"header {name} is set by the schedule itself: leave it out")
        both[name] = headers.get_all(name) if isinstance(headers, Headers) else headers[name]
    return both | own
