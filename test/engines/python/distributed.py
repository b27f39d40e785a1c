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


def write_part(location, storage, number):
    rows = numbers(ROWS, ROWS * number)
    return lance.fragment.write_fragments(rows, location, schema=rows.schema, storage_options=storage)


def main(uri, managed):
    gateway = open_namespace(uri, TABLE[0])
    declared = gateway.declare_table(DeclareTableRequest(id=TABLE))
    assert bool(declared.managed_versioning) == managed, declared
    location, storage = declared.location, declared.storage_options
    own = {"namespace_client": gateway, "table_id": TABLE, "namespace_client_managed_versioning": True} if managed else {}

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(write_part, [location] * PARTS, [storage] * PARTS, range(PARTS)))
    fragments = [fragment for part in parts for fragment in part]
    created = lance.LanceOperation.Overwrite(numbers(0).schema, fragments)
    lance.LanceDataset.commit(location, created, storage_options=storage, **own)
    expected = numbers(PARTS * ROWS).to_pylist()
    dataset = check_rows(gateway, TABLE, expected)
    assert len(dataset.get_fragments()) == PARTS

    # A commit without the catalog goes past it; the next one through it builds on that version.
    more = lance.LanceOperation.Append(write_part(location, storage, PARTS))
    lance.LanceDataset.commit(location, more, read_version=dataset.version, storage_options=storage)
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
    for first in (2000, 2002):
        lance.write_dataset(numbers(2, first), namespace_client=gateway, table_id=TABLE, mode="append")
    expected += numbers(4, 2000).to_pylist()
    dataset = check_rows(gateway, TABLE, expected)
    before = dataset.get_fragments()
    stale = before[-1].delete("id = 2003")
    dataset.optimize.compact_files()
    dataset = check_rows(gateway, TABLE, expected)
    assert len(dataset.get_fragments()) < len(before), before
    if managed:
        refuses_lost_change(dataset, stale, own)
        dataset = check_rows(gateway, TABLE, expected)
    assert dataset.to_table(filter="id = 7")["name"].to_pylist() == ["name 7"]
    versions = gateway.list_table_versions(ListTableVersionsRequest(id=TABLE, descending=True)).versions
    assert [entry.version for entry in versions] == list(range(dataset.version, 0, -1))


def refuses_lost_change(dataset, stale, own):
    """A deletion in a fragment that a compaction has replaced is refused; Lance itself would ignore the fragment."""
    lost = lance.LanceOperation.Delete([stale], [], "id = 2003")
    try:
        lance.LanceDataset.commit(dataset, lost, read_version=dataset.version, **own)
    except OSError:
        return
    raise AssertionError("a change of a fragment that is gone was committed")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "managed")
