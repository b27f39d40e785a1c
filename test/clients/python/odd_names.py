"""Names with spaces, escapes and letters of all scripts: the gateway and pylance's own DirectoryNamespace read what the
other made. Arguments: the address of a gateway and the base of its catalog."""

import sys

import lance
from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import (
    CountTableRowsRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    DescribeTableRequest,
    ListTablesRequest,
)
from support import people, stream

NAMES = ["a b", "a+b", "a%b", "a%20b", "%", "ä", "e\u0301", "日本", "\U0001f600", "a:b", "a#b&c=d", '"<>|`^[]{}()!@,;~']


def check_names(gateway, directory, **options):
    """Checks names in namespaces and, where pylance itself finds them again, in the root."""
    writers = {"ours": gateway, "theirs": directory}
    for maker, made_by in writers.items():
        for name in NAMES:
            # pylance's REST client writes a space in a path as a plus, and only JSON bodies tell the two apart.
            if " " in name and made_by is gateway:
                continue
            namespace = f"{maker}-{name.replace(' ', '_')}"
            made_by.create_namespace(CreateNamespaceRequest(id=[namespace]))
            table = [namespace, name]
            made_by.create_table(CreateTableRequest(id=table), stream(people(3)))
            for reader in writers.values():
                assert reader.list_tables(ListTablesRequest(id=[namespace])).tables == [name], (maker, name)
                location = reader.describe_table(DescribeTableRequest(id=table)).location
                assert lance.dataset(location, **options).count_rows() == 3, (maker, name, location)
                assert reader.count_table_rows(CountTableRowsRequest(id=table)).count == 3, (maker, name)
            opened = lance.dataset(namespace_client=gateway, table_id=table, **options)
            assert opened.count_rows() == 3, (maker, name)

            root = [f"root-{maker}-{name}"]
            made_by.create_table(CreateTableRequest(id=root), stream(people(2)))
            assert gateway.count_table_rows(CountTableRowsRequest(id=root)).count == 2, (maker, name)
            assert root[0] in gateway.list_tables(ListTablesRequest(id=[])).tables, (maker, name)
            assert directory.count_table_rows(CountTableRowsRequest(id=root)).count == 2, (maker, name)


if __name__ == "__main__":
    # In its default mode pylance looks for tables of the root by their directories, and misses names that it escapes.
    manifest_only = DirectoryNamespace(root=sys.argv[2], dir_listing_to_manifest_migration_enabled="true")
    check_names(RestNamespace(uri=sys.argv[1]), manifest_only)
