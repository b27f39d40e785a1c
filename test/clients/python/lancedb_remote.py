"""An ordinary session of LanceDB's own remote client, `db://`, with every answer checked."""

import json
import os
import sys
from datetime import timedelta
from importlib.metadata import version

# The client sends large tables in parts where it may use several threads.
os.environ["LANCE_CPU_THREADS"] = "4"

import lancedb  # noqa: E402
import pyarrow as pa  # noqa: E402
from lance_namespace import DescribeTableRequest, ListTableTagsRequest  # noqa: E402
from lancedb.index import FTS, Bitmap, BTree, IvfPq  # noqa: E402
from lancedb.query import (  # noqa: E402
    BooleanQuery,
    BoostQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from lancedb.rerankers import RRFReranker  # noqa: E402

failures: list[str] = []
calls = 0


def check(name, call, expected=None):
    """Makes a call; its result has to equal what is expected, or to satisfy it if that is a function."""
    global calls
    calls += 1
    try:
        result = call()
        fits = expected(result) if callable(expected) else result == expected
        if not fits:
            failures.append(f"{name}: unexpected result {result!r}")
        return result
    except Exception as error:  # noqa: BLE001 - every failure is reported, and the session goes on.
        failures.append(f"{name}: {type(error).__name__}: {error}")
        return None


def refused(name, call, *words):
    """Makes a call that has to fail with a text that has all the words."""
    global calls
    calls += 1
    try:
        failures.append(f"{name}: succeeded with {call()!r}")
    except Exception as error:  # noqa: BLE001 - the text is what is checked.
        missing = [word for word in words if word not in str(error)]
        if missing:
            failures.append(f"{name}: {type(error).__name__} lacks {missing}: {error}")


def anything(_result):
    return True


def ids(rows):
    return [row["id"] for row in rows]


TEXTS = ["red apple", "green apple", "red pear", "blue plum", "yellow quince", "green grape"]


def rows_of(numbers):
    vectors = pa.array([[float(i), 0.0, 0.0, 1.0] for i in numbers], pa.list_(pa.float32(), 4))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([TEXTS[i % len(TEXTS)] for i in numbers], pa.string()),
            "day": pa.array([i for i in numbers], pa.date32()),
            "at": pa.array([i * 1000 for i in numbers], pa.timestamp("us", "UTC")),
            "price": pa.array([i for i in numbers], pa.decimal128(10, 2)),
            "vector": vectors,
        }
    )


SCHEMA = rows_of([]).schema


def connect():
    return lancedb.connect("db://shop", api_key="k", host_override=sys.argv[1])


db = connect()

# Tables: creation in every mode
t = check("create_table", lambda: db.create_table("fruit", rows_of(range(6))), lambda table: table.name == "fruit")
refused("create_table twice", lambda: db.create_table("fruit", rows_of(range(6))), "already exists")
check(
    "create_table exist_ok",
    lambda: db.create_table("fruit", rows_of(range(2)), exist_ok=True).count_rows(),
    6,
)
check("create_table empty", lambda: db.create_table("empty", schema=SCHEMA).count_rows(), 0)
check("create_table overwrite", lambda: db.create_table("empty", rows_of([1]), mode="overwrite").count_rows(), 1)
check("table_names", lambda: sorted(db.table_names()), ["empty", "fruit"])
check("table_names page", lambda: list(db.table_names(page_token="empty", limit=1)), ["fruit"])
check("list_tables", lambda: sorted(db.list_tables().tables), ["empty", "fruit"])

# A client of its own has nothing cached
db = connect()
t = check("open_table", lambda: db.open_table("fruit"), lambda table: table.name == "fruit")
refused("open_table missing", lambda: db.open_table("missing"), "missing", "not found")
check("schema", lambda: t.schema, SCHEMA)
check("version", lambda: t.version, 1)
check("uri", lambda: t.uri, lambda uri: "fruit" in uri)
check("count_rows", lambda: t.count_rows(), 6)
check("count_rows filter", lambda: t.count_rows("id > 2"), 3)
refused("count_rows bad filter", lambda: t.count_rows("id >"), "400")
check("add", lambda: t.add(rows_of([6, 7])).version, 2)
check("count_rows after add", lambda: t.count_rows(), 8)
refused("add wrong schema", lambda: t.add(pa.table({"other": ["x"]})), "other")
check("head", lambda: t.head(2).num_rows, 2)

