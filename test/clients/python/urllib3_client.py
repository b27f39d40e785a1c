"""An ordinary session of the generated client `lance_namespace_urllib3_client`."""

import json
import re
import sys

import lance_namespace_urllib3_client as generated
from lance_namespace_urllib3_client.exceptions import ApiException
from ordinary_session import Failed, run
from support import Session

APIS = [generated.NamespaceApi, generated.TableApi, generated.BranchApi, generated.TransactionApi]
client = generated.ApiClient(generated.Configuration(host=sys.argv[1]))
apis = [api(client) for api in APIS if hasattr(generated, api.__name__)]
# Operations whose request has no JSON body: what they take goes into the query or the path.
BODYLESS = {
    *["ListNamespaces", "ListTables", "ListAllTables", "ListTableVersions", "ListTableTags", "ListTableBranches"],
    *["DropTable", "DropTableIndex", "CreateTable", "InsertIntoTable", "MergeInsertIntoTable"],
}


def call(operation, id, body=None, **fields):
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).lower()
    method = next(getattr(api, name) for api in apis if hasattr(api, name))
    arguments = [] if id is None else ["$".join(id) or "$"]
    if "index_name" in fields:
        arguments.append(fields.pop("index_name"))
    if operation == "UpdateTableSchemaMetadata":
        arguments.append(fields.pop("metadata"))
    elif operation == "MergeInsertIntoTable":
        arguments += [fields.pop("on"), body]
    elif body is not None:
        arguments.append(body)
    elif operation not in BODYLESS:
        model = "CreateTableIndex" if operation == "CreateTableScalarIndex" else operation
        flags = {"load_detailed_metadata", "with_table_uri", "check_declared"} & fields.keys()
        query = {flag: fields.pop(flag) for flag in flags}
        arguments.append(getattr(generated, f"{model}Request").from_dict(fields))
        fields = query
    try:
        answer = method(*arguments, **fields)
    except ApiException as error:
        raise Failed(json.loads(error.body)["code"], error.body) from None
    return answer.to_dict() if hasattr(answer, "to_dict") else {"value": answer}


session = Session("lance_namespace_urllib3_client", "lance-namespace-urllib3-client")
run(session, call)
session.end()
