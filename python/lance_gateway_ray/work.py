"""The kinds of work that the driver does."""

from __future__ import annotations

from collections.abc import Callable

from .compaction import compact_table
from .gateway import Gateway, Json, Task
from .imports import import_files
from .indices import create_index

Result = Json

KINDS: dict[str, Callable[[Task, Gateway], Result]] = {
    "compact_table": compact_table,
    "create_index": create_index,
    "import_files": import_files,
}
