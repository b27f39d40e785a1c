"""Lines of JSON, each with an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from .lines import BATCH_BYTES, BATCH_ROWS, RefusedError, lines_of
from .values import ValueRefusedError, column_of_members, is_readable, parse_json

Row = dict[str, Any]


def open_json_lines(file: pa.NativeFile, path: str, table: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Opens lines of JSON for a table. Only their rows tell which columns they have."""
    schema = pa.schema([field for field in table if is_readable(field)])
    return schema, _batches(file, path, schema)


def _batches(file: pa.NativeFile, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows: list[Row] = []
    lines: list[int] = []
    size = 0
    names = set(schema.names)
    for number, line in lines_of(file, path):
        if not line.strip(b" \t\r\n"):
            continue
        rows.append(_row(line, number, path, names))
        lines.append(number)
        size += len(line)
        if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(rows, lines, path, schema)
            rows, lines, size = [], [], 0
    if rows:
        yield _batch(rows, lines, path, schema)


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


def _batch(rows: list[Row], lines: list[int], path: str, schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        try:
            arrays.append(column_of_members([row.get(field.name) for row in rows], field))
        except ValueRefusedError as error:
            raise RefusedError(path, lines[error.row], f"column {field.name!r}: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in schema]))
