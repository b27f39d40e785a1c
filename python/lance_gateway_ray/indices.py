"""Builds of indices on all workers. The segments come back as metadata; the gateway commits them."""

from __future__ import annotations

import sys
from typing import Any

import lance_ray
import ray
from lance.dataset import Index, LanceDataset
from ray.exceptions import RayError

from .gateway import Gateway, Json, Task
from .sampling import sampling_existing_rows
from .segments import collecting_segments, segment_json
from .spread import passing_cause, spread

SPREAD = frozenset({"BTREE", "BITMAP", "INVERTED", "ZONEMAP"})
"""Types of scalar indices that lance-ray spreads over workers itself."""

BUILDS = 3
"""How often lance-ray builds an index whose workers die; Ray does not repeat the calls of a pool."""


def create_index(task: Task, gateway: Gateway) -> Json:
    """Builds the segments of an index."""
    details = task.details
    index_type = details["index_type"]
    common: Json = {
        "column": details["column"],
        "index_type": index_type,
        "name": details["name"],
        "replace": True,
        "num_workers": task.workers,
        "storage_options": task.storage_options,
        **details.get("parameters", {}),
    }
    if not details["is_vector"] and index_type not in SPREAD:
        return {"segments": [segment_json(index) for index in build_segments(task, gateway, common)]}
    segments = build_in_pool(task, common)
    if index_type == "INVERTED":
        where = (task.uri, task.storage_options)
        segments = spread(gateway, "finishing segments", _finish, segments, task.workers, *where)
    return {"segments": [segment_json(index) for index in segments]}


def build_in_pool(task: Task, options: Json) -> list[Index]:
    """Builds the segments of an index with lance-ray."""
    build = lance_ray.create_index if task.details["is_vector"] else lance_ray.create_scalar_index
    builds = 0
    while True:
        builds += 1
        try:
            with collecting_segments() as segments, sampling_existing_rows():
                build(task.uri, **options)
            return segments
        except Exception as error:
            if builds == BUILDS or not isinstance(passing_cause(error), RayError):
                raise
            print(f"the index is built once more: {error}", file=sys.stderr)


def build_segments(task: Task, gateway: Gateway, options: Json) -> list[Index]:
    """Builds segments of the types that lance-ray does not spread, one on each worker."""
    options = {key: value for key, value in options.items() if key != "num_workers"}
    dataset = LanceDataset(task.uri, storage_options=task.storage_options)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    if not fragments:
        raise ValueError("the table has no rows")
    count = min(task.workers, len(fragments))
    parts = [fragments[part::count] for part in range(count)]
    return spread(gateway, "building segments", _build_segment, parts, count, task.uri, options)


def finish_segment(index: Index, uri: str, storage_options: dict[str, str]) -> Index:
    """Gives a segment of a full-text index the files that it is read by; pylance does so when it commits one itself."""
    dataset = LanceDataset(uri, version=index.dataset_version, storage_options=storage_options)
    return dataset.merge_existing_index_segments([index])


_finish = ray.remote(finish_segment)


@ray.remote
def _build_segment(fragment_ids: list[int], uri: str, options: dict[str, Any]) -> Index:
    dataset = LanceDataset(uri, storage_options=options["storage_options"])
    return dataset.create_index_uncommitted(fragment_ids=fragment_ids, **options)
