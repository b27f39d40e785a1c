"""Catalogs: namespaces, lists of tables, permutations, blobs, views and jobs."""

import lancedb
import pyarrow as pa
from beside import fruit
from lancedb.index import BTree
from lancedb.permutation import Permutation, permutation_builder


def t(db):
    return db.open_table("t")


def tables(both):
    """Lists, pages, renames and drops tables."""
    both.same("create", lambda db: [db.create_table(name, fruit(1)).name for name in ("b", "a", "c", "a-1", "A")])
    both.same("table_names", lambda db: list(db.table_names()))
    both.same("a page", lambda db: list(db.table_names(limit=2)))
    both.same("the next page", lambda db: list(db.table_names(page_token="a", limit=2)))
    both.same("list_tables", lambda db: db.list_tables().tables)
    both.same("pages of list_tables", lambda db: [(page := db.list_tables(limit=2)).tables, db.list_tables(page_token=page.page_token).tables])
    both.same("in", lambda db: ["a" in db, "z" in db])
    both.same("len", lambda db: len(db))
    both.same("rename_table", lambda db: [db.rename_table("a", "z"), list(db.table_names())])
    both.same("rename a missing table", lambda db: db.rename_table("nope", "y"))
    both.same("drop_table", lambda db: [db.drop_table("b"), "b" in db.table_names()])
    both.same("an empty table", lambda db: [(table := db.create_table("e", schema=fruit(0).schema)).count_rows(), table.search([1.0, 0.0]).to_arrow()])
    both.same("neither rows nor a schema", lambda db: db.create_table("n"))
    both.same("drop_all_tables", lambda db: [db.drop_all_tables(), list(db.table_names())])


def namespaces(both):
    """Keeps tables in namespaces."""
    both.same("create", lambda db: db.create_namespace(["team"], properties={"owner": "ada"}).properties)
    both.same("create inside", lambda db: db.create_namespace(["team", "inner"]).properties or {})
    both.same("list", lambda db: [db.list_namespaces().namespaces, db.list_namespaces(["team"]).namespaces])
    both.same("describe", lambda db: db.describe_namespace(["team"]).properties)
    both.same("create again", lambda db: db.create_namespace(["team"]))
    both.same("create again, if missing", lambda db: db.create_namespace(["team"], mode="exist_ok").properties)
    both.same("describe a missing one", lambda db: db.describe_namespace(["nope"]))
    both.same("create_table", lambda db: db.create_table("t", fruit(3), namespace_path=["team", "inner"]).search([1.0, 0.0]).limit(1).to_arrow())
    both.same("open_table", lambda db: db.open_table("t", namespace_path=["team", "inner"]).count_rows())
    both.same("table_names", lambda db: [list(db.table_names(namespace_path=["team", "inner"])), list(db.table_names())])
    both.same("open it elsewhere", lambda db: db.open_table("t"))
    both.same("drop a full namespace", lambda db: db.drop_namespace(["team"]))
    both.same("drop_table", lambda db: db.drop_table("t", namespace_path=["team", "inner"]))
    both.same("drop", lambda db: [db.drop_namespace(["team", "inner"]).properties or {}, db.list_namespaces(["team"]).namespaces])
    both.same("drop a missing one", lambda db: db.drop_namespace(["nope"]))


def permutations(both):
    """Splits, shuffles and loads rows."""
    both.same("create_table", lambda db: db.create_table("t", fruit(40)).version)
    rows = lambda table: table.search(None).to_arrow().sort_by("row_id")  # noqa: E731
    both.same("split_sequential", lambda db: rows(permutation_builder(t(db)).split_sequential(counts=[10, 5]).execute()))
    both.same("split_hash", lambda db: rows(permutation_builder(t(db)).split_hash(["text"], [1, 1], discard_weight=1).execute()))
    both.same("split_calculated", lambda db: rows(permutation_builder(t(db)).split_calculated("id % 3").execute()))
    both.same("split_random", lambda db: rows(permutation_builder(t(db)).split_random(ratios=[0.3, 0.7], seed=5).execute()))
    both.same("filter", lambda db: rows(permutation_builder(t(db)).filter("id > 30").execute()))
    both.same("shuffle", lambda db: permutation_builder(t(db)).shuffle(seed=3).execute().search(None).to_arrow())
    loaded = lambda db: Permutation.from_tables(t(db), permutation_builder(t(db)).filter("id < 9").execute())  # noqa: E731
    both.same("iter", lambda db: list(loaded(db).iter(4, skip_last_batch=False)))
    both.same("columns", lambda db: [(p := loaded(db).select_columns(["id", "text"]).rename_column("text", "words")).column_names, p.num_rows, p.schema])
    both.same("formats", lambda db: [list(loaded(db).select_columns(["id"]).with_format(f).iter(5, skip_last_batch=True)) for f in ("arrow", "python_col")])
    both.same("take_offsets", lambda db: loaded(db).take_offsets([0, 3]))
    both.same("identity", lambda db: Permutation.identity(t(db)).num_rows)


LARGE = bytes(range(256)) * 40_000


