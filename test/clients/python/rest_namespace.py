"""An ordinary session of pylance's RestNamespace, then the class of every error and datasets opened through it."""

import re
import sys

import lance
import lance_namespace
import pyarrow as pa
from lance.namespace import RestNamespace
from lance_namespace import errors
from lance_namespace import (
    CountTableRowsRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    InsertIntoTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    NamespaceExistsRequest,
    QueryTableRequest,
    RegisterTableRequest,
    TableExistsRequest,
)
from lance_namespace_urllib3_client.models import QueryTableRequestColumns, QueryTableRequestVector
from ordinary_session import Failed, run
from support import Session, people, raises, read_file, stream

ns = RestNamespace(uri=sys.argv[1])
# Operations that the wrapper does not pass on, and those that it takes as a dict.
NOT_WRAPPED = frozenset({"UpdateFieldMetadata"})
AS_DICT = {"DescribeTableVersion"}


def call(operation, id, body=None, **fields):
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).lower()
    model = "CreateTableIndex" if operation == "CreateTableScalarIndex" else operation
    kind = "ListTables" if operation == "ListAllTables" else model
    request = getattr(lance_namespace, f"{kind}Request").from_dict({"id": id, **fields})
    if operation in AS_DICT:
        request = {"id": id, **fields}
    try:
        answer = getattr(ns, name)(request) if body is None else getattr(ns, name)(request, body)
    except errors.LanceNamespaceError as error:
        raise Failed(int(error.code), str(error)) from None
    if isinstance(answer, dict):
        return answer
    content = answer.to_dict() if hasattr(answer, "to_dict") else {"value": answer}
    # The wrapper puts bare values back into their models.
    bare = [content[name] for name in ("count", "plan", "analysis", "data", "metadata") if name in content]
    return content if operation.startswith("Describe") or not bare else {"value": bare[0]}


session = Session("lance.namespace.RestNamespace", "pylance", lacks=NOT_WRAPPED)
run(session, call)
session.end()


def count(request):
    answer = ns.count_table_rows(request)
    return answer if isinstance(answer, int) else answer.count


# Namespaces
created = ns.create_namespace(CreateNamespaceRequest(id=["ns"], properties={"owner": "ada"}))
assert created.properties == {"owner": "ada"}, created
with raises(errors.NamespaceAlreadyExistsError):
    ns.create_namespace(CreateNamespaceRequest(id=["ns"]))
ns.create_namespace(CreateNamespaceRequest(id=["ns"], mode="exist_ok"))
ns.create_namespace(CreateNamespaceRequest(id=["ns", "inner"]))
with raises(errors.NamespaceNotFoundError):
    ns.create_namespace(CreateNamespaceRequest(id=["missing", "inner"]))
assert ns.describe_namespace(DescribeNamespaceRequest(id=["ns"])).properties == {"owner": "ada"}
assert ns.list_namespaces(ListNamespacesRequest(id=[])).namespaces == ["ns"]
ns.namespace_exists(NamespaceExistsRequest(id=["ns", "inner"]))
with raises(errors.NamespaceNotFoundError):
    ns.namespace_exists(NamespaceExistsRequest(id=["missing"]))

# Tables: create, describe, list, count, query, insert
answer = ns.create_table(CreateTableRequest(id=["ns", "people"], properties={"kind": "test"}), stream(people()))
assert answer.location and answer.version == 1, answer
with raises(errors.TableAlreadyExistsError):
    ns.create_table(CreateTableRequest(id=["ns", "people"]), stream(people()))
with raises(errors.NamespaceNotFoundError):
    ns.create_table(CreateTableRequest(id=["missing", "people"]), stream(people()))
with raises(errors.InvalidInputError):
    ns.create_table(CreateTableRequest(id=["ns", "broken"]), b"not arrow at all")

described = ns.describe_table(
    DescribeTableRequest(id=["ns", "people"], with_table_uri=True, load_detailed_metadata=True)
)
assert described.table == "people" and described.namespace == ["ns"], described
assert described.version == 1 and described.table_uri, described
assert [field.name for field in described.var_schema.fields] == ["id", "name", "vector"], described
with raises(errors.TableNotFoundError):
    ns.describe_table(DescribeTableRequest(id=["ns", "missing"]))

