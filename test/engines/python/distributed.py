"""pylance's distributed writes: fragments of several processes in one commit, an index of several segments, compaction.
Arguments: the address of a gateway, and whether it manages versions."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import lance
from lance.namespace import RestNamespace
from lance_namespace import (
    DeclareTableRequest,
    DescribeTableIndexStatsRequest,
    ListTableIndicesRequest,
    ListTableVersionsRequest,
)
from support import check_rows, numbers, open_namespace

TABLE = ["distributed", "t"]
PARTS, ROWS = 3, 100


def write_part(location, number):
    return lance.fragment.write_fragments(numbers(ROWS, ROWS * number), location, schema=numbers(0).schema)


def main(uri, managed):
    gateway = open_namespace(uri, TABLE[0])
    declared = gateway.declare_table(DeclareTableRequest(id=TABLE))
    assert bool(declared.managed_versioning) == managed, declared
    location = declared.location
    own = {"namespace_client": gateway, "table_id": TABLE} if managed else {}

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(write_part, [location] * PARTS, range(PARTS)))
    fragments = [fragment for part in parts for fragment in part]
    created = lance.LanceOperation.Overwrite(numbers(0).schema, fragments)
    lance.LanceDataset.commit(location, created, **own)
    expected = numbers(PARTS * ROWS).to_pylist()
    dataset = check_rows(gateway, TABLE, expected)
    assert len(dataset.get_fragments()) == PARTS

    # A commit without the catalog goes past it; the next one through it builds on that version.
    more = lance.LanceOperation.Append(write_part(location, PARTS))
    lance.LanceDataset.commit(location, more, read_version=dataset.version)
    lance.write_dataset(numbers(1, 1000), namespace_client=gateway, table_id=TABLE, mode="append")
    expected += numbers(ROWS, PARTS * ROWS).to_pylist() + numbers(1, 1000).to_pylist()
    dataset = check_rows(gateway, TABLE, expected)

    for column, kind in {"id": "ZONEMAP", "name": "BTREE"}.items():
        name = f"{column}_segments"
        segments = [
            dataset.create_index_uncommitted(column, kind, name=name, fragment_ids=[fragment.fragment_id])
            for fragment in dataset.get_fragments()
        ]
        dataset = dataset.commit_existing_index_segments(name, column, segments)
        dataset = lance.dataset(namespace_client=RestNamespace(uri=uri), table_id=TABLE)
        listed = gateway.list_table_indices(ListTableIndicesRequest(id=TABLE)).indexes
        found = {index.index_name: index for index in listed}[name]
        assert (found.index_type, found.columns, found.num_segments) == (kind, [column], len(segments)), found
        stats = DescribeTableIndexStatsRequest(id=TABLE, index_name=name)
        assert gateway.describe_table_index_stats(stats).num_indexed_rows == len(expected)

    # Compaction joins fragments that the same segments cover, so these two.
    for first in (2000, 2001):
        lance.write_dataset(numbers(1, first), namespace_client=gateway, table_id=TABLE, mode="append")
    expected += numbers(2, 2000).to_pylist()
    dataset = check_rows(gateway, TABLE, expected)
    before = len(dataset.get_fragments())
    dataset.optimize.compact_files()
    dataset = check_rows(gateway, TABLE, expected)
    assert len(dataset.get_fragments()) < before, before
    assert dataset.to_table(filter="id = 7")["name"].to_pylist() == ["name 7"]
    versions = gateway.list_table_versions(ListTableVersionsRequest(id=TABLE, descending=True)).versions
    assert [entry.version for entry in versions] == list(range(dataset.version, 0, -1))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "managed")
