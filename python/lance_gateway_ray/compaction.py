"""Compactions: workers rewrite fragments, and a commit puts them in place of the former ones and remaps the indices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ray
from lance.dataset import LanceDataset
from lance.optimize import Compaction, CompactionTask, RewriteResult

from .commits import GatewayCommits, open_through
from .gateway import Gateway, Json, RefusedError, Task
from .spread import spread

ATTEMPTS = 10
"""How often a commit is tried while others commit at the same moment; each attempt reads what they have changed."""


def compact_table(task: Task, gateway: Gateway) -> Json:
    """Joins the small fragments of a table, and removes its deleted rows from the files."""
    dataset = open_through(GatewayCommits(gateway, task), task)
    plan = Compaction.plan(dataset, {})
    if plan.num_tasks() == 0:
        return {"fragments_removed": 0, "fragments_added": 0}
    common = (task.uri, task.storage_options)
    rewrites = spread(gateway, "rewriting fragments", _rewrite, plan.tasks, task.workers, *common)
    gateway.progress("committing")
    return Commits(task, gateway).commit([Rewrite(each) for each in rewrites])


class Rewrite:
    """Fragments that workers have rewritten together, which others may have changed since."""

    def __init__(self, result: RewriteResult) -> None:
        self._found: Json = json.loads(result.json())
        self.read_version = result.read_version
        self.ids: list[int] = [each["id"] for each in self._found["original_fragments"]]
        self.files = {file["path"] for each in self._found["new_fragments"] for file in each["files"]}

    def survives(self, present: set[int]) -> bool:
        """Whether it can be committed to a version with these fragments. Addresses for indices are those of all fragments."""
        gone = [each for each in self.ids if each not in present]
        return not gone or (len(gone) < len(self.ids) and self._found.get("row_addrs") is None)

    def on(self, version: int, present: set[int]) -> RewriteResult:
        """Returns it as if it had read a version; the gateway looks for what others have changed before that."""
        kept = [each for each in self._found["original_fragments"] if each["id"] in present]
        return RewriteResult.from_json(json.dumps({**self._found, "read_version": version, "original_fragments": kept}))


class Commits:
    """Commits of rewritten fragments beside the changes of others."""

    def __init__(self, task: Task, gateway: Gateway) -> None:
        self._task = task
        self._gateway = gateway
        self._done: Json = {"fragments_removed": 0, "fragments_added": 0}

    def commit(self, rewrites: Sequence[Rewrite]) -> Json:
        """Commits what others have not replaced; returns the counts. A failure is one only if nothing was committed."""
        failure = self._commit(rewrites)
        if failure is not None and self._done["fragments_removed"] == 0:
            raise failure
        return self._done

    def _commit(self, rewrites: Sequence[Rewrite]) -> Exception | None:
        """Commits all at once, or else each half by itself: others may have changed a few fragments in another way."""
        failure = self._try(rewrites)
        if failure is None or len(rewrites) < 2:
            return failure
        print(f"{len(rewrites)} rewrites are committed in two parts: {failure}", flush=True)
        middle = len(rewrites) // 2
        first, second = self._commit(rewrites[:middle]), self._commit(rewrites[middle:])
        return first or second

    def _try(self, rewrites: Sequence[Rewrite]) -> Exception | None:
        failure: Exception | None = None
        last = 0
        for _ in range(ATTEMPTS):
            commits = GatewayCommits(self._gateway, self._task)
            dataset = open_through(commits, self._task)
            fragments = [each.metadata for each in dataset.get_fragments()]
            if failure is not None and any(file.path in rewrites[0].files for each in fragments for file in each.files):
                # The answer to the commit was lost.
                self._count(sum(len(each.ids) for each in rewrites), sum(len(each.files) for each in rewrites))
                return None
            # The number after the last one is that of the ids that the last attempt has reserved.
            if isinstance(failure, RefusedError) or (failure is not None and dataset.version <= last + 1):
                return failure
            present = {each.id for each in fragments}
            left = [each for each in rewrites if each.survives(present)]
            if not left:
                return failure or ValueError("others have replaced all fragments that were rewritten")
            commits.rewrite = {
                "read_version": left[0].read_version,
                "groups": [{"fragment_ids": each.ids} for each in left],
            }
            last = dataset.version
            try:
                made = Compaction.commit(dataset, [each.on(last, present) for each in left])
            except Exception as error:
                failure = commits.refusal or error
                continue
            self._count(made.fragments_removed, made.fragments_added)
            return None
        return failure

    def _count(self, removed: int, added: int) -> None:
        self._done["fragments_removed"] += removed
        self._done["fragments_added"] += added


@ray.remote
def _rewrite(part: CompactionTask, uri: str, storage_options: dict[str, str]) -> RewriteResult:
    dataset: Any = LanceDataset(uri, storage_options=storage_options)
    return part.execute(dataset)
