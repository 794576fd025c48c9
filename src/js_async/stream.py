"""One stream: its state, its messages and its consumers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import twinstream.models
from js_async.api import consumer_admin as _control
from js_async.api import create_update as _create
from js_async.api.api import Api
from js_async.api.leader_info import confirmed_info
from js_async.runtime.concurrency import Stream as Generated
from js_async.runtime.opening import Opening, opening
from js_async._stream_consumers import StreamConsumers
from js_async.api.replicas import Replicas
from twinstream.core.deadline import Seconds, seconds
from twinstream.errors import BadAnswer, BadArgument
from twinstream.core.base.check_arguments import check_whole
from twinstream.core.base.nats_py_names import hint_keywords
from twinstream.core.consume.pull_request import buffer_limits
from twinstream.core.read.range_read import PAGE_BYTES, PAGE_MESSAGES
from twinstream.core.wire.subjects import check_filter

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from js_async.consume.ordered import OrderedMessages
    from js_async.consume.push import PushMessages
    from js_async.read.stream_read import StreamRead
    from twinstream.core.backup.backup import Backup, TransferProgress
    from twinstream.core.read.read_request import Via
    from twinstream.core.consume.reports import PullReport
    from twinstream.core.read.snapshot import Snapshot
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.models import (
        ConsumerConfig,
        DeliverPolicy,
        DeliverPolicyWord,
        ReplayPolicy,
        StreamConfig,
        StreamInfo,
    )

__all__ = ["Stream"]

# More messages than any stream holds.
_ALL: Final = 2**63 - 1


class Stream(StreamConsumers):
    """A stream on the server."""

    def __init__(self, api: Api, name: str, info: StreamInfo | None) -> None:
        super().__init__(api, name)
        self._info = info
        self.replicas: Final = Replicas(api, name)
        """The servers that hold its copies: who leads, and moving them."""

    @property
    def cached_info(self) -> StreamInfo:
        """What the server said last. Raises `BadArgument` when it was never asked."""
        if self._info is None:
            raise BadArgument(f"stream {self._name} was bound without asking: call info() first")
        return self._info

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._name

    @property
    def config(self) -> StreamConfig:
        """The configuration as the server said last."""
        return self.cached_info.config

    def __repr__(self) -> str:
        return f"<Stream {self._name}>"

    async def info(
        self,
        *,
        deleted_details: bool = False,
        confirmed: bool = False,
        timeout: Seconds | None = None,
    ) -> StreamInfo:
        """Ask for configuration and state. Raises `StreamNotFound`.

        `deleted_details` lists the sequences that are missing within the stream, which is heavy if
        there are many. A replica that knows of no leader answers, too, with what it has (server
        2.11 to 2.15), and that may lack acknowledged messages. With `confirmed` the stream is asked
        until the answer is surely the leader's; else `RequestTimeout` is raised.
        """
        body = {"deleted_details": True} if deleted_details else None
        deadline = self._api.deadline(timeout)
        if confirmed:
            self._info = await confirmed_info(self._api, self._name, deadline, body)
        else:
            self._info = await self._api.stream_info(self._name, deadline, body)
        return self._info

    def subjects(
        self, filter_subject: str = ">", *, timeout: Seconds | None = None
    ) -> Generated[tuple[str, int]]:
        """Iterate over the subjects that are stored, each with its number of messages.

        The server answers in pages of 100,000; `timeout` is for each. A change between two pages
        may move a subject from one to the other, so that it comes twice or not at all.
        """
        from js_async.api import pager as _paging

        check_filter(filter_subject)
        return _paging.subjects(self._api, self._name, filter_subject, timeout)

    async def update(
        self, config: StreamConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> StreamInfo:
        """Replace the whole configuration; `pedantic` as in `JetStream.create_stream`.

        The configuration needs no name.
        """
        _create.check_config(config, twinstream.models.StreamConfig)
        # The server refuses an empty name as it refuses none (10052).
        if not config.name:
            config = twinstream.models.evolve(config, name=self._name)
        elif config.name != self._name:
            raise BadArgument(f"the configuration is for {config.name}, the stream is {self._name}")
        deadline = self._api.deadline(timeout)
        self._info = await _create.update_stream(self._api, self._name, config, pedantic, deadline)
        return self._info

    async def change(
        self, edit: Callable[[StreamConfig], StreamConfig], *, timeout: Seconds | None = None
    ) -> StreamInfo:
        """Read the configuration, let `edit` return a changed copy, and store that.

        Settings that this release does not know stay as they are. Nothing is sent if nothing
        changes. The server cannot check for conflicts: of two changes at once, the later one
        overwrites the earlier. `timeout` is for each of the two requests.
        """
        config = (await self.info(timeout=timeout)).config
        changed = edit(config)
        if not isinstance(changed, twinstream.models.StreamConfig):
            raise BadArgument(
                "edit must return the changed configuration, as twinstream.models.evolve(config, ...) does;"
                f" it returned {changed!r}"
            )
        if changed == config:
            return self.cached_info
        return await self.update(changed, timeout=timeout)

    async def seal(self, *, timeout: Seconds | None = None) -> StreamInfo:
        """Have nothing added or removed any more, not even by limits. There is no way back."""
        return await self.change(
            lambda config: twinstream.models.evolve(config, sealed=True), timeout=timeout
        )

    @hint_keywords
    async def purge(
        self,
        *,
        subject: str | None = None,
        before_seq: int | None = None,
        keep: int | None = None,
        timeout: Seconds | None = None,
    ) -> int:
        """Remove messages and return how many.

        These are all messages, or those of a `subject` filter; with `before_seq` only those below
        that sequence, with `keep` all but the last so many. Raises `BadArgument` if both are given,
        and for a filter or sequence that is none: the server would take it for a purge of all.
        """
        if before_seq is not None and keep is not None:
            raise BadArgument("give before_seq or keep, not both")
        if before_seq is not None:
            check_whole(before_seq, "before_seq")
        if keep is not None:
            check_whole(keep, "keep", least=0)
        if subject is not None:
            check_filter(subject)
        if before_seq == 1:
            # Nothing is below it, and servers before 2.14 would take it for a purge of all.
            before_seq, keep = None, _ALL
        body: dict[str, Any] = {"filter": subject, "seq": before_seq, "keep": keep}
        body = {name: value for name, value in body.items() if value is not None}
        target = self._api.subjects.stream("PURGE", self._name)
        deadline = self._api.deadline(timeout)
        answer = await self._api.call(target, body or None, twinstream.models.StreamPurgeResponse, deadline)
        return answer.purged or 0

    async def delete(self, *, timeout: Seconds | None = None) -> None:
        """Delete the stream with its messages and consumers. Raises `StreamNotFound`."""
        target = self._api.subjects.stream("DELETE", self._name)
        deadline = self._api.deadline(timeout)
        await self._api.call(target, None, twinstream.models.StreamDeleteResponse, deadline)

    # ---- reading without a consumer

    async def get_message(
        self,
        seq: int,
        *,
        direct: bool = False,
        headers: bool = True,
        timeout: Seconds | None = None,
    ) -> StreamMessage:
        """Return one message by sequence. Raises `MessageNotFound`.

        The leader answers, which knows every acknowledged write. With `direct` any replica may
        answer, or a mirror, which spreads the load; but one may be behind, and a mirror may lack
        messages or have them under other subjects. If the stream has no `allow_direct`, the leader
        is asked all the same. With `headers=False` the message comes without its headers.
        """
        from js_async.read.get_message import get_message
        from twinstream.core.read.direct_get import seq_request

        request = seq_request(seq)
        return await get_message(
            self._api, self._name, request, direct=direct, headers=headers, timeout=timeout
        )

    async def get_last_message(
        self,
        subject: str,
        *,
        direct: bool = False,
        headers: bool = True,
        timeout: Seconds | None = None,
    ) -> StreamMessage:
        """Return the last message of a subject. Raises `MessageNotFound`.

        `direct` and `headers` are as in `get_message`; a direct answer may be an older message.
        """
        from js_async.read.get_message import get_message
        from twinstream.core.read.direct_get import last_request

        request = last_request(subject)
        return await get_message(
            self._api, self._name, request, direct=direct, headers=headers, timeout=timeout
        )

    async def get_next_message(
        self,
        subject: str = ">",
        *,
        seq: int | None = None,
        start_time: datetime | None = None,
        direct: bool = False,
        headers: bool = True,
        timeout: Seconds | None = None,
    ) -> StreamMessage:
        """Return the first message of a subject filter at or after `seq`, or `start_time`.

        Wildcards are allowed. `start_time` needs server 2.11; without it and `seq` it is the first
        message of all. `direct` and `headers` are as in `get_message`. Raises `MessageNotFound`.
        """
        from js_async.read.get_message import get_message
        from twinstream.core.read.direct_get import next_request

        request = next_request(subject, seq, start_time)
        return await get_message(
            self._api, self._name, request, direct=direct, headers=headers, timeout=timeout
        )

    def read(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        subjects: str | Sequence[str] | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        via: Via | None = None,
        page_messages: int = PAGE_MESSAGES,
        page_bytes: int = PAGE_BYTES,
        timeout: Seconds = 120.0,
    ) -> StreamRead:
        """Return an iterator over a range of the stream, complete even where replicas lag.

        The range goes from the sequence `start` (or what was stored since `start_time`) up to, not
        including, `end` (or `end_time`); by default it is all that the stream holds when the read
        begins. `subjects` are filters. Times need server 2.11. Nothing is sent before the first
        message is asked for, and nothing is consumed.

        `via` is how to read: by `direct` gets (`allow_direct`, server 2.11), by an ephemeral
        `consumer`, or one by one from the `leader`, which always works; by default it is the
        fastest way that is harmless. Pages hold at most `page_messages` and about `page_bytes`; one
        is read ahead. `timeout` is how many seconds there may be no progress.
        """
        from js_async.read.stream_read import StreamRead
        from twinstream.core.read.read_request import read_request

        request = read_request(
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
            subjects=subjects,
            via=via,
            page_messages=page_messages,
            page_bytes=page_bytes,
            timeout=timeout,
        )
        return StreamRead(self._api, self._name, request)

    async def snapshot(
        self,
        subjects: str | Sequence[str] | None = None,
        *,
        at_seq: int | None = None,
        at_time: datetime | None = None,
        timeout: Seconds = 120.0,
    ) -> Snapshot:
        """Return the last message of each subject, all of them as of one sequence.

        `subjects` are filters; by default it is of all subjects. The snapshot includes every write
        that was acknowledged before the call. With `at_seq` it is the state right after that
        message, with `at_time` (server 2.11) the state before that moment, as far as the stream
        still has it. A message that is deleted or expires meanwhile may be in it or not. `timeout`
        is how many seconds there may be no progress. Raises `StreamNotFound`, another
        `JetStreamError`, `RequestTimeout`.
        """
        from js_async.read.snapshot import take_snapshot
        from twinstream.core.read.read_request import snapshot_request

        request = snapshot_request(subjects, at_seq, at_time, timeout)
        return await take_snapshot(self._api, self._name, request)

    async def delete_message(
        self, seq: int, *, erase: bool = False, timeout: Seconds | None = None
    ) -> None:
        """Remove one message; `erase` also overwrites its bytes on disk, which is slow.

        Raises `MessageNotFound`.
        """
        target = self._api.subjects.message("DELETE", self._name)
        body: dict[str, Any] = {"seq": seq} if erase else {"seq": seq, "no_erase": True}
        deadline = self._api.deadline(timeout)
        await self._api.call(target, body, twinstream.models.StreamMessageDeleteResponse, deadline)

    # ---- backup

    async def backup(
        self,
        path: str | Path,
        *,
        consumers: bool = True,
        check: bool = False,
        overwrite: bool = False,
        chunk_size: int = 128 * 1024,
        window_size: int | None = None,
        timeout: Seconds = 60.0,
        on_progress: Callable[[TransferProgress], None] | None = None,
    ) -> Backup:
        """Copy the stream as it is now into the folder `path`, whole or not at all.

        The `nats` command can restore the folder, too; checksums are added. It must be new or
        empty, unless `overwrite` replaces the backup in it. With `consumers` it includes them and
        their state. With `check` the server verifies all messages first, which may take long.
        `chunk_size` and `window_size` (server 2.12.5) are bytes; `timeout` is how many seconds may
        pass without data.

        Raises `ConnectionLost` when the link breaks meanwhile, `BadArgument`, `JetStreamError`
        (before server 2.15 for streams in memory), `OSError` from the disk.
        """
        from js_async.backup.backup import BackupWish, back_up
        from twinstream.core.base.local_path import local_path

        wish = BackupWish(
            target=local_path(path),
            consumers=consumers,
            check=check,
            overwrite=overwrite,
            chunk_size=chunk_size,
            window_size=window_size,
            timeout=seconds(timeout),
            on_progress=on_progress,
        )
        return await back_up(self._api, self._name, wish)

    # ---- reading with a consumer of its own

    def ordered(
        self,
        *,
        subjects: str | Sequence[str] | None = None,
        deliver_policy: DeliverPolicy | DeliverPolicyWord | None = None,
        start_seq: int | None = None,
        start_time: datetime | None = None,
        headers_only: bool = False,
        replay_policy: ReplayPolicy | str | None = None,
        stop_after: int | None = None,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = 5.0,
        inactive_threshold: Seconds | None = None,
        metadata: Mapping[str, str] | None = None,
        name_prefix: str | None = None,
        max_reset_attempts: int | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> OrderedMessages:
        """Return a read in order, each message once, through any trouble (ADR-17).

        It reads all of the stream, or only `subjects` (filters), and starts at the beginning, or
        where `deliver_policy`, `start_seq` or `start_time` say. It ends when it is closed, or after
        `stop_after` messages. Its `position` is where to resume. With
        `replay_policy="original"` messages come at the pace at which they were stored. Buffering is
        as in `Consumer.messages`; with `last_per_subject`, on a stream that keeps more than one
        message of each subject, the buffer is by count until the last messages are read.

        Its consumers are named `name_prefix`, an id and a number. They carry `metadata` and vanish
        after `inactive_threshold` seconds (5 minutes, or less if the stream says so) without this
        program. When one is lost, the next one is created at the first of `max_reset_attempts`
        attempts that succeeds (None: no limit); otherwise the error of the last one is raised.
        """
        from js_async.consume.ordered import OrderedMessages
        from twinstream.core.consume.ordered import ordered_config

        config = ordered_config(
            subjects,
            deliver_policy,
            start_seq,
            start_time,
            headers_only,
            replay_policy=replay_policy,
            inactive_threshold=inactive_threshold,
            metadata=metadata,
        )
        limits = buffer_limits(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=None,
            threshold_bytes=None,
            stop_after=stop_after,
        )
        return OrderedMessages(
            self._api, self._name, config, limits, on_report, name_prefix, max_reset_attempts
        )

    def subscribe(
        self,
        config: ConsumerConfig,
        *,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Opening[PushMessages]:
        """Create a push consumer and iterate over what it sends.

        Without a `deliver_subject` it gets one of its own. With a `deliver_group`, all programs
        that give the same subject and group share the messages. `flow_control` needs an
        `idle_heartbeat`; a consumer without a name and group has one of 5 s by default.
        """
        return opening(self._push(config, None, on_report))

    def bind_push(
        self, name: str, *, on_report: Callable[[PullReport], None] | None = None
    ) -> Opening[PushMessages]:
        """Iterate over what an existing push consumer sends. Raises `ConsumerNotFound`.

        Raises `BadArgument` for a consumer without a `deliver_group` while another subscription is
        bound to it: each of the two would get every message.
        """
        return opening(self._push(None, name, on_report))

    async def _push(
        self,
        config: ConsumerConfig | None,
        name: str | None,
        on_report: Callable[[PullReport], None] | None,
    ) -> PushMessages:
        from js_async.consume.push import PushMessages, with_heartbeats

        info = None
        if name is not None:
            info = await _control.free_push(self._api, self._name, name)
            config = info.config
        if config is None:
            raise BadAnswer(f"{self._name}/{name}: the server sent no configuration")
        if name is not None and config.deliver_subject is None:
            raise BadArgument(f"{self._name}/{name} is a pull consumer: use get_consumer")
        if info is None:
            config = with_heartbeats(config)
        messages = PushMessages(self._api, self._name, config, on_report)
        await messages._open(info)
        return messages
