"""`ConsumerCase`, the input of the rules for consumers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from twinstream.models.files.settings import Settings
from twinstream.models.rules.consumer_defaults import as_prepared, with_defaults
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.version import Version


class ConsumerCase:
    """The settings of a consumer and of its stream.

    `given` contains the settings in the request. `settings` contains these and the defaults of
    the server.
    """

    def __init__(
        self,
        settings: Settings,
        stream: Settings | None,
        version: Version,
        *,
        pedantic: bool = False,
    ) -> None:
        """Create the input from `settings`; without `stream`, rules that need it find nothing."""
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
        """The `consumer_limits` of the stream; empty if it has none or no stream is given."""
        limits = None if self.stream is None else self.stream["consumer_limits"]
        return Settings("ConsumerLimits") if limits is None else limits

    @cached_property
    def is_push(self) -> bool:
        """Whether the consumer has a `deliver_subject`, to which the server pushes messages."""
        return bool(self.given["deliver_subject"])

    @cached_property
    def retention(self) -> str:
        """The retention of the stream; empty if no stream is given."""
        return "" if self.stream is None else str(self.stream["retention"] or "limits")

    @cached_property
    def filters(self) -> list[str]:
        """The filters of the consumer, from `filter_subject` or `filter_subjects`."""
        one = self.given["filter_subject"]
        return [one] if one else list(self.given["filter_subjects"])
