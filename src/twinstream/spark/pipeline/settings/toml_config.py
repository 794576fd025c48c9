"""Parse the TOML file of a pipeline. An error names the file and, where possible, table and key."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, cast

from twinstream.core.wire.subjects import check_name
from twinstream.disk.local_path import local_path
from twinstream.errors import BadArgument
from twinstream.lake.iceberg.settings import CatalogSettings
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.models.files.bounded_read import read_small_text
from twinstream.spark.client.options_map import OptionsMap
from twinstream.spark.client.settings import ConnectionSettings
from twinstream.spark.decode.events import EVENT_COLUMNS
from twinstream.spark.decode.json_schema import schema_text
from twinstream.spark.decode.payloads_schema import payloads_schema
from twinstream.spark.errors import ConfigError, OptionError, SchemaError
from twinstream.spark.landing.partitions import tokens_in
from twinstream.spark.landing.split_tables import (
    BATCH_COLUMN,
    DEAD_LETTERS,
    FOLDER_COLUMN,
    OTHER_EVENTS,
    refuse_members,
)
from twinstream.spark.landing.token_tables import MAX_TABLES, parse_table
from twinstream.spark.pipeline.settings.config import (
    NAME,
    PipelineConfig,
    Restarts,
    SinkKind,
    SourceConfig,
)
from twinstream.spark.pipeline.settings.toml_bucket import stream_and_bucket
from twinstream.spark.pipeline.settings.toml_catalog import CATALOG_KEYS, catalog_settings
from twinstream.spark.pipeline.settings.toml_partitions import (
    files_of,
    in_catalog,
    partitions_of,
    refuse_partitions,
)
from twinstream.spark.pipeline.settings.toml_storage import STORAGE_KEYS, object_folder
from twinstream.spark.pipeline.settings.toml_table import TomlTable, near
from twinstream.spark.session.session import LOCAL_MASTER
from twinstream.spark.source.columns import MessageColumns
from twinstream.spark.source.moment import parse_moment
from twinstream.spark.source.option_uses import LEAST, refuse_lone_delay
from twinstream.spark.source.options import ValueFormat
from twinstream.spark.source.read_columns import ReadColumns

__all__ = ["MAX_MESSAGES", "read_config"]

MAX_MESSAGES: Final = 4_000_000
"""The default limit of sequences in a batch. Landing a batch of this size takes some tens of
seconds. So a backfill shows its progress, and little work is repeated after an interruption."""

# Forbidden keys, and the keys to use instead. The value of a forbidden key would be a secret,
# which must not be in a file that is copied, reviewed and committed. The other key names an
# environment variable. The forbidden keys are in lower case, because options are matched without
# case.
_SECRETS: Final[Mapping[str, str]] = {
    "password": "password_env",
    "secret": "password_env",
    "token": "token_env",
    "nkeyseed": "nkey_seed_env",
    "secretnkeyseed": "nkey_seed_env",
    "secretcredentials": "credentials_env",
}

# Options of the `jetstream` source, in lower case, and the keys of a `[[source]]` to use
# instead.
_RESERVED: Final[Mapping[str, str]] = {
    "stream": "stream",
    "subscribe": "stream",
    "bucket": "bucket",
    "subject": "subjects",
    "keys": "keys",
    "valueformat": "format",
    "jsonschema": "schema",
    "payloads": "payloads",
    "startingoffsets": "start",
    "maxmessagespertrigger": "max_messages",
    "maxoffsetspertrigger": "max_messages",
}
_KEYS: Final = (
    *("name", "path", "sink", "engine", "every", "storage", "catalog", "nats", "spark", "restart"),
    "source",
)
_SOURCE_KEYS: Final = (
    *("stream", "bucket", "name", "format", "schema", "payloads", "table", "prefix"),
    *("subjects", "keys", "start", "commit", "bookmark", "max_messages", "max_tables"),
    *("partition_by", "max_partitions", "file_size", "bounds", "rename", "options"),
)
_NATS_KEYS: Final = ("servers", "user", "password_env", "token_env", "credentials_file")

# The place of each key in the file, for errors about keys in a wrong table. This mistake is
# frequent, because all lines after `[nats]` or `[[source]]` belong to that table.
_PLACES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("path", "sink", "engine", "every"), "above the first table"),
    **dict.fromkeys(STORAGE_KEYS, "into the table [storage]"),
    **dict.fromkeys(set(CATALOG_KEYS) - {"properties"}, "into the table [catalog]"),
    **dict.fromkeys(_NATS_KEYS, "into the table [nats]"),
    **dict.fromkeys(("master", "settings"), "into the table [spark]"),
    **dict.fromkeys(("first", "longest", "most"), "into the table [restart]"),
    **dict.fromkeys(set(_SOURCE_KEYS) - {"name"}, "into a table [[source]]"),
}
_SCHEMA_FILES: Final = (
    "the path of a JSON Schema, or in payloads the path of the stream's configuration"
)
_UNWANTED: Final = ("mode", "columnnameofcorruptrecord", "checkpointlocation")


def read_config(
    path: str | Path, *, server: str | None = None, default_server: str | None = None
) -> PipelineConfig:
    """Return the configuration that the file at `path` contains.

    Paths in the file are relative to its folder, or begin with `~`. This function does not
    connect to a server.

    Args:
        path: the TOML file.
        server: replaces the address in the file.
        default_server: the address if neither `server` nor the file has one.

    Raises:
        ConfigError: if the file cannot be read, and for the first error in it.
    """
    file = Path(path).absolute()
    top = TomlTable(file.name, _load(file))
    top.only(_PLACES, *_KEYS)
    name = top.text("name", file.stem)
    if not NAME.fullmatch(name):
        raise top.fail("name", f"{name!r} may contain only letters, digits, '-' and '_'")
    nats = top.table("nats")
    nats.refuse(_PLACES, "path", "sink", "engine", "every")
    folder = _path(top, file.parent)
    options = _nats(nats, file.parent, server, default_server)
    spark = top.table("spark")
    config = PipelineConfig(
        name=name,
        path=folder,
        sink=_sink(top, folder),
        catalog=_catalog(top),
        engine=top.word("engine", ("spark", "local")),
        every=top.seconds("every", 10.0),
        master=spark.text("master", LOCAL_MASTER),
        settings=_settings(spark.table("settings")),
        restarts=_restarts(top.table("restart")),
        sources=tuple(_sources(top, file, name, options)),
    )
    spark.finish()
    if config.sink == "iceberg":
        config = in_catalog(config)
    _check_names(file.name, config)
    _check_members(file.name, config)
    _check_purges(file.name, config)
    refuse_partitions(file.name, config)
    return config


def _load(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(read_small_text(file))
    except OSError as error:
        raise ConfigError(file.name, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(file.name, f"is not TOML: {error}") from error
    except RecursionError:
        raise ConfigError(file.name, "is nested too deeply") from None


def _path(table: TomlTable, folder: Path) -> Path | ObjectFolder:
    text = table.text("path")
    if not text:
        raise table.fail("path", 'is required: the folder of the tables, for example path = "lake"')
    return object_folder(table, text) or _within(folder, table, "path", text)


def _sink(table: TomlTable, path: Path | ObjectFolder) -> SinkKind:
    kinds: tuple[SinkKind, ...] = ("parquet", "delta", "iceberg")
    sink: SinkKind = table.word("sink", kinds)
    if sink == "parquet" and isinstance(path, ObjectFolder):
        raise table.fail(
            "sink",
            "parquet tables cannot be on S3, where several files do not appear at once; set"
            ' sink = "delta", whose log names the files of a batch, or sink = "iceberg"',
        )
    if sink == "iceberg" and isinstance(path, Path):
        raise table.fail(
            "sink",
            "iceberg tables need a catalog and an object store, such as"
            ' path = "s3://bucket/lake"; on a file system, set sink = "delta" or sink = "parquet"',
        )
    return sink


def _catalog(table: TomlTable) -> CatalogSettings | None:
    is_iceberg = table.text("sink") == "iceberg"
    if table.has("catalog") != is_iceberg:
        if is_iceberg:
            raise table.fail(
                "catalog",
                'is required with sink = "iceberg": a table [catalog] with the uri of a REST'
                " catalog and a namespace",
            )
        raise table.fail("catalog", 'is for sink = "iceberg"; remove the table')
    return catalog_settings(table.table("catalog")) if is_iceberg else None


def _within(folder: Path, table: TomlTable, key: str, text: str) -> Path:
    """Return the absolute path for the text of a key.

    The text may be relative to `folder` or begin with `~`.
    """
    try:
        return folder / local_path(text, key).expanduser()
    except BadArgument as error:
        raise table.fail(key, str(error)) from error
    except RuntimeError as error:
        raise table.fail(
            key, f"begins in an unknown home folder, {text!r}; write the absolute path"
        ) from error


def _nats(
    table: TomlTable, folder: Path, server: str | None, default: str | None
) -> dict[str, str]:
    """Return the connection options under the names that the `jetstream` source uses.

    `server` replaces the addresses in the file. `default` is used if `server` is `None` and
    the file has no addresses. Raises `ConfigError` if there is no address at all.
    """
    servers = _servers(table)
    found = dict(_flat(table, "nats.", table.rest(), folder))
    if servers is not None:
        found["nats.servers"] = servers
    if default is not None:
        found.setdefault("nats.servers", default)
    if server is not None:
        found["nats.servers"] = server
    if "nats.servers" not in found:
        table.misspelt("servers")
        raise table.fail("servers", 'is required, for example servers = "nats://127.0.0.1:4222"')
    given = OptionsMap(found)
    try:
        ConnectionSettings.take(given)
        given.finish()
    except OptionError as error:
        raise table.fail(error.option.removeprefix("nats."), error.reason) from error
    return found


def _servers(table: TomlTable) -> str | None:
    """Return the addresses, separated by commas, or `None` if the key is missing.

    Raises `ConfigError` for values of other types. For example, a client would parse the number
    4222 as the host 0.0.16.126.
    """
    value = table.value("servers")
    each: list[object] = cast(list[object], value) if isinstance(value, list) else [value]
    wrong = [type(one).__name__ for one in each if not isinstance(one, str)]
    if value is not None and wrong:
        # The error shows the type only, because an address may contain a password.
        raise table.fail(
            "servers",
            'must be an address such as "nats://127.0.0.1:4222", or a list of them; it has a value'
            f" of type {wrong[0]}",
        )
    return None if value is None else ",".join(map(str, each))


def _flat(
    table: TomlTable, prefix: str, values: Mapping[str, object], folder: Path
) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        instead = _SECRETS.get(_camel(key).lower())
        if instead is not None:
            # The error does not show the value, because the error may be logged.
            raise table.fail(
                key,
                "a secret must not be in this file; name the environment variable that has it:"
                f' {instead} = "…"',
            )
        if isinstance(value, dict):
            inner = cast(dict[str, object], value)
            yield from _flat(table, f"{prefix}{_camel(key)}.", inner, folder)
            continue
        text = _text(table, key, value)
        is_file = key.endswith("_file")
        yield prefix + _camel(key), str(_within(folder, table, key, text)) if is_file else text


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(part.capitalize() for part in others)


def _text(table: TomlTable, key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise table.fail(key, f"must be text, a whole number, true or false, got {value!r}")


def _settings(table: TomlTable) -> dict[str, str]:
    return {key: _text(table, key, value) for key, value in _dotted("", table.rest())}


def _dotted(prefix: str, values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield keys and values of nested tables, with keys joined by dots.

    TOML parses `spark.ui.enabled` without quotes as nested tables.
    """
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _dotted(f"{prefix}{key}.", cast(dict[str, object], value))
        else:
            yield prefix + key, value


