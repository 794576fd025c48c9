"""Configs in files: parsing, detection of their kind, and validation with positions.

A file is JSON or YAML; a YAML file may have several documents. Each document contains one of:

- the config of a stream or consumer,
- a request or response with such a config: `config` next to `stream_name` or `state`,
- a list of such configs, requests or responses,
- an object with the lists `streams`, `consumers`, `key_values` and `object_stores`.

Bucket configs must be in the lists `key_values` and `object_stores`, because the settings of a
bucket do not show its kind.

The output of `twinstream` with `--json` has one of these forms. So have files of the `nats`
command: the output of `nats stream info --json`, files for `--config`, and the `backup.json` of a
backup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from attrs import Factory, evolve, field, frozen

from twinstream.models.codec.json_object import JsonObject
from twinstream.models.files.bounded_read import read_small
from twinstream.models.files.document import Document, Fault, Place, TextError, member, parent
from twinstream.models.files.quantities import in_numbers
from twinstream.models.files.reading import Members, Reader
from twinstream.models.files.shapes import SHAPES
from twinstream.models.lint import DROPPED, dropped, lint_consumer, lint_stream
from twinstream.models.problem import Problem
from twinstream.models.validation import validate_consumer, validate_stream
from twinstream.models.version import parse_version

Kind: TypeAlias = Literal["stream", "consumer", "key_value", "object_store"]

SEALED: Final = "S-SEALED-CREATE"
"""The rule that a new stream must not be sealed. It does not apply to existing streams."""

STDIN_NAME = "<stdin>"

_LISTS: dict[str, Kind] = {
    "streams": "stream",
    "consumers": "consumer",
    "key_values": "key_value",
    "object_stores": "object_store",
}

# The prefix of the stream's name, by the kind of the bucket.
_BUCKETS: dict[str, str] = {"key_value": "KV_", "object_store": "OBJ_"}

# The members of a server's list response, except the list itself.
_PAGE = {"type", "total", "offset", "limit", "missing", "offline"}

# Members that only a response of the server has, not a request.
_ANSWERED = {"created", "state"}

# Rules whose problems are reported at the position of the key, not of the value.
_ABOUT_KEYS = ("R-UNKNOWN", "R-TOO-NEW", DROPPED)

_STREAM_KEYS = ("stream_name", "stream")
_PAYLOADS = "payloads"
# The hint for a consumer's settings that contain the name of its stream.
_NAMED = "Write stream_name: with the name, and config: around the settings."

_LISTED = "Put the settings around it into an item of the list streams:."

_RECORDS: dict[Kind, str] = {
    "stream": "StreamConfig",
    "consumer": "ConsumerConfig",
    "key_value": "KeyValueConfig",
    "object_store": "ObjectStoreConfig",
}


# The kinds that are detected by their settings.
_BOTH: tuple[Kind, ...] = ("stream", "consumer")


@frozen
class FileProblem:
    """A problem and its position in a file."""

    file: str
    """Path of the file."""
    line: int
    """Line of the problem, from 1."""
    column: int
    """Column of the problem, from 1."""
    problem: Problem
    """What is wrong."""

    def __str__(self) -> str:
        """Return `file:line:column: path: sentence (err_code) hint`."""
        return f"{self.file}:{self.line}:{self.column}: {self.problem}"


@frozen
class FileConfig:
    """One config that was read from a file."""

    kind: Kind
    """Whether it is a stream, a consumer or a bucket."""
    file: str
    """Path of the file."""
    line: int
    """Line of its beginning, from 1."""
    column: int
    """Column of its beginning, from 1."""
    members: JsonObject = field(repr=False)
    """The config as written in the file; for the stream of a bucket, the config of that stream."""

    stream_name: str = ""
    """The name of the stream: of this stream, of the bucket's stream, or of the consumer's stream.

    It is empty if the file does not contain it. For a bucket without a name, it is only the prefix,
    such as `KV_`.
    """

    payloads: Any = field(default=None, repr=False)
    """The member `payloads` of a stream's settings: schemas by subject; None without it.

    It is no setting of the server, so `members` does not contain it.
    """

    bucket: FileConfig | None = field(default=None, repr=False)
    """The bucket whose stream this is, set by `stream_behind`; None for other configs."""

    @property
    def name(self) -> str:
        """The name of the stream, consumer or bucket; empty if the config has none."""
        if self.kind in _BUCKETS:
            name = self.members.get("bucket")
        else:
            name = self.members.get("name") or self.members.get("durable_name")
        return name if isinstance(name, str) else ""


def stream_behind(config: FileConfig) -> FileConfig:
    """Return the config of the stream that stores a bucket, with the position of the bucket.

    Its members are empty if the name of the bucket is invalid. Configs of streams and consumers are
    returned unchanged.
    """
    if config.kind != "key_value" and config.kind != "object_store":
        return config
    from twinstream.models.buckets.bucket_validation import stream_members

    members = stream_members(config.kind, config.members)
    return evolve(config, kind="stream", members=members, bucket=config)


@frozen
class FileConfigs:
    """The configs in one or more files, their problems and their warnings."""

    configs: list[FileConfig]
    """The configs, in the order of the files."""
    problems: list[FileProblem]
    """What servers or the files' form refuse."""
    warnings: list[FileProblem] = Factory(list[FileProblem])
    """Warnings about rarely intended settings, ignored members and ambiguous numbers in YAML."""

    @property
    def errors(self) -> list[FileProblem]:
        """The problems that are errors on every server; those with `needs_server` are omitted."""
        return [found for found in self.problems if not found.problem.needs_server]


