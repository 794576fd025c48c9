"""How to react when a consumer disappears while its messages are iterated over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import create_consumer
from js_async.consume.pull_subscription import PullChannels
from twinstream.errors import BadArgument, ConsumerDeleted, JetStreamError
from twinstream.models.records import evolve

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["DELETION", "Missing", "OnDeleted"]

DELETION: Final = 0.25
"""Seconds from the report of a consumer's deletion until it is re-created.

A server (2.15.1) first notifies waiting pulls and then removes the consumer's folder, within 20 ms
when it is busy. Of 600 consumers created in between, 113 had no folder: they worked, but
disappeared when the server was restarted. 13 continued with the delivery state of the old one.
"""

OnDeleted = Literal["raise", "wait", "recreate"]
"""When the consumer or its stream is deleted: raise, wait until it exists again, or re-create it.

A consumer is re-created 0.25 s later, when the server has removed the old one completely.
"""


class Missing:
    """One consumer's identity, and the policy for its deletion."""

    def __init__(
        self,
        api: Api,
        channels: PullChannels,
        stream: str,
        name: str,
        info: ConsumerInfo | None,
        policy: OnDeleted,
    ) -> None:
        if policy not in {"raise", "wait", "recreate"}:
            raise BadArgument(f"on_deleted must be 'raise', 'wait' or 'recreate', got {policy!r}")
        if policy == "recreate" and (info is None or info.config is None):
            raise BadArgument("on_deleted='recreate' needs the configuration: call info() first")
        self.api: Final = api
        self.channels: Final = channels
        self.stream: Final = stream
        self.name: Final = name
        self.policy: Final = policy
        self._info: Final = info

    async def is_gone(self) -> ConsumerDeleted | None:
        """Ask the server; return the error to raise if the consumer does not exist.

        Raises other errors of the request; the state is unknown then.
        """
        found = await consumer_admin.gone(self.api, self.stream, self.name)
        return None if found is None else ConsumerDeleted(f"{found}{self._why()}")

    def _why(self) -> str:
        config = self._info.config if self._info is not None else None
        if config is None or config.durable_name or config.inactive_threshold is None:
            return ""
        seconds = config.inactive_threshold.total_seconds()
        return f"; it is not durable and vanishes after {seconds:g} s without pulls"

    async def recreate(self) -> bool:
        """Re-create the consumer with its configuration; return whether that worked.

        The new consumer starts where its deliver policy says, as the delivery state is lost.
        """
        config = self._info.config if self._info is not None else None
        if config is None:
            return False
        try:
            await create_consumer(self.api, self.stream, self._named(config), "create")
        except JetStreamError:
            # The stream is missing too, or another client was faster: keep pulling.
            return False
        return True

    def _named(self, config: ConsumerConfig) -> ConsumerConfig:
        return config if config.durable_name is not None else evolve(config, name=self.name)
