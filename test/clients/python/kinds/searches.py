"""Searches: which column holds the vectors, filters before and after a search, and every option of a query."""

import pyarrow as pa
from beside import WAIT, fruit
from lancedb.index import FTS, IvfFlat, IvfPq
from lancedb.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery, Occur, PhraseQuery
from lancedb.rerankers import LinearCombinationReranker, MRRReranker, RRFReranker


def vector_column(both):
    """Finds the column of vectors, also in structs and among several."""
    wide = pa.array([[1.0, 2.0, float(i)] for i in range(5)], pa.list_(pa.float32(), 3))
    deep = pa.array([{"inner": {"v": [0.0, 0.0, 0.0, float(i)]}} for i in range(5)], pa.struct([("inner", pa.struct([("v", pa.list_(pa.float32(), 4))]))]))
    columns = fruit(5).append_column("wide", wide).append_column("deep", deep)
    both.same("create_table with vectors", lambda db: db.create_table("columns", columns).count_rows())
    near = lambda db, *vector: db.open_table("columns").search(list(vector)).select(["id"]).limit(2).to_arrow()  # noqa: E731
    both.same("two components", lambda db: near(db, 3.0, 0.0))
    both.same("three components", lambda db: near(db, 1.0, 2.0, 2.0))
    both.same("four components, inside structs", lambda db: near(db, 0.0, 0.0, 0.0, 3.0))
    both.refused("five components", lambda db: near(db, 1.0, 1.0, 1.0, 1.0, 1.0), local=False)

    async def near_async(db, *vector):
        return await (await db.open_table("columns")).query().nearest_to(list(vector)).select(["id"]).limit(2).to_arrow()

    both.same_async("three components, async", lambda db: near_async(db, 1.0, 2.0, 2.0))
    both.same_async("four components, async", lambda db: near_async(db, 0.0, 0.0, 0.0, 3.0))
    NONE = "No vector column found to match with the query vector dimension: 5"
    both.refused_async("five components, async", lambda db: near_async(db, *[1.0] * 5), NONE)
    both.same(
        "add a second column of two components",
        lambda db: db.open_table("columns").add_columns({"again": "arrow_cast(vector, 'FixedSizeList(2, Float32)')"}).version,
    )
    both.refused_async("two columns of two components", lambda db: near_async(db, 1.0, 1.0), "More than one vector columns found")


def texts(db):
    return db.open_table("texts")


def lengthened(rows):
    """Returns the rows with texts of different lengths, which have different scores: every order is certain."""
    longer = [f"{text.as_py()}{' leaf' * id.as_py()}" for text, id in zip(rows["text"], rows["id"])]
    return rows.set_column(1, "text", [longer])


def with_texts(both):
    """Makes a table whose texts have an index, and a few rows outside of it."""
    both.same("create_table with texts", lambda db: db.create_table("texts", lengthened(fruit(40))).count_rows())
    both.same("full-text index", lambda db: texts(db).create_index("text", config=FTS(with_position=True), wait_timeout=WAIT))
    both.same("add unindexed", lambda db: texts(db).add(lengthened(fruit(20, 40))).version)


QUERIES = {
    "words": "plum",
    "match": MatchQuery("plum", "text"),
    "fuzzy": MatchQuery("plim", "text", fuzziness=1),
    "phrase": PhraseQuery("red pear", "text"),
    "multi match": MultiMatchQuery("plum", ["text"]),
    "boost": BoostQuery(MatchQuery("plum", "text"), MatchQuery("blue", "text"), negative_boost=0.2),
    "boolean": BooleanQuery([(Occur.MUST, MatchQuery("red", "text")), (Occur.MUST_NOT, MatchQuery("apple", "text"))]),
}


def found(db, query, filter, prefilter, limit=6, offset=0):
    search = texts(db).search(query, query_type="fts").where(filter, prefilter=prefilter).limit(limit).offset(offset)
    return search.to_arrow()


def text(both):
    """Phrases, fuzzy words and compound queries, with filters before and after them."""
    with_texts(both)
    for name, query in QUERIES.items():
        for prefilter in (True, False):
            for filter in ("id > 20", "id = 2", "text LIKE 'blue%'", "id > 1000"):
                case = f"{name}, {filter}, prefilter={prefilter}"
                both.same(case, lambda db, q=query, f=filter, p=prefilter: found(db, q, f, p))
        both.same(f"{name}, all rows", lambda db, q=query: found(db, q, "id < 45", False, limit=100))
        both.same(f"{name}, some columns", lambda db, q=query: texts(db).search(q, query_type="fts").where("id > 4", prefilter=False).select(["id"]).with_row_id(True).limit(9).to_arrow())
        both.same(f"{name}, offset", lambda db, q=query: found(db, q, "id < 45", False, limit=4, offset=3))


