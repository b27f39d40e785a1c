"""An ordinary session of LanceDB over a namespace connection, by REST."""

import sys

import lancedb
from lance_namespace.errors import LanceNamespaceError, TableNotFoundError
from lancedb.index import FTS, BTree
from support import Session, people

session = Session("lancedb (Python, namespace)", "lancedb")
check = session.check
TEAM = ["team"]


class Refused:
    """Checks that a block fails with an error that has a word in it."""

    def __init__(self, word: str, *kinds: type):
        self.word, self.kinds = word, kinds or (ValueError, RuntimeError, LanceNamespaceError)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _trace):
        assert kind is not None, "the call succeeded"
        return issubclass(kind, self.kinds) and self.word in str(error)


db = lancedb.connect_namespace("rest", {"uri": sys.argv[1]})

with check("create_namespace"):
    db.create_namespace(TEAM, properties={"owner": "ada"})
with check("create_namespace that is there"), Refused("team"):
    db.create_namespace(TEAM)
with check("create_namespace exist_ok"):
    db.create_namespace(TEAM, mode="exist_ok")
with check("create_namespace below"):
    db.create_namespace([*TEAM, "inner"])
with check("list_namespaces"):
    assert list(db.list_namespaces().namespaces) == TEAM
with check("list_namespaces below"):
    assert list(db.list_namespaces(TEAM).namespaces) == ["inner"]
with check("describe_namespace"):
    assert db.describe_namespace(TEAM).properties == {"owner": "ada"}
with check("drop_namespace"):
    db.drop_namespace([*TEAM, "inner"])

with check("create_table"):
    assert db.create_table("people", people(), namespace_path=TEAM).count_rows() == 3
with check("create_table that is there"), Refused("exists"):
    db.create_table("people", people(), namespace_path=TEAM)
with check("create_table exist_ok"):
    assert db.create_table("people", people(1), namespace_path=TEAM, exist_ok=True).count_rows() == 3
with check("create_table by schema"):
    assert db.create_table("empty", schema=people().schema, namespace_path=TEAM).count_rows() == 0
with check("create_table overwrite"):
    assert db.create_table("empty", people(1), namespace_path=TEAM, mode="overwrite").count_rows() == 1
with check("create_table at the root"):
    assert db.create_table("at_root", people()).count_rows() == 3
with check("list_tables"):
    assert list(db.list_tables(TEAM).tables) == ["empty", "people"]
with check("list_tables at the root"):
    assert list(db.list_tables().tables) == ["at_root"]
with check("open_table"):
    assert db.open_table("people", namespace_path=TEAM).name == "people"
with check("open_table of none"), Refused("missing", TableNotFoundError):
    db.open_table("missing", namespace_path=TEAM)

table = db.open_table("people", namespace_path=TEAM)
with check("schema"):
    assert table.schema.names == ["id", "name", "vector"]
with check("add"):
    table.add(people(2, 10))
    assert table.count_rows() == 5
with check("count_rows by a filter"):
    assert table.count_rows("id >= 10") == 2
with check("merge_insert"):
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merged = merge.execute(people(2, 11))
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (1, 1), merged
with check("update"):
    assert table.update(where="id = 1", values={"name": "Ada"}).rows_updated == 1
with check("delete"):
    table.delete("id = 12")
    assert db.open_table("people", namespace_path=TEAM).count_rows() == 5

with check("search for the nearest"):
    assert [row["name"] for row in table.search([1.1, 0.0]).limit(1).to_list()] == ["Ada"]
with check("search with a filter"):
    assert [row["id"] for row in table.search([9.0, 0.0]).where("id < 10", prefilter=True).limit(1).to_list()] == [3]
with check("search for columns"):
    assert table.search().select(["name"]).where("id = 2").to_list()[0]["name"] == "p2"
with check("to_arrow"):
    assert table.to_arrow().num_rows == 5
with check("head"):
    assert table.head(2).num_rows == 2

with check("create_scalar_index"):
    table.create_index("id", config=BTree())
with check("create_fts_index"):
    table.create_index("name", config=FTS())
with check("list_indices"):
    assert sorted(index.name for index in table.list_indices()) == ["id_idx", "name_idx"]
with check("index_stats"):
    assert table.index_stats("id_idx").num_indexed_rows == 5
with check("search for words"):
    assert [row["id"] for row in table.search("ada", query_type="fts").limit(5).to_list()] == [1]
with check("drop_index"):
    table.drop_index("id_idx")
    assert [index.name for index in table.list_indices()] == ["name_idx"]

with check("add_columns"):
    table.add_columns({"twice": "id * 2"})
    assert table.count_rows("twice = id * 2") == 5
with check("alter_columns"):
    table.alter_columns({"path": "twice", "rename": "double"})
with check("drop_columns"):
    table.drop_columns(["double"])
    assert table.schema.names == ["id", "name", "vector"]
with check("list_versions"):
    assert len(table.list_versions()) == table.version
with check("tags.create"):
    table.tags.create("first", 1)
with check("tags.get_version"):
    assert table.tags.get_version("first") == 1
with check("tags.delete"):
    table.tags.delete("first")
with check("checkout"):
    table.checkout(1)
    assert table.count_rows() == 3
with check("restore"):
    table.restore()
    assert db.open_table("people", namespace_path=TEAM).count_rows() == 3

with check("drop_table"):
    db.drop_table("people", namespace_path=TEAM)
with check("open_table after it was dropped"), Refused("people", TableNotFoundError):
    db.open_table("people", namespace_path=TEAM)
with check("drop_namespace that is not empty"), Refused("team"):
    db.drop_namespace(TEAM)
with check("drop_namespace with everything"):
    db.drop_namespace(TEAM, behavior="cascade")
with check("drop_table at the root"):
    db.drop_table("at_root")
session.end()
