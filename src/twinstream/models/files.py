"""Configs in files: read, told apart, judged, with the place of every fault.

A file is JSON or YAML and holds one stream config, one consumer config, a request or an answer
that contains one (``config`` beside ``stream_name`` or ``state``), a list of these, or an object
with lists ``streams`` and ``consumers``. That takes in what ``twinstream`` writes with ``--json``,
and what the ``nats`` command writes and reads: ``nats stream info --json``, the files of
``--config``, the ``backup.json`` of a backup. YAML may hold several documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from attrs import Factory, evolve, field, frozen

from twinstream.models._document import Document, Fault, Place, TextError, member, parent
from twinstream.models._json import JsonObject
from twinstream.models._reading import Reader
from twinstream.models._shapes import SHAPES
from twinstream.models.lint import DROPPED, dropped, lint_consumer, lint_stream
from twinstream.models.problem import Problem
from twinstream.models.validation import validate_consumer, validate_stream
from twinstream.models.version import parse_version

Kind: TypeAlias = Literal["stream", "consumer"]

SEALED: Final = "S-SEALED-CREATE"
"""The rule that a new stream may not be sealed; it does not apply to one that exists."""

STDIN_NAME = "<stdin>"

_LISTS: dict[str, Kind] = {"streams": "stream", "consumers": "consumer"}

_PAGE = {"type", "total", "offset", "limit", "missing", "offline"}
"""Members that a server's answer has beside its list."""

_ANSWERED = {"created", "state"}
"""Members that a server's answer has beside the config, and a request has not."""

_ABOUT_KEYS = ("R-UNKNOWN", "R-TOO-NEW", DROPPED)
"""Rules whose problems are about a key, whatever its value."""

_STREAM_KEYS = ("stream_name", "stream")
_NAMED = "Write stream_name: with the name, and config: around the settings."
"""Where a file says which stream a consumer is of."""

_LISTED = "Put the settings around it into an item of the list streams:."

_RECORDS: dict[Kind, str] = {"stream": "StreamConfig", "consumer": "ConsumerConfig"}


@frozen
class FileProblem:
    """A problem and where in a file it is."""

    file: str
    line: int
    column: int
    problem: Problem

    def __str__(self) -> str:
        """Return ``file:line:column: path: sentence (err_code) hint``."""
        return f"{self.file}:{self.line}:{self.column}: {self.problem}"


@frozen
class FileConfig:
    """One config that a file holds."""

    kind: Kind
    file: str
    line: int
    column: int
    members: JsonObject = field(repr=False)
    """The config as it stands there."""

    stream_name: str = ""
    """The stream of a consumer, where the file names it; the name of a stream."""

    @property
    def name(self) -> str:
        """The name of the stream or consumer, empty where there is none."""
        name = self.members.get("name") or self.members.get("durable_name")
        return name if isinstance(name, str) else ""


@frozen
class FileConfigs:
    """What some files hold, and what is wrong with it."""

    configs: list[FileConfig]
    problems: list[FileProblem]
    warnings: list[FileProblem] = Factory(list[FileProblem])
    """What is legal but surprising, after ``lint_stream`` and ``lint_consumer``."""

    @property
    def errors(self) -> list[FileProblem]:
        """The problems without those that only a server can judge."""
        return [found for found in self.problems if not found.problem.needs_server]


def load_configs(
    paths: str | Path | Iterable[str | Path],
    *,
    server: str | None = None,
    pedantic: bool = False,
    kind: Kind | None = None,
    text: bytes | None = None,
) -> FileConfigs:
    """Read and judge the configs in one file or in several.

    A consumer is judged together with its stream where one of the files holds that stream.
    ``kind`` says what bare configs are, which is found out otherwise; ``text`` is used instead of
    the contents of the one path, for example if they come from a pipe. Whatever is wrong with a
    file or its contents is a problem, never an exception; only an unusable ``server`` is a
    ``ValueError``.
    """
    names = [paths] if isinstance(paths, (str, Path)) else list(paths)
    loader = _Loader(kind)
    for name in names:
        loader.file(str(name), text)
    problems, warnings = _judged(loader.found, server, pedantic)
    configs = [found.config for found in loader.found]
    return FileConfigs(configs, loader.problems + problems, loader.warnings + warnings)