def _restarts(table: TomlTable) -> Restarts:
    found = Restarts(
        first=table.seconds("first", 1.0),
        longest=table.seconds("longest", 60.0),
        most=table.number("most", least=0),
    )
    table.finish()
    if found.longest < found.first:
        raise table.fail("longest", "is shorter than the first pause")
    return found


def _sources(
    top: TomlTable, file: Path, pipeline: str, nats: Mapping[str, str]
) -> Iterator[SourceConfig]:
    for at, values in enumerate(top.tables("source"), start=1):
        label = values.get("name") or values.get("stream") or values.get("bucket")
        yield _source(TomlTable(f"{file.name}: source {label or at}", values), file, pipeline, nats)


def _source(table: TomlTable, file: Path, pipeline: str, nats: Mapping[str, str]) -> SourceConfig:
    table.only(_PLACES, *_SOURCE_KEYS)
    stream, bucket = stream_and_bucket(table)
    name = table.text("name", bucket or stream)
    value_format: ValueFormat = table.word("format", ("raw", "json", "advisory"))
    names = MessageColumns.of(value_format, is_bucket=bucket is not None)
    try:
        prefix, token = parse_table(table.text("table"), names.subject)
    except ValueError as error:
        raise table.fail("table", str(error)) from error
    if table.has("max_tables") and not token:
        form = f"orders_{{{tokens_in(names.subject)}[2]}}"
        raise table.fail("max_tables", f'is for tables by a token: table = "{form}"')
    what = {"stream": stream} if bucket is None else {"bucket": bucket}
    options = {**_extra_options(table.table("options")), **nats, **what}
    source = SourceConfig(
        name=name,
        stream=stream,
        bucket=bucket,
        format=value_format,
        table=prefix,
        token=token,
        max_tables=table.number("max_tables", MAX_TABLES) or MAX_TABLES,
        prefix=table.text("prefix"),
        start=_start(table),
        commit=table.word("commit", ("none", "bookmark", "purge")),
        bookmark=table.text("bookmark", f"{pipeline}-{name}"),
        subjects=table.texts("subjects"),
        renames=_renames(table.table("rename")),
    )
    options |= _derived(table, source, file.parent, options)
    return _checked(table, source, options)


