"""Two gateways and pylance's own DirectoryNamespace on one bucket: they race for names, and write one table."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import lance
from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import (
    CountTableRowsRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    DropTableRequest,
    InsertIntoTableRequest,
    ListTablesRequest,
    TableExistsRequest,
    errors,
)
from odd_names import check_names
from support import people, raises, stream

options, base, *addresses = json.loads(sys.argv[1]), *sys.argv[2:]


def count_rows(gateway, *id):
    return gateway.count_table_rows(CountTableRowsRequest(id=list(id))).count


gateways = [RestNamespace(uri=address) for address in addresses]
directory = DirectoryNamespace(root=base, **{f"storage.{key}": value for key, value in options.items()})
everybody = [*gateways, directory]

gateways[0].create_namespace(CreateNamespaceRequest(id=["shared"]))
gateways[0].create_table(CreateTableRequest(id=["shared", "t"]), stream(people()))
described = [peer.describe_table(DescribeTableRequest(id=["shared", "t"])) for peer in everybody]
assert len({answer.location for answer in described}) == 1, described
assert described[0].location.startswith(f"{base}/"), described[0].location

# The gateway says where the bucket is, so that clients need nothing but their own credentials.
CREDENTIALS = {"aws_access_key_id", "aws_secret_access_key"}
public = {key: value for key, value in options.items() if key not in CREDENTIALS}
for number, gateway in enumerate(gateways):
    told = ["shared", f"told{number}"]
    assert gateway.describe_table(DescribeTableRequest(id=["shared", "t"])).storage_options == public
    assert gateway.declare_table(DeclareTableRequest(id=told)).storage_options == public
    gateway.drop_table(DropTableRequest(id=told))
own = {key: options[key] for key in CREDENTIALS}
opened = lance.dataset(namespace_client=gateways[0], table_id=["shared", "t"], storage_options=own)
assert opened.count_rows() == len(people())

# Names of all kinds lead to the same objects.
migrating = DirectoryNamespace(
    root=base,
    dir_listing_to_manifest_migration_enabled="true",
    **{f"storage.{key}": value for key, value in options.items()},
)
check_names(gateways[0], migrating, storage_options=options)

# Each name has one winner, whoever asks for it at the same time.
names = [f"n{i}" for i in range(12)]


def declare(peer, name):
    for _ in range(10):
        try:
            peer.declare_table(DeclareTableRequest(id=["shared", name]))
            return 1
        except errors.TableAlreadyExistsError:
            return 0
        except errors.ConcurrentModificationError:
            continue
    raise AssertionError(f"{name} was never decided")


with ThreadPoolExecutor(len(everybody)) as pool:
    for name in names:
        wins = sum(pool.map(lambda peer: declare(peer, name), everybody))
        assert wins == 1, (name, wins)
listings = [sorted(peer.list_tables(ListTablesRequest(id=["shared"])).tables) for peer in everybody]
assert listings == [sorted([*names, "t"])] * len(everybody), listings

# Rows of all writers arrive, and each sees them at once.
rows = len(people())
for _ in range(3):
    for gateway in gateways:
        gateway.insert_into_table(InsertIntoTableRequest(id=["shared", "t"]), stream(people()))
    lance.write_dataset(people(), described[0].location, mode="append", storage_options=options)
for gateway in gateways:
    count = count_rows(gateway, "shared", "t")
    assert count == 10 * rows, (count, rows)
assert lance.dataset(described[0].location, storage_options=options).count_rows() == 10 * rows

# A table that one drops is gone for all, and its name is free.
gateways[0].create_table(CreateTableRequest(id=["root_table"]), stream(people()))
assert count_rows(gateways[1], "root_table") == rows
directory.drop_table(DropTableRequest(id=["root_table"]))
for gateway in gateways:
    with raises(errors.TableNotFoundError):
        gateway.table_exists(TableExistsRequest(id=["root_table"]))
gateways[1].create_table(CreateTableRequest(id=["root_table"]), stream(people().slice(0, 1)))
assert count_rows(gateways[0], "root_table") == 1
