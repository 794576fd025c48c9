"""The environment of programs that are traced."""

from __future__ import annotations

import os
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a program in which the entry point of this tree is installed."""
    paths = [str(ROOT / "src"), str(ROOT)]
    group = "opentelemetry_instrumentor"
    if not entry_points(group=group, name="twinstream"):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        folder = tmp_path / "entry_point-0.dist-info"
        folder.mkdir()
        folder.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: entry-point\n")
        target = project["entry-points"][group]["twinstream"]
        folder.joinpath("entry_points.txt").write_text(f"[{group}]\ntwinstream = {target}\n")
        paths.append(str(tmp_path))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        # The collector may be busy. The first is in seconds, the others in milliseconds.
        "OTEL_EXPORTER_OTLP_TIMEOUT": "300",
        "OTEL_BSP_EXPORT_TIMEOUT": "300000",
        "OTEL_METRIC_EXPORT_TIMEOUT": "300000",
        "OTEL_SERVICE_NAME": "shop",
    }