# Reading: vectors, filters, columns, order
near = [2.2, 0.0, 0.0, 1.0]
check("search vector", lambda: ids(t.search(near).limit(2).to_list()), [2, 3])
check("search arrow", lambda: t.search(near).limit(2).to_arrow().schema.field("at").type, pa.timestamp("us", "UTC"))
check("search pandas columns", lambda: t.search(near).select(["id"]).limit(1).to_arrow().column_names, ["id", "_distance"])
check("search where", lambda: ids(t.search(near).where("id > 3").limit(1).to_list()), [4])
check("search postfilter", lambda: ids(t.search(near).where("id > 3", prefilter=False).limit(1).to_list()), [])
check("search metric", lambda: t.search(near).metric("dot").limit(1).to_list()[0]["id"], 7)
check("search range", lambda: ids(t.search(near).distance_range(0.5, 2.0).limit(5).to_list()), [3, 1])
check("search offset", lambda: ids(t.search(near).limit(1).offset(1).to_list()), [3])
check("search row ids", lambda: "_rowid" in t.search(near).with_row_id(True).limit(1).to_list()[0], True)
check(
    "search several vectors",
    lambda: sorted({(row["query_index"], row["id"]) for row in t.search([near, [5, 0, 0, 1]]).limit(1).to_list()}),
    [(0, 2), (1, 5)],
)
check("scan filter", lambda: sorted(ids(t.search().where("id >= 6").to_list())), [6, 7])
check("scan unlimited", lambda: len(t.search().to_list()), 8)
check("scan alias", lambda: t.search().select({"double": "id * 2"}).where("id = 3").to_list(), [{"double": 6}])
refused("search missing column", lambda: t.search().select(["nope"]).to_list(), "nope")
check("explain_plan", lambda: t.search(near).limit(2).explain_plan(verbose=True), lambda plan: "KNN" in plan)
check("analyze_plan", lambda: t.search(near).limit(2).analyze_plan(), lambda plan: "metrics" in plan)

# Writing
merged = check(
    "merge_insert",
    lambda: t.merge_insert("id")
    .when_matched_update_all()
    .when_not_matched_insert_all()
    .execute(rows_of([7, 8]), timeout=timedelta(seconds=20)),
    lambda result: (result.num_updated_rows, result.num_inserted_rows) == (1, 1),
)
check(
    "merge_insert if",
    lambda: t.merge_insert("id").when_matched_update_all(where="target.id = 99").execute(rows_of([7])),
    lambda result: result.num_updated_rows == 0,
)
check(
    "merge_insert delete",
    lambda: t.merge_insert("id")
    .when_not_matched_insert_all()
    .when_not_matched_by_source_delete("id = 8")
    .execute(rows_of([7])),
    lambda result: result.num_deleted_rows == 1,
)
check(
    "update",
    lambda: t.update(where="id = 7", values={"text": "it's new"}),
    lambda result: result.rows_updated == 1 and result.version > 2,
)
check("update expression", lambda: t.update(where="id = 6", values_sql={"id": "id + 100"}).rows_updated, 1)
check("delete", lambda: t.delete("id > 6"), lambda result: result.num_deleted_rows == 2)
check("count_rows after delete", lambda: t.count_rows(), 6)
refused("delete bad predicate", lambda: t.delete("nonsense >"), "400")
check("add overwrite", lambda: db.open_table("empty").add(rows_of([1, 2, 3]), mode="overwrite").version, 3)
check("stats", lambda: t.stats(), lambda stats: stats["num_rows"] == 6 and stats["fragment_stats"]["num_fragments"] > 0)

