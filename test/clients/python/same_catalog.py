"""Pylance's own DirectoryNamespace beside the gateway on one catalog: each sees what the other does."""

import json
import sys
import urllib.request

from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    TableExistsRequest,
    errors,
)
from support import people, raises, stream

gateway = RestNamespace(uri=sys.argv[1])
gateway.create_namespace(CreateNamespaceRequest(id=["shared"]))
gateway.create_table(CreateTableRequest(id=["shared", "ours"]), stream(people()))
gateway.create_table(CreateTableRequest(id=["root_table"]), stream(people()))

directory = DirectoryNamespace(root=sys.argv[2])
assert directory.list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["shared"]
assert directory.list_tables(ListTablesRequest(id=["shared"])).tables == ["ours"]
assert directory.list_tables(ListTablesRequest(id=[])).tables == ["root_table"]
seen = directory.describe_table(DescribeTableRequest(id=["shared", "ours"], load_detailed_metadata=True))
assert seen.version == 1, seen

directory.create_namespace(CreateNamespaceRequest(id=["theirs"]))
directory.create_table(CreateTableRequest(id=["theirs", "t"]), stream(people()))
directory.declare_table(DeclareTableRequest(id=["theirs", "declared"]))
assert gateway.list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["shared", "theirs"]
assert gateway.list_tables(ListTablesRequest(id=["theirs"])).tables == ["declared", "t"]
assert gateway.describe_table(DescribeTableRequest(id=["theirs", "t"], load_detailed_metadata=True)).version == 1

gateway.drop_table(DropTableRequest(id=["theirs", "t"]))
with raises(errors.TableNotFoundError):
    directory.table_exists(TableExistsRequest(id=["theirs", "t"]))
directory.drop_table(DropTableRequest(id=["shared", "ours"]))
with raises(errors.TableNotFoundError):
    gateway.table_exists(TableExistsRequest(id=["shared", "ours"]))


def view(action: str, **body: str) -> dict:
    """Does something with a view of the gateway."""
    url = f"{sys.argv[1]}/v1/view/shared$red/{action}"
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


# A view is an empty namespace to pylance, which refuses every change of a catalog with rows of unknown kinds.
view("create", query="SELECT id FROM root_table", default_root=True)
assert gateway.list_namespaces(ListNamespacesRequest(id=["shared"])).namespaces == []
assert directory.list_namespaces(ListNamespacesRequest(id=["shared"])).namespaces == ["red"]
for name in ("red", "other"):
    directory.create_table(CreateTableRequest(id=["theirs", name]), stream(people()))
directory.create_namespace(CreateNamespaceRequest(id=["late"]))
directory.drop_namespace(DropNamespaceRequest(id=["late"]))
directory.drop_table(DropTableRequest(id=["theirs", "other"]))
with raises(errors.TableAlreadyExistsError):
    directory.create_table(CreateTableRequest(id=["shared", "red"]), stream(people()))
assert view("describe")["query"] == "SELECT id FROM root_table"
view("drop")
assert directory.list_namespaces(ListNamespacesRequest(id=["shared"])).namespaces == []
