"""Columns that functions compute: workers call the function for each row, and one commit adds the values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import ray
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from .commits import commit_once
from .functions import MAX_RECORDED, Function, RowError, apply, function_of, load
from .gateway import Gateway, Json, Task
from .spread import SizedFragment, split_fragments, spread

ROW_ADDRESS = "_rowaddr"
OFFSET_BITS = 32
BATCH_ROWS = 1024
MAX_REPORTED = 1000
"""Number of failed rows that a report has."""


@dataclass(frozen=True)
class Computed:
    """A fragment with new values, which is not part of the table yet, and its failed rows."""

    fragment: FragmentMetadata | None
    fields: list[int]
    rows: int
    number: int
    failed: int
    errors: list[RowError]


def compute_column(task: Task, gateway: Gateway) -> Json:
    """Fills a column by one version, or changes nothing. Rows whose function fails get no value."""
    details = task.details
    column, where = details["column"], details["filter"]
    done = details.get("committed")
    if done is not None:
        # The errors of the earlier run are lost.
        return {**done, "failed": done.get("rowsFailed", 0)}
    version = int(details["version"])
    function = function_of(details["function"])
    dataset = LanceDataset(task.uri, version=version, storage_options=task.storage_options)
    parts = split_fragments(dataset, task.workers)
    common = (task.uri, task.storage_options, version, column, where, function)
    computed = [
        each
        for part in spread(gateway, "computing the column", remote_for(function), parts, task.workers, *common)
        for each in part
    ]
    filled = [each for each in computed if each.fragment is not None]
    report = {**failures(computed), "source_version": version}
    if not filled:
        return {"rows": 0, "version": version, **report}
    rows = sum(each.rows for each in filled)
    gateway.progress("committing")
    operation: Any = LanceOperation.Update(
        updated_fragments=[each.fragment for each in filled],
        fields_modified=filled[0].fields,
        update_mode="rewrite_columns",
    )
    # It counts also where this driver dies before its report.
    failed = f", {report['failed']} failed" if report["failed"] > 0 else ""
    made = commit_once(task, gateway, operation, version, f"{details['mark']}{rows}{failed}", rows)
    return {**made, **report}


def remote_for(function: Function) -> Any:
    """Returns the remote function with the environment that a function wants."""
    options: Json = {"num_gpus": 1} if function.gpu else {}
    if function.packages:
        own = dict(ray.get_runtime_context().runtime_env or {})
        given = own.get("pip", [])
        known = given["packages"] if isinstance(given, dict) else given
        options["runtime_env"] = {"pip": [*known, *function.packages]}
    return _compute.options(**options) if options else _compute


def failures(computed: Sequence[Computed]) -> Json:
    """Returns what a report says about failed rows."""
    errors = [
        {"fragment": each.number, "offset": error.offset, "type": error.type, "message": error.message}
        for each in computed
        for error in each.errors
    ][:MAX_REPORTED]
    fragments = [
        {
            "fragment": each.number,
            "skipped": each.failed,
            "recorded": sum(error["fragment"] == each.number for error in errors),
        }
        for each in computed
        if each.failed > 0
    ]
    return {"failed": sum(each.failed for each in computed), "errors": errors, "fragments": fragments}


def compute_fragments(
    parts: Sequence[SizedFragment],
    uri: str,
    storage_options: dict[str, str],
    version: int,
    column: str,
    where: str,
    function: Function,
) -> list[Computed]:
    """Calls a function for rows of some fragments, and writes the values to files of their own."""
    before = dict(os.environ)
    call: Any = None
    try:
        call = load(function)
        dataset: Any = LanceDataset(uri, version=version, storage_options=storage_options)
        return [compute_fragment(dataset, part.id, column, where, function, call) for part in parts]
    finally:
        try:
            close = getattr(call, "close", None)
            if callable(close):
                close()
        except Exception as error:
            message = f"the function cannot be closed: {type(error).__name__}: {error}"
            raise RuntimeError(function.without_secrets(message)) from None
        finally:
            # The next function on this worker must not see its secrets.
            os.environ.clear()
            os.environ.update(before)


def compute_fragment(dataset: Any, number: int, column: str, where: str, function: Function, call: Any) -> Computed:
    """Calls a function for the rows of a fragment that a condition selects."""
    fragment = dataset.get_fragment(number)
    field = dataset.schema.field(column)
    batches = dataset.scanner(
        columns=dict(function.inputs),
        filter=where,
        fragments=[fragment],
        with_row_address=True,
        batch_size=BATCH_ROWS,
        # Without an index, the condition alone decides.
        use_scalar_index=False,
    ).to_batches()
    values: list[Any] = []
    addresses: list[int] = []
    failed: list[RowError] = []
    count = 0
    for batch in batches:
        rows_at = batch.column(ROW_ADDRESS).to_pylist()
        offsets = [at & ((1 << OFFSET_BITS) - 1) for at in rows_at]
        found, rows, errors = apply(call, function, batch, offsets, field.type)
        values.extend(found)
        addresses.extend(rows_at[row] for row in rows)
        count += len(errors)
        failed.extend(errors[: MAX_RECORDED - len(failed)])
    if not values:
        return Computed(None, [], 0, number, count, failed)
    schema = pa.schema([field.remove_metadata(), pa.field(ROW_ADDRESS, pa.uint64())])
    arrays = [pa.array([each.as_py() for each in values], type=field.type), pa.array(addresses, pa.uint64())]
    written, fields = fragment.update_columns(pa.Table.from_arrays(arrays, schema=schema).to_reader(), left_on=ROW_ADDRESS)
    return Computed(written, fields, len(values), number, count, failed)


_compute = ray.remote(compute_fragments)
