"""The calls of a table."""

from datetime import timedelta

import lancedb
import pyarrow as pa
from lancedb import LsmWriteSpec
from lancedb.index import FTS, BTree, IvfFlat

from .ground import rows_of

MINUTE = timedelta(minutes=1)


def changed(call):
    """Makes a change, and answers with the rows that it leaves."""

    def changing(c):
        yield call(c)
        return (yield scan(c.t))

    return changing


def scan(table):
    return table.head(20)


def fields_after(call):
    def changing(c):
        yield call(c)
        return (yield schema_of(c.t))

    return changing


def schema_of(table):
    return table.schema() if callable(table.schema) else table.schema


def read(query):
    """The rows of a query; a synchronous one has them without waiting."""
    return query.to_arrow()


def search(c):
    query = yield c.t.search([1.2, 1.0])
    return (yield read(query.limit(2)))


def create_index(c):
    if c.asynchronous:
        yield c.t.create_index("vector", config=IvfFlat(num_partitions=1), wait_timeout=MINUTE)
    else:
        yield c.t.create_index(
            vector_column_name="vector", index_type="IVF_FLAT", num_partitions=1, wait_timeout=MINUTE
        )
    return [[each.name, each.columns] for each in (yield c.t.list_indices())]


def create_index_async(c):
    yield (yield c.t.create_index_async("id", config=BTree())).wait()
    return [[each.name, each.columns] for each in (yield c.t.list_indices())]


def create_scalar_index(c):
    yield c.t.create_scalar_index("id")
    yield c.t.wait_for_index(["id_idx"], MINUTE)
    return [[each.name, each.columns] for each in (yield c.t.list_indices())]


def create_fts_index(c):
    yield c.t.create_fts_index("text")
    yield c.t.wait_for_index(["text_idx"], MINUTE)
    return [[each.name, each.columns] for each in (yield c.t.list_indices())]


def indexed(call, config=None, column="id"):
    """Makes a call on a table with an index."""

    def whole(c):
        if c.asynchronous:
            yield c.t.create_index(column, config=config or BTree())
        elif config is None:
            yield c.t.create_scalar_index(column)
        else:
            yield c.t.create_fts_index(column)
        yield c.t.wait_for_index([f"{column}_idx"], MINUTE)
        return (yield from call(c))

    return whole


def index_stats(c):
    found = yield c.t.index_stats("id_idx")
    return [found.index_type, found.num_indexed_rows, found.num_unindexed_rows]


def drop_index(c):
    yield c.t.drop_index("id_idx")
    return [each.name for each in (yield c.t.list_indices())]


def list_indices(c):
    return [[each.name, each.index_type, each.columns] for each in (yield c.t.list_indices())]


def prewarm_index(c):
    yield c.t.prewarm_index("id_idx")


def tokenize(c):
    return [[token.text, token.position] for token in (yield c.t.tokenize("Red Apples", column="text"))]


def checkout(c):
    yield c.t.add(rows_of([4]))
    yield c.t.checkout(1)
    return (yield c.t.count_rows())


def checkout_latest(c):
    yield c.t.add(rows_of([4]))
    yield c.t.checkout(1)
    yield c.t.checkout_latest()
    return (yield c.t.count_rows())


def restore(c):
    yield c.t.add(rows_of([4]))
    yield c.t.restore(1)
    return (yield c.t.count_rows())


def list_versions(c):
    yield c.t.add(rows_of([4]))
    return [each["version"] for each in (yield c.t.list_versions())]


def merge_insert(c):
    merge = c.t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    done = yield merge.execute(rows_of([2, 9]))
    return [done.num_inserted_rows, done.num_updated_rows, (yield c.t.count_rows())]


def refresh_column(c):
    yield c.t.add_columns(computed={"twice": "id * 2"})
    yield c.t.refresh_column("twice")
    return (yield scan(c.t))


def refresh_column_async(c):
    yield c.t.add_columns(computed={"twice": "id * 2"})
    done = yield (yield c.t.refresh_column_async("twice")).wait()
    return [done.rows_filled, (yield scan(c.t))]


def stats(c):
    found = yield c.t.stats()
    fields = vars(found) if not isinstance(found, dict) else found
    return [fields["num_rows"], fields["num_indices"], fields["fragment_stats"]["num_fragments"]]


def optimize(c):
    yield c.t.add(rows_of([4]))
    yield c.t.optimize()
    return (yield c.t.count_rows())


def set_unenforced_primary_key(c):
    yield c.t.set_unenforced_primary_key("key")
    field = (yield schema_of(c.t)).field("key")
    return {name.decode(): value.decode() for name, value in (field.metadata or {}).items()}


def with_blobs(call):
    """Makes a call on a table with a blob, and the id of its row."""

    def whole(c):
        schema = pa.schema([pa.field("id", pa.int64()), lancedb.blob("video")])
        clips = yield c.db.create_table("clips", schema=schema)
        yield clips.add([{"id": 1, "video": b"0123456789"}])
        found = yield read(clips.query().with_row_id() if c.asynchronous else clips.search().with_row_id(True))
        return (yield from call(clips, found["_rowid"].to_pylist()))

    return whole


def blob_columns(clips, ids):
    return (yield clips.blob_columns())


def fetch_blobs(clips, ids):
    return (yield clips.fetch_blobs("video", ids))


