"""Shared by the sessions of engines: a table in pylance's own words, and comparisons with it."""

import lance
import pyarrow as pa
from lance.namespace import RestNamespace
from lance_namespace import CountTableRowsRequest, CreateNamespaceRequest


def numbers(count, first=0):
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"name {i}" for i in ids], pa.string())})


def open_namespace(uri, name):
    gateway = RestNamespace(uri=uri)
    gateway.create_namespace(CreateNamespaceRequest(id=[name]))
    return gateway


def check_rows(gateway, table_id, expected):
    """The rows that pylance reads are the expected ones, and the gateway counts as many."""
    dataset = lance.dataset(namespace_client=gateway, table_id=table_id)
    dataset.validate()
    rows = sorted(dataset.to_table(columns=["id", "name"]).to_pylist(), key=lambda row: row["id"])
    assert rows == expected, (table_id, len(rows), len(expected), rows[:5])
    count = gateway.count_table_rows(CountTableRowsRequest(id=table_id)).count
    assert count == len(expected), (table_id, count)
    return dataset
