"""LanceDB over a namespace connection: create, open, add, search, list and drop, by REST."""

import sys

import lancedb
from lance_namespace.errors import TableNotFoundError
from support import people

db = lancedb.connect_namespace("rest", {"uri": sys.argv[1]})

db.create_namespace(["team"])
assert "team" in list(db.list_namespaces().namespaces)

table = db.create_table("people", people(), namespace_path=["team"])
assert table.count_rows() == 3
table.add(people(2, 10))
assert db.open_table("people", namespace_path=["team"]).count_rows() == 5
assert table.search([2.0, 0.0]).limit(1).to_list()[0]["name"] == "p2"
assert list(db.list_tables(["team"]).tables) == ["people"]

try:
    db.create_table("people", people(), namespace_path=["team"])
    raise SystemExit("creating a table twice must fail")
except (ValueError, RuntimeError) as error:
    assert "exists" in str(error), error

db.create_table("people", people(1), namespace_path=["team"], mode="overwrite")
assert db.open_table("people", namespace_path=["team"]).count_rows() == 1

root = db.create_table("at_root", people())
assert root.count_rows() == 3
assert list(db.list_tables().tables) == ["at_root"]

db.drop_table("people", namespace_path=["team"])
try:
    db.open_table("people", namespace_path=["team"])
    raise SystemExit("opening a dropped table must fail")
except TableNotFoundError as error:
    assert "people" in str(error), error
db.drop_table("at_root")
db.drop_namespace(["team"])