@frozen
class _Found:
    """A config and how to find its parts in its file."""

    config: FileConfig
    document: Document
    path: str
    is_answer: bool = False
    """Whether it is from a server's answer, with the state."""

    around: JsonObject = Factory(dict[str, Any])
    """What a request has beside the config."""

    def problem(self, problem: Problem) -> FileProblem:
        return self._placed(problem, self.path)

    def problem_around(self, problem: Problem) -> FileProblem:
        """Return a problem of what stands beside the config."""
        return self._placed(problem, parent(self.path))

    def _placed(self, problem: Problem, outer: str) -> FileProblem:
        inner = problem.path
        whole = f"{outer}{inner}" if inner.startswith("[") else _join(outer, inner)
        line, column = self.document.place(whole, key=problem.rule in _ABOUT_KEYS)
        return FileProblem(self.config.file, line, column, problem)


def _judged(
    found: list[_Found], server: str | None, pedantic: bool
) -> tuple[list[FileProblem], list[FileProblem]]:
    """Return problems and warnings of all configs, consumers in the context of their streams."""
    streams = {one.config.name: one.config.members for one in found if one.config.kind == "stream"}
    problems: list[FileProblem] = []
    warnings: list[FileProblem] = []
    for one in found:
        config, members = one.config, one.config.members
        request = Reader(parse_version(server))
        flag = pedantic or bool(request.record(one.around, "ConsumerCreateRequest")["pedantic"])
        problems += [one.problem_around(_moved(config, each)) for each in request.problems]
        oddities = [_moved(config, each) for each in dropped(request)]
        warnings += [one.problem_around(oddity) for oddity in oddities]
        if config.kind == "stream":
            faults = validate_stream(members, server, pedantic=flag)
            if one.is_answer:  # only a stream that exists can be sealed, and this one does
                faults = [fault for fault in faults if fault.rule != SEALED]
            oddities = lint_stream(members, server)
        else:
            stream = streams.get(config.stream_name)
            faults = validate_consumer(members, stream, server, pedantic=flag)
            oddities = lint_consumer(members, stream, server)
        problems += [one.problem(_hinted(config, fault)) for fault in faults]
        warnings += [one.problem(_hinted(config, oddity)) for oddity in oddities]
    return problems, warnings


def _moved(config: FileConfig, fault: Problem) -> Problem:
    """Tell where a setting belongs that stands beside its config."""
    if fault.path in SHAPES[_RECORDS[config.kind]]:
        return evolve(fault, hint="Move it into config.")
    return fault


def _hinted(config: FileConfig, fault: Problem) -> Problem:
    """Tell where belongs what is not one of the settings: a consumer's stream, and lists."""
    if config.kind == "consumer" and fault.path in _STREAM_KEYS:
        return evolve(fault, hint=_NAMED)
    if fault.path in _LISTS:
        return evolve(fault, hint=_LISTED)
    return fault


