"""Compactions: workers rewrite fragments, and one commit puts them in place of the former ones and remaps the indices."""

from __future__ import annotations

from typing import Any

import ray
from lance.dataset import LanceDataset
from lance.optimize import Compaction, CompactionTask, RewriteResult

from .commits import through
from .gateway import Gateway, Json, Task
from .spread import spread


def compact_table(task: Task, gateway: Gateway) -> Json:
    """Joins the small fragments of a table, and removes its deleted rows from the files."""
    dataset = LanceDataset(task.uri, storage_options=task.storage_options, **through(gateway, task))
    plan = Compaction.plan(dataset, {})
    if plan.num_tasks() == 0:
        return {"fragments_removed": 0, "fragments_added": 0}
    common = (task.uri, task.storage_options)
    rewrites = spread(gateway, "rewriting fragments", _rewrite, plan.tasks, task.workers, *common)
    gateway.progress("committing")
    metrics = Compaction.commit(dataset, rewrites)
    return {"fragments_removed": metrics.fragments_removed, "fragments_added": metrics.fragments_added}


@ray.remote
def _rewrite(part: CompactionTask, uri: str, storage_options: dict[str, str]) -> RewriteResult:
    dataset: Any = LanceDataset(uri, storage_options=storage_options)
    return part.execute(dataset)
