"""Indices of every type, and the tokenizers of texts."""

import pyarrow as pa
from beside import WAIT, fruit
from lancedb.index import FTS, Bitmap, BTree, Fm, HnswFlat, HnswPq, HnswSq, IvfFlat, IvfPq, IvfRq, IvfSq, LabelList
from lancedb.query import MatchQuery


def t(db):
    return db.open_table("t")


def index(db, column, config, **options):
    return t(db).create_index(column, config=config, wait_timeout=WAIT, **options)


def listed(db):
    return sorted([each.name, each.index_type, each.columns] for each in t(db).list_indices())


def stats(db, name):
    found = t(db).index_stats(name)
    return found and [found.index_type, found.num_indexed_rows, found.num_unindexed_rows, found.distance_type]


def scalar_indices(both):
    """Finds rows by every scalar index."""
    labels = pa.array([["a", f"l{i % 3}"] for i in range(60)])
    rows = fruit(60).append_column("labels", labels).append_column("struct", pa.array([{"n": i % 5} for i in range(60)]))
    both.same("create_table", lambda db: db.create_table("t", rows).version)
    for column, config in (("id", BTree()), ("text", Bitmap()), ("labels", LabelList()), ("struct.n", BTree())):
        both.same(f"index of {column}", lambda db, c=column, o=config: index(db, c, o))
    both.same("substrings", lambda db: index(db, "text", Fm(), name="substrings"))
    both.same("list_indices", listed)
    both.same("index_stats", lambda db: [stats(db, name) for name in ("id_idx", "text_idx", "labels_idx", "nope")])
    both.same("add", lambda db: t(db).add(rows.slice(0, 3)).version)
    conditions = ("id = 7", "id between 3 and 5", "text = 'red pear'", "text in ('blue plum', 'x')", "array_has_any(labels, ['l1'])", "struct.n = 2", "contains(text, 'ue')", "text IS NULL")
    for condition in conditions:
        both.same(f"where {condition}", lambda db, c=condition: t(db).search().where(c).select(["id"]).to_arrow())
    both.same("drop_index", lambda db: [t(db).drop_index("id_idx"), listed(db)])
    both.same("prewarm_index", lambda db: t(db).prewarm_index("text_idx"))
    both.same("prewarm a missing index", lambda db: t(db).prewarm_index("nope"))
    both.same("an index of a missing column", lambda db: index(db, "nope", BTree()))
    both.same("an index of a whole struct", lambda db: index(db, "struct", BTree()))
    both.same("a bitmap of vectors", lambda db: index(db, "vector", Bitmap()))


VECTORS = {
    "IVF_FLAT": IvfFlat(num_partitions=2),
    "IVF_PQ": IvfPq(num_partitions=2, num_sub_vectors=2),
    "IVF_RQ": IvfRq(num_partitions=2),
    "IVF_HNSW_SQ": HnswSq(num_partitions=1),
    "IVF_HNSW_PQ": HnswPq(num_partitions=1, num_sub_vectors=2),
    "IVF_SQ": IvfSq(num_partitions=2),
    "IVF_HNSW_FLAT": HnswFlat(num_partitions=1),
}


def vector_indices(both):
    """Finds neighbours by every index of vectors."""
    wide = pa.array([[float(i + j) for j in range(8)] for i in range(400)], pa.list_(pa.float32(), 8))
    rows = fruit(400).set_column(2, "vector", wide)
    both.same("create_table", lambda db: db.create_table("t", rows).version)
    for name, config in VECTORS.items():
        both.same(f"{name}: index", lambda db, c=config: [index(db, "vector", c), listed(db), stats(db, "vector_idx")])
        nearest = lambda db: t(db).search([7.0 + j for j in range(8)]).nprobes(2).refine_factor(20).limit(3)  # noqa: E731
        both.same(f"{name}: search", lambda db, n=nearest: n(db).select(["id"]).to_arrow())
    both.same("by cosine", lambda db: index(db, "vector", IvfFlat(distance_type="cosine", num_partitions=1)))
    both.same("its distance", lambda db: stats(db, "vector_idx"))
    both.same("a search by it", lambda db: t(db).search([1.0] * 8).limit(3).select(["id"]).to_arrow())
    both.same("a search by another distance", lambda db: t(db).search([1.0] * 8).distance_type("l2").limit(3).select(["id"]).to_arrow())
    both.same("an index of texts", lambda db: index(db, "text", IvfFlat()))


TOKENIZERS = {
    "whitespace": FTS(base_tokenizer="whitespace"),
    "raw": FTS(base_tokenizer="raw"),
    "ngram": FTS(base_tokenizer="ngram", ngram_min_length=2, ngram_max_length=3),
    "prefixes": FTS(base_tokenizer="ngram", ngram_min_length=2, ngram_max_length=3, prefix_only=True),
    "icu": FTS(base_tokenizer="icu"),
    "no stems": FTS(stem=False, remove_stop_words=False),
    "case": FTS(lower_case=False, stem=False),
    "own stop words": FTS(custom_stop_words=["plum"]),
    "accents": FTS(ascii_folding=False),
    "short words": FTS(max_token_length=4),
    "German": FTS(language="German"),
    "large blocks": FTS(block_size=256),
}
TEXTS = ["The Running Apples", "a plum, a pear", "Crème brûlée", "läuft gelaufen Häuser", "snake_case camelCase v2", "x"]


def tokenizers(both):
    """Finds words that every tokenizer cuts."""
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "text": TEXTS})
    both.same("create_table", lambda db: db.create_table("t", rows).version)
    words = ("apple", "running", "The", "plum", "creme", "crème", "haus", "camel", "ap", "a plum, a pear")
    for name, config in TOKENIZERS.items():
        both.same(f"{name}: create_index", lambda db, c=config: index(db, "text", c, replace=True))
        both.same(f"{name}: tokens", lambda db: [[(token.text, token.position) for token in t(db).tokenize(text, column="text")] for text in TEXTS])
        for word in words:
            found = lambda db, w=word: sorted(row["id"] for row in t(db).search(MatchQuery(w, "text"), query_type="fts").to_list())  # noqa: E731
            both.same(f"{name}: {word}", found)


KINDS = [scalar_indices, vector_indices, tokenizers]
