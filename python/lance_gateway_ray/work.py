"""The kinds of work that the driver does."""

from __future__ import annotations

from collections.abc import Callable

from .backfill import backfill_column
from .compaction import compact_table
from .gateway import Gateway, Json, Task
from .imports import import_files
from .indices import create_index
from .refresh import refresh_view

Result = Json

KINDS: dict[str, Callable[[Task, Gateway], Result]] = {
    "backfill_column": backfill_column,
    "compact_table": compact_table,
    "create_index": create_index,
    "import_files": import_files,
    "refresh_view": refresh_view,
}