def load_configs(
    paths: str | Path | Iterable[str | Path],
    *,
    server: str | None = None,
    pedantic: bool = False,
    kind: Kind | None = None,
    text: bytes | None = None,
) -> FileConfigs:
    """Read and validate the configs in one file or in several.

    A consumer is validated together with its stream if one of the files contains that stream.
    Unreadable files and invalid contents are returned as problems, not raised.

    Args:
        paths: One path, or several.
        server: A server version such as `2.12` or `2.12.8`; None means the newest known.
        pedantic: Validate as requests with `pedantic`, for which servers refuse a setting that they
            would otherwise change.
        kind: The kind of configs that are not in a list such as `streams`; None detects it.
        text: The contents of the file at `paths`, for example from a pipe; the file is not read.

    Raises:
        ValueError: `server` is not a supported version.
    """
    names = [paths] if isinstance(paths, (str, Path)) else list(paths)
    loader = _Loader(kind)
    for name in names:
        loader.file(str(name), text)
    problems, warnings = _validated(loader.found, server, pedantic)
    configs = [found.config for found in loader.found]
    return FileConfigs(configs, loader.problems + problems, loader.warnings + warnings)


@frozen
class _Found:
    """A config, the document that contains it, and its path in the document."""

    config: FileConfig
    document: Document
    path: str
    is_answer: bool = False
    """Whether the config is part of a server's response."""

    around: JsonObject = Factory(dict[str, Any])
    """The other members of the request that contains the config; empty if there is none."""

    def problem(self, problem: Problem) -> FileProblem:
        return self._placed(problem, self.path)

    def problem_around(self, problem: Problem) -> FileProblem:
        """Return the problem of a member next to the config, with its position."""
        return self._placed(problem, parent(self.path))

    def _placed(self, problem: Problem, outer: str) -> FileProblem:
        inner = problem.path
        whole = f"{outer}{inner}" if inner.startswith("[") else _join(outer, inner)
        line, column = self.document.place(whole, key=problem.rule in _ABOUT_KEYS)
        return FileProblem(self.config.file, line, column, problem)


