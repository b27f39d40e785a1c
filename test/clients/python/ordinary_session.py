"""An ordinary session over the whole API, for any client that can call an operation by its name."""

from collections.abc import Callable

import pyarrow as pa
from support import Session, people, read_arrow, stream


class Failed(Exception):
    """What a client's call raises; `code` is the number in the error table."""

    def __init__(self, code: int | None, text: str):
        super().__init__(f"{code}: {text}")
        self.code = code


class Rejected:
    """Checks that a block fails with the given code."""

    def __init__(self, code: int):
        self.code = code

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _trace):
        assert kind is not None, f"the call succeeded; code {self.code} was expected"
        if kind is Failed:
            assert error.code == self.code, f"{error} instead of {self.code}"
        return kind is Failed


Call = Callable[..., dict]
"""`call(operation, id, body=None, **fields)` answers the fields of the response by their names in the API; what is a
bare value in REST is `value`. It raises Failed."""

NS, T = ["ordinary"], ["ordinary", "people"]


def run(session: Session, call: Call) -> None:
    """Runs the session; it leaves nothing behind."""
    namespaces(session, call)
    tables(session, call)
    rows(session, call)
    queries(session, call)
    indices(session, call)
    columns(session, call)
    versions(session, call)
    endings(session, call)


def namespaces(session: Session, call: Call) -> None:
    with session.check("CreateNamespace"):
        assert call("CreateNamespace", NS, properties={"owner": "ada"})["properties"] == {"owner": "ada"}
    with session.check("CreateNamespace that is there"), Rejected(2):
        call("CreateNamespace", NS)
    with session.check("CreateNamespace with ExistOk"):
        call("CreateNamespace", NS, mode="ExistOk")
    with session.check("CreateNamespace below"):
        call("CreateNamespace", [*NS, "inner"])
    with session.check("CreateNamespace without a parent"), Rejected(1):
        call("CreateNamespace", ["nowhere", "inner"])
    with session.check("DescribeNamespace"):
        assert call("DescribeNamespace", NS)["properties"] == {"owner": "ada"}
    with session.check("ListNamespaces"):
        assert call("ListNamespaces", NS)["namespaces"] == ["inner"]
    with session.check("NamespaceExists"):
        call("NamespaceExists", NS)
    with session.check("NamespaceExists of none"), Rejected(1):
        call("NamespaceExists", ["nowhere"])


def tables(session: Session, call: Call) -> None:
    with session.check("CreateTable"):
        assert call("CreateTable", T, stream(people()))["version"] == 1
    with session.check("CreateTable that is there"), Rejected(5):
        call("CreateTable", T, stream(people()))
    with session.check("CreateTable of no Arrow"), Rejected(13):
        call("CreateTable", [*NS, "broken"], b"no arrow at all")
    with session.check("DeclareTable"):
        assert call("DeclareTable", [*NS, "declared"])["location"]
    with session.check("ListTables"):
        assert sorted(call("ListTables", NS)["tables"]) == ["declared", "people"]
    with session.check("ListTables page by page"):
        first = call("ListTables", NS, limit=1)
        second = call("ListTables", NS, limit=1, page_token=first["page_token"])
        assert first["tables"] + second["tables"] == ["declared", "people"], (first, second)
    with session.check("ListAllTables"):
        call("DeclareTable", ["at_root"])
        assert "at_root" in call("ListAllTables", None)["tables"]
        call("DropTable", ["at_root"])
    with session.check("TableExists"):
        call("TableExists", T)
    with session.check("DescribeTable"):
        described = call("DescribeTable", T, load_detailed_metadata=True, with_table_uri=True)
        assert described["version"] == 1 and described["table_uri"] and described["location"], described
        assert [field["name"] for field in described["schema"]["fields"]] == ["id", "name", "vector"], described
    with session.check("DescribeTable that is declared only"):
        assert call("DescribeTable", [*NS, "declared"], check_declared=True)["is_only_declared"] is True
    with session.check("DescribeTable of none"), Rejected(4):
        call("DescribeTable", [*NS, "missing"])


