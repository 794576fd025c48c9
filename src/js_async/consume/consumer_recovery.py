"""The reaction of an iterator to the deletion of its consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from attrs import evolve

from js_async.api import consumer_admin
from js_async.api.api import Api
from js_async.api.create_update import create_consumer
from js_async.consume.pull_subscription import PullChannels
from twinstream.errors import BadArgument, ConsumerDeleted, JetStreamError, NoResponders

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["ConsumerRecovery", "OnDeleted"]

OnDeleted = Literal["raise", "wait", "recreate"]
"""The reaction to the deletion of the consumer or its stream.

"raise" raises an error; "wait" waits until the consumer exists again; "recreate" re-creates the
consumer 0.3 s later, when the server has removed the old one completely.
"""


class ConsumerRecovery:
    """A consumer that may have been deleted, with methods to check that and to re-create it."""

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
        """Request the consumer's info, to find out whether the consumer still exists.

        Return None if it exists, otherwise the error for the caller to raise. If the request itself
        fails, raise its error.
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
        """Re-create the consumer with its configuration; return whether the server created it.

        Return False if the configuration is unknown or the server refuses the request. Raise
        `NoResponders` if no server answers, and other errors of a lost request. The old
        delivery state is lost: the new consumer starts according to its deliver policy.
        """
        config = self._info.config if self._info is not None else None
        if config is None:
            return False
        try:
            await create_consumer(self.api, self.stream, self._named(config), "create")
        except NoResponders:
            raise
        except JetStreamError:
            # The stream is missing, too, or another client has re-created the consumer.
            return False
        return True

    def _named(self, config: ConsumerConfig) -> ConsumerConfig:
        return config if config.durable_name is not None else evolve(config, name=self.name)
