"""Step 1: check the configuration files without a server, then create streams and a consumer."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from examples.demo.scene import CONSUMER, EVENTS, STREAM, Scene
from js_sync import JetStream
from twinstream.cli.failures import Failure
from twinstream.cli.problems import print_problems
from twinstream.models import ConsumerConfig, StreamConfig, decode
from twinstream.models.files.config_files import FileConfig, FileConfigs, load_configs

GOOD: Final = ("advisories.yaml", "stream.yaml", "consumer.yaml")
BROKEN: Final = "broken.yaml"


def check_and_create(scene: Scene, jet: JetStream) -> None:
    """Create the streams and the consumer of the valid files, and show why `BROKEN` is invalid."""
    folder = scene.settings.examples
    found = load_configs([folder / name for name in GOOD])
    if found.errors:
        print_problems(scene.console, found.errors, indent="  ")
        raise Failure("the examples of the demo have problems; nothing was created")
    for config in found.configs:
        _created(scene, jet, config)
    _show_broken(scene, load_configs(folder / BROKEN))


def _created(scene: Scene, jet: JetStream, config: FileConfig) -> None:
    if config.kind == "stream":
        stream = jet.create_stream(decode(config.members, StreamConfig, strict=True))
        what = f"stream {stream.name} on {', '.join(stream.info().config.subjects or ())}"
        assert stream.name in (STREAM, EVENTS)
    else:
        scene.consumer_config = decode(config.members, ConsumerConfig, strict=True)
        consumer = jet.create_consumer(config.stream_name, scene.consumer_config)
        what = f"consumer {consumer.name} of {consumer.stream_name}"
        assert (consumer.stream_name, consumer.name) == (STREAM, CONSUMER)
    name = Path(config.file).name
    scene.console.print(f"  [green]✓[/] {name}: no problem; created {what}", soft_wrap=True)


def _show_broken(scene: Scene, found: FileConfigs) -> None:
    name = Path(BROKEN).name
    if not found.errors:
        raise Failure(f"{name} should be refused, and was not")
    scene.console.print(f"  [red]✗[/] {name} never reaches the server:")
    print_problems(scene.console, found.problems, indent="    ")