def _renames(table: TomlTable) -> dict[str, str]:
    """Return the new names of columns by their old names."""
    return {old: table.text(old) for old in table.keys}


def _derived(
    table: TomlTable, source: SourceConfig, folder: Path, extra: Mapping[str, str]
) -> dict[str, str]:
    found: dict[str, str] = {"valueFormat": source.format}
    found |= _schema(table, source, folder)
    if source.subjects:
        found["subject"] = ",".join(source.subjects)
    if keys := table.texts("keys"):
        found["keys"] = ",".join(keys)
    least = _least(extra)
    most = table.number("max_messages", max(MAX_MESSAGES, least))
    found["maxMessagesPerTrigger"] = str(most)
    return found


def _schema(table: TomlTable, source: SourceConfig, folder: Path) -> dict[str, str]:
    """Return the option with the JSON Schema of the source; empty for other formats than JSON.

    The text of the schema is returned: other machines and commands need no copy of the file.
    """
    paths = {key: text for key in ("schema", "payloads") if (text := table.text(key))}
    key = next(iter(paths), "schema")
    if len(paths) > 1:
        raise table.fail("payloads", "cannot be combined with schema; give one of them")
    if (source.format == "json") != bool(paths):
        need = "is required with" if source.format == "json" else "needs"
        raise table.fail(key, f'{need} format = "json": {_SCHEMA_FILES}')
    if not paths:
        return {}
    path = str(_within(folder, table, key, paths[key]))
    try:
        if key == "schema":
            return {"jsonSchema": schema_text(path)}
        return {"jsonSchema": payloads_schema(path, [source.stream], source.subjects)}
    except SchemaError as error:
        raise table.fail(key, str(error)) from error