# Columns
check("add_columns sql", lambda: t.add_columns({"twice": "id * 2"}).version, lambda version: version > 0)
check("scan new column", lambda: t.search().where("id = 3").select(["twice"]).to_list(), [{"twice": 6}])
check(
    "add_columns schema",
    lambda: t.add_columns(pa.schema([("note", pa.string()), ("score", pa.float32())])).version,
    lambda version: version > 0,
)
check("scan null column", lambda: t.search().where("note IS NULL").limit(1).to_list()[0]["score"], None)
check("alter_columns rename", lambda: t.alter_columns({"path": "note", "rename": "remark"}).version, lambda v: v > 0)
check(
    "alter_columns type",
    lambda: t.alter_columns({"path": "score", "data_type": pa.float64()}).version,
    lambda version: version > 0,
)
check("schema after alter", lambda: t.schema.field("score").type, pa.float64())
check("drop_columns", lambda: t.drop_columns(["remark", "twice"]).version, lambda version: version > 0)
check("schema after drop", lambda: t.schema.names, [*SCHEMA.names, "score"])
refused("drop_columns missing", lambda: t.drop_columns(["nope"]), "nope")
check(
    "update_field_metadata",
    lambda: t.update_field_metadata({"path": "text", "metadata": {"language": "en"}}).version,
    lambda version: version > 0,
)
check("schema metadata", lambda: t.schema.field("text").metadata, {b"language": b"en"})

# Indices
big = check("create_table for indices", lambda: db.create_table("big", rows_of(range(600))), anything)
wait = timedelta(seconds=60)
check("create_index scalar", lambda: big.create_index("id", config=BTree(), wait_timeout=wait), None)
check("create_index bitmap", lambda: big.create_index("text", config=Bitmap(), name="texts", wait_timeout=wait), None)
check("create_index fts", lambda: big.create_index("text", config=FTS(with_position=True), wait_timeout=wait), None)
check(
    "create_index vector",
    lambda: big.create_index("vector", config=IvfPq(num_partitions=2, num_sub_vectors=2), wait_timeout=wait),
    None,
)
check("create_index old form", lambda: big.create_index("l2", vector_column_name="vector", index_type="IVF_FLAT", num_partitions=2), None)
check("create_scalar_index", lambda: big.create_scalar_index("id", index_type="BTREE", replace=True), None)
check("wait_for_index", lambda: big.wait_for_index(["id_idx", "texts", "text_idx", "vector_idx"], wait), None)
check(
    "list_indices",
    lambda: sorted((index.name, index.columns[0]) for index in big.list_indices()),
    [("id_idx", "id"), ("text_idx", "text"), ("texts", "text"), ("vector_idx", "vector")],
)
check(
    "index_stats",
    lambda: big.index_stats("id_idx"),
    lambda stats: (stats.num_indexed_rows, stats.num_unindexed_rows, stats.index_type.upper()) == (600, 0, "BTREE"),
)
check("index_stats missing", lambda: big.index_stats("nope"), None)
check("search with index", lambda: ids(big.search([42.1, 0, 0, 1]).nprobes(2).refine_factor(10).limit(1).to_list()), [42])
check("search bypassing the index", lambda: ids(big.search(near).bypass_vector_index().limit(1).to_list()), [2])
check("prewarm_index", lambda: big.prewarm_index("id_idx"), None)
check("prewarm_data", lambda: big.prewarm_data(["id"]), None)
refused("prewarm_data of a column that is not there", lambda: big.prewarm_data(["nope"]), "nope")

# Full text and hybrid
fruit = lambda rows: sorted({row["text"] for row in rows})  # noqa: E731
text = lambda query: fruit(big.search(query, query_type="fts").limit(1000).to_list())  # noqa: E731
check("search fts", lambda: text("plum"), ["blue plum"])
check("search fts column", lambda: fruit(big.search("plum", query_type="fts", fts_columns="text").limit(9).to_list()), ["blue plum"])
check("search match", lambda: text(MatchQuery("plim", "text", fuzziness=1)), ["blue plum"])
check("search phrase", lambda: text(PhraseQuery("red pear", "text")), ["red pear"])
check("search multi match", lambda: text(MultiMatchQuery("grape", ["text"])), ["green grape"])
check(
    "search boost",
    lambda: text(BoostQuery(MatchQuery("apple", "text"), MatchQuery("red", "text"), negative_boost=0.2)),
    ["green apple", "red apple"],
)
check(
    "search boolean",
    lambda: text(BooleanQuery([(Occur.MUST, MatchQuery("red", "text")), (Occur.MUST_NOT, MatchQuery("apple", "text"))])),
    ["red pear"],
)
check(
    "search hybrid",
    lambda: fruit(
        big.search(query_type="hybrid").vector([3.0, 0, 0, 1]).text("plum").rerank(RRFReranker()).limit(1).to_list()
    ),
    ["blue plum"],
)
check("drop_index", lambda: big.drop_index("texts"), None)
check("list_indices after drop", lambda: len(big.list_indices()), 3)
refused("drop_index missing", lambda: big.drop_index("texts"), "texts")

