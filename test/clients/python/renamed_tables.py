"""Tables that the gateway renames, and transactions that it alters, as pylance's own DirectoryNamespace sees them."""

import json
import sys
from urllib.request import Request, urlopen

import lance
from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DescribeTableRequest,
    DescribeTransactionRequest,
    ListTablesRequest,
    RenameTableRequest,
    errors,
)
from support import people, raises, stream

uri, root = sys.argv[1:]
gateway = RestNamespace(uri=uri)
default = DirectoryNamespace(root=root)
# Looks into the manifest for tables of the root too, before it looks for directories.
manifest_first = DirectoryNamespace(root=root, dir_listing_to_manifest_migration_enabled="true")
manifest_only = DirectoryNamespace(root=root, dir_listing_enabled="false")


def create(*table_id, rows=3):
    gateway.create_table(CreateTableRequest(id=list(table_id)), stream(people(rows)))


def rename(old, name, namespace=None):
    gateway.rename_table(RenameTableRequest(id=old, new_table_name=name, new_namespace_id=namespace))


def tables(namespace, *parent):
    return sorted(namespace.list_tables(ListTablesRequest(id=list(parent))).tables)


def rows(namespace, *table_id):
    return lance.dataset(namespace_client=namespace, table_id=list(table_id)).count_rows()


def version(namespace, *table_id):
    request = DescribeTableRequest(id=list(table_id), load_detailed_metadata=True)
    return namespace.describe_table(request).version


for name in ["a", "b"]:
    gateway.create_namespace(CreateNamespaceRequest(id=[name]))

# Below the root the manifest alone names the tables.
create("a", "t")
rename(["a", "t"], "u")
rename(["a", "u"], "v", ["b"])
for peer in [default, manifest_first, manifest_only]:
    assert tables(peer, "a") == [] and tables(peer, "b") == ["v"]
    assert version(peer, "b", "v") == 1 and rows(peer, "b", "v") == 3

# A table of the root keeps its directory, whose name is the old one: it is hidden from those who go by directories.
create("old")
held = lance.dataset(gateway.describe_table(DescribeTableRequest(id=["old"])).location)
rename(["old"], "new")
for peer in [manifest_first, manifest_only]:
    assert tables(peer) == ["new"] and rows(peer, "new") == 3
assert tables(default) == []
for peer in [default, manifest_first, manifest_only]:
    with raises(errors.TableNotFoundError):
        peer.describe_table(DescribeTableRequest(id=["old"]))
# Who had it open goes on, and loses nothing.
held.insert(people(2, 10))
assert rows(gateway, "new") == 5 and rows(manifest_first, "new") == 5

# The name is free for another table, and a table that gets its first name back is everybody's again.
create("old", rows=7)
assert rows(gateway, "old") == 7 and rows(gateway, "new") == 5 and rows(manifest_first, "old") == 7
rename(["old"], "other")
rename(["new"], "old")
assert tables(default) == ["old"] and rows(default, "old") == 5

# A table that leaves the root is no table of the root any more.
rename(["old"], "w", ["b"])
assert tables(default) == [] and tables(manifest_first) == ["other"]
for peer in [default, manifest_first, manifest_only]:
    assert rows(peer, "b", "w") == 5

# What is noted about a transaction is in a file that both read. pylance cannot send the actions itself.
actions = [
    {"setStatusAction": {"status": "Canceled"}},
    {"setPropertyAction": {"key": "note", "value": "ours"}},
]
request = Request(
    f"{uri}/v1/transaction/b$w$1/alter",
    json.dumps({"actions": actions}).encode(),
    {"content-type": "application/json"},
)
with urlopen(request) as answer:
    assert json.load(answer)["status"] == "Canceled"
for peer in [gateway, default]:
    described = peer.describe_transaction(DescribeTransactionRequest(id=["b", "w", "1"]))
    assert described.status == "Canceled" and described.properties["note"] == "ours", described
