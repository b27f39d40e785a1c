"""The kinds of work that the driver does."""

from __future__ import annotations

from collections.abc import Callable

from .gateway import Json, Task
from .indices import create_index

Result = Json

KINDS: dict[str, Callable[[Task], Result]] = {"create_index": create_index}
