"""The JSON reader."""

from typing import Literal

from . import BufferReader, Schema, Table

class ReadOptions:
    def __init__(self, *, use_threads: bool, block_size: int) -> None: ...

class ParseOptions:
    def __init__(
        self,
        *,
        explicit_schema: Schema,
        unexpected_field_behavior: Literal["ignore", "infer", "error"],
    ) -> None: ...

def read_json(
    input_file: BufferReader, read_options: ReadOptions, parse_options: ParseOptions
) -> Table: ...
