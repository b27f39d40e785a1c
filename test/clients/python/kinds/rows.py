"""Rows: what a beginner does, writes of every kind, streams, and columns of many types."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from beside import fruit


def t(db):
    return db.open_table("t")


def quick_start(both):
    """Creates a table from dictionaries, searches, filters and drops it."""
    rows = [{"vector": [3.1, 4.1], "item": "foo", "price": 10.0}, {"vector": [5.9, 26.5], "item": "bar", "price": 20.0}]
    both.same("create_table", lambda db: [(table := db.create_table("t", rows)).name, table.version, table.schema])
    both.same("table_names", lambda db: list(db.table_names()))
    both.same("add", lambda db: t(db).add([{"vector": [1.3, 1.4], "item": "fizz", "price": 100.0}]))
    both.same("search", lambda db: t(db).search([100.0, 100.0]).limit(2).to_arrow())
    both.same("search as a list", lambda db: t(db).search([1.0, 1.0]).limit(3).to_list())
    both.same("filter", lambda db: t(db).search([1.0, 1.0]).where("price < 50").select(["item"]).to_arrow())
    both.same("scan", lambda db: t(db).search().to_arrow())
    both.same("head", lambda db: t(db).head(2))
    both.same("count_rows", lambda db: [len(t(db)), t(db).count_rows(), t(db).count_rows("price > 15")])
    both.same("expressions", lambda db: t(db).search().select({"double": "price * 2", "item": "upper(item)"}).to_arrow())
    both.same("stats", lambda db: t(db).stats())
    both.same("create_table again", lambda db: db.create_table("t", rows))
    both.same("create_table that exists", lambda db: db.create_table("t", rows, exist_ok=True).count_rows())
    both.same("create_table that exists with other columns", lambda db: db.create_table("t", [{"other": 1}], exist_ok=True))
    both.same("its rows", lambda db: t(db).search().to_arrow())
    both.same("create_table over it", lambda db: db.create_table("t", rows[:1], mode="overwrite").search().to_arrow())
    both.same("a mode that does not exist", lambda db: db.create_table("u", rows, mode="nope"))
    both.same("a name with a slash", lambda db: db.create_table("a/b", rows))
    both.same("an empty name", lambda db: db.create_table("", rows))
    both.same("drop_table", lambda db: db.drop_table("t"))
    both.same("drop it again", lambda db: db.drop_table("t"))
    both.same("drop it again, and ignore that", lambda db: db.drop_table("t", ignore_missing=True))
    both.same("open_table", lambda db: db.open_table("t"))


def changes(both):
    """Updates and deletes rows."""
    both.same("create_table", lambda db: db.create_table("t", fruit(20)).count_rows())
    read = lambda db: t(db).search().to_arrow().sort_by("id")  # noqa: E731
    both.same("update", lambda db: t(db).update(where="id < 5", values={"text": "it's new", "vector": [9.0, 9.0]}))
    both.same("update by SQL", lambda db: t(db).update(where="id = 7", values_sql={"text": "concat(text, '!')"}))
    both.same("update of all", lambda db: t(db).update(values_sql={"id": "id + 100"}))
    both.same("rows after updates", read)
    both.same("update of a missing column", lambda db: t(db).update(values={"nope": 1}))
    both.same("update with another type", lambda db: t(db).update(values={"id": "a"}))
    both.same("update where nothing parses", lambda db: t(db).update(where="id ==== 3", values={"id": 1}))
    both.same("delete", lambda db: t(db).delete("id in (100, 101)"))
    both.same("delete by text", lambda db: t(db).delete("text = 'it''s new'"))
    both.same("delete by a missing column", lambda db: t(db).delete("nope = 1"))
    both.same("rows after deletes", read)
    both.same("delete of all", lambda db: [t(db).delete("true"), t(db).count_rows(), t(db).schema])


def upsert(both):
    """Merges rows in every way."""
    both.same("create_table", lambda db: db.create_table("t", fruit(6)).count_rows())
    read = lambda db: t(db).search().to_arrow().sort_by("id")  # noqa: E731
    merge = lambda db, key="id": t(db).merge_insert(key)  # noqa: E731
    both.same("upsert", lambda db: merge(db).when_matched_update_all().when_not_matched_insert_all().execute(fruit(4, 4)))
    both.same("upsert with a condition", lambda db: merge(db).when_matched_update_all(where="target.id > 4").execute(fruit(6)))
    both.same("insert if missing", lambda db: merge(db).when_not_matched_insert_all().execute(fruit(4, 6)))
    both.same("replace a range", lambda db: merge(db).when_matched_update_all().when_not_matched_by_source_delete("id > 6").execute(fruit(7)))
    both.same("delete the others", lambda db: merge(db).when_not_matched_by_source_delete().execute(fruit(3)))
    both.same("by two keys", lambda db: merge(db, ["id", "text"]).when_matched_update_all().when_not_matched_insert_all().execute(fruit(2, 2)))
    both.same("of some columns", lambda db: merge(db).when_matched_update_all().execute(fruit(2).select(["id", "text"])))
    both.same("of dictionaries", lambda db: merge(db).when_not_matched_insert_all().execute([{"id": 50, "text": "x", "vector": [1.0, 1.0]}]))
    both.same("rows", read)
    both.same("add a required column", lambda db: t(db).add_columns({"required": "id + 1"}))
    both.same("of some columns, without a required one", lambda db: merge(db).when_matched_update_all().when_not_matched_by_source_delete().execute(fruit(2).select(["id", "text"])))
    both.same("rows with a required column", read)
    both.same("of another schema", lambda db: merge(db).when_matched_update_all().execute(pa.table({"id": [1], "x": [2]})))
    both.same("without its key", lambda db: merge(db).when_matched_update_all().execute(fruit(2).select(["text"])))


def streams(both):
    """Writes and reads rows in batches."""
    batches = fruit(25).to_batches(max_chunksize=10)
    reader = lambda: pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))  # noqa: E731
    both.same("create_table from a reader", lambda db: db.create_table("t", reader()).count_rows())
    both.same("create_table from an iterator", lambda db: db.create_table("i", iter(batches), schema=batches[0].schema).count_rows())
    both.same("create_table from batches of dictionaries", lambda db: db.create_table("d", iter([b.to_pylist() for b in batches]), schema=batches[0].schema).count_rows())
    both.same("add a reader", lambda db: [t(db).add(reader()), t(db).count_rows()])
    both.same("add an iterator", lambda db: [t(db).add(iter(batches)), t(db).count_rows()])
    both.same("add a batch", lambda db: t(db).add(batches[0]))
    both.same("read batches", lambda db: [batch.num_rows for batch in db.open_table("i").search().to_batches(batch_size=10)])
    both.same("rows of batches", lambda db: pa.Table.from_batches(db.open_table("i").search([3.0, 0.0]).limit(7).to_batches()))
    both.same("scan all", lambda db: t(db).search().to_arrow())
    both.same("scan a part", lambda db: t(db).search().limit(7).offset(20).to_arrow())
    both.same("offsets", lambda db: t(db).take_offsets([40, 0, 3]).to_arrow())
    both.same("an offset beyond the end", lambda db: t(db).take_offsets([4000]).to_arrow())
    both.same("row ids", lambda db: t(db).take_row_ids([0, 12]).select(["id"]).to_arrow())
    both.same("fill bad vectors", lambda db: t(db).add([{"id": 1, "text": "x", "vector": [1.0]}], on_bad_vectors="fill", fill_value=2.0))
    both.same("drop bad vectors", lambda db: t(db).add([{"id": 1, "text": "x", "vector": [1.0]}], on_bad_vectors="drop"))
    both.same("refuse bad vectors", lambda db: t(db).add([{"id": 1, "text": "x", "vector": [1.0]}]))

    async def read_async(db):
        table = await db.open_table("t")
        return [batch.num_rows async for batch in await table.query().limit(30).to_batches(max_batch_length=8)]

    both.same_async("read batches, async", read_async)


def types(both):
    """Keeps columns of many types, and their metadata."""
    columns = {
        "small": pa.array([1, None], pa.int8()),
        "unsigned": pa.array([2**63, 1], pa.uint64()),
        "half": pa.array(np.array([1.5, 2.5], np.float16)),
        "flag": pa.array([True, None]),
        "day": pa.array([date(2024, 2, 29), None]),
        "moment": pa.array([datetime(2024, 2, 29, 12, 30), None], pa.timestamp("us", tz="UTC")),
        "time": pa.array([1, None], pa.time64("us")),
        "span": pa.array([timedelta(seconds=3), None], pa.duration("ms")),
        "money": pa.array([Decimal("12.34"), None], pa.decimal128(10, 2)),
        "bytes": pa.array([b"\x00\xff", None]),
        "code": pa.array([b"abcd", None], pa.binary(4)),
        "large": pa.array(["long", None], pa.large_string()),
        "tags": pa.array([["a", None], []], pa.list_(pa.string())),
        "point": pa.array([{"x": 1, "y": {"z": "deep"}}, None]),
        "points": pa.array([[{"x": 1}], None]),
        "category": pa.array(["red", "red"]).dictionary_encode(),
        "nothing": pa.nulls(2, pa.int32()),
    }
    fields = [pa.field(name, values.type, metadata={"unit": name}) for name, values in columns.items()]
    rows = pa.table(list(columns.values()), schema=pa.schema(fields, metadata={"owner": "ada"}))
    both.same("create_table", lambda db: db.create_table("t", rows).schema)
    both.same("add", lambda db: t(db).add(rows))
    both.same("rows", lambda db: t(db).search().to_arrow())
    for condition in ("day = date '2024-02-29'", "point.y.z = 'deep'", "array_has(tags, 'a')", "money > 12", "code IS NULL", "flag", "large LIKE 'l%'"):
        both.same(f"where {condition}", lambda db, c=condition: t(db).search().where(c).select(["small", "unsigned"]).to_arrow())
    both.same("a part of a struct", lambda db: t(db).search().select(["point.y"]).to_arrow())
    both.same("a part of a struct by an expression", lambda db: t(db).search().select({"z": "point.y.z"}).to_arrow())
    both.same("wider numbers", lambda db: t(db).add(rows.select(["small"]).cast(pa.schema([pa.field("small", pa.int16())]))))
    both.same("numbers out of range", lambda db: t(db).add(pa.table({"small": [1000]})))
    both.same("a text for a number", lambda db: t(db).add(pa.table({"small": ["x"]})))


KINDS = [quick_start, changes, upsert, streams, types]