class _Loader:
    """Collects the configs of files."""

    def __init__(self, kind: Kind | None) -> None:
        self.kind: Kind | None = kind
        self.found: list[_Found] = []
        self.problems: list[FileProblem] = []
        self.warnings: list[FileProblem] = []

    def file(self, name: str, text: bytes | None) -> None:
        """Add the configs of one file."""
        try:
            data = Path(name).read_bytes() if text is None else text
            documents = _parsed(name, data)
        except OSError as error:
            reason = error.strerror or str(error)
            return self._fault(name, Fault((1, 1), f"cannot read the file: {reason}."))
        except TextError as error:
            return self._fault(name, error.fault)
        for document in documents:
            for fault in document.faults:
                self._fault(name, fault, "R-DUPLICATE-KEY")
            for fault in document.oddities:
                self.warnings.append(_file_problem(name, fault, "L-YAML-NUMBER"))
            self._value(name, document, document.value, "")
        if not documents:
            self._fault(name, Fault((1, 1), "the file is empty."))
        return None

    def _value(self, name: str, document: Document, value: Any, path: str) -> None:
        """Add the configs in one value: an object, or a list of objects."""
        if isinstance(value, list):
            items = cast("list[object]", value)
            for index, item in enumerate(items):
                self._value(name, document, item, f"{path}[{index}]")
        elif not isinstance(value, dict):
            fault = Fault(document.place(path), "expected a stream or consumer config here.")
            self._fault(name, fault, path=path)
        else:
            self._object(name, document, cast("JsonObject", value), path)

    def _object(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        outer = path
        inner, path, stream = _unwrapped(members, path)
        kind = _kind_of(members, inner)
        if kind is None and inner is members and members.keys() & _LISTS.keys():
            return self._only_lists(name, document, members, path)
        kind = kind or self.kind
        if inner is not members and kind == "consumer" and not stream and "stream" in members:
            key = member(outer, "stream")
            hint = "Did you mean 'stream_name'?"
            fault = Fault(document.place(key, key=True), "there is no such setting.", hint)
            self._fault(name, fault, "R-UNKNOWN", key)
            members = {key: value for key, value in members.items() if key != "stream"}
        if kind is None:
            message = "cannot tell whether this is a stream or a consumer."
            hint = "Put it into a list under streams: or consumers:."
            return self._fault(name, Fault(document.place(path), message, hint), path=path)
        if kind == "stream":
            given = inner.get("name")
            stream = given if isinstance(given, str) else ""
        line, column = document.place(path)
        config = FileConfig(kind, name, line, column, inner, stream)
        is_answer = inner is not members and "state" in members
        around = {} if inner is members else _around(members)
        self.found.append(_Found(config, document, path, is_answer, around))
        if is_answer:  # `twinstream stream info --json` adds the stream's consumers
            self._lists(name, document, members, outer)
        return None

    def _only_lists(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        """Add the configs in the lists `streams` and `consumers`, and tell what else is there."""
        message = "beside streams and consumers there are no other settings."
        others = [key for key in members if key not in _LISTS and key not in _PAGE]
        for key in (member(path, other) for other in others):
            place = document.place(key, key=True)
            fault = Fault(place, message, "Move it into one of their items.")
            self._fault(name, fault, "R-UNKNOWN", key)
        self._lists(name, document, members, path)

    def _lists(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        """Add the configs in the lists `streams` and `consumers`; null is an empty list."""
        outer = self.kind
        for key, value in members.items():
            if key in _LISTS and value is not None:
                self.kind = _LISTS[key]
                self._value(name, document, value, member(path, key))
        self.kind = outer

    def _fault(self, name: str, fault: Fault, rule: str = "R-TEXT", path: str = "") -> None:
        self.problems.append(_file_problem(name, fault, rule, path))


def _file_problem(name: str, fault: Fault, rule: str, path: str = "") -> FileProblem:
    line, column = fault.place
    return FileProblem(name, line, column, Problem(path, None, rule, fault.message, fault.hint))


def _parsed(name: str, data: bytes) -> list[Document]:
    """Return the documents in a file's bytes."""
    try:
        text = data.decode("utf-8-sig" if not _is_json(name, data) else "utf-8")
    except UnicodeDecodeError as error:
        place = _byte_place(data, error.start)
        raise TextError(Fault(place, "not UTF-8 here.", "Save the file as UTF-8.")) from None
    if _is_json(name, data):
        from twinstream.models._json_text import read_json

        return [read_json(text)]
    try:
        from twinstream.models._yaml_text import read_yaml
    except ImportError:
        hint = (
            "Install Twinstream with its extra validate (in a clone: pip install '.[validate]'),"
            " or write JSON."
        )
        raise TextError(Fault((1, 1), "YAML needs the package PyYAML.", hint)) from None
    return read_yaml(text)


def _is_json(name: str, data: bytes) -> bool:
    suffix = Path(name).suffix.lower()
    if suffix in (".yaml", ".yml"):
        return False
    return suffix == ".json" or data.lstrip()[:1] in (b"{", b"[")


def _byte_place(data: bytes, offset: int) -> Place:
    before = data[:offset]
    start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[start:].decode(errors="replace")) + 1


def _unwrapped(members: JsonObject, path: str) -> tuple[JsonObject, str, str]:
    """Return the config inside a request or answer, its path, and the stream it names."""
    stream = members.get("stream_name")
    inner = members.get("config")
    named = stream if isinstance(stream, str) else ""
    if isinstance(inner, dict):
        return cast("JsonObject", inner), member(path, "config"), named
    return members, path, named


def _around(members: JsonObject) -> JsonObject:
    """Return what a request has beside its config; an answer may have anything there."""
    if members.keys() & _ANSWERED:
        return {}
    return {name: value for name, value in members.items() if name != "config"}


def _kind_of(outer: JsonObject, inner: JsonObject) -> Kind | None:
    """Return what a config is, judged by the settings that only one kind has."""
    if inner is not outer:
        if "stream_name" in outer:
            return "consumer"
        if "state" in outer:
            return "stream"
    scores = {kind: sum(_own(inner, record)) for kind, record in _RECORDS.items()}
    if scores["stream"] == scores["consumer"]:
        return None
    return "stream" if scores["stream"] > scores["consumer"] else "consumer"


def _own(members: JsonObject, record: str) -> Iterator[bool]:
    others = [other for other in _RECORDS.values() if other != record]
    for name in members:
        yield name in SHAPES[record] and all(name not in SHAPES[other] for other in others)


def _join(path: str, inner: str) -> str:
    return member(path, inner) if inner else path
