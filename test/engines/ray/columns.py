"""Fills columns and refreshes views on Ray, and compares them with those that the gateway computes itself. Arguments: the address of a gateway."""

import json
import time

import lancedb
import pyarrow as pa
from support import call, insert, uri

PARTS, ROWS = 4, 2500
EXPRESSION = "lance_gateway.expression"

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("price", pa.float64()),
        ("word", pa.string()),
        ("flag", pa.bool_()),
        ("wide", pa.int64()),
        ("single", pa.float32()),
        ("label", pa.string()),
        ("kept", pa.int32()),
        ("vector", pa.list_(pa.float32(), 4)),
    ]
)

COLUMNS = {
    "wide": ("small * 3 + id", None),
    "single": ("price / 7", "flag"),
    "label": ("concat(upper(word), '-', cast(id as string))", "id % 3 <> 1 or word is null"),
    "kept": ("100 / small", "small > 50"),
    "price": ("price * 2 + 1", "id < 5000"),
}
"""Plain columns, their expressions, and which rows get a value. The last one reads its own values."""

VIEWS = {
    "chosen": "SELECT * FROM {source} WHERE id % 7 <> 3",
    "computed": "SELECT id, price * 2 AS twice, coalesce(word, 'none') AS word, vector FROM {source} WHERE word LIKE '%1%' OR flag",
    "nothing": "SELECT id FROM {source} WHERE id < 0",
}


def part(number):
    ids = range(number * ROWS, (number + 1) * ROWS)
    rows = [
        {
            "id": at,
            "small": None if at % 11 == 5 else at % 200 - 20,
            "price": None if at % 13 == 2 else at / 3,
            "word": None if at % 5 == 0 else f"wörd {at % 31}",
            "flag": None if at % 17 == 4 else at % 2 == 0,
            "kept": 7,
            "vector": [at, 0.5, -1, 2**-10],
        }
        for at in ids
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def make(name, engine):
    """Makes a table of several fragments with deleted rows and the expressions of its columns."""
    call(f"table/{name}/declare", {"properties": {"lance-gateway.job-engine": engine, "lance-gateway.upkeep": "off"}})
    for number in range(PARTS):
        insert(name, part(number))
    table = db.open_table(name)
    table.delete("id % 10 = 3")
    updates = [{"path": column, "metadata": {EXPRESSION: text}} for column, (text, _) in COLUMNS.items()]
    call(f"table/{name}/update_field_metadata", {"updates": updates})
    return table


def ended(job_id):
    while True:
        job = call("jobs/describe", {"job_id": job_id})
        if job["job_state"] != "IN_PROGRESS":
            break
        time.sleep(0.2)
    assert job["job_state"] == "DONE", job
    return job


def fill(name, column, where=None, **more):
    body = {"column": column, **({} if where is None else {"where": where}), **more}
    return ended(call(f"table/{name}/backfill_column", body)["job_id"])


def rows_of(name):
    table = db.open_table(name)
    return table.search().limit(10 * PARTS * ROWS).to_arrow().sort_by("id")


def same(one, other):
    left, right = rows_of(one), rows_of(other)
    assert left.schema.names == right.schema.names, (left.schema, right.schema)
    for column in left.schema.names:
        assert left.column(column).equals(right.column(column)), (one, other, column)
    return left.num_rows


def compare():
    engines = {"here": None, "on_ray": "ray"}
    for name, engine in (("here", "embedded"), ("on_ray", "ray")):
        table = make(name, engine)
        call(f"table/{name}/create_scalar_index", {"column": "wide", "index_type": "BTREE", "name": "by_wide"})
    filled = {}
    for name, engine in engines.items():
        jobs = [fill(name, column, where) for column, (_, where) in COLUMNS.items()]
        assert [job.get("engine") for job in jobs] == [engine] * len(jobs), jobs
        filled[name] = [job["result"]["rows_assigned"] for job in jobs]
    assert filled["here"] == filled["on_ray"], filled
    count = same("here", "on_ray")
    found = db.open_table("on_ray").search().where("wide = 3007").select(["id"]).to_arrow().num_rows
    assert found == db.open_table("here").search().where("wide = 3007").select(["id"]).to_arrow().num_rows
    for name, query in VIEWS.items():
        for source, engine in engines.items():
            view = f"{name}_{source}"
            request = {"kind": "query", "source_query": query.format(source=source), "output_schema": ""}
            call(f"materialized_view/{view}/create", request)
            refresh = {} if engine is None else {"cluster": engine, "concurrency": 2}
            job = ended(call(f"materialized_view/{view}/refresh", refresh)["job_id"])
            assert job.get("engine") == engine, job
        same(f"{name}_here", f"{name}_on_ray")
    return count


db = lancedb.connect("db://any", api_key="unused", host_override=uri)
print(json.dumps(compare()))
