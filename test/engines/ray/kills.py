"""Tables whose work is interrupted on Ray. Arguments: the address of a gateway, and what to do:

`make` tables of rows, their views among them; `check` what work has done to a table; look at the `files` of tables, none of which may be left over."""

import os
import sys

import lance
import lancedb
import numpy as np
import pyarrow as pa
from support import call, insert, uri

PARTS, ROWS, WIDTH = 4, 3_000, 16
IDS = [at for at in range(PARTS * ROWS) if at % 10 != 3]
VIEW = "SELECT id, small * 2 AS twice FROM {source} WHERE id % 7 <> 3"


def part(number):
    ids = range(number * ROWS, (number + 1) * ROWS)
    vectors = np.random.default_rng(number).standard_normal((ROWS, WIDTH)).astype("float32")
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "small": pa.array([at % 211 for at in ids], pa.int32()),
            "labels": pa.array([[f"l{at % 9}", f"l{at % 5}"] for at in ids]),
            "words": pa.array([f"row {at} has word {at % 1000}" for at in ids]),
            "wide": pa.array([-1] * ROWS, pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH),
        }
    )


def make(name):
    """Makes a table of several fragments with deleted rows, and an empty view of it."""
    call(f"table/{name}/declare", {"properties": {"lance-gateway.job-engine": "ray", "lance-gateway.upkeep": "off"}})
    for number in range(PARTS):
        insert(name, part(number))
    db.open_table(name).delete("id % 10 = 3")
    call(f"table/{name}/update_field_metadata", {"updates": [{"path": "wide", "metadata": EXPRESSION}]})
    if name.startswith("view"):
        request = {"kind": "query", "source_query": VIEW.format(source=name), "output_schema": ""}
        call(f"materialized_view/{name}_view/create", request)


EXPRESSION = {"lance_gateway.expression": "small * 3 + id"}


def rows_of(name, *columns):
    return db.open_table(name).search().select(["id", *columns]).limit(2 * PARTS * ROWS).to_arrow().sort_by("id").to_pylist()


def matching(table, condition):
    return sorted(row["id"] for row in table.search().where(condition).limit(PARTS * ROWS).select(["id"]).to_list())


def check_index(name):
    """Returns how many indices a table has, whose answers are those without one."""
    table = db.open_table(name)
    indices = table.list_indices()
    for index in indices:
        stats = table.index_stats(index.name)
        assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (len(IDS), 0), stats
    assert matching(table, "id between 700 and 1300") == [at for at in IDS if 700 <= at <= 1300]
    condition = "array_has_any(labels, ['l7'])"
    assert matching(table, condition) == [at for at in IDS if at % 9 == 7]
    if [index.columns for index in indices] == [["words"]]:
        found = table.search("234", query_type="fts").limit(PARTS * ROWS).select(["id"]).to_list()
        assert sorted(row["id"] for row in found) == [at for at in IDS if at % 1000 == 234]
    for query in np.random.default_rng(9).standard_normal((10, WIDTH)).astype("float32"):
        search = lambda: table.search(query).limit(10).select(["id"])
        near, exact = search().nprobes(8).to_list(), search().bypass_vector_index().to_list()
        assert [row["id"] for row in near] == [row["id"] for row in exact], (near, exact)
    return len(indices)


def check_column(name):
    """Returns how many states a column has: all its rows have the former value, or all the computed one."""
    rows = rows_of(name, "small", "wide")
    if rows[0]["wide"] == -1:
        assert all(row["wide"] == -1 for row in rows)
        return 0
    assert all(row["wide"] == row["small"] * 3 + row["id"] for row in rows)
    return 1


def check_view(name):
    rows = rows_of(f"{name}_view", "twice")
    expected = [{"id": at, "twice": at % 211 * 2} for at in IDS if at % 7 != 3]
    assert rows in ([], expected), (len(rows), len(expected))
    return 0 if rows == [] else 1


def check_files(name):
    """Checks that each file of a table belongs to one of its versions."""
    path = call(f"table/{name}/describe")["location"].removeprefix("file://")
    data, indices = set(), set()
    for version in lance.dataset(path).versions():
        dataset = lance.dataset(path, version=version["version"])
        data.update(file.path for fragment in dataset.get_fragments() for file in fragment.data_files())
        indices.update(str(segment.uuid) for index in dataset.describe_indices() for segment in index.segments)
    for folder, known in (("data", data), ("_indices", indices)):
        there = set(os.listdir(f"{path}/{folder}")) if os.path.isdir(f"{path}/{folder}") else set()
        assert there <= known, (name, folder, there - known)


CHECKS = {"index": check_index, "column": check_column, "view": check_view}

db = lancedb.connect("db://any", api_key="unused", host_override=uri)
if sys.argv[2] == "make":
    for name in sys.argv[3:]:
        make(name)
elif sys.argv[2] == "check":
    work, name = sys.argv[3:]
    assert [row["id"] for row in rows_of(name)] == IDS
    assert CHECKS[work](name) == 1
else:
    for name in sys.argv[3:]:
        check_files(name)
