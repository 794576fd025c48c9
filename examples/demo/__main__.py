"""Run the demo: `python -m examples.demo`, in the root of a clone."""

from __future__ import annotations

from examples.demo.command import demo

demo()
