"""Times the same work of LanceDB's client on several databases, in turn.

    client.py ROUNDS SEARCHES CASES NAME=URI...

SEARCHES is the number of searches of a client alone in a round; other calls, and the time of many clients, are in proportion. CASES are the cases to time, by parts of their titles with commas between them; empty for all of them. A URI is a directory, or
the address of a gateway. Changes of a directory are timed without and with a sync of what they wrote. Prints a line of JSON for
each case: the figures of each round, by the names of the databases.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path

import grpc
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
SEARCHES = int(sys.argv[2])
SECONDS = 3 * SEARCHES / 100
# Scans in a round.
SCANS = 5
WORDS = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north olive pine".split()

random = np.random.default_rng(7)


def rows(first, count):
    """Rows with ids from the given one on."""
    ids = np.arange(first, first + count)
    vectors = random.random((count, DIMENSIONS), dtype=np.float32)
    texts = [f"{WORDS[i % 16]} {WORDS[i // 16 % 16]} row{i}" for i in ids]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS)
    return pa.table({"id": pa.array(ids), "text": texts, "vector": flat})


DATA, SMALL = rows(0, ROWS), rows(0, 1_000)


def vector():
    return random.random(DIMENSIONS, dtype=np.float32)


def word():
    return WORDS[int(random.integers(16))]


def connect(uri):
    if uri.startswith("http:"):
        return lancedb.connect("db://bench", api_key="k", host_override=uri)
    return lancedb.connect(uri)


def summary(durations):
    """Quantiles of durations in milliseconds."""
    return {"p50": float(np.quantile(durations, 0.5)), "p99": float(np.quantile(durations, 0.99))}


def in_turn(calls, times):
    """Times calls of several sides, each turn on every side, after one turn that does not count.

    A call returns its own durations in milliseconds by the names of its sides, or nothing.
    """
    durations = {}
    for turn in range(times + 1):
        order = list(calls.items())
        for name, call in order if turn % 2 == 0 else reversed(order):
            started = time.perf_counter()
            own = call()
            taken = own if isinstance(own, dict) else {name: (time.perf_counter() - started) * 1000}
            for each, duration in taken.items():
                durations.setdefault(each, []).append(duration)
    return {name: own[1:] for name, own in durations.items()}


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


class Syncs:
    """Makes what a directory's table has got since the last time durable, as gateways do it for each of their changes."""

    def __init__(self, table):
        self.folders = [table / name for name in ("data", "_versions", "_transactions", "_deletions")]
        self.seen = set()
        self.pool = ThreadPoolExecutor(8)
        self.sync()

    def sync(self):
        found = {entry.path for folder in self.folders if folder.exists() for entry in os.scandir(folder)}
        new = found - self.seen
        self.seen = found
        list(self.pool.map(sync_path, [*new, *{os.path.dirname(path) for path in new}]))


def sync_path(path):
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class Side:
    """A database; the tables of a case are made when it comes to that case."""

    def __init__(self, name, uri):
        self.name, self.uri = name, uri
        self.db = connect(uri)
        self.next = SMALL.num_rows

    @cached_property
    def plain(self):
        return self.db.create_table("plain", DATA)

    @cached_property
    def indexed(self):
        table = self.db.create_table("indexed", DATA)
        wait = timedelta(minutes=5)
        table.create_index("vector", config=IvfPq(num_partitions=64, num_sub_vectors=16), wait_timeout=wait)
        table.create_index("text", config=FTS(), wait_timeout=wait)
        return table

    @cached_property
    def changed(self):
        return self.db.create_table("changed", SMALL)

    @cached_property
    def syncs(self):
        return None if self.uri.startswith("http:") else Syncs(Path(self.uri, "changed.lance"))

    @cached_property
    def listed(self):
        for number in range(TABLES):
            self.db.create_table(f"t{number:04}", schema=SMALL.schema)
        return self.db

    def durable(self, change):
        """A change; of a directory, with its durations without and with a sync."""
        if self.syncs is None:
            return change

        def timed():
            started = time.perf_counter()
            change()
            written = time.perf_counter()
            self.syncs.sync()
            synced = time.perf_counter()
            return {self.name: (written - started) * 1000, f"{self.name}, synced": (synced - started) * 1000}

        return timed

    def add(self, count):
        data = rows(self.next, count)
        self.next += count
        table = self.changed
        return self.durable(lambda: table.add(data))

    def merge(self):
        data = rows(self.next - 500, 1_000)
        self.next += 500
        merge = self.changed.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        return self.durable(lambda: merge.execute(data))

    def nearest(self, table):
        return lambda: table.search(vector()).limit(10).to_arrow()

    def words(self):
        return self.indexed.search(word(), query_type="fts").limit(10).to_arrow()

    def hybrid(self):
        search = self.indexed.search(query_type="hybrid").vector(vector()).text(word())
        return search.rerank(RRFReranker()).limit(10).to_arrow()

    def list(self):
        database = self.listed
        return lambda: database.list_tables(limit=2 * TABLES)

    def scan(self):
        return self.plain.search().limit(ROWS).to_arrow()

    def scan_by_grpc(self):
        """A scan as a client of the .proto has it; of a directory, the library's own."""
        if self.syncs is None:
            self.plain
            return lambda: read_by_grpc(self.uri.removeprefix("http://"), "plain", ROWS)
        return self.scan


