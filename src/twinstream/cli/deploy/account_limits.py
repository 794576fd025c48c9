"""Limits for streams and consumers, and the refusal of steps that would exceed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import define, evolve, field, frozen

from twinstream.cli.deploy.step import Step
from twinstream.cli.deploy.typed_config import consumer_config, stream_config
from twinstream.cli.screen import counted
from twinstream.models import (
    AccountInfo,
    AccountLimits,
    AccountTier,
    FileConfig,
    StorageType,
    StreamConfig,
)

if TYPE_CHECKING:
    from js_sync import JetStream

# The rule whose problem means that only the server knows whether enough storage is left.
_BYTES_LEFT: Final = "S-ACC-STORAGE"


@define
class Room:
    """The limit for the number of streams or consumers, and their current number."""

    most: int
    """The limit; a value below 1 means no limit."""

    there: int
    """The current number."""

    whose: str
    """What the limit belongs to, for the message: the account, or a stream."""

    def judged(self, step: Step) -> Step:
        """Count what a step creates. Return the step, or a refused copy if the limit is reached.

        Steps that create nothing are returned unchanged.
        """
        if step.verb != "create":
            return step
        if 0 < self.most <= self.there:
            reason = f"{self.whose} may have no more {step.config.kind}s than {self.most:,}"
            return evolve(step, verb="refused", refusal=reason)
        self.there += 1
        return step


@define
class Reserve:
    """The limit for the bytes that streams reserve with `max_bytes`, and the reserved bytes."""

    most: int
    """The limit; a value below 1 means no limit."""

    taken: int
    storage: str

    def judged(self, step: Step, given: int) -> Step:
        """Count the bytes that a step reserves. Return the step; a refused copy beyond the limit.

        `given` is the number of bytes that the existing stream has reserved. The bytes of further
        replicas are not counted, because the server's account info does not count them. So in an
        account without tiers, the server may refuse a step that this check accepts. This check
        never refuses a step that the server accepts.
        """
        wanted = _reserved_bytes(stream_config(step.config))
        new = step.verb != "update"
        # The server counts a new stream without max_bytes as one byte.
        least = max(wanted, 1) if new else wanted
        available = self.most - self.taken + given
        if self.most > 0 and available < least and (new or wanted > given):
            reason = (
                f"the account may reserve at most {self.most:,} bytes of {self.storage}"
                f" storage, of which {max(available, 0):,} are left for this stream"
            )
            return evolve(step, verb="refused", refusal=reason)
        self.taken += wanted - given
        return step


def _reserved_bytes(stream: StreamConfig | None) -> int:
    return max(0, (stream and stream.max_bytes) or 0)


def needs_room(step: Step, old: StreamConfig | None) -> bool:
    """Whether a step reserves more storage than the existing stream, if there is one."""
    return step.is_due and _reserved_bytes(stream_config(step.config)) > _reserved_bytes(old)


def frees_room(step: Step, old: StreamConfig | None) -> bool:
    """Whether a step frees storage that the existing stream has reserved."""
    if old is None or not step.is_due:
        return False
    new = stream_config(step.config)
    moves = (new.storage or StorageType.FILE) != (old.storage or StorageType.FILE)
    return _reserved_bytes(old) > (0 if moves else _reserved_bytes(new))


@define
class Reserves:
    """A `Reserve` for each storage type of an account, and for each tier if there are tiers."""

    account: Account
    _known: dict[tuple[str, str], Reserve] = field(factory=dict[tuple[str, str], Reserve])

    def judged(self, step: Step, old: StreamConfig | None) -> Step:
        """Count the bytes that a step reserves. Return the step; a refused copy beyond the limit.

        `old` is the config of the existing stream. Steps that change nothing are returned
        unchanged.
        """
        if not step.is_due:
            return step
        new = stream_config(step.config)
        reserve = self._of(new)
        before = reserve if old is None else self._of(old)
        if before is reserve:
            return self._without_note(reserve.judged(step, _reserved_bytes(old)), new)
        if step.verb == "update":  # the tier changes, and only the server checks the limit
            reserve.taken += _reserved_bytes(new)
            judged = step
        else:  # the storage type or tier changes, so the old reservation frees nothing for the step
            judged = self._without_note(reserve.judged(step, 0), new)
        if judged.is_due:
            before.taken -= _reserved_bytes(old)
        return judged

    def _of(self, stream: StreamConfig) -> Reserve:
        kind = str(stream.storage or StorageType.FILE)
        key = (self.account.tier(stream), kind)
        if key not in self._known:
            self._known[key] = self.account.reserve(stream, kind)
        return self._known[key]

    def _without_note(self, step: Step, stream: StreamConfig) -> Step:
        """Return the step without the problem `_BYTES_LEFT`, unless only the server decides it."""
        # In an account without tiers, the account info omits the bytes of further replicas.
        known = self.account.tier(stream) or (stream.num_replicas or 1) == 1
        if self._of(stream).most <= 0 or not known:
            return step
        problems = [problem for problem in step.plan.problems if problem.rule != _BYTES_LEFT]
        return evolve(step, plan=evolve(step.plan, problems=problems))


@frozen
class Account:
    """The usage and the limits of the account; empty if the request for them failed."""

    info: AccountInfo
    is_known: bool = True
    """False if the request failed."""

    def for_streams(self, copies: int) -> Room:
        """Return the limit and the number of streams in the tier for this number of replicas.

        In an account without such a tier, both are those of the whole account.
        """
        use = self._use(copies)
        return Room(_limits(use).max_streams or 0, use.streams or 0, "the account")

    def tier(self, stream: StreamConfig) -> str:
        """Return the name of a stream's tier, such as `R3`; empty if there is no such tier."""
        name = f"R{stream.num_replicas or 1}"
        return name if name in (self.info.tiers or {}) else ""

    def reserve(self, stream: StreamConfig, storage: str) -> Reserve:
        """Return the `Reserve` for streams with this storage type and the tier of `stream`."""
        use = self._use(stream.num_replicas or 1)
        limits = _limits(use)
        if storage == StorageType.MEMORY:
            return Reserve(limits.max_memory or 0, use.reserved_memory or 0, storage)
        return Reserve(limits.max_storage or 0, use.reserved_storage or 0, storage)

    def for_consumers(self, stream: StreamConfig, there: int) -> Room:
        """Return the limit for the consumers of a stream, with their current number `there`.

        The account's limit for consumers applies to each stream. The lower one of the limits of
        stream and account is used.
        """
        own = stream.max_consumers or 0
        others = _limits(self._use(stream.num_replicas or 1)).max_consumers or 0
        if others > 0 and not 0 < own <= others:
            return Room(others, there, f"by the account, stream {stream.name}")
        return Room(own, there, f"stream {stream.name}")

    def sized(self, step: Step) -> Step:
        """Return the step; a refused copy if the account allows no such stream or consumer."""
        if not step.is_due:
            return step
        reason = self._no_tier(step) or self._too_large(step.config)
        return evolve(step, verb="refused", refusal=reason) if reason else step

    def _no_tier(self, step: Step) -> str:
        if step.config.kind != "stream" or step.verb == "update":  # the server checks an update
            return ""
        stream = stream_config(step.config)
        if not self.info.tiers or self.tier(stream):
            return ""
        return f"the account has no streams with {counted(stream.num_replicas or 1, 'replica')}"

    def _too_large(self, config: FileConfig) -> str:
        if config.kind == "stream":
            return self._too_large_stream(stream_config(config))
        most = _limits(self.info).max_ack_pending or 0
        if 0 < most < (consumer_config(config).max_ack_pending or 0):
            return f"the account allows no max_ack_pending above {most:,}"
        return ""

    def _too_large_stream(self, stream: StreamConfig) -> str:
        """Return why the account's limits do not allow the settings of a stream, or ""."""
        limits = _limits(self._use(stream.num_replicas or 1))
        in_memory = stream.storage == StorageType.MEMORY
        most = (
            limits.memory_max_stream_bytes if in_memory else limits.storage_max_stream_bytes
        ) or 0
        size = stream.max_bytes or 0
        if limits.max_bytes_required and size <= 0:
            return "the account requires max_bytes for streams"
        if 0 < most < size:
            return f"the account allows no max_bytes above {most:,}"
        consumers = limits.max_consumers or 0
        if 0 < consumers < (stream.max_consumers or 0):
            return f"the account allows no max_consumers above {consumers:,}"
        return ""

    def _use(self, copies: int) -> AccountInfo | AccountTier:
        return (self.info.tiers or {}).get(f"R{copies}", self.info)


def _limits(use: AccountInfo | AccountTier) -> AccountLimits:
    return use.limits or AccountLimits()


def account_of(jet: JetStream) -> Account:
    """Request and return the usage and the limits of the account.

    If the request fails, for example without permission, the result has no limits.
    """
    from js_sync import TwinstreamError

    try:
        return Account(jet.account_info())
    except TwinstreamError:
        return Account(AccountInfo(), is_known=False)
