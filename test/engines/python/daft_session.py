"""An ordinary session of Daft, which opens the locations that the gateway gives. Argument: the address of a gateway."""

import sys

import daft
from lance_namespace import DeclareTableRequest, DescribeTableRequest
from support import check_rows, numbers, open_namespace

gateway = open_namespace(sys.argv[1], "daft")
TABLE = ["daft", "t"]

location = gateway.declare_table(DeclareTableRequest(id=TABLE)).location
daft.from_arrow(numbers(50)).write_lance(location, mode="create").collect()
location = gateway.describe_table(DescribeTableRequest(id=TABLE)).location
daft.from_arrow(numbers(10, 50)).write_lance(location, mode="append").collect()
check_rows(gateway, TABLE, numbers(60).to_pylist())

rows = daft.read_lance(location).where(daft.col("id") < 5).select("name").sort("name").to_pydict()
assert rows == {"name": [f"name {i}" for i in range(5)]}, rows
daft.from_arrow(numbers(2)).write_lance(location, mode="overwrite").collect()
check_rows(gateway, TABLE, numbers(2).to_pylist())
