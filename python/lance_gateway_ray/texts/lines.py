"""Lines of a text in UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

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
    """A text that is not read, by its path and line."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}; an import without --engine ray reads more")


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
