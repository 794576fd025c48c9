"""Rules for a stream's subjects, its subject transform and its `republish` setting."""

from __future__ import annotations

from attrs import evolve, frozen

from twinstream.models.error_codes import (
    PEDANTIC,
    STREAM_INVALID_CONFIG,
    TRANSFORM_DESTINATION_INVALID,
    TRANSFORM_SOURCE_INVALID,
)
from twinstream.models.files.settings import Settings
from twinstream.models.names.subjects import can_meet, is_contained, is_subject
from twinstream.models.names.transform_rules import transform_fault
from twinstream.models.rules.rule import ForEach, Found, Hit, Judge, Rule
from twinstream.models.rules.stream_case import StreamCase
from twinstream.models.version import Firsts, Version, is_from

_API_SUBJECTS = ("$JS.>", "$JSC.>", "$NRG.>")
_SYSTEM_SUBJECTS = ("$SYS.>",)

MEETING_SINCE: Version = (2, 11, 2)
"""The first server version that refuses subjects that overlap the server's own subjects.

Older servers refuse only subjects that are contained in one of the server's own subjects.
"""

IMPLICIT_SINCE: Firsts = ((2, 11, 11), (2, 12, 2))
"""The first server versions that check the transform before `republish`.

From these versions on, `republish` may depend on the transform; see `is_implicit_republish`.
"""


@frozen
class SubjectCase:
    """The input of rules for one subject of a stream."""

    stream: StreamCase
    index: int

    @property
    def settings(self) -> Settings:
        """The stream's settings."""
        return self.stream.settings

    @property
    def version(self) -> Version:
        """The version of the server whose rules apply."""
        return self.stream.version

    @property
    def pedantic(self) -> bool:
        """Whether the server refuses a setting instead of changing it."""
        return self.stream.pedantic

    @property
    def subject(self) -> str:
        """The subject."""
        return self.stream.subjects[self.index]

    def hit(self, detail: str = "") -> list[Hit]:
        """Return a list with one `Hit`: the path and value of the subject.

        The path is that of the stream's name if the subject is the default.
        """
        path = f"subjects[{self.index}]" if self.settings["subjects"] else "name"
        return [Hit(path, self.subject, detail)]


def _each(case: StreamCase) -> list[SubjectCase]:
    # A stream without a name violates S-NAME-MISSING. Do not report its empty default subject too.
    if case.subjects == [""] and not case["subjects"]:
        return []
    return [SubjectCase(case, index) for index in range(len(case.subjects))]


def _everything_with_acks(case: SubjectCase) -> Found:
    return case.subject == ">" and not case.settings["no_ack"] and case.hit()


def _everything_replicated(case: SubjectCase) -> Found:
    return case.subject == ">" and case.settings["num_replicas"] > 1 and case.hit()


def _meets_api(case: SubjectCase) -> Found:
    subject = case.subject
    if case.settings["no_ack"] or is_contained(subject, "$JS.EVENT.>"):
        return False
    return _takes_from(case, _API_SUBJECTS) and case.hit()


def _meets_system(case: SubjectCase) -> Found:
    subject = case.subject
    if case.settings["no_ack"] or is_contained(subject, "$SYS.ACCOUNT.>"):
        return False
    return _takes_from(case, _SYSTEM_SUBJECTS) and case.hit()


def _takes_from(case: SubjectCase, own: tuple[str, ...]) -> bool:
    """Whether a subject overlaps one of the server's subjects `own`.

    Servers before `MEETING_SINCE` only check whether the subject is contained in one of them, and
    do not check `$NRG.>`.
    """
    if case.version >= MEETING_SINCE:
        return any(can_meet(case.subject, taken) for taken in own)
    return any(is_contained(case.subject, taken) for taken in own if taken != "$NRG.>")


def _meets_later(case: SubjectCase) -> Found:
    later = case.stream.overlaps.get(case.index)
    return later is not None and case.hit(repr(case.stream.subjects[later]))


_OF_EACH_SUBJECT = (
    Rule[SubjectCase](
        "S-SUBJ-INVALID",
        STREAM_INVALID_CONFIG,
        "",
        "{value} is not a subject.",
        "Write tokens without blanks, separated by dots; > is only allowed at the end.",
        lambda case: not is_subject(case.subject) and case.hit(),
    ),
    Rule[SubjectCase](
        "S-SUBJ-ALL-NOACK",
        STREAM_INVALID_CONFIG,
        "",
        "a stream on > needs no_ack.",
        "Set no_ack, or name the subjects.",
        _everything_with_acks,
    ),
    Rule[SubjectCase](
        "S-SUBJ-ALL-R1",
        STREAM_INVALID_CONFIG,
        "",
        "a stream on > needs one replica.",
        "Set num_replicas to 1, or name the subjects.",
        _everything_replicated,
    ),
    Rule[SubjectCase](
        "S-SUBJ-JSAPI",
        STREAM_INVALID_CONFIG,
        "",
        "{value} can meet the subjects of the JetStream API.",
        "Set no_ack, or narrow the subject.",
        _meets_api,
    ),
    Rule[SubjectCase](
        "S-SUBJ-SYS",
        STREAM_INVALID_CONFIG,
        "",
        "{value} can meet the subjects of the system.",
        "Set no_ack, or narrow the subject.",
        _meets_system,
    ),
    Rule[SubjectCase](
        "S-SUBJ-SELF",
        STREAM_INVALID_CONFIG,
        "",
        "{value} can meet {detail}.",
        "Make the subjects disjoint.",
        _meets_later,
    ),
)


