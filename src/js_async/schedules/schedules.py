"""Schedules: messages that the server publishes later, once or repeatedly (ADR-51)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from js_async import JetStream
from js_async.extension import api_of
from js_async.runtime.concurrency import Items
from js_async.runtime.opening import looped
from twinstream.core.deadline import Deadline, Seconds
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
from twinstream.errors import BadArgument, JetStreamError, RequestTimeout
from twinstream.models import PubAck
from twinstream.records.header_names import SCHEDULE
from twinstream.records.headers import Headers, HeaderValues
from twinstream.records.publish_request import Ttl

__all__ = ["Schedules"]

_SINCE: Final = (2, 12, 0)


class Schedules:
    """The schedules of a stream with `allow_msg_schedules` (server 2.12).

    The constructor sends no request. The first call requests the info of the stream. It raises
    `StreamNotFound`, `Unsupported` if the server is older than 2.12, or `BadArgument` if the stream
    does not allow schedules.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream.
    """

    def __init__(self, jet: JetStream, stream_name: str) -> None:
        self._api: Final = api_of(jet)
        self._jet: Final = jet
        self._stream: Final = jet.bind_stream(stream_name)
        self._is_checked = False

    @property
    def stream_name(self) -> str:
        """The name of the stream."""
        return self._stream.name

    def __repr__(self) -> str:
        return f"<Schedules of {self.stream_name}>"

    async def _check(self, deadline: Deadline) -> None:
        """Check, in the first call, that the server and the stream allow schedules."""
        if self._is_checked:
            return
        what = "message scheduling"
        check_schedules(await self._api.config_of(self.stream_name, _SINCE, what, deadline))
        self._is_checked = True

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
        joined = _joined(own, headers)
        deadline = self._api.deadline(timeout)
        await self._check(deadline)
        server = self._api.transport.server_info
        check_schedule_server(own, schedule, server.version_numbers, server.version)
        try:
            return await self._jet.publish(
                subject,
                data,
                headers=joined,
                msg_id=msg_id,
                expected_stream=self.stream_name,
                ttl=lifetime,
                timeout=_remaining(deadline),
            )
        except JetStreamError as error:
            explanation = explained(error, target, source)
            if explanation is None:
                raise
            raise explanation from error

    async def get(self, subject: str, *, timeout: Seconds | None = None) -> StoredSchedule:
        """Return the schedule of a subject.

        Raises `MessageNotFound` if the subject has no message, `InvalidResponse` if its last
        message is not a schedule, and `BadArgument` for a wildcard.

        Args:
            subject: Subject of the schedule.
            timeout: Seconds; the default is that of the API.
        """
        check_subject(subject)
        deadline = self._api.deadline(timeout)
        await self._check(deadline)
        remaining = deadline.remaining()
        return stored_schedule(await self._stream.get_last_message(subject, timeout=remaining))

    @looped
    async def list(
        self, subjects: str | Iterable[str] | None = None, *, idle_timeout: Seconds = 120.0
    ) -> Items[StoredSchedule]:
        """Iterate over the schedules whose subjects match any of the filters, as of one moment.

        The result includes every schedule that was acknowledged before the call. The call reads the
        last message of each matching subject with `Stream.snapshot`, so narrow filters are faster.
        Raises `StreamNotFound`, `JetStreamError` or `RequestTimeout`.

        Args:
            subjects: One filter or several. The default matches all schedules of the
                stream, an empty list none.
            idle_timeout: Seconds without progress after which the call fails.
        """
        await self._check(self._api.deadline(idle_timeout))
        for message in (await self._stream.snapshot(subjects, idle_timeout=idle_timeout)).values():
            if is_schedule(message):
                yield stored_schedule(message)

    async def cancel(
        self, schedule: str | StoredSchedule, *, timeout: Seconds | None = None
    ) -> StoredSchedule:
        """Remove the schedule of a subject and return it.

        A `StoredSchedule`, as returned by `get` or `list`, is removed unless it was replaced. This
        also removes a schedule with a subject to which this client cannot publish, such as one that
        ends in `>`. Messages that the server has already published remain in the stream. Raises
        `JetStreamError` if the stream denies deletions, and otherwise as `get` does, for example
        `MessageNotFound`.

        Args:
            schedule: Subject of the schedule, or the schedule as returned by `get` or `list`.
            timeout: Seconds; the default is that of the API.
        """
        deadline = self._api.deadline(timeout)
        if isinstance(schedule, StoredSchedule):
            await self._check(deadline)
            message = await self._stream.get_message(schedule.seq, timeout=deadline.remaining())
            found = stored_schedule(message)
            check_unchanged(schedule, found)
        else:
            found = await self.get(schedule, timeout=deadline.remaining())
        await self._stream.delete_message(found.seq, timeout=deadline.remaining())
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
        joined = _joined(finish_headers(schedule), headers)
        deadline = self._api.deadline(timeout)
        await self._check(deadline)
        return await self._jet.publish(
            subject,
            data,
            headers=joined,
            msg_id=msg_id,
            expected_stream=self.stream_name,
            # Without this condition, the server may purge any message on the schedule's subject.
            expected_last_subject_seq=schedule.seq,
            expected_last_subject_seq_subject=schedule.subject,
            timeout=_remaining(deadline),
        )


def _remaining(deadline: Deadline) -> float:
    """Return the seconds that remain to publish. Raises `RequestTimeout` if there are none."""
    remaining = deadline.remaining()
    if not remaining:
        raise RequestTimeout("the check of the stream took the whole timeout; nothing was sent")
    return remaining


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
