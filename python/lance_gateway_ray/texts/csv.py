"""CSV, of which only the strict form of RFC 4180 is read: quotes are around whole cells, and all rows have the same number of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.csv as csv

from .lines import LONGEST_ROW, MARK, RefusedError, batch_of, blocks_of, lines_of
from .values import column_of_cells, is_readable

SEPARATORS = (b"\t", b",", b";", b"|")
"""What may be between cells: the first one of these that is in the line of names."""

QUOTED = re.compile(rb'"[^"]*"')
"""Text between two quotes, of which a cell with doubled quotes has several in turn. A pattern for whole cells takes gigabytes for a long one."""

MOST_OTHERS = 1000
"""Most names besides those of the table that are looked at: each one is a column of pyarrow for a moment."""


@dataclass(frozen=True)
class Form:
    """The separator of a text, and what the outline of a row is with it."""

    separator: bytes
    row: re.Pattern[bytes]

    def count(self, outline: bytes) -> int:
        """Returns the number of cells of a row."""
        return outline.count(self.separator) + 1

    def read(self, rows: bytes, names: list[str]) -> pa.Table:
        """Parses rows, whose cells become texts: null for a cell without anything, and not for two quotes."""
        columns = {name: pa.string() for name in names}
        return csv.read_csv(
            # A mark is skipped once, and more of them are text.
            pa.BufferReader(MARK + rows),
            read_options=csv.ReadOptions(use_threads=False, column_names=names, block_size=len(rows) + 64),
            parse_options=csv.ParseOptions(
                delimiter=self.separator.decode(), newlines_in_values=True, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=columns, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )


def outline_of(row: bytes) -> bytes:
    """Returns a row with a single quote instead of each text between two."""
    return QUOTED.sub(b'"', row)


def form_of(separator: bytes) -> Form:
    """Returns the form of a text with a separator."""
    cell = rb'(?:"+|[^"\r\n%s]*)' % re.escape(separator)
    return Form(separator, re.compile(rb"%s(?:%s%s)*(?:\r?\n)?" % (cell, re.escape(separator), cell)))


def open_csv(file: pa.NativeFile, path: str, format: str, table: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Opens CSV, or TSV, for a table."""
    rows = _rows_of(file, path)
    for line, head in rows:
        if not _is_blank(head):
            break
    else:
        raise RefusedError(path, 1, "the file is empty")
    plain = outline_of(head)
    form = form_of(next((each for each in SEPARATORS if format == "csv" and each in plain), b"," if format == "csv" else b"\t"))
    cells = form.count(plain)
    if cells > len(table) + MOST_OTHERS:
        raise RefusedError(path, line, f"{cells} columns are named, and the table has {len(table)}")
    _check(form, path, line, head, cells)
    names = _names(form, path, line, head, cells)
    known = set(table.names)
    for name in names:
        if name not in known:
            raise RefusedError(path, line, f"the table has no column {name!r}")
        if not is_readable(table.field(name)):
            raise RefusedError(path, line, f"column {name!r} is not filled from texts")
    schema = pa.schema([table.field(name) for name in names])
    return schema, _batches(rows, form, path, schema)


def _rows_of(file: pa.NativeFile, path: str) -> Iterator[tuple[int, bytes]]:
    """Yields rows with the numbers of their first lines: a line feed between quotes ends none."""
    lines = lines_of(file, path)
    for first, line in lines:
        row, quotes = bytearray(), line.count(b'"')
        while quotes % 2 == 1:
            row += line
            _, line = next(lines, (0, b""))
            if line == b"":
                raise RefusedError(path, first, "a quote of this row is not closed")
            quotes += line.count(b'"')
            if len(row) + len(line) > LONGEST_ROW:
                raise RefusedError(path, first, "the row is longer than 64 MiB, or a quote of it is not closed")
        # A line alone is not copied.
        yield first, bytes(row + line) if row else line


def _is_blank(row: bytes) -> bool:
    return row in (b"\n", b"\r\n")


def _check(form: Form, path: str, line: int, row: bytes, cells: int) -> None:
    """Refuses a row of another form."""
    # Only rows of few cells are matched: it takes gigabytes for millions.
    outline = outline_of(row)
    if form.count(outline) != cells:
        raise RefusedError(path, line, f"the row has {form.count(outline)} cells, and the first line names {cells}")
    if form.row.fullmatch(outline) is None:
        reason = "quotes are read around whole cells alone, and carriage returns before line feeds"
        raise RefusedError(path, line, reason)


def _names(form: Form, path: str, line: int, head: bytes, cells: int) -> list[str]:
    places = [f"c{at}" for at in range(cells)]
    names = [column[0].as_py() for column in form.read(head, places).columns]
    used: set[str] = set()
    for name in names:
        # The import of the gateway gives such columns other names.
        if name is None or name.strip().strip("\ufeff") != name or name == "" or name in used:
            raise RefusedError(path, line, f"{name!r} is not read as the name of a column")
        used.add(name)
    return names


def _batches(rows: Iterator[tuple[int, bytes]], form: Form, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for lines, block in blocks_of(_whole_rows(rows, form, path, len(schema))):
        texts = form.read(b"".join(block), schema.names)
        if texts.num_rows != len(lines):
            raise RefusedError(path, lines[0], f"{len(lines)} rows were read as {texts.num_rows}")
        yield batch_of(path, lines, schema, partial(_column, texts))


def _column(texts: pa.Table, field: pa.Field) -> pa.Array:
    return column_of_cells(texts.column(field.name).combine_chunks(), field)


def _whole_rows(rows: Iterator[tuple[int, bytes]], form: Form, path: str, cells: int) -> Iterator[tuple[int, int, bytes]]:
    for line, row in rows:
        if _is_blank(row) and cells > 1:
            continue
        _check(form, path, line, row, cells)
        # Without a line feed, pyarrow reads an empty last cell after quotes as two quotes.
        yield line, len(row), row if row.endswith(b"\n") else row + b"\n"