assert count(CountTableRowsRequest(id=["ns", "people"], predicate="id > 1")) == 2
inserted = ns.insert_into_table(InsertIntoTableRequest(id=["ns", "people"]), stream(people(2, 10)))
assert count(CountTableRowsRequest(id=["ns", "people"])) == 5
assert count(CountTableRowsRequest(id=["ns", "people"], version=1)) == 3
with raises(errors.TableVersionNotFoundError):
    count(CountTableRowsRequest(id=["ns", "people"], version=99))
with raises(errors.InvalidInputError):
    ns.count_table_rows(CountTableRowsRequest(id=["ns", "people"], predicate="id >"))
with raises(errors.TableSchemaValidationError):
    ns.insert_into_table(InsertIntoTableRequest(id=["ns", "people"]), stream(pa.table({"other": [1]})))

nearest = ns.query_table(
    QueryTableRequest(
        id=["ns", "people"],
        vector=QueryTableRequestVector(single_vector=[2.0, 0.0]),
        columns=QueryTableRequestColumns(column_names=["id", "name"]),
        k=1,
    )
)
rows = read_file(nearest.data).to_pylist()
assert rows[0]["id"] == 2 and rows[0]["name"] == "p2", rows
filtered = ns.query_table(
    QueryTableRequest(id=["ns", "people"], vector=QueryTableRequestVector(), k=10, filter="id >= 10", offset=1)
)
assert len(read_file(filtered.data)) == 1

# Declared tables
location = ns.declare_table(DeclareTableRequest(id=["ns", "declared"])).location
assert location, "a declared table has a location"
with raises(errors.TableAlreadyExistsError):
    ns.declare_table(DeclareTableRequest(id=["ns", "declared"]))
declared = ns.describe_table(DescribeTableRequest(id=["ns", "declared"], check_declared=True))
assert declared.is_only_declared is True, declared
assert ns.list_tables(ListTablesRequest(id=["ns"])).tables == ["declared", "people"]
assert ns.list_tables(ListTablesRequest(id=["ns"], include_declared=False)).tables == ["people"]
lance.write_dataset(people(), namespace_client=ns, table_id=["ns", "written"])
lance.write_dataset(people(1, 7), namespace_client=ns, table_id=["ns", "written"], mode="append")
assert lance.dataset(namespace_client=ns, table_id=["ns", "written"]).count_rows() == 4

# Deregister and register
relative = ns.deregister_table(DeregisterTableRequest(id=["ns", "written"])).location.rstrip("/").split("/")[-1]
with raises(errors.TableNotFoundError):
    ns.table_exists(TableExistsRequest(id=["ns", "written"]))
ns.register_table(RegisterTableRequest(id=["ns", "again"], location=relative))
ns.table_exists(TableExistsRequest(id=["ns", "again"]))
assert count(CountTableRowsRequest(id=["ns", "again"])) == 4
with raises(errors.InvalidInputError):
    ns.register_table(RegisterTableRequest(id=["ns", "escape"], location="../../etc"))

# Paging, one at a time
seen, token = [], None
while True:
    page = ns.list_tables(ListTablesRequest(id=["ns"], limit=1, page_token=token))
    seen += page.tables
    token = page.page_token
    if not token:
        break
assert seen == ["again", "declared", "people"], seen

# Drop
ns.drop_table(DropTableRequest(id=["ns", "people"]))
with raises(errors.TableNotFoundError):
    ns.drop_table(DropTableRequest(id=["ns", "people"]))
with raises(errors.NamespaceNotEmptyError):
    ns.drop_namespace(DropNamespaceRequest(id=["ns"]))
ns.drop_namespace(DropNamespaceRequest(id=["ns"], behavior="cascade"))
with raises(errors.NamespaceNotFoundError):
    ns.drop_namespace(DropNamespaceRequest(id=["ns"]))
ns.drop_namespace(DropNamespaceRequest(id=["ns"], mode="skip"))
assert ns.list_namespaces(ListNamespacesRequest(id=[])).namespaces == []
