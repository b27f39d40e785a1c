"""Texts as rows of a table. A value is what the import of the gateway makes of it, or the file is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from .csv import open_csv
from .json_lines import open_json_lines

FORMATS = ("csv", "tsv", "jsonl")
"""The formats that are texts, whose types are those of the table."""


def open_text(file: pa.NativeFile, path: str, format: str, table: pa.Schema) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Opens a text for a table; returns the columns that it may fill, and its rows."""
    return open_json_lines(file, path, table) if format == "jsonl" else open_csv(file, path, format, table)