# Versions, tags, branches
before = check("version before", lambda: t.version, lambda version: version > 5)
check("list_versions", lambda: [entry["version"] for entry in t.list_versions()], lambda versions: {1, before} <= set(versions))
check("tags.create", lambda: t.tags.create("first", 1), None)
refused("tags.create twice", lambda: t.tags.create("first", 1), "first", "exists")
check("tags.list", lambda: t.tags.list()["first"]["version"], 1)
check("tags.get_version", lambda: t.tags.get_version("first"), 1)
check("tags.update", lambda: t.tags.update("first", 2), None)
check("checkout tag", lambda: (t.checkout("first"), t.version, t.count_rows())[1:], (2, 8))
refused("add to a checkout", lambda: t.add(rows_of([1])), "checkout_latest")
check("checkout version", lambda: (t.checkout(1), t.count_rows(), len(t.schema))[1:], (6, 6))
refused("checkout missing", lambda: t.checkout(9999), "9999")
check("checkout_latest", lambda: (t.checkout_latest(), t.version)[1], before)
check("restore", lambda: (t.checkout(1), t.restore(), t.version, t.count_rows())[2:], (before + 1, 6))
check("restore version", lambda: (t.restore(2), t.count_rows())[1], 8)
check("restore without checkout", lambda: (t.restore(), t.count_rows())[1], 8)
check("tags.delete", lambda: (t.tags.delete("first"), t.tags.list())[1], {})
refused("tags.get_version missing", lambda: t.tags.get_version("first"), "not found")
branch = check("branches.create", lambda: t.branches.create("trial"), lambda table: table.count_rows() == 8)
check("add to a branch", lambda: (branch.add(rows_of([50])), branch.count_rows(), t.count_rows())[1:], (9, 8))
check("search on a branch", lambda: ids(branch.search([50, 0, 0, 1]).limit(1).to_list()), [50])
check("update on a branch", lambda: branch.update(where="id = 50", values={"text": "x"}).rows_updated, 1)
check("delete on a branch", lambda: (branch.delete("id = 50").num_deleted_rows, t.count_rows()), (1, 8))
check("branches.list", lambda: list(t.branches.list()), ["trial"])
check("branches.checkout", lambda: t.branches.checkout("trial").count_rows(), 8)
refused("branches.checkout missing", lambda: t.branches.checkout("nope"), "nope")
refused("branches.create twice", lambda: t.branches.create("trial"), "trial", "exists")
check("branches.delete", lambda: (t.branches.delete("trial"), t.branches.list())[1], {})

# Large tables go in parts, on machines with several cores
many = pa.table({"id": pa.array(range(2_500_000), pa.int64())})
wide = check("create_table for parts", lambda: db.create_table("wide", many.slice(0, 1)), anything)
chunks = many.to_batches(max_chunksize=500_000)
check("add in parts", lambda: (wide.add(pa.Table.from_batches(chunks)), wide.count_rows())[1], 2_500_001)
check("add in parts as one version", lambda: wide.version, 2)
check(
    "add in parts overwriting",
    lambda: (wide.add(pa.Table.from_batches(chunks), mode="overwrite"), wide.count_rows(), wide.version)[1:],
    (2_500_000, 3),
)

