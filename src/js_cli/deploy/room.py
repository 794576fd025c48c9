"""How many streams and consumers there may be, how large, and which steps would be too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve, frozen

from js_cli.deploy.step import Step
from js_cli.deploy.typed import consumer_config, stream_config
from js_models import (
    AccountInfo,
    AccountLimits,
    AccountTier,
    FileConfig,
    StorageType,
    StreamConfig,
)

if TYPE_CHECKING:
    from js_sync import JetStream


@define
class Room:
    """How many streams or consumers there may be, and how many there are."""

    most: int
    """No limit below 1."""

    there: int
    whose: str

    def judged(self, step: Step) -> Step:
        """Count a step; refuse it if it creates one too many."""
        if step.verb != "create":
            return step
        if 0 < self.most <= self.there:
            reason = f"{self.whose} may have no more {step.config.kind}s than {self.most:,}"
            return evolve(step, verb="refused", refusal=reason)
        self.there += 1
        return step


@frozen
class Account:
    """What the account uses and may use; empty if the user has no permission to ask."""

    info: AccountInfo

    def for_streams(self, copies: int) -> Room:
        """Return how many streams with so many copies there may be."""
        use = self._use(copies)
        return Room(_limits(use).max_streams or 0, use.streams or 0, "the account")

    def for_consumers(self, stream: StreamConfig, there: int) -> Room:
        """Return how many consumers a stream may have; the account's limit is for each stream."""
        own = stream.max_consumers or 0
        others = _limits(self._use(stream.num_replicas or 1)).max_consumers or 0
        if others > 0 and not 0 < own <= others:
            return Room(others, there, f"by the account, stream {stream.name}")
        return Room(own, there, f"stream {stream.name}")

    def sized(self, step: Step) -> Step:
        """Refuse a step whose stream or consumer alone is more than the account allows."""
        if not step.is_due:
            return step
        reason = self._too_large(step.config)
        return evolve(step, verb="refused", refusal=reason) if reason else step

    def _too_large(self, config: FileConfig) -> str:
        if config.kind == "stream":
            return self._too_large_stream(stream_config(config))
        most = _limits(self.info).max_ack_pending or 0
        if 0 < most < (consumer_config(config).max_ack_pending or 0):
            return f"the account allows no max_ack_pending above {most:,}"
        return ""

    def _too_large_stream(self, stream: StreamConfig) -> str:
        limits = _limits(self._use(stream.num_replicas or 1))
        in_memory = stream.storage == StorageType.MEMORY
        most = (
            limits.memory_max_stream_bytes if in_memory else limits.storage_max_stream_bytes
        ) or 0
        size = stream.max_bytes or 0
        if limits.max_bytes_required and size <= 0:
            return "the account has streams with max_bytes only"
        if 0 < most < size:
            return f"the account allows no max_bytes above {most:,}"
        return ""

    def _use(self, copies: int) -> AccountInfo | AccountTier:
        return (self.info.tiers or {}).get(f"R{copies}", self.info)


def _limits(use: AccountInfo | AccountTier) -> AccountLimits:
    return use.limits or AccountLimits()


def account_of(jet: JetStream) -> Account:
    """Ask for the account; without the permission to ask, the plan goes on without limits."""
    from js_sync import TwinstreamError

    try:
        return Account(jet.account_info())
    except TwinstreamError:
        return Account(AccountInfo())
