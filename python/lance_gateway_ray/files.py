"""Files of rows, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

BATCH_ROWS = 8192
"""The number of rows that are read at once."""


class RowFile:
    """An open file of rows."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], rows: int | None) -> None:
        self.schema = schema
        self.batches = batches
        self.rows = rows


@contextmanager
def open_rows(system: fs.FileSystem, path: str, format: str) -> Iterator[RowFile]:
    """Opens a file of a format; a file of another one is refused by its path."""
    with system.open_input_file(path) as file:
        try:
            found = OPENERS[format](file, path)
        except pa.ArrowException as error:
            raise ValueError(f"{path} is not a file of the format {format}: {error}") from None
        yield found


def _parquet(file: pa.NativeFile, path: str) -> RowFile:
    # Without extensions, a value of JSON or a UUID is what the file stores.
    opened = parquet.ParquetFile(file, arrow_extensions_enabled=False)
    for at in range(len(opened.schema)):
        if opened.schema.column(at).physical_type == "INT96":
            name = opened.schema.column(at).path
            raise ValueError(f"{path}: column {name!r} has times of 96 bits, of which some cannot be kept exactly")
    batches = opened.iter_batches(batch_size=BATCH_ROWS)
    return RowFile(opened.schema_arrow, batches, opened.metadata.num_rows)


def _arrow(file: pa.NativeFile, _: str) -> RowFile:
    opened = ipc.open_file(file)
    batches = (opened.get_batch(at) for at in range(opened.num_record_batches))
    return RowFile(opened.schema, batches, None)


def _arrows(file: pa.NativeFile, _: str) -> RowFile:
    opened = ipc.open_stream(file)
    return RowFile(opened.schema, iter(opened), None)


OPENERS = {"parquet": _parquet, "arrow": _arrow, "arrows": _arrows}
