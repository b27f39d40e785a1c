"""SQL by LanceDB's own client, whose statements go to Flight SQL: results, namespaces, descriptions, errors and cancelling."""

import asyncio
import sys
import threading
import time

import lancedb
import pyarrow as pa

options = {"api_key": "k", "region": "local", "host_override": sys.argv[1], "sql_host_override": sys.argv[1]}
db = lancedb.connect("db://dev", **options)


def refused(call, text):
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the client has several classes for it.
        assert text in str(error), error
    else:
        raise AssertionError(f"{text}: the call succeeds")


db.create_namespace(["sqlteam"])
db.create_table("sql_rows", pa.table({"id": [3, 1, 2]}))
db.create_table("sql_rows", pa.table({"id": [7]}), namespace_path=["sqlteam"])

ordered = "SELECT id FROM sql_rows ORDER BY id"
assert db.execute_query(ordered).read_all().to_pydict() == {"id": [1, 2, 3]}
assert db.execute_query(ordered, default_namespace_path=["sqlteam"]).read_all().to_pydict() == {"id": [7]}
joined = "SELECT count(*) AS n FROM dev.public.sql_rows, sqlteam.sql_rows"
assert db.execute_query(joined).read_all().to_pydict() == {"n": [3]}

query = db.execute_query_async(ordered)
assert query.reader().read_all().num_rows == 3
description = db.describe_query(query.id)
assert description.status == "finished" and description.progress == 1.0, description


async def of_async():
    connection = await lancedb.connect_async("db://dev", **options)
    reader = await connection.execute_query(ordered)
    return pa.Table.from_batches(await reader.read_all())


assert asyncio.run(of_async()).to_pydict() == {"id": [1, 2, 3]}

refused(lambda: db.execute_query("SELECT * FROM nothing"), "not found")
refused(lambda: db.execute_query("SELEC 1"), "position 1")
refused(lambda: db.execute_query("ATTACH 'x.db'"), "not supported")

# Views, whose routes are those of the client, and which statements read.
view = db.create_view("large", "SELECT id FROM sql_rows WHERE id > 1")
assert (view.name, view.namespace_path, view.default_database) == ("large", [], "dev"), view
assert view.schema == pa.schema([("id", pa.int64())]), view.schema
assert db.describe_view("large") == view
assert db.execute_query("SELECT id FROM large ORDER BY id").read_all().to_pydict() == {"id": [2, 3]}
team = db.create_view("seven", "SELECT * FROM sql_rows", namespace_path=["sqlteam"])
assert team.default_namespace_path == ["sqlteam"], team
assert db.execute_query("SELECT * FROM sqlteam.seven").read_all().to_pydict() == {"id": [7]}
assert (db.list_views(), db.list_views(namespace_path=["sqlteam"])) == (["large"], ["seven"])
assert "large" not in db.table_names()
refused(lambda: db.create_view("large", "SELECT 1 AS one"), "already exists")
refused(lambda: db.create_view("broken", "SELECT nope FROM sql_rows"), "nope")
refused(lambda: db.create_view("broken", "SELECT * FROM read_csv('/etc/passwd')"), "read_csv")
db.drop_view("large")
db.drop_view_async("seven", namespace_path=["sqlteam"]).wait()
refused(lambda: db.describe_view("large"), "not found")
refused(lambda: db.execute_query("SELECT * FROM large"), "not found")

# Statements that write are read to their end, as queries are.
db.execute_query("INSERT INTO sql_rows VALUES (4)").read_all()
assert db.open_table("sql_rows").count_rows() == 4
db.execute_query("DROP TABLE sql_rows").read_all()
assert db.table_names() == [], db.table_names()

endless = db.execute_query_async("SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c")
reading = threading.Thread(target=lambda: refused(lambda: endless.reader().read_all(), "cancelled"))
reading.start()
for _ in range(100):
    try:
        endless.cancel()
        break
    except Exception as error:  # noqa: BLE001 - its statement may not run yet.
        assert "not cancellable" in str(error), error
    time.sleep(0.1)
reading.join(30)
assert not reading.is_alive()
assert db.execute_query("SELECT 2 AS two").read_all().to_pydict() == {"two": [2]}
print("ok")
