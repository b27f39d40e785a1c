"""Lines of a text in UTF-8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from .scalars import ValueRefusedError

Row = TypeVar("Row")

BATCH_ROWS = 8192
BATCH_BYTES = 4 << 20
"""Most rows, and bytes, that are converted at a time."""

LONGEST_ROW = 64 << 20
"""Most bytes of a row, which is in memory as a whole."""

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""

OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
"""The byte order marks of UTF-16 and UTF-32."""

PIECE_BYTES = 1 << 20


class RefusedError(ValueError):
    """A text that is not read, by its path and line. Workers send it to the driver, which makes it anew from its arguments."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(path, line, reason)

    def __str__(self) -> str:
        path, line, reason = self.args
        return f"{path}, line {line}: {reason}; an import without --engine ray reads more"


def lines_of(file: pa.NativeFile, path: str) -> Iterator[tuple[int, bytes]]:
    """Yields the lines with their numbers and line feeds, each in UTF-8."""
    for number, line in enumerate(_split(file, path), start=1):
        if number == 1:
            if line.startswith(OTHER_MARKS):
                raise RefusedError(path, 1, "the text is not in UTF-8")
            line = line.removeprefix(MARK)
            if line == b"":
                continue
        try:
            # Not the text is wanted, but whether it is one.
            line.decode()
        except UnicodeDecodeError as error:
            raise RefusedError(path, number, f"byte {error.start + 1} is not UTF-8") from None
        yield number, line


def _split(file: pa.NativeFile, path: str) -> Iterator[bytes]:
    parts: list[bytes] = []
    size, number = 0, 1
    while piece := file.read(PIECE_BYTES):
        *ended, rest = piece.split(b"\n")
        for end in ended:
            yield b"".join([*parts, end, b"\n"])
            parts, size, number = [], 0, number + 1
        parts.append(rest)
        size += len(rest)
        if size > LONGEST_ROW:
            raise RefusedError(path, number, "the line is longer than 64 MiB")
    if size > 0:
        yield b"".join(parts)


def blocks_of(rows: Iterator[tuple[int, int, Row]]) -> Iterator[tuple[list[int], list[Row]]]:
    """Yields rows that are converted at a time, with the numbers of their lines. Each comes with its line and its bytes."""
    lines: list[int] = []
    block: list[Row] = []
    size = 0
    for line, row_bytes, row in rows:
        lines.append(line)
        block.append(row)
        size += row_bytes
        if len(block) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield lines, block
            lines, block, size = [], [], 0
    if block:
        yield lines, block


def batch_of(path: str, lines: list[int], schema: pa.Schema, column_of: Callable[[pa.Field], pa.Array]) -> pa.RecordBatch:
    """Returns the rows of lines by their columns; a value that is refused names its line."""
    arrays = []
    for field in schema:
        try:
            arrays.append(column_of(field))
        except ValueRefusedError as error:
            raise RefusedError(path, lines[error.row], f"column {field.name!r}: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in schema]))
