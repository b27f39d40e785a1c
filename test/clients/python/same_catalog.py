"""Pylance's own DirectoryNamespace beside the gateway on one catalog: each sees what the other does."""

import sys

from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DescribeTableRequest,
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
