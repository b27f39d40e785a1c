"""An ordinary session of ADBC's driver for Flight SQL: statements, parameters, metadata, ingest, errors and cancelling."""

import sys
import threading
import time
import urllib.request

import adbc_driver_flightsql.dbapi as flight_sql
import pandas as pd
import polars as pl
import pyarrow as pa

connection = flight_sql.connect(f"grpc://{sys.argv[1]}", autocommit=True)
cursor = connection.cursor()


def fetch(statement, parameters=None):
    cursor.execute(statement, parameters)
    return cursor.fetch_arrow_table()


def refused(call, text):
    try:
        call()
    except flight_sql.Error as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{text}: the call succeeds")


rows = pa.table({"id": pa.array(range(1000), pa.int64()), "name": [f"name {i}" for i in range(1000)]})


def ingest(table, data, mode):
    # A cursor whose ingest has failed runs no statement.
    with connection.cursor() as own:
        return own.adbc_ingest(table, data, mode=mode)


assert ingest("sql_rows", rows, "create") == 1000
assert ingest("sql_rows", rows.slice(0, 10), "append") == 10
assert fetch("SELECT count(*) AS n FROM sql_rows").to_pydict() == {"n": [1010]}
assert ingest("sql_rows", rows.to_reader(100), "replace") == 1000
assert ingest("sql_rows", rows.slice(0, 5), "create_append") == 5
refused(lambda: ingest("sql_rows", rows, "create"), "already exists")
refused(lambda: ingest("sql_none", rows, "append"), "not found")

assert fetch("SELECT 1 AS one").to_pydict() == {"one": [1]}
assert fetch("FROM sql_rows ORDER BY id").num_rows == 1005
joined = fetch("SELECT a.id, b.name FROM sql_rows a JOIN sql_rows b USING (id) WHERE id = 7")
assert joined.to_pylist() == [{"id": 7, "name": "name 7"}], joined
found = fetch("SELECT name FROM sql_rows WHERE id >= ? AND name <> ? ORDER BY id LIMIT 2", [997, "name 998"])
assert found.to_pydict() == {"name": ["name 997", "name 999"]}, found
for value in (1, 2):
    assert fetch("SELECT ? + 1 AS next", [value]).to_pydict() == {"next": [value + 1]}
cursor.execute("SELECT id FROM sql_rows ORDER BY id")
assert cursor.fetchone() == (0,) and cursor.fetchmany(3) == [(0,), (1,), (1,)], "rows one by one"

refused(lambda: fetch("SELEC 1"), "syntax error")
refused(lambda: fetch("SELECT * FROM missing"), "not found")
refused(lambda: fetch("SELECT * FROM read_csv('/etc/passwd')"), "read_csv")



# Statements that write, with and without parameters, one by one and many at a time.
def change(statement, parameters=None):
    with connection.cursor() as own:
        own.execute(statement, parameters)
        return own.rowcount


assert change("CREATE TABLE sql_made AS SELECT id, name FROM sql_rows WHERE id < 3") == 6
assert change("INSERT INTO sql_made VALUES (10, 'ten')") == 1
assert change("INSERT INTO sql_made (name, id) VALUES (?, ?)", ["eleven", 11]) == 1
with connection.cursor() as many:
    many.executemany("INSERT INTO sql_made VALUES (?, ?)", [(20 + i, f"many {i}") for i in range(50)])
    assert many.rowcount == 50, many.rowcount
with connection.cursor() as script:
    script.executescript("INSERT INTO sql_made VALUES (100, 'hundred')")
assert fetch("SELECT count(*) AS n FROM sql_made WHERE id >= 10").to_pydict() == {"n": [53]}
assert change("UPDATE sql_made SET name = name || ?, id = id + 1000 WHERE id >= ? AND id < 70", ["!", 20]) == 50
assert change("DELETE FROM sql_made WHERE name LIKE 'many%' AND id <> 1020") == 49
with connection.cursor() as many:
    many.executemany("DELETE FROM sql_made WHERE id = ?", [(10,), (11,), (12,)])
    assert many.rowcount == 2, many.rowcount
assert fetch("SELECT name FROM sql_made WHERE id > 3 ORDER BY id").to_pydict() == {"name": ["hundred", "many 0!"]}
refused(lambda: change("DELETE FROM sql_made WHERE lower(name) = 'x'"), "position 40")
refused(lambda: change("INSERT INTO sql_made SELECT 'x', 'y'"), "Could not convert")
refused(lambda: change("CREATE TABLE sql_made AS SELECT 1 AS one"), "already exists")
change("DROP TABLE sql_made")
change("DROP TABLE IF EXISTS sql_made")
refused(lambda: fetch("FROM sql_made"), "not found")

info = connection.adbc_get_info()
assert info["vendor_name"] == "Lance Gateway", info
assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
assert connection.adbc_get_table_schema("sql_rows").names == ["id", "name"]
[catalog] = connection.adbc_get_objects(depth="all", table_name_filter="sql\\_r%").read_all().to_pylist()
assert catalog["catalog_name"] == "lance", catalog
schemas = {each["db_schema_name"]: each["db_schema_tables"] for each in catalog["catalog_db_schemas"]}
[table] = schemas["public"]
assert (table["table_name"], table["table_type"]) == ("sql_rows", "TABLE"), table
assert [column["column_name"] for column in table["table_columns"]] == ["id", "name"], table

frame = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None]})
assert frame.to_sql("sql_pandas", connection, index=False) == 3
found = pd.read_sql("SELECT name FROM sql_pandas WHERE id < 3 ORDER BY id", connection)
assert found["name"].tolist() == ["a", "b"], found
assert pl.from_pandas(frame).write_database("sql_polars", connection, engine="adbc") == 3
found = pl.read_database("SELECT sum(id) AS n FROM sql_polars", connection)
assert found["n"].to_list() == [6], found
batches = pl.read_database("FROM sql_polars", connection, iter_batches=True, batch_size=2)
assert sum(batch.height for batch in batches) == 3

endless = connection.cursor()
threading.Timer(1, endless.adbc_cancel).start()
began = time.monotonic()


def run_endless():
    endless.execute("SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c")
    endless.fetchall()


refused(run_endless, "ancel")
assert time.monotonic() - began < 30
endless.close()
assert fetch("SELECT 2 AS two").to_pydict() == {"two": [2]}
cursor.close()
connection.close()
# Later sessions at this gateway list the root.
json_type = {"content-type": "application/json"}
for table in ("sql_rows", "sql_pandas", "sql_polars"):
    drop = f"http://{sys.argv[1]}/v1/table/{table}/drop"
    urllib.request.urlopen(urllib.request.Request(drop, b"{}", json_type))
print("ok")
