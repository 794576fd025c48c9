"""What the consumer rules look at."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from twinstream.models._settings import Settings
from twinstream.models.rules.consumer_defaults import as_prepared, with_defaults
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.version import Version


class ConsumerCase:
    """A consumer's settings, as read and as the server fills them in, and its stream's."""

    def __init__(
        self,
        settings: Settings,
        stream: Settings | None,
        version: Version,
        *,
        pedantic: bool = False,
    ) -> None:
        """Judge ``settings``; without ``stream``, rules that look at it find nothing."""
        self.version = version
        self.pedantic = pedantic
        self.stream = None if stream is None else StreamCase(stream, version)
        if self.retention in ("interest", "workqueue"):
            settings = as_prepared(settings)
        self.given = settings
        self.settings = with_defaults(settings, self.stream_limits, version, filled=not pedantic)

    def __getitem__(self, member: str) -> Any:
        return self.settings[member]

    @cached_property
    def stream_limits(self) -> Settings:
        """The stream's bounds for consumers, empty where it sets none."""
        limits = None if self.stream is None else self.stream["consumer_limits"]
        return Settings("ConsumerLimits") if limits is None else limits

    @cached_property
    def is_push(self) -> bool:
        """Whether messages are pushed to a subject."""
        return bool(self.given["deliver_subject"])

    @cached_property
    def retention(self) -> str:
        """The stream's retention; empty where no stream is given."""
        return "" if self.stream is None else str(self.stream["retention"] or "limits")

    @cached_property
    def filters(self) -> list[str]:
        """The filters, one or several."""
        one = self.given["filter_subject"]
        return [one] if one else list(self.given["filter_subjects"])
