"""Indices that the gateway begins and the engine fills, as pylance finds and keeps them."""

import sys

import lance
import pyarrow as pa
from lance_namespace import (
    CreateTableIndexRequest,
    CreateTableRequest,
    DescribeTableRequest,
    connect,
)


def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def rows(numbers):
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"the name of row {i}" for i in numbers]})


namespace = connect("rest", {"uri": sys.argv[1]})
namespace.create_table(CreateTableRequest(id=["grown"]), stream(rows(range(20_000))))
KINDS = {"zones": ("id", "ZONEMAP"), "filter": ("id", "BLOOMFILTER"), "grams": ("name", "NGRAM")}
for name, (column, kind) in KINDS.items():
    request = CreateTableIndexRequest(id=["grown"], column=column, index_type=kind, name=name)
    namespace.create_table_index(request)

location = namespace.describe_table(DescribeTableRequest(id=["grown"])).location
dataset = lance.dataset(location)
found = {index.name: index.num_rows_indexed for index in dataset.describe_indices()}
assert found == dict.fromkeys(KINDS, 20_000), found

QUERIES = {"id = 4711": 1, "id > 19990": 9, "contains(name, 'row 4711')": 1, "id IS NULL": 0}
for query, count in QUERIES.items():
    assert dataset.count_rows(filter=query) == count, query
assert "ScalarIndexQuery" in dataset.scanner(filter="contains(name, 'row 4711')").explain_plan()

# pylance goes on where the gateway and its engine have stopped.
lance.write_dataset(rows([4711]), location, mode="append")
dataset = lance.dataset(location)
assert dataset.count_rows(filter="id = 4711") == 2
dataset.optimize.optimize_indices()
dataset = lance.dataset(location)
found = {index.name: index.num_rows_indexed for index in dataset.describe_indices()}
assert found == dict.fromkeys(KINDS, 20_001), found
assert dataset.count_rows(filter="contains(name, 'row 4711')") == 2
assert dataset.count_rows(filter="id = 4711") == 2