def blobs(both):
    """Keeps large values beside the rows."""
    schema = pa.schema([pa.field("id", pa.int64()), lancedb.blob("video")])
    rows = [{"id": id, "video": video} for id, video in enumerate([b"alpha", None, b"", LARGE, b"x" * 100_000])]
    both.same("create_table", lambda db: db.create_table("t", schema=schema).schema)
    both.same("add", lambda db: t(db).add(rows))
    both.same("blob_columns", lambda db: t(db).blob_columns())
    both.same("scan", lambda db: t(db).search().to_arrow())
    ids = lambda db, where="true": t(db).search().where(where).with_row_id(True).to_arrow()["_rowid"].to_pylist()  # noqa: E731
    fetched = lambda db, ids: [blob and [len(blob), hash(blob)] for blob in t(db).fetch_blobs("video", ids).to_pylist()]  # noqa: E731
    files = lambda db: t(db).fetch_blob_files("video", ids(db))  # noqa: E731
    both.same("fetch_blobs", lambda db: fetched(db, ids(db)))
    both.same("fetch_blobs of hits", lambda db: fetched(db, t(db).search().where("id > 2").to_arrow()))
    both.same("repeated", lambda db: fetched(db, [ids(db)[2], ids(db)[0], ids(db)[0]]))
    both.same("files", lambda db: [file and [file.size(), hash(file.read())] for file in files(db)])
    both.same("a range", lambda db: files(db)[3].read_range(5_000_000, 1_000))

    def in_steps(db):
        file = files(db)[4]
        file.seek(7)
        return [file.read(10), file.read(20), file.tell()]

    both.same("in steps", in_steps)
    both.same("a range beyond the end", lambda db: files(db)[0].read_range(3, 1_000))
    both.same("fetch_blob_ranges", lambda db: t(db).fetch_blob_ranges("video", [(ids(db)[3], 0, 10)]))
    both.same("another column", lambda db: t(db).fetch_blobs("id", ids(db)))
    both.same("a missing column", lambda db: t(db).fetch_blobs("missing", ids(db)))
    both.same("a missing row", lambda db: t(db).fetch_blobs("video", [77]))
    both.same("a file of a missing row", lambda db: t(db).fetch_blob_files("video", [77]))
    both.same("update", lambda db: t(db).update(where="id = 0", values={"video": b"new"}))
    upsert = lambda db: t(db).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()  # noqa: E731
    both.same("merge", lambda db: upsert(db).execute([{"id": 0, "video": b"merged"}, {"id": 5, "video": b"more"}]))
    both.same("delete", lambda db: [t(db).delete("id = 1"), sorted(map(str, fetched(db, ids(db))))])
    uri = pa.array([{"data": None, "uri": "file:///etc/hostname"}], schema.field("video").type.storage_type)
    both.same("a file elsewhere", lambda db: t(db).add(pa.table({"id": [9], "video": uri})))

    def at_first(db):
        table = t(db)
        table.checkout(2)
        return fetched_at(table, ids(db, "id = 3"))

    fetched_at = lambda table, ids: [len(blob) for blob in table.fetch_blobs("video", ids).to_pylist()]  # noqa: E731
    both.same("an older version", at_first)


def views(both):
    """Keeps the rows of queries."""
    both.same("create_table", lambda db: db.create_table("t", fruit(5)).version)
    make = lambda db, name, **options: db.create_materialized_view(name, "t", **options)  # noqa: E731
    read = lambda db, name="mv": db.open_table(name).search().select(["id"]).to_arrow().sort_by("id")["id"].to_pylist()  # noqa: E731
    both.same("create", lambda db: [make(db, "mv", select=["id", ("twice", "id * 2")], where="id > 1").name, read(db)])
    both.same("its schema", lambda db: db.open_table("mv").schema)
    quoted = [("a", '"id"'), ("b", "upper(`text`)")]
    both.same("names in quotes", lambda db: make(db, "quoted", select=quoted, where='"id" > 1').table.search().select(["a", "b"]).to_arrow().to_pylist())
    both.same("drop it", lambda db: db.drop_materialized_view("quoted"))
    both.same("definition", lambda db: db.open_materialized_view("mv").definition.query)
    both.same("create again", lambda db: make(db, "mv"))
    both.same("of a missing table", lambda db: db.create_materialized_view("other", "nope"))
    both.same("of a missing column", lambda db: make(db, "other", select=["nope"]))
    both.same("a condition that does not parse", lambda db: make(db, "other", where="id >"))
    both.same("without data", lambda db: [make(db, "empty", with_no_data=True).name, read(db, "empty")])
    both.same("list", lambda db: sorted(db.list_materialized_views()))
    both.same("refresh", lambda db: [t(db).add(fruit(2, 5)).version, db.open_materialized_view("mv").refresh().mode, read(db)])
    both.same("refresh without a change", lambda db: [db.open_materialized_view("mv").refresh().mode, read(db)])
    both.same("refresh after a delete", lambda db: [t(db).delete("id = 3").version, db.open_materialized_view("mv").refresh().mode, read(db)])
    both.same("open another table as a view", lambda db: db.open_materialized_view("t"))
    both.same("drop", lambda db: [db.drop_materialized_view("mv"), sorted(db.list_materialized_views())])
    both.same("drop a missing view", lambda db: db.drop_materialized_view("mv"))


def jobs(both):
    """Waits for work that goes on by itself."""
    both.same("create_table", lambda db: db.create_table("t", fruit(20)).version)
    both.same("create_index_async", lambda db: [t(db).create_index_async("id", config=BTree()).wait(), [i.name for i in t(db).list_indices()]])
    both.same("its state", lambda db: (job := t(db).create_index_async("id", config=BTree())).wait() or job.status())
    both.same("a column that does not exist", lambda db: t(db).create_index_async("nope", config=BTree()).wait())
    both.same("drop_table_async", lambda db: [db.create_table("u", fruit(1)).version, db.drop_table_async("u").wait(), list(db.table_names())])
    both.same("open a missing job", lambda db: db.open_job("00000000-0000-0000-0000-000000000000").status())
    both.same("cancel a missing job", lambda db: db.cancel_job("00000000-0000-0000-0000-000000000000"))


KINDS = [tables, namespaces, permutations, blobs, views, jobs]
