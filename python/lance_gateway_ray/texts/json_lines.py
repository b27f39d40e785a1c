"""Lines of JSON, each with an object."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from .lines import RefusedError, batch_of, blocks_of, lines_of
from .values import column_of_members, is_readable, parse_json

Row = dict[str, Any]


def open_json_lines(file: pa.NativeFile, path: str, table: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Opens lines of JSON for a table. Only their rows tell which columns they have."""
    schema = pa.schema([field for field in table if is_readable(field)])
    return schema, _batches(file, path, schema)


def _batches(file: pa.NativeFile, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for lines, rows in blocks_of(_rows(file, path, set(schema.names))):
        yield batch_of(path, lines, schema, partial(_column, rows))


def _column(rows: list[Row], field: pa.Field) -> pa.Array:
    return column_of_members([row.get(field.name) for row in rows], field)


def _rows(file: pa.NativeFile, path: str, names: set[str]) -> Iterator[tuple[int, int, Row]]:
    for number, line in lines_of(file, path):
        if line.strip(b" \t\r\n"):
            yield number, len(line), _row(line, number, path, names)


def _row(line: bytes, number: int, path: str, names: set[str]) -> Row:
    text = line.decode().removesuffix("\n").removesuffix("\r")
    if "\r" in text:
        raise RefusedError(path, number, "a carriage return is read before a line feed alone")
    try:
        row = parse_json(text)
    except ValueError as error:
        raise RefusedError(path, number, str(error)) from None
    if not isinstance(row, dict):
        raise RefusedError(path, number, "this is not an object")
    for name in row:
        if name not in names:
            raise RefusedError(path, number, f"the table has no column {name!r} that is filled from texts")
    return row
