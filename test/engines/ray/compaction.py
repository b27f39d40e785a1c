"""Has upkeep join fragments on Ray. Arguments: the address of a gateway, and what to do:

`make` two tables, of which upkeep joins one; `check` the other, after a command has joined its fragments; make a `table` whose fragments upkeep joins, and
`await` that; look at the `rows` of tables; join and index one in a `bucket`."""

import json
import sys

import lancedb
import pyarrow as pa
from lancedb.index import BTree
from support import call, fragments, insert, jobs, until, uri

PARTS, ROWS = 6, 400
db = lancedb.connect("db://any", api_key="unused", host_override=uri)


def part(number):
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": list(ids), "word": [f"word {at % 7}" for at in ids]})


def make(name, upkeep, indexed):
    """Makes a table with an index that the gateway builds over its first fragments; the others make it large enough for the cluster."""
    call(f"table/{name}/declare", {"properties": {"lance-gateway.upkeep": upkeep}})
    for number in range(PARTS):
        insert(name, part(number))
        if number == indexed:
            db.open_table(name).create_index("id", config=BTree())
    db.open_table(name).delete("id % 10 = 3")


def check_rows(name):
    table = db.open_table(name)
    assert table.count_rows() == PARTS * ROWS * 9 // 10
    found = table.search().where("id in (7, 13, 2399)").select(["id"]).to_list()
    assert sorted(row["id"] for row in found) == [7, 2399], found
    return table


def check(name):
    table = check_rows(name)
    [index] = table.list_indices()
    stats = table.index_stats(index.name)
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (table.count_rows(), 0), stats


def unindexed(name):
    table = db.open_table(name)
    return sum(table.index_stats(index.name).num_unindexed_rows for index in table.list_indices())


def compacted(name):
    return [job for job in jobs("compact_table") if (job["table"], job["state"]) == (name, "DONE")]


def build_on_ray(name):
    request = {"column": "word", "index_type": "BITMAP", "name": "by_word"}
    call(f"table/{name}/create_index", request)
    table = db.open_table(name)
    assert table.index_stats("by_word").num_unindexed_rows == 0
    assert len(table.search().where("word = 'word 3'").limit(10_000).select(["id"]).to_list()) == sum(
        at % 7 == 3 and at % 10 != 3 for at in range(PARTS * ROWS)
    )


def is_joined(name):
    return fragments(name) <= 2 and len(compacted(name)) > 0 and unindexed(name) == 0


if sys.argv[2] == "table":
    make(sys.argv[3], "on", 0)
elif sys.argv[2] == "bucket":
    make("joined", "on", 0)
    until(lambda: is_joined("joined"))
    check("joined")
    build_on_ray("joined")
elif sys.argv[2] == "rows":
    for name in sys.argv[3:]:
        check_rows(name)
elif sys.argv[2] == "await":
    name = sys.argv[3]
    until(lambda: is_joined(name), lambda: [fragments(name), unindexed(name), jobs("compact_table")])
    check(name)
elif sys.argv[2] == "make":
    make("left", "off", 1)
    make("joined", "on", 0)
    until(lambda: is_joined("joined"))
    check("joined")
    assert fragments("left") == PARTS
else:
    assert fragments("left") <= 2, fragments("left")
    check("left")
print(json.dumps(len(compacted("left"))))
