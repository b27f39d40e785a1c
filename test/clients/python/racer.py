"""Pylance's own DirectoryNamespace as one of several that work on a catalog: a call for each line of input.

The arguments are the base directory and properties of the namespace, each as key=value."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import lance
import pyarrow as pa
from lance.namespace import DirectoryNamespace
from lance_namespace import (
    CreateTableRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    DropTableRequest,
    ListTablesRequest,
    RenameTableRequest,
    TableExistsRequest,
    errors,
)
from support import people, stream

namespace = DirectoryNamespace(root=sys.argv[1], **dict(each.split("=") for each in sys.argv[2:]))
rows = stream(people(2))
output = Lock()

CALLS = {
    "create": lambda id: namespace.create_table(CreateTableRequest(id=id), rows),
    "declare": lambda id: namespace.declare_table(DeclareTableRequest(id=id)),
    "drop": lambda id: namespace.drop_table(DropTableRequest(id=id)),
    "describe": lambda id: namespace.describe_table(DescribeTableRequest(id=id)),
    "exists": lambda id: namespace.table_exists(TableExistsRequest(id=id)),
    "tables": lambda id: namespace.list_tables(ListTablesRequest(id=id)),
}


def rename(id, to):
    request = RenameTableRequest(id=id, new_namespace_id=to[:-1], new_table_name=to[-1])
    return namespace.rename_table(request)


def merge(id, keys, updates):
    table = lance.dataset(namespace.describe_table(DescribeTableRequest(id=id)).location)
    columns = {name: keys if name == "id" else ["pylance"] * len(keys) for name in table.schema.names}
    work = table.merge_insert("id").when_not_matched_insert_all()
    if updates:
        work = work.when_matched_update_all()
    work.execute(pa.table(columns, schema=table.schema))


def perform(call):
    if call["kind"] == "rename":
        return rename(call["id"], call["to"])
    if call["kind"] == "merge":
        return merge(call["id"], call["keys"], call["updates"])
    return CALLS[call["kind"]](call["id"])


def answer(line):
    call = json.loads(line)
    try:
        result = perform(call)
        said = {"ok": True, "location": getattr(result, "location", None), "tables": getattr(result, "tables", None)}
    except errors.LanceNamespaceError as error:
        said = {"ok": False, "code": int(error.code), "text": str(error)[:200]}
    except Exception as error:  # Anything else is a failure that the test has to show.
        said = {"ok": False, "code": -1, "text": f"{type(error).__name__}: {error}"[:500]}
    with output:
        print(json.dumps({"serial": call["serial"], **said}), flush=True)


with ThreadPoolExecutor(16) as pool:
    for line in sys.stdin:
        pool.submit(answer, line)
