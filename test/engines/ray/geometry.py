"""Reads a table of points with an index of type RTREE, which pylance uses and the gateway does not. Arguments: the address of a gateway, and what to do:
`make` the table, with managed versions if `managed` follows; `change` it, after a check of the index; `drop` the index, after a check that it has outlived the upkeep of the table."""

import sys
from datetime import timedelta

import lance
import lancedb
import pyarrow as pa
from support import call, insert, uri

ROWS, WIDTH = 2_000, 50
BOX = "st_intersects(at, st_geomfromtext('POLYGON((3 2, 9 2, 9 60, 3 60, 3 2))'))"
db = lancedb.connect("db://any", api_key="unused", host_override=uri)


def points(ids):
    axes = [pa.array([float(at % WIDTH) for at in ids]), pa.array([float(at // WIDTH) for at in ids])]
    values = pa.StructArray.from_arrays(axes, ["x", "y"])
    type_of_points = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": "{}"}
    fields = [pa.field("id", pa.int64()), pa.field("at", values.type, metadata=type_of_points)]
    return pa.table([pa.array(ids), values], schema=pa.schema(fields))


def opened():
    place = call("table/places/describe", {"vend_credentials": True})
    return lance.dataset(place["location"], storage_options=place.get("storage_options"))


def found(by_index):
    dataset = opened()
    scan = dataset.scanner(columns=["id"], filter=BOX, use_scalar_index=by_index)
    assert ("RTree" in scan.explain_plan(True)) == by_index, scan.explain_plan(True)
    return sorted(scan.to_table()["id"].to_pylist())


def expected(ids):
    return [at for at in ids if 3 <= at % WIDTH <= 9 and 2 <= at // WIDTH <= 60]


def check(ids, unindexed):
    assert found(True) == found(False) == expected(ids), (found(True), found(False))
    table = db.open_table("places")
    [index] = table.list_indices()
    assert (index.name, index.index_type, index.columns) == ("by_place", "RTree", ["at"]), index
    stats = table.index_stats("by_place")
    assert (stats.index_type.upper(), stats.num_unindexed_rows) == ("RTREE", unindexed), stats


todo = sys.argv[2]
if todo == "make":
    tracking = {"table_version_tracking_enabled": "true"} if "managed" in sys.argv else {}
    call("table/places/declare", {"properties": {"lance-gateway.upkeep": "off", **tracking}})
    for start in (0, ROWS // 2):
        insert("places", points(range(start, start + ROWS // 2)))
elif todo == "change":
    check(range(ROWS), 0)
    db.open_table("places").wait_for_index(["by_place"], timeout=timedelta(seconds=30))
    insert("places", points([ROWS + 505]))
    insert("places", points([ROWS + 506]))
    db.open_table("places").delete("id % 10 = 5")
elif todo == "drop":
    check([at for at in [*range(ROWS), ROWS + 506] if at % 10 != 5], 1)
    db.open_table("places").drop_index("by_place")
    assert db.open_table("places").list_indices() == []
    assert found(False) and opened().list_indices() == []
