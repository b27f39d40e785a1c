"""Files of rows, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

from .texts import FORMATS, open_text

BATCH_ROWS = 8192
"""The number of rows that are read at once."""

END_MARKS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")
"""The marks at the end of a stream: today's, and that of writers before Arrow 0.15."""


class RowFile:
    """An open file of rows."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], rows: int | None) -> None:
        self.schema = schema
        self.batches = batches
        self.rows = rows


@contextmanager
def open_rows(system: fs.FileSystem, path: str, format: str, table: pa.Schema | None = None) -> Iterator[RowFile]:
    """Opens a file of a format; a file of another one is refused by its path. Texts are read for the columns of a table."""
    with system.open_input_file(path) as file:
        with _naming(path, f"is not a file of the format {format}"):
            if format in FORMATS:
                if table is None:
                    raise ValueError(f"a table from {format} needs the types of its columns")
                found = RowFile(*open_text(file, path, format, table), None)
            else:
                found = OPENERS[format](file, path)
        yield RowFile(found.schema, _whole(found, path), found.rows)


@contextmanager
def _naming(path: str, fault: str) -> Iterator[None]:
    """Refuses a corrupt file by its path. Failures of the network pass as they are, and the work may be repeated."""
    try:
        yield
    except OSError as error:
        # pyarrow reports corrupt files as errors without a number, and so the answers of a bucket, which it names by their text alone.
        if error.errno is not None or "AWS Error" in str(error):
            raise
        raise ValueError(f"{path} {fault}: {error}") from None
    except pa.ArrowException as error:
        raise ValueError(f"{path} {fault}: {error}") from None


def _whole(file: RowFile, path: str) -> Iterator[pa.RecordBatch]:
    """Yields all batches, each of which is sound, and as many rows as the file says."""
    rows = 0
    while True:
        with _naming(path, "is corrupt"):
            batch = next(file.batches, None)
            if batch is None:
                break
            batch.validate(full=True)
        rows += batch.num_rows
        yield batch
    if file.rows is not None and file.rows != rows:
        raise ValueError(f"{path} is corrupt: it has {rows} rows, and says {file.rows}")


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


def _arrows(file: pa.NativeFile, path: str) -> RowFile:
    opened = ipc.open_stream(file)
    return RowFile(opened.schema, _to_the_mark(opened, file, path), None)


def _to_the_mark(opened: ipc.RecordBatchStreamReader, file: pa.NativeFile, path: str) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a stream. The reader takes the end of a file for that of a stream, and ignores what comes after a stream."""
    while True:
        end = file.tell()
        try:
            batch = opened.read_next_batch()
        except StopIteration:
            break
        yield batch
    file.seek(end)
    if file.read(len(END_MARKS[0]) + 1) not in END_MARKS:
        raise ValueError(f"{path} is not one whole stream: its end has no mark, or more comes after it")


OPENERS = {"parquet": _parquet, "arrow": _arrow, "arrows": _arrows}
