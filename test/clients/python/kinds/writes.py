"""Writes: JSON columns, versions and counters, indices that exist, and the words of refusals."""

from datetime import timedelta

import pyarrow as pa
from beside import WAIT, fruit
from lancedb.index import FTS, BTree, IvfFlat, IvfPq, LabelList
from lancedb.query import PhraseQuery


def t(db):
    return db.open_table("t")


def upsert(table):
    return table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()


def json(both):
    """Columns of JSON."""
    doc = lambda db: db.open_table("docs")  # noqa: E731

    def documents(*ids):
        texts = pa.array([f'{{"n": {i}, "deep": {{"s": "t{i}"}}}}' for i in ids])
        return pa.table({"id": pa.array(ids, pa.int64()), "doc": pa.ExtensionArray.from_storage(pa.json_(), texts)})

    read = lambda db: sorted(doc(db).search().to_list(), key=lambda row: row["id"])  # noqa: E731
    both.same("create_table with JSON", lambda db: db.create_table("docs", documents(1, 2)).count_rows())
    both.same("insert JSON", lambda db: doc(db).add(documents(3)))
    both.same("insert text into JSON", lambda db: doc(db).add([{"id": 9, "doc": '{"n": 9}'}]))
    both.same("merge JSON", lambda db: upsert(doc(db)).execute(documents(3, 4)))
    both.same("merge text into JSON", lambda db: upsert(doc(db)).execute([{"id": 10, "doc": '{"n": 10}'}]))
    both.same("update JSON", lambda db: doc(db).update(where="id = 1", values={"doc": '{"n": 100}'}))
    both.same("update JSON by SQL", lambda db: doc(db).update(where="id = 2", values_sql={"doc": "'{\"n\": 200}'"}))
    both.same("read JSON", read)
    both.same("filter JSON", lambda db: doc(db).search().where("json_get_int(doc, 'n') > 9").select(["id"]).to_arrow())
    both.refused("insert bad JSON", lambda db: doc(db).add([{"id": 5, "doc": "{nope"}]), "Failed to encode JSON")
    both.refused("merge bad JSON", lambda db: upsert(doc(db)).execute([{"id": 5, "doc": "{nope"}]), "Failed to encode JSON")
    both.refused(
        "insert bytes into JSON",
        lambda db: doc(db).add(pa.table({"id": pa.array([12], pa.int64()), "doc": pa.array([b"{}"], pa.large_binary())})),
        "Append with different schema",
    )
    both.same("overwrite JSON", lambda db: doc(db).add(documents(7, 8), mode="overwrite"))
    both.same("read overwritten JSON", read)


def versions(both):
    """Versions and counters of writes."""
    both.same("create_table", lambda db: db.create_table("t", fruit(300)).version)
    both.same("an empty add", lambda db: t(db).add(fruit(0)))
    both.same("an add after it", lambda db: t(db).add(fruit(2, 300)))
    both.same("merge", lambda db: upsert(t(db)).execute(fruit(4, 300)))
    both.same("update of nothing", lambda db: t(db).update(where="id > 5000", values={"text": "x"}))
    both.same("delete of nothing", lambda db: t(db).delete("id > 5000"))
    both.same("versions", lambda db: [entry["version"] for entry in t(db).list_versions()])