@cache
def channel_to(address):
    return grpc.insecure_channel(address)


def varint(value):
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


def fields(message, number):
    """Yields the contents of a message's fields of bytes with a number."""
    at = 0
    while at < len(message):
        tag, at = message[at], at + 1
        size = shift = 0
        while True:
            byte, at = message[at], at + 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if tag == number << 3 | 2:
            yield memoryview(message)[at : at + size]
        at += size


def read_by_grpc(address, table, limit):
    """The rows of a table by the operation QueryTable, whose messages are small enough to be read here by hand."""
    query = channel_to(address).unary_stream("/lance.namespace.v1.LanceNamespaceService/QueryTable")
    request = bytes([0x0A, len(table)]) + table.encode() + bytes([0x50]) + varint(limit)
    parts = [body for message in query(request) for body in fields(message, 2) for body in fields(body, 2)]
    return pa.ipc.open_stream(pa.BufferReader(b"".join(parts))).read_all()


def times(call_of, count):
    """A case of calls by a client alone, which makes as many of them for 100 searches."""
    least = max(count * SEARCHES // 100, min(count, 3))
    return lambda sides: {
        name: summary(own) for name, own in in_turn({side.name: call_of(side) for side in sides}, least).items()
    }


def crowd(call_of):
    """A case of calls by many clients; each side has the machine for itself."""
    return lambda sides: {side.name: together(call_of(side)) for side in sides}


def rates(call_of):
    """A case of scans: megabytes per second, of the memory that the rows take."""

    def run(sides):
        calls = {side.name: call_of(side) for side in sides}
        size = next(iter(calls.values()))().nbytes / 1e3
        durations = in_turn(calls, SCANS)
        return {name: {"megabytes": size / float(np.median(own))} for name, own in durations.items()}

    return run


CASES = {
    "search without an index": times(lambda side: side.nearest(side.plain), 100),
    "the same, 16 clients": crowd(lambda side: side.nearest(side.plain)),
    "search with IVF_PQ": times(lambda side: side.nearest(side.indexed), 100),
    "with IVF_PQ, 16 clients": crowd(lambda side: side.nearest(side.indexed)),
    "full text": times(lambda side: side.words, 100),
    "full text, 16 clients": crowd(lambda side: side.words),
    "hybrid": times(lambda side: side.hybrid, 100),
    "add a row": times(lambda side: side.add(1), 40),
    "add 1,000 rows": times(lambda side: side.add(1_000), 10),
    "add 100,000 rows": times(lambda side: side.add(100_000), 4),
    "merge 1,000 rows": times(Side.merge, 5),
    "list 1,000 tables": times(Side.list, 20),
    "scan of 100,000 rows": rates(lambda side: side.scan),
    "scan over gRPC": rates(Side.scan_by_grpc),
}


def main(rounds, _, wanted, *databases):
    sides = [Side(*database.split("=", 1)) for database in databases]
    for title, case in CASES.items():
        if not any(part in title for part in wanted.split(",")):
            continue
        figures = {}
        for number in range(int(rounds)):
            for name, own in case(sides if number % 2 == 0 else sides[::-1]).items():
                figures.setdefault(name, []).append(own)
        print(json.dumps({"case": title, "figures": figures}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