def _transform_source(case: StreamCase) -> Found:
    transform = case["subject_transform"]
    if not transform or not transform["src"] or is_subject(transform["src"]):
        return False
    return [Hit("subject_transform.src", transform["src"])]


def _transform_target(case: StreamCase) -> Found:
    transform = case["subject_transform"]
    if transform is None or _transform_source(case):
        return False
    fault = transform_fault(transform["src"], transform["dest"], case.version)
    return [Hit("subject_transform.dest", transform["dest"], fault)] if fault else False


def is_implicit_republish(case: StreamCase) -> bool:
    """Whether `republish` is from `>` to `>`, and the transform's source is the only subject.

    In this case, servers from `IMPLICIT_SINCE` on republish to the destination of the stream's
    transform. For older servers, the result is False.
    """
    republish, transform = case["republish"], case["subject_transform"]
    if republish is None or transform is None or not is_from(case.version, IMPLICIT_SINCE):
        return False
    plain = republish["src"] in ("", ">") and republish["dest"] == ">"
    return plain and case.subjects == [transform["src"]]


def _republished(case: StreamCase) -> tuple[str, str] | None:
    """Return the source and destination of `republish` on the server; None if it is not set."""
    republish = case["republish"]
    if republish is None:
        return None
    if is_implicit_republish(case):
        # The server uses the destination of the stream's transform as source and destination, so
        # the destination cannot use tokens of the original subject.
        made = case["subject_transform"]["dest"]
        return made, made
    return republish["src"], republish["dest"]


def _republish_cycle(case: StreamCase) -> Found:
    way = _republished(case)
    if way is None:
        return False
    met = [subject for subject in case.subjects if can_meet(way[1], subject)]
    return [Hit("republish.dest", way[1], repr(met[0]))] if met else False


def _republish_transform(case: StreamCase) -> Found:
    way = _republished(case)
    if way is None:
        return False
    fault = transform_fault(*way, case.version, strict=False)
    return [Hit("republish.dest", case["republish"]["dest"], fault)] if fault else False


TRANSFORM_RULES = (
    Rule[StreamCase](
        "S-TR-SRC",
        TRANSFORM_SOURCE_INVALID,
        "",
        "{value} is not a subject.",
        "Write tokens separated by dots.",
        _transform_source,
    ),
    Rule[StreamCase](
        "S-TR-DEST",
        TRANSFORM_DESTINATION_INVALID,
        "",
        "the transform is not valid: {detail}.",
        "Compare source and destination token by token.",
        _transform_target,
    ),
)

SUBJECT_RULES: tuple[Judge[StreamCase], ...] = (
    ForEach(_each, _OF_EACH_SUBJECT),
    *(evolve(rule, since=IMPLICIT_SINCE) for rule in TRANSFORM_RULES),
    Rule[StreamCase](
        "S-REPUB-SRC-PED",
        PEDANTIC,
        "",
        "republish without src means >; the server would set src to >.",
        "Set src to >.",
        lambda case: (
            case["republish"] is not None
            and not case["republish"]["src"]
            and [Hit("republish.src")]
        ),
        pedantic=True,
    ),
    Rule[StreamCase](
        "S-REPUB-IMPLICIT-PED",
        PEDANTIC,
        "",
        "the server would change republish from > to > to the transform's destination.",
        "Write that destination.",
        lambda case: is_implicit_republish(case) and [Hit("republish.dest", ">")],
        pedantic=True,
    ),
    Rule[StreamCase](
        "S-REPUB-CYCLE",
        STREAM_INVALID_CONFIG,
        "",
        "republish to {value} can publish on the stream's own subject {detail}.",
        "Republish to subjects that the stream does not capture.",
        _republish_cycle,
    ),
    Rule[StreamCase](
        "S-REPUB-TR",
        STREAM_INVALID_CONFIG,
        "",
        "republish is not valid: {detail}.",
        "Compare source and destination token by token.",
        _republish_transform,
    ),
    *(evolve(rule, until=IMPLICIT_SINCE) for rule in TRANSFORM_RULES),
)
