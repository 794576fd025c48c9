"""The command groups. A subcommand is imported on first use, so that `--help` is fast."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from typing import Any, Final

import click

from twinstream.cli.failures import JSON_ASKED, reported
from twinstream.cli.help.foreign_names import advice, aliased
from twinstream.cli.help.foreign_options import options_advised
from twinstream.cli.help.page import HelpfulCommand
from twinstream.cli.interrupts import asks_for_json
from twinstream.cli.logs import debug_option, shown_log, verbose_option
from twinstream.cli.target import options_before

COMMANDS: Final = {
    "account": "twinstream.cli.groups:account",
    "apply": "twinstream.cli.config.apply:apply",
    "backup": "twinstream.cli.server.backup:backup",
    "bench": "twinstream.cli.groups:bench",
    "consume": "twinstream.cli.message.consume:consume",
    "consumer": "twinstream.cli.groups:consumer",
    "dlq": "twinstream.cli.groups:dlq",
    "events": "twinstream.cli.server.events:events",
    "get": "twinstream.cli.message.get:get",
    "group": "twinstream.cli.groups:group",
    "health": "twinstream.cli.server.health:health",
    "kv": "twinstream.cli.groups:kv",
    "lock": "twinstream.cli.groups:lock",
    "object": "twinstream.cli.groups:objects",
    "permissions": "twinstream.cli.config.permissions:permissions",
    "pipeline": "twinstream.cli.groups:pipeline",
    "plan": "twinstream.cli.config.plan:plan",
    "pub": "twinstream.cli.message.pub:pub",
    "replay": "twinstream.cli.replay.command:replay",
    "reply": "twinstream.cli.message.reply:reply",
    "req": "twinstream.cli.message.request:req",
    "restore": "twinstream.cli.server.backup:restore",
    "rtt": "twinstream.cli.message.round_trips:rtt",
    "schedule": "twinstream.cli.groups:schedule",
    "schema": "twinstream.cli.config.schema:schema",
    "server": "twinstream.cli.groups:server",
    "size": "twinstream.cli.config.size:size",
    "stream": "twinstream.cli.groups:stream",
    "sub": "twinstream.cli.message.subscribe:sub",
    "subject": "twinstream.cli.groups:subject",
    "validate": "twinstream.cli.config.validate:validate",
    "version": "twinstream.cli.version:version",
    "why": "twinstream.cli.why.command:why",
}
BENCH_COMMANDS: Final = {
    "consume": "twinstream.cli.bench.run:consume",
    "pub": "twinstream.cli.bench.run:pub",
}
DLQ_COMMANDS: Final = {
    "discard": "twinstream.cli.server.dead_letters:discard",
    "ls": "twinstream.cli.server.dead_letters:list_letters",
    "replay": "twinstream.cli.server.dead_letters:replay",
    "run": "twinstream.cli.server.dead_letters:run",
    "show": "twinstream.cli.server.dead_letters:show",
}
GROUP_COMMANDS: Final = {
    "add": "twinstream.cli.group.manage:add",
    "create": "twinstream.cli.group.manage:create",
    "info": "twinstream.cli.group.manage:info",
    "members": "twinstream.cli.group.manage:members",
    "remove": "twinstream.cli.group.manage:remove",
}
KV_COMMANDS: Final = {
    "add": "twinstream.cli.kv.buckets:add",
    "compact": "twinstream.cli.kv.buckets:compact",
    "create": "twinstream.cli.kv.keys:create",
    "del": "twinstream.cli.kv.keys:delete",
    "diff": "twinstream.cli.kv.past:diff",
    "edit": "twinstream.cli.kv.buckets:edit",
    "get": "twinstream.cli.kv.keys:get",
    "history": "twinstream.cli.kv.keys:history",
    "info": "twinstream.cli.kv.buckets:info",
    "ls": "twinstream.cli.kv.buckets:ls",
    "purge": "twinstream.cli.kv.keys:purge",
    "put": "twinstream.cli.kv.keys:put",
    "revert": "twinstream.cli.kv.past:revert",
    "update": "twinstream.cli.kv.keys:update",
    "watch": "twinstream.cli.kv.watch:watch",
}
LOCK_COMMANDS: Final = {
    "ls": "twinstream.cli.lock.list:ls",
    "release": "twinstream.cli.lock.list:release",
    "run": "twinstream.cli.lock.run:run",
}
OBJECT_COMMANDS: Final = {
    "add": "twinstream.cli.object.store:add",
    "del": "twinstream.cli.object.content:delete",
    "edit": "twinstream.cli.object.store:edit",
    "get": "twinstream.cli.object.content:get",
    "info": "twinstream.cli.object.content:info",
    "ls": "twinstream.cli.object.content:ls",
    "put": "twinstream.cli.object.content:put",
    "seal": "twinstream.cli.object.store:seal",
    "sweep": "twinstream.cli.object.store:sweep",
    "watch": "twinstream.cli.object.content:watch",
}
PIPELINE_COMMANDS: Final = {
    "compact": "twinstream.cli.pipeline.compact:compact",
    "letters": "twinstream.cli.groups:letters",
    "replay": "twinstream.cli.pipeline.replay:replay",
    "report": "twinstream.cli.pipeline.report:report",
    "rewrite": "twinstream.cli.pipeline.rewrite:rewrite",
    "run": "twinstream.cli.pipeline.run:run",
    "spec": "twinstream.cli.pipeline.spec:spec",
    "vacuum": "twinstream.cli.pipeline.vacuum:vacuum",
    "verify": "twinstream.cli.pipeline.verify:verify",
}
LETTERS_COMMANDS: Final = {
    "count": "twinstream.cli.pipeline.letters:count",
    "publish": "twinstream.cli.pipeline.letters:publish",
    "replay": "twinstream.cli.pipeline.letters:replay",
}
SERVER_COMMANDS: Final = {
    "info": "twinstream.cli.server.servers:info",
    "ls": "twinstream.cli.server.servers:ls",
    "ping": "twinstream.cli.server.servers:ping",
}
STREAM_COMMANDS: Final = {
    "add": "twinstream.cli.stream.add:add",
    "copy": "twinstream.cli.stream.edit:copy",
    "edit": "twinstream.cli.stream.edit:edit",
    "find": "twinstream.cli.stream.find:find",
    "info": "twinstream.cli.stream.info:info",
    "ls": "twinstream.cli.stream.list:ls",
    "peer-remove": "twinstream.cli.stream.replicas:peer_remove",
    "purge": "twinstream.cli.stream.remove:purge",
    "report": "twinstream.cli.stream.find:report",
    "rm": "twinstream.cli.stream.remove:rm",
    "rmm": "twinstream.cli.stream.remove:rmm",
    "seal": "twinstream.cli.stream.remove:seal",
    "step-down": "twinstream.cli.stream.replicas:step_down",
    "subjects": "twinstream.cli.stream.subjects:subjects",
}
SCHEDULE_COMMANDS: Final = {
    "add": "twinstream.cli.schedule.add:add",
    "cancel": "twinstream.cli.schedule.cancel:cancel",
    "ls": "twinstream.cli.schedule.list:ls",
    "next": "twinstream.cli.schedule.next:next_times",
    "show": "twinstream.cli.schedule.list:show",
}
SUBJECT_COMMANDS: Final = {
    "partition": "twinstream.cli.config.subject:partition",
    "transform": "twinstream.cli.config.subject:transform",
}
CONSUMER_COMMANDS: Final = {
    "add": "twinstream.cli.consumer.add:add",
    "edit": "twinstream.cli.consumer.edit:edit",
    "info": "twinstream.cli.consumer.info:info",
    "ls": "twinstream.cli.consumer.list:ls",
    "next": "twinstream.cli.consumer.next:next_messages",
    "pause": "twinstream.cli.consumer.control:pause",
    "report": "twinstream.cli.consumer.report:report",
    "reset": "twinstream.cli.consumer.control:reset",
    "resume": "twinstream.cli.consumer.control:resume",
    "rm": "twinstream.cli.consumer.control:rm",
    "step-down": "twinstream.cli.consumer.control:step_down",
    "sub": "twinstream.cli.message.consume:consume",
    "unpin": "twinstream.cli.consumer.control:unpin",
}
ACCOUNT_COMMANDS: Final = {"info": "twinstream.cli.server.account_info:info"}


class LazyGroup(click.Group):
    """A group that imports a subcommand from `module:attribute` on first use.

    Errors that the user can fix are printed to standard error without a traceback.
    """

    targets: dict[str, str]

    def __init__(self, name: str, targets: dict[str, str], help: str) -> None:
        settings = {"help_option_names": ["-h", "--help"]}
        super().__init__(name=name, help=help, context_settings=settings)
        self.targets = targets

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands in alphabetical order."""
        return sorted(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand `cmd_name`, which may be an alias.

        Return None if it does not exist.
        """
        name = aliased(cmd_name, self.targets)
        target = self.targets.get(name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        if isinstance(found, click.Group):
            return found
        return HelpfulCommand.of(found, f"{_path(ctx)} {name}".strip())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand. The error for an unknown subcommand says what to try."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and name[:1] != "-":
            hint = advice(_path(ctx), name, self.targets)
            raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record whether the arguments contain `--json`, then parse them.

        With `--json`, errors that occur before click parses the option are printed as JSON, too.
        """
        ctx.meta[JSON_ASKED] = asks_for_json(args)
        with options_advised(_path(ctx), self):
            return super().parse_args(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the arguments, and report errors as `invoke` does.

        `--help` prints its output during this call, so writing to standard output can fail.
        """
        with reported():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand. Errors that the user can fix are reported without a traceback."""
        from js_sync.runtime.handled_at_once import handled_at_once

        logged = shown_log(ctx) if ctx.parent is None else nullcontext()
        with logged, reported(), handled_at_once():
            return super().invoke(ctx)


def _path(ctx: click.Context) -> str:
    """Return the names of the groups of a context, without the program: `stream`, or nothing."""
    names: list[str] = []
    found = ctx
    while found.parent is not None:
        names.insert(0, found.command.name or "")
        found = found.parent
    return " ".join(names)


class LockGroup(LazyGroup):
    """A group that treats an unknown subcommand as the name of a lock for `lock run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with `run` inserted if the first one is not a subcommand."""
        if args and aliased(args[0], self.targets) not in {*self.targets, "-h", "--help"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


class LettersGroup(LazyGroup):
    """A group of which `count` is the subcommand if there is none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with `count` inserted if there are only options."""
        if not args or (args[0].startswith("-") and args[0] not in {"-h", "--help"}):
            args = ["count", *args]
        return super().parse_args(ctx, args)


lock = LockGroup(
    "lock",
    LOCK_COMMANDS,
    "Run a command while holding a lock: twinstream lock NAME -- COMMAND ...\n\n"
    "If a lock has the name of a subcommand, use `lock run`.",
)
kv = LazyGroup("kv", KV_COMMANDS, "Key-value buckets: their settings, keys and changes.")
schedule = LazyGroup("schedule", SCHEDULE_COMMANDS, "Let streams publish later, or repeatedly.")
subject = LazyGroup("subject", SUBJECT_COMMANDS, "Compute subject transforms and partitions.")
dlq = LazyGroup("dlq", DLQ_COMMANDS, "Dead letters: messages that no worker could process.")
objects = LazyGroup("object", OBJECT_COMMANDS, "Store files and other blobs in object stores.")
account = LazyGroup("account", ACCOUNT_COMMANDS, "Show the account of the user.")
group = LazyGroup(
    "group", GROUP_COMMANDS, "Partitioned consumer groups: their settings and members."
)
server = LazyGroup("server", SERVER_COMMANDS, "Show and ping the servers of a system.")
bench = LazyGroup("bench", BENCH_COMMANDS, "Measure how fast a server and this machine are.")
consumer = LazyGroup(
    "consumer",
    CONSUMER_COMMANDS,
    "Show and manage the consumers of a stream.\n\n"
    "`twinstream apply` creates and updates consumers from files, too.",
)
stream = LazyGroup(
    "stream",
    STREAM_COMMANDS,
    "Show and manage the streams of a server.\n\n"
    "`twinstream apply` creates and updates streams from files, too.",
)
pipeline = LazyGroup(
    "pipeline", PIPELINE_COMMANDS, "Land streams as tables with Spark, and maintain the tables."
)
letters = LettersGroup(
    "letters",
    LETTERS_COMMANDS,
    "Messages that did not match their schema: count them, land them again, publish them.\n\n"
    "Without a subcommand, `count` is meant.",
)

twinstream = LazyGroup(
    "twinstream",
    COMMANDS,
    "NATS JetStream from the command line.\n\n"
    "Exit codes: 0 success, 1 problems found or the work failed, 2 wrong usage,"
    " 3 no such object.",
)
twinstream = click.version_option(package_name="twinstream")(
    debug_option(verbose_option(twinstream))
)
options_before(twinstream)
