"""Rows of files that an object store does not return, without a server."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileInfo, FileSystemHandler, FileType, PyFileSystem

from tests.soak import LONGEST
from twinstream.spark.pipeline.tables.parquet_files import reader_of

ROUNDS = 100


class NoFiles(FileSystemHandler):
    """A store that has each file, and fails as soon as one is opened."""

    def get_type_name(self) -> str:
        return "no files"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [FileInfo(path, type=FileType.File) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        raise OSError(f"{path} cannot be read")

    def _refused(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refused
    delete_root_dir_contents = delete_file = move = copy_file = _refused
    open_input_stream = open_output_stream = open_append_stream = _refused


def read_in_vain() -> None:
    store, names = PyFileSystem(NoFiles()), [f"{at}.parquet" for at in range(8)]
    for _ in range(ROUNDS):
        rows = ds.dataset(names, pa.schema({"id": pa.int64()}), "parquet", filesystem=store)
        try:
            reader_of(rows).read_all()
        except OSError:
            continue
        raise AssertionError("a file was read")


def test_files_that_cannot_be_opened_end_a_read() -> None:
    """A hang would hold Python's lock, so the reads are in a process of their own."""
    process = multiprocessing.get_context("spawn").Process(target=read_in_vain)
    process.start()
    process.join(LONGEST)
    if process.is_alive():
        process.kill()
    process.join(LONGEST)
    assert process.exitcode == 0