def _least(options: Mapping[str, str]) -> int:
    """Return the minimum number of messages in a batch that the options set, or 0.

    A text that is no number is ignored here, because `_checked` refuses it later.
    """
    found = (text for name, text in options.items() if name.lower() in LEAST)
    return max((int(text) for text in found if text.isdecimal()), default=0)


def _checked(table: TomlTable, source: SourceConfig, options: dict[str, str]) -> SourceConfig:
    """Return the source with its options and the name of its table.

    Raises `ConfigError` if a name or an option is invalid.
    """
    from attrs import evolve

    is_advisory = source.format == "advisory"
    if is_advisory and source.table:
        raise table.fail("table", "advisories have one table per kind; use prefix for their names")
    if not is_advisory and source.prefix:
        raise table.fail("prefix", 'is for format = "advisory"; give table')
    for key, text in (("name", source.name), ("table", source.table), ("prefix", source.prefix)):
        if text and not NAME.fullmatch(text):
            raise table.fail(key, f"{text!r} may contain only letters, digits, '-' and '_'")
    try:
        check_name(source.bookmark, "consumer")
    except BadArgument as error:
        raise table.fail("bookmark", str(error)) from error
    name = source.table or (source.bucket or source.stream).lower()
    found = evolve(source, options=options, table="" if is_advisory else name)
    try:
        columns = ReadColumns(found.source_options)
        refuse_lone_delay(found.options)
    except OptionError as error:
        raise table.fail(_key(error.option), error.reason) from error
    except SchemaError as error:
        key = "payloads" if table.text("payloads") else "schema"
        raise table.fail(key, str(error)) from error
    partitions = partitions_of(table, found)
    derived = [each.name for each in partitions if each.is_derived]
    _check_renames(table, found, columns, [*columns.beside.names, BATCH_COLUMN, *derived])
    return evolve(found, partitions=partitions, files=files_of(table, found, partitions))


