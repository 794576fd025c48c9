"""Schedules: messages that the server publishes later, once or repeatedly (ADR-51)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from js_async.api.api import Api
from js_async.publish.publish import PublishedMessage
from js_async.runtime.concurrency import Stream as Generated
from js_async.runtime.opening import looped
from js_async.stream import Stream
from twinstream.core.deadline import Seconds
from twinstream.core.publish.retry import RetryPolicy
from twinstream.core.schedules.schedules import (
    Schedule,
    StoredSchedule,
    check_schedule_server,
    check_schedules,
    check_unchanged,
    explained,
    finish_headers,
    is_schedule,
    schedule_headers,
    stored_schedule,
)
from twinstream.core.wire.subjects import check_subject
from twinstream.errors import BadArgument, JetStreamError
from twinstream.models import PubAck
from twinstream.records.header_names import SCHEDULE
from twinstream.records.headers import Headers, HeaderValues
from twinstream.records.publish_request import PublishRequest, Ttl

__all__ = ["Schedules"]

_SINCE: Final = (2, 12, 0)


class Schedules:
    """The schedules of a stream. `JetStream.schedules` creates it."""

    def __init__(self, api: Api, stream: Stream) -> None:
        self._api: Final = api
        self._stream: Final = stream

    @classmethod
    async def _open(cls, api: Api, name: str) -> Schedules:
        """Return the schedules of a stream, after a check that the stream allows schedules.

        Raises `Unsupported` if the server is older than 2.12, and `BadArgument` if the stream does
        not allow schedules.
        """
        await api.transport.ready(api.deadline())
        api.require(_SINCE, "message scheduling")
        info = await api.stream_info(name)
        check_schedules(info.config)
        return cls(api, Stream(api, name, info))

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._stream.name

    def __repr__(self) -> str:
        return f"<Schedules of {self.stream}>"

    async def add(
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
        """Store a schedule. It replaces the schedule with the same subject, if there is one.

        At the times of the schedule, the server publishes `data` with `headers` to `target`. A
        stream with interest retention keeps a schedule only if the filter of a consumer matches the
        subject of the schedule.

        Args:
            subject: Subject of the schedule.
            schedule: The times at which the server publishes.
            target: Subject to publish to, another subject of the same stream.
            data: Payload of the published messages.
            headers: Headers of the published messages.
            source: Publish the last message of this subject instead of `data` (server 2.14).
            ttl: Time to live of the published messages in seconds. `"never"` keeps them beyond the
                stream's `max_age`. Needs `allow_msg_ttl`.
            rollup: Let each published message replace all earlier messages of `target` (server
                2.14).
            lifetime: Time to live of the schedule itself, in the form of `ttl`.
            msg_id: Message id of the schedule.
            timeout: Seconds; the default is that of the API.

        Raises:
            Unsupported: The server does not support the schedule.
            BadArgument: An argument is invalid.
            TwinstreamError: Any error of `JetStream.publish`.
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
            policy = RetryPolicy(waits_for_leader=True)
            return await PublishedMessage(self._api, request, policy, timeout).acknowledged()
        except JetStreamError as error:
            explanation = explained(error, target, source)
            if explanation is None:
                raise
            raise explanation from error

    async def get(self, subject: str) -> StoredSchedule:
        """Return the schedule of a subject.

        Raises `MessageNotFound` if the subject has no message, `BadAnswer` if its last message is
        not a schedule, and `BadArgument` for a wildcard.
        """
        check_subject(subject)
        return stored_schedule(await self._stream.get_last_message(subject))

    @looped
    async def list(self, subjects: str | Sequence[str] = ">") -> Generated[StoredSchedule]:
        """Iterate over the schedules whose subjects match any of the filters, as of one moment.

        The result includes every schedule that was acknowledged before the call. The call reads the
        last message of each matching subject with `Stream.snapshot`, so narrow filters are faster.
        Raises `StreamNotFound`, `JetStreamError` or `RequestTimeout`.

        Args:
            subjects: One filter or several. The default matches all schedules of the stream.
        """
        for message in (await self._stream.snapshot(subjects)).values():
            if is_schedule(message):
                yield stored_schedule(message)

    async def cancel(self, schedule: str | StoredSchedule) -> StoredSchedule:
        """Remove the schedule of a subject and return it.

        A `StoredSchedule`, as returned by `get` or `list`, is removed unless it was replaced. This
        also removes a schedule with a subject to which this client cannot publish, such as one that
        ends in `>`. Messages that the server has already published remain in the stream. Raises
        `JetStreamError` if the stream denies deletions, and otherwise as `get` does, for example
        `MessageNotFound`.
        """
        if isinstance(schedule, StoredSchedule):
            found = stored_schedule(await self._stream.get_message(schedule.seq))
            check_unchanged(schedule, found)
        else:
            found = await self.get(schedule)
        await self._stream.delete_message(found.seq)
        return found

    async def finish(
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

        Args:
            schedule: The schedule to cancel, as returned by `get` or `list`.
            subject: Subject of the message, which must differ from the schedule's subject.
            data: Payload of the message.
            headers: Headers of the message.
            msg_id: Message id of the message.
            timeout: Seconds; the default is that of the API.

        Raises:
            WrongLastSequence: The schedule was replaced, was cancelled or has ended meanwhile.
                Nothing is stored.
            BadArgument: An argument is invalid, or the schedule has a subject with a wildcard, for
                which the server would remove all matching messages. `cancel` removes it.
            TwinstreamError: Any error of `JetStream.publish`.
        """
        if subject == schedule.subject:
            raise BadArgument(f"{subject} is the schedule's own subject: store under another one")
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=_joined(finish_headers(schedule), headers),
            msg_id=msg_id,
            expected_stream=self.stream,
            # Without this condition, the server may purge any message on the schedule's subject.
            expected_last_subject_seq=schedule.seq,
            expected_last_subject_seq_subject=schedule.subject,
        )
        policy = RetryPolicy(waits_for_leader=True)
        return await PublishedMessage(self._api, request, policy, timeout).acknowledged()


def _joined(own: dict[str, str], headers: HeaderValues | None) -> HeaderValues:
    """Return the user's headers and the `own` headers of the schedule in one mapping.

    Raises `BadArgument` if the user sets a header of schedules.
    """
    if not headers:
        return own
    both: dict[str, str | Iterable[str]] = {}
    for name in headers:
        if name in own or name.startswith(SCHEDULE):
            raise BadArgument(f"header {name} is set by the schedule itself: leave it out")
        both[name] = headers.get_all(name) if isinstance(headers, Headers) else headers[name]
    return both | own
