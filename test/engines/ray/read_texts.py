"""Texts as the worker of an import reads them, beside the rows of the gateway. Argument: a folder.

Each `NAME.types.arrows` has the columns of a table, `NAME.csv` (`tsv`, `jsonl`) a text for it, and `NAME.rows.arrows` the gateway's rows, unless it
refuses the text. Prints for each text: `equal`, `refused` and why, or what differs."""

import json
import sys
from glob import glob

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.ipc as ipc
import pyarrow.types as types
from lance_gateway_ray.columns import check_fits, conform
from lance_gateway_ray.files import open_rows


def read(path, format, table):
    with open_rows(fs.LocalFileSystem(), path, format, table) as rows:
        check_fits(rows.schema, table, path)
        batches = [conform(batch, table, path) for batch in rows.batches]
    return pa.Table.from_batches(batches, table)


def exact(value):
    """Returns a value in a form of which no two are equal but the same."""
    kind = value.type
    if not value.is_valid:
        return None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [exact(each) for each in value.values]
    if types.is_struct(kind):
        return {name: exact(each) for name, each in value.items()}
    if types.is_floating(kind):
        return float(value.as_py()).hex()
    if types.is_date(kind):
        return value.cast(pa.int32() if types.is_date32(kind) else pa.int64()).as_py()
    if types.is_temporal(kind):
        return value.cast(pa.int32() if types.is_time32(kind) else pa.int64()).as_py()
    return value.as_py()


def compare(path, name, format):
    with ipc.open_stream(f"{name}.types.arrows") as stream:
        table = stream.schema
    try:
        own = read(path, format, table)
    except ValueError as error:
        return {"refused": str(error)}
    try:
        with ipc.open_stream(f"{name}.rows.arrows") as stream:
            theirs = stream.read_all()
    except FileNotFoundError:
        return {"differs": "the gateway refuses it", "own": str(own.to_pylist())[:500]}
    if own.num_rows != theirs.num_rows:
        return {"differs": f"{own.num_rows} rows, and {theirs.num_rows} of the gateway"}
    for field in table:
        given = theirs.column(field.name) if field.name in theirs.column_names else pa.nulls(own.num_rows, field.type)
        if not given.type.equals(field.type):
            return {"differs": f"{given.type} instead of {field.type}"}
        for row, (mine, other) in enumerate(zip(own.column(field.name), given)):
            if exact(mine) != exact(other):
                return {"differs": f"row {row} of {field}: {exact(mine)!r}, and {exact(other)!r} of the gateway"}
    return {"equal": own.num_rows}


folder = sys.argv[1]
found = {}
for format in ("csv", "tsv", "jsonl"):
    for path in sorted(glob(f"{folder}/*.{format}")):
        name = path.removesuffix(f".{format}")
        found[name.rpartition("/")[2]] = compare(path, name, format)
print(json.dumps(found))
