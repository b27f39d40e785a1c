"""Segments of indices as the metadata that the gateway commits."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lance.dataset import Index, LanceDataset

from .gateway import Json


def segment_json(index: Index) -> Json:
    """Returns the metadata of a segment that was written and not committed."""
    if index.index_details is None or index.base_id is not None:
        raise ValueError(f"the segment {index.uuid} has no details, or files outside of the table")
    type_url, details = index.index_details
    return {
        "uuid": index.uuid,
        "fields": list(index.fields),
        "dataset_version": index.dataset_version,
        "fragment_ids": sorted(index.fragment_ids),
        "index_version": index.index_version,
        "type_url": type_url,
        "details": base64.b64encode(bytes(details)).decode(),
        "files": [{"path": file.path, "size": file.size_bytes} for file in index.files or []],
    }


@contextmanager
def collecting_segments() -> Iterator[list[Index]]:
    """Has `commit_existing_index_segments` collect segments in this process instead of committing them."""
    collected: list[Index] = []

    def collect(dataset: LanceDataset, index_name: str, column: str, segments: Sequence[Any]) -> LanceDataset:
        collected.extend(segments)
        return dataset

    commit = LanceDataset.commit_existing_index_segments
    LanceDataset.commit_existing_index_segments = collect
    try:
        yield collected
    finally:
        LanceDataset.commit_existing_index_segments = commit