def rows(session: Session, call: Call) -> None:
    with session.check("InsertIntoTable"):
        assert call("InsertIntoTable", T, stream(people(2, 10)))["version"] == 2
    with session.check("InsertIntoTable of other columns"), Rejected(20):
        call("InsertIntoTable", T, stream(pa.table({"other": [1]})))
    with session.check("CountTableRows"):
        assert call("CountTableRows", T)["value"] == 5
    with session.check("CountTableRows by a predicate"):
        assert call("CountTableRows", T, predicate="id >= 10")["value"] == 2
    with session.check("CountTableRows of a version"):
        assert call("CountTableRows", T, version=1)["value"] == 3
    with session.check("CountTableRows of no version"), Rejected(11):
        call("CountTableRows", T, version=99)
    with session.check("CountTableRows by nonsense"), Rejected(13):
        call("CountTableRows", T, predicate="id >")
    with session.check("MergeInsertIntoTable"):
        flags = {"when_matched_update_all": True, "when_not_matched_insert_all": True}
        merged = call("MergeInsertIntoTable", T, stream(people(2, 11)), on=["id"], **flags)
        assert (merged["num_updated_rows"], merged["num_inserted_rows"]) == (1, 1), merged
    with session.check("UpdateTable"):
        updated = call("UpdateTable", T, predicate="id = 1", updates=[["name", "'Ada'"]])
        assert updated["updated_rows"] == 1 and updated["version"] == 4, updated
    with session.check("UpdateTable of no column"), Rejected(12):
        call("UpdateTable", T, updates=[["missing", "1"]])
    with session.check("DeleteFromTable"):
        assert call("DeleteFromTable", T, predicate="id = 12")["version"] == 5
    with session.check("GetTableStats"):
        assert call("GetTableStats", T)["num_rows"] == 5


def queries(session: Session, call: Call) -> None:
    def query(**fields) -> list[dict]:
        return read_arrow(call("QueryTable", T, **fields)["value"]).to_pylist()

    with session.check("QueryTable for the nearest"):
        nearest = {"vector": {"single_vector": [1.1, 0.0]}, "columns": {"column_names": ["id", "name"]}}
        (found,) = query(k=1, **nearest)
        assert (found["id"], found["name"]) == (1, "Ada"), found
    with session.check("QueryTable by a filter"):
        assert len(query(vector={}, k=10, filter="id >= 10", offset=1)) == 1
    with session.check("QueryTable with aliases"):
        assert query(vector={}, k=1, columns={"column_aliases": {"n": "name"}})[0].keys() == {"n"}
    with session.check("QueryTable of a version"):
        assert len(query(vector={}, k=10, version=1)) == 3
    with session.check("ExplainTableQueryPlan"):
        assert call("ExplainTableQueryPlan", T, query={"vector": {}, "k": 2, "filter": "id > 1"})["value"]
    with session.check("AnalyzeTableQueryPlan"):
        assert "rows" in call("AnalyzeTableQueryPlan", T, vector={}, k=2)["value"]


def indices(session: Session, call: Call) -> None:
    with session.check("CreateTableScalarIndex"):
        call("CreateTableScalarIndex", T, column="id", index_type="BTREE")
    with session.check("CreateTableIndex for words"):
        call("CreateTableIndex", T, column="name", index_type="FTS", name="words")
    with session.check("CreateTableIndex for vectors"):
        vectors = {"column": "vector", "index_type": "IVF_FLAT", "distance_type": "l2", "num_partitions": 1}
        call("CreateTableIndex", T, **vectors)
    with session.check("ListTableIndices"):
        found = {index["index_name"]: index["columns"] for index in call("ListTableIndices", T)["indexes"]}
        assert found == {"id_idx": ["id"], "words": ["name"], "vector_idx": ["vector"]}, found
    with session.check("DescribeTableIndexStats"):
        assert call("DescribeTableIndexStats", T, index_name="id_idx")["num_indexed_rows"] == 5
    with session.check("QueryTable for words"):
        words = {"string_query": {"query": "ada", "columns": ["name"]}}
        found = read_arrow(call("QueryTable", T, vector={}, k=5, full_text_query=words)["value"]).to_pylist()
        assert [row["name"] for row in found] == ["Ada"], found
    with session.check("DropTableIndex"):
        call("DropTableIndex", T, index_name="words")
    with session.check("DropTableIndex of none"), Rejected(6):
        call("DropTableIndex", T, index_name="words")


