# Generated from src/js_async/stream.py by codegen/twin.py. Edit that file instead.
"""One stream: its state, its messages and its consumers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from js_core.deadline import Seconds
from js_core.errors import BadAnswer, BadArgument
from js_core.headers import Headers
from js_core.ordered import ordered_config
from js_core.pull_request import buffer_limits
from js_core.reports import PullReport
from js_core.stream_message import StreamMessage
from js_models import (
    ConsumerConfig,
    ConsumerInfo,
    DeliverPolicy,
    StoredMessage,
    StreamConfig,
    StreamInfo,
    StreamInfoResponse,
    StreamMessageDeleteResponse,
    StreamMessageGetResponse,
    StreamPurgeResponse,
    StreamUpdateResponse,
)
from js_sync import _control, _paging
from js_sync._api import Api
from js_sync._io import Opening, opening
from js_sync._io import Stream as Generated
from js_sync.consumer import Consumer
from js_sync.ordered import OrderedMessages
from js_sync.push import PushMessages

__all__ = ["Stream"]


class Stream:
    """A stream on the server. `cached_info` is what the server said last."""

    def __init__(self, api: Api, info: StreamInfo) -> None:
        self._api: Final = api
        self._name: Final = info.config.name or ""
        self.cached_info = info

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

    def info(self) -> StreamInfo:
        """Ask for configuration and state. Raises `StreamNotFound`."""
        subject = self._api.subjects.stream("INFO", self._name)
        self.cached_info = self._api.call(subject, None, StreamInfoResponse)
        return self.cached_info

    def update(self, config: StreamConfig) -> StreamInfo:
        """Replace the whole configuration."""
        if config.name not in {None, self._name}:
            raise BadArgument(f"the configuration is for {config.name}, the stream is {self._name}")
        subject = self._api.subjects.stream("UPDATE", self._name)
        self.cached_info = self._api.call(subject, config, StreamUpdateResponse)
        return self.cached_info

    def purge(
        self, *, subject: str | None = None, before_seq: int | None = None, keep: int | None = None
    ) -> int:
        """Remove messages and return how many.

        All of them, or those of a `subject` filter, below `before_seq`, or but the last `keep`.
        """
        if before_seq is not None and keep is not None:
            raise BadArgument("give before_seq or keep, not both")
        body: dict[str, Any] = {"filter": subject, "seq": before_seq, "keep": keep}
        body = {name: value for name, value in body.items() if value is not None}
        target = self._api.subjects.stream("PURGE", self._name)
        answer = self._api.call(target, body or None, StreamPurgeResponse)
        return answer.purged or 0

    def get_message(self, seq: int) -> StreamMessage:
        """Return one message by sequence, read from the leader. Raises `MessageNotFound`."""
        return self._get({"seq": seq})

    def get_last_message(self, subject: str) -> StreamMessage:
        """Return the last message of a subject, read from the leader. Raises `MessageNotFound`."""
        return self._get({"last_by_subj": subject})

    def _get(self, body: dict[str, Any]) -> StreamMessage:
        target = self._api.subjects.message("GET", self._name)
        answer = self._api.call(target, body, StreamMessageGetResponse)
        if answer.message is None:
            raise BadAnswer(f"{target}: the answer holds no message")
        return _message(self._name, answer.message)

    def delete_message(self, seq: int, *, erase: bool = False) -> None:
        """Remove one message; `erase` also overwrites its bytes on disk, which is slow.

        Raises `MessageNotFound`.
        """
        target = self._api.subjects.message("DELETE", self._name)
        body: dict[str, Any] = {"seq": seq} if erase else {"seq": seq, "no_erase": True}
        self._api.call(target, body, StreamMessageDeleteResponse)

    # ---- consumers

    def create_consumer(self, config: ConsumerConfig) -> Consumer:
        """Create a consumer; an equal one that exists is fine.

        Without a name it gets one; without `ack_policy` it wants explicit acknowledgement (the
        server's own default is none). A name that is no `durable_name` makes a consumer that
        vanishes after 5 idle seconds. Raises `ConsumerExists` for another configuration.
        """
        return Consumer.create(self._api, self._name, config, "create")

    def create_or_update_consumer(self, config: ConsumerConfig) -> Consumer:
        """Create a consumer or change the one of that name."""
        return Consumer.create(self._api, self._name, config, "")

    def ordered(
        self,
        *,
        subjects: str | Sequence[str] | None = None,
        deliver_policy: DeliverPolicy | str | None = None,
        start_seq: int | None = None,
        start_time: datetime | None = None,
        headers_only: bool = False,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = 5.0,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> OrderedMessages:
        """Return an endless read in order, each message once, through any trouble (ADR-17).

        All of the stream, or only `subjects` (filters); from the beginning, or as
        `deliver_policy`, `start_seq` or `start_time` say. Its `position` is where to resume.
        Buffering is as in `Consumer.messages`.
        """
        config = ordered_config(subjects, deliver_policy, start_seq, start_time, headers_only)
        limits = buffer_limits(
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            threshold_messages=None,
            threshold_bytes=None,
        )
        return OrderedMessages(self._api, self._name, config, limits, on_report)

    def subscribe(
        self,
        config: ConsumerConfig,
        *,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> Opening[PushMessages]:
        """Create a push consumer and iterate over what it sends.

        Without a `deliver_subject` it gets one of its own. With a `deliver_group` those who give
        the same subject and group share the messages. `flow_control` needs `idle_heartbeat`.
        """
        return opening(self._push(config, None, on_report))

    def bind_push(
        self, name: str, *, on_report: Callable[[PullReport], None] | None = None
    ) -> Opening[PushMessages]:
        """Iterate over what an existing push consumer sends. Raises `ConsumerNotFound`."""
        return opening(self._push(None, name, on_report))

    def _push(
        self,
        config: ConsumerConfig | None,
        name: str | None,
        on_report: Callable[[PullReport], None] | None,
    ) -> PushMessages:
        info = None
        if name is not None:
            info = _control.info(self._api, self._name, name)
            config = info.config
        if config is None:
            raise BadAnswer(f"{self._name}/{name}: the server sent no configuration")
        if name is not None and config.deliver_subject is None:
            raise BadArgument(f"{self._name}/{name} is a pull consumer: use get_consumer")
        messages = PushMessages(self._api, self._name, config, on_report)
        messages.open(info)
        return messages

    def update_consumer(self, config: ConsumerConfig) -> Consumer:
        """Change a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.create(self._api, self._name, config, "update")

    def get_consumer(self, name: str) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.get(self._api, self._name, name)

    def delete_consumer(self, name: str) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        Consumer(self._api, self._name, name, None).delete()

    def consumers(self) -> Generated[ConsumerInfo]:
        """Iterate over the infos of all consumers; in pages."""
        return _paging.consumers(self._api, self._name)

    def consumer_names(self) -> Generated[str]:
        """Iterate over the names of all consumers; in pages."""
        return _paging.consumer_names(self._api, self._name)


def _message(stream: str, stored: StoredMessage) -> StreamMessage:
    return StreamMessage(
        stream=stream,
        subject=stored.subject,
        seq=stored.seq,
        time=stored.time,
        data=stored.data or b"",
        headers=Headers.parse(stored.hdrs) if stored.hdrs else Headers(),
    )
