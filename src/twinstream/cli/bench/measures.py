"""Rates and percentiles of a measurement."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from twinstream.cli.screen import print_json, results
from twinstream.cli.table import Page
from twinstream.cli.value_text import in_bytes

PERCENTILES = (50, 90, 99, 99.9)


@frozen
class Measured:
    """The result of a measurement."""

    what: str
    """What the times are, such as `publish to acknowledgement`."""

    messages: int
    bytes: int
    seconds: float
    times: Sequence[float]
    """Seconds, one for each message."""

    def show(self, *, as_json: bool) -> None:
        """Print the rates and the percentiles of the times."""
        rate = self.messages / self.seconds
        found = {f"p{each:g}": percentile(self.times, each) for each in PERCENTILES}
        found["most"] = max(self.times)
        if as_json:
            print_json(
                {
                    "messages": self.messages,
                    "bytes": self.bytes,
                    "seconds": round(self.seconds, 6),
                    "messages_per_second": round(rate, 1),
                    "times_of": self.what,
                    "times": {name: round(value, 7) for name, value in found.items()},
                }
            )
            return
        page = Page()
        page.add_row("messages", self.messages)
        page.add_row("time", f"{self.seconds:.3f} s")
        page.add_row("messages a second", round(rate))
        page.add_row("data a second", in_bytes(round(self.bytes / self.seconds)))
        for name, value in found.items():
            page.add_row(f"{self.what}, {name}", f"{value * 1000:.3f} ms")
        results().print(page)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    ordered = sorted(values)
    place = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(int(place), 1) - 1]
