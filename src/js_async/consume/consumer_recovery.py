"""What to do when a consumer is gone while it is iterated over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from attrs import evolve

from js_async.api import consumer_admin as _control
from js_async.api.api import Api
from js_async.api.create_update import create_consumer
from js_async.consume.pull_subscription import PullChannels
from twinstream.errors import BadArgument, ConsumerDeleted, JetStreamError

if TYPE_CHECKING:
    from twinstream.models import ConsumerConfig, ConsumerInfo

__all__ = ["DELETION", "Missing", "OnDeleted"]

DELETION: Final = 0.25
"""Seconds from hearing that a consumer is gone until it is made anew.

A server (2.15.1) first tells waiting pulls and then removes the consumer's folder, within 20 ms
when it is busy. Of 600 consumers made in between, 113 had no folder: they worked, and were gone
when the server was restarted. 13 went on with what the old one had delivered.
"""

OnDeleted = Literal["raise", "wait", "recreate"]
"""When the consumer or its stream is gone: raise, wait until it is there again, or make it anew.

It is made anew 0.25 s later, when the server has removed all of the old one.
"""


class Missing:
    """One consumer's identity, and the policy for its absence."""

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
        """Ask the server; return the error to raise when there is no such consumer.

        Raises what the question meets otherwise: nobody can tell then.
        """
        found = await _control.gone(self.api, self.stream, self.name)
        return None if found is None else ConsumerDeleted(f"{found}{self._why()}")

    def _why(self) -> str:
        config = self._info.config if self._info is not None else None
        if config is None or config.durable_name or config.inactive_threshold is None:
            return ""
        seconds = config.inactive_threshold.total_seconds()
        return f"; it is not durable and vanishes after {seconds:g} s without pulls"

    async def recreate(self) -> bool:
        """Make the consumer anew, as it was; tell whether that worked.

        It starts where its policy says, since what it had delivered is forgotten with it.
        """
        config = self._info.config if self._info is not None else None
        if config is None:
            return False
        try:
            await create_consumer(self.api, self.stream, self._named(config), "create")
        except JetStreamError:
            # The stream is gone too, or others were quicker: the pulls go on trying.
            return False
        return True

    def _named(self, config: ConsumerConfig) -> ConsumerConfig:
        return config if config.durable_name is not None else evolve(config, name=self.name)
