"""Random reads; each method returns a name, the work and whether it may change the table."""

from lancedb.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

from .conditions import Conditions


class Reads(Conditions):
    """Counts, scans and searches."""

    def do_count(self):
        where = self.predicate()
        return f"count {where}", lambda t, db: t.count_rows(where), False

    def finished(self, query, offset=True):
        """Adds random options to a query and returns the steps that add them as well as a text."""
        rng = self.rng
        where = self.predicate() if rng.random() < 0.6 else None
        columns = self.picked()
        limit = rng.choice([None, 0, 1, 3, 1000, -1])
        skip = rng.choice([None, None, 0, 1, 5, 1000]) if offset else None
        prefilter = rng.choice([None, True, False])

        def run(t):
            q = query(t)
            if where is not None:
                q = q.where(where) if prefilter is None else q.where(where, prefilter=prefilter)
            if columns is not None:
                q = q.select(columns)
            if limit is not None:
                q = q.limit(limit)
            if skip is not None:
                q = q.offset(skip)
            return q

        text = f"where={where!r} columns={columns} limit={limit} offset={skip} prefilter={prefilter}"
        return run, text

    def do_scan(self):
        run, text = self.finished(lambda t: t.search())
        return f"scan {text}", lambda t, db: run(t).to_arrow(), False

    def vector_query(self):
        rng = self.rng
        vector = rng.choice([[1.0, 2.0], [0.0, 0.0], [1.0], [], [1e38, 1e38], [0.5, -3.0]])
        metric = rng.choice([None, "l2", "cosine", "dot", "hamming"])
        low, high = rng.choice([None, 0.0, 2.0]), rng.choice([None, 5.0, 0.0])
        ranged = rng.random() < 0.3
        flat = rng.random() < 0.2

        def query(t):
            q = t.search(vector, vector_column_name="vector")
            if metric:
                q = q.distance_type(metric)
            if ranged:
                q = q.distance_range(low, high)
            if flat:
                q = q.bypass_vector_index()
            return q

        return query, f"{vector} {metric} range={ranged and (low, high)} flat={flat}"

    def do_vector(self):
        query, about = self.vector_query()
        run, text = self.finished(query)
        return f"vector {about} {text}", lambda t, db: run(t).to_arrow(), False

    def do_fts(self):
        rng = self.rng
        word = rng.choice(["apple", "plum red", "it's", "", "日本", '"red apple"', "nope", "aple"])
        column = rng.choice(["text", "big text"])
        make = rng.choice(
            [
                lambda: word,
                lambda: MatchQuery(word, column, fuzziness=rng.choice([0, 1, 2])),
                lambda: PhraseQuery(word, column),
                lambda: MultiMatchQuery(word, ["text", "big text"]),
                lambda: BoostQuery(MatchQuery(word, column), MatchQuery("red", column)),
                lambda: BooleanQuery([(Occur.MUST, MatchQuery(word, column)), (Occur.MUST_NOT, MatchQuery("red", column))]),
            ]
        )()
        run, text = self.finished(lambda t: t.search(make, query_type="fts"))
        return f"fts {make} {text}", lambda t, db: run(t).to_arrow(), False

    def do_hybrid(self):
        rng = self.rng
        word = rng.choice(["apple", "plum red", "nope"])
        run, text = self.finished(lambda t: t.search(query_type="hybrid", vector_column_name="vector").vector([1.0, 2.0]).text(word))
        return f"hybrid {word} {text}", lambda t, db: run(t).to_arrow(), False

    def do_info(self):
        return self.rng.choice(
            [
                ("schema", lambda t, db: t.schema, False),
                ("indices", lambda t, db: sorted((i.name, i.index_type, i.columns) for i in t.list_indices()), False),
                ("index_stats", lambda t, db: [(s := t.index_stats(i.name)) and (s.num_indexed_rows, s.num_unindexed_rows, s.index_type, s.distance_type) for i in sorted(t.list_indices(), key=lambda i: i.name)], False),
                ("stats", lambda t, db: {k: v for k, v in t.stats().__dict__.items() if k != "total_bytes"} if hasattr(t.stats(), "__dict__") else str(type(t.stats())), False),
                ("head", lambda t, db: t.head(3), False),
                ("take_offsets", lambda t, db: t.take_offsets([2, 0, 1]).to_arrow(), False),
                ("take_row_ids", lambda t, db: t.take_row_ids([2, 0, 1, 50]).to_arrow(), False),
                ("version", lambda t, db: t.version, False),
            ]
        )
