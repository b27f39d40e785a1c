"""Builds indices on Ray through LanceDB's client, and compares them with embedded ones. Argument: the address of a gateway."""

import json
from datetime import timedelta

import lancedb
import numpy as np
import pyarrow as pa
from support import call, insert, jobs, uri

ROWS, WIDTH, QUERIES, NEIGHBORS = 20_000, 32, 50, 10
# A client stops waiting for a build after a minute, unless it asks for more.
VECTOR = {"vector_column_name": "vector", "num_partitions": 64, "wait_timeout": timedelta(minutes=6)}
db = lancedb.connect("db://any", api_key="unused", host_override=uri)
random = np.random.default_rng(7)
vectors = random.standard_normal((ROWS, WIDTH)).astype("float32")
queries = random.standard_normal((QUERIES, WIDTH)).astype("float32")


def rows():
    flat = pa.array(vectors.ravel())
    return pa.table({"id": pa.array(range(ROWS)), "vector": pa.FixedSizeListArray.from_arrays(flat, WIDTH)})


def make(name, engine):
    """Makes a table whose indices are built by an engine; the rows come in two fragments, for two workers."""
    call(f"table/{name}/declare", {"properties": {"lance-gateway.job-engine": engine, "lance-gateway.upkeep": "off"}})
    for start in (0, ROWS // 2):
        insert(name, rows().slice(start, ROWS // 2))
    return db.open_table(name)


def neighbors(table, exact):
    found = []
    for query in queries:
        search = table.search(query).limit(NEIGHBORS)
        search = search.bypass_vector_index() if exact else search.nprobes(48).refine_factor(10)
        found.append({row["id"] for row in search.select(["id"]).to_list()})
    return found


def recall(table, truth):
    hits = sum(len(own & right) for own, right in zip(neighbors(table, False), truth))
    return hits / (QUERIES * NEIGHBORS)


here, on_ray = make("here", "embedded"), make("on_ray", "ray")
truth = neighbors(here, True)
assert truth == neighbors(on_ray, True)
figures = {}
for table, engine in ((here, "embedded"), (on_ray, "ray")):
    table.create_index("l2", index_type="IVF_PQ", num_sub_vectors=16, **VECTOR)
    figures[engine] = recall(table, truth)
[index] = on_ray.list_indices()
assert index.index_type in ("IvfPq", "IVF_PQ"), index
assert on_ray.index_stats(index.name).num_indexed_rows == ROWS
# Each build draws its centres: with 20 of the partitions and the exact distances of 40 rows, the recall of builds of the same engine has a deviation of 0.03.
assert abs(figures["ray"] - figures["embedded"]) <= 0.02, figures

on_ray.create_index("l2", index_type="IVF_SQ", name="by_sq", **VECTOR)
on_ray.drop_index(index.name)
[index] = on_ray.list_indices()
assert index.index_type in ("IvfSq", "IVF_SQ"), index
figures["IVF_SQ"] = recall(on_ray, truth)
assert figures["IVF_SQ"] >= figures["embedded"] - 0.02, figures
print(json.dumps({"recall": figures, "jobs": len(jobs())}))