def hybrid(both):
    """Searches vectors and texts at once, with every reranker that needs no model."""
    with_texts(both)

    def hybrid(db, filter, prefilter, reranker=None):
        search = texts(db).search(query_type="hybrid").vector([20.0, 0.0]).text("plum").where(filter, prefilter=prefilter).limit(8)
        search = search if reranker is None else search.rerank(reranker)
        return search.select(["id"]).to_arrow()

    for filter in ("id > 20", "id = 2", "id > 1000"):
        for prefilter in (True, False):
            both.same(f"hybrid, {filter}, prefilter={prefilter}", lambda db, f=filter, p=prefilter: hybrid(db, f, p))
    for reranker in (RRFReranker(), MRRReranker(), LinearCombinationReranker()):
        both.same(f"hybrid, {reranker}", lambda db, r=reranker: hybrid(db, "id > 20", False, r))

    async def hybrid_async(db, prefilter):
        table = await db.open_table("texts")
        query = table.query().nearest_to([20.0, 0.0]).nearest_to_text("plum").where("id > 20").limit(8)
        return await (query if prefilter else query.postfilter()).to_arrow()

    async def words_async(db, prefilter):
        query = (await db.open_table("texts")).query().nearest_to_text("plum").where("id > 20").limit(4)
        return await (query if prefilter else query.postfilter()).to_arrow()

    for prefilter in (True, False):
        both.same_async(f"hybrid, async, prefilter={prefilter}", lambda db, p=prefilter: hybrid_async(db, p))
        both.same_async(f"words, async, prefilter={prefilter}", lambda db, p=prefilter: words_async(db, p))


def vector_options(both):
    """Every option of a search by vector."""
    both.same("create_table with many", lambda db: db.create_table("many", fruit(600)).count_rows())
    many = lambda db: db.open_table("many")  # noqa: E731
    both.same("vector index", lambda db: many(db).create_index("vector", config=IvfPq(num_partitions=2, num_sub_vectors=2), wait_timeout=WAIT))
    both.same("add more", lambda db: many(db).add(fruit(3, 600)).version)
    search = lambda db: many(db).search([598.2, 0.0]).select(["id"]).limit(4)  # noqa: E731
    OPTIONS = {
        "where": lambda q: q.bypass_vector_index().where("id < 500"),
        "where after": lambda q: q.bypass_vector_index().where("id < 598", prefilter=False),
        "distance_type": lambda q: q.bypass_vector_index().distance_type("dot"),
        "distance_range": lambda q: q.bypass_vector_index().distance_range(1.0, 5.0),
        "bypass_vector_index": lambda q: q.bypass_vector_index(),
        "nprobes": lambda q: q.nprobes(2).refine_factor(4),
        "minimum_nprobes": lambda q: q.minimum_nprobes(2).maximum_nprobes(2).refine_factor(4),
        "ef": lambda q: q.ef(30).nprobes(2).refine_factor(4),
        "fast_search": lambda q: q.fast_search().nprobes(2).refine_factor(4),
        "offset": lambda q: q.bypass_vector_index().offset(2),
        "with_row_id": lambda q: q.bypass_vector_index().with_row_id(True),
        "order_by": lambda q: q.bypass_vector_index().order_by([{"column_name": "id", "ascending": False}]),
    }
    for name, option in OPTIONS.items():
        both.same(name, lambda db, o=option: o(search(db)).to_arrow())
    both.refused("a negative limit", lambda db: search(db).limit(-1).to_list(), local=False)


def fast_search(both):
    """Searches only the rows that indices have."""
    with_texts(both)
    both.same("vector index", lambda db: texts(db).create_index("vector", config=IvfFlat(num_partitions=1), wait_timeout=WAIT))
    both.same("add more", lambda db: texts(db).add(lengthened(fruit(20, 60))).version)
    both.same("unindexed rows", lambda db: [texts(db).index_stats(name).num_unindexed_rows for name in ("text_idx", "vector_idx")])
    scored = lambda query: query.to_arrow().select(["id", "_score"])  # noqa: E731
    both.same("columns of words", lambda db: texts(db).search("plum", query_type="fts").fast_search().limit(1).select(["id"]).to_arrow())
    for name, query in QUERIES.items():
        words = lambda db, q=query: texts(db).search(q, query_type="fts").fast_search().limit(100).select(["id"])  # noqa: E731
        both.same(f"{name}", lambda db, w=words: scored(w(db)))
        both.same(f"{name}, filtered", lambda db, w=words: scored(w(db).where("id > 20")))
    near = lambda db: texts(db).search([78.2, 0.0]).fast_search().limit(3).select(["id"])  # noqa: E731
    both.same("vector", lambda db: near(db).to_arrow())
    both.same("vector, filtered", lambda db: near(db).where("id < 58").to_arrow())
    both.same("vector, filtered after it", lambda db: near(db).where("id < 58", prefilter=False).to_arrow())
    both.same("vector, no row in the index", lambda db: near(db).where("id > 70").to_arrow())

    async def both_at_once(db):
        query = (await db.open_table("texts")).query().nearest_to([78.2, 0.0]).nearest_to_text("plum")
        return await query.fast_search().limit(4).select(["id"]).to_arrow()

    both.same_async("hybrid", both_at_once)

    async def by_words(db):
        found = await (await db.open_table("texts")).query().nearest_to_text("plum").fast_search().limit(100).to_arrow()
        return found.select(["id", "_score"])

    both.same_async("words, async", by_words)
    both.same("plan", lambda db: "LanceScan" in texts(db).search("plum", query_type="fts").fast_search().limit(5).explain_plan(True))


KINDS = [vector_column, text, hybrid, vector_options, fast_search]
