"""Vectors: several in a query and in a row, of bits and of bytes."""

import numpy as np
import pyarrow as pa
from beside import WAIT, fruit
from lancedb.index import IvfFlat


def t(db):
    return db.open_table("t")


def several_queries(both):
    """Searches for several vectors at once."""
    both.same("create_table", lambda db: db.create_table("t", fruit(30)).count_rows())
    many = [[3.0, 0.0], [20.2, 0.0]]
    both.same("two vectors", lambda db: t(db).search(many).limit(2).to_arrow())
    both.same("two vectors as an array", lambda db: t(db).search(np.array(many, np.float32)).limit(2).select(["id"]).to_arrow())
    both.same("with a filter", lambda db: t(db).search(many).where("id > 10").limit(2).select(["id"]).to_arrow())

    async def two(db):
        query = (await db.open_table("t")).query().nearest_to(many)
        return await query.limit(2).select(["id"]).to_arrow()

    both.same_async("two vectors, async", two)
    for distance in ("l2", "cosine", "dot"):
        both.same(distance, lambda db, d=distance: t(db).search([3.5, 1.0]).distance_type(d).limit(4).select(["id"]).to_arrow())
    both.same("a distance that does not exist", lambda db: t(db).search([3.5, 1.0]).distance_type("nope").to_arrow())
    both.same("an array of doubles", lambda db: t(db).search(np.array([3.5, 1.0])).limit(4).to_arrow())
    both.same("a limit of zero", lambda db: t(db).search([3.5, 1.0]).limit(0).to_arrow())
    both.same("explain_plan", lambda db: "KNN" in t(db).search([3.5, 1.0]).limit(4).explain_plan(True))
    both.same("output_schema", lambda db: t(db).search([3.5, 1.0]).select(["id"]).output_schema())
    both.same("row addresses", lambda db: t(db).search([3.5, 1.0]).with_row_address().limit(2).to_arrow())


def multivector(both):
    """Keeps several vectors in a row and compares them with several of a query."""
    kind = pa.list_(pa.list_(pa.float32(), 2))
    values = [[[float(i), 1.0], [1.0, float(i)]] for i in range(40)]
    rows = pa.table({"id": pa.array(range(40), pa.int64()), "vector": pa.array(values, kind)})
    both.same("create_table", lambda db: db.create_table("t", rows).schema)
    query = [[3.0, 1.0], [1.0, 4.0]]
    search = lambda db, q: t(db).search(q, vector_column_name="vector").distance_type("cosine").limit(3).to_arrow()  # noqa: E731
    both.same("one vector", lambda db: search(db, query[0]))
    both.same("several vectors", lambda db: search(db, query))
    both.same("several vectors as an array", lambda db: search(db, np.array(query, np.float32)))
    both.same("with another distance", lambda db: t(db).search(query, vector_column_name="vector").distance_type("l2").limit(3).to_arrow())
    index = IvfFlat(distance_type="cosine", num_partitions=1)
    both.same("index", lambda db: t(db).create_index("vector", config=index, wait_timeout=WAIT))
    both.same("several vectors with an index", lambda db: search(db, query))


def other_vectors(both):
    """Compares vectors of bits, of halves and of doubles."""
    bits = pa.array([[i, 255 - i] for i in range(30)], pa.list_(pa.uint8(), 2))
    halves = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(60, dtype=np.float16)), 2)
    doubles = pa.array([[float(i), 0.5] for i in range(30)], pa.list_(pa.float64(), 2))
    rows = pa.table({"id": pa.array(range(30), pa.int64()), "bits": bits, "halves": halves, "doubles": doubles})
    both.same("create_table", lambda db: db.create_table("t", rows).schema)
    near = lambda db, column, vector: t(db).search(vector, vector_column_name=column).limit(3).select(["id"])  # noqa: E731
    both.same("bits", lambda db: near(db, "bits", np.array([7, 248], np.uint8)).distance_type("hamming").to_arrow())
    both.same("bits by another distance", lambda db: near(db, "bits", np.array([7, 248], np.uint8)).distance_type("cosine").to_arrow())
    both.same("halves", lambda db: near(db, "halves", [9.0, 10.0]).to_arrow())
    both.same("doubles", lambda db: near(db, "doubles", [9.2, 0.5]).to_arrow())
    both.same("a column that does not exist", lambda db: near(db, "nope", [9.2, 0.5]).to_arrow())
    both.same("a column without vectors", lambda db: near(db, "id", [9.2, 0.5]).to_arrow())
    index = IvfFlat(distance_type="hamming", num_partitions=1)
    both.same("index of bits", lambda db: t(db).create_index("bits", config=index, wait_timeout=WAIT))
    both.same("bits with an index", lambda db: near(db, "bits", np.array([7, 248], np.uint8)).distance_type("hamming").to_arrow())


KINDS = [several_queries, multivector, other_vectors]
