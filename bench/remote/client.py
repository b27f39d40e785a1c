"""Times the same work of LanceDB's client on several databases, in turn.

    client.py ROUNDS NAME=URI...

A URI is a directory, or the address of a gateway. Prints a line of JSON for each case: the figures of each round, by the
names of the databases.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, IvfPq
from lancedb.rerankers import RRFReranker

ROWS = 100_000
DIMENSIONS = 128
TABLES = 1_000
CLIENTS = 16
# Searches of a client alone in a round, and the time for which many clients search.
SEARCHES = 100
SECONDS = 3
WORDS = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north olive pine".split()

random = np.random.default_rng(7)


def rows(first, count):
    """Rows with ids from the given one on."""
    ids = np.arange(first, first + count)
    vectors = random.random((count, DIMENSIONS), dtype=np.float32)
    texts = [f"{WORDS[i % 16]} {WORDS[i // 16 % 16]} row{i}" for i in ids]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS)
    return pa.table({"id": pa.array(ids), "text": texts, "vector": flat})


def vector():
    return random.random(DIMENSIONS, dtype=np.float32)


def word():
    return WORDS[int(random.integers(16))]


def connect(uri):
    if uri.startswith("http:"):
        return lancedb.connect("db://bench", api_key="k", host_override=uri)
    return lancedb.connect(uri)


def timed(call, times):
    """The durations of calls, in milliseconds, after one that does not count."""
    call()
    durations = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        durations.append((time.perf_counter() - started) * 1000)
    return durations


def alone(call, times):
    durations = timed(call, times)
    return {"p50": float(np.quantile(durations, 0.5)), "p99": float(np.quantile(durations, 0.99))}


def together(call):
    """Lets many clients make calls for some seconds."""
    call()
    until = time.perf_counter() + SECONDS

    def work(_):
        durations = []
        while (started := time.perf_counter()) < until:
            call()
            durations.append((time.perf_counter() - started) * 1000)
        return durations

    with ThreadPoolExecutor(CLIENTS) as pool:
        durations = [each for own in pool.map(work, range(CLIENTS)) for each in own]
    return {
        "p50": float(np.quantile(durations, 0.5)),
        "p99": float(np.quantile(durations, 0.99)),
        "rate": len(durations) / SECONDS,
    }


class Side:
    """A database with the tables of all cases."""

    def __init__(self, uri, data, small):
        self.db = connect(uri)
        self.plain = self.db.create_table("plain", data)
        self.indexed = self.db.create_table("indexed", data)
        wait = timedelta(minutes=5)
        self.indexed.create_index("vector", config=IvfPq(num_partitions=64, num_sub_vectors=16), wait_timeout=wait)
        self.indexed.create_index("text", config=FTS(), wait_timeout=wait)
        self.changed = self.db.create_table("changed", small)
        for number in range(TABLES):
            self.db.create_table(f"t{number:04}", schema=small.schema)
        self.next = len(small)

    def add(self, count):
        data = rows(self.next, count)
        self.next += count
        return lambda: self.changed.add(data)

    def merge(self):
        data = rows(self.next - 500, 1_000)
        self.next += 500
        merge = self.changed.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        return lambda: merge.execute(data)

    def nearest(self, table):
        return lambda: table.search(vector()).limit(10).to_arrow()

    def words(self):
        return self.indexed.search(word(), query_type="fts").limit(10).to_arrow()

    def hybrid(self):
        search = self.indexed.search(query_type="hybrid").vector(vector()).text(word())
        return search.rerank(RRFReranker()).limit(10).to_arrow()

    def scan(self):
        """Megabytes per second, of the memory that the rows take."""
        durations = timed(lambda: self.plain.search().limit(ROWS).to_arrow(), 5)
        return {"megabytes": self.plain.search().limit(ROWS).to_arrow().nbytes / 1e3 / float(np.median(durations))}


CASES = {
    "search without an index": lambda side: alone(side.nearest(side.plain), SEARCHES),
    "the same, 16 clients": lambda side: together(side.nearest(side.plain)),
    "search with IVF_PQ": lambda side: alone(side.nearest(side.indexed), SEARCHES),
    "with IVF_PQ, 16 clients": lambda side: together(side.nearest(side.indexed)),
    "full text": lambda side: alone(side.words, SEARCHES),
    "hybrid": lambda side: alone(side.hybrid, SEARCHES),
    "add a row": lambda side: alone(side.add(1), 20),
    "add 1,000 rows": lambda side: alone(side.add(1_000), 10),
    "add 100,000 rows": lambda side: alone(side.add(100_000), 2),
    "merge 1,000 rows": lambda side: alone(side.merge(), 5),
    "list 1,000 tables": lambda side: alone(lambda: side.db.list_tables(limit=2 * TABLES), 20),
    "scan of 100,000 rows": lambda side: side.scan(),
}


def main(rounds, *databases):
    data, small = rows(0, ROWS), rows(0, 1_000)
    sides = {}
    for database in databases:
        name, uri = database.split("=", 1)
        sides[name] = Side(uri, data, small)
    for title, case in CASES.items():
        figures = {name: [] for name in sides}
        for number in range(int(rounds)):
            order = list(sides.items())
            for name, side in order if number % 2 == 0 else reversed(order):
                figures[name].append(case(side))
        print(json.dumps({"case": title, "figures": figures}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