def refusals(both):
    """Errors of users have the same words, and come at the first try."""
    both.same("create_table", lambda db: db.create_table("t", fruit(300)).version)
    # Errors of users: the same words, and at the first try
    required = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    both.same("create_table with a required column", lambda db: db.create_table("required", schema=required).count_rows())
    both.refused(
        "insert without a required column",
        lambda db: db.open_table("required").add(pa.table({"b": pa.array([1], pa.int64())})),
        "Append with different schema",
    )
    both.refused("a merge out of time", lambda db: upsert(t(db)).execute(fruit(2), timeout=timedelta(0)))
    # The words depend on who notices first: the engine, or the timer of the call.
    both.refused("a search out of time", lambda db: t(db).search([1.0, 2.0]).limit(300).to_arrow(timeout=timedelta(0)))
    both.refused(
        "an ambiguous merge",
        lambda db: upsert(t(db)).execute(pa.concat_tables([fruit(2), fruit(2)])),
        "Ambiguous merge inserts are prohibited",
    )
    both.refused("a merge of nothing to do", lambda db: t(db).merge_insert("id").execute(fruit(1)), "The merge insert job is not configured to change the data in any way")
    both.refused("a merge by a missing key", lambda db: t(db).merge_insert("nope").when_matched_update_all().execute(fruit(1)), "does not exist")
    both.refused("a merge with a bad condition", lambda db: t(db).merge_insert("id").when_matched_update_all(where="target.id >").execute(fruit(1)), "sql parser error")
    both.refused("a bad condition", lambda db: t(db).search().where("id >").to_list(), "Error parsing statement")
    both.refused("a condition on a missing column", lambda db: t(db).search().where("nope > 1").to_list(), "No field named nope")
    both.refused("a vector of another length", lambda db: t(db).update(where="id = 1", values={"vector": [1.0, 2.0, 3.0]}))

    MISSING = "Ref not found error: tag nope does not exist"
    both.same("create a tag", lambda db: t(db).tags.create("one", 1))
    both.refused("create a tag twice", lambda db: t(db).tags.create("one", 1), "Ref conflict error: tag one already exists")
    both.refused("create a tag of a bad name", lambda db: t(db).tags.create("a b", 1), "Ref is invalid")
    both.refused("get a missing tag", lambda db: t(db).tags.get_version("nope"), "not found")
    both.refused("update a missing tag", lambda db: t(db).tags.update("nope", 1), MISSING)
    both.refused("delete a missing tag", lambda db: t(db).tags.delete("nope"), MISSING)
    both.refused("tag a missing version", lambda db: t(db).tags.create("two", 99), "Version not found error", "99 does not exist")
    both.refused("move a tag to a missing version", lambda db: t(db).tags.update("one", 99), "Version not found error")
    both.refused("check a missing version out", lambda db: t(db).checkout(99), "99")
    both.refused("check a missing tag out", lambda db: t(db).checkout("nope"))
    both.refused("check a missing branch out", lambda db: t(db).branches.checkout("nope"), "nope")
    both.refused("delete a missing branch", lambda db: t(db).branches.delete("nope"), "nope")


def index_refusals(both):
    """Indices that exist or cannot be."""
    both.same("create_table", lambda db: db.create_table("t", fruit(300)).version)
    index = lambda db, column, config, **options: t(db).create_index(column, config=config, wait_timeout=WAIT, **options)  # noqa: E731
    NO_INDEX = "Cannot perform full text search unless an INVERTED index has been created on at least one column"
    both.refused("words without an index", lambda db: t(db).search("plum", query_type="fts").to_list(), NO_INDEX)
    both.same("create an index", lambda db: index(db, "id", BTree()))
    both.refused("create it again without replacing it", lambda db: index(db, "id", BTree(), replace=False), "already exists")
    both.same("replace an index", lambda db: index(db, "id", BTree()))
    both.same("replace an index by word", lambda db: index(db, "id", BTree(), replace=True))
    both.refused("an index of a name that is taken", lambda db: index(db, "text", BTree(), name="id_idx", replace=False), "already exists")
    both.same("ids of indices", lambda db: [(i.name, len(i.index_uuid), i.index_type, i.columns) for i in t(db).list_indices()])
    both.refused("a scalar index on vectors", lambda db: index(db, "vector", BTree()), "A BTree index cannot be created on the field `vector`")
    both.refused("labels of texts", lambda db: index(db, "text", LabelList()), "LabelList index cannot be created")
    both.refused("words of numbers", lambda db: index(db, "id", FTS()), "FTS index cannot be created")
    both.refused("a missing tokenizer", lambda db: index(db, "text", FTS(base_tokenizer="nope")), "unknown base tokenizer nope")
    both.refused("a missing language", lambda db: index(db, "text", FTS(language="Klingon")), "Klingon")
    both.refused("grams of no letters", lambda db: index(db, "text", FTS(base_tokenizer="ngram", ngram_min_length=0)), local=False)
    both.refused("blocks of an odd size", lambda db: index(db, "text", FTS(block_size=100)), "128 or 256")
    both.refused("parts that do not divide", lambda db: index(db, "vector", IvfPq(num_partitions=1, num_sub_vectors=3)), "num_sub_vectors must divide vector dimension 2")
    both.refused("a missing index", lambda db: t(db).drop_index("nope"), "nope")
    both.same("words with an index", lambda db: index(db, "text", FTS()))
    both.refused("a phrase without positions", lambda db: t(db).search(PhraseQuery("red pear", "text"), query_type="fts").to_list(), "position is not found but required for phrase queries")

    def partitions(db):
        # Newer engines train fewer partitions; older ones refuse. Neither may make a client repeat itself.
        try:
            index(db, "vector", IvfFlat(num_partitions=290, sample_rate=1))
        except Exception as error:
            assert "Hit retry limit" not in str(error), error

    both.same("more partitions than the data can train", partitions)


KINDS = [json, versions, refusals, index_refusals]