def _check_renames(
    table: TomlTable, source: SourceConfig, columns: ReadColumns, added: Iterable[str]
) -> None:
    """Raise `ConfigError` unless each rename gives an earlier column the name of a member.

    `added` are the columns of the table besides those of members.
    """
    if source.renames and source.format != "json":
        raise table.fail("rename", 'needs format = "json", because other columns have fixed names')
    taken = {name.lower() for name in added}
    for old, new in source.renames.items():
        if new not in columns.payload.names:
            near_by = near(new, tuple(columns.payload.names))
            raise table.fail(
                "rename",
                f"{old!r} becomes {new!r}, but the schema has no member {new!r}{near_by}; a schema"
                " has the new names",
            )
        if old in columns.payload.names:
            raise table.fail(
                "rename",
                f"{old!r} becomes {new!r}, but the schema still has a member {old!r}; leave it out,"
                " because messages with the old name are decoded as the new one",
            )
        if old.lower() in taken:
            raise table.fail("rename", f"{old!r} is no member, but a column that each table has")


def _key(option: str) -> str:
    """Return the key of `[[source]]` that sets an option, or `option` if there is none."""
    return _RESERVED.get(option.lower(), option)


def _start(table: TomlTable) -> str | int:
    value = table.value("start")
    if value is None:
        return "earliest"
    if value in ("earliest", "latest"):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    text = value.isoformat() if isinstance(value, datetime) else value
    # A number in quotes would be a time in milliseconds, but was meant as a sequence.
    if isinstance(text, str) and not text.isdigit():
        try:
            return parse_moment("start", text).rfc3339()
        except OptionError:
            pass  # the error below has all forms
    raise table.fail(
        "start",
        'must be "earliest", "latest", a sequence from 1, a time before now such as "-7d", or a'
        f" time with its zone such as 2026-01-31T12:00:00Z, got {value!r}",
    )


