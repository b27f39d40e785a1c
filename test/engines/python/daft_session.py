"""An ordinary session of Daft, through the namespace and by location. Argument: the address of a gateway."""

import sys

import daft
import daft_lance
from daft.io import IOConfig, S3Config
from lance_namespace import DescribeTableRequest, ListTableIndicesRequest
from support import check_rows, numbers, open_namespace

uri = sys.argv[1]
gateway = open_namespace(uri, "daft")
TABLE = ["daft", "t"]
place = {"table_id": TABLE, "namespace_impl": "rest", "namespace_properties": {"uri": uri}}


def config_of(options):
    """The storage options of the gateway in Daft's words; Daft finds the credentials itself."""
    if not options:
        return IOConfig()
    endpoint, region = options["aws_endpoint"], options["aws_region"]
    return IOConfig(s3=S3Config(endpoint_url=endpoint, region_name=region, use_ssl=endpoint.startswith("https:")))


daft_lance.write_lance(daft.from_arrow(numbers(50)), mode="create", **place).collect()
daft_lance.write_lance(daft.from_arrow(numbers(10, 50)), mode="append", **place).collect()
check_rows(gateway, TABLE, numbers(60).to_pylist())

rows = daft_lance.read_lance(**place).where(daft.col("id") < 5).select("name").sort("name").to_pydict()
assert rows == {"name": [f"name {i}" for i in range(5)]}, rows

daft_lance.create_scalar_index(column="id", index_type="BTREE", name="by_id", **place)
[index] = gateway.list_table_indices(ListTableIndicesRequest(id=TABLE)).indexes
assert (index.index_name, index.index_type, index.num_indexed_rows) == ("by_id", "BTREE", 60), index
daft_lance.compact_files(**place)
check_rows(gateway, TABLE, numbers(60).to_pylist())

# Daft's own functions take the location of a table.
described = gateway.describe_table(DescribeTableRequest(id=TABLE))
config = config_of(described.storage_options)
daft.from_arrow(numbers(5, 60)).write_lance(described.location, mode="append", io_config=config).collect()
check_rows(gateway, TABLE, numbers(65).to_pylist())
assert daft.read_lance(described.location, io_config=config).count_rows() == 65

daft_lance.write_lance(daft.from_arrow(numbers(2)), mode="overwrite", **place).collect()
check_rows(gateway, TABLE, numbers(2).to_pylist())
