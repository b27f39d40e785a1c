"""The 22 queries of TPC-H through ADBC give the rows that DuckDB gives on Parquet. Their times in each round are printed, too."""

import json
import os
import sys
import tempfile
import time

import adbc_driver_flightsql.dbapi as flight_sql
import duckdb
import duckdb_extension_tpch

address, scale, rounds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
EXTENSION = os.path.join(
    os.path.dirname(duckdb_extension_tpch.__file__), "extensions", f"v{duckdb.__version__}", "tpch.duckdb_extension"
)
TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]

folder = tempfile.TemporaryDirectory()
made = duckdb.connect(config={"allow_unsigned_extensions": True})
made.execute(f"LOAD '{EXTENSION}'")
made.execute(f"CALL dbgen(sf = {scale})")
queries = [query for (query,) in made.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()]
local = duckdb.connect(config={"threads": 2})
connection = flight_sql.connect(f"grpc://{address}", autocommit=True)
cursor = connection.cursor()
for table in TABLES:
    path = os.path.join(folder.name, f"{table}.parquet")
    made.execute(f"COPY {table} TO '{path}' (FORMAT parquet)")
    local.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    rows = made.execute(f"SELECT * FROM {table}").arrow()
    rows = rows.read_all() if hasattr(rows, "read_all") else rows
    assert cursor.adbc_ingest(table, rows.to_reader(50_000), mode="create") == rows.num_rows
made.close()


def same(ours, theirs, query):
    assert len(ours) == len(theirs), (query, len(ours), len(theirs))
    for own, other in zip(ours, theirs):
        for a, b in zip(own, other):
            close = isinstance(a, float) and abs(a - b) <= 1e-9 * max(1.0, abs(b))
            assert a == b or close, (query, own, other)


def timed(run):
    began = time.perf_counter()
    rows = run()
    return rows, (time.perf_counter() - began) * 1e3


def ours(query):
    cursor.execute(query)
    return cursor.fetch_arrow_table()


def values(table):
    return list(zip(*[column.to_pylist() for column in table.columns]))


times = [{"query": number, "ours": [], "parquet": []} for number in range(1, len(queries) + 1)]
for _ in range(rounds):
    for query, each in zip(queries, times):
        found, own_ms = timed(lambda: ours(query))
        expected, local_ms = timed(lambda: local.execute(query).fetchall())
        same(values(found), expected, query)
        each["ours"].append(own_ms)
        each["parquet"].append(local_ms)

cursor.close()
connection.close()
print(json.dumps(times))
