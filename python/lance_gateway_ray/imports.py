"""Imports of files: workers read them and write fragments, and one commit makes all rows part of the table."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import ray
from lance.dataset import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, write_fragments

from .columns import check_fits, check_storable, check_whole, conform, unify
from .commits import commit_once
from .files import open_rows
from .gateway import Gateway, Json, Task
from .sources import Source, SourceFile, source_of, unless_changed
from .spread import PARTS_FOR_EACH_WORKER, split_evenly, spread


def import_files(task: Task, gateway: Gateway) -> Json:
    """Adds the rows of files to a table, all or none."""
    done = task.details.get("committed")
    if done is not None:
        return dict(done)
    source = source_of(task.details)
    files = source.files()
    dataset = open_table(task)
    known = chosen_schema(task.details) if dataset is None else dataset.schema
    schemas = inspect(task, gateway, source, files, known)
    schema = unify(schemas) if known is None else known
    if known is not None:
        for path, own in schemas:
            check_fits(own, schema, path)
            if dataset is None:
                check_whole(own, schema, path)
    parts = split_evenly(files, task.workers * PARTS_FOR_EACH_WORKER)
    # All workers write the fields of one version: the newest one may change meanwhile.
    version = None if dataset is None else dataset.version
    common = (task.uri, task.storage_options, schema, source, version)
    written = spread(gateway, "importing files", _write, parts, task.workers, *common)
    fragments = [fragment for part in written for fragment in part]
    gateway.progress("committing")
    return commit(task, gateway, dataset, schema, fragments)


def open_table(task: Task) -> Any:
    """Opens the table; None if it has no data yet."""
    return None if task.details.get("is_new") else LanceDataset(task.uri, storage_options=task.storage_options)


def chosen_schema(details: Json) -> pa.Schema | None:
    """Returns the columns that the command has chosen for a new table; None if the files decide."""
    text = details.get("schema")
    if text is None:
        return None
    with ipc.open_stream(base64.b64decode(text)) as stream:
        schema = stream.schema
    check_storable(schema, "--type")
    return schema


def inspect(
    task: Task, gateway: Gateway, source: Source, files: list[SourceFile], known: pa.Schema | None
) -> list[tuple[str, pa.Schema]]:
    """Returns the schema of each file; that of a text depends on the table."""
    parts = split_evenly(files, task.workers)
    found = spread(gateway, "reading schemas", _inspect, parts, task.workers, source, known)
    return [each for part in found for each in part]


def commit(task: Task, gateway: Gateway, dataset: Any, schema: pa.Schema, fragments: list[FragmentMetadata]) -> Json:
    """Makes all fragments part of the table by one version."""
    operation: Any = LanceOperation.Append(fragments)
    version = None if dataset is None else dataset.version
    if dataset is None:
        operation = LanceOperation.Overwrite(schema, fragments)
    rows = sum(fragment.physical_rows for fragment in fragments)
    return commit_once(task, gateway, operation, version, task.details["mark"], rows)


@ray.remote
def _inspect(files: list[SourceFile], source: Source, known: pa.Schema | None) -> list[tuple[str, pa.Schema]]:
    system = source.open()
    found = []
    for file in files:
        with open_rows(system, file.path, source.format, known) as rows:
            found.append((file.path, rows.schema))
    return found


def write_files(
    files: list[SourceFile],
    uri: str,
    storage_options: dict[str, str],
    schema: pa.Schema,
    source: Source,
    version: int | None,
) -> list[FragmentMetadata]:
    """Writes the rows of files as fragments for a version of the table, none for a new one; they are not part of the table yet."""
    failures: list[Exception] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from read_files(files, schema, source)
        except Exception as error:
            # The writer passes its text alone.
            failures.append(error)
            raise

    table: Any = uri
    if version is not None:
        table = LanceDataset(uri, version=version, storage_options=storage_options)
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    try:
        return write_fragments(
            reader,
            table,
            schema=schema,
            mode="create" if version is None else "append",
            storage_options=storage_options,
        )
    except Exception:
        if failures:
            raise failures[0] from None
        raise


_write = ray.remote(write_files)


def read_files(files: list[SourceFile], schema: pa.Schema, source: Source) -> Iterator[pa.RecordBatch]:
    """Yields the rows of files with the columns of the table."""
    system = source.open()
    for file in files:
        with unless_changed(system, file), open_rows(system, file.path, source.format, schema) as opened:
            check_fits(opened.schema, schema, file.path)
            for batch in opened.batches:
                yield conform(batch, schema, file.path)