def columns(session: Session, call: Call) -> None:
    with session.check("AlterTableAddColumns"):
        assert call("AlterTableAddColumns", T, new_columns=[{"name": "twice", "expression": "id * 2"}])["version"]
    with session.check("AlterTableAlterColumns"):
        assert call("AlterTableAlterColumns", T, alterations=[{"path": "twice", "rename": "double"}])["version"]
    if "UpdateFieldMetadata" not in session.lacks:
        with session.check("UpdateFieldMetadata"):
            updates = [{"path": "double", "metadata": {"unit": "none"}}]
            assert call("UpdateFieldMetadata", T, updates=updates)["fields"] == {"double": {"unit": "none"}}
    with session.check("CountTableRows by the new column"):
        assert call("CountTableRows", T, predicate="double = id * 2")["value"] == 5
    with session.check("UpdateTableSchemaMetadata"):
        assert call("UpdateTableSchemaMetadata", T, metadata={"made": "here"})["value"] == {"made": "here"}
    with session.check("AlterTableDropColumns"):
        assert call("AlterTableDropColumns", T, columns=["double"])["version"]
    with session.check("AlterTableDropColumns of none"), Rejected(12):
        call("AlterTableDropColumns", T, columns=["double"])


def versions(session: Session, call: Call) -> None:
    with session.check("ListTableVersions"):
        found = [entry["version"] for entry in call("ListTableVersions", T, descending=True)["versions"]]
        assert found == sorted(found, reverse=True) and found[-1] == 1, found
    with session.check("DescribeTableVersion"):
        assert call("DescribeTableVersion", T, version=2)["version"]["manifest_path"]
    with session.check("CreateTableTag"):
        call("CreateTableTag", T, tag="first", version=1)
    with session.check("CreateTableTag that is there"), Rejected(9):
        call("CreateTableTag", T, tag="first", version=1)
    with session.check("UpdateTableTag"):
        call("UpdateTableTag", T, tag="first", version=2)
    with session.check("GetTableTagVersion"):
        assert call("GetTableTagVersion", T, tag="first")["version"] == 2
    with session.check("ListTableTags"):
        assert call("ListTableTags", T)["tags"]["first"]["version"] == 2
    with session.check("DeleteTableTag"):
        call("DeleteTableTag", T, tag="first")
    with session.check("GetTableTagVersion of none"), Rejected(8):
        call("GetTableTagVersion", T, tag="first")
    branches(session, call)
    with session.check("RestoreTable"):
        call("RestoreTable", T, version=1)
    with session.check("CountTableRows after RestoreTable"):
        assert call("CountTableRows", T)["value"] == 3


def branches(session: Session, call: Call) -> None:
    with session.check("CreateTableBranch"):
        call("CreateTableBranch", T, name="side", from_version=1)
    with session.check("ListTableBranches"):
        assert list(call("ListTableBranches", T)["branches"]) == ["side"]
    with session.check("InsertIntoTable on a branch"):
        call("InsertIntoTable", T, stream(people(4, 50)), branch="side")
    with session.check("CountTableRows on a branch"):
        assert call("CountTableRows", T, branch="side")["value"] == 7
    with session.check("DeleteTableBranch"):
        call("DeleteTableBranch", T, name="side")
    with session.check("CountTableRows on no branch"), Rejected(22):
        call("CountTableRows", T, branch="side")


def endings(session: Session, call: Call) -> None:
    with session.check("RenameTable"):
        call("RenameTable", T, new_table_name="folk")
    folk = [*NS, "folk"]
    with session.check("CountTableRows of the new name"):
        assert call("CountTableRows", folk)["value"] == 3
    with session.check("DeregisterTable"):
        location = call("DeregisterTable", folk)["location"].rstrip("/").split("/")[-1]
    with session.check("RegisterTable"):
        call("RegisterTable", [*NS, "again"], location=location)
    with session.check("DropTable"):
        call("DropTable", [*NS, "again"])
    with session.check("DropTable of none"), Rejected(4):
        call("DropTable", [*NS, "again"])
    with session.check("DropNamespace that is not empty"), Rejected(3):
        call("DropNamespace", NS)
    with session.check("DropNamespace with everything"):
        call("DropNamespace", NS, behavior="Cascade")
    with session.check("NamespaceExists after it was dropped"), Rejected(1):
        call("NamespaceExists", NS)
