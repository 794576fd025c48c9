"""Exactly once: writes that a stream stores only once, and processing without duplicates.

A `SubjectWriter` inserts, updates and replaces the message of a subject, which acts as a key.
`Processing` calls a handler for each message and stores each of its results once. Both check first
that the settings of the streams make this possible.
"""

from __future__ import annotations

from js_async.exactly_once.processing import Processing
from js_async.exactly_once.subject_writer import SubjectWriter
from twinstream.core.exactly_once.conditional_write import AlreadyThere, Stored
from twinstream.core.exactly_once.processing import ProcessReport, Reject
from twinstream.errors import SubjectTaken, UnsuitableSettings
from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "AlreadyThere",
    "GuaranteeGap",
    "ProcessReport",
    "Processing",
    "Reject",
    "Stored",
    "SubjectTaken",
    "SubjectWriter",
    "UnsuitableSettings",
]