def _validated(
    found: list[_Found], server: str | None, pedantic: bool
) -> tuple[list[FileProblem], list[FileProblem]]:
    """Return the problems and warnings of all configs; consumers are validated with their streams.

    A stream is found by its name among the configs of all files.
    """
    behind = [stream_behind(one.config) for one in found]
    streams = {one.name: one.members for one in behind if one.kind == "stream"}
    problems: list[FileProblem] = []
    warnings: list[FileProblem] = []
    for one in found:
        config, members = one.config, one.config.members
        if config.kind == "key_value" or config.kind == "object_store":
            from twinstream.models.buckets.bucket_validation import bucket_problems

            faults, oddities = bucket_problems(config.kind, members, server, pedantic=pedantic)
            problems += map(one.problem, faults)
            warnings += map(one.problem, oddities)
            continue
        request = Reader(parse_version(server))
        flag = pedantic or bool(request.record(one.around, "ConsumerCreateRequest")["pedantic"])
        problems += [one.problem_around(_moved(config, each)) for each in request.problems]
        oddities = [_moved(config, each) for each in dropped(request)]
        warnings += [one.problem_around(oddity) for oddity in oddities]
        if config.kind == "stream":
            faults = validate_stream(members, server, pedantic=flag)
            if one.is_answer:  # the stream exists, so it may be sealed
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
    """Return `fault`, the problem of a member next to the config.

    If the member is a setting of the config, the hint is to move it into `config`.
    """
    if fault.path in SHAPES[_RECORDS[config.kind]]:
        return evolve(fault, hint="Move it into config.")
    return fault


def _hinted(config: FileConfig, fault: Problem) -> Problem:
    """Return `fault`. If its key is valid elsewhere in a file, the hint names the right place.

    Such keys are the name of a consumer's stream, and lists such as `streams`.
    """
    if config.kind == "consumer" and fault.path in _STREAM_KEYS:
        return evolve(fault, hint=_NAMED)
    if fault.path in _LISTS:
        return evolve(fault, hint=_LISTED)
    return fault


