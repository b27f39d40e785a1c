"""Full refreshes of materialized views: workers read the source at one version and write fragments, which the gateway puts in place of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import ray
from lance.dataset import LanceDataset
from lance.fragment import FragmentMetadata, write_fragments

from .gateway import Gateway, Json, Task
from .spread import SizedFragment, split_fragments, spread


@dataclass(frozen=True)
class Query:
    """The rows of a view."""

    source_uri: str
    source_version: int
    view_version: int
    columns: dict[str, str]
    """The expressions of the columns by their names; empty for the columns of the source by their names in the view."""
    filter: str | None
    source_options: dict[str, str]


def refresh_view(task: Task, gateway: Gateway) -> Json:
    """Writes all rows of a view, and reports their fragments."""
    query = query_of(task.details)
    parts = split_fragments(open_source(query), task.workers)
    common = (task.uri, task.storage_options, query)
    written = spread(gateway, "computing the rows of the view", _write, parts, task.workers, *common)
    gateway.progress("committing")
    fragments = [described(fragment) for part in written for fragment in part]
    return {
        "fragments": fragments,
        "source_version": query.source_version,
        "view_version": query.view_version,
        # The gateway recognizes by it what was read.
        "state": task.details["state"],
    }


def query_of(details: Json) -> Query:
    """Returns the query that a task describes."""
    return Query(
        source_uri=details["source_uri"],
        source_version=int(details["source_version"]),
        view_version=int(details["view_version"]),
        columns={each["name"]: each["value"] for each in details["columns"]},
        filter=details.get("filter"),
        source_options=details.get("source_options", {}),
    )


def open_source(query: Query) -> Any:
    """Opens the source at the version of the query."""
    return LanceDataset(query.source_uri, version=query.source_version, storage_options=query.source_options)


def write_rows(
    parts: Sequence[SizedFragment], uri: str, storage_options: dict[str, str], query: Query
) -> list[FragmentMetadata]:
    """Writes the rows from some fragments of the source below the place of the view; they are not part of it yet."""
    source = open_source(query)
    view: Any = LanceDataset(uri, version=query.view_version, storage_options=storage_options)
    schema = view.schema
    found = source.scanner(
        columns=query.columns or schema.names,
        filter=query.filter,
        fragments=[source.get_fragment(part.id) for part in parts],
        # Without an index, the condition alone decides.
        use_scalar_index=False,
    )
    batches = conform(found.to_batches(), schema)
    first = next(batches, None)
    if first is None:
        return []
    reader = pa.RecordBatchReader.from_batches(schema, chain([first], batches))
    return write_fragments(reader, view, schema=schema, mode="append", storage_options=storage_options)


def conform(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the batches that have rows with the schema of the view, from which they differ in metadata alone."""
    for batch in batches:
        if batch.num_rows == 0:
            continue
        for at, own in enumerate(schema):
            values = batch.column(at)
            if not values.type.equals(own.type):
                raise ValueError(f"the column {own.name!r} of the query is {values.type}, and of the view {own.type}")
            if values.null_count > 0 and not own.nullable:
                raise ValueError(f"the column {own.name!r} of the view is not nullable, and the query has a null")
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def described(fragment: FragmentMetadata) -> Json:
    """Returns a fragment as the gateway reads it."""
    files = [
        {
            "path": file.path,
            "fields": list(file.fields),
            "column_indices": list(file.column_indices),
            "file_major_version": file.file_major_version,
            "file_minor_version": file.file_minor_version,
            "file_size_bytes": file.file_size_bytes,
        }
        for file in fragment.files
    ]
    return {"files": files, "physical_rows": fragment.physical_rows}


_write = ray.remote(write_rows)