def fetch_blob_files(clips, ids):
    (file,) = yield clips.fetch_blob_files("video", ids)
    return [(yield file.size()), (yield file.read_range(2, 3))]


def fetch_blob_ranges(clips, ids):
    return (yield clips.fetch_blob_ranges("video", [(ids[0], 2, 3)]))


def wait_for_index(c):
    yield c.t.wait_for_index(["id_idx"], MINUTE)


def property_or_call(name):
    def call(c):
        value = getattr(c.t, name)
        return value() if callable(value) else value

    return call


def vector_search(c):
    return (yield read(c.t.vector_search([1.2, 1.0]).limit(2)))


def query(c):
    return (yield read(c.t.query().where("id > 1").select(["id"])))


# The parameter of the new values, in the synchronous client and in the asynchronous one.
UPDATES = ("values", "updates")

TABLE = {
    "add": changed(lambda c: c.t.add(rows_of([4]))),
    "add_columns": changed(lambda c: c.t.add_columns({"twice": "id * 2"})),
    "alter_columns": fields_after(lambda c: c.t.alter_columns({"path": "text", "rename": "words"})),
    "blob_columns": with_blobs(blob_columns),
    "branches": lambda c: c.t.branches,
    "checkout": checkout,
    "checkout_latest": checkout_latest,
    "checkpoint_lsm": lambda c: c.t.checkpoint_lsm(),
    "cleanup_old_versions": lambda c: c.t.cleanup_old_versions() and None,
    "close": lambda c: c.t.close(),
    "close_lsm_writers": lambda c: c.t.close_lsm_writers(),
    "compact_files": lambda c: c.t.compact_files() and None,
    "compact_lsm": lambda c: c.t.compact_lsm(),
    "count_rows": lambda c: c.t.count_rows("id > 1"),
    "create_fts_index": create_fts_index,
    "create_index": create_index,
    "create_index_async": create_index_async,
    "create_scalar_index": create_scalar_index,
    "current_branch": lambda c: c.t.current_branch(),
    "delete": changed(lambda c: c.t.delete("id = 2")),
    "drop_columns": fields_after(lambda c: c.t.drop_columns(["text"])),
    "drop_index": indexed(drop_index),
    "embedding_functions": property_or_call("embedding_functions"),
    "fetch_blob_files": with_blobs(fetch_blob_files),
    "fetch_blob_ranges": with_blobs(fetch_blob_ranges),
    "fetch_blobs": with_blobs(fetch_blobs),
    "flush_lsm": lambda c: c.t.flush_lsm(),
    "function_errors": lambda c: c.t.function_errors(),
    "get_lsm_stats": lambda c: c.t.get_lsm_stats(),
    "get_lsm_write_spec": lambda c: c.t.get_lsm_write_spec(),
    "head": lambda c: c.t.head(2),
    "index_stats": indexed(index_stats),
    "initial_storage_options": lambda c: c.t.initial_storage_options(),
    "is_open": lambda c: c.t.is_open(),
    "latest_storage_options": lambda c: c.t.latest_storage_options(),
    "list_indices": indexed(list_indices),
    "list_versions": list_versions,
    "merge_insert": merge_insert,
    "migrate_manifest_paths_v2": lambda c: c.t.migrate_manifest_paths_v2(),
    "migrate_v2_manifest_paths": lambda c: c.t.migrate_v2_manifest_paths(),
    "name": lambda c: c.t.name,
    "optimize": optimize,
    "prewarm_data": lambda c: c.t.prewarm_data(["id"]),
    "prewarm_index": indexed(prewarm_index),
    "query": query,
    "refresh_column": refresh_column,
    "refresh_column_async": refresh_column_async,
    "replace_field_metadata": fields_after(lambda c: c.t.replace_field_metadata("text", {"language": "en"})),
    "restore": restore,
    "schema": lambda c: schema_of(c.t),
    "search": search,
    "set_lsm_write_spec": lambda c: c.t.set_lsm_write_spec(LsmWriteSpec.unsharded()),
    "set_unenforced_primary_key": set_unenforced_primary_key,
    "stats": stats,
    "tags": lambda c: c.t.tags,
    "take_offsets": lambda c: read(c.t.take_offsets([0, 2])),
    "take_row_ids": lambda c: read(c.t.take_row_ids([0, 2])),
    "to_arrow": lambda c: c.t.to_arrow(),
    "to_lance": lambda c: c.t.to_lance(),
    "to_pandas": lambda c: c.t.to_pandas(),
    "to_polars": lambda c: c.t.to_polars(),
    "tokenize": indexed(tokenize, FTS(), "text"),
    "unset_lsm_write_spec": lambda c: c.t.unset_lsm_write_spec(),
    "update": changed(lambda c: c.t.update(where="id = 2", **{UPDATES[c.asynchronous]: {"text": "new"}})),
    "update_field_metadata": fields_after(
        lambda c: c.t.update_field_metadata({"path": "text", "metadata": {"language": "en"}})
    ),
    "uri": property_or_call("uri"),
    "uses_v2_manifest_paths": lambda c: c.t.uses_v2_manifest_paths(),
    "vector_search": vector_search,
    "version": property_or_call("version"),
    "wait_for_index": indexed(wait_for_index),
}