class _Loader:
    """A reader of files that collects configs, problems and warnings."""

    def __init__(self, kind: Kind | None) -> None:
        self.kind: Kind | None = kind
        self.found: list[_Found] = []
        self.problems: list[FileProblem] = []
        self.warnings: list[FileProblem] = []

    def file(self, name: str, text: bytes | None) -> None:
        """Add the configs in the file `name`. Its contents are `text`; for None, read the file."""
        try:
            data = read_small(name) if text is None else text
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
        """Add the configs in an object, or in a list of objects; report other values."""
        if isinstance(value, list):
            items = cast("list[object]", value)
            for index, item in enumerate(items):
                self._value(name, document, item, f"{path}[{index}]")
        elif not isinstance(value, dict):
            what = "bucket" if self.kind in _BUCKETS else "stream or consumer"
            fault = Fault(document.place(path), f"expected a {what} config here.")
            self._fault(name, fault, path=path)
        else:
            self._object(name, document, cast("JsonObject", value), path)

    def _object(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        """Add the config in an object, or report why it is none.

        The object may also be a request or an answer that contains a config, or lists of configs.
        """
        outer = path
        if self.kind in _BUCKETS and not members.keys() & _LISTS.keys():
            return self._bucket(name, document, members, path)
        inner, path, stream = _unwrapped(members, path)
        # A request or an answer of the server is an object around the config.
        is_wrapped = inner is not members
        kind = _kind_of(members, inner)
        if kind is None and not is_wrapped and members.keys() & _LISTS.keys():
            return self._only_lists(name, document, members, path)
        kind = kind or self.kind
        if is_wrapped and kind == "consumer" and not stream and "stream" in members:
            key = member(outer, "stream")
            hint = "Did you mean 'stream_name'?"
            fault = Fault(document.place(key, key=True), "there is no such setting.", hint)
            self._fault(name, fault, "R-UNKNOWN", key)
            members = {key: value for key, value in members.items() if key != "stream"}
        if kind is None:
            message = "cannot tell whether this is a stream or a consumer."
            hint = "Put it into a list under streams: or consumers:."
            if "bucket" in members:
                message = "cannot tell whether this bucket is for keys and values or for objects."
                hint = "Put it into a list under key_values: or object_stores:."
            return self._fault(name, Fault(document.place(path), message, hint), path=path)
        if kind == "stream":
            given = inner.get("name")
            stream = given if isinstance(given, str) else ""
        line, column = document.place(path)
        settings = in_numbers(inner, _RECORDS[kind]) if document.has_units else inner
        config = FileConfig(kind, name, line, column, settings, stream)
        if kind == "stream" and _PAYLOADS in inner:
            kept = _without_payloads(settings)
            config = evolve(config, members=kept, payloads=inner[_PAYLOADS])
        is_answer = is_wrapped and "state" in members
        around = _around(members) if is_wrapped else {}
        self.found.append(_Found(config, document, path, is_answer, around))
        if is_answer:  # `twinstream stream info --json` adds the stream's consumers
            self._lists(name, document, members, outer)
        return None

    def _bucket(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        assert self.kind is not None
        line, column = document.place(path)
        if document.has_units:
            members = in_numbers(members, _RECORDS[self.kind])
        config = FileConfig(self.kind, name, line, column, members)
        config = evolve(config, stream_name=_BUCKETS[self.kind] + config.name)
        self.found.append(_Found(config, document, path))

    def _only_lists(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        """Add the configs in the lists of an object, and report its other keys."""
        message = "settings next to lists of configs are not allowed."
        others = [key for key in members if key not in _LISTS and key not in _PAGE]
        for key in (member(path, other) for other in others):
            place = document.place(key, key=True)
            fault = Fault(place, message, "Move it into one of their items.")
            self._fault(name, fault, "R-UNKNOWN", key)
        self._lists(name, document, members, path)

    def _lists(self, name: str, document: Document, members: JsonObject, path: str) -> None:
        """Add the configs in the lists of an object; null is valid and means an empty list."""
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
    """Return the documents in the contents of the file `name`. Raises `TextError`."""
    try:
        text = data.decode("utf-8-sig" if not _is_json(name, data) else "utf-8")
    except UnicodeDecodeError as error:
        place = _byte_place(data, error.start)
        raise TextError(Fault(place, "not UTF-8 here.", "Save the file as UTF-8.")) from None
    if _is_json(name, data):
        from twinstream.models.files.json_text import read_json

        return [read_json(text)]
    try:
        from twinstream.models.files.yaml_text import read_yaml
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
    """Return the config in a request or response, its path, and the value of `stream_name`.

    If there is no member `config`, the members themselves are the config.
    """
    stream = members.get("stream_name")
    inner = members.get("config")
    named = stream if isinstance(stream, str) else ""
    if isinstance(inner, dict):
        return cast("JsonObject", inner), member(path, "config"), named
    return members, path, named


def _without_payloads(members: JsonObject) -> JsonObject:
    """Return the settings of a stream without the schemas of its payloads."""
    if not isinstance(members, Members):
        return {name: value for name, value in members.items() if name != _PAYLOADS}
    found = Members()
    for name, value in members.pairs:
        if name != _PAYLOADS:
            found.add(name, value)
    return found


def _around(members: JsonObject) -> JsonObject:
    """Return the members of a request without its config; an empty object for a response."""
    if members.keys() & _ANSWERED:
        return {}
    return {name: value for name, value in members.items() if name != "config"}


def _kind_of(outer: JsonObject, inner: JsonObject) -> Kind | None:
    """Return the kind of a config: `stream`, `consumer`, or None if it could be both.

    A member `stream_name` next to the config means a consumer, and `state` means a stream. Without
    them, the result is the kind to which more of the settings belong exclusively; None if the
    numbers are equal.
    """
    if inner is not outer:
        if "stream_name" in outer:
            return "consumer"
        if "state" in outer:
            return "stream"
    scores = {kind: sum(_own(inner, _RECORDS[kind])) for kind in _BOTH}
    if scores["stream"] == scores["consumer"]:
        return None
    return "stream" if scores["stream"] > scores["consumer"] else "consumer"


def _own(members: JsonObject, record: str) -> Iterator[bool]:
    others = [_RECORDS[kind] for kind in _BOTH if _RECORDS[kind] != record]
    for name in members:
        yield name in SHAPES[record] and all(name not in SHAPES[other] for other in others)


def _join(path: str, inner: str) -> str:
    return member(path, inner) if inner else path