def _extra_options(table: TomlTable) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in _dotted("", table.rest()):
        name = key.lower()
        if name in _RESERVED:
            raise table.fail(key, f"is the key {_RESERVED[name]!r} of the source")
        if name in _UNWANTED or name.startswith(("nats.", "starting", "ending")):
            raise table.fail(key, "cannot be set, because the pipeline sets it itself")
        found[key] = _text(table, key, value)
    return found


def _check_names(file: str, config: PipelineConfig) -> None:
    _refuse_twice(file, "name", [each.name.lower() for each in config.sources])
    _refuse_twice(file, "bookmark", [f"{each.stream}/{each.bookmark}" for each in config.sources])
    tables = [table.lower() for each in config.sources for table in _tables(each)]
    _refuse_twice(file, "table", [*tables, DEAD_LETTERS])
    for source in config.sources:
        if source.token:
            _refuse_prefix(file, source, [*tables, DEAD_LETTERS])
    if config.sink == "iceberg":
        letters = [each.dead_letters for each in config.sources]
        _refuse_twice(file, "table", [CatalogSettings.table_name(e) for e in (*tables, *letters)])


def _refuse_prefix(file: str, source: SourceConfig, tables: list[str]) -> None:
    """Raise `ConfigError` if one of all tables has a name that a token could have, too."""
    prefix = source.table.lower()
    for name in tables:
        if name != prefix and name.startswith(prefix):
            raise ConfigError(
                f"{file}: source {source.name}: table",
                f"the tables by token {source.token} have names that begin with"
                f" {source.table!r}, as the table {name!r} does; choose another name for one of"
                " them",
            )


def _check_members(file: str, config: PipelineConfig) -> None:
    taken = (BATCH_COLUMN, FOLDER_COLUMN) if config.sink == "parquet" else (BATCH_COLUMN,)
    for source in config.sources:
        try:
            refuse_members(source.source_options, *taken)
        except SchemaError as error:
            raise ConfigError(f"{file}: source {source.name}: schema", str(error)) from error


def _check_purges(file: str, config: PipelineConfig) -> None:
    """Raise `ConfigError` if a source purges a stream that another source reads.

    A purge may move the first sequence of the stream beyond messages that the other source has not
    read yet. The other source cannot see which subjects were purged, and would report messages as
    lost. With `failOnDataLoss = false`, the other source does not report lost messages, so this
    is accepted.
    """
    for reader in config.sources:
        if not reader.source_options.fail_on_data_loss:
            continue
        for purger in config.sources:
            if purger.commit == "purge" and purger.stream == reader.stream and purger is not reader:
                raise _purged_by(file, purger, reader)


def _purged_by(file: str, purger: SourceConfig, reader: SourceConfig) -> ConfigError:
    if reader.commit == "purge":
        return ConfigError(
            f"{file}: source {purger.name}: commit",
            f"source {reader.name} also purges stream {reader.stream}, and each would report the"
            " messages that the other one removed as lost; let one source read the subjects of"
            " both, or give both the option failOnDataLoss = false",
        )
    return ConfigError(
        f"{file}: source {purger.name}: commit",
        f'"purge" removes messages of stream {reader.stream} whether source {reader.name} has'
        " landed them or not; let one source read the subjects of both, or purge in neither; if"
        f" their subjects differ, the option failOnDataLoss = false of source {reader.name} will"
        " do",
    )


def _tables(source: SourceConfig) -> list[str]:
    if source.format != "advisory":
        return [source.table]
    kinds = [name for name in EVENT_COLUMNS.names if name != "kind"]
    return [source.prefix + kind for kind in (*kinds, OTHER_EVENTS)]


def _refuse_twice(file: str, key: str, names: list[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            hint = ", or a prefix for a source of advisories" if key == "table" else ""
            raise ConfigError(
                f"{file}: {key}",
                f"{name!r} is used more than once; choose another {key} for one of them" + hint,
            )
