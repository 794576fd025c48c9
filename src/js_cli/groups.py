"""The command groups. Subcommands are imported when they are used, so that help is instant."""

from __future__ import annotations

import importlib
from typing import Any, Final

import click

from js_cli.failures import JSON_ASKED, reported
from js_cli.interrupts import asks_for_json
from js_cli.logs import verbose_option

COMMANDS: Final = {
    "account": "js_cli.groups:account",
    "apply": "js_cli.apply:apply",
    "backup": "js_cli.backup:backup",
    "consume": "js_cli.consume:consume",
    "consumer": "js_cli.groups:consumer",
    "demo": "js_cli.demo.command:demo",
    "dlq": "js_cli.groups:dlq",
    "events": "js_cli.events:events",
    "get": "js_cli.get:get",
    "health": "js_cli.health:health",
    "lock": "js_cli.groups:lock",
    "object": "js_cli.groups:objects",
    "permissions": "js_cli.permissions:permissions",
    "pipeline": "js_cli.groups:pipeline",
    "plan": "js_cli.plan:plan",
    "pub": "js_cli.pub:pub",
    "restore": "js_cli.backup:restore",
    "schedule": "js_cli.groups:schedule",
    "schema": "js_cli.schema:schema",
    "size": "js_cli.size:size",
    "stream": "js_cli.groups:stream",
    "subject": "js_cli.groups:subject",
    "validate": "js_cli.validate:validate",
}
DLQ_COMMANDS: Final = {
    "discard": "js_cli.dead_letters:discard",
    "ls": "js_cli.dead_letters:list_letters",
    "replay": "js_cli.dead_letters:replay",
    "run": "js_cli.dead_letters:run",
    "show": "js_cli.dead_letters:show",
}
LOCK_COMMANDS: Final = {
    "ls": "js_cli.lock_list:ls",
    "release": "js_cli.lock_list:release",
    "run": "js_cli.lock_run:run",
}
OBJECT_COMMANDS: Final = {
    "add": "js_cli.object_store:add",
    "del": "js_cli.object_content:delete",
    "edit": "js_cli.object_store:edit",
    "get": "js_cli.object_content:get",
    "info": "js_cli.object_content:info",
    "ls": "js_cli.object_content:ls",
    "put": "js_cli.object_content:put",
    "seal": "js_cli.object_store:seal",
    "sweep": "js_cli.object_store:sweep",
    "watch": "js_cli.object_content:watch",
}
PIPELINE_COMMANDS: Final = {
    "compact": "js_cli.pipeline.compact:compact",
    "replay": "js_cli.pipeline.replay:replay",
    "report": "js_cli.pipeline.report:report",
    "run": "js_cli.pipeline.run:run",
    "spec": "js_cli.pipeline.spec:spec",
    "vacuum": "js_cli.pipeline.vacuum:vacuum",
    "verify": "js_cli.pipeline.verify:verify",
}
STREAM_COMMANDS: Final = {
    "info": "js_cli.stream_info:info",
    "ls": "js_cli.stream_list:ls",
    "peer-remove": "js_cli.stream_replicas:peer_remove",
    "purge": "js_cli.stream_remove:purge",
    "rm": "js_cli.stream_remove:rm",
    "rmm": "js_cli.stream_remove:rmm",
    "seal": "js_cli.stream_remove:seal",
    "step-down": "js_cli.stream_replicas:step_down",
    "subjects": "js_cli.stream_subjects:subjects",
}
SCHEDULE_COMMANDS: Final = {
    "add": "js_cli.schedule_add:add",
    "cancel": "js_cli.schedule_cancel:cancel",
    "ls": "js_cli.schedule_list:ls",
    "next": "js_cli.schedule_next:next_times",
    "show": "js_cli.schedule_list:show",
}
SUBJECT_COMMANDS: Final = {
    "partition": "js_cli.subject:partition",
    "transform": "js_cli.subject:transform",
}
CONSUMER_COMMANDS: Final = {
    "info": "js_cli.consumer_info:info",
    "ls": "js_cli.consumer_list:ls",
    "pause": "js_cli.consumer_control:pause",
    "reset": "js_cli.consumer_control:reset",
    "resume": "js_cli.consumer_control:resume",
    "rm": "js_cli.consumer_control:rm",
    "step-down": "js_cli.consumer_control:step_down",
    "unpin": "js_cli.consumer_control:unpin",
}
ACCOUNT_COMMANDS: Final = {"info": "js_cli.account_info:info"}


class LazyGroup(click.Group):
    """A group whose subcommands are named as ``module:attribute``.

    Errors of the SDK that a subcommand raises end as one line on standard error.
    """

    targets: dict[str, str]

    def __init__(self, name: str, targets: dict[str, str], help: str) -> None:
        settings = {"help_option_names": ["-h", "--help"]}
        super().__init__(name=name, help=help, context_settings=settings)
        self.targets = targets

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand ``cmd_name``."""
        target = self.targets.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; for a word that is none, name those that there are."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            names = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"{error.message} There are: {names}", ctx) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether JSON is asked for, until the options of the subcommand are read."""
        ctx.meta[JSON_ASKED] = asks_for_json(args)
        return super().parse_args(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the arguments; ``--help``, which does its work here, fails as subcommands do."""
        with reported():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand and turn errors of the SDK into one readable line."""
        with reported():
            return super().invoke(ctx)


class LockGroup(LazyGroup):
    """A group that takes a word that is no subcommand for the lock to run a command under."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` in front of a name, or of its options."""
        if args and args[0] not in {*self.targets, "-h", "--help"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


lock = LockGroup(
    "lock",
    LOCK_COMMANDS,
    "Run a command while holding a lock: twinstream lock NAME -- COMMAND ...\n\n"
    "If a lock has the name of a subcommand, use `lock run`.",
)
schedule = LazyGroup(
    "schedule", SCHEDULE_COMMANDS, "Let streams publish later, or again and again."
)
subject = LazyGroup("subject", SUBJECT_COMMANDS, "See what servers make of subjects.")
dlq = LazyGroup("dlq", DLQ_COMMANDS, "Dead letters: messages that nobody could work on.")
objects = LazyGroup("object", OBJECT_COMMANDS, "Store files and other blobs in object stores.")
account = LazyGroup("account", ACCOUNT_COMMANDS, "Look at the account of the user.")
consumer = LazyGroup("consumer", CONSUMER_COMMANDS, "Look after the consumers of a stream.")
stream = LazyGroup("stream", STREAM_COMMANDS, "Look after the streams of a server.")
pipeline = LazyGroup(
    "pipeline", PIPELINE_COMMANDS, "Land streams as tables with Spark, and look after the tables."
)

twinstream = LazyGroup(
    "twinstream",
    COMMANDS,
    "NATS JetStream from the command line.\n\n"
    "Exit codes: 0 all well, 1 problems found or the work failed, 2 wrong usage,"
    " 3 no such object.",
)
twinstream = click.version_option(package_name="twinstream")(verbose_option(twinstream))
