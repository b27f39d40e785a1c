"""Backfills: workers compute a column fragment by fragment, and one commit puts the new values in place of the former ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import ray
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from .commits import commit_once
from .computed import compute_column
from .gateway import Gateway, Json, Task
from .spread import SizedFragment, split_fragments, spread

VALUE = "value"
"""The name of the computed values in a scan."""

ROW_ADDRESS = "_rowaddr"


@dataclass(frozen=True)
class Fill:
    """The values that a column gets."""

    column: str
    value: str
    filter: str | None
    version: int


@dataclass(frozen=True)
class Filled:
    """A fragment with new values, which is not part of the table yet."""

    fragment: FragmentMetadata
    fields: list[int]
    rows: int


def backfill_column(task: Task, gateway: Gateway) -> Json:
    """Fills a column by one version, or changes nothing."""
    if "function" in task.details:
        return compute_column(task, gateway)
    done = task.details.get("committed")
    if done is not None:
        return dict(done)
    fill = fill_of(task.details)
    dataset = LanceDataset(task.uri, version=fill.version, storage_options=task.storage_options)
    parts = split_fragments(dataset, task.workers)
    common = (task.uri, task.storage_options, fill)
    filled = [each for part in spread(gateway, "computing the column", _fill, parts, task.workers, *common) for each in part]
    if not filled:
        return {"rows": 0, "version": fill.version}
    rows = sum(each.rows for each in filled)
    gateway.progress("committing")
    operation: Any = LanceOperation.Update(
        updated_fragments=[each.fragment for each in filled],
        fields_modified=filled[0].fields,
        update_mode="rewrite_columns",
    )
    return commit_once(task, gateway, operation, fill.version, f"{task.details['mark']}{rows}", rows)


def fill_of(details: Json) -> Fill:
    """Returns the values that a task describes."""
    return Fill(
        column=details["column"],
        value=details["value"],
        filter=details.get("filter"),
        version=int(details["version"]),
    )


def fill_fragments(
    parts: Sequence[SizedFragment], uri: str, storage_options: dict[str, str], fill: Fill
) -> list[Filled]:
    """Computes the column in some fragments, and writes it to files of its own."""
    dataset: Any = LanceDataset(uri, version=fill.version, storage_options=storage_options)
    filled = [fill_fragment(dataset, part.id, fill) for part in parts]
    return [each for each in filled if each is not None]


def fill_fragment(dataset: Any, number: int, fill: Fill) -> Filled | None:
    """Computes the column in a fragment; None if no row gets a value."""
    fragment = dataset.get_fragment(number)
    field = dataset.schema.field(fill.column)
    found = dataset.scanner(
        columns={VALUE: fill.value},
        filter=fill.filter,
        fragments=[fragment],
        with_row_address=True,
        # Without an index, the condition alone decides.
        use_scalar_index=False,
    ).to_table()
    values = found.column(VALUE)
    if not values.type.equals(field.type):
        raise ValueError(f"the values are {values.type}, and the column {fill.column!r} is {field.type}")
    if values.null_count > 0 and not field.nullable:
        raise ValueError(f"the column {fill.column!r} is not nullable, and the expression has no value for some rows")
    if found.num_rows == 0:
        return None
    schema = pa.schema([field, pa.field(ROW_ADDRESS, pa.uint64())])
    table = pa.Table.from_arrays([values, found.column(ROW_ADDRESS)], schema=schema)
    written, fields = fragment.update_columns(table.to_reader(), left_on=ROW_ADDRESS)
    return Filled(written, fields, found.num_rows)


_fill = ray.remote(fill_fragments)
