"""An ordinary session of lance-ray. Argument: the address of a gateway."""

import sys

import lance_ray
import ray
from lance_namespace import ListTableIndicesRequest
from support import check_rows, numbers, open_namespace

uri = sys.argv[1]
gateway = open_namespace(uri, "ray")
TABLE = ["ray", "t"]
place = {"table_id": TABLE, "namespace_impl": "rest", "namespace_properties": {"uri": uri}}
ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)

lance_ray.write_lance(ray.data.from_arrow(numbers(100)), min_rows_per_file=10, max_rows_per_file=50, **place)
lance_ray.write_lance(ray.data.from_arrow(numbers(50, 100)), mode="append", **place)
expected = numbers(150).to_pylist()
check_rows(gateway, TABLE, expected)

read = lance_ray.read_lance(filter="id < 10", columns=["id"], **place)
assert sorted(row["id"] for row in read.take_all()) == list(range(10))

lance_ray.create_scalar_index(column="id", index_type="BTREE", name="by_id", num_workers=1, **place)
[index] = gateway.list_table_indices(ListTableIndicesRequest(id=TABLE)).indexes
assert (index.index_name, index.index_type, index.num_indexed_rows) == ("by_id", "BTREE", 150), index

lance_ray.add_columns(transform={"twice": "id * 2"}, **place)
lance_ray.compact_files(num_workers=1, **place)
dataset = check_rows(gateway, TABLE, expected)
assert dataset.to_table(filter="id = 7")["twice"].to_pylist() == [14]
assert len(dataset.get_fragments()) == 1

lance_ray.write_lance(ray.data.from_arrow(numbers(3)), mode="overwrite", **place)
assert check_rows(gateway, TABLE, numbers(3).to_pylist()).schema.names == ["id", "name"]
