"""The gateway and the public implementation of a catalog see the same namespaces and tables."""

import json
import sys

import lance_namespace
from lance.namespace import RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    ListNamespacesRequest,
    ListTablesRequest,
)

# Which implementation, its properties, the gateway, and the names that only the implementation has in front.
kind, properties, address, parent = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
implementation = lance_namespace.connect(f"lance_namespace_impls.{kind}", properties)
gateway = RestNamespace(uri=address)
ways = {"implementation": (implementation, parent), "gateway": (gateway, json.loads(sys.argv[5]))}


def described(namespace, path):
    table = namespace.describe_table(DescribeTableRequest(id=path))
    return table.location, table.properties


for name, (maker, before) in ways.items():
    space, table = f"made_by_{name}", "t1"
    maker.create_namespace(CreateNamespaceRequest(id=[*before, space], properties={"owner": name}))
    declared = DeclareTableRequest(
        id=[*before, space, table], location=f"s3://lake/{space}/{table}", properties={"owner": name}
    )
    maker.declare_table(declared)
    seen = {}
    for other, (reader, start) in ways.items():
        if start:
            listed = reader.list_namespaces(ListNamespacesRequest(id=start)).namespaces
            assert any(each.split(".")[-1] == space for each in listed), (name, other, listed)
        else:
            assert space in reader.list_namespaces(ListNamespacesRequest(id=[])).namespaces, (name, other)
        assert reader.list_tables(ListTablesRequest(id=[*start, space])).tables == [table], (name, other)
        seen[other] = (
            described(reader, [*start, space, table]),
            reader.describe_namespace(DescribeNamespaceRequest(id=[*start, space])).properties.get("owner"),
        )
    assert seen["gateway"] == seen["implementation"], seen
    (location, kept), owner = seen["gateway"]
    assert location == f"s3://lake/{space}/{table}" and kept["owner"] == name, seen

# Each removes what the other has made.
for name, (remover, before) in (("gateway", ways["implementation"]), ("implementation", ways["gateway"])):
    space = f"made_by_{name}"
    remover.deregister_table(DeregisterTableRequest(id=[*before, space, "t1"]))
    remover.drop_namespace(DropNamespaceRequest(id=[*before, space]))
    for reader, start in ways.values():
        listed = reader.list_namespaces(ListNamespacesRequest(id=start)).namespaces
        assert not any(each.split(".")[-1] == space for each in listed), (name, listed)

print("the same")