# Namespaces and names
check("create_namespace", lambda: db.create_namespace(["team"], properties={"owner": "ada"}), anything)
refused("create_namespace twice", lambda: db.create_namespace(["team"]), "team")
check("create_namespace exist_ok", lambda: db.create_namespace(["team"], mode="exist_ok"), anything)
check("list_namespaces", lambda: list(db.list_namespaces().namespaces), ["team"])
check("describe_namespace", lambda: db.describe_namespace(["team"]).properties, {"owner": "ada"})
check("create_table in a namespace", lambda: db.create_table("inner", rows_of([1]), namespace_path=["team"]).count_rows(), 1)
check("table_names in a namespace", lambda: list(db.table_names(namespace_path=["team"])), ["inner"])
check("open_table in a namespace", lambda: connect().open_table("inner", namespace_path=["team"]).count_rows(), 1)
check("rename_table", lambda: (db.rename_table("empty", "full"), connect().open_table("full").count_rows())[1], 3)
check(
    "rename_table into a namespace",
    lambda: (
        db.rename_table("full", "full", new_namespace_path=["team"]),
        connect().open_table("full", namespace_path=["team"]).count_rows(),
    )[1],
    3,
)
refused("rename_table to a name that is taken", lambda: db.rename_table("big", "fruit"), "exists")
refused("drop_namespace not empty", lambda: db.drop_namespace(["team"]), "team")
check("drop_table in a namespace", lambda: db.drop_table("inner", namespace_path=["team"]), None)
check("drop_namespace cascade", lambda: db.drop_namespace(["team"], behavior="cascade"), anything)
check("drop_namespace skip", lambda: db.drop_namespace(["team"], mode="skip"), anything)

# The client of the specification that the connection hands out
namespace = check("namespace_client", lambda: db.namespace_client(), anything)
check(
    "namespace_client describe_table",
    lambda: namespace.describe_table(DescribeTableRequest(id=["fruit"], load_detailed_metadata=True)).var_schema,
    lambda schema: schema.fields[1].type.type == "utf8",
)
check("namespace_client list_table_tags", lambda: namespace.list_table_tags(ListTableTagsRequest(id=["fruit"])).tags, {})

# Jobs, which another connection follows, and views
check("add_columns computed", lambda: big.add_columns(computed={"twice": "id * 2"}), anything)
job = check("refresh_column_async", lambda: big.refresh_column_async("twice"), lambda job: job.id is not None)
check("job.wait", lambda: job.wait().rows_assigned, big.count_rows())
check("open_job", lambda: connect().open_job(job.id).status(), "finished")
check("list_jobs", lambda: job.id in [each.job_id for each in connect().list_jobs()], True)
check("cancel_job ended", lambda: db.cancel_job(job.id), True)
check("cancel_job missing", lambda: db.cancel_job("nope"), False)
view = check(
    "create_materialized_view",
    lambda: db.create_materialized_view("near", "big", select=["id", ("double", "id * 2")], where="id < 5"),
    lambda made: ids(made.table.search().to_list()) == [0, 1, 2, 3, 4],
)
check("list_materialized_views", lambda: connect().list_materialized_views(), ["near"])
check(
    "materialized view definition",
    lambda: connect().open_materialized_view("near").definition.query,
    "SELECT id, id * 2 AS double FROM big WHERE id < 5",
)
check("add to a source", lambda: big.add(rows_of([3])), anything)
check("materialized view refresh", lambda: view.refresh().rows_written, lambda written: written > 0)
check("materialized view refresh_async", lambda: view.refresh_async(full=True).wait().mode, "rebuild")
check("materialized view rows", lambda: sorted(ids(view.table.search().to_list())), [0, 1, 2, 3, 3, 4])
check("drop_materialized_view", lambda: (db.drop_materialized_view("near"), db.list_materialized_views())[1], [])

# What is not served says so
refused("list_secrets", lambda: db.list_secrets(), "which this server does not run")

check("drop_table", lambda: [db.drop_table(name) for name in ["fruit", "big", "wide"]], [None, None, None])
check("list_tables at the end", lambda: db.list_tables().tables, [])
refused("open_table dropped", lambda: connect().open_table("fruit"), "not found")

result = {"client": "lancedb (Python, remote)", "version": version("lancedb"), "calls": calls}
print(json.dumps({**result, "passed": calls - len(failures)}))
if failures:
    raise SystemExit("\n".join([*failures, f"{len(failures)} of {calls} calls failed"]))
